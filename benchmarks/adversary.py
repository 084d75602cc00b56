"""Strength against cost of the searches: `python -m benchmarks.adversary --output=adversary`.

Strength is the mean KL that a search reaches on held-out images, as a training step would search
them (batch statistics, augmentation, batches of --batch), over that of the random transformations
that it starts from. The network is that of a run (--run_dir), or one that is trained here for
--train_steps steps: on the embedded digits or, with --data_dir, on SVHN with 1,000 labels.

Cost is that of a training step over the supervised step on as many images: counted in passes, and
measured as a whole step in `model.fit`, on random pixels of the same size: all take turns in one
process, in random order. The median of the turns' ratios and the distance of their quartiles are
shown. --memory also starts a process for each search, and shows its maximum resident size relative
to that of the supervised step (see benchmarks.step).

The table is printed; --output=<name> also writes <name>.csv and the picture <name>.png.
"""

from __future__ import annotations

import re
import tempfile

import rat_tf  # noqa: F401  (first: it sets the environment that TensorFlow reads at its import)

# isort: split
import numpy as np
import tensorflow as tf
from absl import app, flags

from benchmarks import searches as searches_lib
from benchmarks import steps as lib
from rat_tf import config as config_lib
from rat_tf import data, train
from rat_tf.config import flag_values
from rat_tf.plots import canvas
from rat_tf.storage import files
from rat_tf.training import build, kept_network, run_folder, weights

_RUN = flags.DEFINE_string("run_dir", "", "A run whose network is searched; empty: train one.")
_DATA = flags.DEFINE_string("data_dir", "", "Where TFDS has SVHN; empty: the embedded digits.")
_NETWORK = flags.DEFINE_string("of_network", "wrn-10-1", "Network to train.")
_SIZE = flags.DEFINE_integer("size", 16, "Height and width of the images to train with.")
_STEPS = flags.DEFINE_integer("train_steps", 2000, "Training steps.", lower_bound=1)
_TRANSFORMS = flags.DEFINE_string("searched", "affine:0.3", "The transformations with their ε.")
_IMAGES = flags.DEFINE_integer("images", 500, "Held-out images of the strength.", lower_bound=1)
_DRAWS = flags.DEFINE_integer("draws", 4, "Times that each image is searched.", lower_bound=1)
_BATCH = flags.DEFINE_integer("batch", 50, "Labelled images, and as many unlabelled ones.")
_TURNS = flags.DEFINE_integer("turns", 8, "Turns of each step; 0: no cost.", lower_bound=0)
_MEMORY = flags.DEFINE_boolean("memory", False, "Also measure memory.")
_ONLY = flags.DEFINE_list("only", [], "Parts of names: only searches that have one of them.")
_OUTPUT = flags.DEFINE_string("output", "", "Also write <output>.csv and <output>.png.")


