"""Training steps and the bare passes that they are made of, for the benchmarks to time."""

from __future__ import annotations

import multiprocessing
import time

import rat_tf  # noqa: F401  (first: it sets the environment that TensorFlow reads at its import)

# isort: split
import numpy as np
import tensorflow as tf

from rat_tf import config as config_lib
from rat_tf.data import examples, preprocess
from rat_tf.networks import guard
from rat_tf.training import build, optimizers
from rat_tf.training import network as network_lib

METHODS = ("supervised", "random", "mean_teacher", "vat", "rat", "mixmatch")
#: (kind, images as a multiple of the unlabelled batch): forward, input gradient, weight gradients.
PASSES = {
    "supervised": [("weights", 2)],
    "random": [("weights", 2), ("weights", 1)],
    "mean_teacher": [("weights", 2), ("forward", 1)],
    "vat": [("weights", 2), ("input", 1), ("weights", 1)],
    "rat": [("weights", 2), ("input", 1), ("weights", 1)],
    "mixmatch": [("forward", 1), ("forward", 1), *[("weights", 1)] * 3],
}


class Pooled(tf.keras.Model):
    """A network that costs almost nothing: the mean pixel and a linear layer."""

    def __init__(self):
        super().__init__()
        self.linear = tf.keras.layers.Dense(10)

    def call(self, images, training=False, update_stats=True):
        return self.linear(tf.reduce_mean(images, axis=[1, 2]))


def batch_of(method: str, size: int, batch: int):
    """((images, labels), unlabelled images) as the streams give them; supervised: all labelled."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (2 * batch, size, size, 3), np.uint8)
    labels = rng.integers(0, 10, 2 * batch)
    cut = 2 * batch if method == "supervised" else batch
    return (images[:cut], labels[:cut]), images[cut:]


def model_of(method: str, network: str, size: int, **changes):
    """The compiled model of a run with the paper's flags; network "pooled" costs almost nothing."""
    config = config_lib.Config(
        method=method,
        network="wrn-10-1" if network == "pooled" else network,
        **changes,
    )
    layer = preprocess.Scale()
    model = build.method(config, network_lib.Source(config, (size, size, 3), 10), layer)
    if network == "pooled":
        model.network = Pooled()
    return build.compiled(model, config, layer(tf.zeros([1, size, size, 3], tf.uint8)))


def network_of(name: str, size: int) -> tf.keras.Model:
    """The network of that name alone."""
    config = config_lib.Config(network=name)
    return network_lib.Source(config, (size, size, 3), 10).make()


class Clock(tf.keras.callbacks.Callback):
    """Seconds from the end of one step to the end of the next."""

    def __init__(self):
        super().__init__()
        self._supports_tf_logs = True
        self.seconds, self._last = [], None

    def on_train_begin(self, logs=None):
        self._last = None

    def on_train_batch_end(self, batch, logs=None):
        now = time.perf_counter()
        if self._last is not None:  # the first step also pays for the start of `fit`
            self.seconds.append(now - self._last)
        self._last = now


class Step:
    """A method's step in `model.fit`; `strategy` shares the batch among its replicas."""

    def __init__(self, method: str, network: str, size: int, batch: int, strategy=None, **changes):
        strategy = strategy or tf.distribute.get_strategy()
        with strategy.scope():
            self.model = model_of(method, network, size, **changes)
        share = batch_of(method, size, batch // strategy.num_replicas_in_sync)
        data = tf.data.Dataset.from_tensors(share).cache().repeat().prefetch(2)
        data = data.with_options(examples.options())
        self._data = strategy.distribute_datasets_from_function(lambda context: data)
        self._clock = Clock()
        self._at_once = changes.get("steps_per_execution", 1)
        self.run(1)

    def run(self, count: int = 2) -> None:
        """`count` calls, the first of which is not counted."""
        steps = count * self._at_once
        self.model.fit(self._data, steps_per_epoch=steps, verbose=0, callbacks=[self._clock])

    @property
    def seconds(self) -> list[float]:
        return [seconds / self._at_once for seconds in self._clock.seconds]

    def operations(self) -> dict[str, int]:
        """How often each kind of operation is in the graph of a step, loops included."""
        function = self.model.train_function
        graphs = [c.graph.as_graph_def() for c in function._list_all_concrete_functions()]
        nodes = [n for g in graphs for f in g.library.function for n in f.node_def]
        nodes += [n for g in graphs for n in g.node]
        return {op: sum(n.op == op for n in nodes) for op in sorted({n.op for n in nodes})}

    def traces(self) -> int:
        return self.model.train_function.experimental_get_tracing_count()


class Timed:
    """Calls of a function, each after one that is not counted, as it is for a `Step`."""

    def __init__(self, function):
        self._function = function
        self.seconds = []
        function()

    def run(self) -> None:
        self._function()
        began = time.perf_counter()
        tf.nest.flatten(self._function())[0].numpy()
        self.seconds.append(time.perf_counter() - began)


class Pass(Timed):
    """One bare pass over `images` images: forward alone, or with one kind of gradient."""

    def __init__(self, kind: str, network: str, size: int, images: int, jit: bool = False):
        rng = np.random.default_rng(1)
        x = tf.constant(rng.normal(size=(images, size, size, 3)), tf.float32)
        y = tf.constant(rng.integers(0, 10, images))
        net = network_of(network, size)
        net(x[:1])
        guard.install(net)

        def loss(inputs):
            logits = guard.call(net, inputs, update_stats=False)
            return tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))

        @tf.function(jit_compile=jit)
        def run():
            if kind == "forward":
                return loss(x)
            watched = x if kind == "input" else net.trainable_variables
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(watched)
                value = loss(x)
            return value, tape.gradient(value, watched)

        super().__init__(run)


class Update(Timed):
    """What the optimiser does with the gradients of a network, and the norm of these."""

    def __init__(self, network: str, size: int):
        net = network_of(network, size)
        net(tf.zeros([1, size, size, 3]))
        variables = net.trainable_variables
        adam = optimizers.Adam()
        adam.build(variables)
        gradients = [tf.ones_like(variable) for variable in variables]

        @tf.function
        def run():
            adam.apply_gradients(zip(gradients, variables))
            return tf.linalg.global_norm(gradients)

        super().__init__(run)


def largest() -> float:
    """The largest resident size of this process so far, in megabytes.

    Not by getrusage: its maximum is inherited from the process that has started this one.
    """
    with open("/proc/self/status", encoding="utf-8") as file:
        (line,) = (line for line in file if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def alone(method: str, network: str, size: int, batch: int, changes: dict) -> dict:
    """Seconds to the end of the first step, and megabytes that three steps add to the process."""
    began = time.perf_counter()
    model = model_of(method, network, size, **changes)
    data = tf.data.Dataset.from_tensors(batch_of(method, size, batch)).cache().repeat()
    data = data.with_options(examples.options())
    before = largest()
    calls = changes.get("steps_per_execution", 1)
    model.fit(data, steps_per_epoch=calls, verbose=0)
    first = time.perf_counter() - began
    model.fit(data, steps_per_epoch=2 * calls, verbose=0)
    return {"first_step_s": first, "megabytes": largest() - before}


def in_a_process(function, *arguments):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def quartiles(name: str, ratios: np.ndarray) -> dict:
    low, middle, high = np.percentile(ratios, [25, 50, 75])
    return {name: middle, f"{name}_spread": high - low}
