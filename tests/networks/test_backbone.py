"""Pretrained weights for a backbone, and what of it is trained."""

import h5py
import numpy as np
import pytest
import tensorflow as tf

from rat_tf.networks import backbone, copies, guard
from tests.networks import foreign

layers = tf.keras.layers
SHAPE = (8, 8, 3)
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGES = np.random.default_rng(0).uniform(0, 255, (4, *SHAPE)).astype(np.float32)


def features(model):
    """What the head sees."""
    return tf.keras.Model(model.inputs, model.layers[-1].input)(IMAGES)


def saved(model, folder, kind):
    path = str(folder / kind)
    model.save_weights(path) if "weights" in kind else model.save(path)
    return path


@pytest.mark.parametrize("kind", ["model.keras", "model.h5", "only_weights.h5"])
def test_the_backbone_gets_the_weights_and_the_head_keeps_its_own(tmp_path, kind):
    source, network = foreign.small(SHAPE, 7), foreign.small(SHAPE, 4)
    source.layers[1].set_weights([v + 0.5 for v in source.layers[1].get_weights()])
    head = network.layers[-1].get_weights()
    path = saved(source, tmp_path, kind)
    backbone.assign(network, backbone.read(path), path)
    np.testing.assert_array_equal(features(network), features(source))
    np.testing.assert_array_equal(head[0], network.layers[-1].get_weights()[0])


def test_a_backbone_inside_another_model(tmp_path):
    """As users have it, frozen or not: the order of a model's weights depends on that."""
    inner = foreign.small(SHAPE, 7)
    inputs = tf.keras.Input(SHAPE)
    outer = tf.keras.Model(inputs, layers.Dense(3)(inner(inputs)))
    inner.layers[0].trainable = False
    path = saved(outer, tmp_path, "outer.keras")
    network = foreign.small(SHAPE, 4)
    backbone.assign(network, backbone.read(path), path)
    np.testing.assert_array_equal(features(network), features(inner))


def test_what_does_not_fit_is_named(tmp_path):
    network = foreign.small(SHAPE, 4)
    wide = foreign.small((8, 8, 1), 4)
    with pytest.raises(ValueError, match=r"w.h5 does not fit .*: layer 1 .*\(3, 3, 3, 4\) in the"):
        backbone.assign(network, backbone.of_model(wide), "w.h5")
    short = tf.keras.Sequential(network.layers[:1])
    with pytest.raises(ValueError, match="w.h5 has 1 layers with weights and .* 2; the first"):
        backbone.assign(network, backbone.of_model(short), "w.h5")
    network.save_weights(tmp_path / "new.weights.h5")
    with pytest.raises(ValueError, match="no list of its layers"):
        backbone.read(str(tmp_path / "new.weights.h5"))


def normalized(imagenet):
    """The entry of Keras' EfficientNets, as it is with weights="imagenet" and without."""
    inputs = tf.keras.Input(SHAPE)
    x = layers.Normalization()(layers.Rescaling(1 / 255)(inputs))
    if imagenet:
        x = layers.Rescaling([1 / np.sqrt(std) for std in backbone.IMAGENET_STD])(x)
    x = layers.GlobalAveragePooling2D()(layers.Conv2D(2, 3)(x))
    return tf.keras.Model(inputs, layers.Dense(4)(x))


@pytest.mark.parametrize("kind", ["model.keras", "only_weights.h5"])
def test_efficientnets_of_imagenet_divide_once_more(tmp_path, kind):
    source, network = normalized(imagenet=True), normalized(imagenet=False)
    statistics = [IMAGENET_MEAN, np.square(backbone.IMAGENET_STD), np.int64(0)]
    source.layers[2].set_weights([np.reshape(v, w.shape) for v, w in
                                  zip(statistics, source.layers[2].weights)])  # fmt: skip
    path = saved(source, tmp_path, kind)
    backbone.assign(network, backbone.read(path), path)
    np.testing.assert_allclose(features(network), features(source), rtol=1e-4, atol=1e-5)
    # One that was trained here, without the division, is taken as it is.
    path = saved(normalized(imagenet=False), tmp_path, kind)
    assert backbone.read(path).rescaled is None


@pytest.mark.parametrize("what, trained", [("none", 5), ("batch_norm", 3), ("backbone", 2)])
def test_frozen_weights_and_statistics_stay(what, trained):
    model = foreign.small(SHAPE, 4)
    backbone.freeze(model, what)
    assert len(model.trainable_variables) == trained
    before = model.layers[1].get_weights()
    guard.verify(model, IMAGES)
    guard.call(model, IMAGES, training=True, update_stats=True)
    moved = [np.any(a != b) for a, b in zip(before, model.layers[1].get_weights())]
    assert moved == [False, False, *[what == "none"] * 2]
    plain = tf.keras.Sequential([layers.Input(SHAPE), layers.Flatten(), layers.Dense(2)])
    if what != "none":
        with pytest.raises(ValueError, match=f"--freeze={what}: .* nothing of that kind"):
            backbone.freeze(plain, what)


def test_batch_norm_inside_other_layers_is_frozen_too():
    block = foreign.Block("dense", "block")
    inner = foreign.Block("batch_norm", "dense")
    nested = tf.keras.Sequential([layers.Input((4,)), inner])
    model = tf.keras.Sequential([layers.Input((4,)), block, nested, layers.Dense(2)])
    backbone.freeze(model, "batch_norm")
    frozen = [layer for layer in model.submodules if not getattr(layer, "trainable", True)]
    assert {id(layer) for layer in frozen} == {id(block.b.b), id(inner.a)}
    before = [layer.get_weights() for layer in frozen]
    guard.call(model, IMAGES[:, 0, 0, :1] * np.ones(4, np.float32), update_stats=True)
    for layer, values in zip(frozen, before):
        for old, new in zip(values, layer.get_weights()):
            np.testing.assert_array_equal(old, new)


def test_weights_are_copied_whatever_is_frozen():
    one, two = foreign.small(SHAPE, 4), foreign.small(SHAPE, 4)
    backbone.freeze(two, "backbone")
    copies.assign(two, one)
    np.testing.assert_array_equal(one(IMAGES), two(IMAGES))


@pytest.mark.parametrize("damage", ["weight_names", "group"])
def test_a_damaged_file_of_weights_is_said(tmp_path, damage):
    with h5py.File(tmp_path / "w.h5", "w") as file:
        file.attrs["layer_names"] = [b"conv"]
        if damage == "weight_names":
            file.create_group("conv")
    with pytest.raises(ValueError, match="w.h5 is damaged, or no file of weights"):
        backbone.read(str(tmp_path / "w.h5"))
