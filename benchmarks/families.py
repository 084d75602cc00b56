"""Trains a few steps of RAT with a small member of each family of tf.keras.applications.

    python -m benchmarks.families [--steps=20] [--names=MobileNetV2,VGG16]

Every network is built without weights for 32×32 digits in colour and trained by `rat_tf.RAT` as a
foreign Keras model. The table has the size of the network, its layers of batch norm, and the cross
entropy of the labelled images over the first and the last quarter of the steps. A network whose
running statistics moved in the passes of the search would be refused.
"""

from __future__ import annotations

import dataclasses
import sys
import time

from rat_tf import fields
from rat_tf.config import cli

#: A small one of each family, and the pixels that it takes. Some of those that take [0, 255] begin
#: with their own preprocessing.
FAMILIES = {
    "VGG16": (0, 255),
    "ResNet50": (0, 255),
    "ResNet50V2": (-1, 1),
    "MobileNetV2": (-1, 1),
    "MobileNetV3Small": (0, 255),
    "EfficientNetB0": (0, 255),
    "EfficientNetV2B0": (0, 255),
    "DenseNet121": (-1, 1),
    "ConvNeXtTiny": (0, 255),
}
SIZE = 32
BATCH = 16


@dataclasses.dataclass(frozen=True)
class Flags:
    steps: int = fields.flag(20, "Training steps of each network.", fields.at_least(4))
    names: str = fields.flag(",".join(FAMILIES), "The networks, separated by commas.")


def main(steps: int, names: str) -> None:
    print("| network | parameters | batch norms | cross entropy, first → last quarter | seconds |")
    print("| --- | --- | --- | --- | --- |")
    for name in names.split(","):
        print(row(name, steps), flush=True)


def row(name: str, steps: int) -> str:
    """Trains one network."""
    import numpy as np
    import tensorflow as tf

    import rat_tf

    low, high = FAMILIES[name]
    images, labels = _digits(low, high)
    tf.keras.utils.set_random_seed(0)
    network = getattr(tf.keras.applications, name)(
        input_shape=(SIZE, SIZE, 3), weights=None, classes=10, classifier_activation=None
    )
    trainer = rat_tf.RAT(
        network, transforms="noise:0.5,affine:0.2", value_range=(low, high),
        consistency_rampup=steps, seed=0,
    )  # fmt: skip
    trainer.compile(tf.keras.optimizers.Adam(3e-4))
    labeled = tf.data.Dataset.from_tensor_slices((images[:200], labels[:200]))
    others = tf.data.Dataset.from_tensor_slices(images[200:])
    data = rat_tf.pair(*(part.batch(BATCH, drop_remainder=True) for part in (labeled, others)))
    began = time.time()
    history = trainer.fit(data, steps_per_epoch=1, epochs=steps, verbose=0).history
    seconds = time.time() - began
    quarter = steps // 4
    losses = history["cross_entropy"]
    first, last = np.mean(losses[:quarter]), np.mean(losses[-quarter:])
    norms = sum(isinstance(m, tf.keras.layers.BatchNormalization) for m in network.submodules)
    size = network.count_params() / 1e6
    return f"| {name} | {size:.1f} M | {norms} | {first:.2f} → {last:.2f} | {seconds:.0f} |"


def _digits(low: float, high: float):
    """Handwritten digits as colour images of SIZE×SIZE in this range."""
    import numpy as np
    import tensorflow as tf
    from sklearn import datasets

    found = datasets.load_digits()
    images = tf.image.resize(found.images[..., np.newaxis] / 16, [SIZE, SIZE])
    images = tf.repeat(images, 3, axis=-1) * (high - low) + low
    return images.numpy().astype("float32"), found.target


def _check(f: Flags) -> None:
    for name in f.names.split(","):
        if name not in FAMILIES:
            sys.exit(f"--names: expected some of {', '.join(FAMILIES)}, got {name!r}")
    main(f.steps, f.names)


if __name__ == "__main__":
    cli.command(_check, Flags)
