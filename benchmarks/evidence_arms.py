"""The runs of `benchmarks.evidence` by experiment, transformations and method."""

from __future__ import annotations

import dataclasses

import numpy as np

from rat_tf import errors
from rat_tf.experiments import results

RANDOM = "Random"
#: Numbers that describe a transformation of an image [H, W, C].
PARAMETERS = {
    "channel_weight": lambda h, w, c: c,
    "affine": lambda h, w, c: 6,
    "thin_plate_spline": lambda h, w, c: 32,
    "flow_field": lambda h, w, c: 2 * h * w,
    "noise": lambda h, w, c: h * w * c,
}
CHANNELS = {"digits": 1}  # others have 3

Epsilons = tuple[float, ...]  # one for each transformation
Names = tuple[str, ...]  # of transformations; () for none


@dataclasses.dataclass
class Arm:
    """The runs of one method and transformation: by ε, those that chose it and those compared."""

    tuning: dict[Epsilons, list[results.Result]] = dataclasses.field(default_factory=dict)
    compared: dict[Epsilons, list[results.Result]] = dataclasses.field(default_factory=dict)

    @property
    def epsilon(self) -> Epsilons:
        """The ε with the lowest mean validation error."""
        return min(self.tuning or self.compared, key=self.validation)

    def validation(self, epsilon: Epsilons) -> float:
        runs = self.tuning.get(epsilon) or self.compared[epsilon]
        return float(np.mean([_validation(run) for run in runs]))

    @property
    def errors(self) -> dict[tuple[int, int], float]:
        """Test errors at the chosen ε by seed and split."""
        return self.errors_at(self.epsilon)

    def errors_at(self, epsilon: Epsilons) -> dict[tuple[int, int], float]:
        runs = self.compared.get(epsilon, [])
        return {_seeds(run): run.error for run in runs}


def experiments(found: list[results.Result], tuning: int) -> dict[str, dict[Names, dict[str, Arm]]]:
    """Arms by experiment, transformations and method; shorter and simpler ones first."""
    made: dict = {}
    for run in sorted(found, key=lambda run: (run.config.dataset, run.config.iterations)):
        config = run.config
        title = f"{config.dataset}, {config.network}, {config.labels} labels, "
        title += f"{config.iterations:,} steps"
        if getattr(config, "target_threshold", 0):
            title += ", confident targets"
        names, epsilons = zip(*config.used_transforms.parts) if config.used_transforms else ((), ())
        arms = made.setdefault(title, {}).setdefault(names, {})
        arm = arms.setdefault(_method(config), Arm())
        runs = (arm.tuning if config.seed >= tuning else arm.compared).setdefault(epsilons, [])
        for other in runs:
            if _seeds(other) == _seeds(run):
                raise errors.UserError(
                    f"--runs: expected one run of each method, ε and seed in {title!r}, found "
                    f"{other.folder} and {run.folder}; give the runs of one experiment only"
                )
        runs.append(run)
    order = list(PARAMETERS).index
    return {
        title: dict(sorted(transforms.items(), key=lambda item: list(map(order, item[0]))))
        for title, transforms in made.items()
    }


def _method(config) -> str:
    if config.method == "random":
        return RANDOM
    text = config.options.title
    if config.adversary not in (None, "gradient"):
        text = f"{config.adversary.replace('_', ' ')} {config.candidates}, {config.ascent}"
    for word in ("scale", "share"):
        if (value := getattr(config, f"adversary_{word}", None)) not in (None, 1):
            text += f", {word} {value}"
    return text


def _seeds(run: results.Result) -> tuple[int, int]:
    return run.config.seed, run.config.split_seed


def _validation(run: results.Result) -> float:
    column = f"val_{run.config.monitor()}"
    return min(100 * row[column] for row in run.rows if column in row)


def joined(values: Names | Epsilons) -> str:
    return " + ".join(v if isinstance(v, str) else f"{v:g}" for v in values) or "–"
