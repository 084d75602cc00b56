"""Bad input gets a clear message before training."""

import numpy as np
import pytest
import tensorflow as tf

import rat_tf
from rat_tf import methods, stack, transforms
from rat_tf.methods import keras_habits
from tests.methods import foreign
from tests.methods.foreign import IMAGES, LABELS, UNLABELED, classifier, trained

layers = tf.keras.layers
LOGITS = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
PROBABILITIES = tf.keras.losses.SparseCategoricalCrossentropy()


def sequential(*parts):
    return tf.keras.Sequential([tf.keras.Input((6, 6, 3)), *parts])


class FromKeras3:
    __module__ = "keras.src.models.functional"


@pytest.mark.parametrize(
    "network, message",
    [
        (lambda: sequential(layers.Conv2D(3, 1)), r"\[batch, classes\].*got \(None, 6, 6, 3\)"),
        (lambda: sequential(layers.Flatten(), layers.Dense(1)), r"two classes or more"),
        (
            lambda: sequential(layers.Flatten(data_format="channels_first"), layers.Dense(3)),
            "channels last",
        ),
        (FromKeras3, "keras.src.models.functional.FromKeras3; models of Keras 3"),
        (
            lambda: sequential(layers.Flatten(), layers.BatchNormalization(renorm=True)),
            "renorm=False",
        ),
    ],
)
def test_models(network, message):
    with pytest.raises(ValueError, match=message):
        rat_tf.Supervised(network())


class OfAnotherKeras:
    __module__ = "keras.src" if stack.has("tf_keras") else "tf_keras.src"


class Derived(OfAnotherKeras):
    """A user's own class, whose module says nothing."""


@pytest.mark.parametrize(
    "argument, value",
    [
        ("augmentation", OfAnotherKeras()),
        ("preprocessing", OfAnotherKeras()),
        ("optimizer", OfAnotherKeras()),
        ("loss", OfAnotherKeras()),
        ("metrics", ["accuracy", OfAnotherKeras()]),
        ("weighted_metrics", {"head": [Derived()]}),
        ("callbacks", [tf.keras.callbacks.History(), Derived()]),
    ],
)
def test_objects_of_another_keras(argument, value):
    with pytest.raises(ValueError, match=f"^{argument}: .* of another Keras; make it with tf.k"):
        if argument in ("augmentation", "preprocessing"):
            rat_tf.Supervised(classifier(), **{argument: value})
        model = rat_tf.Supervised(classifier())
        if argument == "callbacks":
            model.fit(callbacks=value)
        model.compile(**{argument: value})


def test_an_averaged_network_of_another_keras():
    with pytest.raises(ValueError, match="^averaged: expected a tf.keras.Model.*FromKeras3"):
        rat_tf.Supervised(classifier(), averaged=FromKeras3())


def test_outputs_that_only_a_call_shows():
    class Maps(tf.keras.Model):
        def call(self, images, training=False):
            return images

    with pytest.raises(ValueError, match=r"\[batch, classes\].*6, 6, 3"):
        trained(rat_tf.Supervised(Maps()))


def test_a_model_without_trainable_weights():
    network = classifier()
    network.trainable = False
    with pytest.raises(ValueError, match="no trainable weights"):
        trained(rat_tf.Supervised(network))


@pytest.mark.parametrize(
    "network, loss, message",
    [
        (lambda: classifier("softmax"), LOGITS, "ends in softmax.*from_logits=False"),
        (lambda: classifier("softmax"), None, "ends in softmax.*from_logits=False"),
        (
            lambda: sequential(classifier(), layers.Softmax()),
            LOGITS,
            "ends in softmax.*from_logits=False",
        ),
        (lambda: sequential(classifier("softmax")), LOGITS, "ends in softmax"),
        (lambda: classifier("sigmoid"), PROBABILITIES, "ends in sigmoid"),
        (classifier, PROBABILITIES, "ends in linear.*from_logits=True"),
        (classifier, "categorical_crossentropy", "ends in linear.*from_logits=True"),
        (classifier, "mse", "loss: expected SparseCategoricalCrossentropy"),
        (classifier, tf.keras.losses.BinaryCrossentropy(), "loss: expected SparseCat"),
    ],
)
def test_losses(network, loss, message):
    with pytest.raises(ValueError, match=message):
        rat_tf.Supervised(network()).compile("sgd", loss)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"labels": LABELS + 1}, "labels: expected classes from 0 to 2, got 1 to 3"),
        ({"labels": LABELS - 1}, "labels: expected classes from 0 to 2, got -1 to 1"),
        ({"labels": np.eye(3)[LABELS]}, r"labels: expected classes \[batch\]"),
        ({"images": 255 * IMAGES}, r"^labelled images: .*value_range=\(-1, 1\), got"),
        ({"unlabeled": UNLABELED - 1}, r"unlabelled images: .*value_range=\(-1, 1\), got"),
        ({"unlabeled": np.full_like(UNLABELED, np.nan)}, "unlabelled images: .*nan"),
        ({"unlabeled": np.zeros((6, 3, 8, 8))}, "unlabelled images: expected channels last"),
    ],
)
def test_first_batch(changes, message):
    with pytest.raises(ValueError, match=message):
        trained(rat_tf.RAT(classifier()), foreign.batch(**changes))


