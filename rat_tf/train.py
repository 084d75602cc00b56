"""Trains one classifier from few labels and many unlabelled images.

    python -m rat_tf.train --flagfile=configs/digits50.cfg [--method=vat] [--seed=1] …

Results are in --run_dir. A run that was killed goes on when the same command is given again.
Exit status: 0 finished, 2 a mistake in flags or data, 75 interrupted by Ctrl-C or SIGTERM
(everything is saved).
"""

from __future__ import annotations

import os
import sys

from rat_tf import config as config_lib
from rat_tf.config import cli
from rat_tf.training import checkpoints, devices, loop, run_folder


def main(config: config_lib.Config) -> None:
    run = run_folder.Run(config.run_dir)
    run.check(config)
    result = run.finished()
    if result:
        print(f"{run.folder} is finished; nothing to do.\n{loop.verdict(result)}")
        return
    strategy = devices.prepare(config)
    images = run.load(config)
    worker = devices.worker_index(strategy)
    if worker == 0:
        run.create(config, images)
    os.makedirs(run.of_worker(worker).folder, exist_ok=True)
    try:
        with run.of_worker(worker).locked():
            result = loop.train(config, run, images, strategy, worker)
    except checkpoints.Interrupted as signal:
        print(f"\n{signal}: saved; the same command goes on from here.", file=sys.stderr)
        sys.exit(checkpoints.STOPPED)
    print(f"{loop.verdict(result)}\nresults in {run.folder}")


if __name__ == "__main__":
    cli.run(main)
