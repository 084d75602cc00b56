"""A set of images before any is read, and reports about files that cannot be used."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence

import numpy as np

from rat_tf import errors
from rat_tf.data import examples, options

MAX_NAMED = 10  # files listed in a warning


@dataclasses.dataclass(frozen=True)
class Listing:
    """A set of images before any is read.

    Some images of the training set may have no label. Validation and test sets may be missing.
    """

    class_names: tuple[str, ...]
    image_shape: tuple[int, int, int]
    train: Sequence[examples.Part]
    validation: Sequence[examples.Part] = ()
    test: Sequence[examples.Part] = ()
    notes: tuple[str, ...] = ()  # what was found and what left out, for the user

    @property
    def bytes(self) -> int:
        parts = (*self.train, *self.validation, *self.test)
        return sum(part.size for part in parts) * int(np.prod(self.image_shape))


def leave_out(problems: Sequence[str], config: options.DataOptions) -> None:
    """Reports files that cannot be used: an error, or a warning with --skip_broken."""
    if problems and not config.skip_broken:
        more = f" (one of at least {len(problems)} such files)" if problems[1:] else ""
        raise errors.UserError(f"{problems[0]}{more}; --skip_broken skips such files")
    if problems:
        named = "\n  ".join(problems[:MAX_NAMED])
        more = f"\n  and {len(problems) - MAX_NAMED} more" if problems[MAX_NAMED:] else ""
        count = f"{len(problems):,} broken file{'s' if problems[1:] else ''}"
        print(f"warning: --skip_broken skipped {count}:\n  {named}{more}", file=sys.stderr)
