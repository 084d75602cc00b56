"""Small sets of images that the tests write themselves."""

import os

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds

from rat_tf.data import sources


def source(config):
    """All images of a set as it is read, before it is split."""
    return sources.read(sources.find(config), config)


def pixels(count, shape=(6, 6, 3), seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, *shape), np.uint8)


def png(path, image):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    tf.io.write_file(str(path), tf.io.encode_png(image))


def folder(root, labeled=6, unlabeled=5, test=2, shape=(6, 6, 3)):
    """root/{labeled,test}/{cat,dog}/*.png and root/unlabeled/deep/*.png; images by their path."""
    written = {}
    names = [f"labeled/{c}/{i}.png" for c in ("cat", "dog") for i in range(labeled)]
    names += [f"unlabeled/deep/{i}.png" for i in range(unlabeled)]
    names += [f"test/{c}/{i}.png" for c in ("cat", "dog") for i in range(test)]
    for name, image in zip(names, pixels(len(names), shape)):
        png(os.path.join(root, name), image)
        written[name] = image
    return written


def tfds_set(data_dir, name, sizes, shape=(6, 6, 3), classes=3, declared=None):
    """Prepares a TFDS folder with splits of these sizes, without a network; returns its arrays."""
    arrays = {
        split: (pixels(size, shape, seed), np.arange(size) % classes)
        for seed, (split, size) in enumerate(sizes.items())
    }
    features = {
        "image": tfds.features.Image(shape=declared or shape),
        "label": tfds.features.ClassLabel(names=[f"k{i}" for i in range(classes)]),
    }
    splits = {split: dict(zip(features, both)) for split, both in arrays.items()}
    store_tfds(data_dir, name, features, splits)
    return arrays


def store_tfds(data_dir, name, features, splits):
    """Prepares a TFDS folder of any features; splits are arrays by the names of the features."""
    tfds.dataset_builders.store_as_tfds_dataset(
        name=name,
        version="1.2.3",
        data_dir=data_dir,
        features=tfds.features.FeaturesDict(features),
        split_datasets={
            split: tf.data.Dataset.from_tensor_slices(arrays) for split, arrays in splits.items()
        },
        disable_shuffling=True,
    )
