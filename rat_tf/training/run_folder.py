"""The folder of a run: its files, and how they are written so that nothing is lost."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys

from rat_tf import config as config_lib
from rat_tf import data as data_lib
from rat_tf import errors, stack
from rat_tf.config import flag_values
from rat_tf.data import layouts
from rat_tf.storage import files, records
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
#: What `Run.create` writes before flags.cfg, and what workers of a cluster may write meanwhile.
_CREATED = re.compile(
    r"lock|worker-\d+|(environment|data|split)\.json(\.\w+\.tmp)?|flags\.cfg\.\w+\.tmp"
)
#: What a killed process leaves: of `files.write`, of TensorFlow's checkpoints and their list.
_LEFTOVER = re.compile(r".*\.tmp|\w+-\d+_temp|checkpoint\.tmp\w*")


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
        """Checks that the folder is new, empty, a run with the same flags, or not yet a run."""
        if os.path.lexists(self.flags):
            differences = config.differences(self.config())
            if differences:
                raise errors.UserError(
                    f"--run_dir: {self.folder} was made with other flags; use another --run_dir "
                    "or the same flags:\n  " + "\n  ".join(differences)
                )
        elif os.path.lexists(self.folder) and not self._has_not_begun():
            raise errors.UserError(
                f"--run_dir: expected a new or empty folder, or a run folder, but {self.folder} is "
                "not empty and has no flags.cfg"
            )

    def _has_not_begun(self) -> bool:
        """Whether the folder has nothing but what `create` writes before flags.cfg."""
        if not os.path.isdir(self.folder):
            return False
        names = os.listdir(self.folder)
        ours = any(name.startswith(("lock", "environment.json")) for name in names)
        return not names or ours and all(map(_CREATED.fullmatch, names))

    def load(self, config: config_lib.Config) -> data_lib.Data:
        """Loads the images of the run. A resumed run must have those that it began with."""
        return data_lib.load(config, self._recorded() if os.path.exists(self.flags) else None)

    def held_out(self, config: config_lib.Config, parts=("test", "validation")):
        """The first of these parts that has images: its name and they. Others are not read."""
        return data_lib.held_out(config, self._recorded(), parts)

    def _recorded(self) -> data_lib.Recorded:
        described = self.described()
        split = data_lib.splits.read(self.split, "--run_dir")
        names = tuple(described["class_names"])
        return data_lib.Recorded(self.folder, split, names, described.get("hashes", {}))

    def create(
        self, config: config_lib.Config, images: data_lib.Data, given: dict | None = None
    ) -> None:
        """Writes the description of the run; flags.cfg is last, as it marks a run folder.

        `given` are the flags by which its command finds it, where it chose the others.
        """
        described = {
            "class_names": list(images.class_names),
            "image_shape": list(images.labeled.image_shape),
            "counts": {name: len(getattr(images, name)) for name in PARTS},
            "hashes": {"validation": images.validation.hash, "test": images.test.hash},
        }
        if root := layouts.root(config.dataset):
            described["files"] = layouts.digest(root)
        if os.path.exists(self.flags):
            before = self._recorded()
            now = (images.split.digest, described["hashes"])
            if (before.split.digest, before.hashes or now[1]) != now:
                raise errors.UserError(
                    f"--run_dir: {self.folder} was started with other images or another split "
                    f"than --dataset={config.dataset} gives now; use another --run_dir"
                )
            return
        with self.writing("the description of the run"):
            os.makedirs(self.folder, exist_ok=True)
            files.write(self.environment, json.dumps(_environment(given), indent=2) + "\n")
            files.write(self.data, json.dumps(described, indent=2) + "\n")
            images.split.save(self.split)
            files.write(self.flags, config.flagfile())

    @contextlib.contextmanager
    def writing(self, what: str):
        """Turns a full disk, or a folder that is gone, into a `UserError`; `what` is written."""
        try:
            yield
        except OSError as error:
            raise self.unwritable(what, error.strerror or str(error)) from None

    def unwritable(self, what: str, reason: str) -> errors.UserError:
        if os.path.exists(self.folder) and not os.path.isdir(self.folder):
            return errors.UserError(f"--run_dir: expected a folder, but {self.folder} is a file")
        if "No such file" in reason and not os.path.isdir(self.folder):
            return errors.UserError(
                f"--run_dir: {self.folder} was removed or renamed while it was in use; "
                f"{what} cannot be saved"
            )
        return errors.UserError(
            f"--run_dir: {what} cannot be written to {self.folder}: {reason}. Earlier checkpoints "
            "are intact: when it can be written, the same command resumes."
        )

    @contextlib.contextmanager
    def locked(self):
        """Keeps other processes from training in this folder; removes what dead ones left."""
        with contextlib.ExitStack() as stack:
            with self.writing("the lock"):
                os.makedirs(self.folder, exist_ok=True)
                held = stack.enter_context(files.locked(os.path.join(self.folder, "lock")))
            if held is False:
                raise errors.UserError(f"--run_dir: another process is training in {self.folder}")
            if held:
                self._remove_leftovers()
            yield

    def _remove_leftovers(self) -> None:
        """Removes temporary files, and checkpoints that were not completed: without an index."""
        for folder in filter(os.path.isdir, (self.folder, self.checkpoints, self.best)):
            for name in os.listdir(folder):
                path = os.path.join(folder, name)
                stem, data, _ = path.partition(".data-")
                if data and not os.path.exists(f"{stem}.index"):
                    os.remove(path)
                elif _LEFTOVER.fullmatch(name):
                    shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)

    def config(self, **changes) -> config_lib.Config:
        """The config of the run, with some flags changed."""
        if not os.path.exists(self.flags):
            found = f"but {self.folder} has no flags.cfg"
            if not os.path.exists(self.folder):
                found = f"with flags.cfg, but {self.folder} does not exist"
            raise errors.UserError(f"--run_dir: expected a run folder, {found}")
        return flag_values.config_of_record(self.flags, **{"run_dir": self.folder, **changes})

    def finished(self) -> dict | None:
        """The result of a run that is complete."""
        if not os.path.lexists(self.result):
            return None
        advice = "remove it, and rat_tf.train with the same flags writes it again"
        return records.json_object(self.result, RESULT, RESULT_DETAILS, advice)

    def described(self) -> dict:
        """The classes, the image shape and the numbers of images."""
        optional = {"hashes": records.dictionary, "files": records.string}
        return records.json_object(self.data, DATA, optional)

    def changed(self, config: config_lib.Config) -> str:
        """Whether a user's folder has other files than this finished run has seen, if known."""
        root = layouts.root(config.dataset)
        seen = self.finished() and self.described().get("files")  # older runs have none
        if not (root and seen and os.path.isdir(root)) or layouts.digest(root) == seen:
            return ""
        return f"the files of {config.dataset} have changed since"

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
    if result.get("weights"):
        text += f" of the {result['weights']} weights"
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
