"""Labels chosen by rat_tf.label_next against random ones: `python -m benchmarks.labelling`.

    python -m benchmarks.labelling --output=labelling/digits
    python -m benchmarks.labelling --output=labelling/svhn --dataset=svhn --data_dir=… --seeds=1

The images are written to a folder, as a user has them: a few with labels, a pool without,
validation and test images. Every round trains a classifier (--init_from the last round's), asks for
--count more labels, and moves these files to the folders of their classes, as a person would. The
first round is shared; then one folder gets the labels that label_next asks for, the other random
ones.

Writes to --output: the runs, results.csv, table.md and labelling.png. The same command continues
after an interruption.
"""

from __future__ import annotations

import json
import os
import shutil

import rat_tf  # noqa: F401  (first: it sets the environment that TensorFlow reads at its import)

# isort: split
import numpy as np
import scipy.stats
import tensorflow as tf
from absl import app, flags

from rat_tf import config as config_lib
from rat_tf import data, label_next, train
from rat_tf.plots import canvas
from rat_tf.storage import files
from rat_tf.training import run_folder

CHOOSERS = ("label_next", "random")
SETS = {
    "digits": {"channels": 1, "transforms": "noise:0.5,affine:0.3", "augment_shift": 1},
    "svhn": {"channels": 3, "transforms": "noise:0.5,affine:0.3", "image_size": 16},
}

_OUTPUT = flags.DEFINE_string("output", None, "Folder for runs and results.", required=True)
_DATASET = flags.DEFINE_enum("dataset", "digits", list(SETS), "The set.")
_DATA_DIR = flags.DEFINE_string("data_dir", "", "TFDS folder of SVHN.")
_POOL = flags.DEFINE_integer("pool", 10_000, "Unlabelled images at most.", lower_bound=1)
_TEST = flags.DEFINE_integer("test", 5_000, "Test images at most.", lower_bound=1)
_FIRST = flags.DEFINE_integer("first", 20, "Labels of the first round.", lower_bound=1)
_COUNT = flags.DEFINE_integer("count", 20, "Labels that each further round adds.", lower_bound=1)
_ROUNDS = flags.DEFINE_integer("rounds", 3, "Rounds after the first.", lower_bound=1)
_SEEDS = flags.DEFINE_integer("seeds", 5, "Seeds, each with a split of its own.", lower_bound=1)
_STEPS = flags.DEFINE_integer("iterations", 300, "Steps of each training.", lower_bound=10)
_NETWORK = flags.DEFINE_string("of_network", "wrn-10-1", "Network.")
_WARM = flags.DEFINE_bool("warm", True, "Start each round from the weights of the last one.")


