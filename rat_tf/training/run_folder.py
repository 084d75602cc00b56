"""The folder of a run: its files, and how they are written so that nothing is lost."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import subprocess
import sys

from rat_tf import config as config_lib
from rat_tf import data as data_lib
from rat_tf import errors, files, records, stack
from rat_tf.config import flag_values
from rat_tf.training import intervals

PARTS = ("labeled", "unlabeled", "validation", "test")

RESULT = {
    "best_validation_error": records.share,
    "best_step": records.whole,
    "test_error": records.share_or_null,  # null: the set has no test images
}
RESULT_DETAILS = {
    **dict.fromkeys(("labels", "validation_images", "test_images"), records.whole),
    "split_hash": records.string,
    "seconds": records.seconds,
    **{
        f"{weights}{name}": check
        for weights in ("", "student_", "ema_")
        for name, check in {**RESULT, "last_test_error": records.share_or_null}.items()
        if f"{weights}{name}" not in RESULT
    },
}
DATA = {
    "class_names": records.list_of(records.string, "names"),
    "image_shape": records.expect(
        lambda value: (
            isinstance(value, list)
            and len(value) == 3
            and not any(records.whole(size) or not size for size in value)
        ),
        "height, width and channels",
    ),
    "counts": records.expect(
        lambda value: (
            isinstance(value, dict) and not any(records.whole(value.get(part)) for part in PARTS)
        ),
        f"the numbers of {', '.join(PARTS)} images",
    ),
}


class Run:
    """The paths in a run folder; reads and writes its small files."""

    def __init__(self, folder: str):
        self.folder = folder
        self.flags = os.path.join(folder, "flags.cfg")
        self.environment = os.path.join(folder, "environment.json")
        self.data = os.path.join(folder, "data.json")
        self.split = os.path.join(folder, "split.json")
        self.network = os.path.join(folder, "network.json")
        self.module = os.path.join(folder, "network.py")
        self.metrics = os.path.join(folder, "metrics.csv")
        self.result = os.path.join(folder, "result.json")
        self.summary = os.path.join(folder, "summary.png")
        self.checkpoints = os.path.join(folder, "checkpoints")
        self.best = os.path.join(folder, "best")
        self.tensorboard = os.path.join(folder, "tensorboard")

    def of_worker(self, index: int) -> Run:
        """The folder of a worker of a cluster; the chief, 0, uses the run folder itself."""
        return Run(os.path.join(self.folder, f"worker-{index}")) if index else self

    def check(self, config: config_lib.Config) -> None:
        """Checks that the folder is new, empty, or a run with the same flags."""
        if os.path.exists(self.flags):
            differences = config.differences(self.config())
            if differences:
                raise errors.UserError(
                    f"--run_dir: {self.folder} was made with other flags; use another --run_dir "
                    "or the same flags:\n  " + "\n  ".join(differences)
                )
        elif os.path.exists(self.folder) and (
            not os.path.isdir(self.folder) or os.listdir(self.folder)
        ):
            raise errors.UserError(
                f"--run_dir: expected a new or empty folder, or a run folder, but {self.folder} is "
                "not empty and has no flags.cfg"
            )

    def load(self, config: config_lib.Config) -> data_lib.Data:
        """Loads the images of the run. A resumed run must have the split that it began with.

        Resumed with other images, it would have a split.json that does not describe it.
        """
        if os.path.exists(self.flags):
            config = dataclasses.replace(config, split_file=self.split)
        return data_lib.load(config)

    def create(
        self, config: config_lib.Config, images: data_lib.Data, given: dict | None = None
    ) -> None:
        """Writes the description of the run; flags.cfg is last, as it marks a run folder.

        `given` are the flags by which its command finds it, where it chose the others.
        """
        if os.path.exists(self.flags):
            if data_lib.splits.read(self.split).digest != images.split.digest:
                raise errors.UserError(
                    f"--run_dir: {self.folder} was started with other images or another split "
                    f"than --dataset={config.dataset} gives now; use another --run_dir"
                )
            return
        described = {
            "class_names": images.class_names,
            "image_shape": images.labeled.image_shape,
            "counts": {name: len(getattr(images, name)) for name in PARTS},
        }
        try:
            os.makedirs(self.folder, exist_ok=True)
            files.write(self.environment, json.dumps(_environment(given), indent=2) + "\n")
            files.write(self.data, json.dumps(described, indent=2) + "\n")
            images.split.save(self.split)
            files.write(self.flags, config.flagfile())
        except OSError as error:
            raise errors.UserError(
                f"--run_dir: cannot write to {self.folder}: {error.strerror}"
            ) from None

    @contextlib.contextmanager
    def locked(self):
        """Keeps other processes from training in this folder at the same time."""
        with files.locked(os.path.join(self.folder, "lock")) as held:
            if held is False:
                raise errors.UserError(f"--run_dir: another process is training in {self.folder}")
            yield

    def config(self, **changes) -> config_lib.Config:
        """The config of the run, with some flags changed."""
        if not os.path.exists(self.flags):
            raise errors.UserError(
                f"--run_dir: expected a run folder, but {self.folder} has no flags.cfg"
            )
        return flag_values.config_of_record(self.flags, **{"run_dir": self.folder, **changes})

    def finished(self) -> dict | None:
        """The result of a run that is complete."""
        if not os.path.lexists(self.result):
            return None
        advice = "remove it, and rat_tf.train with the same flags writes it again"
        return records.json_object(self.result, RESULT, RESULT_DETAILS, advice)

    def described(self) -> dict:
        """The classes, the image shape and the numbers of images."""
        return records.json_object(self.data, DATA)

    def commit(self) -> str | None:
        """The commit of the code; None if it is not known."""
        if not os.path.lexists(self.environment):
            return None
        return records.json_object(self.environment, {}).get("git_commit")

    def rows(self) -> list[dict]:
        """The rows of metrics.csv so far, as floats, without blanks."""
        if not os.path.lexists(self.metrics):
            return []
        required = {"step": records.whole, "seconds": records.seconds}
        return records.numbers(self.metrics, required, "remove it to go on without these curves")


def verdict(result: dict) -> str:
    """The result of a run in a line."""
    found = intervals.text(result["best_validation_error"], result.get("validation_images"))
    text = f"validation error {found} at step {result['best_step']}"
    if result["test_error"] is None:
        return f"{text}; no test images"
    test = intervals.text(result["test_error"], result.get("test_images"))
    return f"{text}, test error there {test}"


def own_or_new(folder: str, unlike) -> tuple[str, str]:
    """The run folder of a command that names none: `folder`, `folder`-2, `folder`-3, …

    `unlike` gets a run and says what keeps it from being that of the command, "" if nothing does.
    Returns the first that is, else the first that is new, and what `folder` itself has against it.
    """
    reason, new = "", ""
    for number in itertools.count(1):
        path = folder if number == 1 else f"{folder}-{number}"
        run = Run(path)
        if os.path.exists(run.flags):
            against = unlike(run)
            if not against:
                return path, reason
        elif not os.path.exists(path):
            return new or path, reason
        elif os.path.isdir(path) and not os.listdir(path):
            new, against = new or path, ""
        else:
            against = "it is not a run folder"
        reason = reason or against


def _environment(given: dict | None = None) -> dict:
    """The environment of the run: packages, Python, git commit of the code, devices."""
    import tensorflow as tf  # reports read run folders without it

    return {
        "python": sys.version.split()[0],
        "packages": stack.versions(),
        "git_commit": _git_commit(),
        "devices": [device.name for device in tf.config.list_physical_devices()],
        **({} if given is None else {"given": given}),
    }


def _git_commit() -> str | None:
    """The commit of the code; None without git or a repository."""
    here = os.path.dirname(os.path.abspath(__file__))
    command = ["git", "-C", here, "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return found.stdout.strip() or None
