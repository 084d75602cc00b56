"""The memory that a training step needs at least, from the flags, before anything is allocated.

- Weights: each has a gradient, Adam's two moments and, with --ema_decay, an average.
- Activations: the backward pass of the clean images needs the output of every convolution (or dense
  layer) of the whole batch. The passes of the search come on top, and are not counted.

Only networks whose `names` describe their size are checked.
"""

from __future__ import annotations

import tensorflow as tf

from rat_tf import config as config_lib
from rat_tf import memory
from rat_tf.networks import names

LARGEST_GPU = 300e9  # bytes; TensorFlow does not say how many a GPU has


def check(config: config_lib.Config, image_shape=None, num_classes: int = 2) -> None:
    """Refuses a step that does not fit; without the shape of the images, of the smallest ones."""
    if image_shape is None:
        size = config.image_size or 1
        image_shape = (size, size, config.channels or 1)
    advice = "use a smaller --network, --labeled_batch, --unlabeled_batch or --image_size"
    memory.check(needs(config, image_shape, num_classes), advice, _available())


def needs(config: config_lib.Config, image_shape, num_classes: int) -> dict[str, float]:
    """Bytes by what needs them; empty if the size of the network is not known."""
    family, numbers = names.parse(config.network)
    if family.size is None:
        return {}
    parameters, activations = family.size(*numbers, image_shape, num_classes)
    batch = sum(config.batch_sizes)
    copies = 4 + bool(config.ema_decay)
    found = {f"the weights of --network={config.network}": 4 * copies * parameters}
    if config.strategy != "multi_worker":  # whose machines share a batch
        pixels = float(image_shape[0] * image_shape[1] * image_shape[2])
        width = 2 if config.mixed_precision else 4
        found[f"a batch of {batch:,} images"] = batch * (width * activations + 4 * pixels)
    return found


def _available() -> float:
    gpus = len(tf.config.list_physical_devices("GPU"))
    return max(memory.of_machine(), gpus * LARGEST_GPU)
