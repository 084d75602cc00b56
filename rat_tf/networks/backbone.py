"""The backbone of a foreign network: pretrained weights for it, and what of it is trained."""

from __future__ import annotations

import dataclasses
import re

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

    `names` are those of the weights of each layer, where a file has them. `rescaled` are the
    factors of a layer Rescaling behind a Normalization, one per channel.
    """

    layers: list[tuple[str, list[np.ndarray]]]
    rescaled: np.ndarray | None = None
    names: list[list[str]] | None = None


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
        layers, names = [], []
        try:
            for name in map(_text, file.attrs["layer_names"]):
                group = file[name]
                of_weights = list(map(_text, group.attrs["weight_names"]))
                if of_weights:
                    layers.append((name, [np.asarray(group[weight]) for weight in of_weights]))
                    names.append(of_weights)
        except (KeyError, OSError) as error:
            raise ValueError(f"{path} is damaged, or no file of weights: {error}") from None
    squares = [arrays[1] for _, arrays in layers[:1] if len(arrays) == 3]
    known = squares and np.allclose(np.ravel(squares[0]), np.square(IMAGENET_STD), atol=1e-4)
    return Weights(layers, 1 / np.sqrt(IMAGENET_STD) if known else None, names)


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
    ours, given = layers_of(network), []
    for number, layer in enumerate(ours):
        expected = [tuple(weight.shape) for weight in copies.in_order(layer)]
        if number == len(weights.layers):
            raise ValueError(
                f"{where} has {number} layers with weights and the backbone of {network.name} "
                f"{len(ours)}; the first without weights is {layer.name} {expected}"
            )
        name, arrays = weights.layers[number]
        if weights.names:
            arrays = _by_name(layer, weights.names[number], arrays)
        given.append(arrays)
        found = [array.shape for array in arrays]
        if found != expected:
            raise ValueError(
                f"{where} does not fit {network.name}: layer {number + 1} with weights is "
                f"{layer.name} of shapes {_listed(expected)} in the network, and {name} of shapes "
                f"{_listed(found)} in the file"
            )
    for layer, arrays in zip(ours, given):
        if isinstance(layer, tf.keras.layers.Normalization) and weights.rescaled is not None:
            mean, variance, count = arrays
            arrays = [mean, variance / np.square(weights.rescaled), count]
        copies.fill(layer, arrays)


def _by_name(layer, names: list[str], arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The arrays in the order of the layer's weights, if their names are the same.

    A file has those first that were trained when it was written.
    """
    own = _uncounted([weight.name for weight in copies.in_order(layer)])
    names = _uncounted(names)
    if len(set(own)) < len(own) or set(own) != set(names):
        return arrays
    return [arrays[names.index(name)] for name in own]


def _uncounted(names: list[str]) -> list[tuple]:
    """Names such as dense_7/kernel:0, with the place among the numbers of dense for the number.

    Keras counts layers without a name through a process: only the order of the numbers says more.
    """
    counted = re.compile(r"(.*?)(?:_(\d+))?")
    split = [[counted.fullmatch(part).groups() for part in name.split("/")] for name in names]
    parts = [tuple((base, int(number or 0)) for base, number in name) for name in split]
    counts = sorted({part for name in parts for part in name})
    return [
        tuple((base, [c for b, c in counts if b == base].index(count)) for base, count in name)
        for name in parts
    ]


def _listed(shapes) -> str:
    return ", ".join(str(shape) for shape in shapes)


def _text(name) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)