def test_one_hot_labels_of_another_number_of_classes():
    loss = tf.keras.losses.CategoricalCrossentropy(from_logits=True)
    with pytest.raises(ValueError, match=r"labels: expected one-hot \[batch, 3\]"):
        trained(rat_tf.RAT(classifier()), foreign.batch(np.eye(4)[LABELS]), loss)


@pytest.mark.parametrize(
    "data, message",
    [
        (IMAGES, "expected a tf.data.Dataset .*got ndarray"),
        (
            tf.data.Dataset.from_tensors((IMAGES, LABELS)),
            "expected a tf.data.Dataset .*rat_tf.pair",
        ),
        (
            tf.data.Dataset.zip(
                (
                    tf.data.Dataset.from_tensor_slices((IMAGES, LABELS)).batch(4),
                    tf.data.Dataset.from_tensor_slices(UNLABELED).batch(4),
                )
            ),
            "drop_remainder=True",
        ),
    ],
)
def test_datasets(data, message):
    model = rat_tf.RAT(classifier())
    model.compile("sgd")
    with pytest.raises(ValueError, match=message):
        model.fit(data)


def test_labelled_images_alone_are_enough_for_the_baseline():
    pairs, alone = (rat_tf.Supervised(classifier()) for _ in range(2))
    trained(pairs)
    trained(alone, tf.data.Dataset.from_tensors((IMAGES, LABELS)))
    for left, right in zip(pairs.network.get_weights(), alone.network.get_weights()):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("value_range", [(1, 0), (0, 0), 255, (0, 1, 2)])
def test_value_ranges(value_range):
    with pytest.raises(ValueError, match="value_range: expected the smallest and the largest"):
        rat_tf.RAT(classifier(), value_range=value_range)


APART = {"separate_statistics": True}


