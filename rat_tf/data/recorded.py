"""What a run folder knows of its images. They must not change while a run is resumed or tested."""

from __future__ import annotations

import dataclasses
import os

from rat_tf import errors
from rat_tf.data import examples, options, sources, splits


@dataclasses.dataclass(frozen=True)
class Recorded:
    folder: str  # of the run
    split: splits.Split
    class_names: tuple[str, ...]
    hashes: dict[str, str]  # of the validation and test images; none in the first version

    def split_of(self, source: sources.Source, config: options.DataOptions) -> splits.Split:
        """The split of the run, if the images are still those that it splits."""
        self.check_classes(source.class_names, config)
        self.check_train(source.train, config)
        where = f"--run_dir: {os.path.join(self.folder, 'split.json')}"
        return splits.matched(self.split, source, config, where)

    def check_train(self, train: examples.Examples, config: options.DataOptions) -> None:
        self._compare("training", self.split.hash, train.hash, config)

    def check_part(self, name: str, found: examples.Examples, config: options.DataOptions) -> None:
        """The same for "validation" or "test"."""
        if name in self.hashes:
            self._compare(name, self.hashes[name], found.hash, config)

    def check_classes(self, class_names, config: options.DataOptions) -> None:
        self._compare("class", ", ".join(self.class_names), ", ".join(class_names), config)

    def _compare(self, what: str, before: str, now: str, config: options.DataOptions) -> None:
        if before != now:
            thing = "class names" if what == "class" else f"{what} images, or their labels,"
            raise errors.UserError(
                f"--dataset={config.dataset}: the {thing} have changed since {self.folder} began "
                f"({_short(before)} then, {_short(now)} now); restore them, or train them in "
                "another --run_dir"
            )


def held_out(
    config: options.DataOptions, recorded: Recorded, names=("test", "validation")
) -> tuple[str, examples.Examples]:
    """The first of these parts that has images: its name and they. Other parts are not read.

    The validation images are the set's own, or those of the run's split.
    """
    listing = sources.find(config)
    recorded.check_classes(listing.class_names, config)
    for name in names:
        (found,) = sources.read_parts(listing, config, [name])
        if name == "validation" and not len(found):
            (train,) = sources.read_parts(listing, config, ["train"])
            recorded.check_train(train, config)
            found = train.take(recorded.split.validation)
        if len(found):
            recorded.check_part(name, found, config)
            return name, found
    raise errors.UserError(f"--dataset={config.dataset}: has no images for {' or '.join(names)}")


def _short(text: str) -> str:
    return text if len(text) < 20 else f"{text[:16]}…"
