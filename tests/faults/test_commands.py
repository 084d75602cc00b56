"""Every command answers bad input with one message, at once, and leaves nothing behind.

All rows of the table run in this process, which has TensorFlow: a process each would take minutes.
"""

import json
import os
import pathlib
import re
import resource
import signal
import time
import zipfile

import h5py
import numpy as np
import pytest
import tensorflow as tf

from tests import runs
from tests.data import hostile
from tests.faults import table

GOLD = pathlib.Path(__file__).resolve().parent.parent / "golden" / "finished"
SECONDS = 10  # of the processor, most rows take a few hundredths of one
WAITING = 30  # of the clock: other processes may slow an answer down
MEMORY = 1.5e9  # bytes that all rows of a command may add


def picture(path, size=6):
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(len(str(path)))
    pixels = rng.integers(256, size=(size, size, 3), dtype=np.uint8)
    path.write_bytes(tf.io.encode_png(pixels).numpy())
    return path


def classes(folder, *names):
    for name in names or ("cat", "dog"):
        for i in range(6):
            picture(folder / "train" / name / f"{i}.png")
    return folder / "train" / "cat"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Files and folders that are wrong in every way."""
    tmp = tmp_path_factory.mktemp("world")
    (tmp / "self.cfg").write_text(f"--flagfile={tmp}/self.cfg\n")
    (tmp / "one.cfg").write_text(f"--flagfile={tmp}/two.cfg\n")
    (tmp / "two.cfg").write_text(f"--flagfile={tmp}/one.cfg\n")
    for i in range(60):
        (tmp / f"deep{i}.cfg").write_text(f"--flagfile={tmp}/deep{i + 1}.cfg\n")
    (tmp / "binary.cfg").write_bytes(bytes(range(256)))
    (tmp / "latin.cfg").write_bytes("--run_dir=fähre\n".encode("latin-1"))
    (tmp / "zero.cfg").write_bytes(b"--run_dir=a\0b\n")
    (tmp / "words.cfg").write_text("--seed=1\nsome words\n")
    os.mkfifo(tmp / "pipe.cfg")
    (tmp / "none").mkdir()
    (tmp / "none" / "notes.txt").write_text("hello")
    (tmp / "models" / "1").mkdir(parents=True)
    jsons = {"deep": "[" * 100_000, "list": "[1]", "empty": ""}
    jsons["index"] = '{"hash": "x", "validation": [], "labeled": [1.5], "unlabeled": []}'
    for name, text in jsons.items():
        (tmp / f"{name}.json").write_text(text)
    os.mkfifo(classes(tmp / "pipes") / "pipe.png")
    (classes(tmp / "device") / "null.png").symlink_to("/dev/null")
    (classes(tmp / "leaving") / "away.png").symlink_to(picture(tmp / "away.png"))
    (classes(tmp / "circle") / "round").symlink_to("..")
    classes(tmp / "lines", "cat", "d\nog")
    classes(tmp / "latin", "cat", b"\xff\xfe".decode(errors="surrogateescape"))
    (classes(tmp / "broken") / "broken.png").write_bytes(b"not an image")
    cut = classes(tmp / "cut") / "cut.png"
    cut.write_bytes(picture(cut).read_bytes()[:60])
    (classes(tmp / "bomb") / "bomb.png").write_bytes(hostile.png(20_000, 20_000))
    picture(classes(tmp / "sizes") / "other.png", 7)
    (classes(tmp / "everywhere") / "root").symlink_to("/")
    models(tmp)
    return tmp


NETWORKS = """
import sys
import tensorflow as tf
layers = tf.keras.layers
def of(*more):
    return tf.keras.Sequential([layers.Input((8, 8, 1)), *more])
def good(shape, classes):
    return of(layers.Flatten(), layers.Dense(4), layers.BatchNormalization(), layers.Dense(classes))
def raises(shape, classes):
    raise RuntimeError("oh")
def leaves(shape, classes):
    sys.exit(0)
def nothing(shape, classes):
    pass
def other(shape, classes):
    return of(layers.Flatten(), layers.Dense(classes + 1))
def softmax(shape, classes):
    return of(layers.Flatten(), layers.Dense(classes, activation="softmax"))
def large(shape, classes):
    return tf.keras.Sequential([layers.Input((9, 9, 3)), layers.Flatten(), layers.Dense(classes)])
"""


def models(tmp):
    """Modules and files of models that are wrong."""
    (tmp / "bad_networks.py").write_text(NETWORKS)
    (tmp / "bad_import.py").write_text("import this_is_not_installed\n")
    (tmp / "none.keras").mkdir()
    os.mkfifo(tmp / "pipe.keras")
    (tmp / "words.keras").write_text("some words")
    layer = {"class_name": "Lambda", "config": {"name": "mine"}}
    configs = {"deep": "[" * 100_000, "list": "[1]"}
    configs["lambda"] = json.dumps({"class_name": "Sequential", "config": {"layers": [layer]}})
    configs["strange"] = json.dumps({"class_name": "X", "module": 3, "config": [1]})
    for name, text in configs.items():
        with zipfile.ZipFile(tmp / f"{name}.keras", "w") as file:
            file.writestr("config.json", text)
    with zipfile.ZipFile(tmp / "without.keras", "w") as file:
        file.writestr("readme.txt", "hello")
    with h5py.File(tmp / "weights.h5", "w") as file:
        file["kernel"] = np.zeros(3)


class Hung(BaseException):
    """No OSError such as TimeoutError: commands take those for bad files."""


def hung(number, frame):
    raise Hung("no answer")


def memory():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def tree(folder):
    return sorted(str(path) for path in folder.rglob("*"))


@pytest.mark.usefixtures("in_the_projects_folder")
@pytest.mark.parametrize("command", sorted({row[0] for row in table.rows()}))
def test_bad_input_is_one_message(command, world, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.syspath_prepend(world)
    signal.signal(signal.SIGALRM, hung)
    held = memory()
    before, wrong = tree(world) + tree(GOLD), []
    for module, arguments, words in table.rows():
        if module != command:
            continue
        given = [a.format(tmp=world, gold=GOLD) for a in arguments.split()]
        began = time.process_time()
        signal.setitimer(signal.ITIMER_REAL, WAITING)  # what hangs is wrong, too
        try:
            status, out, err = runs.command(module, *given)
        except BaseException as error:  # what a user would see as a traceback
            wrong.append(f"{arguments}: {type(error).__name__}: {error}")
            continue
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        seconds = time.process_time() - began
        found = re.search(f"^error: .*{words}", err, re.DOTALL | re.MULTILINE)
        if status != 2 or not found or "Traceback" in err or seconds > SECONDS:
            wrong.append(f"{arguments}: status {status} after {seconds:.1f} s: {err or out}")
    assert not wrong, "\n".join(wrong)
    assert tree(world) + tree(GOLD) == before
    assert memory() - held < MEMORY
