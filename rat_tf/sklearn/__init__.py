"""RAT as a scikit-learn estimator."""

from rat_tf.sklearn.classifier import RATClassifier

__all__ = ["RATClassifier"]
