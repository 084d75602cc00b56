"""The runs of `benchmarks.evidence` by experiment, transformations and method."""

from __future__ import annotations

import dataclasses

import numpy as np

from benchmarks import evidence_records
from rat_tf import errors

RANDOM = evidence_records.RANDOM
Record = evidence_records.Record
Epsilons = tuple[float, ...]  # one for each transformation
Names = tuple[str, ...]  # of transformations; () for none


@dataclasses.dataclass
class Arm:
    """The runs of one method and transformation: by ε, those that chose it and those compared."""

    tuning: dict[Epsilons, list[Record]] = dataclasses.field(default_factory=dict)
    compared: dict[Epsilons, list[Record]] = dataclasses.field(default_factory=dict)

    @property
    def epsilon(self) -> Epsilons:
        """The ε with the lowest mean validation error."""
        return min(self.tuning or self.compared, key=self.validation)

    def validation(self, epsilon: Epsilons) -> float:
        """The mean of the runs' lowest validation errors, NaN if none was kept."""
        runs = self.tuning.get(epsilon) or self.compared[epsilon]
        found = [min(run.validation) for run in runs if run.validation]
        return float(np.mean(found)) if found else np.nan

    @property
    def errors(self) -> dict[tuple[int, int], float]:
        """Test errors at the chosen ε by seed and split."""
        return self.errors_at(self.epsilon)

    def errors_at(self, epsilon: Epsilons) -> dict[tuple[int, int], float]:
        runs = self.compared.get(epsilon, [])
        return {_seeds(run): run.test for run in runs if run.test is not None}


def experiments(records: list[Record], tuning: int) -> dict[str, dict[Names, dict[str, Arm]]]:
    """Arms by experiment, transformations and method; simpler transformations first."""
    made: dict = {}
    for run in records:
        names, epsilons = zip(*run.parts) if run.parts else ((), ())
        arms = made.setdefault(run.experiment, {}).setdefault(names, {})
        arm = arms.setdefault(run.method, Arm())
        runs = (arm.tuning if run.seed >= tuning else arm.compared).setdefault(epsilons, [])
        if _seeds(run) in map(_seeds, runs):
            raise errors.UserError(
                "--runs: expected one run of each method, ε and seed in an experiment, found two "
                f"of {run.method}, {run.transforms or 'no transformation'}, seed {run.seed} in "
                f"{run.experiment!r}; give the runs of one experiment only"
            )
        runs.append(run)
    order = list(evidence_records.PARAMETERS).index
    return {
        title: dict(sorted(transforms.items(), key=lambda item: list(map(order, item[0]))))
        for title, transforms in made.items()
    }


def _seeds(run: Record) -> tuple[int, int]:
    return run.seed, run.split_seed


def joined(values: Names | Epsilons) -> str:
    return " + ".join(v if isinstance(v, str) else f"{v:g}" for v in values) or "–"
