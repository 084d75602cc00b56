"""Images and networks that a search cannot use are refused before training."""

import pytest
import tensorflow as tf

import rat_tf
from tests.methods.foreign import LABELS, UNLABELED, batch, classifier, trained

layers = tf.keras.layers


def hue(images):
    """An operation for which TensorFlow has no gradient: a LookupError."""
    return tf.raw_ops.AdjustHue(images=images, delta=0.1)


@pytest.mark.parametrize(
    "front, options, message",
    [
        ((), {"adversary_share": 0.25}, "adversary_share: .*whole number of the 6 .*makes 1.5"),
        ((), {"adversary_scale": 0.25}, "adversary_scale=0.25: .*multiples of 4, got 6x6"),
        ((), {"adversary_scale": 0.5}, "adversary_scale=0.5: .*images of 6x6 only, .*to 3x3"),
        ((layers.Lambda(tf.round),), {}, "no gradient .* adversary_kind=worst_of"),
        ((layers.Lambda(tf.round),), {"adversary_kind": "both"}, "no gradient"),
        ((layers.Lambda(hue),), {}, "no gradient"),
        ((layers.Lambda(hue),), {"adversary_kind": "worst_of"}, ""),
        ((layers.Lambda(tf.round),), {"adversary_kind": "worst_of"}, ""),
        ((layers.Lambda(tf.round),), {"search": False}, ""),
        ((), {"adversary_share": 0.5}, ""),
    ],
)
def test_images_and_network_fit_the_search(front, options, message):
    method = rat_tf.RAT(classifier(front=front), transforms="affine:0.3", **options)
    if not message:
        trained(method)
        return
    with pytest.raises(ValueError, match=message):
        trained(method)


def test_a_search_of_pooled_images_needs_no_fixed_size():
    method = rat_tf.RAT(
        classifier(shape=(None, None, 3)), transforms="affine:0.3", adversary_scale=0.5
    )
    trained(method)


def test_on_several_replicas_the_first_batch_of_one_is_looked_at(two_replicas):
    """Of a dataset that the strategy splits, and of one that is distributed already."""
    distribute = two_replicas.experimental_distribute_dataset

    def loss(share, data, wrap=lambda data: data):
        with two_replicas.scope():
            options = {"transforms": "affine:0.3", "adversary_share": share}
            method = rat_tf.RAT(classifier(), **options)
            method.compile("sgd")
        return method.fit(wrap(data), steps_per_epoch=1, verbose=0).history["loss"][0]

    data = batch(unlabeled=UNLABELED[:4])
    assert loss(0.5, data) == pytest.approx(loss(0.5, data, distribute))
    for wrap in (lambda data: data, distribute):
        with pytest.raises(ValueError, match="adversary_share: .* 2 .* of 2 replicas, got 0.25"):
            loss(0.25, data, wrap)
    with pytest.raises(ValueError, match="labels: expected classes from 0 to 2, got -1 to 1"):
        loss(1.0, batch(labels=LABELS - 1, unlabeled=UNLABELED[:4]), distribute)


def test_random_transformations_are_examined_without_a_gradient():
    """What an adversary would reach is then what random directions reach."""
    method = rat_tf.RAT(
        classifier(front=(layers.Lambda(hue),)), transforms="affine:0.3", search=False
    )
    trained(method)
    found = method.examine(UNLABELED, tf.constant(1, tf.int64))
    assert list(found["adversarial_kl"]) == list(found["random_kl"])