def write_images(folder: str, seed: int) -> dict[str, str]:
    """The set as files; returns the classes of those in unlabeled/, by their names."""
    truth_path = os.path.join(folder, "truth.json")
    if os.path.exists(truth_path):
        with open(truth_path, encoding="utf-8") as file:
            return json.load(file)
    loaded = data.load(
        config_lib.Config(
            dataset=_DATASET.value, data_dir=_DATA_DIR.value, labels=_FIRST.value,
            split_seed=seed + 1,
        )
    )  # fmt: skip
    rng, truth = np.random.default_rng(seed), {}
    for part, most in (
        ("labeled", None),
        ("unlabeled", _POOL.value),
        ("validation", _POOL.value // 10),
        ("test", _TEST.value),
    ):
        found = getattr(loaded, part)
        for i in rng.permutation(len(found))[:most]:
            name, one = f"{i:05}.png", found.take([i])
            class_name = loaded.class_names[one.labels[0]]
            below = "" if part == "unlabeled" else class_name
            path = os.path.join(folder, part, below, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            tf.io.write_file(path, tf.io.encode_png(one.images[0]))
            if part == "unlabeled":
                truth[name] = class_name
    files.write(truth_path, json.dumps(truth))
    return truth


def trained(folder: str, run_dir: str, seed: int, before: str = "") -> float:
    """Trains a round, if that has not been done; returns its test error."""
    steps = _STEPS.value
    config = config_lib.Config(
        dataset=f"folder:{folder}", labels=0, network=_NETWORK.value, seed=seed,
        iterations=steps, validate_every=steps // 5, consistency_rampup=2 * steps // 5,
        decay_at=4 * steps // 5, tensorboard=False, run_dir=run_dir,
        init_from=before if _WARM.value else "", **SETS[_DATASET.value],
    )  # fmt: skip
    train.main(config)
    tf.keras.backend.clear_session()
    return run_folder.Run(run_dir).finished()["test_error"]


def asked_for(chooser: str, folder: str, run_dir: str, seed: int, number: int) -> list[str]:
    """The names of the next images to label, in unlabeled/."""
    path = os.path.join(run_dir, f"asked_by_{chooser}.json")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    if chooser == "random":
        pool = sorted(os.listdir(os.path.join(folder, "unlabeled")))
        chosen = np.random.default_rng([seed, number]).choice(pool, _COUNT.value, replace=False)
        names = chosen.tolist()
    else:
        settings = label_next.Flags(
            run_dir=run_dir, output=os.path.join(run_dir, "next"), count=_COUNT.value, seed=seed
        )
        names = [os.path.basename(name) for name in label_next.main(settings)]
    files.write(path, json.dumps(names))
    return names


def study(seed: int) -> list[dict]:
    """All rounds of one seed, as rows of the results."""
    root = os.path.join(_OUTPUT.value, f"seed{seed}")
    start = os.path.join(root, "images")
    truth = write_images(start, seed)
    first_run = os.path.join(root, "round0")
    error = trained(start, first_run, seed)
    rows = []
    for chooser in CHOOSERS:
        folder, run_dir = os.path.join(root, f"images_{chooser}"), first_run
        if not os.path.exists(folder):
            shutil.copytree(start, f"{folder}.part", dirs_exist_ok=True)
            os.rename(f"{folder}.part", folder)
            os.remove(os.path.join(folder, "truth.json"))
        row = {"seed": seed, "chooser": chooser, "labels": _FIRST.value}
        rows.append({**row, "error": error})
        for number in range(1, _ROUNDS.value + 1):
            names = asked_for(chooser, folder, run_dir, seed, number)
            for name in names:
                source = os.path.join(folder, "unlabeled", name)
                if os.path.exists(source):
                    shutil.move(source, os.path.join(folder, "labeled", truth[name], name))
            before, run_dir = run_dir, os.path.join(root, f"round{number}_{chooser}")
            labels = _FIRST.value + number * _COUNT.value
            row = {**row, "labels": labels, "error": trained(folder, run_dir, seed, before)}
            rows.append(row)
            print(f"seed {seed}, {labels} labels by {chooser}: {row['error']:.2%}", flush=True)
    return rows


def table(rows: list[dict]) -> str:
    """Mean ± std over the seeds, and of the differences within a seed mean and 95 % interval."""
    lines = ["| labels | " + " | ".join(CHOOSERS) + " | difference, 95 % interval |"]
    lines += ["| --- | --- | --- | --- |"]
    for labels in sorted({row["labels"] for row in rows}):
        errors = [
            np.array([100 * r["error"] for r in rows if (r["labels"], r["chooser"]) == (labels, c)])
            for c in CHOOSERS
        ]
        cells = [f"{e.mean():.1f}" for e in errors]
        if len(errors[0]) > 1:
            cells = [f"{cell} ± {e.std(ddof=1):.1f}" for cell, e in zip(cells, errors)]
        difference = errors[0] - errors[1]
        shown = ""
        if labels != _FIRST.value:
            shown = f"{difference.mean():+.1f}"
            if len(difference) > 1:
                spread = scipy.stats.sem(difference)
                half = spread * scipy.stats.t.ppf(0.975, len(difference) - 1)
                shown += f", {difference.mean() - half:+.1f} to {difference.mean() + half:+.1f}"
        lines.append(f"| {labels} | " + " | ".join([*cells, shown]) + " |")
    return "\n".join(lines) + "\n"


@canvas.styled
def picture(path: str, rows: list[dict]) -> None:
    """Error against labels: every seed thin, the means thick."""
    figure, axis = canvas.subplots(figsize=(7, 4.5))
    for color, chooser in zip(("C0", "C1"), CHOOSERS):
        ours = [row for row in rows if row["chooser"] == chooser]
        labels = sorted({row["labels"] for row in ours})
        curves = []
        for seed in sorted({row["seed"] for row in ours}):
            of_seed = {row["labels"]: 100 * row["error"] for row in ours if row["seed"] == seed}
            curves.append([of_seed[n] for n in labels])
            axis.plot(labels, curves[-1], color=color, alpha=0.25, linewidth=1)
        axis.plot(labels, np.mean(curves, axis=0), "o-", color=color, label=chooser)
    axis.set(xlabel="labels", ylabel="test error in %", xticks=labels, title=_DATASET.value)
    axis.set_ylim(bottom=0)
    axis.legend(title="labels chosen by")
    canvas.save(figure, path)


def main(argv) -> None:
    del argv
    tf.get_logger().setLevel("ERROR")
    os.makedirs(_OUTPUT.value, exist_ok=True)
    rows = []
    for seed in range(_SEEDS.value):
        rows += study(seed)
        files.write(os.path.join(_OUTPUT.value, "results.csv"), files.csv_text(rows, rows[0]))
        files.write(os.path.join(_OUTPUT.value, "table.md"), table(rows))
        picture(os.path.join(_OUTPUT.value, "labelling.png"), rows)
    print(table(rows))


if __name__ == "__main__":
    app.run(main)
