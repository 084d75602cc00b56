import os
import types

import numpy as np
import pytest
import tensorflow as tf
from sklearn import decomposition

from rat_tf import config as config_lib
from rat_tf import data as data_lib
from rat_tf import errors
from rat_tf.data import examples, preprocess, sources, zca

SHAPE = (5, 4, 3)


def correlated(count=400, shape=SHAPE, seed=0):
    """Images with strong correlations, some of them constant."""
    rng = np.random.default_rng(seed)
    size = int(np.prod(shape))
    mixed = rng.normal(size=(count, size)) @ rng.normal(size=(size, size)) * 10 + 128
    images = np.clip(mixed, 0, 255).astype(np.uint8).reshape(count, *shape)
    images[3] = 17
    return examples.Examples(images, np.zeros(count, np.int64))


def gcn_by_definition(images):
    rows = []
    for image in images:
        values = image.astype(np.float64).ravel()
        values = values - sum(values) / len(values)
        rows.append(55 * values / max(np.sqrt(sum(values**2)), 1e-10))
    return np.array(rows)


def build(train, tmp_path):
    config = config_lib.Config(preprocessing="gcn_zca", cache_dir=str(tmp_path))
    return preprocess.build(config, types.SimpleNamespace(train=train))


def test_scale():
    assert isinstance(preprocess.build(config_lib.Config()), preprocess.Scale)
    images = np.array([0, 51, 255], np.uint8).reshape(1, 3, 1, 1)
    np.testing.assert_allclose(np.ravel(preprocess.Scale()(images)), [-1, -0.6, 1], rtol=1e-6)


def test_fit_follows_the_definition():
    train = correlated()
    mean, matrix = zca.fit(train)
    normalised = gcn_by_definition(train.images)
    np.testing.assert_allclose(mean, normalised.mean(axis=0), atol=1e-12)
    covariance = np.cov(normalised.T, bias=True)
    u, s, _ = np.linalg.svd(covariance + 0.1 * np.eye(60))
    np.testing.assert_allclose(matrix, u @ np.diag(1 / np.sqrt(s + 1e-10)) @ u.T, atol=1e-9)
    # Whitened covariance: the identity up to the regulariser, S/(S + 0.1) in the same basis.
    white = np.cov(((normalised - mean) @ matrix).T, bias=True)
    np.testing.assert_allclose(white + 0.1 * matrix @ matrix, np.eye(60), atol=1e-8)


def test_fit_agrees_with_pca_whitening_where_variance_is_large():
    train = correlated()
    mean, matrix = zca.fit(train)
    normalised = gcn_by_definition(train.images)
    pca = decomposition.PCA(whiten=True).fit(normalised)
    large = pca.explained_variance_ > 10  # where 0.1 is at most 1 %
    ours = ((normalised - mean) @ matrix) @ pca.components_[large].T
    np.testing.assert_allclose(ours, pca.transform(normalised)[:, large], rtol=0.02, atol=0.02)


def test_blocks_do_not_matter(monkeypatch):
    expected = zca.fit(correlated())
    monkeypatch.setattr(zca, "BLOCK", 37)
    for ours, theirs in zip(zca.fit(correlated()), expected):
        np.testing.assert_allclose(ours, theirs, atol=1e-10)


def test_layer_computes_what_was_fitted(tmp_path):
    train = correlated()
    layer = build(train, tmp_path)
    mean, matrix = zca.fit(train)
    expected = (gcn_by_definition(train.images) - mean) @ matrix
    np.testing.assert_allclose(
        np.reshape(layer(train.images), [400, 60]), expected, rtol=1e-3, atol=2e-4
    )
    assert not layer.trainable_weights and len(layer.non_trainable_weights) == 2


def test_layer_is_saved_and_exported_with_its_statistics(tmp_path):
    train = correlated()
    layer = build(train, tmp_path)
    model = tf.keras.Sequential([tf.keras.Input(SHAPE, dtype=tf.uint8), layer])
    model.save_weights(str(tmp_path / "weights.h5"))
    waiting = preprocess.build(config_lib.Config(preprocessing="gcn_zca"))
    other = tf.keras.Sequential([tf.keras.Input(SHAPE, dtype=tf.uint8), waiting])
    other.load_weights(str(tmp_path / "weights.h5"))
    np.testing.assert_array_equal(other(train.images), model(train.images))
    tf.saved_model.save(model, str(tmp_path / "saved"))
    served = tf.saved_model.load(str(tmp_path / "saved"))
    np.testing.assert_allclose(served(train.images), model(train.images), atol=1e-5)


def test_fit_is_cached_by_content_and_shape(tmp_path, monkeypatch):
    calls = []
    fit = zca.fit
    monkeypatch.setattr(zca, "fit", lambda train: calls.append(train) or fit(train))
    first = zca.fitted(correlated(), str(tmp_path))
    again = zca.fitted(correlated(), str(tmp_path))
    assert len(calls) == 1
    np.testing.assert_array_equal(first[1], again[1])
    train = correlated()
    half = examples.Examples(train.pixels[:, :, :2], train.labels, None, train.fingerprints)
    zca.fitted(half, str(tmp_path))
    zca.fitted(correlated(seed=1), str(tmp_path))
    assert len(calls) == 3


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "other"])
def test_damaged_cache_is_rebuilt(tmp_path, damage):
    expected = zca.fitted(correlated(), str(tmp_path))
    (path,) = tmp_path.rglob("*.npz")
    content = bytearray(path.read_bytes())
    if damage == "truncate":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flip":
        content[len(content) // 2] ^= 1  # in the middle of the matrix
        path.write_bytes(content)
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        zca.fitted(correlated(seed=1), str(tmp_path / "other"))
        (other,) = (tmp_path / "other").rglob("*.npz")
        os.replace(other, path)
    found = zca.fitted(correlated(), str(tmp_path))
    for ours, theirs in zip(found, expected):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    with np.load(path) as repaired:
        np.testing.assert_array_equal(repaired["matrix"], found[1])


def test_the_cache_has_the_permissions_of_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        zca.fitted(correlated(), str(tmp_path / "cache"))
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "cache").rglob("*")}
    assert modes == {0o750, 0o640}


@pytest.mark.parametrize(
    "error", [NotImplementedError, RuntimeError, PermissionError(13, "Denied")]
)
def test_a_fit_is_repeated_and_kept_whatever_a_cache_raises(tmp_path, monkeypatch, caplog, error):
    expected = zca.fitted(correlated(), str(tmp_path))

    def load(path):
        raise error

    monkeypatch.setattr(np, "load", load)
    np.testing.assert_allclose(zca.fitted(correlated(), str(tmp_path))[1], expected[1], atol=1e-6)
    assert ("cannot be read" in caplog.text) == isinstance(error, PermissionError)


def test_a_fit_outlives_a_cache_that_cannot_be_written(caplog):
    mean, matrix = zca.fitted(correlated(), "/etc/passwd")
    np.testing.assert_allclose(matrix, zca.fit(correlated())[1], atol=1e-6)
    assert "--cache_dir: cannot cache the ZCA matrix in /etc/passwd/zca" in caplog.text


def test_too_large_images_are_refused_before_they_are_read(monkeypatch):
    monkeypatch.setattr(sources, "read", lambda *_: pytest.fail("read"))
    config = config_lib.Config(
        dataset="digits", labels=50, preprocessing="gcn_zca", image_size=96, channels=3
    )
    with pytest.raises(errors.UserError, match="gcn_zca: expected images of at most .*96×96×3"):
        data_lib.load(config)
