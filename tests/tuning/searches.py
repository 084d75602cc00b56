"""A tiny search, and what stands in for the trainings of its trials."""

import os
import pathlib
import time

from rat_tf import config as config_lib
from rat_tf.config import flag_values
from rat_tf.storage import files
from rat_tf.tuning import search_space

TINY = {
    "dataset": "digits",
    "labels": 20,
    "image_size": 8,
    "network": "tiny",
    "labeled_batch": 10,
    "unlabeled_batch": 10,
    "iterations": 6,
    "validate_every": 2,
}
BASE = config_lib.Config(**TINY)


def parse(text, tuner="random", composition=False, **changes):
    base = flag_values.changed_config(BASE, **changes)
    return search_space.parse(text, base, tuner, composition)


def fake_fit(error, calls):
    """In the place of a training: two steps an interval, `error`(config, step) the error."""

    def fit(config, run, images, strategy, callbacks=()):
        rows = run.rows()
        calls.append((config, len(rows)))
        model = type("Model", (), {"stop_training": False})()
        for step in range(2 * len(rows) + 2, config.iterations + 1, 2):
            rows.append({"step": step, "seconds": step / 10, "val_error": error(config, step)})
            text = "".join(f"{','.join(str(v) for v in row.values())}\n" for row in rows)
            files.write(run.metrics, "step,seconds,val_error\n" + text)
            for callback in callbacks:
                callback.set_model(model)
                callback.on_epoch_end(0, rows[-1])
            if model.stop_training:
                break

    return fit


def fake_train(runner, config, run):
    """In the place of a trial's training on one of several machines: a row with an error.

    The worker called "doomed" hangs in its second trial.
    """
    run.create(config, runner._images)
    name = os.environ["KERASTUNER_TUNER_ID"]
    trials = pathlib.Path(run.folder).parent
    if name == "doomed" and name in [path.read_text() for path in trials.glob("*/by")]:
        (pathlib.Path(run.folder) / "hangs").touch()
        time.sleep(1000)
    error = abs(config.transforms.epsilons["affine"] - 0.4)
    files.write(run.metrics, f"step,seconds,val_error\n2,0.5,{error}\n")
    files.write(os.path.join(run.folder, "by"), name)
    return "finished"
