"""Wide ResNets: wrn-28-2 is the paper's."""

from rat_tf.networks.names import base


def size(depth: int, width: int, image_shape, num_classes: int) -> tuple[int, int]:
    """Parameters, and the outputs of the convolutions; see `networks.wide_resnet`."""
    height, breadth, channels = image_shape
    parameters, activations = 9 * channels * 16, 16 * height * breadth
    channels = 16
    for group, stride in enumerate((1, 2, 2)):
        filters = 16 * width * 2**group
        height, breadth = -(-height // stride), -(-breadth // stride)
        for block in range((depth - 4) // 6):
            project = channels != filters or (block == 0 and stride != 1)
            parameters += 2 * channels + 9 * channels * filters  # batch norm, convolution
            parameters += 2 * filters + 9 * filters * filters + project * channels * filters
            activations += (2 + project) * filters * height * breadth
            channels = filters
    return parameters + 2 * channels + (channels + 1) * num_classes, activations


FAMILY = base.Family(
    pattern=r"wrn-(10|16|22|28|34|40)-([1-9]\d*)",
    expected="wrn-<depth>-<width> such as wrn-28-2",
    about="wrn-<depth>-<width>, a Wide ResNet of depth 10, 16, 22, 28, 34 or 40",
    module="rat_tf.networks.wide_resnet",
    builder="WideResNet",
    size=size,
)
