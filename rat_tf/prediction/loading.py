"""`rat_tf.load`: the classifier in a folder of any kind."""

from __future__ import annotations

import os

from rat_tf import errors
from rat_tf.prediction import classifier


def load(path: str | os.PathLike, weights: str = "best") -> classifier.Classifier:
    """The classifier of a run folder, or of a folder of export.savedmodel.

    `weights` are those of a run: best, last, student, ema or teacher.
    """
    path = os.path.expanduser(os.fspath(path))
    try:
        if os.path.exists(os.path.join(path, "flags.cfg")):
            from rat_tf.prediction import of_run

            return of_run.OfRun(path, weights)
        from rat_tf.prediction import exported

        return exported.Exported(path)
    except errors.UserError as error:
        if not os.path.exists(path):
            raise ValueError(f"path: no such folder: {path}") from None
        text = str(error)
        for flag in ("--model_dir: ", "--run_dir: "):
            text = text.replace(flag, "path: ")
        raise ValueError(text) from None
