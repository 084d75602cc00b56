"""A model that Keras has saved in a file."""

from rat_tf.networks.names import base

FAMILY = base.Family(
    pattern=r"(.+\.(?:keras|h5|hdf5))",
    expected="<file>.keras or .h5 of a Keras model",
    about="<file>.keras or .h5, a Keras model that gives logits, with its weights",
    module="rat_tf.networks.sources",
    builder="of_file",
    foreign=True,
)
