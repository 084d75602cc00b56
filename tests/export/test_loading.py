"""An exported model by itself: in processes that know nothing of rat_tf."""

import base64
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from export import warmup

IMAGES = np.random.default_rng(0).integers(256, size=(7, 8, 8, 1), dtype=np.uint8)


@pytest.fixture(scope="module")
def graph(model_dir):
    saved = saved_model_pb2.SavedModel.FromString((model_dir / "1/saved_model.pb").read_bytes())
    (graph,) = saved.meta_graphs
    return graph


@pytest.fixture(scope="module")
def expected(model_dir):
    signatures = tf.saved_model.load(str(model_dir / "1")).signatures
    return signatures["serving_default"](tf.constant(IMAGES))["logits"].numpy()


FRESH = """
import json, sys
import tensorflow as tf
images = tf.constant(json.load(sys.stdin), tf.uint8)
answer = tf.saved_model.load(sys.argv[1]).signatures["serving_default"](images)
assert not {"rat_tf", "export", "tensorflow_addons"} & set(sys.modules)
json.dump(answer["logits"].numpy().tolist(), sys.stdout)
"""


def test_a_fresh_process_with_tensorflow_alone(model_dir, expected, tmp_path):
    found = subprocess.run(
        [sys.executable, "-I", "-c", FRESH, str(model_dir / "1")],
        input=json.dumps(IMAGES.tolist()), capture_output=True, text=True, cwd=tmp_path, check=True,
    )  # fmt: skip
    np.testing.assert_allclose(json.loads(found.stdout), expected, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def ask_c_api(model_dir, graph):
    """Sends IMAGES and some files through both signatures, by the C API."""

    def ask(files):
        signatures = graph.signature_def
        names = {"serving_default": "images", "serving_bytes": "image_bytes"}
        ops = {key: signatures[key].inputs[name].name for key, name in names.items()}
        outputs = {key: signatures[key].outputs["logits"].name.split(":") for key in names}
        request = {
            "model": str(model_dir / "1"),
            "inputs": {key: op.partition(":")[0] for key, op in ops.items()},
            "outputs": {key: [op, int(index)] for key, (op, index) in outputs.items()},
            "images": [IMAGES.shape, base64.b64encode(IMAGES.tobytes()).decode()],
            "image_bytes": [base64.b64encode(item).decode() for item in files],
        }
        library = os.path.join(tf.sysconfig.get_lib(), "libtensorflow_cc.so.2")
        script = os.path.join(os.path.dirname(__file__), "c_api.py")
        found = subprocess.run(
            [sys.executable, "-I", script, library],
            input=json.dumps(request), capture_output=True, text=True, check=True,
        )  # fmt: skip
        return json.loads(found.stdout)

    return ask


def test_the_c_api_without_python(ask_c_api, expected):
    answer = ask_c_api(list(warmup.encode(IMAGES)))
    for signature in ("serving_default", "serving_bytes"):
        found = np.reshape(answer[signature], expected.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert not {"tensorflow", "numpy", "rat_tf"} & set(answer["modules"])


def test_the_c_api_names_a_broken_file(ask_c_api):
    answer = ask_c_api([*warmup.encode(IMAGES[:3]), b"broken"])
    assert "image_bytes[3] of 6 bytes" in answer["serving_bytes"]


def test_nothing_of_training_is_in_the_graph(graph):
    nodes = [*graph.graph_def.node]
    for function in graph.graph_def.library.function:
        nodes += function.node_def
    ops = {node.op for node in nodes}
    assert "FusedBatchNormV3" in ops
    assert not any(node.attr["is_training"].b for node in nodes if node.op == "FusedBatchNormV3")
    assert not [op for op in ops if op.startswith(("Addons>", "Py")) or "Grad" in op]


def test_signatures(graph):
    signature = graph.signature_def["serving_bytes"]
    found = {
        name: (tf.as_dtype(info.dtype), tf.TensorShape(info.tensor_shape).as_list())
        for name, info in [*signature.inputs.items(), *signature.outputs.items()]
    }
    assert list(signature.inputs) == ["image_bytes"]
    assert found == {
        "image_bytes": (tf.string, [None]),
        "probabilities": (tf.float32, [None, 10]),
        "logits": (tf.float32, [None, 10]),
        "classes": (tf.int64, [None]),
        "labels": (tf.string, [None]),
    }
