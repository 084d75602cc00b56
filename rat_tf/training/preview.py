"""A preview of what training sees: labelled, unlabelled, augmented and transformed images."""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf

from rat_tf import adversary, draws
from rat_tf.data import augment, preprocess, streams
from rat_tf.networks import guard
from rat_tf.plots import canvas
from rat_tf.training import build
from rat_tf.training import network as network_lib

SEARCHED = 10 * 96 * 96  # pixels: the search takes 8 kB per pixel in a WRN-28-2


def rows(config, data, columns: int) -> list[tuple]:
    """(title, images to show, names or None) of each line of the sheet."""
    count = min(columns, len(data.labeled))
    pool = data.unlabeled if len(data.unlabeled) else data.labeled
    stream = streams.training(data.labeled, pool, count, columns, config.seed)
    (labeled, labels), unlabeled = next(iter(stream))
    drawable = canvas.drawable(data.class_names, most=15)
    names = [drawable[label] for label in labels.numpy()]
    legend = canvas.legend(data.class_names)

    layer = preprocess.build(config, data)
    preprocessed = layer(unlabeled)
    seed = draws.seed_for(config.seed, 0, "contact sheet")
    augmented = augment.build(config)(preprocessed, seed, draws.Rows(columns))
    space = config.preprocessing
    lines = [
        (
            "labelled, as stored, with their classes" + (legend and f" ({legend})"),
            labeled.numpy(),
            names,
        ),
        ("unlabelled, as stored", unlabeled.numpy(), None),
        (f"the same, preprocessed ({space})", _shown(preprocessed, space), None),
        (
            f"the same, augmented (one draw per {config.augment_granularity})",
            _shown(augmented, space),
            None,
        ),
    ]
    if config.transforms is not None:
        some = preprocessed[: SEARCHED // math.prod(preprocessed.shape[1:3])]
        which = "the same" if len(some) == columns else f"the first {len(some)}, to save memory"
        searched, how = _transformed(config, some, len(data.class_names))
        lines.append((f"{which}, transformed: {how}", _shown(searched, space), None))
    return lines


def _transformed(config, images, num_classes: int) -> tuple[tf.Tensor, str]:
    """The run's search at full ε against the initial network: nothing is trained here."""
    build.check_scale(config, images.shape[1:])
    if not len(images):
        return images, f"{build.transform(config)}, skipped: the images are too large"
    source = network_lib.Source(config, images.shape[1:], num_classes)
    model = build.method(config, source, preprocessing=None)

    def logits(moved, name):
        return guard.call(model.network, moved, update_stats=False)

    how = f"{_named(model.searching)} to the untrained network" if model.search else "random"
    moved = model.perturbed(images, logits, model.searching.share)
    return moved, f"{model.transform}, {how}"


def _named(search: adversary.Search) -> str:
    how = "adversarial"
    if search.kind != "gradient":
        how = f"the most {how} of {search.candidates}"
    return how if search.share == 1 else f"{how} ({search.share:.0%} of the images, others random)"


def _shown(images, space: str) -> np.ndarray:
    """Preprocessed images as uint8; whitened ones each stretched to the full range."""
    images = np.asarray(images)
    if space == "scale":
        low, high = -1.0, 1.0
    else:
        low = images.min(axis=(1, 2, 3), keepdims=True)
        high = images.max(axis=(1, 2, 3), keepdims=True)
    return np.uint8(np.clip((images - low) / np.maximum(high - low, 1e-6), 0, 1) * 255)
