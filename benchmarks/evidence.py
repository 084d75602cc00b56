"""Tables and figures of docs/evidence.md: `python -m benchmarks.evidence --runs=runs/study`.

Compares RAT (or VAT) with Random, one transformation at a time, each with its own ε: the one with
the lowest validation error among the runs with a seed of --tuning or above. The other seeds are
compared by their test errors, in pairs of one seed and split (t-test for paired samples), and with
Welch's t-test. An experiment is what runs share besides method, ε and seeds.

Prints the tables in Markdown; --output=<folder> also draws evidence_epsilon.png (validation error
of the tuning runs against ε), evidence_errors.png (test errors of all seeds) and evidence_steps.png
(validation error against steps).
"""

from __future__ import annotations

import dataclasses
import os
import sys

import numpy as np
import scipy.stats
from absl import app, flags

from rat_tf.experiments import results
from rat_tf.plots import canvas

RANDOM = "Random"
ARMS = {"Supervised": "0.5", RANDOM: "C0", "VAT": "C1", "RAT": "C3"}
#: Numbers that describe a transformation of an image [H, W, C].
PARAMETERS = {
    "channel_weight": lambda h, w, c: c,
    "affine": lambda h, w, c: 6,
    "thin_plate_spline": lambda h, w, c: 32,
    "flow_field": lambda h, w, c: 2 * h * w,
    "noise": lambda h, w, c: h * w * c,
}
CHANNELS = {"digits": 1}  # others have 3

_RUNS = flags.DEFINE_list("runs", ["runs/study"], "Folders of the runs.")
_TUNING = flags.DEFINE_integer("tuning", 100, "The first seed of the runs that choose ε.")
_OUTPUT = flags.DEFINE_string("output", "", "Folder for the figures.")


@dataclasses.dataclass
class Arm:
    """The runs of one method and transformation: by ε, those that chose it and those compared."""

    tuning: dict[float, list[results.Result]] = dataclasses.field(default_factory=dict)
    compared: dict[float, list[results.Result]] = dataclasses.field(default_factory=dict)

    @property
    def epsilon(self) -> float:
        """The ε with the lowest mean validation error."""
        return min(self.tuning or self.compared, key=self.validation)

    def validation(self, epsilon: float) -> float:
        runs = self.tuning.get(epsilon) or self.compared[epsilon]
        return float(np.mean([_validation(run) for run in runs]))

    @property
    def errors(self) -> dict[tuple[int, int], float]:
        """Test errors at the chosen ε by seed and split."""
        return self.errors_at(self.epsilon)

    def errors_at(self, epsilon: float) -> dict[tuple[int, int], float]:
        runs = self.compared.get(epsilon, [])
        return {(r.config.seed, r.config.split_seed): r.error for r in runs}


def experiments(found: list[results.Result], tuning: int) -> dict[str, dict[str, dict[str, Arm]]]:
    """Arms by experiment, transformation ("" for none) and method."""
    made: dict = {}
    for run in found:
        config = run.config
        title = f"{config.dataset}, {config.network}, {config.labels} labels, "
        title += f"{config.iterations:,} steps"
        used = config.used_transforms
        (name, epsilon), *others = used.parts if used else (("", 0.0),)
        if others:
            continue  # the study has one transformation at a time
        arms = made.setdefault(title, {}).setdefault(name, {})
        arm = arms.setdefault(_method(config), Arm())
        runs = arm.tuning if config.seed >= tuning else arm.compared
        runs.setdefault(epsilon, []).append(run)
    return made


def _method(config) -> str:
    if config.method == "random":
        return RANDOM
    if config.adversary in (None, "gradient"):
        return config.options.title
    text = f"{config.adversary.replace('_', ' ')} {config.candidates}, {config.ascent}"
    return (
        text if config.adversary_scale in (None, 1) else f"{text}, scale {config.adversary_scale}"
    )


def _validation(run: results.Result) -> float:
    column = f"val_{run.config.monitor()}"
    return min(100 * row[column] for row in run.rows if column in row)


