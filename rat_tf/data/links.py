"""Links in a folder of images: none leaves it unless the user says so, and none leads in circles.

A folder that somebody else packed may have a link to any file of this machine, whose pixels would
then be in the cache, in previews and in the exported model's training.
"""

from __future__ import annotations

import os

from rat_tf import errors


def check(root: str, follow: bool) -> None:
    """Refuses links out of `root`, unless `follow`, and links to a folder that contains them."""
    inside = os.path.realpath(root)
    for folder, below, names in os.walk(root, followlinks=True):
        below[:] = [name for name in below if not name.startswith(".")]
        for name in sorted([*below, *names]):
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                continue
            target = os.path.realpath(path)
            if not follow and not _contains(inside, target):
                raise errors.UserError(
                    f"{path}: expected a file or folder of {root}, found a link to {target}; "
                    "--follow_links follows such links"
                )
            if _contains(target, os.path.realpath(folder)):
                raise errors.UserError(f"{path}: the link leads to {target}, which contains it")


def _contains(folder: str, path: str) -> bool:
    return os.path.commonpath([folder, path]) == folder
