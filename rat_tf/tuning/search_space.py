"""What a search varies: the parameters of --search, and their values as a `Config`.

A parameter is a flag or `epsilon.<transformation>`, the ε of one transformation in --transforms;
`rat_tf.config.ranges` has the grammar of its values.

A composition is searched with two numbers for each transformation t: `place.t` in [-1, 1] and
`epsilon.t`. Those with place >= 0 are applied in the order of their places; if there is none, the
one with the highest place is applied alone. So every point of the box is a composition, and near
points are similar, as a Gaussian process needs it.
"""

from __future__ import annotations

import dataclasses
import itertools
import math

from rat_tf import config as config_lib
from rat_tf import errors
from rat_tf.config import flag_values, ranges
from rat_tf.transforms import spec

# Section "Evaluation of Composite Transformations" of the paper.
PAPER = {
    "channel_weight": "0.001:0.01:0.001",
    "affine": "0.1:1:0.1",
    "thin_plate_spline": "0.1:1:0.1",
    "flow_field": "0.01:0.1:0.01",
}
# The same ranges, and for the noise one around the paper's 1 (SVHN), 6 and 10 (CIFAR-10).
COMPOSED = {"noise": "0.1:10:log"}
COMPOSED.update({name: f"{grid.rpartition(':')[0]}:log" for name, grid in PAPER.items()})
MAX_PROBES = 1000  # combinations checked before the search starts


@dataclasses.dataclass(frozen=True)
class Space:
    """The parameters of a search around a base config."""

    base: config_lib.Config
    parameters: tuple[ranges.Parameter, ...]
    composition: bool

    def shown(self, values: dict) -> dict:
        """Names and values as flags; a composition as its --transforms."""
        found = {p.name: _value(p, values[p.name]) for p in self.parameters}
        if not self.composition:
            return found
        rest = {k: v for k, v in found.items() if not k.startswith(("place.", "epsilon."))}
        return {"transforms": _composed(found), **rest}

    def config(self, values: dict, **changes) -> config_lib.Config:
        """The config of a trial; other flags are those of the base."""
        shown = self.shown(values)
        flags = {name: value for name, value in shown.items() if "." not in name}
        epsilons = {k.partition(".")[2]: v for k, v in shown.items() if k.startswith("epsilon.")}
        if epsilons:
            flags["transforms"] = _spec({**self.base.transforms.epsilons, **epsilons})
        # Where kinds of searches are varied, each trial takes the flags that its kind uses.
        unused = flag_values.UNUSED_BY.get(flags.get("adversary"), ())
        flags = {name: value for name, value in flags.items() if name not in unused}
        return flag_values.changed_config(self.base, **flags, **changes)

    def size(self) -> float:
        """The number of combinations; infinite if a parameter is a range of all numbers."""
        return math.prod(len(p.values) or math.inf for p in self.parameters)

    def probes(self) -> list[config_lib.Config]:
        """The configs of all combinations; if there are many, of some that include every value."""
        choices = [p.values or (p.low, p.high) for p in self.parameters]
        combinations = list(itertools.islice(itertools.product(*choices), MAX_PROBES))
        if len(combinations) == MAX_PROBES:
            first = combinations[0]
            for i, values in enumerate(choices):
                combinations += [(*first[:i], value, *first[i + 1 :]) for value in values]
        names = [p.name for p in self.parameters]
        return [self._probe(dict(zip(names, combination))) for combination in combinations]

    def _probe(self, values: dict) -> config_lib.Config:
        try:
            return self.config(values)
        except errors.UserError as error:
            text = ", ".join(f"{k}={v}" for k, v in self.shown(values).items())
            raise errors.UserError(f"--search: with {text}: {error}") from None


