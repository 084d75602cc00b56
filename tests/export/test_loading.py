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
from rat_tf.data import headers
from tests.data import hostile

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
    """Sends arrays to signatures, [(signature, array) …], in a process of its own by the C API."""

    def ask(requests):
        asked = []
        for name, array in requests:
            (fed,) = graph.signature_def[name].inputs.values()
            outputs = graph.signature_def[name].outputs
            op, index = outputs["labels" if name == "class_names" else "logits"].name.split(":")
            item = {"input": fed.name.partition(":")[0], "output": [op, int(index)]}
            if array.dtype == object:
                item["strings"] = [base64.b64encode(data).decode() for data in array.ravel()]
            else:
                item["kind"] = tf.as_dtype(array.dtype).as_datatype_enum
                item["data"] = base64.b64encode(array.tobytes()).decode()
            asked.append({**item, "shape": array.shape})
        library = os.path.join(tf.sysconfig.get_lib(), "libtensorflow_cc.so.2")
        script = os.path.join(os.path.dirname(__file__), "c_api.py")
        found = subprocess.run(
            [sys.executable, "-I", script, library],
            input=json.dumps({"model": str(model_dir / "1"), "asked": asked}),
            env={**os.environ, "TF_ENABLE_ONEDNN_OPTS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert found.returncode == 0, found.stderr
        return json.loads(found.stdout)

    return ask


def strings(*items):
    made = np.empty(len(items), object)
    made[:] = items
    return made


FILES = strings(*warmup.encode(IMAGES))
RIGHT = [("serving_default", IMAGES), ("serving_bytes", FILES), ("class_names", np.arange(10))]
REFUSED = [
    *(
        ("serving_default", np.zeros(shape, np.uint8))
        for shape in [
            *([], [0], [1], [64], [8, 8], [1, 8, 8], [8, 8, 1], [1, 64], [1, 8, 8, 1, 1]),
            *([1, 4, 4, 1], [1, 16, 16, 1], [1, 200, 200, 1], [1, 8, 8, 3], [1, 8, 8, 0]),
            *([0, 8, 8], [0, 16, 16, 1], [0, 0, 0, 0], [1, 0, 8, 1], [1, 1, 8, 8, 1]),
        ]
    ),
    *(("serving_default", IMAGES.astype(kind)) for kind in (np.float32, np.int64, np.float64)),
    ("serving_default", FILES),
    ("serving_bytes", FILES[0:1].reshape([])),
    ("serving_bytes", FILES[:, None]),
    ("serving_bytes", np.zeros([0, 3], object)),
    ("serving_bytes", np.zeros([3], np.uint8)),
    *(("serving_bytes", strings(FILES[0], data)) for data in hostile.FILES),
    *(
        ("class_names", np.array(classes))
        for classes in ([10], [-1], [2**62], [-(2**63)], 3, [[1]])
    ),
    ("class_names", np.array([1], np.int32)),
    ("class_names", strings(b"1")),
]


@pytest.fixture(scope="module")
def answered(ask_c_api):
    """Right requests, then empty ones, then all that are wrong, then the right ones again."""
    nothing = [(signature, array[:0]) for signature, array in RIGHT]
    answer = ask_c_api([*RIGHT, *nothing, *REFUSED, *RIGHT])
    return {**answer, "nothing": answer["answers"][3:6], "refused": answer["answers"][6:-3]}


def test_the_c_api_without_python(answered, expected):
    for part in (slice(3), slice(-3, None)):  # as before, after all that was refused
        for answer in answered["answers"][part][:2]:
            found = np.reshape(answer["values"], expected.shape)
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        assert answered["answers"][part][2]["shape"] == [10]
    assert not {"tensorflow", "numpy", "rat_tf"} & set(answered["modules"])


def test_nothing_is_answered_with_nothing(answered):
    assert [answer.get("shape") for answer in answered["nothing"]] == [[0, 10], [0, 10], [0]]


def test_no_request_ends_the_process(answered):
    """Each is an InvalidArgument, TensorFlow's code 3."""
    assert len(answered["refused"]) == len(REFUSED)
    for (signature, array), answer in zip(REFUSED, answered["refused"]):
        assert answer.get("code") == 3, (signature, array.dtype, array.shape, answer)


def test_files_that_would_fill_the_memory_do_not(ask_c_api):
    """10,000×10,000 pixels are 100 MB for each channel; they compress to 100 KB."""
    plain = ask_c_api([("serving_bytes", FILES)])
    data = hostile.png(10_000, 10_000, pixels=True)
    found = ask_c_api([("serving_bytes", FILES), ("serving_bytes", strings(FILES[0], data))])
    assert f"at most {headers.LIMIT}" in found["answers"][1]["error"]
    assert f"image_bytes[1] of {len(data)} bytes has 100000000" in found["answers"][1]["error"]
    assert found["megabytes"] < plain["megabytes"] + 50


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
