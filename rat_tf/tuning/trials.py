"""The trials of a search as they lie in its folder: results, ranking, table, best.cfg."""

from __future__ import annotations

import glob
import json
import os
import statistics

import tensorflow as tf

from rat_tf import config as config_lib
from rat_tf import files
from rat_tf.plots import search as figure
from rat_tf.training import run_folder

LEAST = 3  # earlier trials to compare with
YOUNG = 1 / 3  # of its steps, in which no trial is judged
LOST = ("diverged", "invalid")  # ends that count as wrong everywhere
SHOWN = 20  # rows of the table in the terminal


def path(folder: str, trial_id: str = "*", file: str = "") -> str:
    return os.path.join(folder, "trials", trial_id, file).rstrip("/")


def outcome(run: run_folder.Run, status: str, shown: dict) -> dict:
    """What trial.json holds of a run: its best validation error, where, and after how many steps.

    A run that has diverged counts as wrong everywhere, whatever it was before.
    """
    rows, errors = run.rows(), _errors(run)
    best_step = min(errors, key=errors.get, default=0)
    return {
        "trial": os.path.basename(run.folder),
        "validation_error": 1.0 if status in LOST else errors.get(best_step, 1.0),
        "best_step": best_step,
        "steps": int(rows[-1]["step"]) if rows else 0,
        "seconds": rows[-1]["seconds"] if rows else 0.0,
        "status": status,
        "values": shown,
    }


def finished(folder: str) -> list[dict]:
    """The outcomes of the trials that have ended, the best first; of equals the earlier first."""
    found = []
    for name in glob.glob(path(glob.escape(folder), file="trial.json")):
        with open(name) as file:
            found.append(json.load(file))
    return sorted(found, key=lambda trial: (trial["validation_error"], int(trial["trial"])))


class StopHopeless(tf.keras.callbacks.Callback):
    """Ends a trial that is clearly worse than earlier ones were at the same step.

    The median stopping rule (Golovin et al., "Google Vizier", 2017): at step t a trial ends if its
    lowest validation error so far is above the median, over the earlier trials that came as far, of
    their mean validation error up to t. A lowest against means: a trial that is merely below
    average goes on. At least three trials must have come as far, and no trial ends in the first
    third of its steps, in which λ and ε are still on their ramps.
    """

    def __init__(self, run: run_folder.Run, folder: str, iterations: int):
        super().__init__()
        self._run = run
        self._folder = folder
        self._first = iterations * YOUNG
        self.stopped = False

    def on_epoch_end(self, epoch, logs=None):
        if "val_error" not in (logs or {}):
            return
        own = _errors(self._run)
        others = [
            _errors(run_folder.Run(path(self._folder, trial["trial"])))
            for trial in finished(self._folder)
            if trial["status"] not in LOST
        ]
        if hopeless(own, others, self._first):
            self.stopped = self.model.stop_training = True


def hopeless(own: dict[int, float], others: list[dict[int, float]], first: float = 0) -> bool:
    """The rule; each trial is its validation errors by step."""
    step = max(own)
    means = [
        statistics.fmean(error for at, error in other.items() if at <= step)
        for other in others
        if other and max(other) >= step
    ]
    if step < first or len(means) < LEAST:
        return False
    return min(own.values()) > statistics.median(means)


def _errors(run: run_folder.Run) -> dict[int, float]:
    """The validation errors of the weights that a run is judged by, at their steps."""
    rows = run.rows()
    name = f"val_{run.config().monitor()}" if rows else ""
    return {int(row["step"]): row[name] for row in rows if name in row}


# ---- what a search leaves


def report(folder: str, settings: str, base: config_lib.Config) -> str:
    """Writes trials.csv, trials.png and best.cfg; returns the table for the terminal."""
    ranked = finished(folder)
    names = list(ranked[0]["values"])
    columns = ["rank", "trial", "validation_error", "best_step", "steps", "seconds", "status"]
    rows = [
        {
            **trial,
            **trial["values"],
            "rank": rank,
            "seconds": f"{trial['seconds']:.1f}",
            "validation_error": f"{trial['validation_error']:.6g}",
        }
        for rank, trial in enumerate(ranked, 1)
    ]
    files.write(os.path.join(folder, "trials.csv"), files.csv_text(rows, [*columns, *names]))
    if ranked[0]["status"] not in LOST:
        text = best_flagfile(folder, ranked, settings, base)
        files.write(os.path.join(folder, "best.cfg"), text)
        figure.trials(os.path.join(folder, "trials.png"), ranked)
    return table(ranked, names)


def best_flagfile(folder: str, ranked: list[dict], settings: str, base: config_lib.Config) -> str:
    best = ranked[0]
    original = best.get("same_as", best["trial"])
    # Hyperband's trials may have had fewer steps than asked for.
    steps = {} if "iterations" in best["values"] else {"iterations": base.iterations}
    config = run_folder.Run(path(folder, original)).config(**steps)
    at = f"step {best['best_step']} of {best['steps']}"
    text = f"# Trial {best['trial']}, the best of {len(ranked)} in {folder} ({settings}):\n"
    text += f"# validation error {best['validation_error']:.2%} at {at}, seed {config.seed}. "
    text += "The lowest of many\n# is lower than what a fresh seed will give; nothing was tested.\n"
    return text + config.flagfile()


def table(ranked: list[dict], names: list[str]) -> str:
    """Ranked trials in columns as wide as they need to be."""
    header = ["rank", "trial", "validation error", "at step", "of", *names, ""]
    lines = [header]
    for rank, trial in enumerate(ranked[:SHOWN], 1):
        note = trial["status"] if trial["status"] != "finished" else ""
        error = f"{trial['validation_error']:.2%}" if note not in LOST else "-"
        values = [str(trial["values"][name]) for name in names]
        steps = [str(trial["best_step"]), str(trial["steps"])]
        lines.append([str(rank), trial["trial"], error, *steps, *values, note])
    widths = [max(map(len, column)) for column in zip(*lines)]
    left = {header.index("transforms")} if "transforms" in names else set()
    left.add(len(header) - 1)
    text = [
        "  ".join(
            c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths))
        )
        for line in lines
    ]
    if len(ranked) > SHOWN:
        text.append(f"… and {len(ranked) - SHOWN} more in trials.csv")
    return "\n".join(line.rstrip() for line in text)
