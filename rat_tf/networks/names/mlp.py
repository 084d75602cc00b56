"""Multi-layer perceptrons without batch norm."""

from rat_tf.networks.names import base


def size(units: int, image_shape, num_classes: int) -> tuple[int, int]:
    height, width, channels = image_shape
    inputs = height * width * channels + 1  # and a bias
    return inputs * units + (units + 1) * units + (units + 1) * num_classes, 2 * units


FAMILY = base.Family(
    pattern=r"mlp-([1-9]\d*)",
    expected="mlp-<units> such as mlp-128",
    about="mlp-<units>, two hidden layers of that many units",
    module="rat_tf.networks.mlp",
    builder="MLP",
    batch_statistics=False,
    size=size,
)
