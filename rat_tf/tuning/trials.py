"""The trials in the folder of a search: results, early stopping, ranking, table, best.cfg."""

from __future__ import annotations

import glob
import os
import statistics

import tensorflow as tf

from rat_tf import config as config_lib
from rat_tf.plots import search as figure
from rat_tf.storage import files, records
from rat_tf.training import intervals, run_folder, weights

MIN_TRIALS = 3  # earlier trials that the median rule needs
GRACE_FRACTION = 1 / 3  # of a trial's steps, in which it is not stopped
FAILED = ("diverged", "invalid")  # their validation error counts as 100 %
OUTCOME = {
    "trial": records.expect(
        lambda v: isinstance(v, str) and v.isdecimal(), "the number of a trial"
    ),
    "values": records.dictionary,
    "validation_error": records.share,
    "best_step": records.whole,
    "steps": records.whole,
    "seconds": records.seconds,
    "status": records.string,
}
TABLE_ROWS = 20  # in the terminal


def path(folder: str, trial_id: str = "*", file: str = "") -> str:
    return os.path.join(folder, "trials", trial_id, file).rstrip("/")


def outcome(run: run_folder.Run, status: str) -> dict:
    """The outcome of a run for trial.json: its lowest validation error, steps and status."""
    rows, errors = run.rows(), _errors(run)
    best_step = min(errors, key=errors.get, default=0)
    if best_step:  # of several with that error the one whose weights the run keeps
        kept = weights.steps(run.best, run.config().monitor())
        tied = [step for step in kept if errors.get(step) == errors[best_step]]
        best_step = max(tied, default=best_step)
    return {
        "validation_error": 1.0 if status in FAILED else errors.get(best_step, 1.0),
        "best_step": best_step,
        "steps": int(rows[-1]["step"]) if rows else 0,
        "seconds": rows[-1]["seconds"] if rows else 0.0,
        "status": status,
    }


def finished(folder: str) -> list[dict]:
    """The outcomes of the trials that have ended, the best first; ties by number."""
    found = []
    for name in glob.glob(path(glob.escape(folder), file="trial.json")):
        advice = "remove it, and the search trains this trial from its last checkpoint"
        found.append(records.json_object(name, OUTCOME, advice=advice))
    return sorted(found, key=lambda trial: (trial["validation_error"], int(trial["trial"])))


class StopHopeless(tf.keras.callbacks.Callback):
    """Stops a trial that is clearly worse than earlier ones were at the same step.

    The median stopping rule (Golovin et al., "Google Vizier", 2017): at step t a trial stops if its
    lowest validation error so far is above the median, over the earlier trials that came as far, of
    their mean validation error up to t. A lowest against means: a trial that is merely below
    average continues. The first third of its steps is excepted, where λ and ε are on their ramps.
    """

    def __init__(self, run: run_folder.Run, folder: str, iterations: int):
        super().__init__()
        self._run = run
        self._folder = folder
        self._first = iterations * GRACE_FRACTION
        self.stopped = False

    def on_epoch_end(self, epoch, logs=None):
        if "val_error" in (logs or {}):
            earlier = [trial for trial in finished(self._folder) if trial["status"] not in FAILED]
            runs = [run_folder.Run(path(self._folder, trial["trial"])) for trial in earlier]
            if hopeless(_errors(self._run), [_errors(run) for run in runs], self._first):
                self.stopped = self.model.stop_training = True


def hopeless(own: dict[int, float], others: list[dict[int, float]], first: float = 0) -> bool:
    """The rule; a trial is given by its validation errors by step."""
    step = max(own)
    means = [
        statistics.fmean(error for at, error in other.items() if at <= step)
        for other in others
        if other and max(other) >= step
    ]
    if step < first or len(means) < MIN_TRIALS:
        return False
    return min(own.values()) > statistics.median(means)


def _errors(run: run_folder.Run) -> dict[int, float]:
    """The validation errors of a run by step, of the weights that --evaluate names."""
    rows = run.rows()
    name = f"val_{run.config().monitor()}" if rows else ""
    return {int(row["step"]): row[name] for row in rows if name in row}


def report(folder: str, settings: str, base: config_lib.Config) -> str:
    """Writes trials.csv, trials.png and best.cfg; returns the table for the terminal."""
    ranked = finished(folder)
    names = list(ranked[0]["values"])
    columns = ["rank", "trial", "validation_error", "best_step", "steps", "seconds", "status"]
    rows = [
        {
            "rank": rank,
            **trial,
            **trial["values"],
            "validation_error": f"{trial['validation_error']:.6g}",
            "seconds": f"{trial['seconds']:.1f}",
        }
        for rank, trial in enumerate(ranked, 1)
    ]
    files.write(os.path.join(folder, "trials.csv"), files.csv_text(rows, [*columns, *names]))
    if ranked[0]["status"] not in FAILED:
        text = best_flagfile(folder, ranked, settings, base)
        files.write(os.path.join(folder, "best.cfg"), text)
        figure.trials(os.path.join(folder, "trials.png"), with_intervals(folder, ranked))
    return table(ranked, names)


def with_intervals(folder: str, ranked: list[dict]) -> list[dict]:
    """The trials with Wilson's 95 % interval of their validation error, `low` and `high`."""
    best = ranked[0].get("same_as", ranked[0]["trial"])
    images = run_folder.Run(path(folder, best)).described()["counts"]["validation"]
    found = []
    for trial in ranked:
        low, high = intervals.wilson(trial["validation_error"], images)
        found.append({**trial, "low": low, "high": high})
    return found


def best_flagfile(folder: str, ranked: list[dict], settings: str, base: config_lib.Config) -> str:
    best = ranked[0]
    # Hyperband's trials may have had fewer steps than asked for.
    steps = {} if "iterations" in best["values"] else {"iterations": base.iterations}
    config = run_folder.Run(path(folder, best.get("same_as", best["trial"]))).config(**steps)
    return (
        f"# Trial {best['trial']}, the best of {len(ranked)} in {folder} ({settings}):\n"
        f"# validation error {best['validation_error']:.2%} at step {best['best_step']} of "
        f"{best['steps']}, seed {config.seed}. The lowest of\n# many is lower than what another "
        f"seed will give. The test set was not used.\n{config.flagfile()}"
    )


def table(ranked: list[dict], names: list[str]) -> str:
    """Ranked trials as aligned columns."""
    lines = [["rank", "trial", "validation error", "at step", "of", *names, ""]]
    for rank, trial in enumerate(ranked[:TABLE_ROWS], 1):
        status = trial["status"].replace("finished", "")
        error = "-" if status in FAILED else f"{trial['validation_error']:.2%}"
        cells = [rank, trial["trial"], error, trial["best_step"], trial["steps"]]
        lines.append([*map(str, cells), *(str(trial["values"][name]) for name in names), status])
    widths = [max(map(len, column)) for column in zip(*lines)]
    text = ["  ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip() for line in lines]
    if len(ranked) > TABLE_ROWS:
        text.append(f"… and {len(ranked) - TABLE_ROWS} more in trials.csv")
    return "\n".join(text)
