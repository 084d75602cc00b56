"""Predicts the classes of image files, or of the unlabelled images of a run.

    python -m rat_tf.predict --run_dir=runs/folder-pets/rat-seed0 --output=found.csv photos a.jpg
    python -m rat_tf.predict --run_dir=runs/folder-pets/rat-seed0 --output=pool.csv --pool=unlabeled
    python -m rat_tf.predict --model_dir=models/pets --output=predictions.csv photos

Writes a CSV file, UTF-8, with the columns file, class, probability, margin (to the second class)
and stability: the share of some transformations of the training's ε, random and adversarial in
turns, under which the class stays. Stability is blank for exported models (--model_dir) and for
methods without transformations. Folders are searched for image files. Images of a set without files
are called by their number, such as digits/train/17. Files that cannot be read are listed at the
end; the exit status is 2 only if none could be read.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import time

import tqdm

from rat_tf import config as config_lib
from rat_tf import errors, fields, prediction, training
from rat_tf.config import cli
from rat_tf.storage import escapes, files

MAX_NAMED = 10  # files that are named at the end


@dataclasses.dataclass(frozen=True)
class Flags:
    run_dir: str = fields.path("", "Run folder of rat_tf.train.")
    model_dir: str = fields.path("", "Folder of export.savedmodel, instead of --run_dir.")
    output: str = fields.path(None, "CSV file to write.")
    pool: str = fields.flag(
        "", "Predict the unlabelled images of the run instead of files.", choices=("", "unlabeled")
    )
    weights: str = fields.flag("best", "Which weights of the run.", choices=config_lib.WEIGHTS)
    stability_draws: int = fields.flag(
        4,
        "Transformations per image for its stability; each second one is adversarial, which takes "
        "about three times as long. 0: none.",
        fields.at_least(0),
    )
    seed: int = fields.flag(0, "Seed of these transformations.", fields.seed)
    data_dir: str = fields.path("", "TFDS folder for --pool, if it has moved since training.")
    allow_code: bool = fields.flag(False, config_lib.ALLOW_CODE)


def main(parsed: cli.Parsed) -> None:
    # What was asked for.
    flags = parsed.own
    check(flags, parsed.rest, parsed.given)
    cli.import_tensorflow_quietly()

    # The classifier and the images.
    if flags.model_dir:
        classifier = prediction.exported.Exported(flags.model_dir)
    else:
        classifier = prediction.of_run.OfRun(flags.run_dir, flags.weights, flags.allow_code)
    problems: list[str] = []
    batches, total = images_of(flags, parsed.rest, classifier, problems)

    # Predictions, written as they come.
    started, done = time.monotonic(), 0
    bar = tqdm.tqdm(total=total, unit=" images", disable=None)
    with files.writing(flags.output) as temporary, bar:
        with open(temporary, "x", encoding="utf-8", errors="backslashreplace") as file:
            file.write(files.csv_text([], prediction.table.COLUMNS))
            for some, images in batches:
                if some:
                    found = classifier.outputs(images, done, flags.stability_draws, flags.seed)
                    columns = (classifier.class_names, found.probabilities, found.stability)
                    rows = prediction.table.rows(some, *columns)
                    file.write(files.csv_text(rows, prediction.table.COLUMNS, header=False))
                done += len(some)
                bar.update(done + len(problems) - bar.n)
        if not done:
            report(problems)
            raise errors.UserError(f"none of the {total} images could be read; nothing was written")
    report(problems)
    seconds = time.monotonic() - started
    print(f"{done:,} images in {seconds:.0f} s; predictions in {flags.output}")


def check(flags: Flags, paths, given) -> None:
    """Everything that can be checked without TensorFlow."""
    if bool(flags.run_dir) == bool(flags.model_dir):
        raise errors.UserError("expected either --run_dir or --model_dir")
    if flags.run_dir:
        training.run_folder.Run(flags.run_dir).config()
    for name in ("pool", "weights", "stability_draws", "seed"):
        if flags.model_dir and name in given:
            raise errors.UserError(f"--{name}: not used with --model_dir, only with --run_dir")
    if flags.pool and paths:
        raise errors.UserError(f"--pool: expected no files, got {' '.join(paths)}")
    if not flags.pool and not paths:
        raise errors.UserError("expected image files or folders, or --pool=unlabeled")
    for path in paths:
        if not os.path.exists(path):
            raise errors.UserError(f"{path}: no such file or folder")
    folder = os.path.dirname(os.path.abspath(flags.output))
    if os.path.isdir(flags.output) or not os.path.isdir(folder):
        raise errors.UserError(
            f"--output: expected a file in a folder that exists, got {flags.output}"
        )
    files.check_writable(folder, "output")


def images_of(flags: Flags, paths, classifier, problems: list[str]):
    """Batches of names and images, and the number of images."""
    size = classifier.batch
    if not flags.pool:
        names = prediction.inputs.find(paths)
        return prediction.inputs.of_files(names, classifier.image_shape, size, problems), len(names)
    run = training.run_folder.Run(flags.run_dir)
    config = run.config(**({"data_dir": flags.data_dir} if flags.data_dir else {}))
    pool = prediction.pools.load(run, config).unlabeled
    if not len(pool):
        raise errors.UserError(f"--pool=unlabeled: {flags.run_dir} has no unlabelled images")
    return prediction.inputs.of_examples(pool, size), len(pool)


def report(problems: list[str]) -> None:
    """Lists files that could not be read."""
    if problems:
        more = len(problems) - MAX_NAMED
        lines = [f"left out {len(problems)} files:"]
        lines += [escapes.printable(problem) for problem in problems[:MAX_NAMED]]
        print("\n  ".join(lines + [f"and {more} more"] * (more > 0)), file=sys.stderr)


if __name__ == "__main__":
    cli.command(main, Flags, positional=True)
