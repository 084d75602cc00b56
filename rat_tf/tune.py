"""Searches for good flags: trains many classifiers and compares their validation errors.

    python -m rat_tf.tune --flagfile=configs/cifar10_4000.cfg               the paper's grid of ε
    python -m rat_tf.tune --flagfile=… --tuner=bayesian --max_trials=30 \\
        --search="epsilon.affine=0.1:1, xi=1e-6|1e-2, consistency=0.1:1:log"
    python -m rat_tf.tune --flagfile=… --search_composition --max_trials=50

--search takes any flag that changes a result, and epsilon.<transformation>, with values as
start:stop:step, start:stop, start:stop:log, start:stop:log:count or a|b|c. --search_composition
searches which transformations to apply, in which order, with which ε.

A trial is a run of rat_tf.train in <output>/trials/<id>, only that nobody looks at the test set;
trials are compared by the validation error of their best interval. When all have ended there are a
table, trials.csv, trials.png and best.cfg, with which rat_tf.train runs. To test the winner without
training it again: python -m rat_tf.train --flagfile=<trial>/flags.cfg --run_dir=<trial>

The same command goes on after any interruption, kill -9 and power cuts included: no ended trial is
repeated, and one under way goes on from its checkpoint. Exit status: 0 finished, 2 a mistake in
flags or data, 75 interrupted by Ctrl-C or SIGTERM.

Several machines: start the same command on all of them, with an --output that all see, and

    KERASTUNER_ORACLE_IP=<address of the chief> KERASTUNER_ORACLE_PORT=<port>
    KERASTUNER_TUNER_ID=chief on one of them, worker1, worker2, … on the others

in the environment. The chief hands out trials and runs none, so a machine with GPUs may run a chief
and a worker. All end by themselves. If a worker dies, its trial goes to another after a minute;
any of them, the chief included, may be started again at any time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import signal
import sys
import textwrap

import grpc
from absl import flags

from rat_tf import checkpoints, cli, devices, hints, oracles, runs, search_space, trial_runner
from rat_tf import config as config_lib
from rat_tf import trials as trials_lib
from rat_tf.data import streams

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
            hint = hints.did_you_mean(self.tuner, TUNERS)
            raise config_lib.UserError(
                f"--tuner: expected one of {', '.join(TUNERS)}, got {self.tuner!r}{hint}"
            )
        if self.search_composition and self.tuner == "grid":
            raise config_lib.UserError(
                "--tuner: there are too many compositions for a grid; take random, bayesian or "
                "hyperband with --search_composition"
            )
        if self.max_trials < 0:
            raise config_lib.UserError(f"--max_trials: expected >= 0, got {self.max_trials}")
        if self.tuner == "hyperband" and config.iterations < 3 * config.validate_every:
            raise config_lib.UserError(
                "--validate_every: hyperband needs at least three validations in --iterations="
                f"{config.iterations}, got {config.validate_every}"
            )
        if self.tuner == "hyperband" and self.stop_hopeless:
            raise config_lib.UserError("--stop_hopeless: hyperband ends trials by its own rule")
        if config.strategy == "multi_worker":
            raise config_lib.UserError(
                "--strategy: a trial runs on one machine; for several machines see --help"
            )

    def text(self) -> str:
        what = "compositions" if self.search_composition else ""
        what = ", ".join(filter(None, (what, self.search))) or "the paper's grid of ε"
        return f"{self.tuner}: {what}"


def main(config: config_lib.Config) -> None:
    role = oracles.role()
    settings = _settings(config)
    settings.check(config)
    space = search_space.parse(
        settings.search, config, settings.tuner == "grid", settings.search_composition
    )
    _check_hyperband(settings, space)
    check_folder(settings, config)
    try:
        with _signals_raise():
            _search(config, settings, space, role)
    except (checkpoints.Interrupted, KeyboardInterrupt) as interruption:
        print(f"\n{interruption}: saved; the same command goes on from here.", file=sys.stderr)
        sys.exit(checkpoints.STOPPED)
    except grpc.RpcError as error:
        print(f"\nthe chief does not answer ({error.code().name.lower()}); the same command "
              "goes on when there is one.", file=sys.stderr)  # fmt: skip
        sys.exit(checkpoints.STOPPED)
    if role == "worker":
        print("no more trials; the chief writes the results")
        return
    print("\n" + trials_lib.report(settings.output, settings.text(), config))
    print(f"\nresults in {settings.output}; to train with the best flags:")
    best = os.path.join(settings.output, "best")
    print(f"python -m rat_tf.train --flagfile={best}.cfg --run_dir={best}")


def _settings(config: config_lib.Config) -> Settings:
    """The tuner's own flags as parsed, with what they say by default."""
    if flags.FLAGS["run_dir"].present:
        raise config_lib.UserError("--run_dir: every trial has a folder of its own in --output")
    given = {name: getattr(flags.FLAGS, name) for name in HELP}
    given["tuner"] = given["tuner"] or ("bayesian" if given["search_composition"] else "grid")
    name = f"tune-{config.method}"
    given["output"] = given["output"] or os.path.join(os.path.dirname(config.run_dir), name)
    return Settings(**given)


