"""Trains one classifier: model, batches, Keras' loop, and the result."""

from __future__ import annotations

import json
import os

import numpy as np
import tensorflow as tf

from rat_tf import config as config_lib
from rat_tf import data, memory
from rat_tf.data import loading, strata, streams
from rat_tf.methods import base
from rat_tf.networks import guard
from rat_tf.plots import canvas
from rat_tf.plots import run as plots
from rat_tf.storage import files
from rat_tf.training import (
    build,
    checkpoints,
    initial,
    kept_network,
    network,
    opening,
    progress,
    run_folder,
    weights,
)
from rat_tf.training import callbacks as callbacks_lib

EXAMINED = 64  # unlabelled images on which the adversary is examined, at most
SETTLED = 200  # steps after which one class for all images is a collapse


def fit(
    config,
    run: run_folder.Run,
    images: data.Data,
    strategy,
    worker: int = 0,
    callbacks=(),
    expected: str | None = None,
    source: kept_network.Network | None = None,
    model: base.Method | None = None,
):
    """Trains from the last checkpoint to the end, without using the test set.

    Returns the model at its last step and its checkpoints. The `callbacks` are called after the
    state of an interval has been saved. With `expected`, the line of the expected time or "" if it
    is to be estimated, the model and the time are printed. `model` is one that `built` has made
    with the same `source`.
    """
    chief, run = run, run.of_worker(worker)
    os.makedirs(run.folder, exist_ok=True)
    source = source or network_of(config, chief, images)
    model = model or built(config, images, strategy, source)
    with strategy.scope():
        if not worker:
            source.keep(chief)
        # 1 of 2 images right by luck at step 10 must not outlive all that is learned later.
        few = len(images.validation) < loading.FEW
        checkpoint = checkpoints.Checkpoints(model, run, config.interval, chief, later=few)
        start = checkpoint.restore()
        if config.init_from and not start:
            initial.check_images(config, images)
            initial.assign(model, config)
    if expected is not None and worker == 0:
        print(opening.of_model(config, images, model, strategy))
        print(f"run      {run.folder}")
        print(expected, end="\n" if expected else "", flush=True)
    if guard.draws_numbers(model.network):
        print(f"{config.network} draws random numbers of its own: resuming is not bit for bit")
    if start:
        print(f"resuming from step {start}", flush=True)

    # In this order: callbacks read the logs of those before them; the state is saved last.
    columns = [*model.training_metrics, *(f"val_{name}" for name in model.test_metrics)]
    columns += callbacks_lib.Examination.COLUMNS
    curves = callbacks_lib.Curves(run, columns, start, config.tensorboard, checkpoint.stopwatch)
    examination = callbacks_lib.Examination(examined_images(config, images, strategy), curves)
    try:
        model.fit(
            stream(config, images, strategy, start),
            steps_per_epoch=config.interval,
            epochs=config.iterations // config.interval,
            validation_data=evaluation(images.validation, strategy),
            validation_freq=config.validate_every // config.interval,
            callbacks=[
                examination,
                curves,
                progress.Progress(config, start, said=expected != ""),
                callbacks_lib.Health(config.options.remedies, min(SETTLED, config.iterations // 2)),
                checkpoint,
                *callbacks,
            ],
            verbose=0,
        )
    finally:
        checkpoint.close()
    return model, checkpoint


def built(config, images: data.Data, strategy, source: kept_network.Network) -> base.Method:
    """The model with its initial weights; refuses what cannot be trained with these flags."""
    with strategy.scope():
        return build.build(config, images, source)


def network_of(config, run: run_folder.Run, images: data.Data) -> kept_network.Network:
    """The network: of the user's files, or, once there is a checkpoint, as the run has kept it."""
    shape, classes = images.labeled.image_shape, len(images.class_names)
    if weights.steps(run.checkpoints):
        return kept_network.Kept(run, config, shape, classes, config.allow_code)
    return network.Source(config, shape, classes)


def examined_images(config, images: data.Data, strategy):
    """The unlabelled images on which the adversary is examined: a sample from the whole pool.

    One device searches all of them at once. Of images larger than 32×32 there are as many as have
    the pixels of 64 of those, or as a replica has in a training step, if that is more.
    """
    pool = images.unlabeled if len(images.unlabeled) else images.labeled
    of_replica = sum(config.batch_sizes) // strategy.num_replicas_in_sync
    count = min(EXAMINED, max(of_replica, memory.at_once(EXAMINED, pool.image_shape)))
    # Labels of the pool, if the set has them, are not looked at.
    return pool.take(strata.sample(np.zeros(len(pool), int), count)).images


def train(
    config,
    run: run_folder.Run,
    images: data.Data,
    strategy,
    worker: int = 0,
    expected: str = "",
    source: kept_network.Network | None = None,
    model: base.Method | None = None,
) -> dict:
    """Trains to the end and evaluates; returns the content of result.json."""
    model, checkpoint = fit(
        config, run, images, strategy, worker, expected=expected, source=source, model=model
    )
    run = run.of_worker(worker)
    rows = run.rows()
    seconds = rows[-1]["seconds"] if rows else checkpoint.stopwatch.seconds()
    used = config.used_transforms
    result = {
        "method": config.method,
        "dataset": config.dataset,
        "labels": len(images.labeled),
        "transforms": None if used is None else str(used),
        "seed": config.seed,
        "split_seed": config.split_seed,
        "iterations": config.iterations,
        "split_hash": images.split.digest,
        "validation_images": len(images.validation),
        "test_images": len(images.test),
        **evaluate(model, checkpoint, images, config.monitor()),
        "seconds": seconds,
        "images_per_second": sum(config.batch_sizes) * config.iterations / seconds,
    }
    some = examined_images(config, images, strategy)
    examined = model.examine(some, tf.constant(config.iterations, tf.int64))
    if examined:
        names = canvas.drawable(images.class_names, plots.NAME)
        for key in ("before", "after"):
            examined[key] = [names[number] for number in examined[key]]
        examined["legend"] = canvas.legend(images.class_names)
    with run.writing("the result"):
        if rows:  # none if a user has removed a damaged metrics.csv
            title = f"{config.title}\n{run_folder.verdict(result)}"
            best = result["best_step"], result["best_validation_error"]
            plots.summary(run.summary, rows, examined, title, best)
        files.write(run.result, json.dumps(result, indent=2) + "\n")
    return result


def evaluate(
    model: base.Method, checkpoint: checkpoints.Checkpoints, images: data.Data, judge: str
) -> dict:
    """The paper's protocol: the test error at the step of the lowest validation error.

    With averaged weights, these and the trained ones each have a best step and a test error, under
    `ema_` and `student_`; --evaluate selects the result.
    """

    def errors(some):
        if not len(some):  # a user's folder may have no test set
            return dict.fromkeys(model.candidates)
        of_all = evaluation(some, model.distribute_strategy)
        return model.evaluate(of_all, return_dict=True, verbose=0)

    found, last = {}, errors(images.test)
    for monitor in model.candidates:
        validation_error = float(checkpoint.best_error[monitor].numpy())
        step = checkpoint.restore_best(monitor)
        if step != checkpoint.best_step[monitor]:  # the best weights are damaged
            validation_error = errors(images.validation)[monitor]
        found[monitor] = {
            "best_validation_error": validation_error,
            "best_step": step,
            "test_error": errors(images.test)[monitor],
            "last_test_error": last[monitor],
        }
    result = dict(found[judge])
    if len(found) > 1:
        result["weights"] = "averaged" if judge == "ema_error" else "trained"
        for prefix, monitor in (("student", "error"), ("ema", "ema_error")):
            result.update({f"{prefix}_{name}": value for name, value in found[monitor].items()})
    return result


def evaluation(some, strategy):
    """The batches in which images are validated and tested."""
    return streams.evaluation(some, replicas=strategy.num_replicas_in_sync)


def stream(config: config_lib.Config, images: data.Data, strategy, start: int):
    """The training batches from step `start`: each replica's rows of the global batch."""

    def of_worker(context):
        local = context.num_replicas_in_sync // context.num_input_pipelines
        dataset = streams.training(
            images.labeled,
            images.unlabeled,
            *config.batch_sizes,
            config.seed,
            start,
            replicas=local,
            first_replica=local * context.input_pipeline_id,
            all_replicas=context.num_replicas_in_sync,
        )
        if config.class_weights == "balanced":
            dataset = streams.weighted(dataset, streams.balanced(images.labeled.labels))
        return dataset

    return strategy.distribute_datasets_from_function(of_worker)
