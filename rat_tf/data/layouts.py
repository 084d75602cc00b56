"""What the folders of a user's images mean: which are classes, and which are parts of the set.

    pets/labeled/<class>/   pets/unlabeled/                   few labels, many images without
    pets/train/<class>/     pets/validation/  pets/test/      as downloaded sets are laid out
    pets/<class>/                                             nothing but classes

Images that lie beside the class folders have no class: they are unlabelled. No file is opened here.
"""

from __future__ import annotations

import collections
import dataclasses
import difflib
import hashlib
import os
from collections.abc import Iterator, Sequence

from rat_tf import errors

EXTENSIONS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")
#: The parts of a set, by the names of their folders, in small letters or capitals.
PARTS = {
    "labeled": ("labeled", "labelled", "train", "training"),
    "unlabeled": ("unlabeled", "unlabelled"),
    "validation": ("validation", "val"),
    "test": ("test",),
}
NAMES = {name: part for part, names in PARTS.items() for name in names}
IGNORED = ("thumbs.db", "desktop.ini")  # created by file managers; hidden files are ignored, too
HIDDEN = "hidden"


@dataclasses.dataclass
class Layout:
    """The image files of a set. Files are paths; labels count the class names from 0."""

    class_names: tuple[str, ...] = ()
    labeled: list[tuple[str, int]] = dataclasses.field(default_factory=list)
    unlabeled: list[str] = dataclasses.field(default_factory=list)
    parts: dict[str, list[tuple[str, int]]] = dataclasses.field(default_factory=dict)
    """Of validation and test, if the set has them."""
    left_out: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    """Files that are no images, by their endings."""


def find(root: str) -> tuple[Layout, list[str]]:
    """The files of a set, and what to tell the user: how it was understood, what was left out."""
    if not os.path.isdir(root):
        raise errors.UserError(f"--dataset=folder:{root}: no such folder")
    layout = Layout()
    folders, loose = _listed(root, layout)
    parts = _parts(root, folders)
    base = parts.get("labeled", root)
    others = [os.path.join(root, name) for name in folders if name.lower() not in NAMES]
    if base == root:
        classes = others
    else:
        _check_others(others, base, layout)
        inside, beside = _listed(base, layout)
        loose += beside
        classes = [os.path.join(base, name) for name in inside]
        parts.update(_inner_pool(root, classes, parts))
        classes = [path for path in classes if path not in parts.values()]
    layout.class_names = tuple(os.path.basename(path) for path in classes)
    _check_classes(root, base, classes)
    layout.labeled = _of_classes(classes, layout)
    pool = _files(parts["unlabeled"], layout) if "unlabeled" in parts else []
    layout.unlabeled = sorted(loose) + pool
    for part in ("validation", "test"):
        if part in parts:
            layout.parts[part] = _labeled_part(parts[part], layout)
    notes = [_described(root, base, layout, len(loose)), *_left_out(layout)]
    return layout, [*notes, *_likely_parts(layout)]


def root(dataset: str) -> str:
    """The folder of a user's own images; "" for other sets."""
    kind, _, path = dataset.partition(":")
    return os.path.expanduser(path) if kind == "folder" else ""


def digest(root: str) -> str:
    """Of the names, classes and sizes of the files, which tell whether a set has changed."""
    layout, _ = find(root)
    known = [*layout.labeled, *((file, None) for file in layout.unlabeled)]
    for part, files in sorted(layout.parts.items()):
        known += [(file, f"{part} {label}") for file, label in files]
    entries = [(os.path.relpath(file, root), of, os.stat(file).st_size) for file, of in known]
    return hashlib.sha256(repr((layout.class_names, entries)).encode(errors="replace")).hexdigest()


def check_outside(dataset: str, path: str, flag: str) -> None:
    """Refuses to write below a folder of images: pictures there would be images, it a class."""
    if not (folder := root(dataset)):
        return
    inside, place = map(os.path.realpath, (folder, path))
    if os.path.commonpath([inside, place]) == inside:
        raise errors.UserError(
            f"--{flag}: expected a folder outside of --dataset={dataset}, whose folders are "
            f"classes, got {path}"
        )


def place_of_classes(root: str) -> str:
    """The folder that has the folders of the classes: labeled/, or `root` itself."""
    return _parts(root, _listed(root, Layout())[0]).get("labeled", root)


def _parts(root: str, folders: Sequence[str]) -> dict[str, str]:
    """The folder of each part of the set."""
    found = {}
    for name in folders:
        part = NAMES.get(name.lower())
        if part in found:
            raise errors.UserError(
                f"{root}: {os.path.basename(found[part])}/ and {name}/ are two names of the same "
                "part; merge them"
            )
        if part:
            found[part] = os.path.join(root, name)
    return found


def _inner_pool(root: str, classes: Sequence[str], parts) -> dict[str, str]:
    """train/unlabeled/: no class of that name."""
    inner = [path for path in classes if NAMES.get(os.path.basename(path).lower()) == "unlabeled"]
    if inner and "unlabeled" in parts:
        raise errors.UserError(f"{inner[0]}: expected unlabelled images in one place, found two")
    return {"unlabeled": inner[0]} if inner else {}


def _check_others(folders: Sequence[str], base: str, layout: Layout) -> None:
    """Folders beside the parts of a set may have no images: they would be passed over."""
    known = [name for names in PARTS.values() for name in names]
    for path in folders:
        if _files(path, layout):
            name = os.path.basename(path)
            hint = errors.did_you_mean(name.lower(), known, cutoff=0.6)
            raise errors.UserError(
                f"{path}: expected images only in {', '.join(PARTS)} beside "
                f"{os.path.basename(base)}/, found some in {name!r}{hint}; classes belong into "
                f"{base}"
            )