def _check_hyperband(settings: Settings, space: search_space.Space) -> None:
    clash = {"iterations", "validate_every"} & {p.name for p in space.parameters}
    if settings.tuner == "hyperband" and clash:
        raise config_lib.UserError(f"--search: {clash.pop()} is what hyperband itself varies")


def check_folder(settings: Settings, config: config_lib.Config) -> None:
    """Refuses a folder of something else, or of a search with other settings."""
    run, described = runs.Run(settings.output), _description(settings.output)
    if not os.path.exists(described):
        if os.path.exists(run.folder) and (
            not os.path.isdir(run.folder)
            or {*os.listdir(run.folder)} - {"flags.cfg", "flags.cfg.tmp", "search.json.tmp"}
        ):
            raise config_lib.UserError(
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
        raise config_lib.UserError(
            f"--output: {settings.output} is a search with other flags; take another --output or "
            "the same flags:\n  " + "\n  ".join(differences)
        )


def _kept(settings: Settings) -> dict:
    """The settings that must not change in the middle of a search."""
    kept = dataclasses.asdict(settings)
    return {name: kept[name] for name in kept if name not in ("output", "max_trials")}


def _description(folder: str) -> str:
    return os.path.join(folder, "search.json")


def _create_folder(settings: Settings, config: config_lib.Config) -> None:
    try:
        os.makedirs(settings.output, exist_ok=True)
        runs.write(runs.Run(settings.output).flags, config.flagfile())
        # Last: it makes the folder that of a search.
        runs.write(_description(settings.output), json.dumps(_kept(settings), indent=2) + "\n")
    except OSError as error:
        raise config_lib.UserError(
            f"--output: cannot write to {settings.output}: {error.strerror}"
        ) from None


def _search(config, settings: Settings, space: search_space.Space, role: str) -> None:
    runner = None
    if role != "chief":
        # First what may be refused: data that are not there, batches that do not divide.
        strategy = devices.prepare(config)
        for probe in space.probes():
            streams.check_replicas(
                probe.labeled_batch, probe.unlabeled_batch, strategy.num_replicas_in_sync
            )
        runner = trial_runner.Runner(space, strategy, settings.output, settings.stop_hopeless)
    if role != "worker":
        _create_folder(settings, config)
    rungs = config.iterations // config.validate_every
    limit = settings.max_trials or (ENOUGH if settings.tuner in ("random", "bayesian") else 0)
    oracle = oracles.make(settings.tuner, space.hyperparameters(), config.seed, limit, rungs)
    oracle.chief = role == "chief"
    tuner = trial_runner.Tuner(oracle, runner, directory=settings.output, project_name="oracle")
    if role == "worker":
        tuner.oracle.get_space()  # waits for the chief, which has then described the search
        if not os.path.exists(_description(settings.output)):
            raise config_lib.UserError(
                f"--output: expected the chief's folder, but {settings.output} has no search.json"
            )
        check_folder(settings, config)
    else:
        going_on = oracle.reload()
        total = min(space.size(), limit or math.inf)
        count = f"{total} trials" if settings.tuner != "hyperband" else "trials"
        print(f"{settings.text()}; {count} of up to {config.iterations} steps")
        if going_on:
            print(f"going on after {len(trials_lib.finished(settings.output))} trials")
    if role == "chief":
        oracles.serve(oracle)
    else:
        tuner.search()


@contextlib.contextmanager
def _signals_raise():
    """SIGTERM as KeyboardInterrupt, as SIGINT is; training has its own way, and saves first."""

    def on_signal(number, frame):
        # Not an Exception: code that tries something and goes on if it fails must not catch it.
        raise KeyboardInterrupt(signal.Signals(number).name)

    numbers = (signal.SIGINT, signal.SIGTERM)
    handlers = {number: signal.signal(number, on_signal) for number in numbers}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def define_flags(flag_values=flags.FLAGS) -> None:
    define = {"str": flags.DEFINE_string, "bool": flags.DEFINE_boolean, "int": flags.DEFINE_integer}
    for field in dataclasses.fields(Settings):
        define[field.type](field.name, field.default, HELP[field.name], flag_values=flag_values)


def help_text() -> str:
    lines = [cli.help_text(__doc__), "", "Tuning:"]
    for name, text in HELP.items():
        lines.append(f"  --{name}")
        lines += textwrap.wrap(text, 88, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join(lines)


if __name__ == "__main__":
    if {"--help", "-help", "-h"} & set(sys.argv[1:]):
        print(help_text())
        sys.exit()
    define_flags()
    cli.run(main)
