"""Keras models from the user's files and functions, and Keras' own description of them."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import random
import sys
import traceback

import numpy as np
import tensorflow as tf

from rat_tf.networks import applications, model_files, names


def build(name: str, image_shape, num_classes: int, seed: int = 0, allow_code: bool = False):
    """The foreign network of that name; initial weights that it draws follow from `seed`."""
    family, groups = names.parse(name)
    builder = getattr(importlib.import_module(family.module), family.builder)
    with seeded(seed):
        return builder(*groups, tuple(image_shape), num_classes, allow_code=allow_code)


@contextlib.contextmanager
def seeded(seed: int):
    """Keras' initialisers draw from `seed`; Python's and NumPy's own generators are left alone."""
    states = random.getstate(), np.random.get_state()
    tf.keras.utils.set_random_seed(seed)
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])


def of_file(path: str, image_shape, num_classes: int, allow_code: bool = False) -> tf.keras.Model:
    """The model in a file, with its weights."""
    model = load(os.path.expanduser(path), allow_code)
    return in_color(model, image_shape)


def of_function(
    module: str, function: str, image_shape, num_classes: int, allow_code: bool = False, path=None
) -> tf.keras.Model:
    """What `function(image_shape, classes)` of a module returns; `path` is that of a copy."""
    try:
        if path:
            spec = importlib.util.spec_from_file_location(module, path)
            found = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(found)
        else:
            found = importlib.import_module(module)
        build_model = getattr(found, function)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{path or module} cannot be used: {_told(error)}") from error
    try:
        return build_model(image_shape, num_classes)
    except (Exception, SystemExit) as error:
        given = f"{function}({image_shape}, {num_classes})"
        raise ValueError(f"{given} failed: {_told(error)}") from error


def load(path: str, allow_code: bool = False) -> tf.keras.Model:
    """The model in a .keras or .h5 file."""
    config = model_files.config_of(path)
    if config is None:
        raise ValueError(
            f"{path} has weights and no model; expected what model.save writes, or the network's "
            "name in --network and this file in --pretrained"
        )
    if not allow_code:
        model_files.refuse_code(config, path)
    try:
        return tf.keras.models.load_model(path, compile=False, safe_mode=not allow_code)
    except Exception as error:
        raise ValueError(
            f"Keras cannot load {path}: {_told(error)}. A model with layers of your own can be "
            "given as --network=<module>:<function>"
        ) from error


def in_color(model: tf.keras.Model, image_shape) -> tf.keras.Model:
    """A model of colour images for images of one channel, which are repeated."""
    shape = getattr(model, "input_shape", None)
    if image_shape[-1] != 1 or not isinstance(shape, tuple) or shape[-1] != 3:
        return model
    inputs = tf.keras.Input(tuple(image_shape))
    return tf.keras.Model(inputs, model(applications.colored(inputs)))


def description(model: tf.keras.Model) -> str | None:
    """A model in Keras' JSON; None if it has layers that Keras cannot rebuild, the user's own."""

    def whole():
        return json.dumps(tf.keras.saving.serialize_keras_object(model))

    for write in (whole, model.to_json):  # the second also knows slices, but no code
        try:
            text = write()
            rebuilt(text, allow_code=True)
        except Exception:  # a subclass, a layer without a config: each fails in its own way
            continue
        return text
    return None


def rebuilt(text: str, seed: int = 0, allow_code: bool = False, where: str = "") -> tf.keras.Model:
    """The model of a `description`, with weights that are yet to be set.

    If the policy is float32, so are all layers, at any precision that they were trained in.
    """
    config = json.loads(text)
    if not allow_code:
        model_files.refuse_code(config, where)
    if tf.keras.mixed_precision.global_policy().name == "float32":
        config = _in_float32(config)
    with seeded(seed):
        if "keras_version" in config:
            return tf.keras.models.model_from_json(json.dumps(config))
        return tf.keras.saving.deserialize_keras_object(config, safe_mode=not allow_code)


def _in_float32(config):
    if isinstance(config, dict):
        return {key: _in_float32(value) for key, value in config.items()}
    if isinstance(config, list):
        return [_in_float32(value) for value in config]
    return "float32" if config in ("mixed_float16", "mixed_bfloat16") else config


def _told(error: Exception) -> str:
    """An exception in a line, with the place in a user's file where it was raised."""
    text = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
    frames = traceback.extract_tb(error.__traceback__)
    installed = (sys.prefix, sys.base_prefix, os.path.dirname(os.path.dirname(__file__)), "<")
    own = [frame for frame in frames if not frame.filename.startswith(installed)]
    return f"{text} ({own[-1].filename}, line {own[-1].lineno})" if own else text
