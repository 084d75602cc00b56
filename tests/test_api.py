"""The example of docs/api.md as it stands, and the names that it promises."""

import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import rat_tf
from tests.methods import foreign

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")


def small(shape, weights, classes, classifier_activation):
    """In place of MobileNetV2, whose step takes long to be traced."""
    assert (shape, weights, classes, classifier_activation) == ((96, 96, 3), None, 3, None)
    return foreign.classifier(shape=(6, 6, 3))


def test_the_example_runs_and_its_classifier_is_plain_keras(tmp_path, monkeypatch):
    monkeypatch.setattr(tf.keras.applications, "MobileNetV2", small)
    monkeypatch.chdir(tmp_path)
    dataset = tf.data.Dataset.from_tensor_slices((foreign.IMAGES, foreign.LABELS))
    names = {
        "labeled": dataset.batch(2, drop_remainder=True),
        "unlabeled": tf.data.Dataset.from_tensor_slices(foreign.UNLABELED).batch(3, True),
        "validation": dataset.batch(3),
        "test": dataset.batch(4),
        "images": foreign.IMAGES,
    }
    code = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)[0]
    exec(code.replace("steps_per_epoch=500, epochs=20", "steps_per_epoch=2, epochs=2"), names)
    trainer = names["trainer"]
    assert trainer.optimizer.iterations == 4
    expected = trainer.predict(foreign.IMAGES, verbose=0)
    loaded = tf.keras.models.load_model("pets.keras")
    assert not [each for each in loaded.submodules if type(each).__module__.startswith("rat_tf")]
    np.testing.assert_allclose(loaded(foreign.IMAGES), expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", [*rat_tf.__all__, "__version__"])
def test_the_page_lists_every_name(name):
    assert f"`{name}`" in TEXT or f"`rat_tf.{name}" in TEXT
    assert getattr(rat_tf, name)


def test_importing_the_package_does_not_import_tensorflow():
    code = "import sys, rat_tf; dir(rat_tf); print(rat_tf.__version__, 'tensorflow' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [rat_tf.__version__, "False"]
