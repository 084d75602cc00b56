"""The flags of rat_tf.tune itself, and the folder of a search that remembers them."""

from __future__ import annotations

import dataclasses
import json
import os
import textwrap

from absl import flags

from rat_tf import config as config_lib
from rat_tf import errors, files
from rat_tf.training import run_folder

TUNERS = ("grid", "random", "bayesian", "hyperband")
ENOUGH = 20  # trials of a random or Bayesian search, if not said otherwise
HELP = {
    "output": "Folder of the search; by default runs/<name of the flagfile>/tune-<method>.",
    "tuner": "grid | random | bayesian | hyperband (whose resource is training steps). By default "
    "grid, with --search_composition bayesian.",
    "search": "What to vary; by default the paper's grid of ε for the transformations in use.",
    "search_composition": "Search which transformations to compose, in which order and with "
    "which ε.",
    "max_trials": f"Trials at most; 0: the whole grid or all of hyperband's brackets, {ENOUGH} of "
    "the others. May be raised to go on with a search that has ended.",
    "stop_hopeless": "End a trial early whose lowest validation error is above the median of the "
    "earlier trials' mean errors up to the same step; not in the first third of its steps.",
}


@dataclasses.dataclass(frozen=True)
class Settings:
    """The tuner's own flags."""

    output: str = ""
    tuner: str = ""
    search: str = ""
    search_composition: bool = False
    max_trials: int = 0
    stop_hopeless: bool = False

    def check(self, config: config_lib.Config) -> None:
        if self.tuner not in TUNERS:
            hint = errors.did_you_mean(self.tuner, TUNERS)
            raise errors.UserError(
                f"--tuner: expected one of {', '.join(TUNERS)}, got {self.tuner!r}{hint}"
            )
        if self.search_composition and self.tuner == "grid":
            raise errors.UserError(
                "--tuner: there are too many compositions for a grid; take random, bayesian or "
                "hyperband with --search_composition"
            )
        if self.max_trials and self.tuner == "hyperband":
            raise errors.UserError(
                "--max_trials: hyperband's brackets decide on the number of trials"
            )
        if self.max_trials < 0:
            raise errors.UserError(f"--max_trials: expected >= 0, got {self.max_trials}")
        if self.tuner == "hyperband" and config.iterations < 3 * config.validate_every:
            raise errors.UserError(
                "--validate_every: hyperband needs at least three validations in --iterations="
                f"{config.iterations}, got {config.validate_every}"
            )
        if self.tuner == "hyperband" and self.stop_hopeless:
            raise errors.UserError("--stop_hopeless: hyperband ends trials by its own rule")
        if config.strategy == "multi_worker":
            raise errors.UserError(
                "--strategy: a trial runs on one machine; for several machines see --help"
            )

    def text(self) -> str:
        what = "compositions" if self.search_composition else ""
        what = ", ".join(filter(None, (what, self.search))) or "the paper's grid of ε"
        return f"{self.tuner}: {what}"


def from_flags(config: config_lib.Config) -> Settings:
    """The tuner's own flags as parsed, with what they say by default."""
    if flags.FLAGS["run_dir"].present:
        raise errors.UserError("--run_dir: every trial has a folder of its own in --output")
    given = {name: getattr(flags.FLAGS, name) for name in HELP}
    given["tuner"] = given["tuner"] or ("bayesian" if given["search_composition"] else "grid")
    name = f"tune-{config.method}"
    given["output"] = given["output"] or os.path.join(os.path.dirname(config.run_dir), name)
    return Settings(**given)


def check_folder(settings: Settings, config: config_lib.Config) -> None:
    """Refuses a folder of something else, or of a search with other settings."""
    run, described = run_folder.Run(settings.output), description(settings.output)
    if not os.path.exists(described):
        if os.path.exists(run.folder) and (
            not os.path.isdir(run.folder)
            or {*os.listdir(run.folder)} - {"flags.cfg", "flags.cfg.tmp", "search.json.tmp"}
        ):
            raise errors.UserError(
                f"--output: expected a new or empty folder or that of a search, but {run.folder} "
                "has no search.json and is not empty"
            )
        return
    with open(described) as file:
        before = json.load(file)
    differences = config.differences(run.config()) + [
        f"--{name}={before[name]} there, --{name}={value} here"
        for name, value in _kept(settings).items()
        if before[name] != value
    ]
    if differences:
        raise errors.UserError(
            f"--output: {settings.output} is a search with other flags; take another --output or "
            "the same flags:\n  " + "\n  ".join(differences)
        )


def _kept(settings: Settings) -> dict:
    """The settings that must not change in the middle of a search."""
    kept = dataclasses.asdict(settings)
    return {name: kept[name] for name in kept if name not in ("output", "max_trials")}


def description(folder: str) -> str:
    return os.path.join(folder, "search.json")


def create_folder(settings: Settings, config: config_lib.Config) -> None:
    try:
        os.makedirs(settings.output, exist_ok=True)
        files.write(run_folder.Run(settings.output).flags, config.flagfile())
        # Last: it makes the folder that of a search.
        files.write(description(settings.output), json.dumps(_kept(settings), indent=2) + "\n")
    except OSError as error:
        raise errors.UserError(
            f"--output: cannot write to {settings.output}: {error.strerror}"
        ) from None


def define_flags(flag_values=flags.FLAGS) -> None:
    define = {"str": flags.DEFINE_string, "bool": flags.DEFINE_boolean, "int": flags.DEFINE_integer}
    for field in dataclasses.fields(Settings):
        define[field.type](field.name, field.default, HELP[field.name], flag_values=flag_values)


def help_text() -> str:
    lines = ["Tuning:"]
    for name, text in HELP.items():
        lines.append(f"  --{name}")
        lines += textwrap.wrap(text, 88, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join(lines)
