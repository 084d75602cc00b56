"""Figure 1: the rotation against complex numbers, the data, and the command with its defaults."""

import errno
import os
import re

import matplotlib.image
import numpy as np
import pytest
import tensorflow as tf

from rat_tf import errors, moons
from rat_tf.experiments import two_moons
from tests import runs


@pytest.fixture
def rotated():
    """Points and centres as complex numbers, angles, and the rotation that is to turn them."""
    rng = np.random.default_rng(0)
    z, c = (rng.normal(size=(2, 7)) + 1j * rng.normal(size=(2, 7))).reshape(2, 7)
    return z, c, rng.uniform(-4, 4, 7), two_moons.Rotation(0.2, pairs(c))


def pairs(z):
    return np.stack([z.real, z.imag], axis=1)


@pytest.mark.parametrize("dtype, tolerance", [(tf.float64, 1e-12), (tf.float32, 3e-6)])
def test_rotation_is_a_complex_multiplication(rotated, dtype, tolerance):
    z, c, angle, rotation = rotated
    moved = rotation.apply(tf.constant(pairs(z), dtype), tf.constant(angle[:, None], dtype))
    assert moved.dtype == dtype
    expected = pairs(c + (z - c) * np.exp(1j * angle))
    np.testing.assert_allclose(moved, expected, rtol=0, atol=tolerance)


def test_rotation_norm_is_the_angle_and_zero_changes_nothing(rotated):
    z, _, angle, rotation = rotated
    np.testing.assert_allclose(rotation.norm(tf.constant(angle[:, None])), np.abs(angle))
    direction = rotation.random_direction(7, (2,), [1, 2])
    assert set(direction.numpy().ravel()) == {-1.0, 1.0}
    points = pairs(z).astype(np.float32)
    np.testing.assert_array_equal(rotation.apply(points, np.zeros((7, 1))), points)


@pytest.mark.parametrize("start", [0.0, 1e-6, 0.3])
def test_rotation_gradient_is_the_tangent(rotated, start):
    z, c, _, rotation = rotated
    offset = tf.fill([7, 1], tf.constant(start, tf.float64))
    with tf.GradientTape() as tape:
        tape.watch(offset)
        moved = rotation.apply(tf.constant(pairs(z)), offset)
        total = tf.reduce_sum(moved * [2.0, 3.0])
    tangent = 1j * (z - c) * np.exp(1j * start)
    expected = 2 * tangent.real + 3 * tangent.imag
    np.testing.assert_allclose(tape.gradient(total, offset)[:, 0], expected, rtol=1e-9)


def test_sample_is_the_paper_s():
    for seed in range(3):
        labeled, unlabeled = two_moons.sample(seed)
        assert np.bincount(labeled.labels).tolist() == [10, 10]
        assert np.bincount(unlabeled.labels).tolist() == [30, 30]
        points = np.concatenate([labeled.points, unlabeled.points])
        labels = np.concatenate([labeled.labels, unlabeled.labels])
        assert len(np.unique(points, axis=0)) == 80
        # Were a centre wrong, the points would not be at distance 1 from it.
        radius = np.linalg.norm(points - two_moons.CENTRES[labels], axis=1)
        assert abs(radius.mean() - 1) < 0.05 and 0.05 < radius.std() < 0.15
        np.testing.assert_array_equal(two_moons.sample(seed)[0].points, labeled.points)
        assert not np.array_equal(two_moons.sample(seed + 1)[0].points, labeled.points)


def test_rotation_keeps_every_point_on_its_semicircle():
    semicircles = two_moons.moons(200)
    rotation, noise = two_moons.compared(semicircles)["RAT, ε = 0.3 + rotation"]
    assert noise.epsilon == 0.3 and rotation.epsilon == pytest.approx(np.pi / 18)
    moved = rotation.apply(semicircles.points, np.full((200, 1), rotation.epsilon))
    centres = two_moons.CENTRES[semicircles.labels]
    np.testing.assert_allclose(np.linalg.norm(moved - centres, axis=1), 1, atol=1e-5)
    step = np.linalg.norm(moved - semicircles.points, axis=1)
    np.testing.assert_allclose(step, 2 * np.sin(np.pi / 36), atol=1e-5)


def test_command_shows_the_point_of_the_paper(tmp_path):
    output = tmp_path / "figure.png"
    status, out, err = runs.command("rat_tf.moons", f"--output={output}")
    assert (status, err) == (0, "")
    table = dict(re.findall(r"^(\w+, .*?) +(\d+\.\d\d)%$", out, re.MULTILINE))
    assert list(table) == ["VAT, ε = 0.3", "VAT, ε = 0.5", "RAT, ε = 0.3 + rotation"]
    vat3, vat5, rat = map(float, table.values())
    assert rat < min(vat3, vat5) and rat < 1
    height, width, _ = matplotlib.image.imread(output).shape
    assert min(height, width) > 500
    assert os.listdir(tmp_path) == ["figure.png"]


def test_command_refuses_a_missing_folder_in_one_line(tmp_path):
    status, out, err = runs.command("rat_tf.moons", f"--output={tmp_path}/none/figure.png")
    assert (status, out) == (2, "") and len(err.splitlines()) == 1
    assert err.startswith("error: --output") and f"folder '{tmp_path}/none'" in err


@pytest.mark.parametrize("name", ["figure", "figure.docx", ".png", "figure.pgf", "png", ""])
def test_output_that_matplotlib_cannot_write_is_refused(tmp_path, name):
    with pytest.raises(errors.UserError, match=r"--output.*\.pdf, .*\.png"):
        moons.check_output(os.path.join(tmp_path, name))


def test_output_that_can_be_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert moons.check_output("figure.png") == "png"
    assert moons.check_output("./a.b.SVG") == "svg"
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(errors.UserError, match="--output=folder.png"):
        moons.check_output("folder.png")


def test_a_failed_write_leaves_the_old_picture(tmp_path, monkeypatch):
    class FullDisk:
        def savefig(self, path, **_):
            with open(path, "w") as file:
                file.write("half a pict")
            raise OSError(errno.ENOSPC, "no space left on device")

    for name, value in (("train", None), ("error", 0.5), ("panel", None)):
        monkeypatch.setattr(two_moons, name, lambda *_, value=value: value)
    monkeypatch.setattr(moons.plots.moons, "draw", lambda *_: FullDisk())
    output = tmp_path / "figure.png"
    output.write_text("old")
    with pytest.raises(OSError, match="no space"):
        moons.main(str(output), seed=0, iterations=1)
    assert output.read_text() == "old"
