"""What a search varies: the text of --search into parameters, and their values into a `Config`.

A parameter is a flag of `Config` or `epsilon.<transformation>`, the ε inside --transforms, with

    0.1:1:0.1     start:stop:step, both ends included
    0.1:1         any number between (not for a grid)
    0.1:1:log     any number between, evenly in its logarithm (not for a grid)
    0.1:1:log:5   five numbers, each the same factor above the one before
    1e-6|1e-2     these values

A composition is searched with two numbers for each transformation t: `place.t` in [-1, 1] and
`epsilon.t`. Those with place >= 0 are applied in the order of their places; if there is none, the
one with the highest place is applied alone. So every point of the box is a composition, and near
points are alike, which is what a Gaussian process needs.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import re

import keras_tuner as kt

from rat_tf import config as config_lib
from rat_tf import hints, transforms

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


@dataclasses.dataclass(frozen=True)
class Parameter:
    """The values one flag may take: some (in order, as texts), or all from `low` to `high`."""

    name: str
    type: str  # of the flag: str, int, float or bool
    values: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False

    def add_to(self, space: kt.HyperParameters) -> None:
        if self.values:
            # Texts: a number that has been rounded on its way is not found among the choices.
            space.Choice(self.name, list(self.values))
        else:
            space.Float(self.name, self.low, self.high, sampling="log" if self.log else "linear")

    def ends(self) -> tuple:
        return self.values or (self.low, self.high)

    def value(self, found):
        """What the flag gets for a value that KerasTuner gives."""
        if isinstance(found, str):
            return _convert(self.type, found)
        if self.type == "int":
            return round(found)
        number = float(f"{found:.4g}")
        return f"{number:g}" if self.type == "str" else number


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
        return dataclasses.replace(self.base, **{**flags, **changes})

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
            except config_lib.UserError as error:
                text = ", ".join(f"{k}={v}" for k, v in self.shown(values).items())
                raise config_lib.UserError(f"--search: with {text}: {error}") from None
        return found

    def _composed(self, found: dict) -> str:
        places = {name: found[f"place.{name}"] for name in transforms.REGISTRY}
        order = sorted(places, key=places.get)
        present = [name for name in order if places[name] >= 0] or order[-1:]
        return _write((name, found[f"epsilon.{name}"]) for name in present)


def parse(text: str, base: config_lib.Config, grid: bool, composition: bool = False) -> Space:
    """The space of --search=`text`; without a text the paper's grid, or all compositions."""
    used = _used(base)
    parameters: dict[str, Parameter] = {}
    for part in filter(None, re.split(r",(?=\s*[\w.]+\s*=)", text.strip())):
        name, _, values = (piece.strip() for piece in part.partition("="))
        parameter = _parse_one(name, values, list(transforms.REGISTRY) if composition else used)
        if parameter.name in parameters:
            raise config_lib.UserError(f"--search: {parameter.name} is there twice")
        parameters[parameter.name] = parameter
    if composition:
        parameters = _with_composition(parameters, used)
    elif not parameters:
        parameters = _paper(used)
    if "transforms" in parameters and (composition or any("." in name for name in parameters)):
        raise config_lib.UserError(
            "--search: transforms beside epsilon.<transformation> or --search_composition would "
            "say the same ε twice; take one of them"
        )
    for parameter in parameters.values():
        if grid and not parameter.values:
            ends = f"{parameter.name}={parameter.low:g}:{parameter.high:g}"
            form = f"{ends}:log:5" if parameter.log else f"{ends}:<step>"
            raise config_lib.UserError(
                f"--search: a grid needs the number of values of {parameter.name}: write {form}, "
                "or take --tuner=random or bayesian"
            )
    space = Space(base, parameters.values(), composition)
    space.probes()
    return space


def _used(config: config_lib.Config) -> list[str]:
    """The transformations that a config's method trains with."""
    if config.method == "supervised":
        return []
    return [t.name for t in config.transform().transforms]


def _paper(used) -> dict[str, Parameter]:
    names = [name for name in used if name in PAPER]
    if not names:
        raise config_lib.UserError(
            f"--search: the paper has a grid for {', '.join(PAPER)}, and this run uses "
            f"{', '.join(used) or 'no transformation'}; say what to search, for example "
            + ("--search=epsilon.noise=0.5:5:0.5" if used else "--search=learning_rate=1e-4|1e-3")
        )
    found = [_parse_one(f"epsilon.{name}", PAPER[name], used) for name in names]
    return {parameter.name: parameter for parameter in found}


