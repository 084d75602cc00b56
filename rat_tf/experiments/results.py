"""The results of many runs: read from their folders, grouped by protocol, with their statistics.

Errors are in %. Standard deviations are those of a sample (n - 1). Nothing is dropped silently:
everything that cannot be used is listed among the problems.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence

import numpy as np
import scipy.stats

from rat_tf import config as config_lib
from rat_tf import errors
from rat_tf.experiments import paper
from rat_tf.training import run_folder

PAPER_SEEDS = 5
#: Flags that may differ between runs of one row: the seeds and the machine.
FREE = {"seed", "split_seed"} | {
    field.name
    for field in dataclasses.fields(config_lib.Config)
    if field.metadata["group"] == "Machine"
}


@dataclasses.dataclass(frozen=True)
class Result:
    folder: str
    config: config_lib.Config
    error: float  # in %
    part: str = "test"  # or "validation", if the set has no test images
    commit: str | None = None  # of the code
    labels: int = 0  # 0: unknown
    rows: Sequence[dict] = ()  # of metrics.csv


@dataclasses.dataclass(frozen=True)
class Group:
    """Runs that differ only in seeds and machines."""

    results: tuple[Result, ...]

    @property
    def config(self) -> config_lib.Config:
        return self.results[0].config

    @property
    def labels(self) -> int:
        """The number of labelled images, also with --labels=0."""
        return self.config.labels or self.results[0].labels

    @property
    def part(self) -> str:
        return self.results[0].part

    @property
    def errors(self) -> np.ndarray:
        return np.array([result.error for result in self.results])

    @property
    def mean(self) -> float:
        return float(np.mean(self.errors))

    @property
    def std(self) -> float | None:
        """The sample's standard deviation, √(Σ(x - mean)² / (n - 1)); None for one run."""
        return float(np.std(self.errors, ddof=1)) if len(self.results) > 1 else None


def protocol(config: config_lib.Config) -> dict:
    """All flags that change a result, without the seeds; only transformations in use."""
    found = {
        field.name: getattr(config, field.name)
        for field in dataclasses.fields(config)
        if field.name not in FREE
    }
    found["transforms"] = transforms_text(config)
    return found


def transforms_text(config: config_lib.Config) -> str | None:
    """noise:1,affine:0.6 in a normal form; for VAT only the noise."""
    used = config.used_transforms
    return None if used is None else str(used)


def find(folders) -> list[str]:
    """The run folders among these folders and their subfolders."""
    found = []
    for folder in folders:
        if not os.path.isdir(folder):
            raise errors.UserError(
                f"expected a run folder or a folder of run folders, got {folder!r}"
            )
        below = []
        for path, names, files in os.walk(folder):
            names.sort()
            # Without flags.cfg it is a broken run, which is reported.
            if {"flags.cfg", "result.json", "metrics.csv", "environment.json"} & set(files):
                below.append(path)
                names.clear()
        if not below:
            raise errors.UserError(f"{folder!r} has no run folders: no flags.cfg found")
        found += below
    return list(dict.fromkeys(os.path.normpath(path) for path in found))


def read(folders) -> tuple[list[Result], list[str]]:
    """The results of these run folders, and what is wrong with the others."""
    results, problems = [], []
    for folder in folders:
        run = run_folder.Run(folder)

        def note(error, text="", folder=folder):
            problems.append(f"{folder}: {str(error).removeprefix(folder + os.sep)}{text}")

        try:
            result = _read(run)
        except errors.UserError as error:
            note(error)
            continue
        details = {"commit": (run.commit, "commit not known"), "rows": (run.rows, "no curve drawn")}
        for name, (read_detail, without) in details.items():
            try:
                result = dataclasses.replace(result, **{name: read_detail()})
            except errors.UserError as error:
                note(error, f"; {without}")
        results.append(result)
    return results, problems


def _read(run: run_folder.Run) -> Result:
    if os.path.exists(os.path.join(run.folder, "search.json")):
        raise errors.UserError("the folder of a search; its results are in trials.csv")
    config = run.config()
    result = run.finished()
    if result is None:
        raise errors.UserError(f"not finished, {_progress(run, config)}")
    part = "validation" if result["test_error"] is None else "test"
    error = result["best_validation_error" if part == "validation" else "test_error"]
    return Result(run.folder, config, 100 * error, part=part, labels=result.get("labels", 0))


def _progress(run: run_folder.Run, config: config_lib.Config) -> str:
    rows = run.rows()
    return f"at step {int(rows[-1]['step']) if rows else 0:,} of {config.iterations:,}"


def group(results) -> tuple[list[Group], list[str]]:
    """Groups of one protocol each, and problems with them."""
    found: dict[tuple, dict] = {}
    problems = []
    for result in results:
        members = found.setdefault((result.part, *protocol(result.config).values()), {})
        seeds = (result.config.seed, result.config.split_seed)
        first = members.setdefault(seeds, result)
        if first is not result:
            problems.append(
                f"{result.folder}: skipped, it has the flags and seeds of {first.folder} "
                f"({result.error:.2f} % here, {first.error:.2f} % there)"
            )
    groups = [
        Group(tuple(sorted(members.values(), key=lambda r: (r.config.seed, r.config.split_seed))))
        for members in found.values()
    ]
    for one in groups:
        splits = [result.config.split_seed for result in one.results]
        if len(set(splits)) not in (1, len(splits)):
            problems.append(
                f"{one.results[0].folder} to {one.results[-1].folder}: one row, some runs share a "
                f"split and some do not: --split_seed is {', '.join(map(str, splits))}"
            )
        commits = sorted({str(result.commit) for result in one.results})
        if len(commits) > 1:
            folders = f"{one.results[0].folder} to {one.results[-1].folder}"
            problems.append(f"{folders}: one row, made by different commits: {', '.join(commits)}")
    return groups, problems


def welch(first, second) -> float | None:
    """p of Welch's two-sided t-test for equal means."""
    if min(len(first), len(second)) < 2 or np.ptp(first) == np.ptp(second) == 0:
        return None
    return float(scipy.stats.ttest_ind(first, second, equal_var=False).pvalue)


def welch_paper(errors, row: paper.Row) -> float | None:
    """The same against the paper, from its mean and standard deviation of five seeds."""
    if len(errors) < 2 or row.std is None or row.std == np.ptp(errors) == 0:
        return None
    std = float(np.std(errors, ddof=1))
    found = scipy.stats.ttest_ind_from_stats(
        np.mean(errors), std, len(errors), row.mean, row.std, PAPER_SEEDS, equal_var=False
    )
    return float(found.pvalue)
