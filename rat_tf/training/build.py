"""Builds the model of a config: network, preprocessing, method, optimiser."""

from __future__ import annotations

from rat_tf import config as config_lib
from rat_tf import data, errors, schedules, transforms
from rat_tf.data import augment, preprocess
from rat_tf.methods import base, search_checks
from rat_tf.networks import backbone, guard
from rat_tf.training import footprint, kept_network, network_files, optimizers
from rat_tf.training import network as network_lib
from rat_tf.transforms import sampling


def build(
    config: config_lib.Config, images: data.Data, source: kept_network.Network | None = None
) -> base.Method:
    """The compiled model with all its variables; its network from a `source`, if one is given."""
    shape = images.labeled.image_shape
    check_images(config, images)
    preprocessing = preprocess.build(config, images)
    source = source or network_lib.Source(config, shape, len(images.class_names))
    model = method(config, source, preprocessing)
    return compiled(model, config, preprocessing(images.labeled.take(slice(1)).images))


def check_images(config: config_lib.Config, images: data.Data) -> None:
    """Refuses images that the network cannot train on: too large, or not divisible."""
    shape = images.labeled.image_shape
    footprint.check(config, shape, len(images.class_names))
    check_scale(config, shape)


def check_scale(config: config_lib.Config, image_shape) -> None:
    """Refuses images that cannot be pooled to --adversary_scale."""
    try:
        search_checks.scale(image_shape, config.adversary_scale or 1)
    except ValueError as error:
        raise errors.UserError(f"--{error}; --image_size can change them") from None


def check_search(model: base.Method, config: config_lib.Config, example) -> None:
    """Refuses a network that cannot be searched as the flags say: with pooled images, or at all."""
    if not config.options.searches:
        return
    if guard.is_told(model.network) and config.options.scale == 1:  # ours have gradients
        return
    try:
        search_checks.check(model, model.value_range.inward(example))
    except ValueError as error:
        text = str(error).replace("adversary_kind=", "--adversary=")
        text = (
            f"--{text}" if text.startswith("adversary") else f"--network={config.network}: {text}"
        )
        raise errors.UserError(text) from None


def method(config: config_lib.Config, source: kept_network.Network, preprocessing) -> base.Method:
    """The model of a config, not yet compiled, behind a `preprocessing` layer."""
    options = config.options
    arguments = options.arguments()
    if config.transforms is not None:
        arguments["transforms"] = transform(config)
    return options.load_model()(
        network=source.make(),
        averaged=source.make() if options.ema_decay else None,
        ema_decay=options.ema_decay,
        preprocessing=preprocessing,
        augmentation=augment.build(config),
        seed=config.seed,
        **arguments,
    )


def transform(config: config_lib.Config) -> transforms.Composite:
    """The transformations that training applies, with the sampler for this machine."""
    sampler = config.sampler
    if sampler == "auto":
        sampler = sampling.fastest(config.jit_compile)
    return transforms.build(config.used_transforms, config.padding or "zeros", sampler)


def compiled(model: base.Method, config: config_lib.Config, example) -> base.Method:
    """Compiles the model and creates its variables with an `example` batch of images."""
    rate = schedules.LearningRate(config.learning_rate, int(config.decay_at), config.decay)
    optimizer = optimizers.Adam(rate, epsilon=1e-8, weight_decay=config.weight_decay or None)
    model.compile(
        optimizer,
        jit_compile=config.jit_compile,
        steps_per_execution=config.steps_per_execution,
    )
    for network in model.candidates.values():
        network(example)
    if not guard.is_told(model.network):
        with network_files.errors_of("network", config.network):
            guard.verify(model.network, example)
    model.looked_at = True
    check_search(model, config, example)
    weights = model.network.trainable_variables
    if config.weight_decay:
        optimizer.exclude_from_weight_decay([w for w in weights if "kernel" not in w.name])
    if config.backbone_learning_rate:
        slow = [w for layer in backbone.layers_of(model.network) for w in layer.trainable_weights]
        optimizer.scale_rate(slow, config.backbone_learning_rate / config.learning_rate)
    model.optimizer.build(weights)
    return model
