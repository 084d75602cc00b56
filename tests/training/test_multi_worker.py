"""Two workers on loopback are one run: same losses, also after one of them has died."""

import json
import os
import signal
import socket

import numpy as np

from rat_tf import config as config_lib
from rat_tf import train
from tests import runs

FLAGS = {"method": "vat", "xi": "0.1eps", "sync_batch_norm": True, "ema_decay": 0.0}
FLAGS |= {"iterations": 12, "validate_every": 12, "decay_at": 12, "tensorboard": False}


def _losses(run_dir):
    names = ("loss", "cross_entropy", "entropy")
    return np.array([[float(row[name]) for name in names] for row in runs.rows(run_dir)])


def _start_workers(run_dir, monkeypatch, dying=False):
    """The second worker kills itself at step 10, if it is `dying`."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    hosts = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
    for s in sockets:
        s.close()
    workers = []
    for index in range(2):
        task = {"cluster": {"worker": hosts}, "task": {"type": "worker", "index": index}}
        monkeypatch.setenv("TF_CONFIG", json.dumps(task))
        signalled = signal.SIGKILL if dying and index == 1 else None
        workers.append(runs.start(run_dir, signalled, **FLAGS, strategy="multi_worker"))
    monkeypatch.delenv("TF_CONFIG")
    return workers


def test_two_workers_give_the_losses_of_one_process_also_after_a_death(tmp_path, monkeypatch):
    first, second = _start_workers(tmp_path / "two", monkeypatch, dying=True)
    status, _, err = second.finish()
    assert status == -signal.SIGKILL, err
    status, _, _ = first.finish()
    assert status != 0, "the survivor must not go on alone"

    # The restart loop that users put around each worker: on a machine that is busy with other tests
    # TensorFlow's heartbeat may give a worker up once more.
    for _ in range(3):
        ends = [worker.finish() for worker in _start_workers(tmp_path / "two", monkeypatch)]
        if all(status == 0 for status, _, _ in ends):
            break
    for status, out, err in ends:
        assert status == 0 and ("resuming from step" in out or "is finished" in out), err
    train.main(config_lib.Config(**{**runs.TINY, **FLAGS}, run_dir=str(tmp_path / "one")))
    assert [row["step"] for row in runs.rows(tmp_path / "two")] == ["4", "8", "12"]
    np.testing.assert_allclose(_losses(tmp_path / "two"), _losses(tmp_path / "one"), rtol=5e-3)
    with open(os.path.join(tmp_path, "two", "result.json")) as file:
        assert json.load(file)["iterations"] == FLAGS["iterations"] != runs.TINY["iterations"]
