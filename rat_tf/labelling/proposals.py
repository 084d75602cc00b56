"""The images that are shown to a person: each a row of the table and a card of the page."""

from __future__ import annotations

import dataclasses
import os

import numpy as np

from rat_tf.data import examples, image_files, kept
from rat_tf.labelling import choice, doubts, page, scan
from rat_tf.prediction import classifier as classifier_lib
from rat_tf.prediction import pools as pools_lib
from rat_tf.prediction import table


@dataclasses.dataclass(frozen=True)
class Proposal:
    row: dict
    card: page.Card


def to_label(
    classifier: classifier_lib.Classifier, pools: pools_lib.Pools, flags
) -> tuple[list[Proposal], str]:
    """Unlabelled images to label next, and a sentence about them.

    Images of which a copy has a label are not asked for again.
    """
    known = {*kept.texts(pools.labeled), *kept.texts(pools.validation)}
    new = [name not in known for name in kept.texts(pools.unlabeled)]
    pool = pools.unlabeled.take(np.flatnonzero(new))
    if not len(pool):
        return [], "all images have a label: nothing to label next"
    draws = flags.stability_draws
    found = scan.scan(classifier, pool, draws, flags.seed)
    scored = choice.scores(found.probabilities, found.stability)
    chosen = choice.choose(scored, found.features, flags.count, flags.seed)
    some = pool.take(chosen.rows)
    probabilities = found.probabilities[chosen.rows]
    stability = None if found.stability is None else found.stability[chosen.rows]
    names = classifier.class_names
    proposals = []
    for i, row in enumerate(table.rows(some.names, names, probabilities, stability)):
        size = int(chosen.group_sizes[i])
        stays = None if stability is None else float(stability[i])
        why = choice.why(probabilities[i], stays, draws, size, names)
        row |= {"score": f"{scored[chosen.rows[i]]:.6f}", "group_size": size, "why": why}
        proposals.append(Proposal(row, page.Card(*_image(some, i), probabilities[i], why)))
    return proposals, (
        f"{len(proposals)} of {len(pool):,} unlabelled images, uncertain or unstable and different "
        "from each other, the least sure first."
    )


def doubted(
    classifier: classifier_lib.Classifier, pools: pools_lib.Pools, flags
) -> tuple[list[Proposal], str]:
    """Labelled images whose label is doubted, and a sentence about them."""
    parts = [part for part in (pools.labeled, pools.validation) if len(part)]
    features = np.concatenate([scan.scan(classifier, part).features for part in parts])
    labels = np.concatenate([part.labels for part in parts])
    names = classifier.class_names
    found = doubts.find(features, labels, len(names), flags.seed)
    where = [(part, i) for part in parts for i in range(len(part))]
    proposals = []
    for row, probabilities in zip(found.rows[: flags.count], found.probabilities):
        part, i = where[row]
        best, label = int(probabilities.argmax()), int(labels[row])
        why = (
            f"labelled {names[label]} ({probabilities[label]:.0%}), but it looks like the images "
            f"of {names[best]} ({probabilities[best]:.0%})"
        )
        name, image = _image(part, i)
        entry = {
            "file": name,
            "label": names[label],
            "class": names[best],
            "probability": f"{probabilities[best]:.6f}",
            "label_probability": f"{probabilities[label]:.6f}",
        }
        card = page.Card(name, image, probabilities, why, names[label])
        proposals.append(Proposal(entry, card))
    return proposals, (
        f"of {len(labels):,} labelled images {len(found.rows):,} look more like another class"
        + (f"; the {len(proposals)} most doubtful are shown." if proposals else ".")
    )


def _image(found: examples.Examples, i: int) -> tuple[str, np.ndarray]:
    """The name and the pixels of an image: as in its file or, without one, as it is stored."""
    name = found.name(found.rows[i])
    if os.path.isfile(name):
        return name, image_files.read(name)
    return name, found.pixels[found.rows[i]]
