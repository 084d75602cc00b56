"""Runs a search: its trials one after the other, with data and devices that all of them share."""

from __future__ import annotations

import gc
import json
import math
import os
import shutil
import time

import keras_tuner as kt
import tensorflow as tf
from tensorflow.python.framework import ops  # the registry of gradients is not exported

from rat_tf import config as config_lib
from rat_tf import data, errors, files
from rat_tf.data import streams
from rat_tf.training import callbacks, devices, loop, run_folder
from rat_tf.tuning import oracles, search_settings, search_space, trials

POLL = 0.5  # seconds between two requests of a worker that waits for a trial


def search(settings: search_settings.Settings, space: search_space.Space, role: str) -> None:
    """Runs all trials of a search, or resumes it: alone, or as a chief or worker."""
    # A graph for every trial is what is wanted here; TensorFlow takes it for a mistake.
    tf.get_logger().addFilter(lambda record: "retracing" not in record.getMessage())
    base, runner = space.base, None
    if role != "chief":
        # First what may be refused: data that are not there, batches that do not divide.
        strategy = devices.prepare(base)
        for probe in space.probes():
            streams.check_replicas(
                probe.labeled_batch, probe.unlabeled_batch, strategy.num_replicas_in_sync
            )
        runner = Runner(space, strategy, settings.output, settings.stop_hopeless)
    if role != "worker":
        search_settings.create_folder(settings, base)
    oracle = oracles.make(settings.tuner, space, settings.limit)
    tuner = Tuner(oracle, runner, settings.output)
    if role == "worker":
        tuner.oracle.get_space()  # waits for the chief, which has then described the search
        if not os.path.exists(search_settings.description(settings.output)):
            raise errors.UserError(
                f"--output: expected the chief's folder, but {settings.output} has no search.json"
            )
        search_settings.check_folder(settings, base)
    else:
        total = min(space.size(), settings.limit or math.inf)
        count = f"{total} trials" if settings.tuner != "hyperband" else "trials"
        print(f"{settings.text()}; {count} of up to {base.iterations} steps")
        if oracle.resume():
            print(f"resuming after {len(trials.finished(settings.output))} trials")
    if role == "chief":
        oracles.watch_workers(oracle)
    tuner.search()


class Tuner(kt.engine.base_tuner.BaseTuner):
    """KerasTuner's loop over trials; an error ends the search instead of counting as a trial."""

    def __init__(self, oracle, runner: Runner | None, folder: str):
        super().__init__(oracle, directory=folder, project_name="oracle")
        self._runner = runner

    def pre_create_trial(self):
        if self._is_worker():
            time.sleep(POLL)

    def _try_run_and_update_trial(self, trial):
        self._run_and_update_trial(trial)
        trial.status = "COMPLETED"

    def run_trial(self, trial):
        with oracles.heartbeat(self.oracle, trial.trial_id):
            result = self._runner.run(trial.trial_id, trial.hyperparameters.values)
        return {oracles.OBJECTIVE.name: result["validation_error"]}

    def save(self):
        pass  # the oracle saves itself


