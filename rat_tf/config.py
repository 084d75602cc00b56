"""All flags, their validation, and the frozen `Config` that the rest of rat_tf reads.

A flag is a field of `Config`; its default is the paper's value. Nothing else knows flag names.
"""

from __future__ import annotations

import dataclasses
import math
import re

from absl import flags

from rat_tf import adversary, hints, transforms
from rat_tf.transforms import sampling

METHODS = ("rat", "vat", "random", "supervised")
DATASETS = ("svhn", "cifar10", "cifar100", "digits")


class UserError(Exception):
    """A mistake in what the user gave us: shown as one message, without a traceback."""


def _flag(default, group: str, text: str, check=None, choices=None):
    return dataclasses.field(
        default=default,
        metadata={"group": group, "help": text, "check": check, "choices": choices},
    )


def _expect(condition, expected: str):
    """A check: None where `condition` holds for a value, else what was expected and found."""
    return lambda value: None if condition(value) else f"expected {expected}, got {value!r}"


def _at_least(low):
    return _expect(lambda value: low <= value < math.inf, f"a number >= {low}")


_positive = _expect(lambda value: 0 < value < math.inf, "a number > 0")
_seed = _expect(lambda value: 0 <= value < 2**31, "a number from 0 to below 2^31")
_fraction = _expect(lambda value: 0 <= value < 1, "a number from 0 to below 1")


def _pattern(pattern: str, expected: str):
    return _expect(lambda value: re.fullmatch(pattern, value), expected)


def _parsed_by(parse):
    """A check that leaves the verdict, and the words, to the parser of the value."""

    def check(value):
        try:
            parse(value)
        except ValueError as error:
            return str(error)
        return None

    return check


def _check_dataset(name: str) -> str | None:
    kind, _, rest = name.partition(":")
    if name in DATASETS or (kind in ("tfds", "folder") and rest):
        return None
    hint = hints.did_you_mean(name, DATASETS)
    return f"expected {', '.join(DATASETS)}, tfds:<name> or folder:<path>, got {name!r}{hint}"