def trained_here(folder: str) -> None:
    """Trains with random transformations: no search is what the network is used to."""
    source = {"dataset": "digits", "labels": 50}
    if _DATA.value:
        source = {"dataset": "svhn", "labels": 1000, "data_dir": _DATA.value}
    count = _STEPS.value
    config = config_lib.Config(
        **source,
        method="random",
        image_size=_SIZE.value,
        network=_NETWORK.value,
        transforms=_TRANSFORMS.value,
        iterations=count,
        validate_every=count,
        checkpoint_every=count,
        consistency_rampup=2 * count // 5,
        decay_at=max(4 * count // 5, 1),
        run_dir=folder,
    )
    train.main(config)


def strengths(folder: str, searches: dict) -> dict[str, tuple[float, float]]:
    """The mean KL of each search and that of random transformations."""
    run = run_folder.Run(folder)
    base = run.config()
    trained = weights.load(run, "best")
    loaded = data.load(base)
    images = (loaded.test if len(loaded.test) else loaded.validation).images[: _IMAGES.value]
    batches = [images[i : i + _BATCH.value] for i in range(0, len(images), _BATCH.value)]
    found = {}
    for name, changes in searches.items():
        changes = searches_lib.flags_of(changes, _TRANSFORMS.value)
        sizes = dict.fromkeys(("labeled_batch", "unlabeled_batch"), _BATCH.value)
        config = flag_values.changed_config(base, epsilon_rampup=0, **sizes, **changes)
        source = kept_network.Kept(run, config, trained.image_shape, len(trained.class_names))
        model = build.method(config, source, trained.preprocessing)
        model.network = trained.network

        @tf.function
        def examine(some, step, model=model):
            examined = model.examine(some, step)
            return [tf.reduce_sum(examined[kind]) for kind in ("adversarial_kl", "random_kl")]

        # One shift serves a batch: few draws of it would say little.
        drawn = enumerate(batches * _DRAWS.value)
        sums = [examine(tf.constant(b), tf.constant(step)) for step, b in drawn]
        adversarial, random = np.sum(sums, axis=0) / (_DRAWS.value * len(images))
        found[name] = (random if config.method == "random" else adversarial, random)
        print(f"{name:45} KL {found[name][0]:.4f}, random {random:.4f}", flush=True)
    return found


def costs(network: str, size: int, searches: dict) -> dict[str, dict]:
    """A step with each search over the supervised step."""
    supervised = lib.Step("supervised", network, size, _BATCH.value)
    changes = {
        name: searches_lib.flags_of(change, _TRANSFORMS.value) for name, change in searches.items()
    }
    steps = {
        n: lib.Step(network=network, size=size, batch=_BATCH.value, **changes[n]) for n in changes
    }
    everything = [supervised, *steps.values()]
    rng = np.random.default_rng(0)
    for _ in range(_TURNS.value):
        for i in rng.permutation(len(everything)):
            everything[i].run()
    ratios = {n: np.divide(step.seconds, supervised.seconds) for n, step in steps.items()}
    found = {name: lib.quartiles("per_supervised", ratio) for name, ratio in ratios.items()}
    if _MEMORY.value:
        of = lib.in_a_process(lib.alone, "supervised", network, size, _BATCH.value, {})
        for name, change in changes.items():
            method = change.pop("method")
            memory = lib.in_a_process(lib.alone, method, network, size, _BATCH.value, change)
            found[name]["memory_per_supervised"] = memory["megabytes"] / of["megabytes"]
    return found


POOLED_FAMILY = "on pooled images"
#: Families of searches in the picture: what their names have, and what of a name labels a point.
FAMILIES = (
    ("none, the paper's", r"(?P<label>random|paper.*)"),
    (POOLED_FAMILY, r"(?P<label>.*(half|quarter) size.*)"),
    ("clean pass without gradient", r"(?P<label>.*), halves apart"),
    ("worst of k for a share", r"worst of (?P<label>\d+), steepest, share (?P<more>.*)"),
    ("worst of k, steepest", r"worst of (?P<label>\d+), steepest"),
    ("worst of k", r"worst of (?P<label>\d+)"),
    ("k and the gradient", r"both, (?P<label>\d+)"),
    ("gradient, steepest", r"(steepest, )?(?P<label>.*)"),
)


def family(search: str) -> tuple[str, str]:
    """The family of a search, and the label of its point."""
    for title, pattern in FAMILIES:
        if match := re.fullmatch(pattern, search):
            return title, " of ".join(match.groupdict().values())
    raise AssertionError  # the last takes all


@canvas.styled
def picture(path: str, rows: list[dict], title: str) -> None:
    """The KL over random's against the cost of a step, measured or, without turns, counted."""
    figure, axis = canvas.subplots(figsize=(9, 6))
    found = {name: [] for name, _ in FAMILIES}
    cost = "per_supervised" if "per_supervised" in rows[0] else "counted"
    for row in rows:
        name, label = family(row["search"])
        found[name].append((row[cost], row["kl_per_random"], label))
    colours = ("0.6", *(f"C{i}" for i in range(len(FAMILIES) - 1)))
    for colour, (name, points) in zip(colours, found.items()):
        if points:
            line = "o-" if name in ("worst of k", "worst of k, steepest") else "o"
            axis.plot(*zip(*(p[:2] for p in points)), line, color=colour, label=name)
        for x, y, label in points:
            if name == POOLED_FAMILY:  # close together, and none of them strong
                continue
            axis.annotate(label, (x, y), (4, 3), textcoords="offset points", fontsize=6)
    how = "" if cost == "per_supervised" else ", by count of passes"
    across = f"training step / supervised step{how}"
    axis.set(xlabel=across, ylabel="KL / KL of random", title=title)
    axis.margins(x=0.12)
    axis.legend(fontsize=8)
    canvas.save(figure, path)


def main(argv) -> None:
    del argv
    tf.get_logger().setLevel("ERROR")
    searches = {
        name: changes
        for name, changes in searches_lib.SEARCHES.items()
        if not _ONLY.value or any(part in name for part in _ONLY.value)
    }
    with tempfile.TemporaryDirectory() as temporary:
        folder = _RUN.value or f"{temporary}/run"
        if not _RUN.value:
            trained_here(folder)
        config = run_folder.Run(folder).config()
        found = strengths(folder, searches)
        shape = weights.load(run_folder.Run(folder), "best").image_shape
    cost = costs(config.network, shape[0], searches) if _TURNS.value else {}
    rows = [
        {
            "search": name,
            "kl": kl,
            "kl_per_random": kl / random,
            "counted": searches_lib.counted(transforms=_TRANSFORMS.value, **searches[name]),
            **cost.get(name, {}),
        }
        for name, (kl, random) in found.items()
    ]
    print(f"\n{'':45}{'KL':>8}{'/random':>9}{'counted':>9}{'/supervised':>16}{'memory':>8}")
    for row in rows:
        text = "{search:45}{kl:8.3f}{kl_per_random:9.2f}{counted:9.2f}"
        if _TURNS.value:
            text += "{per_supervised:9.2f} ±{per_supervised_spread:5.2f}"
            text += "{memory_per_supervised:8.2f}" * _MEMORY.value
        print(text.format(**row))
    if _OUTPUT.value:
        files.write(f"{_OUTPUT.value}.csv", files.csv_text(rows, list(rows[0])))
        title = f"{config.network}, {config.dataset}, {shape[0]}×{shape[1]}, {_TRANSFORMS.value}"
        picture(f"{_OUTPUT.value}.png", rows, title)


if __name__ == "__main__":
    app.run(main)
