"""The paper's hyper-parameters, copied from its text and not from our flags' defaults.

`expected` gives the flags that a flagfile of the paper must have; `python -m rat_tf.configs
--check` compares the two.
"""

from __future__ import annotations

#: Table 1.
EPSILON = {"channel_weight": 0.001, "affine": 0.6, "thin_plate_spline": 1.0, "flow_field": 0.01}

#: Table 2; one power iteration is in the text.
VAT_AND_RAT = {
    "learning_rate": 0.003,
    "consistency": 0.3,
    "consistency_rampup": 200_000,
    "xi": 1e-6,
    "entropy_multiplier": 0.06,
    "power_iterations": 1,
    "ascent": "paper",
    "kl_direction": "clean_adversarial",
}
#: What the paper has none of: the search is Algorithm 1 for all images at full size.
SEARCH = {"adversary": "gradient", "adversary_share": 1.0}
UNCHANGED = {
    "separate_statistics": False,
    "target": "student",
    "target_temperature": 1.0,
    "target_threshold": 0.0,
}
NOISE = {"cifar10": 6.0, "svhn": 1.0}

#: With ε-rampup: Table 4 and the section that compares RAT with the baselines.
RAMP = 400_000
RAMPED = {
    ("cifar10", "vat_rampup"): {"noise": 10.0},
    ("cifar10", "rat_rampup"): {"noise": 6.0, "affine": 1.0},
    ("svhn", "vat_rampup"): {"noise": 5.0},
    ("svhn", "rat_rampup"): {"noise": 5.0, "affine": 0.6},
}
#: Table 4, the large ε without a ramp.
UNRAMPED = {
    ("cifar10", "vat_epsilon10"): {"noise": 10.0},
    ("cifar10", "rat_epsilon1"): {"noise": 6.0, "affine": 1.0},
}

#: The check marks of Table 3; every RAT has noise, too.
COMPOSITIONS = {
    "vat": (),
    "random": ("affine",),
    "rat_channel": ("channel_weight",),
    "rat_affine": ("affine",),
    "rat_tps": ("thin_plate_spline",),
    "rat_flow": ("flow_field",),
    "rat_channel_affine": ("channel_weight", "affine"),
    "rat_channel_tps": ("channel_weight", "thin_plate_spline"),
    "rat_channel_flow": ("channel_weight", "flow_field"),
}

#: Table 6, and the experiments' section on the network, validation and regularisation.
SHARED = {
    "network": "wrn-28-2",
    "iterations": 500_000,
    "validate_every": 25_000,
    "decay": 0.2,
    "decay_at": 400_000,
    "weight_decay": 0.0,
}
BASELINES = {
    "supervised": {"learning_rate": 0.003},
    "pi_model": {"learning_rate": 0.0003, "consistency": 20.0, "consistency_rampup": 200_000},
    "mean_teacher": {
        "learning_rate": 0.0004,
        "consistency": 8.0,
        "consistency_rampup": 200_000,
        "ema_decay": 0.95,
    },
    "pseudo_label": {
        "learning_rate": 0.003,
        "consistency": 1.0,
        "consistency_rampup": 200_000,
        "pseudo_label_threshold": 0.95,
    },
}

#: The experiments' section on preprocessing and augmentation.
DATA = {
    "svhn": {
        "dataset": "svhn",
        "labels": 1000,
        "preprocessing": "scale",
        "svhn_extra": False,
        "validation": 0.1,
        "augment_shift": 2,
        "augment_flip": False,
        "augment_noise": 0.0,
    },
    "cifar10": {
        "dataset": "cifar10",
        "labels": 4000,
        "preprocessing": "gcn_zca",
        "validation": 0.1,
        "augment_shift": 2,
        "augment_flip": True,
        "augment_noise": 0.15,
    },
}

#: MixMatch (Berthelot et al., 2019), its paper and published code; no decay of the learning rate.
MIXMATCH = {
    "method": "mixmatch",
    "learning_rate": 0.002,
    "decay": 1.0,
    "weight_decay": 0.02,
    "ema_decay": 0.999,
    "evaluate": "teacher",
    "augmentations": 2,
    "sharpening": 0.5,
    "mixup_alpha": 0.75,
    "consistency_rampup": 16_384,
    "labeled_batch": 64,
    "unlabeled_batch": 64,
    "augment_granularity": "image",
}
MIXMATCH_WEIGHT = {"cifar10": 75.0, "svhn": 250.0}


def expected(dataset: str, config: str) -> dict:
    """The flags that configs/paper/<dataset>/<config>.cfg must have.

    "transforms" is a dictionary of ε by name, in the order of application.
    """
    shared = {**SHARED, **DATA[dataset]}
    if config in BASELINES:
        return {**shared, "method": config, "mixup": None, **BASELINES[config]}
    if config.startswith("mixmatch"):
        own = {"mixup": config == "mixmatch", "consistency": MIXMATCH_WEIGHT[dataset]}
        if not own["mixup"]:
            own["mixup_alpha"] = None
        return {**shared, **MIXMATCH, **own}
    method = config.partition("_")[0]
    searching = {**VAT_AND_RAT, **SEARCH, **UNCHANGED}
    searching |= {"method": method, "mixup": False, "ema_decay": 0.0}
    searching["adversary_scale"] = 1.0 if method == "rat" else None
    if method == "random":  # the same parameters, without those of the search
        for flag in ("xi", "power_iterations", "ascent", *SEARCH):
            searching[flag] = None
    ramped = (dataset, config) in RAMPED
    return {
        **shared,
        **searching,
        "transforms": epsilons(dataset, config),
        "epsilon_rampup": RAMP if ramped else 0,
    }


def epsilons(dataset: str, config: str) -> dict[str, float]:
    """ε by transformation. The paper gives an order only by "(6, 0.6)": noise comes first."""
    for special in (RAMPED, UNRAMPED):
        if (dataset, config) in special:
            return special[dataset, config]
    return {"noise": NOISE[dataset], **{name: EPSILON[name] for name in COMPOSITIONS[config]}}
