"""What is trained: networks called as `network(x, training=True, update_stats=False)`."""

import re

from rat_tf.networks.batch_norm import BatchNorm
from rat_tf.networks.mlp import MLP
from rat_tf.networks.wide_resnet import WideResNet

__all__ = ["MLP", "BatchNorm", "WideResNet", "build"]


def build(name: str, num_classes: int, seed: int = 0, synchronized: bool = False) -> WideResNet:
    """The network called "wrn-<depth>-<width>", e.g. "wrn-28-2"."""
    match = re.fullmatch(r"wrn-(\d+)-(\d+)", name)
    if not match:
        raise ValueError(f"network: expected wrn-<depth>-<width> such as wrn-28-2, got {name!r}")
    depth, width = map(int, match.groups())
    return WideResNet(depth, width, num_classes, seed=seed, synchronized=synchronized)
