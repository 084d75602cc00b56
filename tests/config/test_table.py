"""The table of flags: what is refused and in which words, and the paper's defaults."""

import pytest

from rat_tf import config as config_lib
from rat_tf import errors


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"method": "rta"}, ["--method", "'rta'", "did you mean 'rat'"]),
        ({"dataset": "svnh"}, ["--dataset", "'svnh'", "did you mean 'svhn'"]),
        ({"transforms": "noise:1,afine:0.6"}, ["--transforms", "afine:0.6", "'affine'"]),
        ({"transforms": "affine:0"}, ["--transforms", "affine:0", "> 0"]),
        ({"transforms": "affine:-1"}, ["--transforms", "affine:-1", "> 0"]),
        ({"transforms": "noise:1,noise:2"}, ["--transforms", "noise twice"]),
        ({"transforms": "tps:1,thin_plate_spline:2"}, ["--transforms", "thin_plate_spline"]),
        ({"method": "vat", "transforms": "affine:1"}, ["--transforms", "vat", "noise"]),
        ({"xi": "small"}, ["--xi", "'small'", "0.5eps"]),
        ({"xi": "-1e-6"}, ["--xi", "'-1e-6'"]),
        ({"network": "wrn-27-2"}, ["--network", "wrn-28-2", "'wrn-27-2'"]),
        ({"network": "tinny"}, ["--network", "wrn-28-2", "tiny", "'tinny'"]),
        ({"labels": -1}, ["--labels", "-1"]),
        ({"learning_rate": 0.0}, ["--learning_rate", "> 0", "0.0"]),
        ({"learning_rate": float("nan")}, ["--learning_rate", "nan"]),
        ({"seed": -1}, ["--seed", "-1"]),
        ({"seed": 2**40}, ["--seed", str(2**40)]),
        ({"unlabeled_batch": 0}, ["--unlabeled_batch", "rat", "> 0"]),
        ({"power_iterations": 0}, ["--power_iterations", "[1, 1000]"]),
        ({"ema_decay": 1.0}, ["--ema_decay", "1.0"]),
        ({"validate_every": 30_000}, ["--validate_every", "--iterations=500000", "30000"]),
        (
            {"iterations": 997, "validate_every": 997, "checkpoint_every": 9},
            ["--checkpoint_every", "--validate_every=997", "9"],
        ),
        ({"method": "supervised", "transforms": "noise:1"}, ["--transforms", "supervised", "rat"]),
        ({"method": "random", "ascent": "steepest"}, ["--ascent", "random", "rat, vat"]),
        ({"method": "pi_model", "kl_direction": "clean_adversarial"}, ["--kl_direction"]),
        ({"method": "mean_teacher", "epsilon_rampup": 5}, ["--epsilon_rampup", "mean_teacher"]),
        ({"method": "pseudo_label", "mixup": True}, ["--mixup", "pseudo_label", "mixmatch"]),
        ({"method": "vat", "padding": "edge"}, ["--padding", "vat"]),
        ({"mixup_alpha": 2.0}, ["--mixup_alpha", "without --mixup"]),
        ({"mixup": True, "kl_direction": "adversarial_clean"}, ["--kl_direction", "--mixup"]),
        ({"method": "mixmatch", "power_iterations": 1}, ["--power_iterations", "mixmatch"]),
        ({"method": "mean_teacher", "ema_decay": 0.0}, ["--ema_decay", "teacher", "> 0"]),
        ({"evaluate": "teacher"}, ["--ema_decay", "teacher", "> 0"]),
        ({"jit_compile": True, "sampler": "resampler"}, ["--sampler", "gather"]),
        ({"jit_compile": True, "logical_devices": 2}, ["--jit_compile", "--logical_devices=2"]),
        (
            {"strategy": "one_device", "logical_devices": 2},
            ["--strategy", "--logical_devices=2", "one_device"],
        ),
        ({"strategy": "multi_worker", "logical_devices": 2}, ["--strategy", "multi_worker"]),
    ],
)
def test_a_mistake_is_named_with_what_was_expected_and_found(changes, words):
    with pytest.raises(errors.UserError) as error:
        config_lib.Config(**changes)
    assert [word for word in words if word not in str(error.value)] == [], error.value


def test_defaults_are_the_papers():
    """Table 2 of the paper and its section on experiments, for SVHN."""
    config = config_lib.Config()
    assert (config.consistency, config.entropy_multiplier, config.xi.value) == (0.3, 0.06, 1e-6)
    assert (config.learning_rate, config.decay, config.decay_at) == (0.003, 0.2, 400_000)
    assert (config.iterations, config.consistency_rampup) == (500_000, 200_000)
    assert (config.validate_every, config.network) == (25_000, "wrn-28-2")
    assert config.used_transforms.epsilons == {"noise": 1.0, "affine": 0.6}
    assert (config.power_iterations, config.ascent) == (1, "paper")
    assert config.kl_direction == "clean_adversarial"


@pytest.mark.parametrize(
    ("method", "learning_rate", "consistency", "ema_decay"),
    [
        ("supervised", 0.003, None, 0),
        ("pi_model", 0.0003, 20, 0),
        ("mean_teacher", 0.0004, 8, 0.95),
        ("pseudo_label", 0.003, 1, 0),
        ("vat", 0.003, 0.3, 0),
    ],
)
def test_defaults_of_the_baselines_are_the_papers(method, learning_rate, consistency, ema_decay):
    """The table of hyper-parameters in the paper's appendix."""
    config = config_lib.Config(method=method)
    assert config.learning_rate == learning_rate
    assert config.consistency == consistency
    assert config.ema_decay == ema_decay
    assert config_lib.Config(method="pseudo_label").pseudo_label_threshold == 0.95


def test_vat_is_the_noise_alone():
    config = config_lib.Config(method="vat", transforms="affine:0.6,noise:2")
    assert config.used_transforms.epsilons == {"noise": 2.0}


def test_differences_name_what_changes_the_result_and_nothing_else():
    here = config_lib.Config(seed=1, run_dir="a", data_dir="b", steps_per_execution=5)
    (line,) = here.differences(config_lib.Config(seed=2, run_dir="c"))
    assert "--seed=1" in line and "--seed=2" in line
