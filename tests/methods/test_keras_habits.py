"""compile, fit and evaluate as users of Keras know them, on a model of theirs."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

import rat_tf
from rat_tf.data import augment
from tests.methods import foreign
from tests.methods.foreign import IMAGES, LABELS, UNLABELED, classifier, trained
from tests.transforms import cases

losses = tf.keras.losses
ONE_HOT = np.eye(3, dtype=np.float32)[LABELS]
TRANSFORMS = "noise:0.5,channel:0.1,affine:0.2"
OPTIONS = {"transforms": TRANSFORMS, "consistency_rampup": 0, "seed": 3}


def assert_same_weights(left, right, rtol=1e-4, atol=1e-5):
    assert len(left.get_weights()) == len(right.get_weights()) > 0
    for a, b in zip(left.get_weights(), right.get_weights()):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def log_probabilities(network, images=IMAGES):
    return special.log_softmax(np.float64(network(images, training=True)), axis=1)


@pytest.fixture(scope="module")
def plain():
    """A step with no loss given, its logs, and an evaluation after it."""
    model = rat_tf.RAT(classifier(), **OPTIONS)
    logs = trained(model)
    return model, logs, model.evaluate(IMAGES, LABELS, verbose=0, return_dict=True)


@pytest.mark.parametrize(
    "loss, labels, activation",
    [
        (losses.SparseCategoricalCrossentropy(from_logits=True), LABELS[:, None], None),
        (losses.CategoricalCrossentropy(from_logits=True), ONE_HOT, None),
        ("sparse_categorical_crossentropy", LABELS.astype(np.float32), "softmax"),
        (losses.categorical_crossentropy, ONE_HOT, "softmax"),
    ],
)
def test_labels_and_outputs_of_any_kind_make_the_same_step(loss, labels, activation, plain):
    expected, expected_logs, rest = plain
    model = rat_tf.RAT(classifier(activation), **OPTIONS)
    logs = trained(model, foreign.batch(labels), loss, metrics=["accuracy"])
    assert_same_weights(model.network, expected.network)
    for name, value in expected_logs.items():
        np.testing.assert_allclose(logs[name], value, rtol=1e-3, atol=1e-5, err_msg=name)
    outputs = model.predict(IMAGES, verbose=0)
    if activation:
        np.testing.assert_allclose(outputs.sum(axis=1), 1, rtol=1e-5)
    found = model.evaluate(IMAGES, labels, verbose=0)
    assert model.metrics_names[:2] == ["loss", "accuracy"] and len(found) == 2
    np.testing.assert_allclose(found[1], np.mean(outputs.argmax(1) == LABELS))
    np.testing.assert_allclose(found[0], rest["loss"], rtol=1e-4)
    np.testing.assert_allclose(found[1], 1 - rest["error"], rtol=1e-6)


def test_smoothed_and_weighted_labels_against_numpy():
    weights = np.array([0.5, 2.0, 0.0, 1.0])
    network = classifier()
    log_p = log_probabilities(network)
    loss = losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.3)
    targets = 0.7 * ONE_HOT + 0.1
    model = rat_tf.Supervised(classifier())
    logs = trained(model, foreign.batch(ONE_HOT, weights), loss, weighted_metrics=["accuracy"])
    expected = -np.mean(weights * np.sum(targets * log_p, axis=1))
    np.testing.assert_allclose(logs["loss"], [expected], rtol=1e-5)
    right = log_p.argmax(1) == LABELS
    np.testing.assert_allclose(logs["accuracy"], [np.sum(right * weights) / 3.5], rtol=1e-5)


def test_class_weights_are_sample_weights_by_class():
    by_class = {0: 3.0, 2: 0.25}
    models = [rat_tf.RAT(classifier(), **OPTIONS) for _ in range(2)]
    trained(models[0], class_weight=by_class)
    weights = np.array([by_class.get(label, 1.0) for label in LABELS])
    trained(models[1], foreign.batch(weights=weights))
    assert_same_weights(*models)
    # Both, and one-hot labels.
    models = [rat_tf.Supervised(classifier()) for _ in range(2)]
    loss = losses.CategoricalCrossentropy(from_logits=True)
    trained(models[0], foreign.batch(ONE_HOT, 2 * weights), loss, class_weight=by_class)
    trained(models[1], foreign.batch(weights=2 * weights**2))
    assert_same_weights(*models)


@pytest.mark.parametrize("wrong", [[1, 2], "balanced", {"a": 1.0}, {0: -1.0}, {0: "a"}])
def test_class_weights_of_another_kind_are_refused(wrong):
    with pytest.raises(ValueError, match="class_weight: expected a dictionary"):
        trained(rat_tf.Supervised(classifier()), class_weight=wrong)


def test_weights_of_classes_that_the_model_lacks_are_refused():
    count = classifier().output_shape[-1]
    with pytest.raises(ValueError, match=f"classes from 0 to {count - 1}, got {count}"):
        trained(rat_tf.Supervised(classifier()), class_weight={0: 1.0, count: 2.0})


def test_mixed_labels_have_no_weights():
    model = rat_tf.MixMatch(classifier())
    with pytest.raises(ValueError, match="MixMatch mixes labels"):
        trained(model, foreign.batch(weights=np.ones(4)))


def test_losses_of_the_model_count_once_from_the_clean_pass():
    model = rat_tf.RAT(
        classifier(kernel_regularizer=tf.keras.regularizers.L2(0.1), activity_regularizer="l2"),
        **OPTIONS,
    )
    both = np.concatenate([IMAGES, UNLABELED])
    convolution = model.network.layers[1]
    activity = 0.01 * np.sum(np.float64(convolution(both)) ** 2) / len(both)
    expected = 0.1 * np.sum(np.float64(convolution.kernel) ** 2) + activity
    logs = trained(model)
    ours = logs["cross_entropy"][0] + 0.3 * logs["kl"][0] + 0.06 * logs["entropy"][0]
    np.testing.assert_allclose(logs["loss"][0] - ours, expected, rtol=1e-4)


def test_epsilon_means_the_same_in_any_value_range():
    models = [
        rat_tf.RAT(classifier(), **OPTIONS),
        rat_tf.RAT(
            classifier(front=[tf.keras.layers.Rescaling(1 / 127.5, -1)]),
            value_range=(0, 255),
            **OPTIONS,
        ),
    ]
    noisy = augment.Augmentation(shift=1, noise=0.2)
    for model in models:
        model.augmentation = noisy
    trained(models[0])
    images, unlabeled = (127.5 * (x + 1) for x in (IMAGES, UNLABELED))
    trained(models[1], foreign.batch(images=images, unlabeled=unlabeled))
    assert_same_weights(*(model.network for model in models), rtol=1e-3, atol=1e-4)
    moved = [np.float64(m.perturb(x)) for m, x in zip(models, (IMAGES, images))]
    np.testing.assert_allclose(moved[1], 127.5 * (moved[0] + 1), rtol=1e-3, atol=0.05)


@pytest.mark.parametrize("method", [rat_tf.VAT, rat_tf.Random])
def test_perturbed_images_are_epsilon_away_in_their_own_range(method):
    model = method(classifier(), transforms="noise:2", value_range=(0, 255))
    images = np.random.default_rng(1).integers(0, 256, (4, 6, 6, 3), np.uint8)
    moved = model.perturb(images)
    assert moved.dtype == tf.float32
    distance = np.sqrt(np.sum((np.float64(moved) - images) ** 2, axis=(1, 2, 3)))
    np.testing.assert_allclose(distance, 2 * 127.5, rtol=1e-4)


def test_the_search_finds_more_than_chance():
    network = classifier()
    kl = []
    for method in (rat_tf.RAT, rat_tf.Random):
        moved = method(network, transforms="noise:0.5").perturb(UNLABELED)
        log_p, log_q = (special.log_softmax(np.float64(network(x)), 1) for x in (UNLABELED, moved))
        kl.append(np.mean(np.sum(np.exp(log_p) * (log_p - log_q), axis=1)))
    assert kl[0] > 2 * kl[1] > 0


def test_xi_is_large_where_passes_see_the_same_pixels():
    def xi(network, **options):
        return str(rat_tf.RAT(network, **options).searching.xi)

    assert xi(classifier()) == "0.1eps"
    assert xi(classifier(front=[tf.keras.layers.Dropout(0.0)])) == "0.1eps"
    assert xi(classifier(front=[tf.keras.layers.Dropout(0.1)])) == "1e-6"
    assert xi(classifier(), augmentation=augment.Augmentation(shift=1)) == "1e-6"
    assert xi(classifier(), xi=1e-3) == "0.001" and xi(classifier(), xi="0.5eps") == "0.5eps"


def test_a_layer_of_keras_augments_in_the_models_range():
    class Seen(tf.keras.layers.Layer):
        def call(self, images, training=False):
            seen.append((float(tf.reduce_max(images)), training))
            return images

    seen = []
    model = rat_tf.PiModel(classifier(), value_range=(0, 10), augmentation=Seen())
    trained(model, foreign.batch(images=5 * (IMAGES + 1), unlabeled=5 * (UNLABELED + 1)))
    assert len(seen) == 2 and all(5 < high <= 10 and training for high, training in seen)


def test_standard_callbacks(tmp_path):
    model = rat_tf.Supervised(classifier())
    keras = tf.keras.callbacks
    best = str(tmp_path / "best.weights.h5")
    stop = keras.EarlyStopping("val_accuracy", patience=0, restore_best_weights=True)
    saved = keras.ModelCheckpoint(
        best, "val_accuracy", mode="max", save_best_only=True, save_weights_only=True
    )
    others = [keras.BackupAndRestore(str(tmp_path / "backup")), keras.TensorBoard(str(tmp_path))]
    model.compile(
        tf.keras.optimizers.SGD(0.0),
        losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        run_eagerly=True,
    )
    logs = model.fit(
        foreign.batch().repeat(), steps_per_epoch=1, epochs=5, verbose=0,
        validation_data=(IMAGES, LABELS), callbacks=[stop, saved, *others],
    ).history  # fmt: skip
    assert len(logs["val_accuracy"]) == 2 and set(logs) >= {"loss", "accuracy", "val_loss"}
    again = rat_tf.Supervised.from_config(model.get_config())
    again.load_weights(best)
    assert_same_weights(model.network, again.network)


def test_two_replicas_make_the_step_of_one(two_replicas):
    found = []
    labeled, unlabeled = map(tf.data.Dataset.from_tensors, ((IMAGES, LABELS), UNLABELED))
    loss = losses.SparseCategoricalCrossentropy(from_logits=True)
    for strategy in (two_replicas, tf.distribute.get_strategy()):
        with strategy.scope():
            model = rat_tf.Random(classifier(), **{**OPTIONS, "transforms": "noise:0.5"})
            options = {"eager": strategy is not two_replicas, "metrics": ["accuracy"]}
            data = rat_tf.pair(labeled, unlabeled)
            logs = trained(model, data, loss, steps_per_epoch=1, **options)
        found.append((logs, model.network))
    for name, value in found[1][0].items():
        np.testing.assert_allclose(found[0][0][name], value, rtol=1e-3, atol=1e-5, err_msg=name)
    assert_same_weights(found[0][1], found[1][1], atol=1e-4)


def test_mixed_precision():
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        model = rat_tf.RAT(classifier(), **OPTIONS)
        logs = trained(model)
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")
    expected = rat_tf.RAT(classifier(), **OPTIONS)
    np.testing.assert_allclose(logs["loss"], trained(expected)["loss"], rtol=0.02)
    assert isinstance(model.optimizer, tf.keras.mixed_precision.LossScaleOptimizer)
    assert_same_weights(model.network, expected.network, rtol=0.05, atol=0.02)


def test_warps_that_xla_can_compile():
    model = rat_tf.RAT(classifier(), transforms="noise:1,affine:0.2")
    model.compile("sgd")
    assert model.transform.transforms[1].sampler == cases.SAMPLERS[0]
    model.compile("sgd", jit_compile=True)
    assert model.transform.transforms[1].sampler == "gather"


def test_predictions_of_a_list():
    method = rat_tf.Supervised(classifier())
    np.testing.assert_allclose(method(IMAGES.tolist()), method(IMAGES), rtol=1e-5)


def test_images_of_a_much_smaller_range_are_refused():
    """Images from 0 to 1 for a model of images from 0 to 255 would be black."""
    model = rat_tf.RAT(classifier(), transforms="noise:0.5", value_range=(0, 255))
    images = (IMAGES + 1) / 2
    with pytest.raises(ValueError, match="labelled images: .* a hundredth of value_range=.0, 255"):
        trained(model, foreign.batch(images=images, unlabeled=UNLABELED + 1))
    dark = np.full_like(IMAGES, 3.0)  # no range at all says nothing
    trained(model, foreign.batch(images=dark, unlabeled=(UNLABELED + 1) * 100))
