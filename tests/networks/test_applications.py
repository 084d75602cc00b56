"""Networks of tf.keras.applications: what stands between our images and each of them."""

import numpy as np
import pytest
import tensorflow as tf

from rat_tf.networks import applications, guard, sources
from rat_tf.networks.names import applications as names

IMAGES = np.random.default_rng(0).integers(0, 256, (2, 4, 4, 3), np.uint8)


def test_every_name_is_keras_own():
    for module, some in names.MODULES.items():
        for name in some:
            assert callable(getattr(tf.keras.applications, name))
        assert callable(getattr(tf.keras.applications, module).preprocess_input)


@pytest.mark.parametrize("name", [some[0] for some in names.MODULES.values()])
def test_images_are_preprocessed_as_the_family_does_in_numpy(name):
    (module,) = (module for module, some in names.MODULES.items() if name in some)
    inputs = tf.keras.Input((4, 4, 3))
    layer = tf.keras.Model(inputs, applications.preprocessed(name, inputs))
    expected = getattr(tf.keras.applications, module).preprocess_input(IMAGES.astype(np.float32))
    # Our images are in [-1, 1].
    found = layer(IMAGES / np.float32(127.5) - 1)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5)


def test_a_network_for_grey_images():
    network = sources.build("keras:MobileNetV2", (32, 32, 1), 5, seed=1)
    grey = np.random.default_rng(1).uniform(-1, 1, (2, 32, 32, 1)).astype(np.float32)
    logits = network(grey)
    assert logits.shape == (2, 5) and not guard.is_told(network)
    backbone, head = network.layers[-2:]
    pixels = np.repeat((grey + 1) * 127.5, 3, axis=-1)
    features = backbone(tf.keras.applications.mobilenet_v2.preprocess_input(pixels))
    np.testing.assert_allclose(logits, head(features), rtol=1e-3, atol=1e-5)


def test_images_that_it_does_not_take_are_refused():
    with pytest.raises(ValueError, match="32x32 or larger, got 8x40; --image_size=32"):
        applications.build("VGG16", (8, 40, 3), 10)
    with pytest.raises(ValueError, match="1 or 3 channels, got 4; --channels=3"):
        applications.colored(tf.keras.Input((32, 32, 4)))