@dataclasses.dataclass(frozen=True)
class Config:
    """One run. Made from the command line by `from_flags`, or directly: `Config(labels=50)`."""

    method: str = _flag(
        "rat",
        "Method",
        "rat; vat (the noise of --transforms alone); random (the same transformations and ε "
        "without the search); supervised.",
        choices=METHODS,
    )
    transforms: str = _flag(
        "noise:1.0,affine:0.6",
        "Method",
        "Transformations with their ε, in the order of application: "
        + ", ".join(transforms.REGISTRY)
        + ".",
        _parsed_by(transforms.parse),
    )
    consistency: float = _flag(0.3, "Method", "λ, the weight of the KL.", _at_least(0))
    consistency_rampup: int = _flag(200_000, "Method", "Steps of the ramp of λ.", _at_least(0))
    epsilon_rampup: int = _flag(
        0, "Method", "Steps of the ramp of ε (the paper: 400000); 0: no ε-rampup.", _at_least(0)
    )
    entropy_multiplier: float = _flag(
        0.06, "Method", "Weight of the entropy of unlabelled predictions.", _at_least(0)
    )
    kl_direction: str = _flag(
        "clean_adversarial",
        "Method",
        "KL[clean ‖ adversarial], the paper's, or the reverse.",
        choices=("clean_adversarial", "adversarial_clean"),
    )
    xi: str = _flag(
        "1e-6",
        "Method",
        "ξ, the step of the finite difference: a number, or a multiple of ε such as 0.5eps.",
        _parsed_by(adversary.Xi.parse),
    )
    power_iterations: int = _flag(1, "Method", "Inner gradients per step.", _at_least(1))
    ascent: str = _flag(
        "paper",
        "Method",
        "How a gradient becomes a direction: normalised (paper), or the maximiser in the "
        "transformation's own norm (steepest).",
        choices=adversary.ASCENTS,
    )
    padding: str = _flag(
        "zeros", "Method", "What warps see outside the image.", choices=sampling.PADDINGS
    )
    sampler: str = _flag(
        "auto",
        "Machine",
        "Bilinear sampling by tfa's kernel (resampler), or by plain TensorFlow for XLA to compile "
        "(gather); auto: gather with --jit_compile, else resampler.",
        choices=("auto", *sampling.SAMPLERS),
    )

    dataset: str = _flag(
        "svhn",
        "Data",
        "svhn, cifar10, cifar100, digits (comes with scikit-learn), tfds:<name> for any other "
        "image classification set of TFDS, or folder:<path> with labeled/<class>/*, unlabeled/** "
        "and optionally validation/<class>/* and test/<class>/*.",
        check=_check_dataset,
    )
    data_dir: str = _flag("", "Machine", "TFDS folder, also gs://; empty: the default of TFDS.")
    download: bool = _flag(False, "Machine", "Download and prepare the set if --data_dir lacks it.")
    svhn_extra: bool = _flag(
        False, "Data", "Add the 531,131 extra images of SVHN to the unlabelled ones."
    )
    image_size: int = _flag(0, "Data", "Resize to this height and width; 0: as is.", _at_least(0))
    channels: int = _flag(
        0,
        "Data",
        "Turn images into grey (1) or RGB (3), without any alpha; 0: as they are, RGB for folders.",
        _expect(lambda value: value in (0, 1, 3), "0, 1 or 3"),
    )
    skip_broken: bool = _flag(
        False, "Data", "Leave out the files of a folder that are no image, and say which."
    )
    labels: int = _flag(
        1000, "Data", "Number of labelled images; 0: all that have a label.", _at_least(0)
    )
    validation: float = _flag(
        0.1,
        "Data",
        "Validation images, as a share of the labelled training set; unused where the set has a "
        "validation part of its own.",
        _fraction,
    )
    stratify: str = _flag(
        "balanced",
        "Data",
        "As many labelled images in each class, or in proportion to the classes.",
        choices=("balanced", "proportional"),
    )
    split_seed: int = _flag(1, "Data", "Seed of the split into labelled and the rest.", _seed)
    split_file: str = _flag("", "Data", "Use the split of this file: split.json of another run.")
    include_labeled: bool = _flag(
        False, "Data", "Let labelled images be among the unlabelled ones, too."
    )
    preprocessing: str = _flag(
        "scale",
        "Data",
        "Scale to [-1, 1] (SVHN), or global contrast normalisation and ZCA (CIFAR-10).",
        choices=("scale", "gcn_zca"),
    )
    labeled_batch: int = _flag(50, "Data", "Labelled images per step.", _positive)
    unlabeled_batch: int = _flag(
        50,
        "Data",
        "Unlabelled images per step; the supervised method takes as many labelled ones instead.",
        _at_least(0),
    )
    augment_shift: int = _flag(2, "Data", "Random shift by up to so many pixels.", _at_least(0))
    augment_flip: bool = _flag(False, "Data", "Random horizontal flip.")
    augment_noise: float = _flag(0.0, "Data", "Standard deviation of pixel noise.", _at_least(0))
    augment_granularity: str = _flag(
        "batch", "Data", "One shift and flip per batch or per image.", choices=("batch", "image")
    )
    memory_limit_gb: float = _flag(
        4.0,
        "Machine",
        "Larger sets are decoded once into --cache_dir and read from there.",
        _at_least(0),
    )
    cache_dir: str = _flag(
        "", "Machine", "Folder for decoded sets and fitted ZCA matrices; empty: ~/.cache/rat_tf."
    )

    network: str = _flag(
        "wrn-28-2",
        "Training",
        "Wide ResNet wrn-<depth>-<width>, depth 6n + 4.",
        _pattern(r"wrn-(10|16|22|28|34|40)-[1-9]\d*", "wrn-<depth>-<width> such as wrn-28-2"),
    )
    iterations: int = _flag(500_000, "Training", "Training steps.", _positive)
    validate_every: int = _flag(
        25_000, "Training", "Steps between validations; divides --iterations.", _positive
    )
    learning_rate: float = _flag(0.003, "Training", "Initial learning rate of Adam.", _positive)
    decay_at: int = _flag(400_000, "Training", "Step of the learning rate's decay.", _positive)
    decay: float = _flag(0.2, "Training", "Factor of the learning rate's decay.", _positive)
    ema_decay: float = _flag(
        0.0,
        "Training",
        "Decay of an exponential moving average of the weights, evaluated beside them; 0: none.",
        _fraction,
    )
    seed: int = _flag(0, "Training", "Seed of everything random but the split.", _seed)
    sync_batch_norm: bool = _flag(
        False, "Training", "Batch statistics over all replicas instead of each replica's own."
    )
    mixed_precision: str = _flag(
        "",
        "Training",
        "Compute in float16 (with loss scaling) or bfloat16; transformations, softmax and KL stay "
        "in float32.",
        choices=("", "float16", "bfloat16"),
    )
    run_dir: str = _flag(
        "",
        "Machine",
        "Folder of the results; by default runs/<name of the flagfile>/<method>-seed<seed>. A run "
        "that was stopped goes on from there.",
    )
    checkpoint_every: int = _flag(
        5_000,
        "Machine",
        "Steps between checkpoints and points of the curves; divides --validate_every, or is "
        "larger and then counts as that.",
        _positive,
    )
    strategy: str = _flag(
        "auto",
        "Machine",
        "auto: MirroredStrategy over all visible GPUs, if there are several; multi_worker: "
        "MultiWorkerMirroredStrategy under TF_CONFIG.",
        choices=("auto", "one_device", "mirrored", "multi_worker"),
    )
    logical_devices: int = _flag(
        1, "Machine", "Split the CPU into so many devices, to try several replicas.", _positive
    )
    jit_compile: bool = _flag(False, "Machine", "Compile the training step with XLA.")
    steps_per_execution: int = _flag(
        1, "Machine", "Steps per call from Python; more is faster for small networks.", _positive
    )
    deterministic: bool = _flag(
        False, "Machine", "Make every TensorFlow operation deterministic, at some cost in speed."
    )
    tensorboard: bool = _flag(True, "Machine", "Write TensorBoard logs to the run folder.")

    def __post_init__(self):
        for field in dataclasses.fields(self):
            message = _problem(field, getattr(self, field.name))
            if message:
                raise UserError(f"--{field.name}: {message}")
        if self.iterations % self.validate_every:
            raise UserError(
                f"--validate_every: expected a divisor of --iterations={self.iterations}, "
                f"got {self.validate_every}"
            )
        if self.validate_every % self.interval:
            raise UserError(
                f"--checkpoint_every: expected a divisor of --validate_every="
                f"{self.validate_every}, got {self.checkpoint_every}"
            )
        if self.jit_compile and self.sampler == "resampler":
            raise UserError(
                "--sampler: XLA cannot compile resampler, use gather with --jit_compile"
            )
        if self.method != "supervised" and not self.unlabeled_batch:
            raise UserError(f"--unlabeled_batch: method {self.method} needs one > 0, got 0")
        if self.method == "vat" and "noise" not in self.transforms:
            raise UserError(
                f"--transforms: method vat needs noise:<ε> among them, got {self.transforms!r}"
            )

    @property
    def interval(self) -> int:
        """Steps from one checkpoint to the next: an "epoch" to Keras."""
        return min(self.checkpoint_every, self.validate_every)

    def transform(self) -> transforms.Composite:
        """The transformations in use: VAT is RAT with the noise alone."""
        sampler = self.sampler
        if sampler == "auto":
            sampler = "gather" if self.jit_compile else "resampler"
        composite = transforms.parse(self.transforms, self.padding, sampler)
        if self.method == "vat":
            noises = [t for t in composite.transforms if isinstance(t, transforms.Noise)]
            composite = transforms.Composite(noises)
        return composite

    def differences(self, other: Config) -> list[str]:
        """The flags in which two configs differ, except those that only say where to compute."""
        return [
            f"--{field.name}={getattr(other, field.name)} there, "
            f"--{field.name}={getattr(self, field.name)} here"
            for field in dataclasses.fields(self)
            if field.metadata["group"] != "Machine"
            and getattr(self, field.name) != getattr(other, field.name)
        ]

    def flagfile(self) -> str:
        """The text of a flagfile that makes this config again, in whatever run folder."""
        lines = []
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name != "run_dir":
                lines.append(
                    f"--{field.name}={str(value).lower() if field.type == 'bool' else value}"
                )
        return "\n".join(lines) + "\n"