class Runner:
    """Trains the trials of the search in `folder`."""

    def __init__(self, space: search_space.Space, strategy, folder: str, stop_hopeless: bool):
        self._space = space
        self._strategy = strategy
        self._folder = folder
        self._stop_hopeless = stop_hopeless
        self._loaded = space.base
        self._images = data.load(space.base)

    def run(self, trial_id: str, values: dict) -> dict:
        """Brings a trial to its end from wherever it stands; returns what trial.json holds."""
        run = run_folder.Run(trials.path(self._folder, trial_id))
        result_file = os.path.join(run.folder, "trial.json")
        if os.path.exists(result_file):
            with open(result_file) as file:
                return json.load(file)
        shown = self._space.shown(values)
        print(f"\ntrial {trial_id}: " + "  ".join(f"{k}={v}" for k, v in shown.items()), flush=True)
        # Hyperband gives a trial some of the steps; ramps and decay stay as they are.
        steps = values.get("tuner/epochs", 0) * self._space.base.validate_every
        changes = {"iterations": steps} if steps else {}
        try:
            config = self._space.config(values, run_dir=run.folder, **changes)
        except errors.UserError as error:  # of a combination that `probes` has left out
            print(f"trial {trial_id}: {error}")
            os.makedirs(run.folder, exist_ok=True)
            result = trials.outcome(run, "invalid", shown)
        else:
            result = self._same(config, run, shown)
            if result is None:
                self._copy_parent(values.get("tuner/trial_id"), config, run)
                result = trials.outcome(run, self._train(config, run), shown)
        files.write(result_file, json.dumps(result, indent=2) + "\n")
        self._report(result)
        return result

    def _train(self, config: config_lib.Config, run: run_folder.Run) -> str:
        """Trains one run to its end; returns its status."""
        if not search_space.same_data(config, self._loaded):
            self._images = None  # before the next: not both in memory
            self._images, self._loaded = data.load(config), config
        devices.set_precision(config)
        run.check(config)
        run.create(config, self._images)
        stopping = trials.StopHopeless(run, self._folder, config.iterations)
        further = [stopping] if self._stop_hopeless else []
        try:
            with run.locked():
                loop.fit(config, run, self._images, self._strategy, callbacks=further)
        except callbacks.Diverged as error:
            print(f"warning: {error}")
            return "diverged"
        finally:
            _free_memory()
        return "stopped" if stopping.stopped else "finished"

    def _same(self, config: config_lib.Config, run: run_folder.Run, shown: dict) -> dict | None:
        """The outcome of an earlier trial with the same flags, which would be the same again."""
        for earlier in trials.finished(self._folder):
            flags = run_folder.Run(trials.path(self._folder, earlier["trial"])).flags
            if "same_as" in earlier or not os.path.exists(flags):
                continue
            with open(flags) as file:
                if file.read() != config.flagfile():
                    continue
            os.makedirs(run.folder, exist_ok=True)
            own = {"trial": os.path.basename(run.folder), "values": shown, "seconds": 0.0}
            status = {"status": f"same as {earlier['trial']}", "same_as": earlier["trial"]}
            return {**earlier, **own, **status}
        return None

    def _copy_parent(self, parent_id: str | None, config, run: run_folder.Run) -> None:
        """Lets a trial of hyperband resume its parent, the shorter trial with the same flags."""
        if not parent_id or os.path.exists(run.folder):
            return
        known = {trial["trial"]: trial for trial in trials.finished(self._folder)}
        parent = trials.path(self._folder, known[parent_id].get("same_as", parent_id))
        copy = run_folder.Run(run.folder + files.TEMPORARY)
        shutil.rmtree(copy.folder, ignore_errors=True)
        shutil.copytree(parent, copy.folder, ignore=shutil.ignore_patterns("trial.json"))
        files.write(copy.flags, config.flagfile())
        os.rename(copy.folder, run.folder)

    def _report(self, result: dict) -> None:
        best = trials.finished(self._folder)[0]
        text = f"validation error {result['validation_error']:.2%} at step {result['best_step']}"
        if result["status"] != "finished":
            text += f", {result['status']}"
        print(f"trial {result['trial']}: {text}; best so far "
              f"{best['validation_error']:.2%} ({best['trial']})", flush=True)  # fmt: skip


def _free_memory() -> None:
    """Frees what a trial has built.

    TensorFlow registers the gradient of every tf.custom_gradient that it traces under a new name,
    and with it the graph, and never removes it. The smallest network grows by 17 MiB per trial
    without the loop (docs/performance.md).
    """
    tf.keras.backend.clear_session()
    registered = ops.gradient_registry._registry
    for name in [name for name in registered if name.startswith("CustomGradient-")]:
        del registered[name]
    gc.collect()
