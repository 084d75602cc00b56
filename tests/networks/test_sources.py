"""Models of the user's: seeds, code in files, and Keras' description of them."""

import json
import random
import zipfile

import h5py
import numpy as np
import pytest
import tensorflow as tf

from rat_tf.networks import model_files, names, sources
from tests.networks import foreign

MODULE = "tests.networks.foreign"
SHAPE = (8, 8, 3)
IMAGES = np.random.default_rng(0).uniform(-1, 1, (3, *SHAPE)).astype(np.float32)


def test_names():
    assert names.parse("a.b:make")[1] == ("a.b", "make")
    assert names.parse("my/model.keras")[1] == ("my/model.keras",)
    assert names.parse("keras:VGG16")[1] == ("VGG16",)
    for name in ("a.b:make", "x.h5", "keras:ConvNeXtTiny"):
        assert names.parse(name)[0].foreign and names.check(name) is None
    assert not names.parse("wrn-10-1")[0].foreign
    assert "did you mean 'VGG16'" in names.check("keras:VG16")
    for name in ("a b:make", "make", ":make", "a:", "model.txt"):
        assert "<module>:<function>" in names.check(name)


def test_initial_weights_follow_from_the_seed_alone():
    random.seed(5)
    np.random.seed(5)
    one, two, other = (sources.build(f"{MODULE}:small", SHAPE, 4, seed) for seed in (3, 3, 4))
    for a, b in zip(one.get_weights(), two.get_weights()):
        np.testing.assert_array_equal(a, b)
    assert np.all(one.get_weights()[0] != other.get_weights()[0])
    # The generators of the process go on as if nothing had happened.
    drawn = random.random(), np.random.rand()
    random.seed(5)
    np.random.seed(5)
    assert drawn == (random.random(), np.random.rand())


@pytest.mark.parametrize("kind", ["small", "sliced"])
def test_a_description_gives_the_same_network_in_float32(kind):
    tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
    try:
        model = sources.build(f"{MODULE}:{kind}", SHAPE, 4)
        text = sources.description(model)
        assert sources.rebuilt(text).layers[-1].compute_dtype == "bfloat16"
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")
    copy = sources.rebuilt(text)
    assert all(layer.compute_dtype == "float32" for layer in copy.layers)
    copy.set_weights(model.get_weights())
    expected = tf.cast(model(IMAGES), tf.float32)
    np.testing.assert_allclose(copy(IMAGES), expected, rtol=0.05, atol=0.05)


def test_layers_of_the_users_own_have_no_description():
    assert sources.description(sources.build(f"{MODULE}:own", SHAPE, 4)) is None


@pytest.mark.parametrize("name", ["model.keras", "model.h5"])
def test_code_in_a_file_is_run_only_if_allowed(tmp_path, name):
    path = str(tmp_path / name)
    model = foreign.lambdas(SHAPE, 4)
    model.save(path)
    with pytest.raises(ValueError, match="the Lambda layer 'halved'.*--allow_code"):
        sources.build(path, SHAPE, 4)
    found = sources.build(path, SHAPE, 4, allow_code=True)
    np.testing.assert_allclose(found(IMAGES), model(IMAGES), rtol=1e-5)
    # So, too, in the description.
    text = sources.description(found)
    with pytest.raises(ValueError, match="network.json has the Lambda layer"):
        sources.rebuilt(text, where="network.json")
    assert sources.rebuilt(text, allow_code=True).count_params() == model.count_params()


@pytest.mark.parametrize("name", ["model.keras", "model.h5"])
@pytest.mark.parametrize("version", ["3.0.5", "12.1.0"])
def test_a_file_of_keras_3_is_refused_with_what_to_do(tmp_path, name, version):
    """Keras 2 would end in an error about an argument of the input layer."""
    path = str(tmp_path / name)
    foreign.small(SHAPE, 4).save(path)
    assert model_files.config_of(path)
    if name.endswith("keras"):
        with zipfile.ZipFile(path) as archive:
            parts = {each: archive.read(each) for each in archive.namelist()}
        recorded = json.loads(parts["metadata.json"])
        parts["metadata.json"] = json.dumps({**recorded, "keras_version": version})
        with zipfile.ZipFile(path, "w") as archive:
            for each, content in parts.items():
                archive.writestr(each, content)
    else:
        with h5py.File(path, "a") as file:
            file.attrs["keras_version"] = version
    with pytest.raises(ValueError, match=f"by Keras {version}, .*build the model with tf.keras"):
        model_files.config_of(path)


def test_a_class_of_another_module_is_code():
    layer = {"module": "os", "class_name": "system", "config": {}, "registered_name": None}
    named = {"module": None, "class_name": "L", "config": {}, "registered_name": "mine>L"}
    assert list(model_files.code_in({"config": [layer]})) == ["the class system of os"]
    assert list(model_files.code_in([named])) == ["the class L of mine>L"]


def test_a_file_of_a_color_model_takes_grey_images(tmp_path):
    model = foreign.small(SHAPE, 4)
    model.save(tmp_path / "model.keras")
    grey = IMAGES[..., :1]
    found = sources.build(str(tmp_path / "model.keras"), (8, 8, 1), 4)
    np.testing.assert_allclose(found(grey), model(np.repeat(grey, 3, -1)), rtol=1e-5, atol=1e-6)


def test_what_cannot_be_used_is_said_with_its_place(tmp_path):
    with pytest.raises(ValueError, match=r"failing\(\(8, 8, 3\), 4\) failed: KeyError.*foreign.py"):
        sources.build(f"{MODULE}:failing", SHAPE, 4)
    with pytest.raises(ValueError, match="has no attribute 'missing'"):
        sources.build(f"{MODULE}:missing", SHAPE, 4)
    path = str(tmp_path / "weights.h5")
    foreign.small(SHAPE, 4).save_weights(path)
    with pytest.raises(ValueError, match="has weights and no model.*--pretrained"):
        sources.build(path, SHAPE, 4)
    (tmp_path / "text.keras").write_text("no")
    with pytest.raises(ValueError, match="text.keras cannot be read"):
        sources.build(str(tmp_path / "text.keras"), SHAPE, 4)
    with pytest.raises(ValueError, match="no such file"):
        sources.build(str(tmp_path / "none.keras"), SHAPE, 4)
