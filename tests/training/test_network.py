"""Foreign networks on the command line: what a run keeps of them, and that all the rest works."""

import json
import os
import shutil
import signal
import sys

import numpy as np
import pytest
import tensorflow as tf

from rat_tf import config as config_lib
from rat_tf import errors
from rat_tf.training import build, network, progress, run_folder, weights
from tests import runs
from tests.networks import foreign

SHORT = {**runs.TINY, "iterations": 8, "checkpoint_every": 8, "tensorboard": False}
SUPERVISED = {k: v for k, v in SHORT.items() if k != "consistency_rampup"}
SUPERVISED["method"] = "supervised"


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The user's module in the user's folder."""
    path = tmp_path / "mine" / "their_networks.py"
    path.parent.mkdir()
    shutil.copy(foreign.__file__, path)
    monkeypatch.syspath_prepend(path.parent)
    monkeypatch.delitem(sys.modules, "their_networks", raising=False)
    return path


def train(run_dir, flags=SUPERVISED, **changes):
    flags = {**flags, "network": "their_networks:small", "run_dir": str(run_dir), **changes}
    return runs.command("rat_tf.train", *(f"--{k}={v}" for k, v in flags.items()))


def stopped_at(step, monkeypatch):
    """Sends this process a signal after a step."""
    shown = progress.Progress.on_train_batch_end

    def signalled(self, batch, logs=None):
        shown(self, batch, logs)
        if self.model.optimizer.iterations == step:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(progress.Progress, "on_train_batch_end", signalled)


def test_a_run_needs_the_users_files_only_to_begin(module, tmp_path, monkeypatch):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert train(whole)[0] == 0
    with monkeypatch.context() as patch:
        stopped_at(5, patch)
        assert train(broken)[0] == 75
    kept = json.loads((broken / "network.json").read_text())
    assert list(kept["sha256"]) == [str(module)] and kept["model"]
    os.remove(module)
    status, out, _ = train(broken)
    assert status == 0 and "resuming from step 5" in out
    assert runs.rows(broken) == runs.rows(whole)
    # Evaluation and export, too.
    found = weights.load(run_folder.Run(str(broken)), "ema")
    expected = weights.load(run_folder.Run(str(whole)), "ema")
    images = np.random.default_rng(0).integers(0, 256, (5, 8, 8, 1), np.uint8)
    np.testing.assert_array_equal(found.logits(images), expected.logits(images))
    status, out, err = runs.command(
        "export.savedmodel", f"--run_dir={broken}", f"--output={tmp_path / 'm'}", "--weights=ema"
    )
    assert status == 0, err
    served = tf.saved_model.load(str(tmp_path / "m" / "1")).signatures["serving_default"]
    np.testing.assert_allclose(
        served(tf.constant(images))["logits"], found.logits(images), rtol=1e-4, atol=1e-5
    )


def test_layers_of_the_users_own_are_kept_as_code(module, tmp_path):
    run_dir = tmp_path / "run"
    status, _, err = train(run_dir, SHORT, network="their_networks:own", ema_decay=0)
    assert status == 0, err
    run = run_folder.Run(str(run_dir))
    expected = weights.load(run, "last").logits(np.zeros((1, 8, 8, 1), np.uint8))
    module.write_text("changed = True\n")
    with pytest.raises(errors.UserError, match="no longer what .*network.py.*--allow_code"):
        weights.load(run, "last")
    found = weights.load(run, "last", allow_code=True)
    np.testing.assert_array_equal(found.logits(np.zeros((1, 8, 8, 1), np.uint8)), expected)


def test_pretrained_by_a_run_of_other_classes(module, tmp_path):
    source = foreign.small((8, 8, 1), 3)
    source.save(tmp_path / "source.keras")
    config = config_lib.Config(
        network="their_networks:small",
        pretrained=str(tmp_path / "source.keras"),
        freeze="backbone",
        ema_decay=0.9,
        labels=50,
        dataset="digits",
    )
    made = network.Source(config, (8, 8, 1), 10)
    one, two = made.make(), made.make()
    for a, b in zip(one.get_weights(), two.get_weights()):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.layers[0].get_weights()[0], source.get_weights()[0])
    assert len(one.trainable_variables) == len(two.trainable_variables) == 2
    run_dir = tmp_path / "run"
    flags = {"pretrained": tmp_path / "source.keras", "freeze": "backbone"}
    assert train(run_dir, **flags)[0] == 0
    trained = weights.load(run_folder.Run(str(run_dir)), "last")
    for a, b in zip(trained.network.layers[1].get_weights(), source.layers[1].get_weights()):
        np.testing.assert_array_equal(a, b)
    # The folder of a run serves as well as a file.
    again = config_lib.Config(network="their_networks:small", pretrained=str(run_dir))
    found = network.Source(again, (8, 8, 1), 5).make()
    np.testing.assert_array_equal(found.layers[0].get_weights()[0], source.get_weights()[0])


def test_the_backbone_has_its_own_learning_rate(module, tmp_path):
    config = config_lib.Config(
        network="their_networks:small", learning_rate=0.01, backbone_learning_rate=1e-4
    )
    layer = tf.keras.layers.Rescaling(1 / 127.5, -1)
    model = build.method(config, network.Source(config, (8, 8, 1), 10), layer)
    model = build.compiled(model, config, tf.zeros([1, 8, 8, 1]))
    variables = model.network.trainable_variables
    before = [variable.numpy() for variable in variables]
    model.optimizer.apply_gradients([(tf.ones_like(v), v) for v in variables])
    # The first step of Adam is the learning rate, whatever the gradient.
    steps = [float(np.mean(old - new)) for old, new in zip(before, variables)]
    np.testing.assert_allclose(steps, [1e-4] * 3 + [0.01] * 2, rtol=1e-3)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"network": "their_networks:probable"}, "last layer gives probabilities; expected logits"),
        ({"network": "their_networks:nested"}, "last layer gives probabilities; expected logits"),
        ({"network": "their_networks:failing"}, "failed: KeyError: 'no such weights'"),
        ({"network": "keras:VGG16"}, "32x32 or larger, got 8x8"),
        ({"network": "model.keras"}, r"expected logits \[batch, 10\], .*got outputs \[batch, 3\]"),
        ({"network": "large.keras"}, "does not take images of 8x8x1.*--image_size"),
        ({"pretrained": "large.keras"}, "--pretrained: .*large.keras does not fit"),
    ],
)
def test_networks_that_cannot_be_trained_leave_no_run_folder(
    module, tmp_path, monkeypatch, changes, message
):
    monkeypatch.chdir(tmp_path)
    foreign.small((8, 8, 1), 3).save("model.keras")
    foreign.small((16, 16, 3), 10).save("large.keras")
    with pytest.raises(AssertionError, match=message):
        status, _, err = train("run", **changes)
        assert status != 2, err
    assert not os.path.exists("run")


def test_normalization_inside_a_layer_has_the_statistics_of_a_checkpoint(tmp_path):
    """It computes with constants that were made of its weights when they were built."""
    first, second = (
        tf.keras.Sequential([tf.keras.Input((4,)), foreign.Block("normalization", "dense")])
        for _ in range(2)
    )
    first.layers[0].a.set_weights([np.arange(4), np.arange(1, 5), 9])
    path = tf.train.Checkpoint(first).write(str(tmp_path / "weights"))
    tf.train.Checkpoint(second).read(path).assert_consumed()
    weights.finalize(second)
    inputs = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    kernel, bias = first.layers[0].b.get_weights()
    expected = (inputs - np.arange(4)) / np.sqrt(np.arange(1, 5)) @ kernel + bias
    np.testing.assert_allclose(second(inputs), expected, rtol=1e-5, atol=1e-6)
