"""Plans a sweep: the list of its runs, all checked, each with its own folder."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re

from rat_tf import config as config_lib
from rat_tf import errors
from rat_tf.config import flag_values, ranges, run_dirs, training_flags
from rat_tf.experiments import paper

FIELDS = config_lib.FLAGS
MAX_RUNS = 10_000
#: Flags that the rows of the paper set; together with --paper they select rows.
SELECTING = ("dataset", "method", "labels")
#: Flags that the name of a run folder shows anyway.
NAMED = ("method", "labels", "seed")


@dataclasses.dataclass(frozen=True)
class Planned:
    """One run of a sweep: `python -m rat_tf.train` with these flagfiles and flags."""

    flagfiles: tuple[str, ...]
    flags: dict[str, str]
    config: config_lib.Config

    def arguments(self) -> list[str]:
        return [
            *(f"--flagfile={path}" for path in self.flagfiles),
            *(f"--{name}={value}" for name, value in self.flags.items()),
            f"--run_dir={self.config.run_dir}",
            # A run is what was planned: no preset, no number of steps from a measurement.
            *([] if self.flagfiles else [f"--budget={training_flags.NO_BUDGET}"]),
        ]


def axes(vary, seeds: str = "") -> dict[str, list[str]]:
    """The values of every varied flag, from "method=rat|vat; seed=0..4" (see `config.ranges`).

    `seeds` is a number of seeds or a range of them.
    """
    parameters = []
    for name, text in ranges.split("--vary", ";".join(vary)):
        if name not in FIELDS or name in ("run_dir", "budget"):
            hint = errors.did_you_mean(name, FIELDS)
            raise errors.UserError(f"--vary: expected a flag of training, got {name!r}{hint}")
        parameters.append(ranges.parse("--vary", name, text, FIELDS[name].type))
    if seeds:
        match = re.fullmatch(r"(\d+\.\.)?(\d+)", seeds)
        if not match or seeds == "0":
            raise errors.UserError(
                f"--seeds: expected a number of seeds or a range such as 0..4, got {seeds!r}"
            )
        numbers = seeds if match[1] else f"0..{int(seeds) - 1}"
        parameters.append(ranges.parse("--seeds", "seed", numbers, "int"))
    found: dict[str, list[str]] = {}
    for parameter in parameters:
        parameter.check_list("--vary", "a sweep")
        if parameter.name in found:
            raise errors.UserError(f"--vary: --{parameter.name} is varied twice")
        found[parameter.name] = list(parameter.values)
    return found


def plan(
    flagfiles, given: dict[str, str], varied: dict[str, list[str]], root: str, split_per_seed=False
) -> list[Planned]:
    """The runs of all combinations.

    A flag that a run's method does not use, or its search where searches are varied, is dropped
    from that run, and runs that are then equal are merged. A flag that no run uses is an error.
    """
    _check(given, varied)
    _check_number(varied)
    found = list(_combinations(flagfiles, given, varied, root, split_per_seed))
    return _distinct(found, {**given, **varied})


def _check(given: dict[str, str], varied: dict[str, list[str]]) -> None:
    for name in given:
        if name in varied:
            raise errors.UserError(f"--{name}: both given and varied")
        if name == "run_dir":
            raise errors.UserError(
                "--run_dir: not used by rat_tf.sweep; every run has its own, see --runs"
            )
        if name == "budget":
            raise errors.UserError(
                "--budget: not used by rat_tf.sweep, whose runs must have the same number of "
                "steps; use flags.cfg of a run with --budget as --flagfile"
            )


def _check_number(varied: dict[str, list[str]], rows: int = 1) -> None:
    """Planning a run takes milliseconds."""
    count = rows * math.prod(map(len, varied.values()))
    if count > MAX_RUNS:
        raise errors.UserError(
            f"--vary: expected at most {MAX_RUNS:,} runs in one sweep, got {count:,} combinations"
        )


def _combinations(flagfiles, given, varied, root, split_per_seed):
    for combination in itertools.product(*varied.values()):
        flags = {**given, **dict(zip(varied, combination))}
        yield _planned(flagfiles, flags, varied, root, split_per_seed)


def _distinct(planned: list[Planned], asked) -> list[Planned]:
    """The runs without duplicates; a `UserError` for an `asked` flag that no run uses."""
    for name in asked:
        if not any(name in run.flags for run in planned):
            raise errors.UserError(f"--{name}: not used by any run of the sweep")
    found, folders = {}, {}
    for run in planned:
        used = run.config.used_transforms
        same = dataclasses.replace(run.config, run_dir="", transforms=used)
        if same in found:
            continue
        found[same] = run
        if folders.setdefault(run.config.run_dir, run) is not run:
            raise errors.UserError(
                f"--vary: two different runs share the folder {run.config.run_dir}"
            )
    return list(found.values())


def _planned(flagfiles, flags, varied, root, split_per_seed) -> Planned:
    files = [f"--flagfile={path}" for path in flagfiles]
    rest = [f"--{name}={text}" for name, text in flags.items()]
    values = flag_values.of_arguments([*files, *rest])
    unused = flag_values.unused(values, search="adversary" in varied)
    flags = {name: text for name, text in flags.items() if name not in unused}
    extras = {name: flags[name] for name in varied if name in flags and name not in NAMED}
    if split_per_seed:
        if "split_seed" in varied:
            raise errors.UserError("--split_per_seed: --split_seed is already varied")
        values["split_seed"] += values["seed"]
        extras["split_seed"] = flags["split_seed"] = str(values["split_seed"])
    config = flag_values.to_config(values, given=flags)
    last = flagfiles[-1] if flagfiles else ""
    run_dir = run_dirs.default(config, last, extras, root)
    return Planned(tuple(flagfiles), flags, dataclasses.replace(config, run_dir=run_dir))


def plan_paper(
    name: str, given: dict[str, str], varied: dict[str, list[str]], root: str, split_per_seed=False
) -> list[Planned]:
    """The runs of one table or figure of the paper, of all its rows or of those selected."""
    rows = paper.table(name).rows
    for flag in SELECTING:
        if flag in varied:
            raise errors.UserError(f"--vary: --{flag} is set by the rows of --paper={name}")
    selected = {flag: given[flag] for flag in SELECTING if flag in given}
    others = {flag: text for flag, text in given.items() if flag not in SELECTING}
    _check(others, varied)
    _check_number(varied, len(rows))
    found = []
    for row in rows:
        own = {
            "dataset": row.dataset,
            "labels": str(row.labels),
            "method": flag_values.of_file(row.path)["method"],
        }
        if any(own[flag] != text for flag, text in selected.items()):
            continue
        flags = {**others, "labels": own["labels"]}
        found += _combinations((row.path,), flags, varied, root, split_per_seed)
    if not found:
        wanted = ", ".join(f"--{flag}={text}" for flag, text in selected.items())
        raise errors.UserError(f"--paper={name}: no row with {wanted}")
    return _distinct(found, {**others, **varied})