def paired(first: dict, second: dict) -> tuple[np.ndarray, float | None, float | None]:
    """Differences of the test errors of common seeds, p of the paired and of Welch's t-test."""
    common = sorted(set(first) & set(second))
    differences = np.array([first[seed] - second[seed] for seed in common])
    p = None
    if len(common) > 1 and np.ptp(differences) > 0:
        p = float(scipy.stats.ttest_1samp(differences, 0).pvalue)
    return differences, p, results.welch(list(first.values()), list(second.values()))


def table(transforms: dict[str, dict[str, Arm]]) -> str:
    """An experiment in Markdown: a line for each transformation and method."""
    lines = ["| transformation | parameters | method | ε | validation % | test % | seeds |"]
    lines[0] += " behind Random | paired p | Welch's p |"
    lines.append("| --- " * 10 + "|")
    for name in ["", *PARAMETERS]:
        arms = transforms.get(name, {})
        random = arms.get(RANDOM)
        for method, arm in sorted(arms.items(), key=lambda item: item[0] != RANDOM):
            lines.append(_line(name, method, arm, arm.epsilon, random))
            # What the search itself does: Random with the ε of the other.
            if random and arm is not random and arm.epsilon != random.epsilon:
                if random.errors_at(arm.epsilon):
                    lines.append(_line(name, f"{RANDOM} at that ε", random, arm.epsilon, random))
    return "\n".join(lines)


def _line(name: str, method: str, arm: Arm, epsilon: float, random: Arm | None) -> str:
    errors = arm.errors_at(epsilon)
    cells = [name or "–", _parameters(name, arm), method, f"{epsilon:g}" if name else "–"]
    cells += [f"{arm.validation(epsilon):.1f}", _number(list(errors.values())), str(len(errors))]
    if random and method != RANDOM:
        differences, *ps = paired(errors, random.errors)
        cells += [_number(differences, "+"), *map(_p, ps)]
    else:
        cells += ["", "", ""]
    return "| " + " | ".join(cells) + " |"


def _parameters(name: str, arm: Arm) -> str:
    if not name:
        return "–"
    config = next(iter((arm.tuning or arm.compared).values()))[0].config
    size = config.image_size
    return str(PARAMETERS[name](size, size, CHANNELS.get(config.dataset, 3)))


def _number(values, sign: str = "") -> str:
    if not len(values):
        return "–"
    std = f" ± {np.std(values, ddof=1):.2f}" if len(values) > 1 else ""
    return f"{np.mean(values):{sign}.2f}{std}".replace("-", "−")


def _p(p: float | None) -> str:
    return "–" if p is None else f"{p:.3f}" if p >= 0.001 else "< 0.001"


def _grid(made: dict) -> tuple:
    """A figure of validation errors, and (axis, arms) of every experiment and transformation."""
    panels = [(t, name, made[t][name]) for t in made for name in PARAMETERS if name in made[t]]
    columns = min(4, len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = canvas.subplots(rows, columns, figsize=(3.2 * columns, 3 * rows), squeeze=False)
    for axis, (title, name, _) in zip(axes.flat, panels):
        axis.set_title(f"{name}\n{title}", fontsize="small")
    for line in axes:
        line[0].set_ylabel("validation error, %")
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    return figure, [(axis, arms) for axis, (_, _, arms) in zip(axes.flat, panels)]


@canvas.styled
def epsilon_picture(path: str, made: dict) -> None:
    """Validation error of the tuning runs against ε, with the chosen one marked."""
    figure, panels = _grid(made)
    for axis, arms in panels:
        for method, arm in arms.items():
            points = sorted((epsilon, arm.validation(epsilon)) for epsilon in arm.tuning)
            if points:
                colour = ARMS.get(method, "C2")
                axis.semilogx(*zip(*points), "o-", markersize=3, color=colour, label=method)
                chosen = arm.epsilon
                axis.plot(chosen, arm.validation(chosen), "o", markersize=9, mfc="none", c=colour)
        ticks = sorted({epsilon for arm in arms.values() for epsilon in arm.tuning})
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks], fontsize=7)
        axis.set_xticks([], minor=True)
        axis.set(xlabel="ε")
        axis.legend()
    canvas.save(figure, path)


