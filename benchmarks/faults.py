"""Kills real commands at random moments and compares what they leave with undisturbed ones.

    python -m benchmarks.faults --kills=100

Runs are killed in start-up, creation, steps, validation, saving and their end with SIGKILL, SIGTERM
and SIGINT, up to eight times each, and started again; every tenth kill hits a new interpreter at
any moment, its imports included. A finished run must have the curves, results, TensorBoard values
and every bit of its checkpoints as the undisturbed one, and no other files. Exports, searches and
sweeps are killed likewise: an export must leave only whole versions, a search the same trials and
best.cfg, a sweep (which is killed with SIGKILL alone, and whose training must end with it) the same
runs. Last, the disk of a run is full at ten levels, which must be one message; when there is space
the run must go on to the same bits. A disk is a tmpfs, or, for users who may not mount one, a limit
on the size of files.

All is random by --seed. Prints a table; exits with status 1 if anything was lost or differs.
"""

from __future__ import annotations

import collections
import dataclasses
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile

# As in the tests: processes that compute alike can be compared bit by bit.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
os.environ.setdefault("TF_NUM_INTEROP_THREADS", "2")

from benchmarks import fault_comparison as comparison
from benchmarks import fault_processes as processes
from rat_tf import fields
from rat_tf.config import cli

COMMON = {
    **{"dataset": "digits", "labels": 20, "network": "tiny", "labeled_batch": 10},
    **{"validate_every": 8, "decay_at": 16, "ema_decay": 0.9},
}
TINY = {**COMMON, "iterations": 24, "checkpoint_every": 4}
TINY |= {"unlabeled_batch": 10, "consistency_rampup": 10}
#: Runs of a search or a sweep; this method's step is traced soonest.
SHORT = {**COMMON, "iterations": 8, "checkpoint_every": 8, "tensorboard": "false"}
SHORT |= {"method": "supervised"}
SEARCH = {**SHORT, "search": "learning_rate=0.001|0.1"}
SWEEP = {**SHORT, "seeds": 2, "run": "true"}
#: Seconds within which a kill follows the beginning of a stage: about as long as it takes.
WITHIN = {"start-up": 2.0, "creation": 0.3, "step": 0.5, "validation": 0.2, "save": 0.1, "end": 1.0}
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
KILLS_OF_A_RUN = 8


@dataclasses.dataclass(frozen=True)
class Flags:
    kills: int = fields.flag(100, "Kills of runs.", fields.at_least(0))
    exports: int = fields.flag(25, "Kills of exports.", fields.at_least(0))
    searches: int = fields.flag(10, "Searches, each killed once.", fields.at_least(0))
    sweeps: int = fields.flag(10, "Sweeps, each killed once.", fields.at_least(0))
    levels: int = fields.flag(10, "Levels at which the disk is full.", fields.at_least(0))
    seed: int = fields.flag(0, "Seed of the moments.", fields.seed)
    folder: str = fields.path("", "Folder to work in; default: a temporary one.")


