"""Folders as people have them."""

import os

import pytest

from rat_tf import errors
from rat_tf.data import layouts


def make(root, *paths):
    """Empty files; a path that ends in / is a folder."""
    for path in paths:
        place = root / path
        (place if path.endswith("/") else place.parent).mkdir(parents=True, exist_ok=True)
        if not path.endswith("/"):
            place.touch()


def found(root):
    """The files of each part, relative to the root, with the names of their classes."""
    layout, notes = layouts.find(str(root))

    def named(files):
        return {os.path.relpath(file, root): layout.class_names[label] for file, label in files}

    unlabeled = [os.path.relpath(file, root) for file in layout.unlabeled]
    return named(layout.labeled), unlabeled, {k: named(v) for k, v in layout.parts.items()}, notes


def refused(root, match):
    with pytest.raises(errors.UserError, match=match):
        layouts.find(str(root))


@pytest.mark.parametrize("part", ["labeled", "train", "Training", "labelled"])
@pytest.mark.parametrize("pool", ["unlabeled", "unlabelled"])
def test_parts_with_classes(tmp_path, part, pool):
    make(tmp_path, f"{part}/cat/0.jpg", f"{part}/cat/deep/1.PNG", f"{part}/dog/0.webp")
    make(tmp_path, f"{pool}/x.tif", f"{pool}/a/b.bmp", "val/dog/1.jpg", "test/cat/2.jpeg")
    labeled, unlabeled, parts, notes = found(tmp_path)
    assert labeled == {
        f"{part}/cat/0.jpg": "cat",
        f"{part}/cat/deep/1.PNG": "cat",
        f"{part}/dog/0.webp": "dog",
    }
    assert unlabeled == [f"{pool}/a/b.bmp", f"{pool}/x.tif"]
    assert parts == {"validation": {"val/dog/1.jpg": "dog"}, "test": {"test/cat/2.jpeg": "cat"}}
    assert notes == [
        f"{tmp_path}: 3 labelled images of 2 classes in {part}/, 2 unlabelled, 1 for validation, "
        "1 for test"
    ]


def test_classes_alone_and_images_without_one(tmp_path):
    make(tmp_path, "cat/0.jpg", "dog/0.jpg", "dog/1.jpg", "loose.jpg", "test/dog/2.jpg")
    labeled, unlabeled, parts, notes = found(tmp_path)
    assert labeled == {"cat/0.jpg": "cat", "dog/0.jpg": "dog", "dog/1.jpg": "dog"}
    assert unlabeled == ["loose.jpg"] and parts == {"test": {"test/dog/2.jpg": "dog"}}
    assert "3 labelled images of 2 classes in its folders, 1 unlabelled (1 beside" in notes[0]


def test_images_beside_class_folders_are_unlabelled(tmp_path):
    make(tmp_path, "train/cat/0.jpg", "train/dog/0.jpg", "train/a.jpg", "b.jpg", "unlabeled/c.jpg")
    assert found(tmp_path)[1] == ["b.jpg", "train/a.jpg", "unlabeled/c.jpg"]


def test_unlabelled_images_inside_of_the_training_folder(tmp_path):
    make(tmp_path, "train/cat/0.jpg", "train/dog/0.jpg", "train/unlabeled/a.jpg")
    labeled, unlabeled, _, _ = found(tmp_path)
    assert set(labeled.values()) == {"cat", "dog"} and unlabeled == ["train/unlabeled/a.jpg"]
    make(tmp_path, "unlabeled/b.jpg")
    refused(tmp_path, "train/unlabeled: expected unlabelled images in one place")


def test_what_is_left_out_is_counted(tmp_path):
    make(tmp_path, "cat/0.jpg", "dog/0.jpg", "cat/.DS_Store", "dog/Thumbs.db", ".git/x.png")
    make(tmp_path, "cat/a.txt", "dog/b.TXT", "dog/IMG_1.HEIC", "labels.json", "dog/README")
    labeled, _, _, notes = found(tmp_path)
    assert len(labeled) == 2
    assert notes[1:] == [
        "files left out, as they are no images that can be read: 1 .heic, 1 .json, 2 .txt, "
        "2 hidden, 1 without an ending; to use .heic photos, convert them to JPEG"
    ]


def test_folders_without_images_beside_the_parts_are_left_out(tmp_path):
    make(tmp_path, "train/cat/0.jpg", "train/dog/0.jpg", "annotations/a.xml", "runs/x/log.csv")
    assert "1 .csv, 1 .xml" in found(tmp_path)[3][1]


@pytest.mark.parametrize(
    "beside, hint", [("vall", "did you mean 'val'"), ("tests", "did you mean 'test'"), ("cow", "")]
)
def test_images_that_would_be_passed_over(tmp_path, beside, hint):
    make(tmp_path, "train/cat/0.jpg", "train/dog/0.jpg", f"{beside}/a/0.jpg")
    text = f"{beside}: expected images only in .* beside train/, found some in '{beside}'.*{hint}"
    refused(tmp_path, text)


