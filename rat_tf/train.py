"""Trains one classifier from few labels and many unlabelled images.

    python -m rat_tf.train --flagfile=configs/digits50.cfg [--method=vat] [--seed=1] …

Writes the results to --run_dir. The same command resumes a run that was stopped or killed.
Exit status: 0 finished, 2 invalid flags or data, 75 interrupted by Ctrl-C or SIGTERM
(everything is saved).
"""

from __future__ import annotations

import os
import sys

from rat_tf import config as config_lib
from rat_tf import training
from rat_tf.config import cli


def main(config: config_lib.Config) -> None:
    run = training.run_folder.Run(config.run_dir)
    try:
        with training.signals.raised():
            _train(config, run)
    except training.signals.Interrupted as signal:
        said = "state saved" if os.path.exists(run.flags) else "nothing had begun"
        print(f"\n{signal}: {said}; the same command resumes the run.", file=sys.stderr)
        sys.exit(cli.STOPPED)


def _train(config: config_lib.Config, run: training.run_folder.Run) -> None:
    # The run folder: new, unfinished, or finished.
    run.check(config)
    result = run.finished()
    if result:
        print(f"{run.folder} is finished; nothing to do.\n{training.run_folder.verdict(result)}")
        return

    started = os.path.exists(run.flags)
    if not started:
        training.initial.check(config)
    for text in config.warnings():
        print(f"warning: {text}", file=sys.stderr)

    # Devices and data.
    cli.import_tensorflow_quietly()
    strategy = training.devices.prepare(config)
    images = run.load(config)
    training.build.check_images(config, images)
    if config.init_from and not started:
        training.initial.check_images(config, images)

    # Training, and the test error at the best step.
    worker = training.devices.worker_index(strategy)
    with run.of_worker(worker).locked():
        if worker == 0:
            run.create(config, images)
        result = training.loop.train(config, run, images, strategy, worker)
    print(f"{training.run_folder.verdict(result)}\nresults in {run.folder}")


if __name__ == "__main__":
    cli.run(main)
