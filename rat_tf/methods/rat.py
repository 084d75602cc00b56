"""RAT, and with it VAT (noise alone) and Random Transformation (the search switched off)."""

from __future__ import annotations

import dataclasses
import functools

import tensorflow as tf

from rat_tf import adversary, divergences, draws, schedules
from rat_tf import transforms as transforms_lib
from rat_tf.methods import base, checks, search_checks
from rat_tf.methods.options import arguments
from rat_tf.methods.options import rat as options
from rat_tf.networks import guard
from rat_tf.transforms import spec

# Where two passes see the same pixels, a smaller ξ is lost in rounding.
LARGE_XI = adversary.Xi(0.1, relative=True)


class RAT(base.SemiSupervised):
    """L(x_l, y) + λ(t) KL[p(y|x_u) ‖ p(y|f_φ(x_u))] + entropy_multiplier · H[p(y|x_u)].

    φ is found by Algorithm 1 with ‖φ⁽ⁱ⁾ - φ_id⁽ⁱ⁾‖ = ε⁽ⁱ⁾(t), or drawn at random with that norm if
    `search` is false. p(y|x_u) in the KL is a constant. One clean pass serves labelled and
    unlabelled images; the search and the adversarial pass see the unlabelled ones only and leave
    the running statistics alone.

    `transforms` is text such as "noise:1.0,affine:0.6" or a `Composite`; `padding` is for text. ξ,
    a number or text such as "0.1eps", is the paper's if passes see different pixels, by
    augmentation or dropout, else 0.1 ε.

    Beyond the paper: other searches (`adversary_kind`, `candidates`, `adversary_scale`,
    `adversary_share`, see `adversary.Search`); and of the KL another `target`, its temperature and
    a threshold of its confidence. With `separate_statistics` labelled and unlabelled images have a
    clean pass each, of which the second needs no backward pass: without the entropy term, hence
    `entropy_multiplier=0`, it only gives the target. It is the one that moves the running
    statistics, as there are far more unlabelled images to take them from.
    """

    defaults = options.RAT
    #: Whether images are mixed with each other, see `RATMixup`.
    mixes = False
    observations = ("cross_entropy", "kl", "entropy", "flipped", "fallback", "lambda")

    def __init__(
        self,
        *args,
        transforms: str | spec.Spec | transforms_lib.Composite = options.RAT.transforms,
        padding: str = options.RAT.padding,
        search: bool = True,
        xi: adversary.Xi | str | float | None = None,
        power_iterations: int = options.RAT.power_iterations,
        ascent: str = options.RAT.ascent,
        adversary_kind: str = "gradient",
        candidates: int = options.RAT.candidates,
        adversary_scale: float = options.RAT.adversary_scale,
        adversary_share: float = options.RAT.adversary_share,
        epsilon_rampup: int = options.RAT.epsilon_rampup,
        entropy_multiplier: float = options.RAT.entropy_multiplier,
        kl_direction: str = options.RAT.kl_direction,
        target: str = options.RAT.target,
        target_temperature: float = options.RAT.target_temperature,
        target_threshold: float = options.RAT.target_threshold,
        separate_statistics: bool = options.RAT.separate_statistics,
        **kwargs,
    ):
        if "adversary" in kwargs:  # as the flag is called
            raise ValueError(f"adversary: expected adversary_kind={kwargs['adversary']!r}")
        transform = _composite(transforms, padding)
        super().__init__(*args, more_observations=_epsilon_names(transform), **kwargs)
        self._check(
            transforms=spec.Spec(tuple((t.name, t.epsilon) for t in transform.transforms)),
            padding=padding,
            xi=xi,
            power_iterations=power_iterations,
            ascent=ascent,
            adversary=adversary_kind,
            candidates=candidates,
            adversary_scale=adversary_scale,
            adversary_share=adversary_share,
            epsilon_rampup=epsilon_rampup,
            entropy_multiplier=entropy_multiplier,
            kl_direction=kl_direction,
            target=target,
            target_temperature=target_temperature,
            target_threshold=target_threshold,
            separate_statistics=separate_statistics,
        )
        self.transform = transform
        self.search = search
        if xi is None:
            differ = self.augmentation is not None or guard.draws_numbers(self.network)
            xi = options.RAT.xi if differ else LARGE_XI
        self.searching = adversary.Search(
            kind=adversary_kind,
            candidates=candidates,
            scale=adversary_scale,
            share=adversary_share,
            xi=xi if isinstance(xi, adversary.Xi) else adversary.Xi.parse(str(xi)),
            power_iterations=power_iterations,
            ascent=ascent,
        )
        self.epsilon_rampup = epsilon_rampup
        self.entropy_multiplier = entropy_multiplier
        self.kl_direction = kl_direction
        self.target = target
        self.target_temperature = target_temperature
        self.target_threshold = target_threshold
        self.separate_statistics = separate_statistics

    def _check(self, **given) -> None:
        """Refuses what is refused of flags, alone or together; of tensors only the latter."""
        for name in given.keys() - {"xi"}:
            if given[name] is None:
                raise ValueError(f"{arguments.NAMES.get(name, name)}: expected a value, got None")
        given |= {"mixup": self.mixes, "ema_decay": self.ema_decay}
        given = {name: value for name, value in given.items() if value is not None}
        for name in given.keys() - {field.name for field in dataclasses.fields(self.defaults)}:
            value, default = (checks.option(options.RAT, name, v) for v in (given[name], None))
            if value != default:
                name = arguments.NAMES.get(name, name)
                raise ValueError(f"{name}: not used by {type(self).__name__}")
        tensors = [name for name, value in given.items() if tf.is_tensor(value)]
        arguments.options(self.defaults, given, unchecked=tensors)

    def check_search(self, images, count):
        if not self.search:
            return
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        if problem := options.share_problem(self.searching.share, count, replicas):
            raise ValueError(f"adversary_share: {problem}")
        search_checks.check(self, images[:2])

    def objective(self, labeled, labels, unlabeled, step, tape):
        if self.separate_statistics:
            with tape.stop_recording():
                (clean,) = self.forward(step, "clean", unlabeled, update_stats=True)
            (labeled_logits,) = self.forward(step, "labeled", labeled, update_stats=False)
            self.keep_losses(self.network)  # of the pass that has a gradient
        else:
            labeled_logits, clean = self.forward(
                step, "clean", labeled, unlabeled, update_stats=True
            )
        with tape.stop_recording():
            target = self.target_logits(unlabeled, clean, step)
            transformed, found = self.transformed(unlabeled, target, step)
        (moved,) = self.forward(step, "adversarial", transformed, update_stats=False)
        pair = (self.sharpened(target), moved)
        forth = self.kl_direction == options.KL_DIRECTIONS[0]
        kl = self.limited(divergences.kl_divergence(*(pair if forth else pair[::-1])), target)
        cross_entropy = self.label_loss(labels, labeled_logits)
        return self.observed(step, cross_entropy, kl, clean, target, moved, found)

    def target_logits(self, unlabeled, clean, step) -> tf.Tensor:
        """Of the constant p(y|x_u): the clean pass, or one of the averaged network."""
        if self.target == "student":
            return tf.stop_gradient(clean)
        averaged = {"network": self.averaged, "update_stats": False}
        return self.forward(step, "teacher", unlabeled, **averaged)[0]

    def sharpened(self, target) -> tf.Tensor:
        """Logits of p^(1/T) / Σ p^(1/T)."""
        return target if self.target_temperature == 1 else target / self.target_temperature

    def limited(self, kl, target) -> tf.Tensor:
        """The KL of each image, [B]: 0 where the target is not sure enough."""
        if self.target_threshold:
            confidence = tf.reduce_max(base.softmax(target), axis=-1)
            kl *= tf.cast(confidence >= self.target_threshold, kl.dtype)
        return kl

    def transformed(self, unlabeled, target, step) -> tuple[tf.Tensor, adversary.Found]:
        """f_φ(x_u) with the φ of this step, and how it was found."""
        found = self.offsets(unlabeled, target, step, self.search)
        return self.transform.apply(unlabeled, found.offsets), found

    def observed(self, step, cross_entropy, kl, clean, target, moved, found):
        """What `objective` returns, from the losses of the images and the logits behind them."""
        cross_entropy, kl = tf.reduce_mean(cross_entropy), tf.reduce_mean(kl)
        entropy = tf.reduce_mean(divergences.entropy(clean))
        weight = self.weight(step)
        flipped = tf.argmax(moved, axis=-1) != tf.argmax(target, axis=-1)
        return cross_entropy + weight * kl + self.entropy_multiplier * entropy, {
            "cross_entropy": cross_entropy,
            "kl": kl,
            "entropy": entropy,
            "flipped": tf.reduce_mean(tf.cast(flipped, tf.float32)),
            "fallback": tf.reduce_mean(tf.cast(found.fallback, tf.float32)),
            "lambda": weight,
            **dict(zip(_epsilon_names(self.transform), self.epsilons(step))),
        }

    def epsilons(self, step) -> list[tf.Tensor]:
        """Rampup(ε⁽ⁱ⁾) of Algorithm 1 for every transformation."""
        ramp = schedules.rampup(step, self.epsilon_rampup)
        return [t.epsilon * ramp for t in self.transform.transforms]

    def offsets(self, images, clean_logits, step, search: bool) -> adversary.Found:
        """The offsets of this step for `images` [B, H, W, C]: adversarial, or random."""
        count = images.shape[0]
        rows = draws.Rows(count)
        epsilons = self.epsilons(step)

        @functools.cache  # candidates are asked for more than once
        def directions(candidate):
            seed = draws.seed_for(self.seed, step, f"direction{candidate or ''}")
            drawn = self.transform.random_direction(rows.total, images.shape[1:], seed)
            return [rows(v) for v in drawn]

        def logits(moved, name):
            given = {"pooled": images.shape[1] // moved.shape[1]}
            if moved.shape[0] != count:
                given["only"] = adversary.searched(count, self.searching.share), count
            return self.forward(step, name, moved, update_stats=False, **given)[0]

        if not search:
            return adversary.random(directions(0), epsilons)
        return self.searching(self.transform, logits, images, clean_logits, directions, epsilons)

    def examine(self, images, step):
        """What the adversary does to `images` (as stored) at `step`, and its strength.

        Returns the preprocessed `images` scaled to [-1, 1], the `transformed` ones, the `offsets`
        by name, the classes `before` and `after`, [B], and the KL reached per image, [B], by the
        search of this run (`adversarial_kl`) and by the random direction it starts from
        (`random_kl`). The target is not sharpened.
        """
        images = self.scaled(images)
        (clean,) = self.forward(step, "clean", images, update_stats=False)
        target = self.target_logits(images, clean, step)
        examined = {"images": images, "before": tf.argmax(target, axis=-1)}
        for name, search in (("random_kl", False), ("adversarial_kl", True)):
            found = self.offsets(images, target, step, search)
            transformed = self.transform.apply(images, found.offsets)
            (moved,) = self.forward(step, "adversarial", transformed, update_stats=False)
            examined[name] = divergences.kl_divergence(target, moved)
            if search == self.search:
                examined["transformed"] = transformed
                examined["after"] = tf.argmax(moved, axis=-1)
                names = (t.name for t in self.transform.transforms)
                examined["offsets"] = dict(zip(names, found.offsets))
        return examined

    def perturb(self, images) -> tf.Tensor:
        """The images, float32 as the network takes them, under the transformations of full ε.

        For looking at: found for the network as it predicts, without augmentation and with running
        statistics, by the search or, if there is none, drawn at random.
        """

        def logits(moved, name):
            outputs = self.network(self.value_range.outward(moved), training=False)
            return self.supervision.logits(outputs)

        moved = self.perturbed(self.scaled(images), logits, share=1.0)
        return self.value_range.outward(moved)

    def perturbed(self, images, logits, share: float) -> tf.Tensor:
        """f_φ of full ε of images scaled to [-1, 1], of which a `share` is searched, if any is.

        `logits` maps (images, name of the pass) to those of the network, without augmentation.
        """

        def directions(candidate):
            seed = draws.seed_for(self.seed, candidate, "perturb")
            return self.transform.random_direction(images.shape[0], images.shape[1:], seed)

        epsilons = [t.epsilon for t in self.transform.transforms]
        if self.search:
            search = dataclasses.replace(self.searching, xi=LARGE_XI, share=share)
            clean = logits(images, "clean")
            found = search(self.transform, logits, images, clean, directions, epsilons)
        else:
            found = adversary.random(directions(0), epsilons)
        return self.transform.apply(images, found.offsets)


def _composite(described, padding: str) -> transforms_lib.Composite:
    if isinstance(described, transforms_lib.Composite):
        return described
    described = checks.option(options.RAT, "transforms", described)
    return transforms_lib.build(described, checks.option(options.RAT, "padding", padding))


def _epsilon_names(transform) -> list[str]:
    return [f"epsilon_{t.name}" for t in transform.transforms]
