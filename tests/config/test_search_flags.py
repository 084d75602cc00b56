"""The flags of searches and targets beyond the paper: what does not go together is refused."""

import dataclasses

import pytest
import tensorflow as tf

from rat_tf import config as config_lib
from rat_tf import errors
from rat_tf.config import cli, flag_values
from rat_tf.data import preprocess
from rat_tf.methods.options import rat
from rat_tf.training import build, devices, network

WORST = {"adversary": "worst_of"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"adversary": "best"}, ["--adversary", "gradient, worst_of, both", "'best'"]),
        ({"candidates": 8}, ["--candidates", "not used by --adversary=gradient", "8"]),
        ({"adversary": "both", "candidates": 0}, ["--candidates", "[1, 1000]"]),
        ({"adversary": "both", "candidates": 1}, ["--candidates", "2 or more", "=both", "1"]),
        ({**WORST, "xi": "0.1eps"}, ["--xi", "not used by --adversary=worst_of", "0.1eps"]),
        ({**WORST, "power_iterations": 2}, ["--power_iterations", "not used", "worst_of", "2"]),
        ({**WORST, "candidates": 1, "adversary_share": 0.5}, ["--adversary_share", "no search"]),
        ({**WORST, "candidates": 1, "adversary_scale": 0.5}, ["--adversary_scale", "no search"]),
        ({"adversary_scale": 0.3}, ["--adversary_scale", "1, 0.5 or 0.25", "0.3"]),
        ({"adversary_scale": 0.5, "transforms": "noise:1"}, ["--adversary_scale", "noise:1"]),
        ({"adversary_scale": 0.5, "method": "vat"}, ["--adversary_scale", "vat", "only by rat"]),
        ({"adversary": "both", "method": "random"}, ["--adversary", "random", "rat, vat"]),
        ({"adversary_share": 0.0}, ["--adversary_share", "(0, 1]"]),
        ({"target": "teacher"}, ["--ema_decay", "> 0", "--target=teacher"]),
        ({"target_threshold": 1.0}, ["--target_threshold", "[0, 1)"]),
        ({"target_temperature": 0.0}, ["--target_temperature", "> 0"]),
        ({"separate_statistics": True}, ["--entropy_multiplier", "must be 0", "0.06"]),
        ({"class_weights": "balanced", "mixup": True}, ["--class_weights", "mixed labels"]),
        ({"class_weights": "balanced", "method": "mixmatch"}, ["--class_weights", "mixed"]),
        (
            {"separate_statistics": True, "entropy_multiplier": 0.0, "mixup": True},
            ["--separate_statistics", "--mixup"],
        ),
    ],
)
def test_a_mistake_is_named_with_what_was_expected_and_found(changes, words):
    with pytest.raises(errors.UserError) as error:
        config_lib.Config(**changes)
    assert [word for word in words if word not in str(error.value)] == [], error.value


def test_a_flagfile_may_serve_methods_that_do_not_use_them_all():
    arguments = ["--adversary_scale=0.5", "--adversary=worst_of", "--target_threshold=0.8"]
    values = flag_values.of_arguments(arguments)
    used = {
        method: flag_values.to_config({**values, "method": method})
        for method in ("vat", "random", "supervised")
    }
    assert used["vat"].adversary == "worst_of" and used["vat"].adversary_scale is None
    assert used["random"].target_threshold == 0.8 and used["random"].adversary is None
    assert used["supervised"].target_threshold is None


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({}, ""),  # Algorithm 1
        ({"method": "random"}, ""),
        ({"method": "supervised"}, ""),
        ({"adversary": "worst_of", "candidates": 1}, "no search"),
        ({"adversary": "worst_of", "candidates": 8}, "worst of 8"),
        ({"adversary": "both", "candidates": 2}, "worst of 2, the gradient's among them"),
        (
            {"adversary": "worst_of", "candidates": 4, "adversary_share": 0.5},
            "worst of 4 for 50% of the images",
        ),
        ({"adversary_share": 0.5}, "one gradient for 50% of the images"),
        ({"adversary_scale": 0.25}, "one gradient at 0.25 of their size"),
        (
            {"adversary": "both", "adversary_share": 0.5, "adversary_scale": 0.5},
            "worst of 4, the gradient's among them, for 50% of the images at 0.5 of their size",
        ),
    ],
)
def test_a_run_says_how_it_searches(flags, words):
    assert config_lib.Config(**flags).options.search_words == words


def test_a_flagfile_with_candidates_may_serve_the_gradient():
    def config(*flags):
        return cli.parse(["--flagfile=configs/cpu/svhn1000.cfg", *flags], training=True).config

    assert config("--adversary=gradient").candidates == rat.CANDIDATES
    assert config("--adversary=both").candidates == 8
    with pytest.raises(errors.UserError, match="--candidates: not used by --adversary=gradient"):
        config("--adversary=gradient", "--candidates=8")


