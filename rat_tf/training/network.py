"""The network that a run starts from: ours by name; others from the user's files."""

from __future__ import annotations

import json

import tensorflow as tf

from rat_tf import config as config_lib
from rat_tf.methods import checks
from rat_tf.networks import applications, backbone, copies, model_files, sources
from rat_tf.storage import files
from rat_tf.training import kept_network, network_files, run_folder, weights


class Source(kept_network.Network):
    """Makes networks with the same initial weights.

    A foreign network is made once from the user's files. From then on Keras' description of it
    serves, which a run folder keeps: what resumes, evaluates or exports the run is the network that
    was trained, whatever became of the files. Networks of tf.keras.applications are described by
    their names. A function that returns layers of the user's own is called again; the run folder
    keeps a copy of its module.
    """

    def __init__(self, config: config_lib.Config, image_shape, num_classes: int):
        super().__init__(config, image_shape, num_classes)
        self._first = self._described = None
        if self.family.foreign:
            self._load()

    def foreign(self) -> tf.keras.Model:
        if self._described is None:
            return super().foreign()
        return sources.rebuilt(self._described, self.config.seed, allow_code=True)

    def fill(self, network) -> None:
        if self._first is not None:
            copies.assign(network, self._first)

    def keep(self, run: run_folder.Run) -> None:
        if not self.family.foreign:
            return
        content = {
            "network": self.config.network,
            "sha256": network_files.hashes(self.config),
            "model": self._described,
        }
        files.write(run.network, json.dumps(content, indent=2) + "\n")
        if self._described is None and self.family.builder == "of_function":
            with open(network_files.module_file(self.groups[0]), encoding="utf-8") as file:
                files.write(run.module, file.read())

    def _load(self) -> None:
        """The network from the user's files, checked, with its initial weights."""
        applied = self.family.builder == "build"  # of tf.keras.applications
        with network_files.errors_of("network", self.config.network):
            if applied:
                applications.check(self.image_shape)
                if not self.config.pretrained:
                    return
            first = super().foreign()
            _check(first, self.image_shape, self.num_classes)
        if self.config.pretrained:
            with network_files.errors_of("pretrained"):
                self._pretrain(first)
        if not applied:
            self._described = sources.description(first)
            code = model_files.code_in(json.loads(self._described or "{}"))
            if self.family.builder == "of_function" and any(True for _ in code):
                self._described = None  # a copy of the module has that code, and more of it
        self._first = first

    def _pretrain(self, network) -> None:
        path = self.config.pretrained
        if network_files.is_run(path):
            trained = weights.load(run_folder.Run(path), "best", self.config.allow_code)
            found = backbone.of_model(trained.network)
        else:
            found = backbone.read(path, self.config.allow_code)
        backbone.assign(network, found, path)


def _check(network, image_shape, num_classes: int) -> None:
    """Refuses what is not a classifier of these images that gives logits."""
    checks.model(network)
    try:
        outputs = network(tf.zeros([1, *image_shape]), training=False)
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"it does not take images of {'x'.join(map(str, image_shape))}: {reason}; "
            "--image_size and --channels change them"
        ) from error
    try:
        checks.activation(network, from_logits=True)
    except ValueError:
        raise ValueError(
            "its last layer gives probabilities; expected logits, without the last activation"
        ) from None
    shape = getattr(outputs, "shape", None)
    if shape is None or tuple(shape) != (1, num_classes):
        found = type(outputs).__name__ if shape is None else f"outputs [batch, {shape[-1]}]"
        raise ValueError(f"expected logits [batch, {num_classes}], one per class, got {found}")
    if not network.trainable_variables:
        raise ValueError("it has no weights to train")
