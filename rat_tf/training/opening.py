"""What a run says when it starts: data, method, network, device, folder."""

from __future__ import annotations

import os

import tensorflow as tf

from rat_tf import config as config_lib
from rat_tf import data
from rat_tf.methods import base


def of_data(images: data.Data) -> str:
    """data     1,000 labelled, 64,931 unlabelled, 7,326 validation, 26,032 test"""
    parts = ("labeled", "unlabeled", "validation", "test")
    words = ("labelled", "unlabelled", "validation", "test")
    counts = [f"{len(getattr(images, part)):,} {word}" for part, word in zip(parts, words)]
    return f"data     {', '.join(counts)}"


def of_model(config: config_lib.Config, images: data.Data, model: base.Method, strategy) -> str:
    """The lines of method, augmentation, network and device."""
    method = [config.method, config.used_transforms, config.options.search_words]
    weights = sum(int(tf.size(w)) for w in model.network.trainable_variables)
    task = f"{len(images.class_names)} classes, {'×'.join(map(str, images.labeled.image_shape))}"
    return "\n".join(
        [
            f"method   {', '.join(str(part) for part in method if part)}",
            f"augment  {_augmentation(config)}",
            f"network  {config.network}, {weights:,} parameters; {task}",
            f"device   {_devices(strategy)}",
        ]
    )


def _augmentation(config: config_lib.Config) -> str:
    """crop 0.5, flip, color 0.3: the flags --augment_… that are not off."""
    parts = [
        (config.augment_shift, f"shift {config.augment_shift} px"),
        (config.augment_crop < 1, f"crop {config.augment_crop:g}"),
        (config.augment_flip, "flip"),
        (config.augment_color, f"color {config.augment_color:g}"),
        (config.augment_noise, f"noise {config.augment_noise:g}"),
    ]
    return ", ".join(text for used, text in parts if used) or "none"


def _devices(strategy) -> str:
    """CPU with 2 cores, or the GPUs by name."""
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        replicas = strategy.num_replicas_in_sync
        cores = _cores()
        return f"CPU, cores: {cores}" + (f", replicas: {replicas}" if replicas > 1 else "")
    name = tf.config.experimental.get_device_details(gpus[0]).get("device_name", "GPU")
    return f"{strategy.num_replicas_in_sync} × {name}"


def _cores() -> int:
    """The cores that this process may use; where the system does not say, as on macOS, all."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
