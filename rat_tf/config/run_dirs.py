"""The default name of a run's folder."""

from __future__ import annotations

import os
import re

from rat_tf.config import flag_values, table


def default(
    config: table.Config, flagfile: str = "", varied: dict | None = None, root: str = "runs"
) -> str:
    """<root>/<flagfile>/<method>-seed<seed>, plus the flags that distinguish runs of one flagfile.

    A flagfile is named by its path below configs/, or by its file name, that of a run by the folder
    of its folder. The number of labels is added if it differs from the flagfile's own; a sweep adds
    the flags it varies.
    """
    own = {}
    if flagfile:
        path = os.path.splitext(os.path.normpath(flagfile))[0].split(os.sep)
        folders = path[:-1]
        below = len(folders) - folders[::-1].index("configs") if "configs" in folders else -1
        name = os.path.join(*path[below:])
        if path[-1] == "flags" and len(path) > 2:  # of a run: runs/<name>/rat-seed0/flags.cfg
            name = path[-3]
        if config.labels != flag_values.of_file(flagfile)["labels"]:
            own = {"labels": config.labels}
    else:
        name = re.sub(r"\W+", "-", f"{config.dataset}{config.labels or ''}")
    shown = {**own, **(varied or {})}
    parts = [config.method, *(f"{flag}{_plain(value)}" for flag, value in shown.items())]
    return os.path.join(root, name, "-".join([*parts, f"seed{config.seed}"]))


def _plain(value) -> str:
    """A flag's value as part of a file name."""
    return re.sub(r"[^\w.]+", "_", str(value))
