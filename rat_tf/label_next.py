"""Says which images to label next, or which labels to doubt.

    python -m rat_tf.label_next --run_dir=runs/folder-pets/rat-seed0 --count=100 --output=next
    python -m rat_tf.label_next --run_dir=runs/folder-pets/rat-seed0 --output=next --copy_to=label
    python -m rat_tf.label_next --run_dir=runs/folder-pets/rat-seed0 --output=doubts --suspicious

Of the unlabelled images of the run, those that are uncertain (a small margin between the two most
probable classes) or unstable (another class under transformations of the training's ε), and
different from each other. Writes label_next.csv and label_next.html, a page that opens offline with
each image, what the model thinks and why it is asked for. --copy_to lays the files out in folders
named by the model's guess: move those that are wrong, then add them to the folders of the classes.

--suspicious writes suspicious.csv and suspicious.html instead: labelled images, validation images
included, for which a classifier that was trained without them, on the features of the network,
prefers another class.
"""

from __future__ import annotations

import dataclasses
import os
import shlex

from rat_tf import config as config_lib
from rat_tf import errors, fields, labelling, prediction, training
from rat_tf.config import cli
from rat_tf.data import layouts
from rat_tf.storage import files


@dataclasses.dataclass(frozen=True)
class Flags:
    run_dir: str = fields.path(None, "Run folder of rat_tf.train.")
    output: str = fields.path(None, "Folder for the table and the page.")
    count: int = fields.flag(100, "How many images at most.", fields.at_least(1))
    copy_to: str = fields.path(
        "", "Also copy the images to <this folder>/<the model's guess>/; it must be new or empty."
    )
    suspicious: bool = fields.flag(False, "List labelled images whose label the model doubts.")
    weights: str = fields.flag("best", "Which weights of the run.", choices=config_lib.WEIGHTS)
    stability_draws: int = fields.flag(
        4,
        "Transformations per image for its stability, random and adversarial in turns; 0: none.",
        fields.at_least(0),
    )
    seed: int = fields.flag(0, "Seed of these transformations and of the choice.", fields.seed)
    data_dir: str = fields.path("", "TFDS folder, if it has moved since training.")
    allow_code: bool = fields.flag(False, config_lib.ALLOW_CODE)


def main(flags: Flags) -> list[str]:
    """Returns the names of the images."""
    # The run and its images.
    run = training.run_folder.Run(flags.run_dir)
    config = run.config(**({"data_dir": flags.data_dir} if flags.data_dir else {}))
    if os.path.exists(flags.output) and not os.path.isdir(flags.output):
        raise errors.UserError(f"--output: expected a folder, but {flags.output} is a file")
    files.check_writable(flags.output, "output")
    if flags.copy_to:
        layouts.check_outside(config.dataset, flags.copy_to, "copy_to")
        labelling.layout.check(flags.copy_to)
    cli.import_tensorflow_quietly()
    classifier = prediction.of_run.OfRun(flags.run_dir, flags.weights, flags.allow_code)
    pools = prediction.pools.load(run, config)
    if pools.changed:
        print("the images or labels have changed since this run: using them as they are now")

    # The images to show.
    find = labelling.proposals.doubted if flags.suspicious else labelling.proposals.to_label
    proposals, about = find(classifier, pools, flags)
    if not proposals:
        print(about)
        return []

    # Table, page and copies.
    kind = "suspicious" if flags.suspicious else "label_next"
    os.makedirs(flags.output, exist_ok=True)
    table, page = (os.path.join(flags.output, f"{kind}.{suffix}") for suffix in ("csv", "html"))
    rows = [proposal.row for proposal in proposals]
    files.write(table, files.csv_text(rows, rows[0]))
    title = "Labels to look at" if flags.suspicious else "Images to label next"
    cards = [proposal.card for proposal in proposals]
    about = f"{flags.run_dir}: {about}"
    files.write(page, labelling.page.text(title, about, cards, classifier.class_names))
    print(f"{about}\n{table}\n{page}")
    if flags.copy_to:
        guesses = [proposal.row["class"] for proposal in proposals]
        labelling.layout.copy(flags.copy_to, cards, guesses, classifier.class_names)
        print(f"copies by the model's guess in {flags.copy_to}{_what_then(flags, config)}")
    return [card.name for card in cards]


def _what_then(flags: Flags, config: config_lib.Config) -> str:
    """How the labels come into a folder of the user; other sets cannot be added to."""
    root = layouts.root(config.dataset)
    if not root:
        return ""
    there = shlex.quote(layouts.place_of_classes(root))
    if flags.suspicious:  # the images are there already, with their labels
        return (
            f"; where the guess is right, move the image itself to the folder of its class in\n"
            f"  {there}: {flags.output}/suspicious.csv has its place"
        )
    return (
        f"; move what is wrong there, then\n  cp -r {shlex.quote(flags.copy_to)}/. {there}\n"
        f"and train again with --init_from={shlex.quote(flags.run_dir)}"
    )


if __name__ == "__main__":
    cli.command(lambda parsed: main(parsed.own), Flags)
