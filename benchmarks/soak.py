"""Sends many requests, good and bad ones mixed, to an exported classifier from four threads.

    python -m benchmarks.serving --soak=20000

Both signatures get good requests, empty ones, the largest that are served, arrays of wrong shapes
and types, and broken files. Every answer is compared with the network's own, called op by op; bad
requests must get an InvalidArgument. Then the good requests are sent again without the bad ones.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from multiprocessing import pool
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from export import protocol, warmup
from rat_tf.data import headers

THREADS = 4
SHARES = {"good": 0.6, "empty": 0.1, "largest": 0.02, "wrong": 0.14, "broken": 0.14}
EVERY = 1000  # requests between two measurements of memory
FULL_EVERY = 500  # requests, of which one has a file with the maximum number of pixels
TOLERANCE = 1e-4  # of a logit, relative to the largest


class Request(NamedTuple):
    kind: str
    signature: str
    array: tf.Tensor
    expected: np.ndarray | None  # logits; None if it must be refused


class Answered(NamedTuple):
    kind: str
    images: int
    seconds: float
    problem: str | None


def run(signatures, trained, count: int) -> None:
    """Sends `count` requests and prints the results; exits with status 1 if one went wrong."""
    requests = mixed(choices(trained), count)
    good = [request for request in requests if request.kind in ("good", "largest")]
    for request in {id(request): request for request in requests}.values():
        ask(signatures, request)  # the first of a kind is slow
    found = {}
    for name, asked in (("mixed", requests), ("good ones alone", good)):
        answered, seconds, memory = send(signatures, asked)
        found[name] = report(name, answered, seconds, memory)
    rates, latencies = zip(*found.values())
    print(
        f"good ones among bad: {rates[0] / rates[1]:.2f} of the images per second of good ones "
        f"alone, {latencies[0] / latencies[1]:.2f} times their median latency"
    )


def choices(trained) -> dict[str, list[Request]]:
    """Some requests of each kind."""
    rng = np.random.default_rng(0)
    shape = trained.image_shape
    images = rng.integers(256, size=(max(protocol.BATCH_SIZES), *shape), dtype=np.uint8)
    files = warmup.encode(images)
    logits = trained.logits(tf.constant(images)).numpy()
    made = {kind: [] for kind in SHARES}
    sizes = {"good": (1, 8), "empty": (0,), "largest": (len(images),)}
    for kind, size in ((kind, size) for kind, some in sizes.items() for size in some):
        for signature, array in (("serving_default", images), ("serving_bytes", files)):
            made[kind].append(
                Request(kind, signature, tf.constant(array[:size], _type(array)), logits[:size])
            )
    height, width, channels = shape
    for wrong in (
        *([], [0], [1], [height, width, channels], [1, height, width], [1, *shape, 1]),
        *([1, 2 * height, width, channels], [1, height, width // 2, channels]),
        *([1, height, width, 4 - channels], [0, height, width + 1, channels]),
    ):
        array = tf.zeros(wrong, tf.uint8)
        made["wrong"].append(Request("wrong", "serving_default", array, None))
    array = tf.constant(images[:1], tf.float32)
    made["wrong"].append(Request("wrong", "serving_default", array, None))
    array = tf.constant(files[:2, None], tf.string)
    made["wrong"].append(Request("wrong", "serving_bytes", array, None))
    for broken in broken_files(files[0]):
        array = tf.constant([files[0], broken], tf.string)
        made["broken"].append(Request("broken", "serving_bytes", array, None))
    return made


def broken_files(png: bytes) -> list[bytes]:
    """Cut, no image at all, damaged, and with a size in the header that is not in the file."""
    gif = b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0, 0, 0)
    gif += b"," + struct.pack("<HHHHB", 0, 0, 65_535, 65_535, 0) + b"\x02\x02\x4c\x01\x00;"
    huge = png[:16] + struct.pack(">II", 10_000, 10_000) + png[24:]
    return [b"", b"no image", png[: len(png) // 2], png[:60] + bytes(9) + png[69:], huge, gif]


def mixed(made: dict[str, list[Request]], count: int) -> list[Request]:
    """`count` requests in random order, with the shares of `SHARES`."""
    rng = np.random.default_rng(1)
    kinds = rng.choice(list(SHARES), count, p=list(SHARES.values()))
    requests = [made[kind][rng.integers(len(made[kind]))] for kind in kinds]
    side = int(headers.LIMIT**0.5)
    full = tf.io.encode_png(tf.zeros([side, side, 1], tf.uint8))
    black = tf.io.encode_png(tf.zeros([8, 8, 1], tf.uint8))  # resized, it is the same
    whole = Request("full", "serving_bytes", tf.stack([full, black]), None)
    for place in range(FULL_EVERY // 2, count, FULL_EVERY):
        requests[place] = whole
    return requests


def send(signatures, requests) -> tuple[list[Answered], float, list[float]]:
    """The answers, the total seconds, and MB of resident memory after every thousand."""
    answered, memory = [], []
    start = time.perf_counter()
    with pool.ThreadPool(THREADS) as threads:
        for item in threads.imap_unordered(lambda request: ask(signatures, request), requests):
            answered.append(item)
            if len(answered) % EVERY == 0:
                memory.append(resident())
    return answered, time.perf_counter() - start, memory


def ask(signatures, request: Request) -> Answered:
    start, problem = time.perf_counter(), None
    try:
        answer = signatures[request.signature](request.array)
        logits = answer["logits"].numpy()
    except tf.errors.InvalidArgumentError as error:
        logits = None
        if request.expected is not None or request.kind == "full":
            problem = f"refused: {error.message}"
    seconds = time.perf_counter() - start
    if logits is not None and not problem:
        problem = _difference(logits, request)
    images = 0 if request.expected is None else len(request.expected)
    return Answered(request.kind, images, seconds, problem)


def _difference(logits: np.ndarray, request: Request) -> str | None:
    if request.kind == "full":
        expected = logits[1:].repeat(2, 0)
    elif request.expected is None:
        return f"answered: {request.array.shape} {request.array.dtype.name}"
    else:
        expected = request.expected
    if logits.shape != expected.shape:
        return f"answered by {logits.shape}, expected {expected.shape}"
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    if not np.abs(logits - expected).max(initial=0.0) <= TOLERANCE * scale:
        return "answered by other logits than the network's"
    return None


def report(name: str, answered: list[Answered], seconds: float, memory: list[float]):
    """Prints the results; returns images per second and the median latency of good requests."""
    print(f"{name}: {len(answered)} requests in {seconds:.0f} s")
    for kind in sorted({item.kind for item in answered}):
        some = np.array([item.seconds for item in answered if item.kind == kind])
        p50, p99 = 1e3 * np.percentile(some, [50, 99])
        print(f"  {kind:<8} {len(some):>6} requests, {p50:>7.1f} ms median, {p99:>7.1f} ms p99")
    images = sum(item.images for item in answered)
    print(f"  {images / seconds:.0f} images per second")
    if memory:
        print(f"  MB after every {EVERY}: " + " ".join(f"{value:.0f}" for value in memory))
    problems = [f"{item.kind} {item.problem}" for item in answered if item.problem]
    for problem in sorted(set(problems))[:10]:
        print(f"  error: {problem}", file=sys.stderr)
    if problems:
        sys.exit(1)
    print("  no wrong answer")
    return images / seconds, np.median([i.seconds for i in answered if i.kind == "good"])


def resident() -> float:
    with open("/proc/self/statm", encoding="utf-8") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def _type(array: np.ndarray) -> tf.DType:
    return tf.string if array.dtype == object else tf.uint8