def _with_composition(parameters, used) -> dict[str, Parameter]:
    if not used:
        raise config_lib.UserError(
            "--search_composition: method supervised has no transformations to compose"
        )
    composed = {}
    for name, values in COMPOSED.items():
        composed[f"place.{name}"] = Parameter(f"place.{name}", "float", (), -1.0, 1.0)
        composed[f"epsilon.{name}"] = _parse_one(f"epsilon.{name}", values, COMPOSED)
    return {**composed, **parameters}


def _parse_one(name: str, text: str, used) -> Parameter:
    """The parameter of `name`=`text`, its name and the form of its values checked."""
    if name.startswith("epsilon."):
        short = name.partition(".")[2]
        name = f"epsilon.{transforms.ALIASES.get(short, short)}"
        kind = "float"
        if name.partition(".")[2] not in used:
            hint = hints.did_you_mean(short, used)
            raise config_lib.UserError(
                f"--search: expected epsilon.<one of {', '.join(used) or 'no transformation'}>, "
                f"what this run uses, got {name}{hint}"
            )
    else:
        kind = _type_of(name)
    if "|" in text:
        values = [value.strip() for value in text.split("|")]
        if len(set(values)) < len(values):
            raise config_lib.UserError(f"--search: {name}={text} has a value twice")
        # Numbers in their order, which a Gaussian process takes for nearness.
        values = (
            sorted(values, key=float) if kind in ("int", "float") and _numbers(values) else values
        )
        parameter = Parameter(name, kind, tuple(values))
    else:
        parameter = _range(name, kind, text)
    for value in parameter.values:
        try:
            _convert(kind, value)
        except ValueError:
            raise config_lib.UserError(
                f"--search: {name} takes {_KINDS[kind]}, got {value!r}"
            ) from None
    return parameter


def _type_of(name: str) -> str:
    fields = {field.name: field for field in dataclasses.fields(config_lib.Config)}
    if name not in fields:
        searchable = [n for n, field in fields.items() if field.metadata["group"] != "Machine"]
        names = [*searchable, *(f"epsilon.{t}" for t in transforms.REGISTRY)]
        raise config_lib.UserError(
            f"--search: there is no flag {name!r}{hints.did_you_mean(name, names)}"
        )
    if fields[name].metadata["group"] == "Machine":
        raise config_lib.UserError(
            f"--search: {name} says where and how to compute, which changes no result to search for"
        )
    return fields[name].type.partition("|")[0].strip()


def _range(name: str, kind: str, text: str) -> Parameter:
    start, stop, *rest = [piece.strip() for piece in text.split(":")] + [""] * (":" not in text)
    log = rest[:1] == ["log"]
    numbers = [start, stop, *(rest[1:] if log else rest)]
    if kind == "bool" or not _numbers(numbers) or len(rest) > 1 + log:
        raise config_lib.UserError(
            f"--search: expected {name}=<start>:<stop>:<step>, <start>:<stop>:log[:<count>] or "
            f"<a>|<b>|…, got {name}={text}"
        )
    low, high, *last = map(float, numbers)
    if not low < high or (log and low <= 0):
        raise config_lib.UserError(
            f"--search: expected start < stop{' and start > 0' if log else ''}, got {name}={text}"
        )
    if not last:
        return Parameter(name, kind, (), low, high, log)
    if log and not (last[0] >= 2 and last[0] == int(last[0])):
        raise config_lib.UserError(f"--search: expected a count >= 2, got {name}={text}")
    if not log and not 0 < last[0] <= high - low:
        raise config_lib.UserError(
            f"--search: expected a step > 0 and <= stop - start, got {name}={text}"
        )
    count = last[0] if log else (high - low) / last[0] + 1
    if count > 10_000:
        raise config_lib.UserError(f"--search: {name}={text} has {count:.0f} values")
    if log:
        values = [low * (high / low) ** (i / (last[0] - 1)) for i in range(int(count))]
        values = [round(v) for v in values] if kind == "int" else [f"{v:.4g}" for v in values]
    else:
        # 0.1 + 2 * 0.1 is 0.30000000000000004: ten digits are enough to say what was meant.
        values = [f"{low + i * last[0]:.10g}" for i in range(int(count + 1e-9))]
    return Parameter(name, kind, tuple(dict.fromkeys(map(str, values))))


_KINDS = {"int": "whole numbers", "float": "numbers", "bool": "true or false", "str": "a text"}


def _convert(kind: str, text: str):
    if kind == "bool":
        if text.lower() not in ("true", "false"):
            raise ValueError(text)
        return text.lower() == "true"
    return {"int": int, "float": float, "str": str}[kind](text)


def _numbers(texts) -> bool:
    try:
        return all(math.isfinite(float(text)) for text in texts)
    except ValueError:
        return False


def _write(pairs) -> str:
    """--transforms of (name, ε) pairs."""
    return ",".join(f"{name}:{epsilon:.10g}" for name, epsilon in pairs)
