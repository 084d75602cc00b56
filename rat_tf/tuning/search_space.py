"""What a search varies: the parameters of --search, and their values as a `Config`.

A composition is searched with two numbers for each transformation t: `place.t` in [-1, 1] and
`epsilon.t`. Those with place >= 0 are applied in the order of their places; if there is none, the
one with the highest place is applied alone. So every point of the box is a composition, and near
points are alike, which is what a Gaussian process needs.
"""

from __future__ import annotations

import itertools
import math
import re

import keras_tuner as kt

from rat_tf import config as config_lib
from rat_tf import errors, transforms
from rat_tf.config import flag_values
from rat_tf.tuning import search_parameters

# Section "Evaluation of Composite Transformations" of the paper.
PAPER = {
    "channel_weight": "0.001:0.01:0.001",
    "affine": "0.1:1:0.1",
    "thin_plate_spline": "0.1:1:0.1",
    "flow_field": "0.01:0.1:0.01",
}
# The same ranges, and for the noise one around the paper's 1 (SVHN), 6 and 10 (CIFAR-10).
COMPOSED = {
    "noise": "0.1:10:log",
    "channel_weight": "0.001:0.01:log",
    "affine": "0.1:1:log",
    "thin_plate_spline": "0.1:1:log",
    "flow_field": "0.01:0.1:log",
}
MANY = 1000  # up to so many combinations all are tried for validity, of more the corners


class Space:
    """The parameters of a search around a base config."""

    def __init__(self, base: config_lib.Config, parameters, composition: bool = False):
        self.base = base
        self.parameters = tuple(parameters)
        self.composition = composition

    def hyperparameters(self) -> kt.HyperParameters:
        space = kt.HyperParameters()
        for parameter in self.parameters:
            parameter.add_to(space)
        return space

    def shown(self, values: dict) -> dict:
        """Names and values as a user would write them; a composition as its --transforms."""
        found = {p.name: p.value(values[p.name]) for p in self.parameters}
        if not self.composition:
            return found
        rest = {k: v for k, v in found.items() if not k.startswith(("place.", "epsilon."))}
        return {"transforms": self._composed(found), **rest}

    def config(self, values: dict, **changes) -> config_lib.Config:
        """The config of a trial; what is not searched stays as it is in the base."""
        shown = self.shown(values)
        flags = {name: value for name, value in shown.items() if "." not in name}
        epsilons = {k.partition(".")[2]: v for k, v in shown.items() if k.startswith("epsilon.")}
        if epsilons:
            text = flags.get("transforms", self.base.transforms)
            flags["transforms"] = _write(
                (t.name, epsilons.get(t.name, t.epsilon)) for t in transforms.parse(text).transforms
            )
        return flag_values.changed_config(self.base, **flags, **changes)

    def size(self) -> float:
        """The number of combinations; infinite if a parameter is continuous."""
        return math.prod(len(p.values) or math.inf for p in self.parameters)

    def probes(self) -> list[config_lib.Config]:
        """The configs of all combinations or, of many, of the corners; refuses what is none."""
        choices = [p.ends() for p in self.parameters]
        if math.prod(map(len, choices)) > MANY:
            choices = [(ends[0], ends[-1]) for ends in choices]
            # Each value at least beside the first ones of the others.
            alone = [
                [*(c[0] for c in choices[:i]), value, *(c[0] for c in choices[i + 1 :])]
                for i, p in enumerate(self.parameters)
                for value in p.ends()
            ]
            corners = itertools.islice(itertools.product(*choices), MANY)
            combinations = itertools.chain(alone, corners)
        else:
            combinations = itertools.product(*choices)
        found = []
        for combination in combinations:
            values = {p.name: value for p, value in zip(self.parameters, combination)}
            try:
                found.append(self.config(values))
            except errors.UserError as error:
                text = ", ".join(f"{k}={v}" for k, v in self.shown(values).items())
                raise errors.UserError(f"--search: with {text}: {error}") from None
        return found

    def _composed(self, found: dict) -> str:
        places = {name: found[f"place.{name}"] for name in COMPOSED}
        order = sorted(places, key=places.get)
        present = [name for name in order if places[name] >= 0] or order[-1:]
        return _write((name, found[f"epsilon.{name}"]) for name in present)


def parse(text: str, base: config_lib.Config, grid: bool, composition: bool = False) -> Space:
    """The space of --search=`text`; without a text the paper's grid, or all compositions."""
    used = _used(base)
    parameters: dict[str, search_parameters.Parameter] = {}
    for part in filter(None, re.split(r",(?=\s*[\w.]+\s*=)", text.strip())):
        name, _, values = (piece.strip() for piece in part.partition("="))
        parameter = search_parameters.parse(name, values, list(COMPOSED) if composition else used)
        if parameter.name in parameters:
            raise errors.UserError(f"--search: {parameter.name} is there twice")
        parameters[parameter.name] = parameter
    if composition:
        if base.method not in ("rat", "random"):
            raise errors.UserError(f"--search_composition: for rat and random, not {base.method}")
        parameters = _with_composition(parameters)
    elif not parameters:
        parameters = _paper(used)
    if "transforms" in parameters and (composition or any("." in name for name in parameters)):
        raise errors.UserError(
            "--search: transforms beside epsilon.<transformation> or --search_composition would "
            "say the same ε twice; take one of them"
        )
    for parameter in parameters.values():
        if grid and not parameter.values:
            ends = f"{parameter.name}={parameter.low:g}:{parameter.high:g}"
            form = f"{ends}:log:5" if parameter.log else f"{ends}:<step>"
            raise errors.UserError(
                f"--search: a grid needs the number of values of {parameter.name}: write {form}, "
                "or take --tuner=random or bayesian"
            )
    space = Space(base, parameters.values(), composition)
    space.probes()
    return space


def _used(config: config_lib.Config) -> list[str]:
    """The transformations that a config's method trains with."""
    composite = config.transform()
    return [t.name for t in composite.transforms] if composite else []


def _paper(used) -> dict[str, search_parameters.Parameter]:
    names = [name for name in used if name in PAPER]
    if not names:
        raise errors.UserError(
            f"--search: the paper has a grid for {', '.join(PAPER)}, and this run uses "
            f"{', '.join(used) or 'no transformation'}; say what to search, for example "
            + ("--search=epsilon.noise=0.5:5:0.5" if used else "--search=learning_rate=1e-4|1e-3")
        )
    found = [search_parameters.parse(f"epsilon.{name}", PAPER[name], used) for name in names]
    return {parameter.name: parameter for parameter in found}


def _with_composition(parameters) -> dict[str, search_parameters.Parameter]:
    composed = {}
    for name, values in COMPOSED.items():
        composed[f"place.{name}"] = search_parameters.Parameter(
            f"place.{name}", "float", (), -1.0, 1.0
        )
        composed[f"epsilon.{name}"] = search_parameters.parse(f"epsilon.{name}", values, COMPOSED)
    return {**composed, **parameters}


def _write(pairs) -> str:
    """--transforms of (name, ε) pairs."""
    return ",".join(f"{name}:{epsilon:.10g}" for name, epsilon in pairs)
