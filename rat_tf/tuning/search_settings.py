"""The flags of rat_tf.tune itself, the role of a process, and the folder of a search."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator

from rat_tf import config as config_lib
from rat_tf import errors, fields
from rat_tf.config import flag_values
from rat_tf.storage import files, records

TUNERS = ("grid", "random", "bayesian", "hyperband")
DEFAULT_TRIALS = 20  # of a random or Bayesian search


@dataclasses.dataclass(frozen=True)
class Settings:
    """The tuner's own flags."""

    output: str = fields.path(
        "", "Folder of the search; default: runs/<name of the flagfile>/tune-<method>."
    )
    tuner: str = fields.flag(
        "",
        "Default: grid; with --search_composition bayesian. hyperband also varies the steps.",
        choices=("", *TUNERS),
    )
    search: str = fields.flag(
        "", "What to vary; default: the paper's grid of ε for the transformations in use."
    )
    search_composition: bool = fields.flag(
        False, "Search which transformations to compose, in which order and with which ε."
    )
    max_trials: int = fields.flag(
        0,
        "Maximum number of trials; 0: the whole grid, all of hyperband's brackets, or "
        f"{DEFAULT_TRIALS} trials of the other tuners. Raise it to continue a finished search.",
        fields.at_least(0),
    )
    stop_hopeless: bool = fields.flag(
        False,
        "Stop a trial early if its lowest validation error is above the median of the earlier "
        "trials' mean errors up to the same step; not in the first third of its steps.",
    )

    def resolved(self, config: config_lib.Config) -> Settings:
        """These settings checked, with the defaults that depend on other flags."""
        default = os.path.join(os.path.dirname(config.run_dir), f"tune-{config.method}")
        tuner = self.tuner or ("bayesian" if self.search_composition else "grid")
        found = dataclasses.replace(self, tuner=tuner, output=self.output or default)
        for message in found._clashes(config):
            raise errors.UserError(message)  # the first
        return found

    def _clashes(self, config: config_lib.Config) -> Iterator[str]:
        if self.search_composition and not config_lib.is_used("padding", config.method):
            yield f"--search_composition: not used by --method={config.method}; use rat or random"
        if self.search_composition and self.tuner == "grid":
            yield "--tuner: a grid of compositions is too large; use random, bayesian or hyperband"
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
        """The maximum number of trials; None if the tuner sets it."""
        limited = self.tuner in ("grid", "hyperband")
        return self.max_trials or (None if limited else DEFAULT_TRIALS)

    def text(self) -> str:
        what = ["compositions"] * self.search_composition + [self.search] * bool(self.search)
        return f"{self.tuner}: " + (", ".join(what) or "the paper's grid of ε")


def role() -> str:
    """The role of this process by KerasTuner's variables: chief, worker, or alone."""
    ip, needed = "KERASTUNER_ORACLE_IP", ("KERASTUNER_TUNER_ID", "KERASTUNER_ORACLE_PORT")
    given = [name for name in (ip, *needed) if os.environ.get(name)]
    missing = [name for name in needed if name not in given]
    if not given:
        return "alone"
    if missing:
        raise errors.UserError(f"environment: {given[0]} is set, but not {', '.join(missing)}")
    os.environ[ip] = os.environ.get(ip) or "127.0.0.1"
    return "chief" if "chief" in os.environ["KERASTUNER_TUNER_ID"] else "worker"


# ---- the folder


def _paths(folder: str) -> tuple[str, str]:
    return os.path.join(folder, "search.json"), os.path.join(folder, "flags.cfg")


def check_folder(settings: Settings, config: config_lib.Config, created: bool = False) -> None:
    """Checks that the folder is unused, or that of a search with the same settings."""
    folder = settings.output
    description, flags = _paths(folder)
    if not os.path.exists(description):
        if created or not _is_unused(folder):
            what = "the chief's folder" if created else "a new or empty folder, or that of a search"
            raise errors.UserError(f"--output: expected {what}, but {folder} has no search.json")
        return
    kept = _kept(settings)
    before = records.json_object(
        description,
        {n: records.flag if isinstance(v, bool) else records.string for n, v in kept.items()},
    )
    differences = config.differences(flag_values.config_of_record(flags)) + [
        f"expected --{name}={before[name]}, got --{name}={value}"
        for name, value in kept.items()
        if before[name] != value
    ]
    if differences:
        raise errors.UserError(
            f"--output: {folder} is a search with other flags; use another --output or the same "
            "flags:\n  " + "\n  ".join(differences)
        )


def create_folder(settings: Settings, config: config_lib.Config) -> None:
    description, flags = _paths(settings.output)
    try:
        os.makedirs(settings.output, exist_ok=True)
        files.write(flags, config.flagfile())
        # Last, as it marks the folder of a search.
        files.write(description, json.dumps(_kept(settings), indent=2) + "\n")
    except OSError as error:
        raise errors.UserError(f"--output: {settings.output}: {error.strerror}") from None


def _is_unused(folder: str) -> bool:
    """Whether there is nothing but leftovers of workers and of an interrupted `create_folder`."""
    if not os.path.isdir(folder):
        return not os.path.exists(folder)
    harmless = ("flags.cfg", "oracle")
    return all(n in harmless or n.endswith(files.TEMPORARY) for n in os.listdir(folder))


def _kept(settings: Settings) -> dict:
    """The settings that must not change during a search."""
    kept = dataclasses.asdict(settings)
    return {name: kept[name] for name in kept if name not in ("output", "max_trials")}
