"""Lists the flagfiles of the paper's tables; --check tests every flagfile in configs/.

    python -m rat_tf.configs            # the paper's rows, their flagfiles and numbers
    python -m rat_tf.configs --check    # compare them with the paper, train a step with each

--check reads every flagfile, compares its flags with the paper's Tables 1, 2 and 6, builds the
network and trains one step on a few random images of the right shape. This takes minutes; --nosteps
skips the training. configs/ in the current folder is checked or, if there is none, the flagfiles of
the installed package. Exit status: 0 no problem, 1 problems, each with its file and flag, 2 invalid
flags.
"""

from __future__ import annotations

import dataclasses

from rat_tf import experiments, fields
from rat_tf.config import cli


@dataclasses.dataclass(frozen=True)
class Flags:
    check: bool = fields.flag(False, "Test every flagfile in configs/.")
    steps: bool = fields.flag(True, "Train one step with each flagfile.")


def main(check: bool, steps: bool) -> int:
    if not check:
        print(experiments.paper.listing())
        return 0
    cli.import_tensorflow_quietly()
    return 1 if experiments.flagfile_checks.check(steps) else 0


if __name__ == "__main__":
    cli.command(lambda f: main(f.check, f.steps), Flags)
