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
and a worker. All end by themselves. If a worker dies, its trial goes to another after a minute, and
it may be started again at any time. If the chief dies, start all of them again.
"""

from __future__ import annotations

import contextlib
import math
import os
import shlex
import signal
import sys

import grpc
import tensorflow as tf

from rat_tf import config as config_lib
from rat_tf import errors
from rat_tf.config import cli
from rat_tf.data import streams
from rat_tf.training import checkpoints, devices
from rat_tf.tuning import oracles, search_settings, search_space, trial_runner
from rat_tf.tuning import trials as trials_lib


def main(config: config_lib.Config) -> None:
    role = oracles.role()
    settings = search_settings.from_flags(config)
    settings.check(config)
    space = search_space.parse(
        settings.search, config, settings.tuner == "grid", settings.search_composition
    )
    _check_hyperband(settings, space)
    search_settings.check_folder(settings, config)
    # A graph for every trial is what is wanted here; TensorFlow takes it for a mistake.
    tf.get_logger().addFilter(lambda record: "retracing" not in record.getMessage())
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
    print(f"\nresults in {settings.output}")
    best = os.path.join(settings.output, "best")
    if os.path.exists(f"{best}.cfg"):
        print("to train and test with the best flags:")
        command = ["python", "-m", "rat_tf.train", f"--flagfile={best}.cfg", f"--run_dir={best}"]
        print(shlex.join(command))


def _check_hyperband(settings: search_settings.Settings, space: search_space.Space) -> None:
    clash = {"iterations", "validate_every"} & {p.name for p in space.parameters}
    if settings.tuner == "hyperband" and clash:
        raise errors.UserError(f"--search: {clash.pop()} is what hyperband itself varies")


def _search(
    config, settings: search_settings.Settings, space: search_space.Space, role: str
) -> None:
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
        search_settings.create_folder(settings, config)
    rungs = config.iterations // config.validate_every
    limit = settings.max_trials or (
        search_settings.ENOUGH if settings.tuner in ("random", "bayesian") else 0
    )
    oracle = oracles.make(settings.tuner, space.hyperparameters(), config.seed, limit, rungs)
    oracle.chief = role == "chief"
    tuner = trial_runner.Tuner(oracle, runner, directory=settings.output, project_name="oracle")
    if role == "worker":
        tuner.oracle.get_space()  # waits for the chief, which has then described the search
        if not os.path.exists(search_settings.description(settings.output)):
            raise errors.UserError(
                f"--output: expected the chief's folder, but {settings.output} has no search.json"
            )
        search_settings.check_folder(settings, config)
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


if __name__ == "__main__":
    if {"--help", "-help", "-h"} & set(sys.argv[1:]):
        print(cli.help_text(__doc__), search_settings.help_text(), sep="\n\n")
        sys.exit()
    search_settings.define_flags()
    cli.run(main)
