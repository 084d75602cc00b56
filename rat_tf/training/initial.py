"""Starting from the weights of another run: --init_from."""

from __future__ import annotations

import os

from rat_tf import config as config_lib
from rat_tf import errors
from rat_tf.training import run_folder

SAME = ("network", "preprocessing")  # flags without which the weights would mean something else


def check(config: config_lib.Config) -> None:
    """Refuses a folder that is no run, or a run of another network; without TensorFlow."""
    if not config.init_from:
        return
    earlier = _run(config).config()
    for name in SAME:
        ours, theirs = getattr(config, name), getattr(earlier, name)
        if ours != theirs:
            raise errors.UserError(
                f"--{name}: expected that of --init_from={config.init_from}, {theirs}, got {ours}"
            )


def _run(config: config_lib.Config) -> run_folder.Run:
    run = run_folder.Run(config.init_from)
    if not os.path.exists(run.flags):
        raise errors.UserError(
            f"--init_from: expected a run folder, but {config.init_from} has no flags.cfg"
        )
    return run


def check_images(config: config_lib.Config, images) -> None:
    """Refuses images of another shape or other classes than those of that run."""
    described = _run(config).described()
    for name, ours in (
        ("class_names", images.class_names),
        ("image_shape", images.labeled.image_shape),
    ):
        if list(ours) != described[name]:
            shown = [", ".join(map(str, each)) for each in (described[name], ours)]
            size = described["image_shape"][0]
            advice = {
                "class_names": "; without --init_from the network learns the classes anew",
                "image_shape": f"; --image_size={size} takes images as that run did",
            }
            raise errors.UserError(
                f"--init_from: {config.init_from} has the {name.replace('_', ' ')} {shown[0]}, "
                f"but --dataset={config.dataset} has {shown[1]}{advice[name]}"
            )


def assign(model, config: config_lib.Config) -> None:
    """Gives the model, and its averaged network, the best weights of that run."""
    from rat_tf.networks import copies  # imports TensorFlow
    from rat_tf.training import weights

    try:
        trained = weights.load(_run(config), "best", config.allow_code)
    except errors.UserError as error:
        raise errors.UserError(str(error).replace("--run_dir", "--init_from")) from None
    model.preprocessing.set_weights(trained.preprocessing.get_weights())
    for network in model.candidates.values():
        copies.assign(network, trained.network)
    print(f"starting from step {trained.step} of {config.init_from}")
