"""The network of a run: ours by name; others with what the run folder keeps of them."""

from __future__ import annotations

import contextlib
import json
import os

import tensorflow as tf

from rat_tf import config as config_lib
from rat_tf import errors, files, networks
from rat_tf.methods import checks
from rat_tf.networks import applications, backbone, copies, model_files, names, sources
from rat_tf.training import network_files, run_folder


class Source:
    """Makes the network of a config, as often as it is needed, with the same initial weights.

    A foreign network is made once from the user's files. From then on Keras' description of it
    serves, which a run folder keeps: what resumes, evaluates or exports the run is the network that
    was trained, whatever became of the files. Networks of tf.keras.applications are described by
    their names. A function that returns layers of the user's own is called again; the run folder
    keeps a copy of its module.
    """

    def __init__(self, config: config_lib.Config, image_shape, num_classes: int):
        self.config, self.image_shape, self.num_classes = config, tuple(image_shape), num_classes
        self.family, self._groups = names.parse(config.network)
        self._first = self._described = None
        if self.family.foreign:
            self._load()

    @property
    def _applied(self) -> bool:
        """Whether it is a network of tf.keras.applications."""
        return self.family.builder == "build"

    def make(self) -> tf.keras.Model:
        """A network with the initial weights."""
        if not self.family.foreign:
            config = self.config
            return networks.build(
                config.network, self.num_classes, config.seed, config.sync_batch_norm
            )
        if self._described is not None:
            network = sources.rebuilt(self._described, self.config.seed, allow_code=True)
        else:
            network = self._build()
        return self._completed(network)

    def keep(self, run: run_folder.Run) -> None:
        """Writes what the run folder keeps of a foreign network."""
        if not self.family.foreign:
            return
        content = {
            "network": self.config.network,
            "sha256": network_files.hashes(self.config),
            "model": self._described,
        }
        files.write(run.network, json.dumps(content, indent=2) + "\n")
        if self._described is None and self.family.builder == "of_function":
            with open(network_files.module_file(self._groups[0]), encoding="utf-8") as file:
                files.write(run.module, file.read())

    def _load(self) -> None:
        """The network from the user's files, checked, with its initial weights."""
        with network_files.errors_of("network", self.config.network):
            if self._applied:
                applications.check(self.image_shape)
                if not self.config.pretrained:
                    return
            first = self._build()
            _check(first, self.image_shape, self.num_classes)
        if self.config.pretrained:
            with network_files.errors_of("pretrained"):
                self._pretrain(first)
        if not self._applied:
            self._described = sources.description(first)
            if self.family.builder == "of_function" and self._described is not None:
                code = model_files.code_in(json.loads(self._described))
                if any(True for _ in code):
                    self._described = None
        self._first = first

    def _build(self) -> tf.keras.Model:
        config = self.config
        shape, allowed = self.image_shape, config.allow_code
        return sources.build(config.network, shape, self.num_classes, config.seed, allowed)

    def _pretrain(self, network) -> None:
        path = os.path.expanduser(self.config.pretrained)
        if network_files.is_run(path):
            from rat_tf.training import weights  # which needs this module

            trained = weights.load(run_folder.Run(path), "best", self.config.allow_code)
            found = backbone.of_model(trained.network)
        else:
            found = backbone.read(path, self.config.allow_code)
        backbone.assign(network, found, path)

    def _completed(self, network) -> tf.keras.Model:
        """With its variables, their initial values, and some of them frozen."""
        network(tf.zeros([1, *self.image_shape]))
        if self._first is not None:
            copies.assign(network, self._first)
        with network_files.errors_of("freeze", self.config.freeze):
            backbone.freeze(network, self.config.freeze)
        return network


class Kept(Source):
    """The network as the folder of a run describes it; its weights are yet to be read."""

    def __init__(self, run, config, image_shape, num_classes: int, allow_code: bool = False):
        self._run, self._allow_code = run, allow_code
        super().__init__(config, image_shape, num_classes)

    def _load(self) -> None:
        self._described = self._content()["model"]

    def keep(self, run: run_folder.Run) -> None:
        """It is kept already."""

    def _content(self) -> dict:
        try:
            with open(self._run.network, encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError) as error:
            raise errors.UserError(
                f"--run_dir: {self._run.network}, which describes the network of this run, cannot "
                f"be read: {error}"
            ) from None

    def make(self) -> tf.keras.Model:
        if not self.family.foreign:
            return super().make()
        with network_files.errors_of("run_dir"):
            if self._described is not None:
                text, seed = self._described, self.config.seed
                network = sources.rebuilt(text, seed, self._allow_code, self._run.network)
            elif self._applied:
                network = self._build()
            else:
                network = self._of_module()
        return self._completed(network)

    def _of_module(self) -> tf.keras.Model:
        """What the user's function returns, or, if that has changed, the one in the copy."""
        kept = self._content()["sha256"]
        with contextlib.suppress(errors.UserError):
            if network_files.hashes(self.config).items() <= kept.items():
                return self._build()
        path = self._run.module
        if not self._allow_code:
            raise ValueError(
                f"{self.config.network} is no longer what this run was trained with, and {path}, a "
                "copy, is code that would be run; if you trust where it comes from, use "
                "--allow_code"
            )
        with sources.seeded(self.config.seed):
            shape = self.image_shape
            return sources.of_function(*self._groups, shape, self.num_classes, path=path)


def _check(network, image_shape, num_classes: int) -> None:
    """Refuses what is not a classifier of these images that gives logits."""
    checks.model(network)
    try:
        checks.activation(network, from_logits=True)
    except ValueError:
        raise ValueError(
            "its last layer gives probabilities; expected logits, without the last activation"
        ) from None
    try:
        outputs = network(tf.zeros([1, *image_shape]), training=False)
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"it does not take images of {'x'.join(map(str, image_shape))}: {reason}; "
            "--image_size and --channels change them"
        ) from error
    shape = getattr(outputs, "shape", None)
    if shape is None or tuple(shape) != (1, num_classes):
        found = type(outputs).__name__ if shape is None else f"outputs [batch, {shape[-1]}]"
        raise ValueError(f"expected logits [batch, {num_classes}], one per class, got {found}")
    if not network.trainable_variables:
        raise ValueError("it has no weights to train")
