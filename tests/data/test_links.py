"""Links in a folder of images."""

import os

import pytest

from rat_tf import errors
from rat_tf.data import links


@pytest.fixture
def folder(tmp_path):
    for name in ("set/train/cat", "set/unlabeled", "outside"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "set/train/cat/0.png").touch()
    (tmp_path / "outside/secret.png").touch()
    (tmp_path / "set-other").mkdir()  # begins with the name of the set
    return tmp_path / "set"


@pytest.mark.parametrize("target", ["../../outside", "../../outside/secret.png", "../../set-other"])
def test_a_link_out_of_the_folder_needs_a_flag(folder, target):
    (folder / "unlabeled" / "link.png").symlink_to(target)
    with pytest.raises(errors.UserError, match="link.png: .* found a link to .*--follow_links"):
        links.check(str(folder), follow=False)
    links.check(str(folder), follow=True)


def test_links_inside_a_linked_folder_and_hidden_ones_are_followed(folder, tmp_path):
    (folder / "unlabeled" / "again").symlink_to("../train/cat")
    (folder / "unlabeled" / "broken.png").symlink_to("nothing.png")
    (folder / ".cache").symlink_to("/")  # hidden folders are no part of the set
    (tmp_path / "alias").symlink_to(folder)
    links.check(str(tmp_path / "alias"), follow=False)
    links.check(os.path.relpath(folder), follow=False)


@pytest.mark.parametrize("follow", [False, True])
def test_a_circle_is_an_error(folder, follow):
    (folder / "unlabeled" / "loop").symlink_to("..")
    with pytest.raises(errors.UserError, match="loop: the link leads to .*, which contains it"):
        links.check(str(folder), follow)


@pytest.mark.parametrize("follow", [False, True])
def test_folders_with_links_to_each_other_are_a_circle(folder, follow):
    (folder / "train/dog").mkdir()
    for name in ("more", "again"):
        (folder / "train/cat" / name).symlink_to("../dog")
        (folder / "train/dog" / name).symlink_to("../cat")
    with pytest.raises(errors.UserError, match="the link leads to .*, which contains it"):
        links.check(str(folder), follow)
