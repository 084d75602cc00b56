"""The config of a method: all that it was made of, to make it again and in files."""

import json

import numpy as np
import pytest
import tensorflow as tf

import rat_tf
from rat_tf.data import augment
from rat_tf.training import optimizers
from tests.methods.foreign import IMAGES, batch, classifier

METHODS = {  # the default λ and decay of the averaged weights
    "MeanTeacher": (8, 0.95),
    "MixMatch": (75, 0.999),
    "PiModel": (20, 0),
    "PseudoLabel": (1, 0),
    "RAT": (0.3, 0),
    "Random": (0.3, 0),
    "Supervised": (None, 0),
    "VAT": (0.3, 0),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_made_again_from_its_config(name):
    assert {*METHODS, "load", "pair"} == {*rat_tf.__all__}
    method = getattr(rat_tf, name)
    augmentation = augment.Augmentation(shift=1)
    model = method(classifier(), augmentation=augmentation, value_range=(-1, 1), seed=5)
    again = method.from_config(json.loads(json.dumps(model.get_config())))
    assert again.seed == 5 and again.augmentation == augmentation
    assert again.network.get_config() == model.network.get_config()
    again.set_weights(model.get_weights())
    for ours, theirs in zip(model.get_weights(), again.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(model(IMAGES), again(IMAGES))
    for each in (model, again):
        assert (getattr(each, "consistency", None), each.ema_decay) == METHODS[name]


class Sharp(rat_tf.RAT):
    """A user's own method, with an argument before those of rat_tf."""

    def __init__(self, sharpness, *args, ramp=5, **kwargs):
        super().__init__(*args, consistency_rampup=ramp, **kwargs)
        self.sharpness = sharpness


@pytest.mark.parametrize("method, first", [(rat_tf.RAT, ()), (rat_tf.VAT, ()), (Sharp, (2.5,))])
def test_positional_arguments_are_in_the_config(method, first):
    model = method(*first, classifier(), None, augment.Augmentation(shift=1), 7, None, 0.25, (0, 1))
    again = method.from_config(json.loads(json.dumps(model.get_config())))
    for each in (model, again):
        assert (each.seed, each.ema_decay, each.augmentation.shift) == (7, 0.25, 1)
        assert (each.value_range.low, each.value_range.high) == (0, 1)
        assert getattr(each, "sharpness", 2.5) == 2.5


def test_a_trainer_is_saved_whole_as_a_keras_file_only(tmp_path):
    model = rat_tf.VAT(classifier(), seed=5)
    path = str(tmp_path / "trainer.keras")
    model(IMAGES)
    model.save(path)
    again = tf.keras.models.load_model(path, {"VAT": rat_tf.VAT})
    assert again.seed == 5
    np.testing.assert_array_equal(model(IMAGES), again(IMAGES))
    with pytest.raises(ValueError, match="ends in .keras, got '.*trainer'; the classifier"):
        model.save(str(tmp_path / "trainer"))
    assert not (tmp_path / "trainer").exists()


@pytest.mark.parametrize("make", [lambda: "adam", lambda: optimizers.Adam(1e-3)])
def test_training_goes_on_after_it_was_saved(tmp_path, make):
    """λ, the batches' draws, Adam's moments and the metrics are those of the next step."""
    model = rat_tf.RAT(classifier(), transforms="noise:0.5", consistency_rampup=9)
    model.compile(make(), metrics=["accuracy"])
    model.fit(batch().repeat(3), verbose=0)
    path = str(tmp_path / "trainer.keras")
    model.save(path)
    again = tf.keras.models.load_model(path, {"RAT": rat_tf.RAT})
    expected, found = (each.fit(batch(), verbose=0).history for each in (model, again))
    assert found.keys() == expected.keys() and 0.01 < found["lambda"][0] < 0.3
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-3, err_msg=name)
    for ours, theirs in zip(again.get_weights(), model.get_weights()):
        # Keras does not save that batch norm is synchronized, which estimates another variance.
        np.testing.assert_allclose(ours, theirs, atol=1e-4)
