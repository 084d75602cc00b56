"""Links in a folder of images: none leaves it unless the user says so, and none leads in circles.

A folder that somebody else packed may have a link to any file of this machine, whose pixels would
then be in the cache, in previews and in the exported model's training.
"""

from __future__ import annotations

import os

from rat_tf import errors


def check(root: str, follow: bool) -> None:
    """Refuses links out of `root`, unless `follow`, and those that lead in circles.

    A link leads in circles if its target contains a folder on the way to it. These are real
    folders: two folders with links to each other are a circle, too.
    """
    inside = os.path.realpath(root)
    ways = {root: [inside]}  # the real folders on the way to each folder that is yet to be visited
    for folder, below, names in os.walk(root, followlinks=True):
        below[:] = [name for name in below if not name.startswith(".")]
        way = ways.pop(folder)
        for name in sorted([*below, *names]):
            path = os.path.join(folder, name)
            linked = os.path.islink(path)
            target = os.path.realpath(path) if linked else os.path.join(way[-1], name)
            if name in below:
                ways[path] = [*way, target]
            if not linked:
                continue
            if not follow and not _contains(inside, target):
                raise errors.UserError(
                    f"{path}: expected a file or folder of {root}, found a link to {target}; "
                    "--follow_links follows such links"
                )
            if any(_contains(target, passed) for passed in way):
                raise errors.UserError(f"{path}: the link leads to {target}, which contains it")


def _contains(folder: str, path: str) -> bool:
    return os.path.commonpath([folder, path]) == folder
