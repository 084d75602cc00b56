"""A function of the user's that builds a model."""

from rat_tf.networks.names import base

FAMILY = base.Family(
    pattern=r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)",
    expected="<module>:<function> such as my_networks:small",
    about="<module>:<function>, your function of (image_shape, classes), which returns a Keras "
    "model that gives logits",
    module="rat_tf.networks.sources",
    builder="of_function",
    foreign=True,
)
