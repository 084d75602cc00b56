"""Tables and figures of docs/evidence.md: `python -m benchmarks.evidence --runs=runs/study`.

Compares RAT (or VAT) with Random under the same transformations, each with its own ε: the one with
the lowest validation error among the runs with a seed of --tuning or above. The other seeds are
compared by their test errors, in pairs of one seed and split (t-test for paired samples), and with
Welch's t-test. An experiment is what runs share besides method, ε and seeds.

--runs are folders of runs or files of records; --record=<file> writes such a file with all of them,
so that tables and figures can be made again from docs/evidence.csv without any training.

Prints the tables in Markdown; --output=<folder> also draws evidence_epsilon.png (validation error
of the tuning runs against ε), evidence_errors.png (test errors of all seeds) and evidence_steps.png
(validation error against steps and against the passes of images that they took), or those of
--figure.
"""

from __future__ import annotations

import dataclasses
import os
import re
import sys

import numpy as np
import scipy.stats
from absl import app, flags

from benchmarks import evidence_arms as lib
from benchmarks import evidence_figures, evidence_records
from rat_tf import errors
from rat_tf.experiments import results

_RUNS = flags.DEFINE_list("runs", ["docs/evidence.csv"], "Folders of runs, files of records.")
_TUNING = flags.DEFINE_integer("tuning", 100, "The first seed of the runs that choose ε.")
_ONLY = flags.DEFINE_string(
    "only", "", "Only what this regular expression finds in '<transformations>, <title>'."
)
_RECORD = flags.DEFINE_string("record", "", "Write a record of all the runs to this CSV file.")
_OUTPUT = flags.DEFINE_string("output", "", "Folder for the figures.")
FIGURES = ["epsilon", "errors", "steps"]
_FIGURES = flags.DEFINE_multi_enum("figure", FIGURES, FIGURES, "Which to draw; can be repeated.")


def paired(first: dict, second: dict) -> tuple[np.ndarray, float | None, float | None]:
    """Differences of the test errors of common seeds, p of the paired and of Welch's t-test."""
    common = sorted(set(first) & set(second))
    differences = np.array([first[seed] - second[seed] for seed in common])
    p = None
    if len(common) > 1 and np.ptp(differences) > 0:
        p = float(scipy.stats.ttest_1samp(differences, 0).pvalue)
    return differences, p, results.welch(list(first.values()), list(second.values()))


def table(transforms: dict[lib.Names, dict[str, lib.Arm]]) -> str:
    """An experiment in Markdown: a line for each transformation and method."""
    lines = ["| transformation | parameters | method | ε | validation % | test % | seeds |"]
    lines[0] += " minus Random, same seeds | paired p | Welch's p |"
    lines.append("| --- " * 10 + "|")
    for names, arms in transforms.items():
        random = arms.get(lib.RANDOM)
        for method, arm in sorted(arms.items(), key=lambda item: item[0] != lib.RANDOM):
            lines.append(_line(names, method, arm, arm.epsilon, random))
            # What the search itself does: Random with the ε of the other.
            if random and arm is not random and arm.epsilon != random.epsilon:
                if random.errors_at(arm.epsilon):
                    lines.append(
                        _line(names, f"{lib.RANDOM} at that ε", random, arm.epsilon, random)
                    )
    return "\n".join(lines)


def grid_table(transforms: dict[lib.Names, dict[str, lib.Arm]]) -> str:
    """The tuning runs of an experiment in Markdown: a line for each ε."""
    lines = ["| transformation | method | ε | validation % | seeds |", "| --- " * 5 + "|"]
    for names, arms in transforms.items():
        for method, arm in sorted(arms.items(), key=lambda item: item[0] != lib.RANDOM):
            for epsilon, runs in sorted(arm.tuning.items()):
                cells = [lib.joined(names), method, lib.joined(epsilon)]
                cells += [_percent(arm.validation(epsilon)), str(len(runs))]
                lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) if len(lines) > 2 else ""


