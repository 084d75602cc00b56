"""Options that all or most methods have, and the registration of a method."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator
from typing import ClassVar

from rat_tf import errors, fields

MAX_PASSES = 1000  # of the network in one step: each is a part of TensorFlow's graph
REGISTRY: dict[str, type[Options]] = {}


def register(name: str, model: str, title: str = ""):
    """Class decorator: registers options as the method that flags call `name`, figures `title`.

    `model` is the class that trains with them: "<module of rat_tf.methods>:<class>". The docstring
    of the options is what --help says of the method.
    """

    def decorate(cls):
        cls = dataclasses.dataclass(frozen=True)(fields.inherit(cls))
        cls.model = model
        cls.title = title or name
        REGISTRY[name] = cls
        return cls

    return decorate


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of every method, each with its own defaults. A subclass adds its flags as fields."""

    learning_rate: float = fields.flag(
        0.003, "Initial learning rate of Adam.", fields.positive, group="Training"
    )
    weight_decay: float = fields.flag(
        0.0,
        "Decoupled weight decay of the kernels, times the learning rate at every step.",
        fields.fraction,
        group="Training",
    )
    ema_decay: float = fields.flag(
        0.0,
        "Decay of an exponential moving average of the weights, which is evaluated, too (the "
        "teacher of mean_teacher); 0: no average.",
        fields.fraction,
        group="Training",
    )
    evaluate: str = fields.flag(
        "student",
        "Weights that give the run's result: the trained weights (student) or their moving average "
        "(teacher). result.json has both.",
        choices=("student", "teacher"),
        group="Training",
    )

    class_weights: str = fields.flag(
        "none",
        "Weights of labelled images in the loss: none, or balanced, images / (classes · images of "
        "the class), so that every class counts the same.",
        choices=("none", "balanced"),
        group="Training",
    )

    model: ClassVar[str]
    title: ClassVar[str]
    #: Whether training uses unlabelled images; if not, the whole batch is labelled.
    unlabeled: ClassVar[bool] = True
    #: Whether Algorithm 1 searches for the transformations.
    searches: ClassVar[bool] = False

    def check(self) -> None:
        """Raises the first of `clashes` as a UserError."""
        for message in self.clashes():
            raise errors.UserError(message)

    def clashes(self) -> Iterator[str]:
        """Cross-option checks: messages about options that cannot be combined."""
        if self.evaluate == "teacher" and not self.ema_decay:
            yield "--ema_decay: must be > 0 with --evaluate=teacher, got 0.0"

    def arguments(self) -> dict:
        """Keyword arguments of the model's class, besides those of all methods."""
        return {}

    @property
    def remedies(self) -> str:
        """Flags that make the search stronger than it is; empty without a search."""
        return ""

    @property
    def search_words(self) -> str:
        """The search in a few words; empty without one, and for Algorithm 1."""
        return ""

    @property
    def model_path(self) -> str:
        """`model`, or another class if the options need one."""
        return self.model

    def load_model(self) -> type:
        """The class that trains with these options; this imports TensorFlow."""
        module, _, name = self.model_path.partition(":")
        return getattr(importlib.import_module(f"rat_tf.methods.{module}"), name)


@dataclasses.dataclass(frozen=True)
class SemiSupervised(Options):
    """Options of a loss on unlabelled images, weighted by a λ that ramps up."""

    consistency: float = fields.flag(
        0.3, "λ, the weight of the loss on unlabelled images (RAT: of the KL).", fields.at_least(0)
    )
    consistency_rampup: fields.Steps = fields.steps(
        200_000, "Steps over which λ ramps up (mixmatch: linearly)."
    )

    def arguments(self) -> dict:
        return {
            "consistency": self.consistency,
            "consistency_rampup": self.consistency_rampup,
        }
