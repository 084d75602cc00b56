"""KerasTuner's oracles, which choose the next trial, made crash-safe.

Changes to KerasTuner 1.4.8, and why:

- The state is one file, written atomically. KerasTuner writes several files, and a process killed
  between two of them leaves trials that are never finished.
- A grid search can be resumed; KerasTuner's does not save its position.
- A chief (see rat_tf.tune) reassigns the trials of dead workers. KerasTuner's waits for them
  forever.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import socket
import threading
import time
import warnings

import grpc
import keras_tuner as kt
from sklearn import exceptions

from rat_tf import errors
from rat_tf.storage import files, records
from rat_tf.tuning import search_space

ChiefLost = grpc.RpcError  # raised in a worker when the chief does not answer
OBJECTIVE = kt.Objective("val_error", "min")
HEARTBEAT = 5.0  # seconds between two heartbeats of a worker
TIMEOUT = 60.0  # seconds without a heartbeat after which a worker counts as dead


class _Resumable:
    """Mixin for KerasTuner's oracles: state in one file, heartbeats of the workers."""

    def __init__(self, **kwargs):
        super().__init__(objective=OBJECTIVE, allow_new_entries=False, **kwargs)
        self.verbose = 0  # rat_tf.tune reports
        self._heard = {}  # worker's id -> time of its last heartbeat

    # ---- the state

    def get_state(self):
        state = super().get_state()
        # KerasTuner saves before it removes an ended trial from the ongoing ones.
        ongoing = {k: v for k, v in state["ongoing_trials"].items() if v not in self.end_order}
        trials = {name: trial.get_state() for name, trial in self.trials.items()}
        return {**state, "ongoing_trials": ongoing, "trials": trials}

    def set_state(self, state):
        load = kt.engine.trial.Trial.from_state
        self.trials = {name: load(trial) for name, trial in state["trials"].items()}
        super().set_state(state)

    def save(self):
        files.write(self._get_oracle_fname(), json.dumps(self.get_state()))

    def _save_trial(self, trial):
        pass  # in the one file

    def resume(self) -> bool:
        """Restores the state if there is one; unfinished trials come first."""
        path = self._get_oracle_fname()
        if not os.path.lexists(path):
            return False
        advice = "restore it, or start the search again with another --output"
        records.json_object(path, {"trials": records.dictionary}, advice=advice)
        try:
            self.reload()
        except Exception as error:  # KerasTuner's own, whatever is missing or has another type
            reason = f"{type(error).__name__}: {error.__cause__ or error}"
            raise errors.UserError(
                f"{path}: not the state of a {type(self).__name__} ({reason}); {advice}"
            ) from None
        return True

    # ---- the workers

    @kt.synchronized
    def create_trial(self, tuner_id):
        self._heard[tuner_id] = time.monotonic()
        with warnings.catch_warnings():
            # A length scale at its bound: a parameter without effect.
            warnings.simplefilter("ignore", exceptions.ConvergenceWarning)
            trial = super().create_trial(tuner_id)
        if trial.status == "STOPPED" and self.ongoing_trials:
            # Not the end yet: if the worker of an ongoing trial dies, another one must run it.
            trial.status = "IDLE"
            self.tuner_ids.add(tuner_id)
        return trial

    def get_trial(self, trial_id):
        """The trial. A worker requests its own trial as a heartbeat."""
        for tuner_id, trial in list(self.ongoing_trials.items()):
            if trial.trial_id == trial_id:
                self._heard[tuner_id] = time.monotonic()
        return super().get_trial(trial_id)

    @kt.synchronized
    def dismiss_silent_workers(self):
        for tuner_id in list(self.tuner_ids):
            if time.monotonic() - self._heard[tuner_id] < TIMEOUT:
                continue
            text = f"no heartbeat from {tuner_id} for {TIMEOUT:.0f} s"
            self.tuner_ids.discard(tuner_id)
            trial = self.ongoing_trials.pop(tuner_id, None)
            if trial:
                self._retry_queue.append(trial.trial_id)
                self.save()
                text += f"; trial {trial.trial_id} goes to the next free worker"
            print(text, flush=True)


class Grid(kt.Oracle):
    """All combinations, the last parameter changing fastest."""

    def populate_space(self, trial_id):
        space = self.hyperparameters.space
        combinations = itertools.product(*(parameter.values for parameter in space))
        values = next(itertools.islice(combinations, len(self.start_order), None), None)
        if values is None:
            return {"status": "STOPPED"}
        return {"status": "RUNNING", "values": {p.name: v for p, v in zip(space, values)}}


KINDS = {
    "grid": Grid,
    "random": kt.oracles.RandomSearchOracle,
    "bayesian": kt.oracles.BayesianOptimizationOracle,
    "hyperband": kt.oracles.HyperbandOracle,
}


def make(tuner: str, space: search_space.Space, limit: int | None):
    """The oracle of --tuner, which runs up to `limit` trials."""
    hyperparameters = kt.HyperParameters()
    for p in space.parameters:
        if p.values:
            # As text: a rounded number would not be found among the choices.
            hyperparameters.Choice(p.name, list(p.values))
        else:
            hyperparameters.Float(p.name, p.low, p.high, sampling="log" if p.log else "linear")
    # Hyperband counts in "epochs", which are validations here.
    epochs = {"max_epochs": space.base.iterations // space.base.validate_every}
    budget = epochs if tuner == "hyperband" else {"max_trials": limit}
    kind = type(f"Resumable{KINDS[tuner].__name__}", (_Resumable, KINDS[tuner]), {})
    # KerasTuner treats the seed 0 as no seed.
    return kind(hyperparameters=hyperparameters, seed=space.base.seed + 1, **budget)


# ---- several machines


def serve(oracle) -> None:
    """Prepares the chief: checks its address and starts to monitor the workers."""
    host, port = os.environ["KERASTUNER_ORACLE_IP"], os.environ["KERASTUNER_ORACLE_PORT"]
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host.strip("[]"), int(port)), family=family).close()
    except (OSError, ValueError, OverflowError) as error:
        text = f"KERASTUNER_ORACLE_IP, KERASTUNER_ORACLE_PORT: cannot listen at {host}:{port}"
        raise errors.UserError(f"{text}: {error}") from None
    print(f"waiting for workers at {host}:{port} (no authentication)", flush=True)
    every_heartbeat(oracle.dismiss_silent_workers)


def every_heartbeat(call) -> None:
    """Calls a function periodically in a background thread."""

    def loop():
        while True:
            time.sleep(HEARTBEAT)
            with contextlib.suppress(grpc.RpcError):  # the worker's next request reports it
                call()

    threading.Thread(target=loop, daemon=True).start()
