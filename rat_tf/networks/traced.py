"""Frees what TensorFlow keeps of the gradients that it traces.

It keeps the gradient of every tf.custom_gradient, and with it the graph, under a new name forever:
17 MiB per training of the smallest Wide ResNet (docs/performance.md).
"""

from __future__ import annotations

import contextlib
import threading

from tensorflow.python.framework import ops  # the registry of gradients is not exported

_lock = threading.Lock()
_open = 0  # trainings of all threads
_before: set[str] = set()  # names from before the first of them


def forget(keep: set[str] = frozenset()) -> None:
    """Removes the gradients of graphs that nobody will trace a gradient of any more."""
    for name in names() - keep:
        del ops.gradient_registry._registry[name]


@contextlib.contextmanager
def forgotten():
    """Forgets what is traced inside, once no thread is inside any more."""
    global _open, _before
    with _lock:
        if not _open:
            _before = names()
        _open += 1
    try:
        yield
    finally:
        with _lock:
            _open -= 1
            if not _open:
                forget(_before)


def names() -> set[str]:
    return {n for n in list(ops.gradient_registry._registry) if n.startswith("CustomGradient-")}
