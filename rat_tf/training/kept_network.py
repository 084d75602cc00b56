"""The network of a run as its folder describes it."""

from __future__ import annotations

import contextlib
import json

import tensorflow as tf

from rat_tf import config as config_lib
from rat_tf import errors, networks
from rat_tf.networks import backbone, names, sources
from rat_tf.training import network_files, run_folder


class Network:
    """Makes the network of a config, as often as it is needed: ours by name, or a foreign one."""

    def __init__(self, config: config_lib.Config, image_shape, num_classes: int):
        self.config, self.image_shape, self.num_classes = config, tuple(image_shape), num_classes
        self.family, self.groups = names.parse(config.network)

    def make(self) -> tf.keras.Model:
        """A network with all its variables."""
        config = self.config
        if not self.family.foreign:
            return networks.build(
                config.network, self.num_classes, config.seed, config.sync_batch_norm
            )
        network = self.foreign()
        network(tf.zeros([1, *self.image_shape]))
        self.fill(network)
        with network_files.errors_of("freeze", config.freeze):
            backbone.freeze(network, config.freeze)
        return network

    def foreign(self) -> tf.keras.Model:
        """A foreign network from the user's files, or by its name."""
        config = self.config
        shape, allowed = self.image_shape, config.allow_code
        return sources.build(config.network, shape, self.num_classes, config.seed, allowed)

    def fill(self, network) -> None:
        """Gives a network that has been made its initial weights."""

    def keep(self, run: run_folder.Run) -> None:
        """Writes what the run folder keeps of a foreign network."""


class Kept(Network):
    """The network of a run folder; its weights are yet to be read."""

    def __init__(self, run, config, image_shape, num_classes: int, allow_code: bool = False):
        super().__init__(config, image_shape, num_classes)
        self._run, self._allow_code = run, allow_code

    def foreign(self) -> tf.keras.Model:
        content = self._content()
        with network_files.errors_of("run_dir"):
            if content["model"] is not None:
                text, seed = content["model"], self.config.seed
                return sources.rebuilt(text, seed, self._allow_code, self._run.network)
            if self.family.builder == "of_function":
                return self._of_module(content["sha256"])
        return super().foreign()

    def _content(self) -> dict:
        try:
            with open(self._run.network, encoding="utf-8") as file:
                content = json.load(file)
            content["model"], content["sha256"]  # noqa: B018  (that they are there)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise errors.UserError(
                f"--run_dir: {self._run.network}, which describes the network of this run, cannot "
                f"be read: {error}"
            ) from None
        return content

    def _of_module(self, hashes: dict) -> tf.keras.Model:
        """What the user's function returns, or, if that has changed, the one in the copy."""
        with contextlib.suppress(errors.UserError):
            if network_files.hashes(self.config).items() <= hashes.items():
                return super().foreign()
        path = self._run.module
        if not self._allow_code:
            raise ValueError(
                f"{self.config.network} is no longer what this run was trained with, and {path}, a "
                "copy, is code that would be run; if you trust where it comes from, use "
                "--allow_code"
            )
        with sources.seeded(self.config.seed):
            shape = self.image_shape
            return sources.of_function(*self.groups, shape, self.num_classes, path=path)
