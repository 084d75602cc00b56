"""The backbone of a foreign network: pretrained weights for it, and what of it is trained."""

from __future__ import annotations

import dataclasses

import h5py
import numpy as np
import tensorflow as tf

from rat_tf.networks import copies, model_files, sources

# Keras' EfficientNets with weights="imagenet" divide by the root of these once more, behind their
# layer Normalization; those that are built with a path, or without weights, do not.
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclasses.dataclass(frozen=True)
class Weights:
    """The weights of a model's layers in order, [(name, arrays)], without layers that have none.

    `rescaled` are the factors of a layer Rescaling behind a Normalization, one per channel.
    """

    layers: list[tuple[str, list[np.ndarray]]]
    rescaled: np.ndarray | None = None


def layers_of(network) -> list[tf.keras.layers.Layer]:
    """The layers with weights, without the head."""
    return copies.weighted(network)[:-1]


def freeze(network, what: str) -> None:
    """Keeps the weights of the "backbone", or of "batch_norm", as they are.

    Batch norm that is frozen normalises with its running statistics, which do not move then.
    """
    if what == "none":
        return
    frozen = layers_of(network)
    if what == "batch_norm":
        kind = tf.keras.layers.BatchNormalization
        frozen = [layer for layer in network.submodules if isinstance(layer, kind)]
    if not frozen:
        raise ValueError(f"--freeze={what}: {network.name} has nothing of that kind")
    for layer in frozen:
        layer.trainable = False


def read(path: str, allow_code: bool = False) -> Weights:
    """The weights in a .keras or .h5 file: those of a model, or weights alone."""
    if model_files.config_of(path) is not None:
        return of_model(sources.load(path, allow_code))
    with h5py.File(path, "r") as file:
        if "layer_names" not in file.attrs:
            raise ValueError(
                f"{path} has no list of its layers, as .weights.h5 files of Keras; expected a file "
                "of model.save('….keras'), or weights in .h5 as keras.applications have them"
            )
        layers = []
        for name in map(_text, file.attrs["layer_names"]):
            group = file[name]
            arrays = [np.asarray(group[_text(weight)]) for weight in group.attrs["weight_names"]]
            if arrays:
                layers.append((name, arrays))
    squares = [arrays[1] for _, arrays in layers[:1] if len(arrays) == 3]
    known = squares and np.allclose(np.ravel(squares[0]), np.square(IMAGENET_STD), atol=1e-4)
    return Weights(layers, 1 / np.sqrt(IMAGENET_STD) if known else None)


def of_model(model) -> Weights:
    """The weights of a model that has been loaded."""
    found = [(layer.name, copies.values(layer)) for layer in copies.weighted(model)]
    leaves = copies.leaves(model)
    for first, second in zip(leaves, leaves[1:]):
        if isinstance(first, tf.keras.layers.Normalization):
            scale = getattr(second, "scale", None)
            if isinstance(second, tf.keras.layers.Rescaling) and np.ndim(scale):
                return Weights(found, np.asarray(scale))
    return Weights(found)


def assign(network, weights: Weights, where: str) -> None:
    """Gives the backbone the weights of another model's; those of its last layers are left over."""
    ours = layers_of(network)
    for number, layer in enumerate(ours):
        expected = [tuple(weight.shape) for weight in copies.in_order(layer)]
        if number == len(weights.layers):
            raise ValueError(
                f"{where} has {number} layers with weights and the backbone of {network.name} "
                f"{len(ours)}; the first without weights is {layer.name} {expected}"
            )
        name, arrays = weights.layers[number]
        found = [array.shape for array in arrays]
        if found != expected:
            raise ValueError(
                f"{where} does not fit {network.name}: layer {number + 1} with weights is "
                f"{layer.name} of shapes {_listed(expected)} in the network, and {name} of shapes "
                f"{_listed(found)} in the file"
            )
    for layer, (_, arrays) in zip(ours, weights.layers):
        if isinstance(layer, tf.keras.layers.Normalization) and weights.rescaled is not None:
            mean, variance, count = arrays
            arrays = [mean, variance / np.square(weights.rescaled), count]
        copies.fill(layer, arrays)


def _listed(shapes) -> str:
    return ", ".join(str(shape) for shape in shapes)


def _text(name) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)
