"""The methods, each a `keras.Model` with an objective of its own."""

from __future__ import annotations

from rat_tf import adversary, networks
from rat_tf import config as config_lib
from rat_tf.data import augment
from rat_tf.methods.base import Method
from rat_tf.methods.rat import RAT
from rat_tf.methods.supervised import Supervised

__all__ = ["RAT", "Method", "Supervised", "build"]


def build(config: config_lib.Config, num_classes: int, preprocessing) -> Method:
    """The model that a config describes, not yet compiled, behind a `preprocessing` layer."""

    def network():
        return networks.build(config.network, num_classes, config.seed, config.sync_batch_norm)

    shared = {
        "network": network(),
        "averaged": network() if config.ema_decay else None,
        "ema_decay": config.ema_decay,
        "preprocessing": preprocessing,
        "augmentation": augment.build(config),
        "seed": config.seed,
    }
    if config.method == "supervised":
        return Supervised(**shared)
    return RAT(
        **shared,
        transform=config.transform(),
        search=config.method != "random",
        xi=adversary.Xi.parse(config.xi),
        power_iterations=config.power_iterations,
        ascent=config.ascent,
        consistency=config.consistency,
        consistency_rampup=config.consistency_rampup,
        epsilon_rampup=config.epsilon_rampup,
        entropy_multiplier=config.entropy_multiplier,
        kl_direction=config.kl_direction,
    )
