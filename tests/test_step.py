"""What the graph of a training step may not contain, for every method."""

import collections
import functools

import pytest
import tensorflow as tf
from tensorflow.python.framework import kernels

from benchmarks import steps
from rat_tf import config as config_lib
from rat_tf import transforms
from rat_tf.data import preprocess
from rat_tf.training import build as build_lib
from rat_tf.training import network as network_lib
from tests import graphs
from tests.transforms import cases

TRANSFORMS = "noise:1,channel:0.001,affine:0.6,tps:1,flow:0.01"
OPTIONS = {
    **{method: {} for method in config_lib.METHODS},
    "rat": {"transforms": TRANSFORMS, "ascent": "steepest", "epsilon_rampup": 10},
    "random": {"transforms": TRANSFORMS, "padding": "edge"},
    "rat with mixup": {"mixup": True},
    "rat with another search": {
        "transforms": "flow:0.01",
        "adversary": "worst_of",
        "candidates": 2,
        "adversary_scale": 0.5,
        "adversary_share": 0.5,
        "target_threshold": 0.5,
    },
}


#: A wide ResNet is looked at once; what the others add is seen with a small network, too.
NETWORKS = {**dict.fromkeys(OPTIONS, "tiny"), "rat": "wrn-10-1"}
CONVOLUTIONS = {"tiny": 1, "wrn-10-1": 9}


def build(name, network="tiny", **changes):
    config = config_lib.Config(
        method=name.partition(" ")[0],
        network=network,
        augment_flip=True,
        augment_noise=0.1,
        augment_granularity="image",
        **OPTIONS[name],
        **changes,
    )
    layer = preprocess.Scale()
    model = build_lib.method(config, network_lib.Source(config, (8, 8, 3), 10), layer)
    return build_lib.compiled(model, config, layer(tf.zeros([1, 8, 8, 3], tf.uint8)))


def batch(name):
    images = tf.zeros([4, 8, 8, 3], tf.uint8)
    return (images, tf.zeros([4], tf.int64)), images[: 0 if name == "supervised" else 4]


@functools.cache
def traced(name):
    model = build(name, NETWORKS[name], sampler="gather")
    step = tf.function(model.train_step).get_concrete_function(batch(name))
    return graphs.live_operations(step.graph)


@pytest.fixture(params=OPTIONS)
def operations(request):
    return traced(request.param)


def gpu_kernel(op):
    """The definition of the kernel that would run an operation on a GPU; None if there is none."""

    def is_allowed(constraint):
        value, allowed = op.get_attr(constraint.name), constraint.allowed_values.list
        return getattr(value, "as_datatype_enum", value) in (*allowed.type, *allowed.s)

    def fits(kernel, device):
        return kernel.device_type == device and all(map(is_allowed, kernel.constraint))

    registered = kernels.get_registered_kernels_for_op(op.type).kernel
    devices = ("GPU", "DEFAULT")  # kernels for any device serve where there is none for GPUs
    return next((k for device in devices for k in registered if fits(k, device)), None)


def arguments(op):
    """The inputs of an operation by the names of its definition."""
    inputs, found = list(op.inputs), {}
    for argument in op.op_def.input_arg:
        count = 1
        if argument.number_attr:
            count = op.get_attr(argument.number_attr)
        elif argument.type_list_attr:
            count = len(op.get_attr(argument.type_list_attr))
        found[argument.name], inputs = inputs[:count], inputs[count:]
    return found


def is_known_beforehand(tensor):
    """Whether a tensor follows from constants and static shapes: it is folded into a constant."""
    return tensor.op.type in ("Const", "Shape", "ShapeN", "Size") or (
        bool(tensor.op.inputs) and all(map(is_known_beforehand, tensor.op.inputs))
    )


def test_nothing_waits_for_the_host(operations):
    """On a GPU every operation has a kernel, and none takes an input that the host must first see.

    By the registry of kernels, which TensorFlow has without a GPU, too. Integers of 32 bits are
    kept in the host's memory by most kernels: what is drawn or computed on the device must not
    be one of them.
    """
    waits = []
    for op in operations:
        if op.type in ("Placeholder", "NoOp") or all(map(is_known_beforehand, op.outputs)):
            continue
        kernel = gpu_kernel(op)
        if kernel is None:
            waits.append(f"{op.type} {op.name}: no kernel")
            continue
        for name, tensors in arguments(op).items():
            on_host = name in kernel.host_memory_arg
            for tensor in tensors:
                if on_host and tensor.dtype != tf.resource and not is_known_beforehand(tensor):
                    waits.append(f"{op.type} {op.name}: {name} from {tensor.name}")
    assert not waits, "\n".join(waits)


def test_no_python(operations):
    assert not [op.name for op in operations if "PyFunc" in op.type]


def test_shapes_are_static(operations):
    dynamic = [
        tensor.name
        for op in operations
        for tensor in op.outputs
        # The last output of this one is room for the kernels of GPUs, of a size that they know.
        if not tensor.shape.is_fully_defined() and op.type != "FusedBatchNormV3"
    ]
    assert not dynamic


@pytest.mark.parametrize("operations", steps.PASSES, indirect=True)
def test_a_step_makes_the_passes_that_it_is_compared_with(operations, request):
    """None twice, and no gradient that nobody asks for: by the convolutions of each kind."""
    name = request.node.callspec.params["operations"]
    layers, expected = CONVOLUTIONS[NETWORKS[name]], collections.Counter()
    for kind, _ in steps.PASSES[name]:
        expected["Conv2D"] += layers
        # A weight gradient does not need the gradient of the images.
        inputs = {"forward": 0, "input": layers, "weights": layers - 1}
        expected["Conv2DBackpropInput"] += inputs[kind]
        expected["Conv2DBackpropFilter"] += layers * (kind == "weights")
    found = collections.Counter(op.type for op in operations)
    assert {op: found[op] for op in expected} == dict(expected)


def test_a_step_is_traced_once():
    model = build("rat")
    data = tf.data.Dataset.from_tensors(batch("rat")).repeat()
    for _ in range(2):
        model.fit(data, steps_per_epoch=2, epochs=2, verbose=0)
    assert model.train_function.experimental_get_tracing_count() == 1


def test_xla_compiles_a_step_once():
    """What XLA needs to know at compile time would be written into its program."""
    model = build("rat", jit_compile=True)
    step = tf.function(model.train_step, jit_compile=True)

    def program(at):
        model.optimizer.iterations.assign(at)
        return step.experimental_get_compiler_ir(batch("rat"))(stage="hlo")

    first, *others = map(program, (0, 1, 7))
    assert "f32[8,8,8,3]" in first and all(other == first for other in others)


def sampler(**flags):
    return build_lib.transform(config_lib.Config(**flags)).transforms[1].sampler


def test_warps_on_gpus_are_by_a_sampler_that_they_have(monkeypatch):
    assert sampler() == cases.SAMPLERS[0]
    assert sampler(jit_compile=True) == "gather"
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [f"{kind}:0"])
    assert sampler() == "gather"
    assert transforms.parse("affine:1").transforms[0].sampler == "gather"
    assert sampler(sampler=cases.SAMPLERS[0]) == cases.SAMPLERS[0]


@pytest.mark.parametrize("name", cases.SAMPLERS)
def test_the_kernels_of_samplers(name):
    operation = {"resampler": "Addons>Resampler", "gather": "GatherV2"}[name]
    registered = kernels.get_registered_kernels_for_op(operation).kernel
    assert ("GPU" in {kernel.device_type for kernel in registered}) == (name == "gather")
