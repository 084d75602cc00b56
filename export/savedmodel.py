"""Exports the classifier of a run as a SavedModel that TF Serving, or any TensorFlow, can load.

    python -m export.savedmodel --run_dir=runs/digits50/rat-seed0 --output=models/digits

Writes models/digits/<version>/ (--version, or the next number). The model is compared with the run
before the folder gets its final name: a server that polls the folder never sees half a model, and
an export that fails or is stopped leaves nothing behind.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
import tempfile

import export
from export import protocol, versions
from rat_tf import config as config_lib
from rat_tf import errors, fields, stack, training
from rat_tf.config import cli
from rat_tf.storage import files, records


@dataclasses.dataclass(frozen=True)
class Flags:
    run_dir: str = fields.path(None, "Run folder of rat_tf.train.")
    output: str = fields.path(None, "Folder of the model; every version is a subfolder.")
    weights: str = fields.flag("best", "Which weights to export.", choices=config_lib.WEIGHTS)
    version: int = fields.flag(0, "Version number; 0: the next one.", fields.at_least(0))
    data_dir: str = fields.path("", "TFDS folder, if it has moved since training.")
    allow_code: bool = fields.flag(False, config_lib.ALLOW_CODE)


def main(
    run_dir: str,
    output: str,
    weights: str = "best",
    version: int = 0,
    data_dir: str | None = None,
    allow_code: bool = False,
) -> str:
    """Exports and returns the version's folder."""
    # The run, its weights, and images to compare with.
    run = training.run_folder.Run(run_dir)
    changes = {"data_dir": data_dir} if data_dir else {}
    config = run.config(download=False, **changes)
    if os.path.exists(os.path.join(output, "saved_model.pb")):
        raise errors.UserError(
            f"--output: expected the folder of the model, but {output} is one of its versions; use "
            f"{os.path.dirname(os.path.abspath(output))}"
        )
    cli.import_tensorflow_quietly()
    import tensorflow as tf

    trained = training.weights.load(run, weights, allow_code)
    if trained.image_shape[-1] not in (1, 3):
        raise errors.UserError(
            f"--run_dir: expected images of 1 or 3 channels, but those of {run_dir} have "
            f"{trained.image_shape[-1]}; train with --channels=3"
        )
    images, which = export.verification.images(run, config, trained.image_shape)
    name = os.path.basename(os.path.abspath(output))
    training_flags = records.text(run.flags)

    # A new version, complete and verified before it gets its name.
    failures = (OSError, tf.errors.OpError)
    with versions.new_version(output, version, failures) as (temporary, final):
        # Beside the version: if this process is killed, the next export removes it.
        with tempfile.TemporaryDirectory(prefix=versions.TEMPORARY, dir=output) as folder:
            texts = {
                "class_names.txt": "".join(f"{label}\n" for label in trained.class_names),
                "model_card.md": export.card.text(name, run, config, trained, weights),
                "flags.cfg": training_flags,
                protocol.SERVER_FILE: f"{stack.server()}\n",
            }
            for file_name, text in texts.items():
                files.write(os.path.join(folder, file_name), text)
            assets = [os.path.join(folder, file_name) for file_name in texts]
            module = export.classifier.Classifier(trained, assets)
            tf.saved_model.save(module, temporary, module.signatures())
        export.warmup.write(temporary, name, images)
        difference = export.verification.verify(temporary, trained, images)
    print(f"{weights} weights of {run_dir}, step {trained.step}, exported to {final}")
    print(f"largest difference of a logit from the run on {which}: {difference:.1e}")
    return final


def _stop(number, frame):
    """Exits by an exception, so that the temporary folder is removed."""
    print("stopped; nothing was exported", file=sys.stderr)
    sys.exit(128 + number)


if __name__ == "__main__":
    for _number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(_number, _stop)
    cli.command(lambda f: main(**vars(f.own)), Flags)
