"""Trains many runs: every combination of some flags, or a whole table of the paper.

    python -m rat_tf.sweep --flagfile=configs/digits50.cfg --vary="method=rat|random" --seeds=5
    python -m rat_tf.sweep --flagfile=… --vary="labels=20|50; transforms=noise:1|noise:1,affine:0.3"
    python -m rat_tf.sweep --paper=table5 --dataset=svhn --seeds=5 --data_dir=…

Lists the runs with their folders and states. In --vary, flags are separated by semicolons and
values by |; 0..4 means the whole numbers from 0 to 4, 0.1:1:0.1 means start:stop:step, and
1e-4:1:log:5 means five numbers on a logarithmic scale. --run trains the runs one after another:
finished runs are skipped, stopped runs are resumed, and a failed run does not stop the others.
--print_commands prints one command per unfinished run, to execute four at a time or as a job array:

    python -m rat_tf.sweep … --print_commands > commands.txt
    xargs -d '\\n' -P 4 -I{} sh -c {} < commands.txt
    sbatch --array=1-45 --wrap='eval "$(sed -n ${SLURM_ARRAY_TASK_ID}p commands.txt)"'

All flags of `python -m rat_tf.train` are accepted and passed to every run whose method uses them.
With --paper, the flags --dataset, --method and --labels select rows. Exit status: 0 no failures, 1
some runs failed, 2 invalid flags or data, 75 interrupted by Ctrl-C or SIGTERM (the current run is
saved).
"""

from __future__ import annotations

import dataclasses
import shlex
import signal
import sys

from rat_tf import config as config_lib
from rat_tf import errors, experiments, fields
from rat_tf.config import cli, recipe
from rat_tf.experiments import paper


@dataclasses.dataclass(frozen=True)
class Flags:
    vary: list[str] = fields.flag(
        (), "<flag>=<value>|<value>; …: train all combinations. Can be repeated."
    )
    seeds: str = fields.flag("", "Number of seeds (5 means 0 to 4), or a range such as 3..7.")
    paper: str = fields.flag(
        "", f"Train a table or figure of the paper: {', '.join(paper.TABLES)}."
    )
    split_per_seed: bool = fields.flag(
        False,
        "Use a different labelled split for every seed: --split_seed + seed. By default all seeds "
        "share one split, as in the code of the paper's baselines.",
    )
    runs: str = fields.path("runs", "Folder that contains the run folders.")
    run: bool = fields.flag(False, "Train the unfinished runs.")
    print_commands: bool = fields.flag(False, "Print one command per unfinished run.")


def main(planned: list[experiments.plan.Planned], run: bool, print_commands: bool) -> int:
    states = experiments.execution.check(planned)
    if print_commands:
        for one, (name, _) in zip(planned, states):
            if name != experiments.execution.FINISHED:
                print(shlex.join(["python", *experiments.execution.TRAIN, *one.arguments()]))
        return 0
    print(experiments.execution.listing(planned, states))
    if not run:
        print("nothing was trained; --run trains the runs, --print_commands prints their commands")
        return 0
    cli.import_tensorflow_quietly()  # to check the data
    experiments.execution.check_data(planned)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # ignored under nohup
            signal.signal(number, signal.default_int_handler)
    try:
        failures = experiments.execution.execute_all(planned, states)
    except KeyboardInterrupt:
        print("\ninterrupted; the same command resumes the sweep", file=sys.stderr)
        return cli.STOPPED
    for folder, failure in failures.items():
        print(f"failed: {folder}: {failure}", file=sys.stderr)
    return 1 if failures else 0


def planned_runs(parsed: cli.Parsed) -> list[experiments.plan.Planned]:
    """The runs that a command line describes."""
    given = {
        name: fields.text_of(parsed.values[name])
        for name in parsed.given
        if name in config_lib.FLAGS
    }
    plan = experiments.plan
    varied = plan.axes(parsed.vary, parsed.seeds)
    recipe.check_steps(parsed, "--iterations=<steps>", varied)
    rest = (given, varied, parsed.runs, parsed.split_per_seed)
    if not parsed.paper:
        return plan.plan(parsed.flagfiles, *rest)
    if parsed.flagfiles:
        raise errors.UserError(
            "--paper: cannot be combined with --flagfile; it has its own flagfiles"
        )
    return plan.plan_paper(parsed.paper, *rest)


if __name__ == "__main__":
    cli.command(lambda f: main(planned_runs(f), f.run, f.print_commands), Flags, training=True)
