"""The cost of searches that benchmarks.searches counts, against the operations of traced steps."""

import dataclasses

import pytest
import tensorflow as tf

from benchmarks import searches
from rat_tf import config as config_lib
from rat_tf.config import flag_values
from rat_tf.data import preprocess
from rat_tf.methods.options import rat
from rat_tf.training import build, network
from tests import graphs

BATCH, SIZE = 10, 8
# Of the last convolution of wrn-10-1, which no other convolution has.
KERNEL = [3, 3, 64, 64]
# What changes neither the offsets of a search nor how they are judged.
OF_TRAINING = ("ema_decay", "evaluate", "consistency", "consistency_rampup", "entropy_multiplier")
OF_TRAINING += ("target_threshold", "target_temperature")
OPERATIONS = ("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter")


def passes(**flags) -> float:
    """Full-size images that pass through the last convolution in a step, in all directions."""
    config = config_lib.Config(network="wrn-10-1", **{"transforms": "affine:0.3", **flags})
    layer = preprocess.Scale()
    model = build.method(config, network.Source(config, (SIZE, SIZE, 3), 10), layer)
    model = build.compiled(model, config, layer(tf.zeros([1, SIZE, SIZE, 3], tf.uint8)))
    images = tf.zeros([BATCH, SIZE, SIZE, 3], tf.uint8)
    data = (images, tf.zeros([BATCH], tf.int64)), images
    graph = tf.function(model.train_step).get_concrete_function(data).graph
    total = 0.0
    for op in graphs.live_operations(graph):
        shapes = [tensor.shape for tensor in (*op.inputs, *op.outputs)]
        if op.type in OPERATIONS and KERNEL in shapes:
            inputs = next(shape for shape in shapes if shape.rank == 4 and shape != KERNEL)
            total += inputs[0] * inputs[1] * inputs[2] / (SIZE // 4) ** 2
    return total


@pytest.mark.parametrize(
    "flags",
    [
        searches.SEARCHES["random"],
        searches.SEARCHES["worst of 1, steepest"],
        searches.SEARCHES["both, 2"],
        searches.SEARCHES["steepest, two iterations, half size"],
        {"transforms": "noise:1,affine:0.3", "adversary_scale": 0.5},
        searches.SEARCHES["worst of 2, steepest, share 0.4, halves apart"],
    ],
    ids=str,
)
def test_the_count_is_that_of_the_operations(flags):
    supervised = 3 * 2 * BATCH  # forward, input gradient and weight gradient of as many images
    found = passes(**{"method": "rat", **flags}) / supervised
    assert found == pytest.approx(searches.counted(**flags))


@pytest.mark.parametrize("name", searches.SEARCHES)
def test_a_search_is_the_same_on_the_network_of_any_run(name):
    """Whatever the search of that run was."""
    flags = searches.flags_of(searches.SEARCHES[name], "affine:0.3")
    of_run = flag_values.config_of_file("configs/cpu/svhn1000.cfg", transforms="noise:1")
    found = flag_values.changed_config(of_run, unlabeled_batch=50, **flags)
    expected = config_lib.Config(**flags)
    for field in dataclasses.fields(rat.Searching if expected.options.searches else rat.Random):
        if field.name not in OF_TRAINING:
            assert getattr(found, field.name) == getattr(expected, field.name), field.name
