"""Sets on disk: decoded once by whoever comes first, and never taken for what they are not."""

import errno
import fcntl
import os
import threading
import time
import types

import numpy as np
import pytest

from rat_tf import errors
from rat_tf.data import examples, mapped
from rat_tf.storage import files
from tests.data import make

SHAPE = (6, 6, 3)


def part(decoded=None, count=7, key="some", seconds=0.0, skipped=()):
    """A part that notes each time it is decoded."""

    def batches():
        time.sleep(seconds)
        if decoded is not None:
            decoded.append(key)
        yield make.pixels(count), np.arange(count), np.zeros((count, 8), np.uint8)

    return examples.Part(count + len(skipped), batches, lambda: key, list(skipped))


def test_two_at_the_same_time_decode_once(tmp_path):
    decoded, found = [], []

    def run():
        found.append(mapped.read([part(decoded, seconds=0.3)], SHAPE, str(tmp_path)))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert decoded == ["some"]
    for one in found:
        np.testing.assert_array_equal(one.images, make.pixels(7))


def test_a_file_system_without_locks_serves_all_the_same(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    found = mapped.read([part()], SHAPE, str(tmp_path))
    np.testing.assert_array_equal(found.images, make.pixels(7))


@pytest.mark.parametrize("shape, key", [((3, 12, 3), "some"), (SHAPE, "other")])
def test_another_shape_or_key_is_another_set_beside_the_first(tmp_path, shape, key):
    decoded = []
    mapped.read([part(decoded)], SHAPE, str(tmp_path))

    def batches():
        yield make.pixels(7, shape, seed=1), np.arange(7), np.zeros((7, 8), np.uint8)

    other = mapped.read([examples.Part(7, batches, lambda: key)], shape, str(tmp_path))
    np.testing.assert_array_equal(other.images, make.pixels(7, shape, seed=1))
    np.testing.assert_array_equal(
        mapped.read([part(decoded)], SHAPE, str(tmp_path)).images, make.pixels(7)
    )
    assert decoded == ["some"]


@pytest.mark.parametrize(
    "pixels", [make.pixels(7, (6, 6, 1)), make.pixels(5), make.pixels(7).astype(np.int16), None]
)
def test_other_pixels_than_expected_are_decoded_again(tmp_path, pixels):
    decoded = []
    mapped.read([part(decoded)], SHAPE, str(tmp_path))
    (path,) = tmp_path.rglob("pixels.npy")
    if pixels is None:
        path.unlink()
    else:
        np.save(path, pixels)
    found = mapped.read([part(decoded)], SHAPE, str(tmp_path))
    np.testing.assert_array_equal(found.images, make.pixels(7))
    assert len(decoded) == 2


def test_a_changed_pixel_is_noticed_and_decoded_again(tmp_path, caplog):
    decoded = []
    mapped.read([part(decoded)], SHAPE, str(tmp_path))
    (path,) = tmp_path.rglob("pixels.npy")
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    found = mapped.read([part(decoded)], SHAPE, str(tmp_path))
    np.testing.assert_array_equal(found.images, make.pixels(7))
    assert len(decoded) == 2 and "pixels have changed" in caplog.text


def test_what_was_left_out_is_remembered(tmp_path):
    broken = ("a.png: broken", "b.png: brøken")
    for _ in range(2):
        found = mapped.read([part(skipped=broken)], SHAPE, str(tmp_path))
        assert (len(found), found.skipped) == (7, broken)


def test_what_takes_long_to_decode_is_kept_for_the_next_start(tmp_path, monkeypatch, capsys):
    decoded, cache_dir = [], str(tmp_path / "deep" / "cache")

    def read():
        return mapped.remembered([part(decoded, skipped=["a.png: x"])], SHAPE, cache_dir)

    read()
    assert not os.path.exists(cache_dir) and capsys.readouterr().out == ""
    monkeypatch.setattr(mapped, "SLOW", -1)
    slow = read()
    assert "8 images took 0 s to decode; they are kept in" in capsys.readouterr().out
    assert len(decoded) == 2
    again = read()
    assert len(decoded) == 2 and "8 decoded images from" in capsys.readouterr().out
    assert isinstance(again.pixels, np.memmap) and again.skipped == ("a.png: x",)
    np.testing.assert_array_equal(again.images, slow.images)
    assert again.hash == slow.hash


@pytest.mark.parametrize("problem", ["full", "no folder"])
def test_without_a_cache_a_slow_set_is_read_all_the_same(tmp_path, monkeypatch, capsys, problem):
    monkeypatch.setattr(mapped, "SLOW", -1)
    cache_dir = str(tmp_path) if problem == "full" else "/etc/passwd/cache"
    if problem == "full":
        monkeypatch.setattr(mapped.shutil, "disk_usage", lambda _: types.SimpleNamespace(free=9))
    found = mapped.remembered([part()], SHAPE, cache_dir)
    np.testing.assert_array_equal(found.images, make.pixels(7))
    assert "they cannot be kept in" in capsys.readouterr().out


def test_an_interrupted_decode_leaves_nothing(tmp_path):
    def interrupted():
        yield make.pixels(3), np.arange(3), np.zeros((3, 8), np.uint8)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mapped.read([examples.Part(7, interrupted, lambda: "some")], SHAPE, str(tmp_path))
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["lock"]


def test_what_a_killed_process_left_is_removed_unless_it_is_alive(tmp_path):
    dead, alive = (tmp_path / "images" / name for name in ("dead", "alive"))
    for folder in (dead, alive):
        folder.mkdir(parents=True)
        (folder / f"pixels.npy.0{files.TEMPORARY}").write_bytes(b"x")
    with files.locked(str(alive / "lock")) as held:
        assert held
        mapped.read([part()], SHAPE, str(tmp_path))
    left = [path.parent for path in tmp_path.rglob(f"*{files.TEMPORARY}")]
    assert left == [alive]


def test_permissions_are_those_of_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        mapped.read([part()], SHAPE, str(tmp_path / "cache"))
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "cache").rglob("*")}
    assert modes == {0o750, 0o640}


def test_a_file_of_another_user_is_not_taken_for_a_damaged_one(tmp_path, monkeypatch):
    mapped.read([part()], SHAPE, str(tmp_path))

    def load(path, **_):  # as root the tests can read everything
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(np, "load", load)
    with pytest.raises(errors.UserError, match="--cache_dir: .*pixels.npy: Permission denied"):
        mapped.read([part([])], SHAPE, str(tmp_path))


@pytest.mark.parametrize("name", ["/etc/passwd", "/proc/nothing"])
def test_a_folder_that_cannot_be_one_is_an_error(name):
    with pytest.raises(errors.UserError, match=f"--cache_dir: cannot use {name}"):
        mapped.read([part()], SHAPE, name)


def test_full_disk_is_an_error_before_decoding(tmp_path):
    huge = examples.Part(10**9, lambda: pytest.fail("decoded"), lambda: "huge")
    with pytest.raises(errors.UserError, match="--cache_dir: .* GB .* do not fit"):
        mapped.read([huge], (1000, 1000, 3), str(tmp_path))


def test_a_long_decode_shows_where_it_is(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(examples, "PROGRESS_INTERVAL", 0)
    mapped.read([part(), part()], SHAPE, str(tmp_path))
    assert "read 7 of 14 images" in capsys.readouterr().err
