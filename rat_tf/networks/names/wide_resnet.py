"""Wide ResNets: wrn-28-2 is the paper's."""

from rat_tf.networks.names import base

FAMILY = base.Family(
    pattern=r"wrn-(10|16|22|28|34|40)-([1-9]\d*)",
    expected="wrn-<depth>-<width> such as wrn-28-2",
    about="wrn-<depth>-<width>, a Wide ResNet of depth 10, 16, 22, 28, 34 or 40",
    module="rat_tf.networks.wide_resnet",
    builder="WideResNet",
)
