"""Trains one classifier from few labels and many unlabelled images.

    python -m rat_tf.train --dataset=folder:pets [--budget=2h] …
    python -m rat_tf.train --flagfile=configs/digits50.cfg [--method=random] [--seed=1] …

Without --flagfile, flags that fit a folder of images come from a preset; --budget says how long.
Writes the results to --run_dir. The same command resumes a run that was stopped or killed.
Exit status: 0 finished, 2 invalid flags or data, 75 interrupted by Ctrl-C or SIGTERM
(everything is saved).
"""

from __future__ import annotations

import os
import sys
import time

from rat_tf import config as config_lib
from rat_tf import errors, training
from rat_tf.config import cli
from rat_tf.data import layouts


def start(parsed: cli.Parsed) -> None:
    """Finds the run folder of a command line and the flags that it leaves open, then trains."""
    began = time.monotonic()
    choice = training.choice.of(parsed)
    config = choice.config
    if not training.run_folder.Run(config.run_dir).finished():
        print(f"reading  {config.dataset}", flush=True)
    main(config, choice, began)


def main(config: config_lib.Config, choice=None, began: float = 0.0) -> None:
    run = training.run_folder.Run(config.run_dir)
    try:
        with training.signals.raised():
            _train(config, run, choice, began)
    except training.signals.Interrupted as signal:
        said = "state saved" if os.path.exists(run.flags) else "nothing had begun"
        print(f"\n{signal}: {said}; the same command resumes the run.", file=sys.stderr)
        sys.exit(cli.STOPPED)


def _train(config: config_lib.Config, run, choice, began: float) -> None:
    # The run folder: new, unfinished, or finished.
    run.check(config)
    result = run.finished()
    if result:
        if changed := run.changed(config):
            raise errors.UserError(
                f"--run_dir: {run.folder} is finished, and {changed}; to train with them, use "
                f"another --run_dir, and --init_from={run.folder} to start from its weights"
            )
        print(f"{run.folder} is finished; nothing to do.\n{training.run_folder.verdict(result)}")
        return

    started = os.path.exists(run.flags)
    if not started:
        layouts.check_outside(config.dataset, run.folder, "run_dir")
        training.initial.check(config)
        training.network_files.check(config)

    # Devices and data.
    cli.import_tensorflow_quietly()
    new = choice is not None and not started
    config = choice.fit_to_images() if new else config
    strategy = training.devices.prepare(config)
    images = run.load(config)
    training.build.check_images(config, images)
    if config.init_from and not started:
        training.initial.check_images(config, images)
    source = training.loop.network_of(config, run, images)
    worker = training.devices.worker_index(strategy)
    if worker == 0:
        print(training.opening.of_data(images), flush=True)
    expected = ""
    if new:
        config, expected = choice.fit_to_time(config, images, strategy, began)
    for text in config.warnings():  # of the schedules, too, now that the number of steps is known
        print(f"warning: {text}", file=sys.stderr)

    # Training, and the test error at the best step.
    with run.of_worker(worker).locked():
        model = training.loop.built(config, images, strategy, source)
        if worker == 0:  # after everything that may be refused
            run.create(config, images, choice.given if new else None)
        result = training.loop.train(config, run, images, strategy, worker, expected, source, model)
    print(f"{training.run_folder.verdict(result)}\nresults in {run.folder}")


if __name__ == "__main__":
    cli.command(start, training=True)
