"""Networks, called as `network(x, training=True, update_stats=False)`.

Classes are imported on first use, so that `names` does not import TensorFlow.
"""

import importlib

from rat_tf.networks import names

_CLASSES = {
    "BatchNorm": "batch_norm",
    "MLP": "mlp",
    "Tiny": "tiny",
    "WideResNet": "wide_resnet",
}


def __getattr__(name: str):
    if name not in _CLASSES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_CLASSES[name]}"), name)


def __dir__() -> list[str]:
    return [*_CLASSES, "build", "names"]


def build(name: str, num_classes: int, seed: int = 0, synchronized: bool = False, image_shape=None):
    """The network of that name, such as "wrn-28-2", or "keras:VGG16" for an `image_shape`."""
    try:
        family, numbers = names.parse(name)
    except ValueError as error:
        raise ValueError(f"network: {error}") from None
    if family.foreign:
        sources = importlib.import_module(f"{__name__}.sources")
        return sources.build(name, image_shape, num_classes, seed)
    builder = getattr(importlib.import_module(family.module), family.builder)
    return builder(*numbers, num_classes, seed=seed, synchronized=synchronized)
