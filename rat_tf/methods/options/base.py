"""Options that all methods have, that most have, and how a method makes itself known."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator
from typing import ClassVar

from rat_tf import errors, fields

REGISTRY: dict[str, type[Options]] = {}


def register(name: str, model: str):
    """Makes a class of options the method that flags call `name`.

    `model` is the class that trains with them: a module of rat_tf.methods, a colon, its name. The
    docstring of the options is what --help says of the method.
    """

    def decorate(cls):
        cls = dataclasses.dataclass(frozen=True)(fields.inherit(cls))
        cls.method, cls.model = name, model
        REGISTRY[name] = cls
        return cls

    return decorate


@dataclasses.dataclass(frozen=True)
class Options:
    """What every method has a default of its own for. A subclass adds its flags as fields."""

    learning_rate: float = fields.flag(
        0.003, "Initial learning rate of Adam.", fields.positive, group="Training"
    )
    weight_decay: float = fields.flag(
        0.0,
        "Kernels shrink by this times the learning rate at every step.",
        fields.fraction,
        group="Training",
    )
    ema_decay: float = fields.flag(
        0.0,
        "Decay of an exponential moving average of the weights, evaluated beside them: the teacher "
        "of mean_teacher; 0: none.",
        fields.fraction,
        group="Training",
    )
    evaluate: str = fields.flag(
        "student",
        "Whose error is the run's result: that of the trained weights (student) or of their moving "
        "average (teacher). result.json has both.",
        choices=("student", "teacher"),
        group="Training",
    )

    method: ClassVar[str]
    model: ClassVar[str]
    #: Whether training uses unlabelled images; if not, the whole batch is labelled.
    unlabeled: ClassVar[bool] = True
    #: Whether transformations are searched for by Algorithm 1.
    searches: ClassVar[bool] = False

    def check(self) -> None:
        """Raises a UserError where options do not go together: the first of `clashes`."""
        for message in self.clashes():
            raise errors.UserError(message)

    def clashes(self) -> Iterator[str]:
        """What is wrong with options that are right each, but not together."""
        if self.evaluate == "teacher" and not self.ema_decay:
            yield "--ema_decay: must be > 0 with --evaluate=teacher, got 0.0"

    def arguments(self) -> dict:
        """Keyword arguments of the model's class, those of all methods apart."""
        return {}

    @property
    def model_path(self) -> str:
        """`model`, or another one if the options ask for it."""
        return self.model

    def load_model(self) -> type:
        """The class that trains with these options; this imports TensorFlow."""
        module, _, name = self.model_path.partition(":")
        return getattr(importlib.import_module(f"rat_tf.methods.{module}"), name)


@dataclasses.dataclass(frozen=True)
class SemiSupervised(Options):
    """Options of a loss of unlabelled images with a weight λ that ramps up."""

    consistency: float = fields.flag(
        0.3, "λ, the weight of the loss of unlabelled images (RAT: of the KL).", fields.at_least(0)
    )
    consistency_rampup: int = fields.flag(
        200_000, "Steps of the ramp of λ (mixmatch: a linear one).", fields.at_least(0)
    )

    def arguments(self) -> dict:
        return {
            "consistency": self.consistency,
            "consistency_rampup": self.consistency_rampup,
        }
