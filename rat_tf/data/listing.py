"""A set of images before any is read, and what is said of files that cannot be."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from absl import logging

from rat_tf import errors
from rat_tf.data import examples, options

NAMED = 10  # files that a warning names


@dataclasses.dataclass(frozen=True)
class Listing:
    """A set of images of which none is read yet.

    Some images of the training set may have no label. Validation and test sets may be missing.
    """

    class_names: tuple[str, ...]
    image_shape: tuple[int, int, int]
    train: Sequence[examples.Part]
    validation: Sequence[examples.Part] = ()
    test: Sequence[examples.Part] = ()

    @property
    def bytes(self) -> int:
        parts = (*self.train, *self.validation, *self.test)
        return sum(part.size for part in parts) * int(np.prod(self.image_shape))


def leave_out(problems: Sequence[str], config: options.DataOptions) -> None:
    """Reports files that cannot be used: an error, or a warning with --skip_broken."""
    if problems and not config.skip_broken:
        more = f" (one of at least {len(problems)} such files)" if problems[1:] else ""
        raise errors.UserError(f"{problems[0]}{more}; --skip_broken leaves such files out")
    if problems:
        named = "\n  ".join(problems[:NAMED])
        more = f"\n  and {len(problems) - NAMED} more" if problems[NAMED:] else ""
        logging.warning("--skip_broken: files left out: %d\n  %s%s", len(problems), named, more)
