"""Flags: the table of all of them, their parsing, the command line."""

from rat_tf.config.table import METHODS, WEIGHTS, Config

__all__ = ["METHODS", "WEIGHTS", "Config"]
