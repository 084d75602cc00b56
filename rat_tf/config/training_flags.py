"""The flags of training: network, schedule and machine."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from rat_tf import fields
from rat_tf.networks import names
from rat_tf.networks.names import applications
from rat_tf.transforms import spec

# TensorFlow treats these as patterns and would not find its checkpoints.
_RUN_DIR = fields.expect(lambda path: not set("[]*?") & set(path), "a path without [, ], * and ?")

ALLOW_CODE = (
    "Run code that comes with a model: Lambda layers of its file, its module in a run folder."
)
FREEZE = ("none", "batch_norm", "backbone")


NO_BUDGET = "none"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def seconds(budget: str) -> float:
    """10m, 1.5h, 90s or 2d in seconds; 0 for anything else."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", budget)
    return float(match[1]) * _UNITS[match[2]] if match else 0.0


@dataclasses.dataclass(frozen=True)
class TrainingFlags:
    network: str = fields.flag(
        "wrn-28-2",
        "; ".join(family.about for family in names.FAMILIES) + ".",
        names.check,
        group="Training",
    )
    pretrained: str = fields.path(
        "",
        "Weights that the backbone of --network starts from, all layers but the last: a .h5 file "
        "of weights as keras.applications have it, a .keras or .h5 file of a model, or the folder "
        "of a run, of any data and classes. (--init_from takes all weights of a run of the same "
        "classes.)",
        group="Training",
    )
    freeze: str = fields.flag(
        FREEZE[0],
        "Weights of a Keras model that are not trained: those of batch norm, which then uses its "
        "running statistics, or of the whole backbone.",
        choices=FREEZE,
        group="Training",
    )
    backbone_learning_rate: float = fields.flag(
        0.0,
        "Initial learning rate of the backbone of a Keras model; 0: --learning_rate.",
        fields.at_least(0),
        group="Training",
    )
    iterations: int = fields.flag(500_000, "Training steps.", fields.positive, group="Training")
    budget: str = fields.flag(
        "",
        "How long to train: 90s, 10m, 2h, 1d. The number of steps follows from a short "
        "measurement. Without --flagfile, flags that are not given come from a preset in "
        "configs/folder/ that fits the images, the device and the time; for a folder also without "
        "--budget, which is then 30m. none: no preset and no measurement.",
        fields.expect(
            lambda text: text in ("", NO_BUDGET) or seconds(text) > 0, "a time such as 10m or 2h"
        ),
        group="Machine",
    )
    validate_every: fields.Steps = fields.steps(
        25_000,
        "Steps between validations; must divide --iterations. A share becomes the nearest divisor.",
        low=1,
        group="Training",
    )
    decay_at: fields.Steps = fields.steps(
        400_000, "Step at which the learning rate decays.", low=1, group="Training"
    )
    decay: float = fields.flag(
        0.2, "Factor of the learning rate decay.", fields.positive, group="Training"
    )
    seed: int = fields.flag(
        0, "Seed of everything random except the split.", fields.seed, group="Training"
    )
    sync_batch_norm: bool = fields.flag(
        False, "Compute batch statistics over all replicas, not per replica.", group="Training"
    )
    mixed_precision: str = fields.flag(
        "",
        "Compute in float16 (with loss scaling) or bfloat16; transformations, softmax and KL stay "
        "in float32.",
        choices=("", "float16", "bfloat16"),
        group="Training",
    )
    allow_code: bool = fields.flag(False, ALLOW_CODE, group="Machine")
    run_dir: str = fields.path(
        "",
        "Run folder; default: runs/<path of the flagfile below configs/>/<method>-seed<seed>, with "
        "-labels<n> if --labels differs from the flagfile. A stopped run is resumed.",
        _RUN_DIR,
        group="Machine",
    )
    checkpoint_every: int = fields.flag(
        5_000,
        "Steps between checkpoints and between points of the curves; lowered to a divisor of "
        "--validate_every.",
        fields.positive,
        group="Machine",
    )
    strategy: str = fields.flag(
        "auto",
        "auto: MirroredStrategy on all visible GPUs if there are several; multi_worker: "
        "MultiWorkerMirroredStrategy, configured by TF_CONFIG.",
        choices=("auto", "one_device", "mirrored", "multi_worker"),
        group="Machine",
    )
    logical_devices: int = fields.flag(
        1,
        "Number of logical devices to split the CPU into, to test several replicas.",
        fields.between(1, 256),
        group="Machine",
    )
    operation_threads: int = fields.flag(
        0,
        "Threads that share one operation, such as a convolution, on a CPU. 1 is faster for some "
        "small networks on small images, whose operations rather run side by side; 0: "
        "TensorFlow's choice, all cores.",
        fields.between(0, 1024),
        group="Machine",
    )
    jit_compile: bool = fields.flag(False, "Compile the training step with XLA.", group="Machine")
    steps_per_execution: int = fields.flag(
        1,
        "Steps per call from Python, as in Keras; more is faster for small networks.",
        fields.positive,
        group="Machine",
    )
    sampler: str = fields.flag(
        "auto",
        "Bilinear sampling with tfa's CPU kernel (resampler) or plain TensorFlow (gather); auto: "
        "gather on GPUs, with --jit_compile and where tfa is not installed, otherwise resampler.",
        choices=("auto", *spec.SAMPLERS),
        group="Machine",
    )
    deterministic: bool = fields.flag(
        False,
        "Make every TensorFlow operation deterministic; slower.",
        group="Machine",
    )
    tensorboard: bool = fields.flag(
        True, "Write TensorBoard logs to the run folder.", group="Machine"
    )

    def network_clashes(self) -> Iterator[str]:
        """What does not go together with the network; `self` has the flags of data, too."""
        family, groups = names.parse(self.network)
        given = f"--network={self.network}"
        if not family.foreign:
            for name in ("pretrained", "backbone_learning_rate"):
                if getattr(self, name):
                    yield f"--{name}: not used by {given}, only by Keras models"
            if self.freeze != FREEZE[0]:
                yield f"--freeze: not used by {given}, only by Keras models"
            return
        applied = family.builder == "build"  # of tf.keras.applications
        smallest = applications.SMALLEST
        if applied and 0 < self.image_size < smallest:
            yield f"--image_size: expected {smallest} or more with {given}, got {self.image_size}"
        if applied and self.adversary_scale not in (None, 1):
            yield (
                f"--adversary_scale: {given} takes images of one size, got {self.adversary_scale}"
            )
        if self.sync_batch_norm:
            yield (
                f"--sync_batch_norm: {given} has batch norm of its own, if any; a model of yours "
                "can use BatchNormalization(synchronized=True)"
            )
        if self.preprocessing == "gcn_zca" and (applied or self.pretrained):
            because = "--pretrained weights expect" if self.pretrained else f"{given} expects"
            yield f"--preprocessing: {because} images, not whitened ones; got gcn_zca"
        if family.builder == "of_file" and self.mixed_precision:
            yield f"--mixed_precision: a saved model keeps its precision, got {given}"
        if self.pretrained and self.init_from:
            yield "--init_from: gives all weights, and --pretrained those of the backbone; use one"
        if self.freeze == "backbone":
            if self.backbone_learning_rate:
                yield "--backbone_learning_rate: not used with --freeze=backbone"
            if applied and not self.pretrained and not self.init_from:
                yield f"--freeze=backbone: {given} has random weights; use --pretrained, too"