def test_two_names_of_a_part(tmp_path):
    make(tmp_path, "train/cat/0.jpg", "labeled/cat/0.jpg")
    refused(tmp_path, "labeled/ and train/ are two names of the same part")


def test_too_few_classes(tmp_path):
    refused(tmp_path / "nowhere", "no such folder")
    refused(tmp_path, "expected two or more folders of classes in .*, found 0$")
    make(tmp_path, "0.jpg", "set/cat/0.jpg", "set/dog/0.jpg")
    refused(tmp_path, r"found 1 \(set\); did you mean --dataset=folder:.*/set\?")


@pytest.mark.parametrize(
    "name", ["a\nb", "tab\t", "\x1b[31m", b"\xff\xfe".decode(errors="surrogateescape")]
)
def test_a_class_needs_a_name_that_can_be_shown(tmp_path, name):
    make(tmp_path, f"train/{name}/0.png", "train/dog/0.png")
    refused(tmp_path, "expected the name of a class to be printable text, got ")


def test_a_class_without_images(tmp_path):
    make(tmp_path, "cat/0.jpg", "dog/0.jpg", "cow/")
    refused(tmp_path, "cow: expected images of the class 'cow', found none; remove")


def test_parts_inside_of_classes(tmp_path):
    make(tmp_path, "cat/train/0.jpg", "cat/test/1.jpg", "dog/train/0.jpg")
    refused(tmp_path, r"cat/(train|test): expected the parts .* as in .*/(train|test)/cat")


@pytest.mark.parametrize("part", ["test", "validation"])
def test_validation_and_test_images_need_a_class(tmp_path, part):
    make(tmp_path, "cat/0.jpg", "dog/0.jpg", f"{part}/")
    refused(tmp_path, f"{part}: expected images in folders of classes, found none")
    make(tmp_path, f"{part}/cats/0.jpg")
    refused(tmp_path, rf"{part}/cats: expected a class .*\(cat, dog\).*did you mean 'cat'")
    make(tmp_path, f"{part}/loose.jpg")
    refused(tmp_path, rf"{part}/loose\.jpg: expected images in folders named .* unlabeled/")


def test_files_are_in_the_order_of_their_paths(tmp_path):
    make(tmp_path, "cat/1.jpg", "cat/0.jpg", "cat-wild/0.jpg", "dog/0.jpg")
    layout, _ = layouts.find(str(tmp_path))
    assert [label for _, label in layout.labeled] == [1, 0, 0, 2]
    assert layout.labeled == sorted(layout.labeled)


def test_a_digest_tells_whether_files_were_added_moved_or_replaced(tmp_path):
    make(tmp_path, "labeled/cat/0.png", "labeled/dog/1.png", "unlabeled/2.png", "test/cat/3.png")
    digests = [layouts.digest(str(tmp_path))]

    def after(change):
        change()
        digests.append(layouts.digest(str(tmp_path)))

    os.utime(tmp_path / "labeled/cat/0.png", (0, 0))
    assert layouts.digest(str(tmp_path)) == digests[0]
    after(lambda: make(tmp_path, "labeled/cat/4.png"))
    after(lambda: (tmp_path / "labeled/cat/4.png").rename(tmp_path / "labeled/dog/4.png"))
    after(lambda: (tmp_path / "unlabeled/2.png").write_bytes(b"other"))
    after(lambda: (tmp_path / "test/cat/3.png").unlink() or make(tmp_path, "test/dog/3.png"))
    assert len(set(digests)) == 5


@pytest.mark.parametrize("place", ["pets", "pets/runs/rat-seed0", "other/../pets/x", "link/x"])
def test_nothing_is_written_among_the_images(tmp_path, place):
    for name in ("pets", "other", "pets-2"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "pets")
    dataset = f"folder:{tmp_path / 'pets'}"
    with pytest.raises(errors.UserError, match="--run_dir: expected a folder outside of --dataset"):
        layouts.check_outside(dataset, str(tmp_path / place), "run_dir")
    layouts.check_outside(dataset, str(tmp_path / "pets-2/runs"), "run_dir")
    layouts.check_outside("digits", str(tmp_path / place), "run_dir")


@pytest.mark.parametrize(
    "name, part", [("unlabled", "unlabeled"), ("valid", "validation"), ("tests", "test")]
)
def test_a_class_with_almost_the_name_of_a_part_is_said(tmp_path, name, part):
    make(tmp_path, "cat/0.png", "dog/0.png", "contest/0.png", f"{name}/0.png")
    notes = [note for note in found(tmp_path)[3] if note.startswith("warning")]
    assert notes == [f"warning: {name}/ is taken for a class; if it is no class, call it {part}/"]


def test_a_class_of_photos_that_cannot_be_read(tmp_path):
    make(tmp_path, "cat/0.png", "dog/0.HEIC")
    refused(tmp_path, r"dog: expected images of .*, found none; to use .heic photos, convert them")
