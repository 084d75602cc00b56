"""The table of all flags: the frozen `Config` that the rest of rat_tf reads, and its validation.

A flag is a field of `Config`; its default is the paper's value. `flag_values` makes a `Config` of
what a command line or a flagfile gives.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

from rat_tf import adversary, errors, fields, transforms
from rat_tf.networks import names
from rat_tf.transforms import sampling

SEARCHING = ("rat", "vat")
TRANSFORMING = (*SEARCHING, "random")
MIXING = (*TRANSFORMING, "mixmatch")
CONSISTENT = (*TRANSFORMING, "pi_model", "pseudo_label", "mean_teacher", "mixmatch")
METHODS = (*CONSISTENT, "supervised")
WEIGHTS = ("best", "last", "student", "ema", "teacher")  # of a run: see `Config.monitor`
DATASETS = ("svhn", "cifar10", "cifar100", "digits")


def _check_dataset(name: str) -> str | None:
    kind, _, rest = name.partition(":")
    if name in DATASETS or (kind in ("tfds", "folder") and rest):
        return None
    hint = errors.did_you_mean(name, DATASETS)
    return f"expected {', '.join(DATASETS)}, tfds:<name> or folder:<path>, got {name!r}{hint}"


@dataclasses.dataclass(frozen=True)
class Config:
    """One run. Made from the command line by `cli.from_flags`, or directly: `Config(labels=50)`."""

    method: str = fields.flag(
        "rat",
        "Method",
        "rat; vat (the noise of --transforms alone); random (the same transformations and ε "
        "without the search); the baselines pi_model, pseudo_label, mean_teacher, mixmatch, "
        "supervised. A flag that is for other methods is refused on the command line and left out "
        "in a flagfile, so that one flagfile can serve several methods.",
        choices=METHODS,
    )
    transforms: str = fields.flag(
        dict.fromkeys(TRANSFORMING, "noise:1.0,affine:0.6"),
        "Method",
        "Transformations with their ε, in the order of application: "
        + ", ".join(transforms.REGISTRY)
        + ".",
        fields.parsed_by(transforms.parse),
    )
    consistency: float = fields.flag(
        {
            **dict.fromkeys(TRANSFORMING, 0.3),
            "pi_model": 20.0,
            "pseudo_label": 1.0,
            "mean_teacher": 8.0,
            "mixmatch": 75.0,
        },
        "Method",
        "λ, the weight of what is learned from unlabelled images (RAT: of the KL).",
        fields.at_least(0),
    )
    consistency_rampup: int = fields.flag(
        {**dict.fromkeys(CONSISTENT, 200_000), "mixmatch": 16_384},
        "Method",
        "Steps of the ramp of λ (mixmatch: a linear one).",
        fields.at_least(0),
    )
    epsilon_rampup: int = fields.flag(
        dict.fromkeys(TRANSFORMING, 0),
        "Method",
        "Steps of the ramp of ε (the paper: 400000); 0: no ε-rampup.",
        fields.at_least(0),
    )
    entropy_multiplier: float = fields.flag(
        dict.fromkeys(TRANSFORMING, 0.06),
        "Method",
        "Weight of the entropy of unlabelled predictions.",
        fields.at_least(0),
    )
    kl_direction: str = fields.flag(
        dict.fromkeys(TRANSFORMING, "clean_adversarial"),
        "Method",
        "KL[clean ‖ adversarial], the paper's, or the reverse.",
        choices=("clean_adversarial", "adversarial_clean"),
    )
    xi: str = fields.flag(
        dict.fromkeys(SEARCHING, "1e-6"),
        "Method",
        "ξ, the step of the finite difference: a number, or a multiple of ε such as 0.5eps.",
        fields.parsed_by(adversary.Xi.parse),
    )
    power_iterations: int = fields.flag(
        dict.fromkeys(SEARCHING, 1), "Method", "Inner gradients per step.", fields.at_least(1)
    )
    ascent: str = fields.flag(
        dict.fromkeys(SEARCHING, "paper"),
        "Method",
        "How a gradient becomes a direction: normalised (paper), or the maximiser in the "
        "transformation's own norm (steepest).",
        choices=adversary.ASCENTS,
    )
    padding: str = fields.flag(
        dict.fromkeys(("rat", "random"), "zeros"),
        "Method",
        "What warps see outside the image.",
        choices=sampling.PADDINGS,
    )
    pseudo_label_threshold: float = fields.flag(
        {"pseudo_label": 0.95},
        "Method",
        "Least probability of a class that makes it a label.",
        fields.fraction,
    )
    mixup: bool = fields.flag(
        {**dict.fromkeys(TRANSFORMING, False), "mixmatch": True},
        "Method",
        "Mix images and their targets with those of others; --nomixup: do not.",
    )
    mixup_alpha: float = fields.flag(
        dict.fromkeys(MIXING, 0.75),
        "Method",
        "α of Mixup's Beta(α, α).",
        fields.positive,
    )
    sharpening: float = fields.flag(
        {"mixmatch": 0.5},
        "Method",
        "Temperature T of the guessed labels; 1: as they are.",
        fields.positive,
    )
    augmentations: int = fields.flag(
        {"mixmatch": 2},
        "Method",
        "K, the augmented copies of an unlabelled image whose predictions are averaged.",
        fields.at_least(1),
    )
    sampler: str = fields.flag(
        "auto",
        "Machine",
        "Bilinear sampling by tfa's kernel for CPUs (resampler), or by plain TensorFlow (gather); "
        "auto: gather on GPUs and with --jit_compile, else resampler.",
        choices=("auto", *sampling.SAMPLERS),
    )

    dataset: str = fields.flag(
        "svhn",
        "Data",
        "svhn, cifar10, cifar100, digits (comes with scikit-learn), tfds:<name> for any other "
        "image classification set of TFDS, or folder:<path> with labeled/<class>/*, unlabeled/** "
        "and optionally validation/<class>/* and test/<class>/*.",
        check=_check_dataset,
    )
    data_dir: str = fields.flag(
        "", "Machine", "TFDS folder, also gs://; empty: the default of TFDS."
    )
    download: bool = fields.flag(
        False, "Machine", "Download and prepare the set if --data_dir lacks it."
    )
    svhn_extra: bool = fields.flag(
        False, "Data", "Add the 531,131 extra images of SVHN to the unlabelled ones."
    )
    image_size: int = fields.flag(
        0, "Data", "Resize to this height and width; 0: as is.", fields.at_least(0)
    )
    channels: int = fields.flag(
        0,
        "Data",
        "Turn images into grey (1) or RGB (3), without any alpha; 0: as they are, RGB for folders.",
        fields.expect(lambda value: value in (0, 1, 3), "0, 1 or 3"),
    )
    skip_broken: bool = fields.flag(
        False, "Data", "Leave out the files of a folder that are no image, and say which."
    )
    labels: int = fields.flag(
        1000, "Data", "Number of labelled images; 0: all that have a label.", fields.at_least(0)
    )
    validation: float = fields.flag(
        0.1,
        "Data",
        "Validation images, as a share of the labelled training set; unused where the set has a "
        "validation part of its own.",
        fields.fraction,
    )
    stratify: str = fields.flag(
        "balanced",
        "Data",
        "As many labelled images in each class, or in proportion to the classes.",
        choices=("balanced", "proportional"),
    )
    split_seed: int = fields.flag(
        1, "Data", "Seed of the split into labelled and the rest.", fields.seed
    )
    split_file: str = fields.flag(
        "", "Data", "Use the split of this file: split.json of another run."
    )
    include_labeled: bool = fields.flag(
        False, "Data", "Let labelled images be among the unlabelled ones, too."
    )
    preprocessing: str = fields.flag(
        "scale",
        "Data",
        "Scale to [-1, 1] (SVHN), or global contrast normalisation and ZCA (CIFAR-10).",
        choices=("scale", "gcn_zca"),
    )
    labeled_batch: int = fields.flag(50, "Data", "Labelled images per step.", fields.positive)
    unlabeled_batch: int = fields.flag(
        50,
        "Data",
        "Unlabelled images per step; the supervised method takes as many labelled ones instead.",
        fields.at_least(0),
    )
    augment_shift: int = fields.flag(
        2, "Data", "Random shift by up to so many pixels.", fields.at_least(0)
    )
    augment_flip: bool = fields.flag(False, "Data", "Random horizontal flip.")
    augment_noise: float = fields.flag(
        0.0, "Data", "Standard deviation of pixel noise.", fields.at_least(0)
    )
    augment_granularity: str = fields.flag(
        "batch", "Data", "One shift and flip per batch or per image.", choices=("batch", "image")
    )
    memory_limit_gb: float = fields.flag(
        4.0,
        "Machine",
        "Larger sets are decoded once into --cache_dir and read from there.",
        fields.at_least(0),
    )
    cache_dir: str = fields.flag(
        "", "Machine", "Folder for decoded sets and fitted ZCA matrices; empty: ~/.cache/rat_tf."
    )

    network: str = fields.flag(
        "wrn-28-2",
        "Training",
        "; ".join(family.about for family in names.FAMILIES) + ".",
        names.check,
    )
    iterations: int = fields.flag(500_000, "Training", "Training steps.", fields.positive)
    validate_every: int = fields.flag(
        25_000, "Training", "Steps between validations; divides --iterations.", fields.positive
    )
    learning_rate: float = fields.flag(
        {
            **dict.fromkeys(METHODS, 0.003),
            "pi_model": 0.0003,
            "mean_teacher": 0.0004,
            "mixmatch": 0.002,
        },
        "Training",
        "Initial learning rate of Adam.",
        fields.positive,
    )
    decay_at: int = fields.flag(
        400_000, "Training", "Step of the learning rate's decay.", fields.positive
    )
    decay: float = fields.flag(
        0.2, "Training", "Factor of the learning rate's decay.", fields.positive
    )
    weight_decay: float = fields.flag(
        {**dict.fromkeys(METHODS, 0.0), "mixmatch": 0.02},
        "Training",
        "Kernels shrink by this times the learning rate at every step.",
        fields.fraction,
    )
    ema_decay: float = fields.flag(
        {**dict.fromkeys(METHODS, 0.0), "mean_teacher": 0.95, "mixmatch": 0.999},
        "Training",
        "Decay of an exponential moving average of the weights, evaluated beside them: the teacher "
        "of mean_teacher; 0: none.",
        fields.fraction,
    )
    evaluate: str = fields.flag(
        {**dict.fromkeys(METHODS, "student"), "mean_teacher": "teacher", "mixmatch": "teacher"},
        "Training",
        "Whose error the run's result is: that of the trained weights (student) or of their moving "
        "average (teacher). The other's is in result.json, too.",
        choices=("student", "teacher"),
    )
    seed: int = fields.flag(0, "Training", "Seed of everything random but the split.", fields.seed)
    sync_batch_norm: bool = fields.flag(
        False, "Training", "Batch statistics over all replicas instead of each replica's own."
    )
    mixed_precision: str = fields.flag(
        "",
        "Training",
        "Compute in float16 (with loss scaling) or bfloat16; transformations, softmax and KL stay "
        "in float32.",
        choices=("", "float16", "bfloat16"),
    )
    run_dir: str = fields.flag(
        "",
        "Machine",
        "Folder of the results; by default runs/<path of the flagfile below configs/>/"
        "<method>-seed<seed>, with -labels<n> if --labels is not the flagfile's own. A run that "
        "was stopped goes on from there.",
    )
    checkpoint_every: int = fields.flag(
        5_000,
        "Machine",
        "Steps between checkpoints and points of the curves; divides --validate_every, or is "
        "larger and then counts as that.",
        fields.positive,
    )
    strategy: str = fields.flag(
        "auto",
        "Machine",
        "auto: MirroredStrategy over all visible GPUs, if there are several; multi_worker: "
        "MultiWorkerMirroredStrategy under TF_CONFIG.",
        choices=("auto", "one_device", "mirrored", "multi_worker"),
    )
    logical_devices: int = fields.flag(
        1,
        "Machine",
        "Split the CPU into so many devices, to try several replicas.",
        fields.positive,
    )
    jit_compile: bool = fields.flag(False, "Machine", "Compile the training step with XLA.")
    steps_per_execution: int = fields.flag(
        1,
        "Machine",
        "Steps per call from Python; more is faster for small networks.",
        fields.positive,
    )
    deterministic: bool = fields.flag(
        False, "Machine", "Make every TensorFlow operation deterministic, at some cost in speed."
    )
    tensorboard: bool = fields.flag(True, "Machine", "Write TensorBoard logs to the run folder.")

    def __post_init__(self):
        for field in dataclasses.fields(self):
            message = fields.problem(field, getattr(self, field.name))
            if message:
                raise errors.UserError(f"--{field.name}: {message}")
        fields.resolve(self, self.method)
        for message in itertools.chain(self._clashes(), self._clashes_with_method()):
            raise errors.UserError(message)  # the first
        if self.mixup is False:  # then there is no α to compare; frozen, but still being made
            object.__setattr__(self, "mixup_alpha", None)

    def _clashes(self) -> Iterator[str]:
        """Flags that are right each, but not beside each other, whatever the method."""
        if self.iterations % self.validate_every:
            yield (
                f"--validate_every: expected a divisor of --iterations={self.iterations}, "
                f"got {self.validate_every}"
            )
        if self.validate_every % self.interval:
            yield (
                f"--checkpoint_every: expected a divisor of --validate_every="
                f"{self.validate_every}, got {self.checkpoint_every}"
            )
        if self.jit_compile and self.sampler == "resampler":
            yield "--sampler: XLA cannot compile resampler, use gather with --jit_compile"
        if self.logical_devices > 1:
            yield from self._clashes_with_logical_devices()

    def _clashes_with_logical_devices(self) -> Iterator[str]:
        given = f"--logical_devices={self.logical_devices}"
        if self.jit_compile:
            yield f"--jit_compile: XLA cannot compile a step for several CPU devices, got {given}"
        if self.strategy in ("one_device", "multi_worker"):
            yield f"--strategy: expected mirrored or auto with {given}, got {self.strategy}"

    def _clashes_with_method(self) -> Iterator[str]:
        """Flags that the method has a use for, but not with such values."""
        if self.method != "supervised" and not self.unlabeled_batch:
            yield f"--unlabeled_batch: method {self.method} needs one > 0, got 0"
        if not self.ema_decay and (self.evaluate == "teacher" or self.method == "mean_teacher"):
            yield "--ema_decay: a teacher needs one > 0, got 0.0"
        if self.method in TRANSFORMING and self.mixup and self.kl_direction != "clean_adversarial":
            yield (
                "--kl_direction: with --mixup targets may have classes of probability 0, for which "
                f"only KL[clean ‖ adversarial] is finite; got {self.kl_direction}"
            )
        if self.mixup is False and self.mixup_alpha not in (None, 0.75):
            yield f"--mixup_alpha: without --mixup it does nothing, got {self.mixup_alpha}"
        if self.method == "vat" and "noise" not in self.transforms:
            yield f"--transforms: method vat needs noise:<ε> among them, got {self.transforms!r}"

    def monitor(self, weights: str = "best") -> str:
        """The name, among the metrics, of the validation error of the weights of that name.

        The best are those that the run is judged by (--evaluate) at their lowest error, the last
        are the same at the end; the trained weights and their moving average, which is the
        teacher of mean_teacher, can be had by their names.
        """
        named = {"student": "error", "ema": "ema_error", "teacher": "ema_error"}
        return named.get(weights) or named[self.evaluate]

    @property
    def interval(self) -> int:
        """Steps from one checkpoint to the next: an "epoch" to Keras."""
        return min(self.checkpoint_every, self.validate_every)

    def transform(self) -> transforms.Composite | None:
        """The transformations in use: VAT is RAT with the noise alone; None without any."""
        if self.transforms is None:
            return None
        sampler = self.sampler
        if sampler == "auto":
            sampler = sampling.fastest(self.jit_compile)
        composite = transforms.parse(self.transforms, self.padding or "zeros", sampler)
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
            if field.name != "run_dir" and value is not None:
                lines.append(
                    f"--{field.name}={str(value).lower() if field.type == 'bool' else value}"
                )
        return "\n".join(lines) + "\n"
