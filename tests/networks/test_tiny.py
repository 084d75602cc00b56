"""The network for smoke tests against NumPy, and the names of networks without TensorFlow."""

import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from rat_tf import networks
from rat_tf.networks import names
from tests.networks import test_wide_resnet as wide

RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(4, 5, 6, 2)).astype(np.float32)


def built(num_classes=7, **options):
    network = networks.build("tiny", num_classes, **options)
    network(IMAGES)
    return network


def test_shape_and_number_of_parameters():
    network = built()
    assert isinstance(network, networks.Tiny) and network(IMAGES).shape == (4, 7)
    assert wide.trainable(network) == 3 * 3 * 2 * 16 + 2 * 16 + (16 + 1) * 7
    assert len(network.non_trainable_weights) == 2


@pytest.mark.parametrize("training", [True, False])
def test_logits_equal_numpy(training):
    network = built()
    for w in network.weights:
        if w.shape.rank == 1:  # make every statistic, scale and bias matter
            w.assign(RNG.uniform(0.5, 1.5, w.shape))
    x = wide.act(wide.convolve(IMAGES, network.first.kernel), network.norm, training)
    weights, bias = network.linear.get_weights()
    expected = x.mean(axis=(1, 2)) @ np.float64(weights) + bias
    logits = network(IMAGES, training=training, update_stats=False)
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-4)


def test_statistics_move_only_when_told():
    network = built()
    before = [w.numpy() for w in network.non_trainable_weights]
    network(IMAGES, training=True, update_stats=False)
    network(IMAGES, training=False, update_stats=True)
    for w, b in zip(network.non_trainable_weights, before):
        np.testing.assert_array_equal(w, b)
    network(IMAGES, training=True)
    for w, b in zip(network.non_trainable_weights, before):
        assert np.all(w.numpy() != b)


def test_initial_weights_follow_from_the_seed():
    first, again, other = (built(seed=seed).get_weights() for seed in (0, 0, 1))
    for a, b, c in zip(first, again, other):
        np.testing.assert_array_equal(a, b)
        assert a.ndim == 1 or np.all(a != c)


@pytest.mark.parametrize("synchronized", [True, False])
def test_synchronized_statistics_are_those_of_all_replicas(two_replicas, synchronized):
    with two_replicas.scope():
        network = built(synchronized=synchronized)
    halves = two_replicas.experimental_distribute_values_from_function(
        lambda context: tf.constant(np.split(IMAGES, 2)[context.replica_id_in_sync_group])
    )
    run = tf.function(lambda x: two_replicas.run(network, [x], {"training": True}))
    logits = np.concatenate(two_replicas.experimental_local_results(run(halves)))
    same = np.allclose(logits, built()(IMAGES, training=True), rtol=1e-4, atol=1e-5)
    assert same == synchronized


WITHOUT_TENSORFLOW = """
import sys
from rat_tf.networks import names
assert names.check("tiny") is None and "tiny" in names.check("small")
assert "tensorflow" not in sys.modules
"""


@pytest.mark.usefixtures("in_the_projects_folder")
def test_names_are_known_without_tensorflow():
    subprocess.run([sys.executable, "-c", WITHOUT_TENSORFLOW], check=True)


def test_every_family_can_be_built_and_other_names_are_refused():
    for name, numbers in (("wrn-10-3", (10, 3)), ("tiny", ()), ("mlp-24", (24,))):
        family, found = names.parse(name)
        assert found == numbers and names.check(name) is None
        assert type(networks.build(name, 10)) is getattr(networks, family.builder)
    for name in ("", "Tiny", "tiny-1", "wrn-28", "wrn-27-2", "wrn-28-0", "mlp-0"):
        message = names.check(name)
        assert message.endswith(f"got {name!r}")
        assert all(family.expected in message for family in names.FAMILIES)
    with pytest.raises(AttributeError, match="networks.*'ResNet'"):
        networks.ResNet  # noqa: B018
