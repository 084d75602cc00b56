"""KerasTuner's oracles, which choose the next trial, made to survive a crash at any moment.

What is changed in KerasTuner 1.4.8, and why:

- The state is one file, written whole or not at all. KerasTuner writes several, one after the
  other, and a process killed between two of them leaves trials that are never finished.
- A grid search goes on after a restart, where KerasTuner's has forgotten its place; and each trial
  may start when the one before has started, where KerasTuner's waits for it to end.
- A chief (see rat_tf.tune) notices workers that have fallen silent, gives their trials to others,
  and ends when all is done. KerasTuner's waits for dead workers for ever.
"""

from __future__ import annotations

import json
import os
import threading
import time
import warnings
from concurrent import futures

import grpc
import keras_tuner as kt
from keras_tuner.src import protos  # not exported, and the way to a chief that ends
from keras_tuner.src.distribute import oracle_chief
from keras_tuner.src.engine import trial as trial_lib
from sklearn import exceptions

from rat_tf import errors, files

OBJECTIVE = kt.Objective("val_error", "min")
BEAT = 5.0  # seconds between two signs of life of a worker
SILENCE = 60.0  # seconds after which a worker counts as dead
IDLE, STOPPED = trial_lib.TrialStatus.IDLE, trial_lib.TrialStatus.STOPPED


class _Durable:
    """Mixed into an oracle of KerasTuner: its state in one file, its workers watched."""

    chief = False

    def __init__(self, **kwargs):
        super().__init__(objective=OBJECTIVE, allow_new_entries=False, **kwargs)
        self.verbose = 0  # rat_tf.tune says what goes on
        self._heard = {}  # worker's id -> when it last gave a sign of life

    # ---- the state

    def get_state(self):
        trials = {name: trial.get_state() for name, trial in self.trials.items()}
        return {**super().get_state(), "trials": trials}

    def set_state(self, state):
        load = trial_lib.Trial.from_state
        self.trials = {name: load(trial) for name, trial in state["trials"].items()}
        super().set_state(state)

    def save(self):
        files.write(self._get_oracle_fname(), json.dumps(self.get_state()))

    def _save_trial(self, trial):
        pass  # in the one file

    def reload(self) -> bool:
        """Reads the state if there is one; trials that were under way go on first."""
        if not os.path.exists(self._get_oracle_fname()):
            return False
        with open(self._get_oracle_fname()) as file:
            self.set_state(json.load(file))
        if self.chief:
            # Their workers may be alive: they have the usual time to say so.
            self.tuner_ids = set(self.ongoing_trials)
            self._heard = dict.fromkeys(self.ongoing_trials, time.monotonic())
        else:
            self._retry_queue += [trial.trial_id for trial in self.ongoing_trials.values()]
            self.ongoing_trials = {}
        return True

    # ---- trials

    @kt.synchronized
    def create_trial(self, tuner_id):
        self._heard[tuner_id] = time.monotonic()
        trial = super().create_trial(tuner_id)
        if trial.status == STOPPED and self.ongoing_trials:
            # Not the end yet: the worker of one of these may die, and then somebody is needed.
            trial.status = IDLE
            self.tuner_ids.add(tuner_id)
        return trial

    @kt.synchronized
    def end_trial(self, trial):
        super().end_trial(trial)
        self.save()  # once more: the trial has only now left those under way

    def get_trial(self, trial_id):
        """The trial; a worker asks for its own again and again to show that it is alive."""
        for tuner_id, trial in list(self.ongoing_trials.items()):
            if trial.trial_id == trial_id:
                self._heard[tuner_id] = time.monotonic()
        return super().get_trial(trial_id)

    @kt.synchronized
    def dismiss_silent(self):
        """Takes their trials from workers that gave no sign of life for too long."""
        for tuner_id in list(self.tuner_ids):
            if time.monotonic() - self._heard[tuner_id] < SILENCE:
                continue
            self.tuner_ids.discard(tuner_id)
            trial = self.ongoing_trials.pop(tuner_id, None)
            text = f"{tuner_id} has not been heard of for {SILENCE:.0f} s"
            if trial:
                self._retry_queue.append(trial.trial_id)
                self.save()
                text += f"; trial {trial.trial_id} goes to the next worker that asks"
            print(text, flush=True)


