"""Checkpoints: a run can be resumed after any interruption."""

from __future__ import annotations

import contextlib
import operator
import os
import signal
import sys
import time

import numpy as np
import tensorflow as tf

from rat_tf import errors
from rat_tf.training import run_folder, signals, weights

KEPT = 2  # checkpoints


SECONDS = "seconds/.ATTRIBUTES/VARIABLE_VALUE"  # its name in a checkpoint


class Stopwatch:
    """The seconds that a run has trained, over all its processes."""

    def __init__(self, spent: float = 0.0):
        self._spent, self._began = spent, time.monotonic()

    def seconds(self) -> float:
        return self._spent + time.monotonic() - self._began


class Checkpoints(tf.keras.callbacks.Callback):
    """Saves all state at the end of every interval, keeps the best weights, and restores both.

    The state is the model with its optimiser (and so the step), the running means of its metrics,
    the best validation errors so far and the seconds. A signal saves it in the middle of an
    interval, and `fit` resumes there: this is why the metrics are saved. The best weights are
    stored under their step, as long as a checkpoint may refer to them. Of steps with the same
    error the first is the best one, or with `later` the last.
    """

    def __init__(
        self,
        model,
        run: run_folder.Run,
        interval: int,
        restore_from: run_folder.Run | None = None,
        later: bool = False,
    ):
        super().__init__()
        self._better = operator.le if later else operator.lt
        self._supports_tf_logs = True  # avoids a device-to-host copy of the logs at every step
        self._interval = interval
        self._run = run
        self._model = model
        self.best_error = {name: tf.Variable(float("inf")) for name in model.candidates}
        self.best_step = {name: tf.Variable(0, dtype=tf.int64) for name in model.candidates}
        self.stopwatch = Stopwatch()
        self._seconds = tf.Variable(0.0, dtype=tf.float64, trainable=False)
        state = {"model": model, "best_error": self.best_error, "best_step": self.best_step}
        self._state = tf.train.Checkpoint(**state, seconds=self._seconds)
        self._first_state = tf.train.Checkpoint(**state)  # of version 0.1.0
        self._weights = {
            name: weights.best_checkpoint(network, model.preprocessing)
            for name, network in model.candidates.items()
        }
        _drop_damaged_list(run.checkpoints)
        self._manager = tf.train.CheckpointManager(
            self._state, run.checkpoints, max_to_keep=KEPT, checkpoint_name="step"
        )
        # All workers of a cluster save, each to its own folder, because reading some variables
        # needs all of them. All restore the chief's checkpoint, to be at the same step.
        self._restored = (restore_from or run).checkpoints
        self._handlers = {}
        self._signal = None
        self._resumed_means = None

    # ---- restoring

    def restore(self) -> int:
        """Restores the newest checkpoint that can be read; returns its step, 0 if there is none."""
        paths = weights.newest_first(self._restored)
        for path in paths:
            try:
                self._restore(path)
                break
            except Exception as error:  # a damaged file can raise anything
                weights.unreadable(path, error)
        else:
            if paths:
                raise errors.UserError(
                    f"--run_dir: no checkpoint in {self._restored} can be read; remove the run "
                    "folder to start over"
                )
        self._finalize()
        step = self.step
        if step % self._interval:
            self._resumed_means = [m.get_weights() for m in self._model.metrics]
        return step

    def _restore(self, path: str) -> None:
        if tf.train.load_checkpoint(path).has_tensor(SECONDS):
            self._state.restore(path).assert_consumed()
            spent = float(self._seconds.numpy())
        else:
            self._first_state.restore(path).assert_consumed()
            before = [row["seconds"] for row in self._run.rows() if row["step"] <= self.step]
            spent = before[-1] if before else 0.0
        self.stopwatch = Stopwatch(spent)

    def restore_best(self, monitor: str = "error") -> int:
        """Restores the weights with the lowest validation error; returns their step.

        If they are damaged, these are the weights of the last checkpoint.
        """
        step = int(self.best_step[monitor].numpy())
        path = weights.best_path(self._run, monitor, step)
        try:
            self._weights[monitor].read(path).assert_consumed()
        except Exception as error:
            weights.unreadable(path, error)
            step = self.restore()  # the damaged file may have changed some of the weights
            print(f"warning: testing the weights of step {step}, the last", file=sys.stderr)
        self._finalize()
        return step

    def _finalize(self) -> None:
        for network in self._model.candidates.values():
            weights.finalize(network)

    @property
    def step(self) -> int:
        return int(self._model.optimizer.iterations.numpy())

    # ---- Keras' hooks

    def on_train_begin(self, logs=None):
        for monitor in self.best_error:
            # Left by steps that were lost with a damaged checkpoint.
            later = [step for step in weights.steps(self._run.best, monitor) if step > self.step]
            self._remove_best(monitor, later)
        # The hook with which Keras' BackupAndRestore tells `fit` where to resume.
        self.model._training_state = self
        self._handlers = {
            number: signal.signal(number, self._on_signal) for number in signals.switched_on()
        }

    def maybe_load_initial_counters_from_ckpt(self, steps_per_epoch, initial_epoch, mode):
        return divmod(self.step, steps_per_epoch)

    def on_epoch_begin(self, epoch, logs=None):
        if self._resumed_means is not None:
            for metric, weights in zip(self._model.metrics, self._resumed_means):
                metric.set_weights(weights)
            self._resumed_means = None

    def on_train_batch_end(self, batch, logs=None):
        if self._signal is not None and self.step % self._interval:
            self.save()
            raise signals.Interrupted(signal.Signals(self._signal).name)

    def on_epoch_end(self, epoch, logs=None):
        for monitor in self.best_error:
            error = (logs or {}).get(f"val_{monitor}")
            best = float(self.best_error[monitor].numpy())
            if error is not None and self._better(np.float32(error), best):
                self.best_error[monitor].assign(error)
                self.best_step[monitor].assign(self.step)
                self._write(
                    self._weights[monitor].write, weights.best_path(self._run, monitor, self.step)
                )
        self.save()
        for monitor in self.best_error:
            # The second newest checkpoint may refer to the second newest best weights.
            self._remove_best(monitor, weights.steps(self._run.best, monitor)[:-2])
        if self._signal is not None:
            raise signals.Interrupted(signal.Signals(self._signal).name)

    def close(self):
        """Restores the previous signal handlers."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._model._training_state = None

    def save(self):
        self._seconds.assign(self.stopwatch.seconds())
        self._write(self._manager.save, checkpoint_number=self.step)
        for step in weights.steps(self._run.checkpoints)[:-KEPT]:  # not in TensorFlow's list
            self._remove(os.path.join(self._run.checkpoints, f"step-{step}"))

    def _write(self, write, *args, **kwargs):
        """Calls `write`; a full disk is a `UserError`."""
        try:
            write(*args, **kwargs)
        except tf.errors.OpError as error:
            reason = error.message.rpartition(";")[2].partition("[Op:")[0].strip()
            raise self._run.unwritable(f"the checkpoint of step {self.step}", reason) from None

    def _remove_best(self, monitor: str, steps) -> None:
        for step in steps:
            self._remove(weights.best_path(self._run, monitor, step))

    def _remove(self, path: str) -> None:
        """Removes a checkpoint; the index first, without which it is a leftover."""
        for name in (f"{path}.index", *tf.io.gfile.glob(f"{path}.data-*")):
            with contextlib.suppress(tf.errors.NotFoundError):
                tf.io.gfile.remove(name)

    def _on_signal(self, number, frame):
        self._signal = number
        print(
            "\nstopping after this step … (once more: at once, without saving it)", file=sys.stderr
        )
        signal.signal(number, signal.SIG_DFL)  # a second signal ends the process at once


def _drop_damaged_list(folder: str) -> None:
    """Removes TensorFlow's list of the checkpoints in a folder if it cannot be read."""
    try:
        tf.train.get_checkpoint_state(folder)
    except ValueError:
        os.remove(os.path.join(folder, "checkpoint"))
