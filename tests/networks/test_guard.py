"""Foreign models: which passes move their running statistics, and that nothing else changes."""

import contextlib
import copy

import numpy as np
import pytest
import tensorflow as tf

from rat_tf.networks import guard

X = np.random.default_rng(0).normal(1, 2, (4, 5, 5, 3)).astype(np.float32)


def normalization(synchronized):
    return tf.keras.layers.BatchNormalization(synchronized=synchronized)


def functional(synchronized=False):
    """With a functional model nested in it."""
    inner_input = tf.keras.Input((5, 5, 3))
    inner = tf.keras.Model(inner_input, normalization(synchronized)(inner_input))
    inputs = tf.keras.Input((5, 5, 3))
    x = normalization(synchronized)(tf.keras.layers.Conv2D(3, 1)(inner(inputs)))
    x = tf.keras.layers.Dense(4)(tf.keras.layers.GlobalAveragePooling2D()(x))
    return tf.keras.Model(inputs, normalization(synchronized)(x))  # of rank 2: not the fused kernel


class Subclassed(tf.keras.Model):
    """With a layer in a list, and one that the first call makes."""

    def __init__(self, synchronized=False):
        super().__init__()
        self.synchronized = synchronized
        self.parts = [tf.keras.layers.Conv2D(3, 1), normalization(synchronized)]
        self.late = None

    def call(self, x, training=False):
        if self.late is None:
            self.late = normalization(self.synchronized)
        for part in self.parts:
            x = part(x, training=training) if part is self.parts[1] else part(x)
        return tf.reduce_mean(self.late(x, training=training), axis=[1, 2])


def statistics(model):
    return [v.numpy() for v in model.non_trainable_variables]


def prepared(kind, *args):
    model = kind(*args)
    model(X)
    guard.install(model)
    return model


@pytest.mark.parametrize("replicas, synchronized", [(1, False), (2, False), (2, True)])
@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("kind", [functional, Subclassed])
def test_only_the_passes_that_are_told_so_move_statistics(
    kind, synchronized, graph, replicas, two_replicas
):
    strategy = two_replicas if replicas == 2 else tf.distribute.get_strategy()
    with strategy.scope():
        model = prepared(kind, synchronized)

    def passes(update_stats):
        def both():
            # The threads of replicas interleave in the reductions of synchronised batch norm.
            return guard.call(model, X, update_stats=update_stats), guard.call(
                model, 2 * X, update_stats=False
            )

        return strategy.run(both)

    run = tf.function(passes) if graph else passes
    before = statistics(model)
    run(False)
    for old, new in zip(before, statistics(model)):
        np.testing.assert_array_equal(old, new)
    run(True)
    moved = statistics(model)
    assert len(moved) >= 4 and all(np.any(a != b) for a, b in zip(before, moved))
    # By the first pass alone, and as Keras does it.
    with strategy.scope():
        twin = kind(synchronized)
        twin(X)
        twin.set_weights(model.get_weights())
        for variable, value in zip(twin.non_trainable_variables, before):
            variable.assign(value)
    strategy.run(lambda: twin(X, training=True))
    for found, expected in zip(moved, statistics(twin)):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_guarded_model_is_plain_keras(tmp_path):
    model = functional()
    config = model.get_config()
    guard.install(model)
    add_update = model.layers[3].add_update
    guard.install(model)
    assert model.layers[3].add_update == add_update and model.get_config() == config
    expected = guard.call(model, X, update_stats=False)
    model.save(tmp_path / "model.keras")
    loaded = tf.keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(X, training=True), expected)
    assert "add_update" in vars(model.layers[3]) and "add_update" not in vars(loaded.layers[3])
    # An ordinary call updates as ever; a deep copy has its own statistics.
    other = copy.deepcopy(model.layers[3])
    before = statistics(model)
    other(X, training=True)
    np.testing.assert_array_equal(before[-1], statistics(model)[-1])
    model(X, training=True)
    assert np.any(before[-1] != statistics(model)[-1])


def test_our_networks_are_told_by_argument():
    class Told(tf.keras.Model):
        def call(self, x, training=False, update_stats=True):
            return tf.constant(2.0 * training + update_stats)

    model = Told()
    assert guard.is_told(model)
    assert [float(guard.call(model, X, update_stats=u)) for u in (False, True)] == [2, 3]


def test_renorm_is_refused():
    model = tf.keras.Sequential([tf.keras.layers.BatchNormalization(renorm=True, name="odd")])
    model.build((None, 4))
    with pytest.raises(ValueError, match="odd: .*renorm=False"):
        guard.install(model)


class Counting(tf.keras.layers.Layer):
    def build(self, input_shape):
        self.seen = self.add_weight("seen", (), initializer="zeros", trainable=False)

    def call(self, x, training=False):
        if training:
            self.seen.assign_add(1.0)
        return x


class Traced(tf.keras.Model):
    """Its function is traced for the clean pass and serves the other ones, too."""

    def __init__(self):
        super().__init__()
        self.norm = tf.keras.layers.BatchNormalization(name="norm")

    @tf.function
    def call(self, x, training=False):
        return self.norm(x, training=training)


def test_a_layer_that_still_moves_a_variable_is_named():
    model = tf.keras.Sequential([tf.keras.layers.Flatten(), Counting(name="counting")])
    with pytest.raises(ValueError, match="counting: .*seen"):
        guard.verify(model, X)
    assert model.layers[1].seen == 0
    with pytest.raises(ValueError, match="norm: .*moving_mean"):
        guard.verify(Traced(), X)


@pytest.mark.parametrize("kind, replicas", [(functional, 1), (Subclassed, 1), (Subclassed, 2)])
def test_verification_leaves_the_model_as_it_was(kind, replicas, two_replicas):
    with two_replicas.scope() if replicas == 2 else contextlib.nullcontext():
        model = kind()
        guard.verify(model, X)
    # As they are initialised: the means at zero, the variances at one.
    assert len(statistics(model)) >= 4
    assert all(set(w) in ({0.0}, {1.0}) for w in statistics(model))
