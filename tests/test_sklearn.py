"""The scikit-learn estimator: on real digits, under scikit-learn's tools and its own checks."""

import pickle

import numpy as np
import pytest
import tensorflow as tf
from sklearn import base, datasets, linear_model, model_selection
from sklearn.utils import estimator_checks

from rat_tf import methods, networks
from rat_tf.networks import traced
from rat_tf.sklearn import RATClassifier

X, Y = datasets.load_digits(return_X_y=True)
SHAPE = (8, 8, 1)
QUICK = {"method": "supervised", "network": "mlp-8", "random_state": 0}
EXCUSED = {"check_classifiers_classes": "its label -1 means 'no label' here"}
#: Those that the quick suite runs; the others fit more models to see the same of them.
CHECKED = (
    "check_no_attributes_set_in_init",
    "check_do_not_raise_errors_in_init_or_set_param",
    "check_estimators_unfitted",
    "check_estimators_nan_inf",
    "check_readonly_memmap_input",
    "check_classifiers_one_label",
    "check_dict_unchanged",
    "check_methods_subset_invariance",
    "check_fit_idempotent",
    "check_n_features_in",
)


@pytest.fixture(scope="module")
def few():
    """Training digits with five labels for each class, and others to test on."""
    labels = Y.copy()
    for digit in range(10):
        labels[np.flatnonzero(Y == digit)[5:]] = -1
    return X[:1400], labels[:1400], X[1400:], Y[1400:]


@pytest.fixture(scope="module")
def trained(few):
    return RATClassifier(image_shape=SHAPE, iterations=250, random_state=0).fit(*few[:2])


def test_unlabelled_images_help(few, trained):
    images, labels, others, answers = few
    known = labels != -1
    alone = linear_model.LogisticRegression(max_iter=1000).fit(images[known], labels[known])
    assert trained.score(others, answers) > alone.score(others, answers) + 0.05
    assert set(trained.history_) >= {"loss", "kl"} and len(trained.history_["loss"]) == 20


def test_probabilities_are_those_of_the_classes_and_survive_pickling(few, trained):
    others = few[2]
    found = trained.predict_proba(others)
    assert found.shape == (len(others), 10)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(trained.predict(others), trained.classes_[found.argmax(axis=1)])
    copy = pickle.loads(pickle.dumps(trained))
    np.testing.assert_array_equal(copy.predict_proba(others), found)


def test_images_and_rows_with_their_shape_are_the_same(few):
    images, labels, others, _ = few
    same = RATClassifier(**QUICK, iterations=5, image_shape=SHAPE).fit(images, labels)
    other = base.clone(same).set_params(image_shape=None).fit(images.reshape(-1, *SHAPE), labels)
    np.testing.assert_array_equal(
        other.predict_proba(others.reshape(-1, *SHAPE)), same.predict_proba(others)
    )


def test_labels_may_be_strings_with_minus_one_among_them():
    names = np.array([f"digit {label}" for label in Y], object)
    labels = names.copy()
    labels[50:] = -1
    model = RATClassifier(**QUICK, iterations=300).fit(X, labels)
    assert list(model.classes_) == [f"digit {label}" for label in range(10)]
    assert model.score(X[:50], names[:50]) > 0.9
    # Rows without a label are not counted as mistakes.
    assert model.score(X, labels) == model.score(X[:50], names[:50])


def test_a_network_of_ones_own_and_scikit_learns_searches():
    def network(image_shape, classes):
        tf.keras.utils.set_random_seed(0)
        layers = [tf.keras.layers.Flatten(), tf.keras.layers.Dense(classes)]
        return tf.keras.Sequential([tf.keras.Input(image_shape), *layers])

    model = RATClassifier(**{**QUICK, "network": network})
    grid = {"iterations": [1, 60]}
    search = model_selection.GridSearchCV(model, grid, cv=2).fit(X[:200], Y[:200])
    assert search.best_params_ == {"iterations": 60}


