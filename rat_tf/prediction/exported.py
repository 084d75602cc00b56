"""An exported SavedModel as a classifier: needs no server and none of the training code."""

from __future__ import annotations

import os
from collections.abc import Iterable

import tensorflow as tf

from rat_tf import errors
from rat_tf.prediction import classifier

CLASS_NAMES = os.path.join("assets", "class_names.txt")


class Exported(classifier.Classifier):
    """A SavedModel of export.savedmodel: the newest version in its folder, or one version."""

    def __init__(self, folder: str):
        version = exported_version(folder)
        try:
            with open(os.path.join(version, CLASS_NAMES), encoding="utf-8") as file:
                self.class_names = tuple(file.read().split("\n")[:-1])
            loaded = tf.saved_model.load(version)
            self._signature = loaded.signatures["serving_default"]
        except (OSError, ValueError, KeyError, tf.errors.OpError) as error:
            raise errors.UserError(
                f"--model_dir: {version} cannot be read as a model of export.savedmodel: "
                f"{str(error).partition(chr(10))[0]}"
            ) from None
        self._loaded = loaded  # its variables live as long as it does
        self.image_shape = tuple(self._signature.structured_input_signature[1]["images"].shape[1:])

    def outputs(self, images, start=0, draws=0, seed=0):
        return classifier.Outputs(
            self._signature(images=tf.constant(images))["probabilities"].numpy()
        )


def exported_version(folder: str) -> str:
    """The folder of the newest version of an exported model, or that version itself."""
    if os.path.exists(os.path.join(folder, "saved_model.pb")):
        return folder
    names = os.listdir(folder) if os.path.isdir(folder) else []
    numbers: Iterable[int] = (int(name) for name in names if name.isdecimal())
    paths = (os.path.join(folder, str(number)) for number in sorted(numbers, reverse=True))
    for path in paths:
        if os.path.exists(os.path.join(path, "saved_model.pb")):
            return path
    raise errors.UserError(
        f"--model_dir: expected a folder of export.savedmodel, with <version>/saved_model.pb, "
        f"got {folder}"
    )
