"""transforms.parse: from the flag's text to a Composite, or an error that says what to change."""

import numpy as np
import pytest
import tensorflow as tf

from rat_tf import transforms
from rat_tf.transforms import sampling
from tests.transforms import cases, reference

SHAPE = (7, 9, 3)


def _error(text):
    with pytest.raises(ValueError) as error:
        transforms.parse(text)
    return str(error.value)


@pytest.mark.parametrize(
    "name, cls",
    [
        ("noise", transforms.Noise),
        ("channel_weight", transforms.ChannelWeight),
        ("channel", transforms.ChannelWeight),
        ("affine", transforms.Affine),
        ("thin_plate_spline", transforms.ThinPlateSpline),
        ("tps", transforms.ThinPlateSpline),
        ("flow_field", transforms.FlowField),
        ("flow", transforms.FlowField),
    ],
)
def test_names_and_aliases(name, cls):
    parsed = transforms.parse(f"{name}:0.25")
    assert isinstance(parsed, transforms.Composite)
    (t,) = parsed.transforms
    assert type(t) is cls and t.epsilon == 0.25


def test_order_and_epsilons_are_kept():
    parsed = transforms.parse("flow:1e-2,noise:6,affine:0.6")
    assert [t.name for t in parsed.transforms] == ["flow_field", "noise", "affine"]
    assert [t.epsilon for t in parsed.transforms] == [0.01, 6.0, 0.6]
    assert [tuple(s) for s in parsed.offset_shape(SHAPE)] == [(7, 9, 2), SHAPE, (2, 3)]


@pytest.mark.parametrize("sampler", cases.SAMPLERS)
@pytest.mark.parametrize("padding", ["zeros", "edge"])
def test_padding_and_sampler_reach_the_warp(padding, sampler):
    images = np.random.default_rng(0).normal(size=(1, *SHAPE))
    shift = np.array([[[0, 0, 0.7], [0, 0, -0.4]]])
    parsed = transforms.parse("channel:1,affine:0.6", padding=padding, sampler=sampler)
    actual = parsed.apply(images, [np.zeros((1, 3)), shift])
    expected = reference.apply("affine", images[0], shift[0], padding)
    np.testing.assert_allclose(actual[0], expected, atol=1e-10)
    graph = tf.function(parsed.apply).get_concrete_function(
        tf.TensorSpec([1, *SHAPE]), [tf.TensorSpec([1, 3]), tf.TensorSpec([1, 2, 3])]
    )
    assert ("Addons>Resampler" in str(graph.graph.as_graph_def())) == (sampler == "resampler")


@pytest.mark.parametrize(
    "text, mentioned",
    [
        ("noise", ["noise", "epsilon"]),
        ("noise:1.0,affine", ["affine", "epsilon"]),
        ("noise:", ["noise:"]),
        (":1.0", [":1.0"]),
        ("1.0", ["1.0"]),
        ("noise:1,afine:0.6", ["afine:0.6"]),
        ("rotation:1", ["rotation", "noise", "affine", "thin_plate_spline", "flow_field"]),
        ("noise:0", ["noise", "0", "epsilon"]),
        ("affine:-0.6", ["affine", "-0.6", "epsilon"]),
        ("affine:big", ["affine", "big", "epsilon"]),
        ("affine:nan", ["affine", "nan", "epsilon"]),
        ("affine:inf", ["affine", "inf", "epsilon"]),
        ("affine:0,6", ["affine:0"]),
        ("noise:1:2", ["noise:1:2"]),
        ("noise::1", ["noise::1"]),
        ("noise:1,,affine:0.6", ["noise:1,,affine:0.6"]),
        ("noise:1,", ["noise:1,"]),
        (",noise:1", [",noise:1"]),
        ("noise:1;affine:0.6", ["1;affine"]),
        ("", ["noise", "''"]),
        ("  ", ["noise"]),
        ("noise:1,noise:2", ["noise twice", "noise:1,noise:2"]),
        ("tps:1,affine:1,thin_plate_spline:2", ["thin_plate_spline twice"]),
        ("flow_field:1,flow:1", ["flow_field twice"]),
        ("channel:1,noise:1,channel:1", ["channel_weight twice"]),
    ],
)
def test_errors_name_the_offending_part(text, mentioned):
    message = _error(text)
    assert [word for word in mentioned if word not in message] == [], message


@pytest.mark.parametrize(
    "typo, meant",
    [
        ("afine", "affine"),
        ("nois", "noise"),
        ("chanel_weight", "channel_weight"),
        ("thin_plate_splin", "thin_plate_spline"),
        ("flowfield", "flow_field"),
    ],
)
def test_a_typo_is_answered_with_the_nearest_name(typo, meant):
    """It is named once more than where nothing is near."""
    assert _error(f"{typo}:1").count(meant) == _error("zzz:1").count(meant) + 1


@pytest.mark.parametrize("option", [{"padding": "reflect"}, {"sampler": "cubic"}])
def test_unknown_options_are_refused(option):
    ((_, value),) = option.items()
    with pytest.raises(ValueError, match=value):
        transforms.parse("affine:0.6", **option)


def test_without_tfa_warps_are_gathers_and_its_kernel_is_refused_in_words(monkeypatch):
    monkeypatch.setattr(sampling, "tfa", None)
    for made in (transforms.parse("affine:0.6").transforms[0], transforms.Affine(0.6)):
        assert made.sampler == "gather"
    with pytest.raises(ValueError, match="TensorFlow Addons.*not installed; use gather"):
        transforms.parse("affine:0.6", sampler="resampler")


@pytest.mark.parametrize("epsilon", [0, -1.0, float("nan")])
def test_classes_refuse_an_epsilon_that_is_not_positive(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        transforms.Affine(epsilon)
