"""Flags: their table, their parsing, the command line. No TensorFlow here."""

from rat_tf.config.table import FLAGS, METHODS, WEIGHTS, Config, is_used

__all__ = ["FLAGS", "METHODS", "WEIGHTS", "Config", "is_used"]
