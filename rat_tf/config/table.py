"""All flags in one frozen `Config`: the flags of data, of training and of every method.

Defaults are the paper's values. `flag_values` makes a `Config` from a command line or a flagfile.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterator

import rat_tf
from rat_tf import errors, fields
from rat_tf.config import training_flags
from rat_tf.data import options as data_options
from rat_tf.methods import options as method_options
from rat_tf.networks import names
from rat_tf.transforms import spec

METHODS = method_options.METHODS
WEIGHTS = ("best", "last", "student", "ema", "teacher")  # see `Config.monitor`


def _method_flags() -> dict[str, dict[str, dataclasses.Field]]:
    """The flags of methods: for each, its field in every method that uses it."""
    found: dict[str, dict[str, dataclasses.Field]] = {}
    for method, options in METHODS.items():
        for field in dataclasses.fields(options):
            found.setdefault(field.name, {})[method] = field
    return found


METHOD_FLAGS = _method_flags()


def _optional(by_method: dict[str, dataclasses.Field]) -> tuple:
    """A field that is None unless the method uses the flag."""
    some = next(iter(by_method.values()))
    return some.name, some.type, dataclasses.field(default=None, metadata=some.metadata)


_MethodFlags = dataclasses.make_dataclass(
    "_MethodFlags", map(_optional, METHOD_FLAGS.values()), frozen=True
)


@dataclasses.dataclass(frozen=True)
class Config(_MethodFlags, training_flags.TrainingFlags, data_options.DataOptions):
    """One run: a field per flag, parsed and checked. Flags that the method does not use are None.

    Made from the command line by `cli`, or directly: `Config(labels=50, transforms="affine:0.3")`.
    """

    method: str = fields.flag(
        "rat",
        "; ".join(f"{name}: {options.__doc__}" for name, options in METHODS.items())
        + ". Flags that the method does not use are an error on the command line and ignored in a "
        "flagfile, so that one flagfile works for several methods.",
        choices=tuple(METHODS),
    )

    def __post_init__(self):
        self._set("method", fields.value_of(FLAGS["method"], self.method))
        for name, by_method in METHOD_FLAGS.items():
            if self.method not in by_method and getattr(self, name) is not None:
                raise errors.UserError(
                    f"--{name}: not used by --method={self.method}, only by {', '.join(by_method)}"
                )
        for name, field in FLAGS.items():
            value = getattr(self, name)
            if name in METHOD_FLAGS:
                if self.method not in METHOD_FLAGS[name]:
                    continue
                value = METHOD_FLAGS[name][self.method].default if value is None else value
            self._set(name, fields.value_of(field, value))
        self._count_shares()
        self.options.check()
        for message in self._clashes():
            raise errors.UserError(message)  # the first
        if self.mixup is False:  # then α is unused: it must not make configs differ
            self._set("mixup_alpha", None)

    def _set(self, name: str, value) -> None:
        object.__setattr__(self, name, value)  # frozen, but still being made

    def _count_shares(self) -> None:
        """Computes the steps of flags that were given as a share of --iterations."""
        for name in FLAGS:
            value = getattr(self, name)
            if isinstance(value, fields.Steps) and value.share:
                value = value.of(self.iterations)
                problem = FLAGS[name].metadata["check"](int(value))
                if problem:
                    problem += f", which is {value} of --iterations={self.iterations}"
                    raise errors.UserError(f"--{name}: {problem}")
                if name == "validate_every":
                    value = value.near(nearest_divisor(self.iterations, value))
                self._set(name, value)

    def _clashes(self) -> Iterator[str]:
        """Cross-flag checks."""
        if self.iterations % self.validate_every:
            shown = self.validate_every
            if isinstance(shown, fields.Steps) and shown.share:
                shown = f"{shown}, which is {int(shown)} steps"
            yield (
                f"--validate_every: expected a divisor of --iterations={self.iterations}, "
                f"got {shown}"
            )
        elif self.interval * 2 < min(self.checkpoint_every, self.validate_every):
            yield (
                f"--checkpoint_every: expected about a divisor of --validate_every="
                f"{int(self.validate_every)}, got {self.checkpoint_every}"
            )
        if self.jit_compile and self.sampler == "resampler":
            yield "--sampler: XLA cannot compile resampler, use gather with --jit_compile"
        if self.options.unlabeled and not self.unlabeled_batch:
            yield f"--unlabeled_batch: must be > 0 for --method={self.method}, got 0"
        problem = method_options.rat.share_problem(self.adversary_share or 1, self.unlabeled_batch)
        if problem:
            yield f"--adversary_share: {problem}"
        yield from self.network_clashes()
        if self.logical_devices > 1:
            yield from self._clashes_with_logical_devices()

    def _clashes_with_logical_devices(self) -> Iterator[str]:
        given = f"--logical_devices={self.logical_devices}"
        if self.jit_compile:
            yield f"--jit_compile: XLA cannot compile a step for several CPU devices, got {given}"
        if self.strategy in ("one_device", "multi_worker"):
            yield f"--strategy: expected mirrored or auto with {given}, got {self.strategy}"

    @property
    def options(self):
        """The options of the method: an instance of its class in rat_tf.methods.options."""
        kind = METHODS[self.method]
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(kind)}
        plain = {n: int(v) if isinstance(v, fields.Steps) else v for n, v in values.items()}
        return kind(**plain)

    @property
    def title(self) -> str:
        """The run in a few words, for figures."""
        labels = f"{self.labels:,} labels" if self.labels else "all labels"
        return f"{self.options.title} on {self.dataset_title}, {labels}, seed {self.seed}"

    @property
    def dataset_title(self) -> str:
        """digits; of folder:photos/pets only pets."""
        return os.path.basename(os.path.normpath(self.dataset.rpartition(":")[2]))

    @property
    def used_transforms(self) -> spec.Spec | None:
        """The transformations that training applies; None for a method without any."""
        return None if self.transforms is None else self.options.used_transforms

    @property
    def batch_sizes(self) -> tuple[int, int]:
        """Labelled and unlabelled images per step; without unlabelled ones all are labelled."""
        if self.options.unlabeled:
            return super().batch_sizes
        return self.labeled_batch + self.unlabeled_batch, 0

    def monitor(self, weights: str = "best") -> str:
        """The name of the metric with the validation error of these weights.

        `best` are the weights that --evaluate names, at their lowest error; `last` are the same
        at the end of training. `student` are the trained weights, `ema` and `teacher` their moving
        average.
        """
        named = {"student": "error", "ema": "ema_error", "teacher": "ema_error"}
        return named.get(weights) or named[self.evaluate]

    @property
    def interval(self) -> int:
        """Steps from one checkpoint to the next: an "epoch" to Keras."""
        return max(d for d in _divisors(self.validate_every) if d <= self.checkpoint_every)

    def beginning(self, iterations: int) -> Config:
        """The first steps of this run: its ramps and decay are unchanged, also those of shares."""
        values = {name: getattr(self, name) for name in FLAGS}
        shares = {n: int(v) for n, v in values.items() if isinstance(v, fields.Steps)}
        return dataclasses.replace(self, iterations=iterations, **shares)

    def differences(self, other: Config) -> list[str]:
        """The flags in which two configs differ, except those of the machine."""
        return [
            f"expected --{name}={getattr(other, name)}, got --{name}={getattr(self, name)}"
            for name, field in FLAGS.items()
            if field.metadata["group"] != "Machine"
            and not _same(getattr(self, name), getattr(other, name))
        ]

    def warnings(self) -> Iterator[str]:
        """What is allowed but probably not meant.

        Ramps and a decay that the run does not reach, and a search that is lost in rounding.
        """
        for name, effect in BEYOND.items():
            value = getattr(self, name)
            if value is not None and value > self.iterations:
                yield (
                    f"--{name}={value} is beyond the end of the run, --iterations="
                    f"{self.iterations}: {effect}. A share such as --{name}=40% follows the run"
                )

        if self._rounds_xi():
            family, _ = names.parse(self.network)
            unless = ", unless the network has dropout" if family.foreign else ""
            yield (
                f"--xi={self.xi} is lost in rounding without augmentation: both passes of the "
                "search see the same pixels and statistics, and its direction is not that of "
                f"Algorithm 1{unless}. --xi=0.1eps computes it"
            )

    def _rounds_xi(self) -> bool:
        """Whether a gradient is taken at ξ although nothing but ξ tells its two passes apart.

        They see other pixels with augmentation, other weights with the teacher's target, and other
        batch statistics where the clean pass is one of labelled and unlabelled images together.
        """
        searches = self.options.searches and self.adversary != "worst_of"
        if not searches or self.augments or self.target != "student":
            return False
        family, _ = names.parse(self.network)
        alone = self.separate_statistics or self.mixup or not family.batch_statistics
        return alone and not self.xi.relative and self.xi.value < LEAST_XI

    def flagfile(self) -> str:
        """The text of a flagfile that reproduces this config in any run folder."""
        values = ((name, getattr(self, name)) for name in FLAGS if name != "run_dir")
        lines = [f"--{name}={fields.text_of(v)}" for name, v in values if v is not None]
        return "\n".join([f"# rat_tf {rat_tf.__version__}", *lines]) + "\n"


#: Where nothing else tells two passes apart, a smaller ξ is lost in the rounding of float32.
LEAST_XI = 1e-3

#: Schedules, and what happens when they are longer than the run.
BEYOND = {
    "consistency_rampup": "λ stays below --consistency",
    "epsilon_rampup": "ε stays below that of --transforms",
    "decay_at": "the learning rate never decays",
}


def nearest_divisor(number: int, wanted: int) -> int:
    """The divisor of `number` nearest to `wanted`, by their ratio; `wanted` if none is near."""
    found = min(_divisors(number), key=lambda d: max(d / wanted, wanted / d))
    return found if wanted / 2 < found < wanted * 2 else wanted


def _divisors(number: int) -> set[int]:
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return {*small, *(number // d for d in small)}


def _same(one, other) -> bool:
    """Whether two values are equal. Equal shares of runs of different length are, too."""
    return one == other or (isinstance(one, fields.Steps) and str(one) == str(other))


FLAGS: dict[str, dataclasses.Field] = {field.name: field for field in dataclasses.fields(Config)}


def is_used(flag: str, method: str) -> bool:
    """Whether a method uses a flag."""
    return flag not in METHOD_FLAGS or method in METHOD_FLAGS[flag]


def default_text(flag: str) -> str:
    """A flag's default as shown in the help: 0.003; pi_model: 0.0003."""
    if flag not in METHOD_FLAGS:
        return fields.text_of(FLAGS[flag].default)
    by_value: dict[str, list[str]] = {}
    for method, field in METHOD_FLAGS[flag].items():
        by_value.setdefault(fields.text_of(field.default), []).append(method)
    return "; ".join(f"{', '.join(methods)}: {value}" for value, methods in by_value.items())
