"""The recipe: flags that fit the images, the device and the time, where the user gives none.

`python -m rat_tf.train --dataset=folder:pets` has no flagfile. Its flags then come from a preset, a
flagfile configs/folder/<device>-<size>.cfg; flags on the command line win over it. This module only
picks the preset and the image size:

- the preset has an --image_size, the largest that it is meant for, and a --budget, the least time
  in which it learns something. Of the presets of the device whose --budget is within the user's,
  the smallest that is as large as the images is taken, else the largest;
- --image_size is the median of the shorter sides of the images, rounded to a multiple of 16, and at
  most that of the preset.

The number of steps follows from --budget, when the speed of this model on this machine has been
measured (`training.calibration`). If it is at least LONG_STEPS, the flags of LONG are added to the
preset's: in a long run a stronger search is worth its time. All of that is decided before the run
folder is made and recorded in its flags.cfg, with the flags that the user gave in environment.json:
the same command finds the run by these and resumes it with what was recorded, whatever it would
choose today.

With --flagfile there is no preset, and --budget sets only the number of steps.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterable

from rat_tf import errors, fields
from rat_tf.config import flag_values, flagfiles, table, training_flags

FOLDER = os.path.join("configs", "folder")
LONG = os.path.join(FOLDER, "long.cfg")
LONG_STEPS = 30_000  # the search is ahead in the same time: docs/recipes.md
BUDGET = "30m"  # without --budget
MULTIPLE = 16  # of image sizes: networks halve them, and so does --adversary_scale
SAMPLE = 200  # images of a folder whose size is read
PLACEHOLDER = 1000  # steps of a config whose number of steps is still to be measured


def applies(parsed) -> bool:
    """Whether flags come from a preset: a folder, or any set with --budget, without --flagfile."""
    values = parsed.values
    if parsed.flagfiles or values["budget"] == training_flags.NO_BUDGET:
        return False
    return values["dataset"].startswith("folder:") or bool(values["budget"])


def measures(parsed) -> bool:
    """Whether the number of steps is to be measured."""
    by_budget = "budget" in parsed.given and parsed.values["budget"] != training_flags.NO_BUDGET
    if by_budget and parsed.values["budget"] and "iterations" in parsed.given:
        raise errors.UserError("--budget: cannot be combined with --iterations; give one of them")
    return (applies(parsed) or by_budget) and "iterations" not in parsed.given


def check_steps(
    parsed, advice: str = "--budget=<time> or --iterations=<steps>", varied: Iterable[str] = ()
) -> None:
    """Refuses a flagfile with a --budget, as presets are, without a number of steps.

    A --budget in a flagfile is not a time to train, and there would be the 500,000 steps of the
    paper. `varied` are flags that get their values otherwise, `advice` what the command takes.
    """
    if {"budget", "iterations"} & {*parsed.given, *varied} or "iterations" in parsed.written:
        return
    least = parsed.values["budget"]
    if parsed.flagfiles and least not in ("", training_flags.NO_BUDGET):
        raise errors.UserError(
            f"--flagfile={' --flagfile='.join(parsed.flagfiles)}: the --budget={least} in it is no "
            "time to train, it says for which times a preset is chosen; expected "
            f"{advice} on the command line"
        )


def given(parsed) -> dict[str, str]:
    """The flags by which a command finds its run again, as texts."""
    values = {n: parsed.values[n] for n in parsed.given if n in table.FLAGS}
    kept = {n: v for n, v in values.items() if n == "budget" or not of_machine(n)}
    if parsed.flagfiles:
        kept["flagfile"] = " ".join(parsed.flagfiles)
    if "dataset" in kept:  # by one name, however its folder was written
        kept["dataset"] = fields.value_of(table.FLAGS["dataset"], kept["dataset"])
    return {name: fields.text_of(value) for name, value in sorted(kept.items())}


def of_machine(name: str) -> bool:
    """Whether this is a training flag that does not change the result."""
    return name in table.FLAGS and table.FLAGS[name].metadata["group"] == "Machine"


def config(parsed, preset: str = "", side: int = 0, long: bool = False) -> table.Config:
    """The config of a command line with a preset; without one, that of its own flagfiles.

    `side` is that of the images, 0 if it is unknown; `long` adds the flags of LONG. The number of
    steps is PLACEHOLDER where it is to be measured, so that it can be divided by validations.
    """
    values = dict(parsed.values)
    if preset:
        ours = {n: v for n, v in values.items() if n in parsed.given}
        files = [f"--flagfile={path}" for path in (preset, *([LONG] if long else []))]
        values = flag_values.of_arguments(files)
        values |= {"budget": BUDGET, "iterations": PLACEHOLDER}
        if side:
            values["image_size"] = min(fitting(side), values["image_size"])
        values |= ours
    if measures(parsed):
        validated = fields.value_of(table.FLAGS["validate_every"], values["validate_every"])
        share = isinstance(validated, fields.Steps)
        values["iterations"] = PLACEHOLDER if share else validated
    return flag_values.to_config(values, parsed.given)


def fitting(side: int) -> int:
    return max(round(side / MULTIPLE), 1) * MULTIPLE


def pick(device: str, side: int, budget: str) -> str:
    """The preset for a device (cpu or gpu), the side of the images and the time."""
    start = os.path.join(FOLDER, f"{device}-")
    found = {p: flag_values.of_file(p) for p in flagfiles.names() if p.startswith(start)}
    least = {path: training_flags.seconds(values["budget"]) for path, values in found.items()}
    seconds = training_flags.seconds(budget or BUDGET)
    usable = [p for p in found if least[p] <= seconds] or [min(found, key=least.get)]
    sizes = {path: found[path]["image_size"] for path in usable}
    large = [path for path in usable if sizes[path] >= fitting(side)]
    return min(large, key=sizes.get) if large else max(usable, key=sizes.get)


def side_of_folder(dataset: str) -> int:
    """The median of the shorter sides of a folder's images; 0 if none can be read.

    Up to SAMPLE files, evenly spread over the sorted paths. Broken ones, and folders behind links,
    are passed over here.
    """
    from PIL import Image

    root = os.path.expanduser(dataset.partition(":")[2])
    extensions = tuple(Image.registered_extensions())
    paths = sorted(
        os.path.join(folder, name)
        for folder, _, names in os.walk(root)
        for name in names
        if name.lower().endswith(extensions) and not name.startswith(".")
    )
    sides = []
    for path in paths[:: max(len(paths) // SAMPLE, 1)]:
        if not os.path.isfile(path):  # a pipe would wait for a writer
            continue
        try:
            with Image.open(path) as image:
                sides.append(min(image.size))
        except (OSError, ValueError, Image.DecompressionBombError):
            continue  # reading the set reports it
    return int(statistics.median(sides)) if sides else 0
