"""A minimal network with batch normalisation, for smoke tests."""

from rat_tf.networks.names import base

FAMILY = base.Family(
    pattern="tiny",
    expected="tiny",
    about="tiny, a single convolution for smoke tests",
    module="rat_tf.networks.tiny",
    builder="Tiny",
)
