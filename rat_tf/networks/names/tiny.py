"""The smallest network that has all that a step needs."""

from rat_tf.networks.names import base

FAMILY = base.Family(
    pattern="tiny",
    expected="tiny",
    about="tiny, a single convolution for smoke tests",
    module="rat_tf.networks.tiny",
    builder="Tiny",
)
