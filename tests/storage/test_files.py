"""Folders that one process writes to at a time."""

import os
import threading
import time

import pytest

from rat_tf import errors
from rat_tf.storage import files


def test_a_folder_is_left_by_one_process_before_the_next_and_cleaned_of_what_killed_ones_left(
    tmp_path, capsys
):
    folder, order, inside = tmp_path / "made", [], threading.Event()

    def names():
        return sorted(path.name for path in folder.iterdir())

    def first():
        with files.alone_in(str(folder)):
            (folder / "mine.tmp").mkdir()
            for name in ("report.json", "report.json.0f.tmp"):
                (folder / name).touch()
            inside.set()
            time.sleep(0.3)
            order.append(names())

    thread = threading.Thread(target=first)
    thread.start()
    assert inside.wait(10)
    with files.alone_in(str(folder)):
        order.append(names())
    thread.join()
    assert order == [["mine.tmp", "report.json", "report.json.0f.tmp"], ["mine.tmp", "report.json"]]
    assert f"waiting for another process to unlock {folder}" in capsys.readouterr().err


@pytest.mark.parametrize("path", ["/dev/null", "/dev/stdout", "pipe"])
def test_devices_and_pipes_are_not_replaced(path, tmp_path):
    if path == "pipe":
        path = str(tmp_path / path)
        os.mkfifo(path)
    with pytest.raises(errors.UserError, match="expected the name of a file, found a device or"):
        files.write(path, "text")
    assert not os.path.isfile("/dev/null") and os.listdir(tmp_path) in ([], ["pipe"])