@canvas.styled
def errors_picture(path: str, made: dict) -> None:
    """Test errors of all seeds at the chosen ε; a line joins what shares seed and split."""
    shown = {
        title: [n for n in ["", *PARAMETERS] if any(a.errors for a in found.get(n, {}).values())]
        for title, found in made.items()
    }
    shown = {title: names for title, names in shown.items() if names}
    if not shown:
        return
    widths = [len(names) for names in shown.values()]
    figure, axes = canvas.subplots(
        1, len(shown), figsize=(2 + 1.3 * sum(widths), 4.5), squeeze=False, width_ratios=widths
    )
    for axis, (title, names) in zip(axes[0], shown.items()):
        for place, name in enumerate(names):
            arms = made[title][name]
            order = sorted(arms, key=lambda method: method != RANDOM)
            points = {m: place + 0.25 * i for i, m in enumerate(order)}
            for seed in sorted(set().union(*(arms[m].errors for m in order))):
                line = [
                    (x, arms[m].errors[seed]) for m, x in points.items() if seed in arms[m].errors
                ]
                axis.plot(*zip(*line), "-", color="0.8", linewidth=0.8, zorder=0)
            for method, x in points.items():
                errors, colour = list(arms[method].errors.values()), ARMS.get(method, "C2")
                axis.plot([x] * len(errors), errors, "o", markersize=3, color=colour)
                if errors:
                    axis.plot([x - 0.1, x + 0.1], [np.mean(errors)] * 2, color=colour, label=method)
        labels = [name or "no consistency" for name in names]
        axis.set_xticks(np.arange(len(names)) + 0.12, labels, fontsize=8)
        axis.set(title=title, ylabel="test error, %")
        axis.title.set_fontsize(8)
        axis.set_ylim(bottom=0)
        axis.grid(visible=False, axis="x")
        axis.legend(*_once(axis))
    canvas.save(figure, path)


def _once(axis) -> tuple[list, list]:
    """Handles and labels of a legend, each label once."""
    found = dict(zip(*reversed(axis.get_legend_handles_labels())))
    return list(found.values()), list(found)


@canvas.styled
def steps_picture(path: str, made: dict) -> None:
    """Validation error against steps at the chosen ε, over the tuning and compared seeds."""
    figure, panels = _grid(made)
    for axis, arms in panels:
        for method, arm in arms.items():
            runs = arm.compared.get(arm.epsilon) or arm.tuning.get(arm.epsilon, [])
            column = f"val_{runs[0].config.monitor()}"
            curves = [{r["step"]: 100 * r[column] for r in run.rows if column in r} for run in runs]
            steps = sorted(set.intersection(*map(set, curves)))
            errors = np.array([[curve[step] for step in steps] for curve in curves])
            mean, colour = errors.mean(axis=0), ARMS.get(method, "C2")
            label = f"{method}, ε {arm.epsilon:g}, seeds: {len(runs)}"
            axis.plot(steps, mean, color=colour, label=label)
            if len(runs) > 1:
                std = errors.std(axis=0, ddof=1)
                axis.fill_between(steps, mean - std, mean + std, color=colour, alpha=0.15)
        axis.set(xlabel="step")
        axis.set_ylim(bottom=0)
        axis.legend()
    canvas.save(figure, path)


def main(argv) -> None:
    del argv
    found, problems = results.read(results.find(_RUNS.value))
    for problem in problems:
        print(f"warning: {problem}", file=sys.stderr)
    made = experiments(found, _TUNING.value)
    for title, transforms in made.items():
        print(f"### {title}\n\n{table(transforms)}\n")
    if _OUTPUT.value:
        os.makedirs(_OUTPUT.value, exist_ok=True)
        epsilon_picture(os.path.join(_OUTPUT.value, "evidence_epsilon.png"), made)
        errors_picture(os.path.join(_OUTPUT.value, "evidence_errors.png"), made)
        steps_picture(os.path.join(_OUTPUT.value, "evidence_steps.png"), made)


if __name__ == "__main__":
    app.run(main)
