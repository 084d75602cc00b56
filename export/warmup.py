"""Warm-up requests: TF Serving runs them before it makes a new version available.

The first request of every batch size is slow, as TensorFlow plans and allocates for it. The server
pads a batch to one of the allowed sizes, so these are all that ever occur.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

from export import protocol

PATH = os.path.join("assets.extra", "tf_serving_warmup_requests")


def write(version_dir: str, model_name: str, images: np.ndarray) -> None:
    """Writes requests to both signatures with these uint8 images, for all allowed sizes."""
    path = os.path.join(version_dir, PATH)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    files = encode(images)
    with tf.io.TFRecordWriter(path) as writer:
        for size in protocol.BATCH_SIZES:
            rows = np.arange(size) % len(images)
            for signature, inputs in (
                ("serving_default", {"images": images[rows]}),
                ("serving_bytes", {"image_bytes": files[rows]}),
            ):
                request = predict_pb2.PredictRequest()
                request.model_spec.name = model_name
                request.model_spec.signature_name = signature
                for name, value in inputs.items():
                    request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
                log = prediction_log_pb2.PredictLog(request=request)
                writer.write(prediction_log_pb2.PredictionLog(predict_log=log).SerializeToString())


def read(version_dir: str) -> Iterator[predict_pb2.PredictRequest]:
    path = os.path.join(version_dir, PATH)
    for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
        yield prediction_log_pb2.PredictionLog.FromString(record).predict_log.request


def replay(signatures, version_dir: str) -> int:
    """Runs every request as the server will; returns their number."""
    requests = list(read(version_dir))
    for request in requests:
        inputs = {name: tf.constant(tf.make_ndarray(v)) for name, v in request.inputs.items()}
        signatures[request.model_spec.signature_name](**inputs)
    return len(requests)


def encode(images: np.ndarray) -> np.ndarray:
    """PNG files of uint8 images, strings [B]."""
    return np.array([tf.io.encode_png(image).numpy() for image in images], dtype=object)
