"""Lays images out in folders of classes, for a person to correct."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence

from rat_tf import errors
from rat_tf.labelling import page, thumbnails
from rat_tf.storage import files


def check(folder: str) -> None:
    """Refuses a folder that has something in it."""
    if os.path.exists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
        raise errors.UserError(f"--copy_to: expected a new or empty folder, but {folder} is not")
    files.check_writable(folder, "copy_to")


def copy(folder: str, cards: Sequence[page.Card], guesses: Sequence[str], class_names) -> None:
    """<folder>/<guess>/<number>-<name>, and a folder for every other class.

    Files are copied as they are; images without a file are written as PNG. The number is the
    position in the list, and keeps files of the same name apart.
    """
    for name in class_names:
        os.makedirs(os.path.join(folder, folder_name(name)), exist_ok=True)
    for number, (card, guess) in enumerate(zip(cards, guesses), 1):
        stem = f"{number:04}-{os.path.basename(card.name)}"
        target = os.path.join(folder, folder_name(guess), stem)
        if os.path.isfile(card.name):
            shutil.copy2(card.name, target)
        else:
            thumbnails.of_array(card.image).save(f"{target}.png")


def folder_name(name: str) -> str:
    """The name of a class as that of a folder: those of TFDS may have any characters."""
    name = re.sub(r"[\x00-\x1f/\\:]", "_", name)
    return f"_{name}" if name.startswith(".") or not name else name
