"""Flags: their table, their parsing, the command line. No TensorFlow here."""

from rat_tf.config.table import FLAGS, METHODS, WEIGHTS, Config, is_used
from rat_tf.config.training_flags import ALLOW_CODE

__all__ = ["ALLOW_CODE", "FLAGS", "METHODS", "WEIGHTS", "Config", "is_used"]
