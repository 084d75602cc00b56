"""Lists the flagfiles of the paper's rows; with --check, tries every flagfile under configs/.

    python -m rat_tf.configs            # the paper's rows, their flagfiles and numbers
    python -m rat_tf.configs --check    # and: is each what the paper says, does it train a step

--check reads every flagfile, compares its flags with the paper's Tables 1, 2 and 6, builds the
network and takes one training step on a few random images of the right shape. It takes minutes;
--nosteps leaves the training out. It looks at configs/ in the current folder or, if there is none,
at the flagfiles of the installed package. Exit status: 0 all is well, 1 something is wrong, with
the file and the flag, 2 a mistake in what was asked for.
"""

from __future__ import annotations

import dataclasses

from rat_tf import experiments, fields
from rat_tf.config import cli


@dataclasses.dataclass(frozen=True)
class Flags:
    check: bool = fields.flag(False, "Try every flagfile under configs/.")
    steps: bool = fields.flag(True, "Take a training step with each.")


def main(check: bool, steps: bool) -> int:
    if not check:
        print(experiments.paper.listing())
        return 0
    return 1 if experiments.flagfile_checks.check(steps) else 0


if __name__ == "__main__":
    cli.command(lambda f: main(f.check, f.steps), Flags)
