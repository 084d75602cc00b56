"""RAT as a scikit-learn estimator: `fit(X, y)` with y = -1 for images without a label.

    from rat_tf.sklearn import RATClassifier

    model = RATClassifier(image_shape=(8, 8, 1), random_state=0).fit(X, y)
    model.predict(X_test), model.score(X_test, y_test)

It follows sklearn.semi_supervised: clone, cross_val_score, GridSearchCV and pickle work.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import tensorflow as tf
from sklearn import base
from sklearn.utils import check_random_state, validation

from rat_tf import methods, networks, schedules, transforms
from rat_tf.data import streams
from rat_tf.methods.options import arguments
from rat_tf.networks import copies, traced
from rat_tf.sklearn import inputs
from rat_tf.training import optimizers

EPOCHS = 20  # of which `history_` has the metrics
BATCH = 256  # of predictions; always full, so that a row's result does not depend on the others
TRANSFORMS = {True: "noise:0.5,affine:0.3", False: "noise:0.5"}  # of images, of rows
SMALL = 16  # pixels; a Wide ResNet halves them twice and leaves too little of smaller images
FOR_ROWS = ("noise", "channel_weight")  # all others move pixels


class RATClassifier(base.ClassifierMixin, base.BaseEstimator):
    """A classifier of images trained on labelled and unlabelled ones together.

    X are images [n, height, width, channels], or rows [n, features]: images if `image_shape` is
    given, otherwise points, on which only noise and channel weights act, a channel a feature. y are
    the labels, -1 for those without one; if all have one, all images are used as unlabelled ones,
    too. Labels may be numbers or, in an array of objects with -1 among them, strings.

    Args:
      method: rat, vat, random or another --method of rat_tf.train.
      transforms: transformations with their ε as in "noise:0.5,affine:0.3", the default for
        images; "noise:0.5" for rows.
      network: a name such as "wrn-10-1", the default for images of 16×16 pixels or more, or
        "mlp-128", the default for rows and smaller images; or a function of (image_shape, classes)
        that builds a Keras model that gives logits.
      image_shape: (height, width, channels) of the images that are the rows of X.
      value_range: the smallest and the largest value of a pixel, mapped to [-1, 1]; default: 0 and
        255 for integers, else those of X. Rows that are no images are standardised instead.
      iterations: training steps. λ ramps up over the first 40 %, the learning rate decays after
        80 %.
      labeled_batch, unlabeled_batch: images per step.
      learning_rate, consistency: of Adam, and λ; default: the method's own.
      ema_decay: decay of the averaged weights, which predict; 0: the trained weights predict.
      method_options: other options of the method by name, such as {"ascent": "steepest"}.
      random_state: of the initial weights, the batches and the transformations.
      verbose: 1 shows the progress as Keras does.

    Attributes:
      classes_: the labels, sorted, in the order of the columns of `predict_proba`.
      history_: the metrics of training by name, twenty values each or fewer.
      weights_: the weights of the network that predicts.
    """

    def __init__(
        self,
        method="rat",
        *,
        transforms=None,
        network=None,
        image_shape=None,
        value_range=None,
        iterations=1000,
        labeled_batch=50,
        unlabeled_batch=50,
        learning_rate=None,
        consistency=None,
        ema_decay=0.99,
        method_options=None,
        random_state=None,
        verbose=0,
    ):
        self.method = method
        self.transforms = transforms
        self.network = network
        self.image_shape = image_shape
        self.value_range = value_range
        self.iterations = iterations
        self.labeled_batch = labeled_batch
        self.unlabeled_batch = unlabeled_batch
        self.learning_rate = learning_rate
        self.consistency = consistency
        self.ema_decay = ema_decay
        self.method_options = method_options
        self.random_state = random_state
        self.verbose = verbose

    # ---- scikit-learn

    def fit(self, X, y):
        """Trains on the images with a label and, by the method's own loss, on those without."""
        inputs.check_arguments(self)
        X, y = validation.validate_data(self, X, y, allow_nd=True, dtype="numeric")
        known = inputs.known(y)
        self.classes_ = np.unique(y[known])
        if len(self.classes_) < 2:
            raise ValueError(
                f"y: expected labels of two classes or more, got {len(self.classes_)} class"
            )
        images, self._is_image = inputs.images(X, self.image_shape)
        self._shape = images.shape[1:]
        self._mean, self._scale = inputs.normalisation(images, self._is_image, self.value_range)
        self._seed = check_random_state(self.random_state).randint(2**31 - 1)
        options = self._options()
        labels = np.searchsorted(self.classes_, y[known].astype(self.classes_.dtype))
        labeled = inputs.examples(images[known], labels)
        others = inputs.examples(images if known.all() else images[~known])
        with traced.forgotten():  # a search makes hundreds of fits
            network = self._train(options, labeled, others)
        self.weights_ = network.get_weights()
        self._predictor = self._build_predictor(network)
        return self

    def predict_proba(self, X):
        """Probabilities [n, classes]."""
        validation.check_is_fitted(self, "weights_")
        X = validation.validate_data(self, X, allow_nd=True, dtype="numeric", reset=False)
        images, _ = inputs.images(X, self.image_shape)
        if images.shape[1:] != self._shape:
            raise ValueError(
                f"X: expected images of shape {self._shape} as in fit, got {images.shape[1:]}"
            )
        if self._predictor is None:
            network = self._network()
            network(tf.zeros([1, *self._shape]))
            network.set_weights(self.weights_)
            self._predictor = self._build_predictor(network)
        found = np.empty([len(images), len(self.classes_)])
        for start in range(0, len(images), BATCH):
            some = images[start : start + BATCH]
            padding = [(0, BATCH - len(some)), *[(0, 0)] * 3]
            found[start : start + BATCH] = self._predictor(np.pad(some, padding))[: len(some)]
        return found / found.sum(axis=1, keepdims=True)

    def predict(self, X):
        """The most probable label of each image, [n]."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    def score(self, X, y, sample_weight=None):
        """The share of right predictions among the rows of X that have a label."""
        y = np.asarray(y)
        known = inputs.known(y)
        if not known.any():
            raise ValueError(f"y: expected labels to compare with, got only {inputs.UNLABELED}")
        weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        return super().score(np.asarray(X)[known], y[known], weight)

    def __getstate__(self):
        return {**super().__getstate__(), **({"_predictor": None} if self._fitted else {})}

    @property
    def _fitted(self) -> bool:
        return "weights_" in vars(self)

    # ---- training

    def _options(self) -> methods.options.base.Options:
        """The options of the method, checked; schedules are shares of the run."""
        kind = methods.options.METHODS[self.method]
        known = {field.name for field in dataclasses.fields(kind)}
        own = self.method_options or {}
        given = {
            "learning_rate": self.learning_rate,
            "consistency": self.consistency if "consistency" in known else None,
            "ema_decay": self.ema_decay,
            "consistency_rampup": round(0.4 * self.iterations),
            "transforms": (
                TRANSFORMS[self._is_image] if self.transforms is None else self.transforms
            ),
            # Without augmentation a smaller one may be lost in rounding.
            "xi": None if own.get("adversary") == "worst_of" else "0.1eps",
            **own,
        }
        for name in ("transforms", "consistency"):
            if getattr(self, name) is not None and name not in known:
                raise ValueError(f"{name}: not used by method={self.method!r}")
        for name in own:
            if name not in known:
                raise ValueError(f"method_options: {name} is not an option of {self.method}")
        options = arguments.options(kind, given, names={})
        if not self._is_image and "transforms" in known:
            for name, _ in options.transforms.parts:
                if name not in FOR_ROWS:
                    raise ValueError(
                        f"transforms: {name} needs images, got rows; expected image_shape, or only "
                        f"{' and '.join(FOR_ROWS)}"
                    )
        return options

    def _network(self) -> tf.keras.Model:
        """The network with the initial weights of the seed, not yet built."""
        name = self.network or ("wrn-10-1" if min(self._shape[:2]) >= SMALL else "mlp-128")
        if not isinstance(name, str):
            return name(self._shape, len(self.classes_))
        try:
            return networks.build(name, len(self.classes_), self._seed, image_shape=self._shape)
        except ValueError as error:
            raise ValueError(f"network: {str(error).removeprefix('network: ')}") from error

    def _train(self, options, labeled, others) -> tf.keras.Model:
        """Trains and returns the network that predicts."""
        network, averaged = self._network(), None
        if options.ema_decay:
            averaged = self._network()
        for each in filter(None, (network, averaged)):
            inputs.check_network(each, self._shape, len(self.classes_))
        if averaged is not None:
            copies.assign(averaged, network)
        given = options.arguments()
        used = getattr(options, "used_transforms", None)
        if used is not None:
            given["transforms"] = transforms.build(used, getattr(options, "padding", "zeros"))
        trainer = options.load_model()(
            network,
            averaged=averaged,
            ema_decay=options.ema_decay,
            preprocessing=inputs.layer(self._mean, self._scale),
            seed=self._seed,
            **given,
        )
        rate = schedules.LearningRate(options.learning_rate, round(0.8 * self.iterations), 0.2)
        trainer.compile(optimizers.Adam(rate, epsilon=1e-8))
        batches = self.labeled_batch, self.unlabeled_batch
        if not options.unlabeled:
            batches = sum(batches), 0
        interval = -(-self.iterations // EPOCHS)
        epochs, rest = divmod(self.iterations, interval)
        self.history_ = {}
        for first, last, steps in ((0, epochs, interval), (epochs, epochs + 1, rest)):
            if not steps:  # of the last epoch, which has those that are left
                continue
            start = first * interval
            history = trainer.fit(
                streams.training(labeled, others, *batches, self._seed, start),
                initial_epoch=first, epochs=last, steps_per_epoch=steps, verbose=self.verbose,
            )  # fmt: skip
            for name, values in history.history.items():
                self.history_.setdefault(name, []).extend(values)
        return network if averaged is None else averaged

    def _build_predictor(self, network):
        """A function from stored images [BATCH, …] to probabilities."""
        scaling = inputs.layer(self._mean, self._scale)

        @tf.function(reduce_retracing=True)
        def probabilities(images):
            return tf.nn.softmax(network(scaling(images), training=False))

        return lambda images: probabilities(tf.constant(images)).numpy()
