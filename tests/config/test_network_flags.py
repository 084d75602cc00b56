"""Flags of networks: what does not go together is said without TensorFlow."""

import pytest

from rat_tf import config as config_lib
from rat_tf import errors
from rat_tf.config import flag_values
from rat_tf.training import network_files

KERAS = {"network": "keras:MobileNetV2"}


@pytest.mark.parametrize(
    "flags, message",
    [
        ({"network": "keras:MobilNetV2"}, "--network: .*did you mean 'MobileNetV2'"),
        ({"network": "wrn-10-1", "pretrained": "x.h5"}, "--pretrained: not used by --network=wrn"),
        ({"network": "tiny", "freeze": "batch_norm"}, "--freeze: not used by --network=tiny"),
        ({"network": "tiny", "backbone_learning_rate": 0.1}, "--backbone_learning_rate: not used"),
        ({**KERAS, "image_size": 16}, "--image_size: expected 32 or more with --network=keras"),
        ({**KERAS, "adversary_scale": 0.5}, "--adversary_scale: .*one size, got 0.5"),
        ({**KERAS, "sync_batch_norm": True}, "--sync_batch_norm: .*synchronized=True"),
        ({**KERAS, "preprocessing": "gcn_zca"}, "--preprocessing: --network=.*got gcn_zca"),
        (
            {"network": "a:b", "pretrained": "x.h5", "preprocessing": "gcn_zca"},
            "--preprocessing: --pretrained weights expect images",
        ),
        ({"network": "x.keras", "mixed_precision": "float16"}, "--mixed_precision: a saved model"),
        ({**KERAS, "freeze": "backbone"}, "--freeze=backbone: .*random weights"),
        ({**KERAS, "pretrained": "x", "init_from": "y"}, "--init_from: gives all weights"),
        (
            {"network": "a:b", "freeze": "backbone", "backbone_learning_rate": 0.1},
            "--backbone_learning_rate: not used with --freeze=backbone",
        ),
        ({**KERAS, "freeze": "head"}, "--freeze: expected one of none, batch_norm, backbone"),
    ],
)
def test_what_does_not_go_together_is_refused(flags, message):
    with pytest.raises(errors.UserError, match=message):
        config_lib.Config(**flags)


def test_flags_of_a_run_are_read_wherever_the_files_are_now(tmp_path):
    config = config_lib.Config(network="gone/model.keras", pretrained="gone.h5")
    text = config.flagfile()
    assert "--network=gone/model.keras\n" in text and "--pretrained=gone.h5\n" in text
    (tmp_path / "flags.cfg").write_text(text)
    assert flag_values.config_of_file(str(tmp_path / "flags.cfg")) == config


@pytest.mark.parametrize(
    "flags, message",
    [
        ({"network": "no_such_module:build"}, "--network: no Python module 'no_such_module'"),
        ({"network": "no_such.module:build"}, "--network: no Python module 'no_such.module'"),
        ({"network": "nets.py:small"}, "--network: .* as in nets:<function>, got the file nets.py"),
        ({"network": "none.keras"}, "--network: no such file: none.keras"),
        ({"network": "json:x", "pretrained": "none.h5"}, "--pretrained: no such file: none.h5"),
        ({"network": "json:x", "pretrained": "."}, "--pretrained: .*folder without flags.cfg"),
        ({"network": "text.h5"}, "--network: expected a .keras or .h5 file .* cannot be read"),
    ],
)
def test_files_are_checked_before_any_work(tmp_path, monkeypatch, flags, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.h5").write_text("no")
    with pytest.raises(errors.UserError, match=message):
        network_files.check(config_lib.Config(**flags))
