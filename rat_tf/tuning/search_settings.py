"""The flags of rat_tf.tune itself, the role of a process, and the folder that remembers both."""

from __future__ import annotations

import dataclasses
import json
import os
import textwrap
from collections.abc import Iterator

from absl import flags

from rat_tf import config as config_lib
from rat_tf import errors, files
from rat_tf.config import flag_values

TUNERS = ("grid", "random", "bayesian", "hyperband")
DEFAULT_TRIALS = 20  # of a random or Bayesian search


def _flag(default, text: str):
    return dataclasses.field(default=default, metadata={"help": text})


@dataclasses.dataclass(frozen=True)
class Settings:
    """The tuner's own flags."""

    output: str = _flag(
        "", "Folder of the search; by default runs/<name of the flagfile>/tune-<method>."
    )
    tuner: str = _flag(
        "",
        "grid | random | bayesian | hyperband (whose resource is training steps). By default grid, "
        "with --search_composition bayesian.",
    )
    search: str = _flag(
        "", "What to vary; by default the paper's grid of ε for the transformations in use."
    )
    search_composition: bool = _flag(
        False, "Search which transformations to compose, in which order and with which ε."
    )
    max_trials: int = _flag(
        0,
        "Maximum number of trials; 0: the whole grid, all of hyperband's brackets, or "
        f"{DEFAULT_TRIALS} trials of the other tuners. Raise it to continue a finished search.",
    )
    stop_hopeless: bool = _flag(
        False,
        "Stop a trial early if its lowest validation error is above the median of the earlier "
        "trials' mean errors up to the same step; not in the first third of its steps.",
    )

    def check(self, config: config_lib.Config) -> None:
        for message in self._clashes(config):
            raise errors.UserError(message)  # the first

    def _clashes(self, config: config_lib.Config) -> Iterator[str]:
        if self.tuner not in TUNERS:
            hint = errors.did_you_mean(self.tuner, TUNERS)
            yield f"--tuner: expected one of {', '.join(TUNERS)}, got {self.tuner!r}{hint}"
        if self.max_trials < 0:
            yield f"--max_trials: must be >= 0, got {self.max_trials}"
        if self.search_composition and self.tuner == "grid":
            yield (
                "--tuner: a grid of compositions is too large; use random, bayesian or hyperband "
                "with --search_composition"
            )
        if config.strategy == "multi_worker":
            yield "--strategy: a trial runs on one machine; for several machines see --help"
        if self.tuner != "hyperband":
            return
        if self.max_trials:
            yield "--max_trials: not used by --tuner=hyperband, whose brackets fix the number"
        if self.stop_hopeless:
            yield "--stop_hopeless: not used by --tuner=hyperband, which stops trials itself"
        if config.iterations < 3 * config.validate_every:
            yield (
                "--validate_every: --tuner=hyperband needs three validations or more in "
                f"--iterations={config.iterations}, got {config.validate_every}"
            )

    @property
    def limit(self) -> int | None:
        """The maximum number of trials; None where the tuner ends by itself."""
        by_default = DEFAULT_TRIALS if self.tuner in ("random", "bayesian") else None
        return self.max_trials or by_default

    def text(self) -> str:
        what = "compositions" if self.search_composition else ""
        what = ", ".join(filter(None, (what, self.search))) or "the paper's grid of ε"
        return f"{self.tuner}: {what}"


def define_flags(registry=flags.FLAGS) -> None:
    define = {"str": flags.DEFINE_string, "bool": flags.DEFINE_boolean, "int": flags.DEFINE_integer}
    for field in dataclasses.fields(Settings):
        text = field.metadata["help"]
        define[field.type](field.name, field.default, text, flag_values=registry)


def help_text() -> str:
    lines = ["Tuning:"]
    for field in dataclasses.fields(Settings):
        lines.append(f"  --{field.name}")
        text = field.metadata["help"]
        lines += textwrap.wrap(text, 88, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join(lines)


def from_flags(config: config_lib.Config) -> Settings:
    """The tuner's own flags as parsed, checked, with the defaults that depend on others."""
    if flags.FLAGS["run_dir"].present:
        raise errors.UserError("--run_dir: every trial has a folder of its own in --output")
    given = {field.name: flags.FLAGS[field.name].value for field in dataclasses.fields(Settings)}
    given["tuner"] = given["tuner"] or ("bayesian" if given["search_composition"] else "grid")
    name = f"tune-{config.method}"
    given["output"] = given["output"] or os.path.join(os.path.dirname(config.run_dir), name)
    settings = Settings(**given)
    settings.check(config)
    return settings


def role() -> str:
    """What KerasTuner's variables make of this process: chief, worker, or alone."""
    ip, needed = "KERASTUNER_ORACLE_IP", ("KERASTUNER_TUNER_ID", "KERASTUNER_ORACLE_PORT")
    given = [name for name in (ip, *needed) if os.environ.get(name)]
    missing = [name for name in needed if name not in given]
    if not given:
        return "alone"
    if missing:
        raise errors.UserError(
            f"the environment has {', '.join(given)}, but not {', '.join(missing)}"
        )
    os.environ[ip] = os.environ.get(ip) or "127.0.0.1"
    return "chief" if "chief" in os.environ["KERASTUNER_TUNER_ID"] else "worker"


# ---- the folder


def description(folder: str) -> str:
    return os.path.join(folder, "search.json")


def _flagfile(folder: str) -> str:
    return os.path.join(folder, "flags.cfg")


def check_folder(settings: Settings, config: config_lib.Config) -> None:
    """Refuses a folder of something else, or of a search with other settings."""
    folder = settings.output
    if not os.path.exists(description(folder)):
        if os.path.exists(folder) and not (os.path.isdir(folder) and _is_unused(folder)):
            raise errors.UserError(
                f"--output: expected a new or empty folder or that of a search, but {folder} has "
                "no search.json and is not empty"
            )
        return
    with open(description(folder)) as file:
        before = json.load(file)
    differences = config.differences(flag_values.config_of_file(_flagfile(folder))) + [
        f"--{name}={before[name]} there, --{name}={value} here"
        for name, value in _kept(settings).items()
        if before[name] != value
    ]
    if differences:
        raise errors.UserError(
            f"--output: {folder} is a search with other flags; use another --output or the same "
            "flags:\n  " + "\n  ".join(differences)
        )


def create_folder(settings: Settings, config: config_lib.Config) -> None:
    folder = settings.output
    try:
        os.makedirs(folder, exist_ok=True)
        files.write(_flagfile(folder), config.flagfile())
        # Last: it makes the folder that of a search.
        files.write(description(folder), json.dumps(_kept(settings), indent=2) + "\n")
    except OSError as error:
        raise errors.UserError(f"--output: cannot write to {folder}: {error.strerror}") from None


def _is_unused(folder: str) -> bool:
    """Whether there is nothing but what workers and an interrupted `create_folder` leave."""
    harmless = ("flags.cfg", "oracle")
    return all(n in harmless or n.endswith(files.TEMPORARY) for n in os.listdir(folder))


def _kept(settings: Settings) -> dict:
    """The settings that must not change during a search."""
    kept = dataclasses.asdict(settings)
    return {name: kept[name] for name in kept if name not in ("output", "max_trials")}
