"""Folders of finished runs, made without training."""

import json
import os
import pathlib

from rat_tf import config as config_lib
from rat_tf.config import flag_values
from rat_tf.experiments import paper, results
from rat_tf.training import run_folder


def result(error, **more):
    """The text of a result.json with all that every run has."""
    found = {"best_validation_error": 0.5, "best_step": 8, "test_error": error, **more}
    return json.dumps(found)


def write(folder, error, config=None, steps=(), **flags):
    """The folder of a finished run, as training leaves it."""
    config = config or config_lib.Config(**{"dataset": "digits", "labels": 50, **flags})
    run = run_folder.Run(str(folder))
    os.makedirs(run.folder)
    pathlib.Path(run.flags).write_text(config.flagfile())
    pathlib.Path(run.result).write_text(result(error))
    lines = "".join(f"{step},{step / 10},{1 / step}\n" for step in steps)
    pathlib.Path(run.metrics).write_text("step,seconds,val_error\n" + lines)
    return run.folder


def write_seeds(folder, method, errors, **flags):
    """Runs of one method with these errors in %, seed after seed."""
    for seed, error in enumerate(errors):
        write(folder / f"{method}{seed}", error / 100, method=method, seed=seed, **flags)


def write_row(folder, row: paper.Row, errors, **flags):
    """Runs of one row of the paper."""
    for seed, error in enumerate(errors):
        config = flag_values.config_of_file(row.path, labels=row.labels, seed=seed, **flags)
        write(folder / row.dataset / row.config / f"{row.labels}-{seed}", error / 100, config)


def row_of(table, config, dataset, labels=None):
    (found,) = (
        r
        for r in paper.TABLES[table].rows
        if (r.config, r.dataset) == (config, dataset) and labels in (None, r.labels)
    )
    return found


def read(folder):
    """The groups of the runs below a folder, and all that is said about them."""
    found, problems = results.read(results.find([str(folder)]))
    groups, odd = results.group(found)
    return groups, problems + odd
