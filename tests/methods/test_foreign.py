"""Models that know nothing of RAT train as our own networks do."""

import numpy as np
import pytest
import tensorflow as tf

from rat_tf import adversary, methods, networks, transforms
from rat_tf.data import augment, preprocess

layers = tf.keras.layers
RNG = np.random.default_rng(0)
BATCHES = [
    (
        (RNG.integers(0, 256, (4, 8, 8, 3), np.uint8), RNG.integers(0, 3, 4)),
        RNG.integers(0, 256, (6, 8, 8, 3), np.uint8),
    )
    for _ in range(2)
]


def foreign_wide_resnet(ours):
    """The functional WRN-10-1 of Keras' layers alone, with the weights of ours."""
    copies = []

    def applied(layer, our_layer, x):
        x = layer(x)
        copies.append((layer, our_layer))
        return x

    def norm(our_layer, x):
        return applied(layers.BatchNormalization(momentum=0.9, epsilon=1e-5), our_layer, x)

    def conv(our_layer, x):
        options = {"padding": our_layer.padding, "use_bias": False}
        copied = layers.Conv2D(
            our_layer.filters, our_layer.kernel_size, our_layer.strides, **options
        )
        return applied(copied, our_layer, x)

    inputs = tf.keras.Input((8, 8, 3))
    x = conv(ours.first, inputs)
    for block in ours.blocks:
        y = norm(block.norm1, x)
        if block.conv1.strides != (1, 1):
            y = layers.ZeroPadding2D(1)(y)
        y = layers.LeakyReLU(0.1)(y)
        x = y if block.activate_shortcut else x
        if block.shortcut is not None:
            x = conv(block.shortcut, x)
        y = layers.LeakyReLU(0.1)(norm(block.norm2, conv(block.conv1, y)))
        x = layers.Add()([conv(block.conv2, y), x])
    x = layers.GlobalAveragePooling2D()(layers.LeakyReLU(0.1)(norm(ours.norm, x)))
    model = tf.keras.Model(inputs, applied(layers.Dense(3), ours.linear, x))
    for layer, our_layer in copies:
        layer.set_weights(our_layer.get_weights())
    return model, copies


@pytest.mark.parametrize("method", [methods.Supervised, methods.RAT])
def test_our_network_and_its_foreign_twin_train_to_the_same_weights(method):
    ours = networks.build("wrn-10-1", 3, seed=1)
    ours(tf.zeros([1, 8, 8, 3]))
    twin, copies = foreign_wide_resnet(ours)
    assert twin.count_params() == ours.count_params()
    options = {"consistency_rampup": 0, "transforms": transforms.parse("noise:1,affine:0.3")}
    options["xi"] = adversary.Xi(0.1, relative=True)
    models = []
    for network in (ours, twin):
        augmentation = augment.Augmentation(shift=1, flip=True, granularity="image")
        extra = options if method is methods.RAT else {}
        models.append(method(network, preprocess.Scale(), augmentation, **extra))
        models[-1].compile(tf.keras.optimizers.SGD(0.1, momentum=0.9), run_eagerly=True)
    for batch in BATCHES:
        before = ours.get_weights()
        logs = [
            model.fit(tf.data.Dataset.from_tensors(batch), verbose=0).history for model in models
        ]
        assert logs[0].keys() == logs[1].keys()
        for name, value in logs[0].items():
            np.testing.assert_allclose(logs[1][name], value, rtol=1e-3, atol=1e-5, err_msg=name)
        for layer, our_layer in copies:
            for found, expected in zip(layer.get_weights(), our_layer.get_weights()):
                np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
        assert all(np.any(old != new) for old, new in zip(before, ours.get_weights()))
