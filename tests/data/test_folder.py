import os

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from rat_tf import config as config_lib
from rat_tf import data as data_lib
from rat_tf import errors
from tests.data import hostile, make


def settings(root, **changes):
    values = {"dataset": f"folder:{root}", "labels": 6, "validation": 0.25}
    return config_lib.Config(**{**values, **changes})


def refused(root, match, **changes):
    with pytest.raises(errors.UserError, match=match):
        data_lib.load(settings(root, **changes))


def test_images_classes_and_parts_are_those_written(tmp_path):
    written = make.folder(tmp_path)
    source = make.source(settings(tmp_path))
    assert source.class_names == ("cat", "dog")
    train = [image for name, image in written.items() if not name.startswith("test")]
    np.testing.assert_array_equal(source.train.images, train)
    np.testing.assert_array_equal(source.train.labels, [0] * 6 + [1] * 6 + [-1] * 5)
    np.testing.assert_array_equal(source.test.labels, [0, 0, 1, 1])


def test_split_of_a_folder(tmp_path):
    make.folder(tmp_path)
    data = data_lib.load(settings(tmp_path))
    assert [len(data.labeled), len(data.validation), len(data.unlabeled)] == [6, 3, 3 + 5]
    everything = data_lib.load(settings(tmp_path, labels=0))
    assert [len(everything.labeled), len(everything.unlabeled)] == [9, 5]


def test_one_image_of_each_class_needs_a_validation_part(tmp_path):
    make.folder(tmp_path, labeled=1)
    refused(tmp_path, "--validation: .*validation/<class>", labels=2)


def test_validation_folder_is_used(tmp_path):
    make.folder(tmp_path)
    image = make.pixels(1, seed=9)[0]
    make.png(os.path.join(tmp_path, "validation/dog/x.png"), image)
    data = data_lib.load(settings(tmp_path, labels=12))
    np.testing.assert_array_equal(data.validation.images, [image])
    np.testing.assert_array_equal(data.validation.labels, [1])
    assert len(data.labeled) == 12


def test_formats(tmp_path):
    make.folder(tmp_path, unlabeled=0)
    image = np.full((6, 6, 3), 120, np.uint8)
    image[:3] = 30
    place = tmp_path / "unlabeled"
    place.mkdir()
    picture = Image.fromarray(image)
    picture.save(place / "a.bmp")
    picture.convert("L").save(place / "a_grey.bmp")
    picture.save(place / "b.gif", save_all=True, append_images=[Image.new("RGB", (6, 6))])
    picture.save(place / "c.JPEG", quality=100)
    picture.save(place / "d.jpg", quality=100)
    found = make.source(settings(tmp_path)).train.images[-5:]
    np.testing.assert_allclose(found.astype(int), np.stack([image] * 5).astype(int), atol=6)


@pytest.mark.parametrize(
    "name, content", [("a.bmp", b"BM" + bytes(20)), ("a.jpg", hostile.jpeg(16, 16)[:40])]
)
def test_half_a_header_is_a_broken_file(tmp_path, name, content):
    make.folder(tmp_path)
    (tmp_path / "unlabeled" / name).write_bytes(content)
    refused(tmp_path, rf"{name}: expected an image, found a broken file \(not a whole PNG")


def test_an_image_size_beyond_memory_is_not_the_fault_of_a_file(tmp_path, monkeypatch):
    make.folder(tmp_path)

    def resize(*_, **__):
        raise tf.errors.ResourceExhaustedError(None, None, "{{node x}} OOM [Op:Resize]")

    monkeypatch.setattr(tf.image, "resize", resize)
    refused(tmp_path, r"--image_size: not enough .* 999×999 pixels \(OOM\)$", image_size=999)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_channels(tmp_path, depth):
    written = make.folder(tmp_path, shape=(6, 6, depth))
    first = written["labeled/cat/0.png"].astype(np.float64)
    colour = make.source(settings(tmp_path)).train.images[0]
    grey = make.source(settings(tmp_path, channels=1)).train.images[0]
    without_alpha = first[..., : depth - 1] if depth in (2, 4) else first
    if depth < 3:
        np.testing.assert_array_equal(grey, without_alpha)
        np.testing.assert_array_equal(colour, np.repeat(without_alpha, 3, axis=-1))
    else:
        np.testing.assert_array_equal(colour, without_alpha)
        luma = without_alpha @ [[0.2989], [0.587], [0.114]]
        np.testing.assert_allclose(grey, luma, atol=1)


