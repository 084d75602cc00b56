"""From given values to a config: flagfiles, changes, and flags that a method does not use."""

import dataclasses

import pytest

from rat_tf import config as config_lib
from rat_tf import errors
from rat_tf.config import flag_values


def test_a_flagfile_serves_other_methods_but_a_flag_given_for_nothing_is_refused(tmp_path):
    path = tmp_path / "rat.cfg"
    path.write_text("--transforms=noise:2,affine:0.3\n--xi=1e-2\n--consistency=0.7\n")
    random = flag_values.config_of_file(str(path), method="random")
    assert (str(random.transforms), random.xi) == ("noise:2,affine:0.3", None)
    assert random.consistency == 0.7
    supervised = flag_values.config_of_file(str(path), method="supervised")
    assert (supervised.transforms, supervised.consistency) == (None, None)
    assert config_lib.Config(method="supervised") == supervised
    with pytest.raises(errors.UserError, match="--xi.*supervised"):
        flag_values.config_of_file(str(path), method="supervised", xi="1e-3")


def test_another_method_takes_its_own_defaults_and_keeps_what_was_chosen():
    config = config_lib.Config(consistency=0.7, xi="1e-2", labels=250)
    pi_model = flag_values.changed_config(config, method="pi_model", seed=4)
    expected = config_lib.Config(method="pi_model", consistency=0.7, labels=250, seed=4)
    assert pi_model == expected and pi_model.learning_rate == 0.0003
    assert flag_values.changed_config(config, seed=4) == dataclasses.replace(config, seed=4)


def test_a_flagfile_makes_the_same_config_again(tmp_path):
    config = config_lib.Config(
        method="random", labels=50, transforms="tps:0.5", sync_batch_norm=True, mixed_precision=""
    )
    path = tmp_path / "flags.cfg"
    path.write_text(config.flagfile())
    assert flag_values.config_of_file(str(path)) == config
    assert flag_values.config_of_file(str(path), seed=7) == dataclasses.replace(config, seed=7)


def test_a_broken_flagfile_is_named(tmp_path):
    path = tmp_path / "flags.cfg"
    path.write_text("--labels=many\n")
    with pytest.raises(errors.UserError, match="flags.cfg.*labels"):
        flag_values.config_of_file(str(path))
