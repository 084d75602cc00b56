"""The methods, each a `keras.Model` with an objective of its own."""

from __future__ import annotations

from rat_tf import adversary, networks
from rat_tf import config as config_lib
from rat_tf.data import augment
from rat_tf.methods.base import Method
from rat_tf.methods.mean_teacher import MeanTeacher
from rat_tf.methods.mixmatch import MixMatch
from rat_tf.methods.pi_model import PiModel
from rat_tf.methods.pseudo_label import PseudoLabel
from rat_tf.methods.rat import RAT
from rat_tf.methods.rat_mixup import RATMixup
from rat_tf.methods.supervised import Supervised

__all__ = [
    "RAT",
    "MeanTeacher",
    "Method",
    "MixMatch",
    "PiModel",
    "PseudoLabel",
    "RATMixup",
    "Supervised",
    "build",
]


def build(config: config_lib.Config, num_classes: int, preprocessing) -> Method:
    """The model that a config describes, not yet compiled, behind a `preprocessing` layer."""

    def network():
        return networks.build(config.network, num_classes, config.seed, config.sync_batch_norm)

    method, options = _of_method(config)
    return method(
        network=network(),
        averaged=network() if config.ema_decay else None,
        ema_decay=config.ema_decay,
        preprocessing=preprocessing,
        augmentation=augment.build(config),
        seed=config.seed,
        **options,
    )


def _of_method(config: config_lib.Config) -> tuple[type[Method], dict]:
    """The class of a method, and the options that it has beyond those of all methods."""
    if config.method == "supervised":
        return Supervised, {}
    shared = {
        "consistency": config.consistency,
        "consistency_rampup": config.consistency_rampup,
    }
    if config.method == "pi_model":
        return PiModel, shared
    if config.method == "mean_teacher":
        return MeanTeacher, shared
    if config.method == "pseudo_label":
        return PseudoLabel, {**shared, "threshold": config.pseudo_label_threshold}
    mixup = {"mixup_alpha": config.mixup_alpha}
    if config.method == "mixmatch":
        return MixMatch, {
            **shared,
            **(mixup if config.mixup else {"mixup_alpha": None}),
            "sharpening": config.sharpening,
            "augmentations": config.augmentations,
        }
    search = {}
    if config.method != "random":
        search = {
            "xi": adversary.Xi.parse(config.xi),
            "power_iterations": config.power_iterations,
            "ascent": config.ascent,
        }
    options = {
        **shared,
        **search,
        "transform": config.transform(),
        "search": bool(search),
        "epsilon_rampup": config.epsilon_rampup,
        "entropy_multiplier": config.entropy_multiplier,
        "kl_direction": config.kl_direction,
    }
    return (RATMixup, {**options, **mixup}) if config.mixup else (RAT, options)
