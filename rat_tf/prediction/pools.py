"""The images of a run as they are now: labelled, unlabelled, validation."""

from __future__ import annotations

import dataclasses

import numpy as np

from rat_tf import config as config_lib
from rat_tf.data import examples, kept, loading, sources, splits
from rat_tf.training import run_folder


@dataclasses.dataclass(frozen=True)
class Pools:
    labeled: examples.Examples
    unlabeled: examples.Examples
    validation: examples.Examples
    changed: bool  # since the run


def load(run: run_folder.Run, config: config_lib.Config) -> Pools:
    """The split of the run or, if images or labels have changed since, one by content.

    By content, validation images of the run stay validation, other images with a label are
    labelled, and those without one are unlabelled.
    """
    config = dataclasses.replace(config, split_file=run.split)
    source = sources.read(loading.find(config), config)
    split, train = splits.read(run.split), source.train
    changed = split.hash != train.hash
    if changed:
        names = np.array(kept.texts(train))
        held = np.isin(names, split.content.get("validation", []))
        has_label = train.labels != examples.UNLABELED
        parts = (has_label & ~held, ~has_label & ~held, has_label & held)
        labeled, unlabeled, validation = map(np.flatnonzero, parts)
    else:
        labeled, unlabeled, validation = split.labeled, split.unlabeled, split.validation
    own = source.validation
    return Pools(
        labeled=train.take(labeled),
        unlabeled=train.take(unlabeled),
        validation=own if len(own) else train.take(validation),
        changed=changed,
    )
