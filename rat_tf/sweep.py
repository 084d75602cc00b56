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

import collections
import json
import os
import shlex
import signal
import subprocess
import sys
import time

from absl import flags

from rat_tf import errors
from rat_tf.config import cli, flag_values
from rat_tf.data import sources, splits
from rat_tf.experiments import paper, plan
from rat_tf.training import checkpoints, run_folder

TRAIN = ("-m", "rat_tf.train")
FINISHED, PARTIAL, NEW = "finished", "partial", "new"


def define_flags() -> None:
    flags.DEFINE_multi_string("vary", [], "<flag>=<value>|<value>; …, all combinations of them.")
    flags.DEFINE_string("seeds", "", "Number of seeds, 5 for 0 to 4, or a range of them, 3..7.")
    flags.DEFINE_string("paper", "", f"Runs of the paper: {', '.join(paper.TABLES)}.")
    flags.DEFINE_boolean(
        "split_per_seed",
        False,
        "Another labelled split for every seed, --split_seed + seed; the default is one split for "
        "all, as in the code that the paper's baselines come from.",
    )
    flags.DEFINE_string("runs", "runs", "Folder of the run folders.")
    flags.DEFINE_boolean("run", False, "Train what is not finished.")
    flags.DEFINE_boolean("print_commands", False, "Print a command per run that is not finished.")


def state(run: plan.Planned) -> tuple[str, str]:
    """How far a run is, and a word about it; a `UserError` if its folder is no place for it."""
    folder = run_folder.Run(run.config.run_dir)
    folder.check(run.config)
    try:
        result = folder.finished()
    except json.JSONDecodeError as error:
        raise errors.UserError(f"{folder.result}: no JSON ({error}); remove it?") from None
    if result:
        error = result.get("test_error")
        return FINISHED, "" if error is None else f"test error {error:.2%}"
    if not os.path.exists(folder.flags):
        return NEW, ""
    try:
        rows = folder.rows()
    except ValueError as error:
        raise errors.UserError(str(error)) from None
    step = int(rows[-1]["step"]) if rows else 0
    return PARTIAL, f"step {step:,} of {run.config.iterations:,}"


def check(planned: list[plan.Planned]) -> list[tuple[str, str]]:
    """The states of all runs; refuses the sweep if one of the folders is another run's."""
    found, wrong = [], []
    for run in planned:
        try:
            found.append(state(run))
        except errors.UserError as error:
            wrong.append(str(error))
    if wrong:
        raise errors.UserError(
            f"{len(wrong)} of {len(planned)} runs cannot be made; another --runs may help\n"
            + "\n".join(wrong)
        )
    return found


def listing(planned: list[plan.Planned], states: list[tuple[str, str]]) -> str:
    """One line per run: state, folder, the flags in which the runs differ; then what they share."""
    texts = collections.defaultdict(set)
    for run in planned:
        for flag, text in run.flags.items():
            texts[flag].add(text)
    shared = {flag: text for flag, (text, *others) in texts.items() if not others}
    width = max(len(run.config.run_dir) for run in planned)
    lines = []
    for run, (name, detail) in zip(planned, states):
        shown = " ".join(f"--{f}={text}" for f, text in run.flags.items() if f not in shared)
        lines.append(f"{name:<9} {run.config.run_dir:<{width}}  {shown}  {detail}".rstrip())
    if shared:
        flags_text = " ".join(f"--{flag}={text}" for flag, text in shared.items())
        lines.append(f"all whose method has a use for them: {flags_text}")
    counts = collections.Counter(name for name, _ in states)
    summary = ", ".join(f"{counts[name]} {name}" for name in (FINISHED, PARTIAL, NEW))
    return "\n".join([*lines, f"{len(planned)} runs: {summary}"])


def check_data(planned: list[plan.Planned]) -> None:
    """Looks for every data set before the first run; what is to be downloaded comes later."""
    seen = set()
    for run in planned:
        config = run.config
        key = (config.dataset, config.data_dir, config.labels, config.validation, config.stratify)
        if key not in seen and not config.download:
            splits.check(sources.find(config), config)
        seen.add(key)


def execute(run: plan.Planned) -> str | None:
    """Trains one run in a process of its own, its output into <run folder>.log; what went wrong."""
    log = run.config.run_dir + ".log"  # beside the folder, which must be empty at first
    os.makedirs(os.path.dirname(log), exist_ok=True)
    command = [sys.executable, *TRAIN, *run.arguments()]
    with open(log, "ab") as file:
        start = file.tell()
        # A session of its own: Ctrl-C reaches us alone, and we ask the run to save and end.
        process = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
        try:
            status = process.wait()
        except KeyboardInterrupt:
            process.terminate()
            process.wait()
            raise
    if status == 0:
        return None
    with open(log, "rb") as file:
        file.seek(start)
        lines = [line.strip() for line in file.read().decode(errors="replace").splitlines()]
    said = [line for line in lines if line.startswith("error: ")] or list(filter(None, lines))
    return f"exit status {status}: {said[-1] if said else 'no output'} (see {log})"


def execute_all(planned: list[plan.Planned], states: list[tuple[str, str]]) -> dict[str, str]:
    """Trains what is not finished; the failures by run folder."""
    waiting = [run for run, (name, _) in zip(planned, states) if name != FINISHED]
    failures = {}
    for number, run in enumerate(waiting, start=1):
        print(f"[{number}/{len(waiting)}] {run.config.run_dir} … ", end="", flush=True)
        start = time.monotonic()
        failure = execute(run)
        if failure:
            failures[run.config.run_dir] = failure
        said = "FAILED" if failure else state(run)[1]
        print(f"{said}, {time.monotonic() - start:.0f} s", flush=True)
    return failures


def main(planned: list[plan.Planned], run: bool, print_commands: bool) -> int:
    states = check(planned)
    if print_commands:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` is no error
        for one, (name, _) in zip(planned, states):
            if name != FINISHED:
                print(shlex.join(["python", *TRAIN, *one.arguments()]))
        return 0
    print(listing(planned, states))
    if not run:
        print("nothing was run; --run trains them, --print_commands prints their commands")
        return 0
    check_data(planned)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # under nohup it goes on
            signal.signal(number, signal.default_int_handler)
    try:
        failures = execute_all(planned, states)
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from here", file=sys.stderr)
        return checkpoints.STOPPED
    for folder, failure in failures.items():
        print(f"failed: {folder}: {failure}", file=sys.stderr)
    return 1 if failures else 0


def planned_runs(arguments) -> list[plan.Planned]:
    """The runs that a command line asks for."""
    flagfiles, rest = cli.take_flagfiles(arguments)
    present = cli.parse_given(rest)
    values = flags.FLAGS
    given = {
        name: str(getattr(values, name)).lower()
        if plan.FIELDS[name].type == "bool"
        else str(getattr(values, name))
        for name in present
        if name in plan.FIELDS
    }
    varied = plan.axes(values.vary, values.seeds)
    rest = (given, varied, values.runs, values.split_per_seed)
    if not values.paper:
        return plan.plan(flagfiles, *rest)
    if flagfiles:
        raise errors.UserError("--paper brings its own flagfiles; give it or --flagfile")
    return plan.plan_paper(values.paper, *rest)


if __name__ == "__main__":
    define_flags()
    if {"--help", "-help", "-h"} & set(sys.argv[1:]):
        cli.command(main)  # before training's flags are there, which `rat_tf.train --help` lists
        sys.exit()
    flag_values.define_flags(flags.FLAGS)
    with cli.user_errors():
        sys.exit(main(planned_runs(sys.argv[1:]), flags.FLAGS.run, flags.FLAGS.print_commands))
