"""The memory of a step: never more than it takes, and enough to refuse what nobody has."""

import pytest
import tensorflow as tf

from rat_tf import config as config_lib
from rat_tf import errors, memory, networks
from rat_tf.config import flag_values, flagfiles
from rat_tf.networks import names
from rat_tf.training import footprint

GIB = 2**30
SHAPE = (9, 12, 3)


@pytest.mark.parametrize("name", ["wrn-10-1", "wrn-28-2", "tiny", "mlp-7"])
def test_sizes_are_those_of_the_networks(name):
    """Parameters as Keras counts them, and the shapes that layers with kernels compute."""
    network = networks.build(name, 5)
    sizes = []
    kinds = (tf.keras.layers.Conv2D, tf.keras.layers.Dense)
    for layer in network._flatten_layers():
        if isinstance(layer, kinds):
            call = layer.call
            layer.call = lambda x, call=call: _noted(call(x), sizes)
    network(tf.zeros([1, *SHAPE]))
    family, numbers = names.parse(name)
    parameters, activations = family.size(*numbers, SHAPE, 5)
    assert parameters == sum(int(tf.size(v)) for v in network.trainable_variables)
    assert activations == sum(sizes) - 5  # without the logits


def _noted(output, sizes):
    sizes.append(int(tf.size(output)))
    return output


#: What is a part of others is not trained by itself.
PARTS = ("configs/folder/shared.cfg", "configs/folder/long.cfg")
TRAINED = [path for path in flagfiles.names() if path not in PARTS]


@pytest.mark.parametrize("path", TRAINED)
def test_what_the_project_trains_is_not_refused(path, monkeypatch):
    config = flag_values.config_of_file(path)
    small = "digits" in path or "cpu" in path
    monkeypatch.setattr(memory, "of_machine", lambda: (4 if small else 24) * GIB)
    footprint.check(config)
    footprint.check(config, (config.image_size or 32,) * 2 + (3,), 10)


ABSURD = {
    "labeled_batch": 100_000_000,
    "network": "wrn-10-99999",
    "image_size": 50_000,
}


@pytest.mark.parametrize("flag", ABSURD)
def test_what_no_machine_has_is_refused(flag):
    config = config_lib.Config(**{flag: ABSURD[flag]})
    with pytest.raises(errors.UserError, match="^not enough memory: this needs at least .* GB"):
        footprint.check(config)


def test_the_message_names_the_parts(monkeypatch):
    """mlp-1000 of a 10×10×1 image: 101·1000 + 1001·1000 + 1001·2 parameters, four times 4 bytes."""
    monkeypatch.setattr(memory, "of_machine", lambda: 1e6)
    config = config_lib.Config(network="mlp-1000", image_size=10, channels=1)
    needs = footprint.needs(config, (10, 10, 1), 2)
    assert list(needs.values()) == [16 * 1_104_002, 100 * 4 * (2000 + 100)]
    with pytest.raises(
        errors.UserError,
        match=r"weights of --network=mlp-1000, .* a batch of 100 images.*--network",
    ):
        footprint.check(config)
    footprint.check(config_lib.Config(network="tiny"))
