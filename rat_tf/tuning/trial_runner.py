"""Runs the trials of a search one after the other, with data and devices that all of them share."""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import shutil
import time

import keras_tuner as kt
import tensorflow as tf
from tensorflow.python.framework import ops  # the registry of gradients is not exported

from rat_tf import config as config_lib
from rat_tf import data, errors, files
from rat_tf.training import devices, loop, run_folder
from rat_tf.tuning import oracles, search_space, trials


class Tuner(kt.engine.base_tuner.BaseTuner):
    """KerasTuner's loop over trials; an error ends the search instead of counting as a trial."""

    def __init__(self, oracle, runner: Runner | None, **kwargs):
        super().__init__(oracle, **kwargs)
        self._runner = runner
        self._idle = False

    def pre_create_trial(self):
        # Asked in vain just now: this one waits for what others are busy with.
        time.sleep(1 if self._idle else 0)
        self._idle = True

    def on_trial_begin(self, trial):
        self._idle = False

    def _try_run_and_update_trial(self, trial):
        self._run_and_update_trial(trial)
        trial.status = "COMPLETED"

    def run_trial(self, trial):
        with oracles.Heartbeat(self.oracle, trial.trial_id):
            result = self._runner.run(trial.trial_id, trial.hyperparameters.values)
        return {oracles.OBJECTIVE.name: result["validation_error"]}

    def save(self):
        pass  # the oracle saves itself


class Runner:
    """Trains the trials of the search in `folder`; of its own accord it knows only their runs."""

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
        try:
            config = self._space.config(values, run_dir=run.folder, **self._budget(values))
        except errors.UserError as error:  # of a combination between the corners
            print(f"trial {trial_id}: {error}")
            os.makedirs(run.folder, exist_ok=True)
            result = trials.outcome(run, "invalid", shown)
        else:
            result = self._same(config, run, shown)
            if result is None:
                self._continue_from(values.get("tuner/trial_id"), config, run)
                status = self._train(config, run)
                result = trials.outcome(run, status, shown)
        files.write(result_file, json.dumps(result, indent=2) + "\n")
        self._tell(result)
        return result

    def _train(self, config: config_lib.Config, run: run_folder.Run) -> str:
        """Trains one run to its end; returns how it ended."""
        images = self._data(config)
        devices.set_precision(config)
        run.check(config)
        run.create(config, images)
        watch = trials.StopHopeless(run, self._folder, config.iterations)
        callbacks = [watch] if self._stop_hopeless else []
        try:
            loop.fit(config, run, images, self._strategy, callbacks=callbacks)
        except callbacks.Diverged as error:
            print(f"warning: {error}")
            return "diverged"
        finally:
            _forget()
        return "stopped" if watch.stopped else "finished"

    def _data(self, config: config_lib.Config) -> data.Data:
        """The images, read again only where a flag of the data is searched."""
        if any(
            field.metadata["group"] == "Data"
            and getattr(config, field.name) != getattr(self._loaded, field.name)
            for field in dataclasses.fields(config)
        ):
            self._images = None  # before the next: not both in memory
            self._images, self._loaded = data.load(config), config
        return self._images

    def _budget(self, values: dict) -> dict:
        """Hyperband gives a trial some of the steps; ramps and decay stay as they are."""
        if "tuner/epochs" not in values:
            return {}
        return {"iterations": values["tuner/epochs"] * self._space.base.validate_every}

    def _same(self, config: config_lib.Config, run: run_folder.Run, shown: dict) -> dict | None:
        """The outcome of an earlier trial with the same flags, which would come out again."""
        for earlier in trials.finished(self._folder):
            other = run_folder.Run(trials.path(self._folder, earlier["trial"]))
            if "same_as" in earlier or not os.path.exists(other.flags):
                continue
            with open(other.flags) as file:
                if file.read() != config.flagfile():
                    continue
            os.makedirs(run.folder, exist_ok=True)
            again = {"trial": os.path.basename(run.folder), "values": shown, "seconds": 0.0}
            status = f"same as {earlier['trial']}"
            return {**earlier, **again, "status": status, "same_as": earlier["trial"]}
        return None

    def _continue_from(self, parent_id: str | None, config, run: run_folder.Run) -> None:
        """Starts a run where hyperband's earlier, shorter one with the same flags has ended."""
        if not parent_id or os.path.exists(run.folder):
            return
        known = {trial["trial"]: trial for trial in trials.finished(self._folder)}
        parent = trials.path(self._folder, known[parent_id].get("same_as", parent_id))
        copied = run_folder.Run(run.folder + ".tmp")
        shutil.rmtree(copied.folder, ignore_errors=True)
        shutil.copytree(parent, copied.folder, ignore=shutil.ignore_patterns("trial.json"))
        files.write(copied.flags, config.flagfile())
        os.rename(copied.folder, run.folder)

    def _tell(self, result: dict) -> None:
        best = trials.finished(self._folder)[0]
        text = f"validation error {result['validation_error']:.2%} at step {result['best_step']}"
        if result["status"] != "finished":
            text += f", {result['status']}"
        print(f"trial {result['trial']}: {text}; best so far "
              f"{best['validation_error']:.2%} ({best['trial']})", flush=True)  # fmt: skip


def _forget() -> None:
    """Gives back the memory of what a trial has built: 20 MiB of graphs for the smallest network.

    Keras keeps some of it until it is told to forget. TensorFlow registers the gradient of every
    tf.custom_gradient that it traces under a name of its own, for ever, and with it the graph.
    """
    tf.keras.backend.clear_session()
    registered = ops.gradient_registry._registry
    for name in [name for name in registered if name.startswith("CustomGradient-")]:
        del registered[name]
    gc.collect()