def _line(
    names: lib.Names, method: str, arm: lib.Arm, epsilon: lib.Epsilons, random: lib.Arm | None
) -> str:
    errors = arm.errors_at(epsilon)
    cells = [lib.joined(names), _parameters(arm), method, lib.joined(epsilon)]
    cells += [_percent(arm.validation(epsilon)), _number(list(errors.values())), str(len(errors))]
    if random and method != lib.RANDOM:
        differences, *ps = paired(errors, random.errors)
        cells += [_number(differences, "+"), *map(_p, ps)]
    else:
        cells += ["", "", ""]
    return "| " + " | ".join(cells) + " |"


def _parameters(arm: lib.Arm) -> str:
    return str(next(iter((arm.tuning or arm.compared).values()))[0].parameters or "–")


def _percent(error: float) -> str:
    return "–" if np.isnan(error) else f"{error:.1f}"


def _number(values, sign: str = "") -> str:
    if not len(values):
        return "–"
    std = f" ± {np.std(values, ddof=1):.2f}" if len(values) > 1 else ""
    return f"{np.mean(values):{sign}.2f}{std}".replace("-", "−")


def _p(p: float | None) -> str:
    return "–" if p is None else f"{p:.3f}" if p >= 0.001 else "< 0.001"


def records(places: list[str]) -> list[lib.Record]:
    """The records of files and of the runs in folders; what cannot be read is said."""
    found, runs = [], []
    for place in places:
        if os.path.isfile(place):
            found += evidence_records.read(place)
            continue
        of_place, problems = results.read(results.find([place]))
        runs += of_place
        for problem in problems:
            print(f"warning: {problem}", file=sys.stderr)
    _check_flags(runs)
    return [*found, *map(evidence_records.of_run, runs)]


def _check_flags(runs: list[results.Result]) -> None:
    """Refuses runs that would be one arm of an experiment although other flags than ε differ.

    Records have no flags: whoever adds runs to them has to see to it.
    """
    first: dict = {}
    for run in runs:
        of = evidence_records.of_run(run)
        other = first.setdefault((of.experiment, of.method, tuple(n for n, _ in of.parts)), run)
        free = ("seed", "split_seed", "transforms")
        same = {name: getattr(other.config, name) for name in free}
        for found in dataclasses.replace(run.config, **same).differences(other.config):
            raise errors.UserError(
                f"--runs: {run.folder} and {other.folder} are both {of.method}, "
                f"{of.transforms or 'no transformation'} in {of.experiment!r}, but their flags "
                f"differ: {found}; give the runs of one experiment only"
            )


def _check_only() -> None:
    try:
        re.compile(_ONLY.value)
    except re.error as error:
        raise errors.UserError(
            f"--only: expected a regular expression, got {_ONLY.value!r} ({error})"
        ) from None


def _only(title: str, transforms: dict) -> dict:
    """What --only asks for of an experiment."""
    names = {name: f"{lib.joined(name)}, {title}" for name in transforms}
    return {n: arms for n, arms in transforms.items() if re.search(_ONLY.value, names[n])}


def main(argv) -> None:
    del argv
    try:
        _check_only()
        found = records(_RUNS.value)
        made = lib.experiments(found, _TUNING.value)
    except errors.UserError as error:
        sys.exit(f"error: {error}")
    if _RECORD.value:
        evidence_records.write(_RECORD.value, found)
    made = {title: _only(title, transforms) for title, transforms in made.items()}
    made = {title: transforms for title, transforms in made.items() if transforms}
    for title, transforms in made.items():
        print(f"### {title}\n\n{table(transforms)}\n\n{grid_table(transforms)}\n")
    if _OUTPUT.value:
        os.makedirs(_OUTPUT.value, exist_ok=True)
        for name in _FIGURES.value:
            path = os.path.join(_OUTPUT.value, f"evidence_{name}.png")
            getattr(evidence_figures, f"{name}_figure")(path, made)


if __name__ == "__main__":
    app.run(main)