def _likely_parts(layout: Layout) -> Iterator[str]:
    """Classes with almost the name of a part, such as unlabled/: said, as they may be classes."""
    for name in layout.class_names:
        for part in difflib.get_close_matches(name.lower(), [*NAMES, "valid"], 1, cutoff=0.85):
            part = "validation" if part == "valid" else part
            yield f"warning: {name}/ is taken for a class; if it is no class, call it {part}/"


def _check_classes(root: str, base: str, classes: Sequence[str]) -> None:
    names = [os.path.basename(path) for path in classes]
    if len(classes) < 2:
        hint = ""
        if len(classes) == 1 and len(next(_walk(classes[0]))[1]) > 1:
            hint = f"; did you mean --dataset=folder:{classes[0]}?"
        raise errors.UserError(
            f"--dataset=folder:{root}: expected two or more folders of classes in {base}, found "
            f"{len(classes)}{' (' + names[0] + ')' if names else ''}{hint}"
        )
    for path, name in zip(classes, names):
        if not name.isprintable():  # such as a line break, or bytes that are not UTF-8
            raise errors.UserError(
                f"{path!a}: expected the name of a class to be printable text, got {name!a}"
            )
        for name in next(_walk(path))[1]:
            if NAMES.get(name.lower()) in ("labeled", "validation", "test"):
                raise errors.UserError(
                    f"{os.path.join(path, name)}: expected the parts of the set outside of the "
                    f"classes, as in {os.path.join(root, name, os.path.basename(path))}"
                )


def _of_classes(classes: Sequence[str], layout: Layout) -> list[tuple[str, int]]:
    """(file, label) of all files in the folders of classes."""
    found = []
    for label, path in enumerate(classes):
        files = _files(path, layout)
        if not files:
            photos = _photos(layout)
            raise errors.UserError(
                f"{path}: expected images of the class {layout.class_names[label]!r}, found none; "
                f"{photos.removeprefix('; ') or 'remove the folder if it is no class'}"
            )
        found += [(file, label) for file in files]
    return sorted(found)


def _labeled_part(path: str, layout: Layout) -> list[tuple[str, int]]:
    """(file, label) of a validation or test folder, which may lack some of the classes."""
    folders, loose = _listed(path, layout)
    if loose:
        raise errors.UserError(
            f"{loose[0]}: expected images in folders named after their class, as in "
            f"{os.path.join(path, layout.class_names[0])}; images without a class belong into "
            "unlabeled/"
        )
    labels = {name: label for label, name in enumerate(layout.class_names)}
    found = []
    for name in folders:
        if name not in labels:
            hint = errors.did_you_mean(name, layout.class_names)
            raise errors.UserError(
                f"{os.path.join(path, name)}: expected a class of the training images "
                f"({', '.join(layout.class_names)}), found {name!r}{hint}"
            )
        found += [(file, labels[name]) for file in _files(os.path.join(path, name), layout)]
    if not found:
        raise errors.UserError(f"{path}: expected images in folders of classes, found none")
    return sorted(found)


def _listed(path: str, layout: Layout) -> tuple[list[str], list[str]]:
    """Names of the folders and paths of the images in a folder, sorted; not below it."""
    folder, folders, names = next(_walk(path))
    return sorted(folders), _images(folder, names, layout)


def _files(path: str, layout: Layout) -> list[str]:
    """The images in a folder and its subfolders, sorted by path."""
    found = [_images(folder, names, layout) for folder, _, names in _walk(path)]
    return sorted(file for files in found for file in files)


def _images(folder: str, names: Sequence[str], layout: Layout) -> list[str]:
    """The images among the files of a folder; the others are counted."""
    kept = []
    for name in names:
        ending = os.path.splitext(name)[1].lower()
        if name.startswith(".") or name.lower() in IGNORED:
            layout.left_out[HIDDEN] += 1
        elif ending in EXTENSIONS:
            kept.append(os.path.join(folder, name))
        else:
            layout.left_out[ending or "without an ending"] += 1
    return sorted(kept)


def _walk(path: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """os.walk without hidden folders; a folder that cannot be read is an error."""

    def refuse(error):
        raise errors.UserError(f"{error.filename}: cannot read this folder: {error.strerror}")

    for folder, below, names in os.walk(path, onerror=refuse, followlinks=True):
        below[:] = [name for name in below if not name.startswith(".")]  # os.walk visits these next
        yield folder, below, names


def _described(root: str, base: str, layout: Layout, loose: int) -> str:
    """How the set was understood, in a line."""
    where = "its folders" if base == root else f"{os.path.basename(base)}/"
    counts = [
        f"{len(layout.labeled):,} labelled images of {len(layout.class_names)} classes in {where}",
        f"{len(layout.unlabeled):,} unlabelled" + (f" ({loose:,} beside folders)" if loose else ""),
        *(f"{len(files):,} for {part}" for part, files in layout.parts.items()),
    ]
    return f"{root}: {', '.join(counts)}"


def _left_out(layout: Layout) -> list[str]:
    """Files that are left out, in a line."""
    if not layout.left_out:
        return []
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(layout.left_out.items()))
    return [f"files left out, as they are no images that can be read: {kinds}{_photos(layout)}"]


def _photos(layout: Layout) -> str:
    """What to do with photos in formats that cannot be read."""
    photos = layout.left_out.keys() & {".heic", ".heif", ".avif", ".cr2", ".nef", ".arw", ".dng"}
    return f"; to use {' and '.join(sorted(photos))} photos, convert them to JPEG" if photos else ""
