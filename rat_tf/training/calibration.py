"""How many steps fit a time: a few steps of a model that is then thrown away are timed."""

from __future__ import annotations

import dataclasses
import functools
import gc
import time

import numpy as np
import tensorflow as tf

from rat_tf import config as config_lib
from rat_tf import data, errors
from rat_tf.training import build, callbacks, loop

TIMED = 3.0  # seconds of steps to time
MAX_STEPS = 200  # of one timed call
VALIDATED = 256  # images of which the evaluation is timed
LEAST = 20  # steps of a run
FEW = 500  # steps below which a warning is given
EPOCHS = 300  # passes over the unlabelled images that a run without --budget makes at most


@dataclasses.dataclass(frozen=True)
class Speed:
    """Seconds of the parts of a run."""

    step: float
    evaluated: float  # per image of the validation or test set
    setup: float  # tracing, the first step and the first evaluation
    call: float = 0.0  # of an evaluation, however few its images
    examined: float = 0.0  # of looking at the adversary, at every validation

    def total(self, config: config_lib.Config, images: data.Data) -> float:
        """Seconds that a run takes from here on."""
        validations = config.iterations // config.validate_every
        return (
            self.setup
            + config.iterations * self.step
            + validations * self.validation(images)
            + self.tests(config, images)
        )

    def validation(self, images: data.Data) -> float:
        return self.evaluation(images.validation) + self.examined

    def tests(self, config: config_lib.Config, images: data.Data) -> float:
        """Seconds of the test errors at the end, see `loop.evaluate`."""
        return self.evaluation(images.test) * (3 if config.ema_decay else 2)

    def evaluation(self, some) -> float:
        return self.call + self.evaluated * len(some) if len(some) else 0.0


def measure(config: config_lib.Config, images: data.Data, strategy) -> Speed:
    """Times a model like that of the run.

    The run itself does not change: its weights, batches and draws are functions of the seed and
    the step, and it builds its own model.
    """
    began = time.monotonic()
    with strategy.scope():
        model = build.build(config, images)
    batches = loop.stream(config, images, strategy, start=0)
    call = config.steps_per_execution
    model.fit(batches, steps_per_epoch=call, verbose=0)
    setup = time.monotonic() - began
    steps, spent, count = 0, 0.0, call
    while spent < TIMED:
        began = time.monotonic()
        model.fit(batches, steps_per_epoch=count, verbose=0)
        last = time.monotonic() - began
        steps, spent = steps + count, spent + last
        count = min(2 * count, call * max(MAX_STEPS // call, 1))
    call, evaluated, traced = evaluation(model, images.labeled)
    some = loop.examined_images(config, images, strategy)
    examine = functools.partial(callbacks.examine, model, some)
    first, examined = _seconds(examine), _seconds(examine)
    traced += max(first - examined, 0.0)
    del model, batches, examine
    tf.keras.backend.clear_session()
    gc.collect()
    return Speed(spent / steps, evaluated, setup + traced, call, examined)


def _seconds(work) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def evaluation(model, labeled) -> tuple[float, float, float]:
    """Seconds of an evaluation: of the call, per image, and of tracing it the first time.

    Few validation images, of which most of the time is the call, say nothing of a large test set.
    Labelled images, repeated, are as many as are needed.
    """

    def of(some):
        return loop.evaluation(some, model.distribute_strategy)

    def seconds(count):
        some = labeled.take(np.arange(count) % len(labeled))
        return _seconds(lambda: model.evaluate(of(some), verbose=0))

    first = seconds(1)
    call = min(seconds(1), first)
    return call, max(seconds(VALIDATED) - call, 0.0) / VALIDATED, first - call


def fit_to(
    config: config_lib.Config, images: data.Data, speed: Speed, seconds: float, bounded: bool
) -> config_lib.Config:
    """The config with as many steps as `seconds` have room for, a round number.

    `bounded`: not more than EPOCHS passes over the images, as nobody asked for the whole time.
    """
    share = str(config.validate_every).endswith("%")
    interval = 1 if share else int(config.validate_every)
    least = max(LEAST, interval)  # the run is a whole number of intervals

    def of(steps):
        unit = 10 ** max(len(str(steps)) - 2, 1) if share else interval
        return dataclasses.replace(config, iterations=max(steps // unit, 1) * unit)

    room = seconds - speed.total(of(least), images) + of(least).iterations * speed.step
    steps = int(room / speed.step)
    if not share:  # validations take time from every step
        left = seconds - speed.setup - speed.tests(config, images)
        steps = int(left / (speed.step + speed.validation(images) / interval))
    if steps < least:
        advice = "--validate_every=25% means fewer validations"
        if not share:
            advice = f"a run has at least --validate_every={interval}; a share, 5%, has any number"
        raise errors.UserError(
            f"--budget={config.budget}: too short; {least:,} steps of this network on this machine "
            f"take {least * speed.step:.0f} s, and all else leaves {max(room, 0):.0f} s for them; "
            f"{advice}"
        )
    if bounded:
        batch = config.batch_sizes[1] or config.batch_sizes[0]
        pool = max(len(images.unlabeled), len(images.labeled))
        steps = min(steps, max(EPOCHS * pool // batch, 4 * FEW))
    return of(steps)