@pytest.mark.parametrize(
    "method, options, message",
    [
        (rat_tf.RAT, {"target": "teacher"}, "ema_decay: must be > 0 with target=teacher, got 0"),
        (rat_tf.RAT, {"target": "techer"}, "target: expected one of.*did you mean 'teacher'"),
        (rat_tf.RAT, {"kl_direction": "typo"}, "kl_direction: expected one of clean_adv.*'typo'"),
        (rat_tf.RAT, APART, "entropy_multiplier: must be 0 with separate_statistics.*got 0.06"),
        (rat_tf.RAT, {"power_iterations": 0}, r"power_iterations: expected .*\[1, 1000\], got 0"),
        (rat_tf.RAT, {"power_iterations": 1.5}, "power_iterations: expected a whole number, got"),
        (rat_tf.RAT, {"adversary_share": 0.0}, r"adversary_share: expected .*\(0, 1\], got 0.0"),
        (rat_tf.RAT, {"adversary_scale": 0.3}, "adversary_scale: expected 1, 0.5 or 0.25, got 0.3"),
        (
            rat_tf.RAT,
            {"adversary_scale": 0.5, "transforms": "noise:1"},
            "adversary_scale: noise is searched at full size, and transforms=noise:1 has",
        ),
        (rat_tf.RAT, {"target": None}, "target: expected a value, got None"),
        (rat_tf.RAT, {"power_iterations": None}, "power_iterations: expected a value, got None"),
        (rat_tf.RAT, {"adversary_kind": "best"}, "adversary_kind: expected one of gradient"),
        (rat_tf.RAT, {"candidates": 8}, "candidates: not used by adversary_kind=gradient, got 8"),
        (rat_tf.RAT, {"target_temperature": 0}, "target_temperature: expected a number > 0, got 0"),
        (rat_tf.RAT, {"target_threshold": "a"}, "target_threshold: expected a number, got 'a'"),
        (rat_tf.RAT, {"xi": -0.1}, "xi: expected a number > 0, or .*'-0.1'"),
        (rat_tf.RAT, {"padding": "mirror"}, "padding: expected one of zeros, edge, got 'mirror'"),
        (rat_tf.RAT, {"transforms": ["noise:1"]}, "transforms: expected text such as"),
        (rat_tf.RAT, {"epsilon_rampup": "40%"}, "epsilon_rampup: expected a number of steps"),
        (rat_tf.RAT, {"consistency": -1}, "consistency: expected a number >= 0, got -1"),
        (rat_tf.RAT, {"consistency": np.array([0.3])}, "consistency: expected a number, got array"),
        (
            rat_tf.RAT,
            {**APART, "entropy_multiplier": tf.constant(0.5)},
            "entropy_multiplier: must be 0 with separate_statistics",
        ),
        (rat_tf.Random, {"adversary_kind": "both"}, "adversary_kind: not used by Random"),
        (rat_tf.Random, {"xi": 1e-5}, "xi: not used by Random"),
        (rat_tf.VAT, {"adversary_scale": 0.5}, "adversary_scale: not used by VAT"),
        (methods.RATMixup, {"kl_direction": "adversarial_clean"}, "kl_direction: with mixup"),
        (
            methods.RATMixup,
            {**APART, "entropy_multiplier": 0},
            "separate_statistics: not used with mixup",
        ),
        (methods.RATMixup, {"mixup_alpha": 0}, "mixup_alpha: expected a number > 0, got 0"),
        (rat_tf.MixMatch, {"sharpening": 0}, "sharpening: expected a number > 0, got 0"),
        (rat_tf.MixMatch, {"augmentations": 0}, r"augmentations: expected .*\[1, 1000\], got 0"),
        (rat_tf.PseudoLabel, {"threshold": 1}, r"threshold: expected a number in \[0, 1\), got 1"),
        (rat_tf.PiModel, {"consistency_rampup": -1}, "consistency_rampup: expected a number >= 0"),
        (rat_tf.Supervised, {"ema_decay": 1.0}, r"ema_decay: expected .*\[0, 1\), got 1.0"),
    ],
)
def test_arguments_are_checked_as_flags_are(method, options, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        method(classifier(), **options)


def test_arguments_that_go_together():
    """Of averaged weights nothing is asked where they only accompany; tensors may be any number."""
    rat_tf.RAT(classifier(), target="teacher", ema_decay=0.9)
    rat_tf.RAT(classifier(), **APART, entropy_multiplier=0, kl_direction="adversarial_clean")
    rat_tf.RAT(classifier(), consistency=tf.Variable(-1.0), target_temperature=tf.constant(0.0))
    rat_tf.RAT(classifier(), transforms=transforms.parse("noise:1"), xi="0.5eps", candidates=4)
    rat_tf.MixMatch(classifier(), ema_decay=0, mixup_alpha=None)
    methods.RATMixup(classifier(), adversary_kind="both", candidates=8)
    rat_tf.Random(classifier(), epsilon_rampup=1e3)
    rat_tf.RAT(classifier(), separate_statistics=np.bool_(True), entropy_multiplier=0)
    rat_tf.RAT(classifier(), **APART, entropy_multiplier=tf.constant(0.0))
    rat_tf.RAT(classifier(), target="teacher", ema_decay=tf.Variable(0.9))
    rat_tf.RAT(classifier(), consistency=np.array(0.3), candidates=np.array(4))
    for xi in (1e-6, "1e-6"):  # the default, which Random does not use
        rat_tf.Random(classifier(), xi=xi)


def test_the_name_of_the_flag_is_answered_with_that_of_the_argument():
    with pytest.raises(ValueError, match="adversary: expected adversary_kind='worst_of'"):
        rat_tf.RAT(classifier(), adversary="worst_of")


def test_none_is_the_default_of_the_transformations():
    for method, expected in ((rat_tf.RAT, "noise:1,affine:0.6"), (rat_tf.VAT, "noise:1")):
        assert repr(method(classifier(), transforms=None).transform) == expected


def test_a_default_that_no_option_has():
    with pytest.raises(ValueError, match="^weight: no option of Supervised; expected one of lear"):
        rat_tf.Supervised(classifier()).default("weight", 1.0)


def test_transformations():
    with pytest.raises(ValueError, match="transforms: expected noise"):
        rat_tf.VAT(classifier(), transforms="affine:0.3")
    with pytest.raises(ValueError, match="transforms: .*did you mean 'affine'"):
        rat_tf.RAT(classifier(), transforms="affin:0.3")


def test_one_line_says_what_a_late_import_costs(monkeypatch, capsys):
    monkeypatch.setattr(rat_tf, "TENSORFLOW_FIRST", True)
    monkeypatch.setattr(keras_habits._pywrap_util_port, "IsMklEnabled", lambda: False)
    for _ in range(2):
        rat_tf.Supervised(classifier())
    (line,) = capsys.readouterr().err.splitlines()
    assert "TF_ENABLE_ONEDNN_OPTS=1" in line


def test_legacy_optimizers_are_refused_and_not_taken_for_a_name(monkeypatch):
    """On Apple silicon Keras takes a legacy one for a name."""
    legacy = tf.keras.optimizers.legacy
    model = rat_tf.RAT(classifier(), transforms="noise:0.5")
    with pytest.raises(ValueError, match="optimizer: expected one of .*, got .*legacy.Adam"):
        model.compile(legacy.Adam())
    monkeypatch.setattr(tf.keras.optimizers, "get", lambda name: getattr(legacy, name)())
    model.compile("Adam")
    assert type(model.optimizer) is tf.keras.optimizers.Adam
    with pytest.raises(ValueError, match="loss_weights: not used"):
        model.compile("sgd", loss_weights=[1.0])