class Grid(_Durable, kt.oracles.GridSearchOracle):
    """All combinations, the last parameter changing fastest."""

    def populate_space(self, trial_id):
        response = super().populate_space(trial_id)
        if response["values"] is not None:
            self._populate_next.append(trial_id)
        return response

    def set_state(self, state):
        super().set_state(state)
        # All parameters are known from the start, so trials are made in the order of the grid.
        for trial_id in self.start_order:
            self._ordered_ids.insert(trial_id)
        self._populate_next = self.start_order[-1:]


class Random(_Durable, kt.oracles.RandomSearchOracle):
    pass


class Bayesian(_Durable, kt.oracles.BayesianOptimizationOracle):
    """A Gaussian process over the errors so far."""

    def populate_space(self, trial_id):
        with warnings.catch_warnings():
            # That a length scale is at its bound: a parameter that makes no difference.
            warnings.simplefilter("ignore", exceptions.ConvergenceWarning)
            return super().populate_space(trial_id)


class Hyperband(_Durable, kt.oracles.HyperbandOracle):
    pass


def make(name: str, space: kt.HyperParameters, seed: int, max_trials: int, rungs: int):
    """The oracle of --tuner; `rungs` is what hyperband counts in, the validations of a run."""
    arguments = {"hyperparameters": space, "seed": seed + 1}  # KerasTuner takes 0 for none
    if name == "grid":
        return Grid(max_trials=max_trials or None, **arguments)
    if name == "hyperband":
        return Hyperband(max_epochs=rungs, **arguments)
    return {"random": Random, "bayesian": Bayesian}[name](max_trials=max_trials, **arguments)


# ---- several machines


def role() -> str:
    """What KerasTuner's variables make of this process: chief, worker, or alone."""
    names = ("KERASTUNER_TUNER_ID", "KERASTUNER_ORACLE_IP", "KERASTUNER_ORACLE_PORT")
    given = [name for name in names if os.environ.get(name)]
    if not given:
        return "alone"
    if len(given) < len(names):
        missing = ", ".join(sorted({*names} - {*given}))
        raise errors.UserError(f"{', '.join(given)} set in the environment, but not {missing}")
    return "chief" if "chief" in os.environ[names[0]] else "worker"


def serve(oracle) -> None:
    """What the chief does: answers workers until all trials have ended and all workers know it."""
    address = "{KERASTUNER_ORACLE_IP}:{KERASTUNER_ORACLE_PORT}".format(**os.environ)
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=1), options=[("grpc.so_reuseport", 0)]
    )
    servicer = oracle_chief.OracleServicer(oracle)
    protos.get_service_grpc().add_OracleServicer_to_server(servicer, server)
    try:
        bound = server.add_insecure_port(address)
    except RuntimeError:
        bound = 0
    if not bound:
        raise errors.UserError(
            f"KERASTUNER_ORACLE_IP and KERASTUNER_ORACLE_PORT: cannot listen at {address}"
        )
    server.start()
    print(f"waiting for workers at {address}", flush=True)
    while not servicer.stop_triggered or oracle.tuner_ids or oracle.ongoing_trials:
        time.sleep(0.5)
        oracle.dismiss_silent()
    server.stop(grace=2).wait()


class Heartbeat:
    """While it is open, tells the chief that a trial's worker is alive."""

    def __init__(self, oracle, trial_id: str):
        self._oracle = oracle
        self._trial_id = trial_id
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _beat(self):
        while not self._over.wait(BEAT):
            try:
                self._oracle.get_trial(self._trial_id)
            except grpc.RpcError:
                pass  # what the worker asks for next will tell