def _problem(field, value) -> str | None:
    """What is wrong with a flag's value: expected and found; None if nothing is."""
    choices, check = field.metadata["choices"], field.metadata["check"]
    if choices and value not in choices:
        hint = hints.did_you_mean(str(value), choices)
        return f"expected one of {', '.join(choices)}, got {value!r}{hint}"
    return check(value) if check else None


_DEFINE = {
    "str": flags.DEFINE_string,
    "int": flags.DEFINE_integer,
    "float": flags.DEFINE_float,
    "bool": flags.DEFINE_boolean,
}


def define_flags(flag_values=flags.FLAGS) -> None:
    """Defines one absl flag per field of `Config`."""
    for field in dataclasses.fields(Config):
        _DEFINE[field.type](
            field.name, field.default, field.metadata["help"], flag_values=flag_values
        )


def from_file(path: str, **changes) -> Config:
    """The `Config` of a flagfile, with some fields changed."""
    flag_values = flags.FlagValues()
    define_flags(flag_values)
    try:
        flag_values(["", f"--flagfile={path}"])
    except flags.Error as error:
        raise UserError(f"{path}: {error}") from None
    return Config(**{**values(flag_values), **changes})


def values(flag_values) -> dict:
    """The fields of a `Config` as parsed."""
    return {field.name: getattr(flag_values, field.name) for field in dataclasses.fields(Config)}