def test_mixed_sizes_need_image_size(tmp_path):
    make.folder(tmp_path)
    odd = os.path.join(tmp_path, "unlabeled/odd.png")
    make.png(odd, make.pixels(1, (9, 5, 3))[0])
    refused(tmp_path, r"--image_size: .*0\.png is 6×6 and .*odd\.png is 9×5")
    data = data_lib.load(settings(tmp_path, image_size=4))
    assert data.train.images.shape == (18, 4, 4, 3)
    expected = tf.image.resize(tf.io.decode_png(tf.io.read_file(odd)), [4, 4], antialias=True)
    np.testing.assert_allclose(data.train.images[-1], expected, atol=0.51)


@pytest.mark.parametrize("content", [b"", b"no image", None])
def test_broken_file_is_named_or_skipped(tmp_path, capsys, content):
    make.folder(tmp_path)
    broken = tmp_path / "labeled" / "cat" / "3.png"
    broken.write_bytes(broken.read_bytes()[:60] if content is None else content)
    refused(
        tmp_path, r"cat/3\.png: expected an image, found a broken file \([^{\[]*\); --skip_broken"
    )
    data = data_lib.load(settings(tmp_path, skip_broken=True))
    assert len(data.train) == 16
    err = capsys.readouterr().err
    assert "warning: --skip_broken skipped 1 broken file:\n" in err and "cat/3.png" in err


def test_a_cached_set_does_not_forget_its_broken_files(tmp_path, capsys):
    make.folder(tmp_path / "set")
    (tmp_path / "set" / "labeled" / "cat" / "3.png").write_bytes(b"x")
    os.symlink("nowhere.png", tmp_path / "set" / "unlabeled" / "link.png")
    cached = {"memory_limit_gb": 0, "cache_dir": str(tmp_path / "cache")}
    for _ in range(2):
        assert len(make.source(settings(tmp_path / "set", skip_broken=True, **cached)).train) == 16
        err = capsys.readouterr().err
        assert "skipped 2 broken files:\n" in err and "cat/3.png" in err
        assert "link.png: cannot be read: No such file" in err
    refused(tmp_path / "set", r"cat/3\.png: .*one of at least 2.*--skip_broken", **cached)


def test_many_broken_files_are_counted_and_some_of_them_named(tmp_path, capsys):
    make.folder(tmp_path, unlabeled=0)
    for i in range(25):
        (tmp_path / "unlabeled" / str(i)).mkdir(parents=True)
        (tmp_path / "unlabeled" / str(i) / "x.png").write_bytes(b"x")
    make.source(settings(tmp_path, skip_broken=True))
    text = capsys.readouterr().err.partition("warning: --skip_broken")[2]
    assert "25 broken files:\n" in text and text.count("x.png") == 10
    assert text.endswith("and 15 more\n")


@pytest.mark.parametrize("limit", [4, 0])
@pytest.mark.parametrize("part", ["test", "validation"])
def test_a_part_of_broken_files_alone_is_an_error(tmp_path, part, limit):
    make.folder(tmp_path, test=0)
    for name in ("cat", "dog"):
        (tmp_path / part / name).mkdir(parents=True)
        (tmp_path / part / name / "x.png").write_bytes(b"x")
    where = {"memory_limit_gb": limit, "cache_dir": str(tmp_path / ".cache")}
    message = f"expected images in {part}/, found 2 broken files"
    refused(tmp_path, message, skip_broken=True, **where)