BARE = {"augment_shift": 0, "network": "mlp-128"}  # no batch norm
APART = {"separate_statistics": True, "entropy_multiplier": 0.0}


@pytest.mark.parametrize(
    ("flags", "warned"),
    [
        (BARE, True),
        ({**BARE, "method": "vat", "xi": "9e-4"}, True),
        ({**BARE, **APART, "network": "wrn-10-1"}, True),
        ({**BARE, "mixup": True, "network": "tiny"}, True),
        ({**BARE, **APART, "adversary": "both", "network": "keras:MobileNetV2"}, True),
        ({**BARE, "network": "wrn-10-1"}, False),  # statistics of labelled images, too
        ({**BARE, "network": "keras:MobileNetV2"}, False),
        ({"network": "mlp-128"}, False),
        ({**BARE, "xi": "0.1eps"}, False),
        ({**BARE, "xi": "1e-3"}, False),
        ({**BARE, "adversary": "worst_of"}, False),
        ({**BARE, "target": "teacher", "ema_decay": 0.99}, False),
        ({**BARE, "method": "random"}, False),
        ({**BARE, "method": "supervised"}, False),
        ({**BARE, "augment_flip": True}, False),
        ({**BARE, "augment_noise": 0.1}, False),
        ({**BARE, "augment_crop": 0.5}, False),
        ({**BARE, "augment_color": 0.3}, False),
    ],
)
def test_a_search_that_is_lost_in_rounding_is_said(flags, warned):
    found = list(config_lib.Config(image_size=32, **flags).warnings())
    assert len(found) == warned
    for text in found:
        for words in (
            "--xi=",
            "rounding",
            "not that of Algorithm 1",
            "without augmentation",
            "--xi=0.1eps",
        ):
            assert words in text
        assert ("dropout" in text) == flags["network"].startswith("keras")


def test_a_share_is_of_whole_images():
    with pytest.raises(
        errors.UserError, match="--adversary_share: .*whole number of the 50 .*16.5"
    ):
        config_lib.Config(adversary_share=0.33)
    devices.check_share(config_lib.Config(adversary_share=0.5), 1)
    devices.check_share(config_lib.Config(adversary_share=0.2), 2)
    with pytest.raises(errors.UserError, match="--adversary_share: .*2 replicas, got 0.5, .* 12.5"):
        devices.check_share(config_lib.Config(adversary_share=0.5), 2)


class OneSize(tf.keras.Model):
    """A network in name, for images of 8×8 only, as a functional model with a fixed input."""

    def __init__(self):
        super().__init__()
        inputs = tf.keras.Input((8, 8, 3))
        outputs = tf.keras.layers.Dense(10)(tf.keras.layers.Flatten()(inputs))
        self.inner = tf.keras.Model(inputs, outputs)

    def call(self, images, training=False, update_stats=True):
        return self.inner(images)


def test_a_scale_is_refused_where_images_or_the_network_do_not_allow_it():
    config = config_lib.Config(adversary_scale=0.25, network="tiny")
    build.check_scale(config, (28, 32, 1))
    build.check_scale(config_lib.Config(), (30, 32, 1))
    with pytest.raises(errors.UserError, match="--adversary_scale=0.25.*multiples of 4.*30x32"):
        build.check_scale(config, (30, 32, 1))
    example = tf.zeros([1, 8, 8, 3])
    source = network.Source(config, (8, 8, 3), 10)
    build.compiled(build.method(config, source, preprocess.Scale()), config, example)
    model = build.method(config, source, preprocess.Scale())
    model.network = OneSize()
    with pytest.raises(errors.UserError, match="--adversary_scale=0.25.*8x8 only.*2x2"):
        build.compiled(model, config, example)


class Rounded(tf.keras.layers.Layer):
    def call(self, images):
        return tf.round(images)


def test_a_network_without_a_gradient_is_refused_by_a_search_for_one():
    example, options = tf.zeros([1, 8, 8, 3]), {"network": "some:function"}
    parts = [tf.keras.Input((8, 8, 3)), Rounded(), tf.keras.layers.Flatten()]

    def compiled(**flags):
        config = config_lib.Config(network="tiny", **flags)
        model = build.method(config, network.Source(config, (8, 8, 3), 10), preprocess.Scale())
        model.network = tf.keras.Sequential([*parts, tf.keras.layers.Dense(10)])
        build.compiled(model, dataclasses.replace(config, **options), example)

    compiled(adversary="worst_of")
    compiled(method="random")
    for flags in ({}, {"adversary": "both"}):
        with pytest.raises(errors.UserError, match="--network=some:function: .*no gradient.*--adv"):
            compiled(**flags)
