"""Multi-layer perceptrons without batch norm."""

from rat_tf.networks.names import base

FAMILY = base.Family(
    pattern=r"mlp-([1-9]\d*)",
    expected="mlp-<units> such as mlp-128",
    about="mlp-<units>, two hidden layers of that many units",
    module="rat_tf.networks.mlp",
    builder="MLP",
)