def test_broken_first_file(tmp_path):
    make.folder(tmp_path)
    (tmp_path / "labeled" / "cat" / "0.png").write_bytes(b"x")
    refused(tmp_path, r"cat/0\.png")
    assert len(data_lib.load(settings(tmp_path, skip_broken=True)).train) == 16


@pytest.mark.parametrize(
    "place", ["labeled/.ipynb_checkpoints", "labeled/cat/.thumb", "unlabeled/.cache", "test/.x"]
)
def test_hidden_folders_are_ignored(tmp_path, place):
    make.folder(tmp_path)
    make.png(os.path.join(tmp_path, place, "0.png"), make.pixels(1)[0])
    source = make.source(settings(tmp_path))
    assert (len(source.train), len(source.test), len(source.class_names)) == (17, 4, 2)


def test_a_folder_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    make.folder(tmp_path)
    locked, scan = str(tmp_path / "unlabeled" / "deep"), os.scandir

    def scandir(path):  # as root the tests can read everything
        if path == locked:
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    refused(tmp_path, "unlabeled/deep: cannot read this folder: Permission denied")


def test_unknown_class_folder_is_named(tmp_path):
    make.folder(tmp_path)
    os.rename(tmp_path / "test" / "cat", tmp_path / "test" / "cats")
    refused(tmp_path, r"test/cats: expected a class .*did you mean 'cat'")


def test_nothing_unlabelled_is_an_error_unless_supervised(tmp_path):
    make.folder(tmp_path, unlabeled=0)
    refused(tmp_path, "needs unlabelled images", labels=0)
    data = data_lib.load(settings(tmp_path, labels=0, method="supervised"))
    assert len(data.unlabeled) == 0


def test_larger_than_memory(tmp_path):
    make.folder(tmp_path / "set")
    limited = settings(tmp_path / "set", memory_limit_gb=0, cache_dir=str(tmp_path / "cache"))
    source, expected = make.source(limited), make.source(settings(tmp_path / "set"))
    assert isinstance(source.train.pixels, np.memmap)
    assert source.train.hash == expected.train.hash
    # A changed file is another set: the cache does not hide it.
    make.png(str(tmp_path / "set" / "unlabeled" / "deep" / "0.png"), make.pixels(1, seed=77)[0])
    assert make.source(limited).train.hash != expected.train.hash


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize(
    "name, content",
    [
        ("a.png", hostile.png(10_000, 10_000)),
        ("a.jpg", hostile.jpeg(10_000, 10_000)),
        ("a.gif", hostile.gif([(1, 1), (10_000, 10_000)])),
        ("a.bmp", hostile.bmp(10_000, -10_000)),
    ],
)
def test_an_image_of_too_many_pixels_is_not_decoded(tmp_path, name, content, skip):
    make.folder(tmp_path)
    (tmp_path / "unlabeled" / name).write_bytes(content)
    if skip:
        assert len(data_lib.load(settings(tmp_path, skip_broken=True)).train) == 17
        return
    refused(
        tmp_path,
        rf"{name}: expected an image of at most 33,554,432 pixels, found 100,000,\d\d\d "
        r"\(10000×10000, all frames counted\)",
    )


def test_what_was_found_and_left_out_is_said_once(tmp_path, capsys):
    make.folder(tmp_path, shape=(6, 6, 1))
    (tmp_path / "unlabeled" / "notes.txt").write_bytes(b"x")
    for place in ("labeled/cat/0.png", "unlabeled/deep/0.png", "test/dog/0.png"):
        (tmp_path / place).write_bytes(b"x")
    data_lib.load(settings(tmp_path, skip_broken=True))
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [
        f"{tmp_path}: 12 labelled images of 2 classes in labeled/, 5 unlabelled, 4 for test",
        "files left out, as they are no images that can be read: 1 .txt",
        "all images that were looked at are grey: --channels=1 trains on one channel",
    ]
    text = captured.err.partition("warning: --skip_broken")[2]
    assert "3 broken files:\n" in text
    data_lib.load(settings(tmp_path, skip_broken=True, channels=1))
    assert "grey" not in capsys.readouterr().out
