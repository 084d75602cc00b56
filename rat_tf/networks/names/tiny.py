"""A minimal network with batch normalisation, for smoke tests."""

from rat_tf.networks.names import base


def size(image_shape, num_classes: int) -> tuple[int, int]:
    height, width, channels = image_shape
    return 9 * channels * 16 + 2 * 16 + 17 * num_classes, 16 * height * width


FAMILY = base.Family(
    pattern="tiny",
    expected="tiny",
    about="tiny, a single convolution for smoke tests",
    module="rat_tf.networks.tiny",
    builder="Tiny",
    size=size,
)
