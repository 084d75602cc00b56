"""Images and networks that a search cannot use are refused before training."""

import pytest
import tensorflow as tf

import rat_tf
from tests.methods.foreign import classifier, trained

layers = tf.keras.layers


@pytest.mark.parametrize(
    "front, options, message",
    [
        ((), {"adversary_share": 0.25}, "adversary_share: .*whole number of the 6 .*makes 1.5"),
        ((), {"adversary_scale": 0.25}, "adversary_scale=0.25: .*multiples of 4, got 6x6"),
        ((), {"adversary_scale": 0.5}, "adversary_scale=0.5: .*images of 6x6 only, .*to 3x3"),
        ((layers.Lambda(tf.round),), {}, "no gradient .* adversary_kind=worst_of"),
        ((layers.Lambda(tf.round),), {"adversary_kind": "both"}, "no gradient"),
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
