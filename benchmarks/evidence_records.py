"""What `benchmarks.evidence` keeps of a run, and its file: a line for each run.

A file of records stands in for the run folders, so that the tables and figures can be made again
and added to without training everything anew.
"""

from __future__ import annotations

import csv
import dataclasses
import inspect

from benchmarks import searches
from rat_tf import errors
from rat_tf.experiments import results
from rat_tf.storage import files
from rat_tf.transforms import spec

#: Numbers that describe a transformation of an image [H, W, C].
PARAMETERS = {
    "channel_weight": lambda h, w, c: c,
    "affine": lambda h, w, c: 6,
    "thin_plate_spline": lambda h, w, c: 32,
    "flow_field": lambda h, w, c: 2 * h * w,
    "noise": lambda h, w, c: h * w * c,
}
CHANNELS = {"digits": 1}  # others have 3
RANDOM = "Random"


@dataclasses.dataclass(frozen=True)
class Record:
    """One run. Errors are in %; `experiment` is all that runs share besides the other fields."""

    experiment: str
    method: str
    transforms: str  # affine:0.3,channel_weight:0.5; empty for none
    parameters: int  # of all transformations of an image; 0 for none
    passes: float | None  # of images in a step, see searches.image_passes; None: not counted
    seed: int
    split_seed: int
    steps: tuple[int, ...]  # of the validations; empty where the curve was not kept
    validation: tuple[float, ...]  # errors at these steps; the lowest alone without a curve
    test: float | None  # at the lowest validation error; None where it was not kept

    @property
    def parts(self) -> tuple[tuple[str, float], ...]:
        """The transformations and their ε."""
        return spec.Spec.parse(self.transforms).parts if self.transforms else ()


def of_run(run: results.Result) -> Record:
    """The record of a finished run."""
    config = run.config
    experiment = f"{config.dataset}, {config.network}, {config.labels} labels, "
    experiment += f"{config.iterations:,} steps"
    if getattr(config, "target_threshold", 0):
        experiment += ", confident targets"
    if config.augment_color:  # the presets of own folders, and what was tried in them
        experiment += f", crops of {100 * config.augment_crop:g} %, {config.labeled_batch} + "
        experiment += f"{config.unlabeled_batch} images"
        if ramp := getattr(config, "consistency_rampup", None):
            experiment += f", λ over {ramp}".replace("%", " %")
    transforms = config.used_transforms
    shape = config.image_size, config.image_size, CHANNELS.get(config.dataset, 3)
    column = f"val_{config.monitor()}"
    curve = {int(r["step"]): round(100 * r[column], 3) for r in run.rows if column in r}
    return Record(
        experiment,
        _method(config),
        str(transforms or ""),
        sum(PARAMETERS[name](*shape) for name, _ in transforms.parts) if transforms else 0,
        _passes(config),
        config.seed,
        config.split_seed,
        tuple(curve),
        tuple(curve.values()),
        round(run.error, 3),
    )


def _passes(config) -> float | None:
    if not config.used_transforms or config.mixup:
        return None
    names = inspect.signature(searches.image_passes).parameters
    given = {name: getattr(config, name, None) for name in names}
    used = {name: value for name, value in given.items() if value is not None}
    used["transforms"] = str(config.used_transforms)
    return searches.image_passes(config.labeled_batch, config.unlabeled_batch, **used)


def _method(config) -> str:
    """What tells two searches apart, and the names of methods without a search."""
    if config.method == "random":
        return RANDOM + _variant(config)
    if config.adversary == "worst_of" and config.candidates == 1:  # no search
        shape = "" if config.ascent == "paper" else f", {config.ascent}"
        return RANDOM + shape + _variant(config)
    text = config.options.title
    if config.adversary == "gradient":
        xi = "ε" if str(config.xi) == "1eps" else str(config.xi).replace("eps", "ε")
        text = f"{'gradient' if config.method == 'rat' else text}, {config.ascent}, ξ = {xi}"
        text += f", {config.power_iterations} iterations" if config.power_iterations > 1 else ""
    elif config.adversary:
        text = f"{config.adversary.replace('_', ' ')} {config.candidates}, {config.ascent}"
    for word in ("scale", "share"):
        if (value := getattr(config, f"adversary_{word}", None)) not in (None, 1):
            text += f", {word} {value}"
    return text + _variant(config)


def _variant(config) -> str:
    """What of the objective is another than that of most runs of the study."""
    text = ", targets of the averaged weights" if config.target == "teacher" else ""
    if config.target_threshold and not config.separate_statistics:
        text += ", statistics together"
    return text


_COLUMNS = [field.name for field in dataclasses.fields(Record)]


def write(path: str, records: list[Record]) -> None:
    """Writes a file of records, sorted, so that a change of it shows what was added."""
    rows = []
    for record in sorted(records, key=lambda r: (r.experiment, r.transforms, r.method, r.seed)):
        row = dataclasses.asdict(record)
        row["steps"] = " ".join(map(str, record.steps))
        row["validation"] = " ".join(f"{error:g}" for error in record.validation)
        for name in ("passes", "test"):
            row[name] = "" if row[name] is None else f"{row[name]:g}"
        rows.append(row)
    files.write(path, files.csv_text(rows, _COLUMNS))


def read(path: str) -> list[Record]:
    """The records of a file that `write` wrote."""
    with open(path, encoding="utf-8", newline="") as file:
        lines = csv.DictReader(file)
        if lines.fieldnames != _COLUMNS:
            raise errors.UserError(
                f"--runs: {path} is no file of records: expected the columns {', '.join(_COLUMNS)}"
            )
        return [
            Record(
                row["experiment"],
                row["method"],
                row["transforms"],
                int(row["parameters"]),
                _number(row["passes"]),
                int(row["seed"]),
                int(row["split_seed"]),
                tuple(map(int, row["steps"].split())),
                tuple(map(float, row["validation"].split())),
                _number(row["test"]),
            )
            for row in lines
        ]


def _number(text: str) -> float | None:
    return float(text) if text else None