class Audit:
    """Kills, counts and compares in one folder."""

    def __init__(self, folder: str, seed: int):
        self.folder = pathlib.Path(folder)
        self.random = random.Random(seed)
        self.counts = collections.Counter()
        self.problems: list[str] = []
        self.log = str(self.folder / "log.txt")

    def command(self, module: str, flags: dict, kill=None, **more) -> processes.Ended:
        arguments = [f"--{name}={value}" for name, value in flags.items()]
        return processes.run(module, arguments, self.log, kill, **more)

    def must(self, ended: processes.Ended, what: str, *statuses: int) -> bool:
        """Notes a problem unless the exit status is one of these."""
        good = ended.status in statuses and "Traceback" not in ended.output
        if not good:
            last = ended.output.strip().splitlines()[-3:]
            self.problems.append(f"{what}: exit status {ended.status}: {' | '.join(last)}")
        return good

    def compare(self, what: str, differences) -> None:
        self.problems += [f"{what}: {difference}" for difference in differences]
        kills = sum(count for name, count in self.counts.items() if name.startswith("kills"))
        so_far = f"{kills} kills, {len(self.problems)} problems"
        print(f"{what} compared, {so_far}", file=sys.stderr, flush=True)

    def table(self) -> None:
        for name, count in self.counts.items():
            print(f"{name:<32} {count:>5}")
        for problem in self.problems:
            print(f"problem: {problem}", file=sys.stderr)
        print(f"{'problems':<32} {len(self.problems):>5}")

    def train(self, name: str, kill=None, **more) -> processes.Ended:
        return self.command("rat_tf.train", {**TINY, "run_dir": self.folder / name}, kill, **more)

    # ---- runs

    def reference(self) -> str:
        """An undisturbed run."""
        self.must(self.train("whole"), "the undisturbed run", 0)
        return str(self.folder / "whole")

    def kill_runs(self, kills: int, whole: str) -> None:
        run = left = 0
        while self.counts["kills of runs"] < kills:
            name = f"run-{run}"
            if left == 0:
                left = self.random.randint(1, KILLS_OF_A_RUN)
            ended = self.kill_run(name)
            left -= 1
            if ended.status == 0 or left == 0 or self.counts["kills of runs"] >= kills:
                self.must(self.train(name), f"{name}, started again", 0)
                self.compare(name, comparison.runs(str(self.folder / name), whole))
                shutil.rmtree(self.folder / name)
                self.counts["runs that were killed, compared"] += 1
                run, left = run + 1, 0

    def kill_run(self, name: str) -> processes.Ended:
        number = self.random.choice(SIGNALS)
        new = (self.folder / name / "flags.cfg").exists()
        stages = [stage for stage in WITHIN if not new or stage != "creation"]
        stage = self.random.choice(stages)
        if self.counts["kills of runs"] % 10 == 9:
            stage = "new interpreter"
            flags = {**TINY, "run_dir": self.folder / name}
            arguments = [f"--{key}={value}" for key, value in flags.items()]
            delay = self.random.uniform(0, 12)
            ended = processes.run_new("rat_tf.train", arguments, self.log, number, delay)
        else:
            skipped = 0 if stage in ("start-up", "creation", "end") else self.random.randint(0, 1)
            delay = self.random.uniform(0, WITHIN[stage])
            ended = self.train(name, processes.Kill(stage, number, delay, skipped))
        # A signal before the command has handlers, or after its end, ends Python as usual.
        usual = {signal.SIGKILL: (-9,), signal.SIGTERM: (-15, 75), signal.SIGINT: (-2, 75, 130)}
        if ended.status != 0 and self.must(ended, f"{name}, {stage}", *usual[number]):
            self.counts["kills of runs"] += 1
            self.counts[f"  in {stage}"] += 1
            self.counts[f"  by {signal.Signals(number).name}"] += 1
        return ended

    # ---- exports, searches, sweeps

    def kill_exports(self, kills: int, whole: str) -> None:
        if not kills:
            return
        flags = {"run_dir": whole, "output": self.folder / "alone"}
        undisturbed = self.command("export.savedmodel", flags)
        self.must(undisturbed, "the undisturbed export", 0)
        flags["output"] = self.folder / "model"
        for _ in range(4 * kills):  # some end before the signal
            if self.counts["kills of exports"] >= kills:
                break
            number = self.random.choice(SIGNALS)
            delay = self.random.uniform(0, undisturbed.seconds)
            ended = self.command(
                "export.savedmodel", flags, processes.Kill("export", number, delay)
            )
            if ended.status != 0 and self.must(ended, "export", -number, 128 + number):
                self.counts["kills of exports"] += 1
        self.must(self.command("export.savedmodel", flags), "the last export", 0)
        folders = [str(self.folder / name) for name in ("model", "alone")]
        self.compare("exports", comparison.exports(*folders))

    def kill_searches(self, count: int) -> None:
        self.kill_once_each("rat_tf.tune", "search", "output", SEARCH, count, SIGNALS)

    def kill_sweeps(self, count: int) -> None:
        self.kill_once_each("rat_tf.sweep", "sweep", "runs", SWEEP, count, (signal.SIGKILL,))

    def kill_once_each(self, module, stage, place, flags, count, signals) -> None:
        if not count:
            return
        whole = self.folder / f"{stage}-whole"
        undisturbed = self.command(module, {**flags, place: whole})
        self.must(undisturbed, f"the undisturbed {stage}", 0)
        for index in range(count):
            folder = self.folder / f"{stage}-{index}"
            number = self.random.choice(signals)
            delay = self.random.uniform(0, 0.7 * undisturbed.seconds)  # the stage begins later
            kill = processes.Kill(stage, number, delay)
            ended = self.command(module, {**flags, place: folder}, kill)
            self.must(ended, f"{stage} {index}", 0, -number, 75, 130)
            self.counts[f"kills of {stage}{'e' * (stage == 'search')}s"] += ended.status != 0
            again = self.command(module, {**flags, place: folder})
            self.must(again, f"{stage} {index}, started again", 0)
            compare = comparison.searches if stage == "search" else comparison.sweeps
            self.compare(f"{stage} {index}", compare(str(folder), str(whole)))

    # ---- full disks

    def fill_disks(self, levels: int, whole: str) -> None:
        needed = comparison.size(whole)
        for level in range(levels):
            share = 0.02 + 0.93 * level / max(levels - 1, 1)
            name = f"disk-{level}"
            place = self.folder / name
            place.mkdir()
            mounted = _mount(place, int(share * needed))
            largest = comparison.largest_file(whole)
            limit = 0 if mounted else int(share * largest)
            try:
                ended = self.train(f"{name}/run", limit=limit)
                if self.must(ended, f"{share:.0%} of the disk", 2):
                    said = ended.output.strip().splitlines()[-1]
                    if not said.startswith("error: ") or str(place) not in said:
                        self.problems.append(f"{share:.0%} of the disk: {said}")
                if mounted:
                    _mount(place, 4 * needed, remount=True)
                self.must(self.train(f"{name}/run"), f"{share:.0%}, with space again", 0)
                self.compare(name, comparison.runs(str(place / "run"), whole))
                self.counts[f"full disks ({'tmpfs' if mounted else 'limit of files'})"] += 1
            finally:
                if mounted:
                    subprocess.run(["umount", str(place)], check=False)


def _mount(place: pathlib.Path, size: int, remount: bool = False) -> bool:
    options = f"{'remount,' * remount}size={max(size // 4096, 1) * 4096}"
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def main(parsed: cli.Parsed) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that disks are unmounted
    with tempfile.TemporaryDirectory(prefix="faults-") as temporary:
        audit = Audit(os.path.abspath(parsed.folder) if parsed.folder else temporary, parsed.seed)
        os.makedirs(audit.folder, exist_ok=True)
        whole = audit.reference()
        try:
            audit.kill_runs(parsed.kills, whole)
            audit.fill_disks(parsed.levels, whole)
            audit.kill_exports(parsed.exports, whole)
            audit.kill_searches(parsed.searches)
            audit.kill_sweeps(parsed.sweeps)
        finally:  # also when it is stopped: it takes long
            audit.table()
    return 1 if audit.problems else 0


if __name__ == "__main__":
    cli.command(main, Flags)
