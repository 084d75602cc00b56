"""Trains many runs: every combination of some flags, or a whole table of the paper.

    python -m rat_tf.sweep --flagfile=configs/digits50.cfg --vary="method=rat|vat" --seeds=5
    python -m rat_tf.sweep --flagfile=… --vary="labels=20|50; transforms=noise:1|noise:1,affine:0.3"
    python -m rat_tf.sweep --paper=table5 --dataset=svhn --seeds=5 --data_dir=…

lists the runs, their folders and how far they are. In --vary, flags are separated by semicolons and
values by |; 0..4 are the whole numbers from 0 to 4, 0.1:1:0.1 is start:stop:step and 1e-4:1:log:5
are five numbers with the same factor between them. With --run it trains them, one after
another; those that are finished are skipped, those that were stopped go on, and one that fails does
not stop the rest. With --print_commands it prints a command per unfinished run for others to
execute, four at a time or as an array of jobs:

    python -m rat_tf.sweep … --print_commands > commands.txt
    xargs -d '\\n' -P 4 -I{} sh -c {} < commands.txt
    sbatch --array=1-45 --wrap='eval "$(sed -n ${SLURM_ARRAY_TASK_ID}p commands.txt)"'

All flags of `python -m rat_tf.train` can be given beside and go to every run whose method has a use
for them. Beside --paper, --dataset, --method and --labels select rows. Exit status: 0 all well, 1
some runs failed, 2 a mistake in what was asked for, 75 interrupted by Ctrl-C or SIGTERM (the run
that was on is saved).
"""

from __future__ import annotations

import dataclasses
import shlex
import signal
import sys

from rat_tf import config as config_lib
from rat_tf import errors, experiments, fields
from rat_tf.config import cli
from rat_tf.experiments import paper


@dataclasses.dataclass(frozen=True)
class Flags:
    vary: list[str] = fields.flag(
        (), "<flag>=<value>|<value>; …, all combinations of them. May be given several times."
    )
    seeds: str = fields.flag("", "Number of seeds, 5 for 0 to 4, or a range of them, 3..7.")
    paper: str = fields.flag("", f"Runs of the paper: {', '.join(paper.TABLES)}.")
    split_per_seed: bool = fields.flag(
        False,
        "Another labelled split for every seed, --split_seed + seed; the default is one split for "
        "all, as in the code that the paper's baselines come from.",
    )
    runs: str = fields.flag("runs", "Folder of the run folders.")
    run: bool = fields.flag(False, "Train what is not finished.")
    print_commands: bool = fields.flag(False, "Print a command per run that is not finished.")


def main(planned: list[experiments.plan.Planned], run: bool, print_commands: bool) -> int:
    states = experiments.execution.check(planned)
    if print_commands:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` is no error
        for one, (name, _) in zip(planned, states):
            if name != experiments.execution.FINISHED:
                print(shlex.join(["python", *experiments.execution.TRAIN, *one.arguments()]))
        return 0
    print(experiments.execution.listing(planned, states))
    if not run:
        print("nothing was run; --run trains them, --print_commands prints their commands")
        return 0
    cli.import_tensorflow_quietly()  # for a look at the data
    experiments.execution.check_data(planned)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # under nohup it goes on
            signal.signal(number, signal.default_int_handler)
    try:
        failures = experiments.execution.execute_all(planned, states)
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from here", file=sys.stderr)
        return cli.STOPPED
    for folder, failure in failures.items():
        print(f"failed: {folder}: {failure}", file=sys.stderr)
    return 1 if failures else 0


def planned_runs(parsed: cli.Parsed) -> list[experiments.plan.Planned]:
    """The runs that a command line asks for."""
    given = {
        name: fields.text_of(parsed.values[name])
        for name in parsed.given
        if name in config_lib.FLAGS
    }
    plan = experiments.plan
    rest = (given, plan.axes(parsed.vary, parsed.seeds), parsed.runs, parsed.split_per_seed)
    if not parsed.paper:
        return plan.plan(parsed.flagfiles, *rest)
    if parsed.flagfiles:
        raise errors.UserError("--paper brings its own flagfiles; give it or --flagfile")
    return plan.plan_paper(parsed.paper, *rest)


if __name__ == "__main__":
    cli.command(
        lambda f: main(planned_runs(f), f.run, f.print_commands),
        Flags,
        training=True,
        tensorflow=False,
    )