@pytest.mark.slow
def test_cross_validation_of_few_labels(few):
    images, labels = few[:2]
    model = RATClassifier(image_shape=SHAPE, iterations=250, random_state=0)
    assert model_selection.cross_val_score(model, images, labels, cv=3).mean() > 0.7


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"method": "rats"}, "method: expected one of rat, "),
        ({"image_shape": (8, 9, 1)}, "image_shape: expected .* 64 features of X, got"),
        ({"transforms": "affine:0.3"}, "transforms: affine needs images, got rows"),
        ({"transforms": "blur:1", "image_shape": SHAPE}, "transforms: .*blur"),
        ({"value_range": (0, 1), "image_shape": SHAPE}, "value_range: .* from 0 to 16"),
        ({"consistency": -1}, "consistency: expected a number >= 0"),
        ({"method_options": {"threshold": 1}}, "threshold is not an option of rat"),
        ({"method_options": {"candidates": 9}}, "candidates: not used by adversary=gradient, got"),
        ({"method_options": {"epsilon_rampup": "9%"}}, "epsilon_rampup: expected a number of st"),
        ({"method_options": {"ascent": 1.5}}, "ascent: expected one of paper, steepest, got 1.5"),
        ({"iterations": 0}, "iterations: expected a number > 0, got 0"),
        ({"labeled_batch": -1}, "labeled_batch: expected a number > 0, got -1"),
        ({"iterations": 2.5}, "iterations: expected a whole number, got 2.5"),
        ({"iterations": None}, "iterations: expected a whole number, got None"),
        ({"learning_rate": "a"}, "learning_rate: expected a number, got 'a'"),
        ({"ema_decay": 1.5}, r"ema_decay: expected a number in \[0, 1\), got 1.5"),
        ({"method": ["rat"]}, "method: expected one of rat, "),
        ({"method_options": "xi"}, "method_options: expected a dictionary"),
        ({"transforms": 3}, "transforms: expected text"),
        ({"transforms": ""}, "transforms: expected <name>:<epsilon>"),
        ({"value_range": 3}, r"value_range: expected \(low, high\), got 3"),
        ({"value_range": (1, 2, 3)}, r"value_range: expected \(low, high\), got"),
        ({"image_shape": 8}, r"image_shape: expected \(height, width, channels\), got 8"),
        ({"image_shape": "abc"}, "image_shape: expected"),
        ({"network": 3}, "network: expected a name or a function"),
        ({"network": "keras:MobileNet9"}, "network: expected keras:<name>"),
        ({"network": "no_such_module:f"}, "network: no_such_module cannot be used"),
        ({"network": lambda shape, classes: None}, "network: expected a tf.keras.Model"),
        ({"network": lambda shape, classes: networks.build("mlp-4", 9)}, "one per class, got"),
    ],
)
def test_mistakes_are_named_before_training(arguments, words):
    with pytest.raises(ValueError, match=words):
        RATClassifier(**arguments).fit(X, Y)


def _checks():
    model = RATClassifier(iterations=150, random_state=0)
    found = estimator_checks.estimator_checks_generator(
        model, expected_failed_checks=EXCUSED, mark="skip"
    )
    for estimator, check in found:
        name = check.func.__name__ if hasattr(check, "func") else check.__name__
        quick = name in CHECKED
        estimator = base.clone(estimator)  # all of them share one
        if quick:
            estimator.set_params(**QUICK, iterations=20)
        yield pytest.param(estimator, check, id=name, marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize("estimator, check", _checks())
def test_it_is_an_estimator_to_scikit_learn(estimator, check):
    check(estimator)


def test_all_steps_are_trained_and_nothing_is_kept_of_their_graphs(monkeypatch):
    """Also where the steps are no multiple of the values in `history_`."""
    steps = []
    step = methods.RAT.train_step
    monkeypatch.setattr(
        methods.RAT, "train_step", lambda self, data: steps.append(self) or step(self, data)
    )
    images = np.random.default_rng(0).integers(0, 255, [20, 16, 16, 1]).astype("uint8")
    labels = np.r_[np.arange(8) % 2, np.full(12, -1)]
    options = {"labeled_batch": 2, "unlabeled_batch": 2, "random_state": 0}
    before = traced.names()
    for count, values in ((23, 12), (1, 1)):
        fitted = RATClassifier(network="wrn-10-1", iterations=count, **options).fit(images, labels)
        assert int(steps[-1].optimizer.iterations) == count
        assert len(fitted.history_["loss"]) == values
        fitted.predict(images)
    assert traced.names() == before
