"""Runs the trials of a search one after the other; they share data and devices."""

from __future__ import annotations

import gc
import json
import math
import os
import shutil
import time

import keras_tuner as kt
import tensorflow as tf

from rat_tf import config as config_lib
from rat_tf import data, errors
from rat_tf.data import streams
from rat_tf.networks import traced
from rat_tf.storage import files
from rat_tf.training import callbacks, devices, loop, network_files, run_folder
from rat_tf.tuning import oracles, search_settings, search_space, trials

POLL = 0.5  # seconds between two requests of a worker that waits for a trial


def search(settings: search_settings.Settings, space: search_space.Space, role: str) -> None:
    """Runs all trials of a search, or resumes it: alone, or as a chief or worker."""
    # Every trial needs its own graph; TensorFlow would warn about retracing.
    tf.get_logger().addFilter(lambda record: "retracing" not in record.getMessage())
    base, runner = space.base, None
    if role != "chief":
        # First what can fail: missing data, batches that do not divide.
        strategy = devices.prepare(base)
        for probe in space.probes():
            streams.check_replicas(*probe.batch_sizes, strategy.num_replicas_in_sync)
            devices.check_share(probe, strategy.num_replicas_in_sync)
        runner = Runner(space, strategy, settings.output, settings.stop_hopeless)
    if role != "worker":
        search_settings.create_folder(settings, base)
    oracle = oracles.make(settings.tuner, space, settings.limit)
    tuner = Tuner(oracle, runner, settings.output)
    if role == "worker":
        tuner.oracle.get_space()  # waits for the chief, which has then created the folder
        search_settings.check_folder(settings, base, created=True)
    else:
        total = min(space.size(), settings.limit or math.inf)
        count = f"{total} trials" if settings.tuner != "hyperband" else "trials"
        print(f"{settings.text()}; {count} of up to {base.iterations} steps")
        if oracle.resume():
            print(f"resuming after {len(trials.finished(settings.output))} trials")
    if role == "chief":
        oracles.serve(oracle)
    tuner.search()


class Tuner(kt.engine.base_tuner.BaseTuner):
    """KerasTuner's loop over trials; an error ends the search instead of counting as a trial."""

    def __init__(self, oracle, runner: Runner | None, folder: str):
        super().__init__(oracle, directory=folder, project_name="oracle")
        self._runner = runner
        self._trial_id = None
        if self._is_worker():  # the heartbeat: it requests its own trial
            oracles.every_heartbeat(
                lambda: self._trial_id and self.oracle.get_trial(self._trial_id)
            )

    def pre_create_trial(self):
        if self._is_worker():
            time.sleep(POLL)

    def _try_run_and_update_trial(self, trial):
        self._run_and_update_trial(trial)
        trial.status = "COMPLETED"

    def run_trial(self, trial):
        self._trial_id = trial.trial_id
        result = self._runner.run(trial.trial_id, trial.hyperparameters.values)
        self._trial_id = None
        return {oracles.OBJECTIVE.name: result["validation_error"]}

    def save(self):
        pass  # the oracle saves its state


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
        """Trains or resumes a trial to its end; returns the content of trial.json."""
        ended = {trial["trial"]: trial for trial in trials.finished(self._folder)}
        if trial_id in ended:
            return ended[trial_id]
        shown = self._space.shown(values)
        print(f"\ntrial {trial_id}: " + "  ".join(f"{k}={v}" for k, v in shown.items()), flush=True)
        run = run_folder.Run(trials.path(self._folder, trial_id))
        steps = values.get("tuner/epochs", 0) * self._space.base.validate_every
        try:
            config = self._space.config(values, run_dir=run.folder)
            if steps:  # hyperband gives a trial some of the steps
                config = config.beginning(steps)
        except errors.UserError as error:  # a combination that `probes` has not checked
            print(f"trial {trial_id}: {error}")
            result = trials.outcome(run, "invalid")
        else:
            result = self._same(config, ended)
            if result is None:
                self._copy_parent(ended.get(values.get("tuner/trial_id")), config, run)
                result = trials.outcome(run, self._train(config, run))
        result = {**result, "trial": trial_id, "values": shown}
        os.makedirs(run.folder, exist_ok=True)
        files.write(os.path.join(run.folder, "trial.json"), json.dumps(result, indent=2) + "\n")
        best, status = trials.finished(self._folder)[0], result["status"]
        print(f"trial {trial_id}: validation error {result['validation_error']:.2%} at step "
              f"{result['best_step']}{'' if status == 'finished' else f', {status}'}; best so far "
              f"{best['validation_error']:.2%} ({best['trial']})", flush=True)  # fmt: skip
        return result

    def _train(self, config: config_lib.Config, run: run_folder.Run) -> str:
        """Trains one run to its end; returns its status."""
        names = [n for n, flag in config_lib.FLAGS.items() if flag.metadata["group"] == "Data"]
        if any(getattr(config, name) != getattr(self._loaded, name) for name in names):
            self._images = None  # first, so that only one set is in memory
            self._images, self._loaded = data.load(config), config
        devices.set_precision(config)
        run.check(config)
        network_files.check(config)
        run.create(config, self._images)
        stopping = trials.StopHopeless(run, self._folder, config.iterations)
        try:
            with run.locked():
                further = [stopping] if self._stop_hopeless else []
                loop.fit(config, run, self._images, self._strategy, callbacks=further)
        except callbacks.Diverged as error:
            print(f"warning: {error}")
            return "diverged"
        finally:
            _free_memory()
        return "stopped" if stopping.stopped else "finished"

    def _same(self, config: config_lib.Config, ended: dict[str, dict]) -> dict | None:
        """The outcome of an earlier trial with the same flags, which would be repeated."""
        for trial_id, earlier in ended.items():
            run = run_folder.Run(trials.path(self._folder, trial_id))
            if os.path.exists(run.flags) and not config.differences(run.config()):
                same = {"status": f"same as {trial_id}", "same_as": trial_id, "seconds": 0.0}
                return {**earlier, **same}
        return None

    def _copy_parent(self, parent: dict | None, config, run: run_folder.Run) -> None:
        """Lets a trial of hyperband resume its parent, the shorter trial with the same flags."""
        if not parent or os.path.exists(run.folder):
            return
        source = trials.path(self._folder, parent.get("same_as", parent["trial"]))
        copy = run_folder.Run(run.folder + files.TEMPORARY)
        shutil.rmtree(copy.folder, ignore_errors=True)
        shutil.copytree(source, copy.folder, ignore=shutil.ignore_patterns("trial.json"))
        files.write(copy.flags, config.flagfile())
        os.rename(copy.folder, run.folder)


def _free_memory() -> None:
    """Frees the memory of a trial."""
    tf.keras.backend.clear_session()
    traced.forget()
    gc.collect()