def parse(text: str, base: config_lib.Config, tuner: str, composition: bool = False) -> Space:
    """The space of --search=`text`; without a text the paper's grid, or all compositions."""
    transforms = base.used_transforms.epsilons if base.used_transforms else {}
    used = list(COMPOSED if composition else transforms)
    given: dict[str, ranges.Parameter] = {}
    for name, values in ranges.split("--search", text):
        parameter = _parameter(name, values, used)
        if parameter.name in given:
            raise errors.UserError(f"--search: {parameter.name} is given twice")
        given[parameter.name] = parameter
    parameters: dict[str, ranges.Parameter] = {}
    for name, values in (COMPOSED if composition else {} if given else _paper(used)).items():
        if composition:
            parameters[f"place.{name}"] = ranges.Parameter(f"place.{name}", "float", (), -1, 1)
        parameters[f"epsilon.{name}"] = _parameter(f"epsilon.{name}", values, used)
    parameters.update(given)
    _check(parameters, tuner, composition)
    space = Space(base, tuple(parameters.values()), composition)
    space.probes()
    return space


def _check(parameters: dict[str, ranges.Parameter], tuner: str, composition: bool) -> None:
    if "transforms" in parameters and (composition or any("." in name for name in parameters)):
        raise errors.UserError(
            "--search: transforms, epsilon.<transformation> and --search_composition all set ε; "
            "use one of them"
        )
    clash = {"iterations", "validate_every"} & set(parameters)
    if tuner == "hyperband" and clash:
        raise errors.UserError(f"--search: {clash.pop()} is already varied by --tuner=hyperband")
    if tuner == "grid":
        for parameter in parameters.values():
            parameter.check_list("--search", "--tuner=grid")


def _parameter(name: str, text: str, used: list[str]) -> ranges.Parameter:
    """The parameter `name`=`text`; `used` are the transformations that have an ε to search."""
    if name.startswith("epsilon."):
        short = name.partition(".")[2]
        full = spec.ALIASES.get(short, short)
        if full not in used:
            raise errors.UserError(
                f"--search: expected epsilon.<one of {', '.join(used) or 'no transformation'}>, "
                f"as in --transforms, got {name}{errors.did_you_mean(short, used)}"
            )
        name, kind = f"epsilon.{full}", "float"
    else:
        known = [n for n, flag in config_lib.FLAGS.items() if flag.metadata["group"] != "Machine"]
        if name not in known:
            hint = errors.did_you_mean(name, [*known, *(f"epsilon.{t}" for t in COMPOSED)])
            raise errors.UserError(
                f"--search: expected a flag that changes the result, got {name!r}{hint}"
            )
        kind = config_lib.FLAGS[name].type
    parameter = ranges.parse("--search", name, text, kind)
    if len(parameter.values) == 1:
        raise errors.UserError(f"--search: expected two values or more, got {name}={text}")
    if kind in (*ranges.WHOLE, "float"):
        # A Gaussian process treats neighbours in the list as similar. Shares come after numbers.
        ordered = tuple(
            sorted(parameter.values, key=lambda v: (v.endswith("%"), float(v.rstrip("%"))))
        )
        parameter = dataclasses.replace(parameter, values=ordered)
    return parameter


def _paper(used: list[str]) -> dict[str, str]:
    """The paper's grid for the transformations in use."""
    found = {name: PAPER[name] for name in used if name in PAPER}
    if not found:
        raise errors.UserError(
            f"--search: the paper has a grid for {', '.join(PAPER)}, but this run uses "
            f"{', '.join(used) or 'no transformation'}; set it, for example --search="
            + ("epsilon.noise=0.5:5:0.5" if used else "learning_rate=1e-4|1e-3")
        )
    return found


def _value(parameter: ranges.Parameter, found):
    """The value of the flag for a value from KerasTuner: a text of a list, or a number."""
    if isinstance(found, str):
        return ranges.convert(found, parameter.kind)
    if parameter.kind in ranges.WHOLE:
        return round(found)
    number = float(f"{found:.4g}")
    return number if parameter.kind == "float" else f"{number:g}"


def _composed(found: dict) -> str:
    places = {name: found[f"place.{name}"] for name in COMPOSED}
    order = sorted(places, key=places.get)
    present = [name for name in order if places[name] >= 0] or order[-1:]
    return str(_spec({name: found[f"epsilon.{name}"] for name in present}))


def _spec(epsilons: dict[str, float]) -> spec.Spec:
    return spec.Spec(tuple(epsilons.items()))
