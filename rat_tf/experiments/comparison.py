"""Compares groups of runs with each other and with the paper: the lines of its tables."""

from __future__ import annotations

import collections
import dataclasses

from rat_tf import config as config_lib
from rat_tf.config import flag_values
from rat_tf.experiments import paper, results

#: Seeds that a row needs to be marked as the best.
MIN_SEEDS = 3
SHOWN = 10  # rows that a remark lists
#: Flags that make results comparable: the same task, network and length of training. Runs that
#: differ in one of them are never in one table.
BENCHMARK = (
    *("dataset", "network", "iterations", "validate_every", "image_size", "channels"),
    *("svhn_extra", "skip_broken", "validation", "stratify", "split_file", "preprocessing"),
)
#: How a title says that a run differs from the defaults in a flag of `BENCHMARK`.
WORDS = {
    "validate_every": "validated every {:,}",
    "image_size": "images of {0}×{0}",
    "channels": "{} channels",
    "svhn_extra": "with the extra images",
    "skip_broken": "without broken files",
    "validation": "{:.0%} of the labels for validation",
    "stratify": "{} labels",
    "split_file": "split of {}",
    "preprocessing": "preprocessing {}",
}
#: The paper's order of methods.
ORDER = (
    *("supervised", "pi_model", "pseudo_label", "mean_teacher", "vat", "random", "rat"),
    "mixmatch",
)


@dataclasses.dataclass
class Line:
    """One row of a table. `group` is None without runs, `row` without a number of the paper."""

    name: str
    labels: int
    group: results.Group | None
    row: paper.Row | None
    unlike: tuple[str, ...] = ()  # flags that differ from the paper's row
    best: bool = False
    behind: float | None = None  # points behind the best that has enough seeds
    p_behind: float | None = None

    @property
    def enough(self) -> bool:
        return self.group is not None and len(self.group.results) >= MIN_SEEDS


@dataclasses.dataclass
class Section:
    """Lines that can be compared with each other."""

    title: str
    lines: list[Line]
    part: str = "test"  # whose error the lines show


def identity(config: config_lib.Config) -> tuple:
    """What identifies a row of the paper, under any protocol."""
    ramped = bool(config.epsilon_rampup)
    transforms = results.transforms_text(config)
    return config.dataset, config.labels, config.method, transforms, ramped, bool(config.mixup)


def sections(groups, table: str = "") -> tuple[list[Section], list[str]]:
    """The tables of these groups, and what was left out of them.

    With `table`, a key of `paper.TABLES`, only the rows of that table, also without runs.
    """
    rows = _references(table)
    by_benchmark: dict[tuple, list[Line]] = {}
    others = []
    for group in groups:
        row, reference = rows.get(identity(group.config), (None, None))
        if table and row is None:
            others.append(group)
            continue
        key = (group.part, *(getattr(group.config, name) for name in BENCHMARK))
        name = row.name if row else group.config.options.title
        unlike = _unlike(group.config, reference) if row else ()
        line = Line(name, group.labels, group, row, unlike)
        by_benchmark.setdefault(key, []).append(line)
    found = [
        Section(_title(lines[0].group.config), lines, part)
        for (part, *_), lines in by_benchmark.items()
    ]
    titles = collections.Counter(section.title for section in found)
    for section in found:
        if titles[section.title] > 1:  # folders of the same name in different places
            config = section.lines[0].group.config
            section.title = _title(config, config.dataset)
    if table:
        _add_missing(found, list(rows.values()))
    order = {id(row): number for number, (row, _) in enumerate(rows.values())}
    for section in found:
        _tell_apart(section.lines)
        section.lines.sort(
            key=lambda line: (line.labels, order.get(id(line.row), len(order)), _place(line))
        )
        _compare(section.lines)
    return found, [_elsewhere(others, paper.TABLES[table].title)] if others else []


def _references(table: str) -> dict[tuple, tuple]:
    """Rows of the paper and their configs, by `identity`."""
    found = {}
    for row in paper.table(table).rows if table else paper.rows():
        config = flag_values.config_of_file(row.path, labels=row.labels)
        found[identity(config)] = (row, config)
    return found


def _elsewhere(groups: list[results.Group], title: str) -> str:
    """One remark about all runs that are not in the table: there may be hundreds."""
    count = sum(len(group.results) for group in groups)
    shown = [group.results[0].folder for group in groups[:SHOWN]]
    more = f" and {len(groups) - SHOWN} other rows" if groups[SHOWN:] else ""
    return f"{count} runs are not in {title}: those of {', '.join(shown)}{more}"


def _place(line: Line) -> int:
    """The position of a method in the paper's order."""
    order = {name: number for number, name in enumerate(ORDER)}
    return order.get(line.group.config.method, len(order)) if line.group else 0


def _unlike(config, reference) -> tuple[str, ...]:
    """The flags of a run that differ from the paper's row, with the paper's values."""
    ours, theirs = results.protocol(config), results.protocol(reference)
    return tuple(
        f"--{name}={ours[name]} (paper: {theirs[name]})"
        for name in ours
        if ours[name] != theirs[name]
    )


def _title(config: config_lib.Config, dataset: str = "") -> str:
    """SVHN, wrn-28-2, 500,000 steps, and in words the other flags without their default."""
    defaults = {field.name: field.default for field in dataclasses.fields(config)}
    defaults |= {"preprocessing": "gcn_zca"} if config.dataset == "cifar10" else {}
    name = dataset or config.dataset_title
    parts = [paper.DATASETS.get(config.dataset, name), config.network]
    parts.append(f"{config.iterations:,} steps")
    for name in BENCHMARK[3:]:
        if getattr(config, name) != defaults[name]:
            parts.append(WORDS[name].format(getattr(config, name)))
    return ", ".join(parts)


def _add_missing(found: list[Section], rows) -> None:
    """Rows of the paper that have no runs, in every section of their data set."""
    for dataset in dict.fromkeys(row.dataset for row, _ in rows):
        mine = [(row, config) for row, config in rows if row.dataset == dataset]
        there = [s for s in found if s.lines[0].group and s.lines[0].row.dataset == dataset]
        if not there:
            there = [Section(_title(mine[0][1]), [])]
            found += there
        for section in there:
            present = {id(line.row) for line in section.lines}
            section.lines += [
                Line(row.name, row.labels, None, row) for row, _ in mine if id(row) not in present
            ]


def _tell_apart(lines: list[Line]) -> None:
    """Adds to equal names the flags in which their runs differ, besides the number of labels."""
    same = collections.defaultdict(list)
    for line in lines:
        if line.group:
            same[line.name].append((line, results.protocol(line.group.config)))
    for entries in same.values():
        differing = [
            name
            for name in entries[0][1]
            if name != "labels" and len({flags[name] for _, flags in entries}) > 1
        ]
        for line, flags in entries:
            if differing:
                line.name += f" ({', '.join(_in_words(name, flags[name]) for name in differing)})"


def _in_words(flag: str, value) -> str:
    """affine 0.3 + noise 1, and other flags by their names."""
    if flag == "transforms" and value:
        return value.replace("_", " ").replace(":", " ").replace(",", " + ")
    shown = {None: "none", True: "yes", False: "no"}.get(value, value)
    return f"{flag.replace('_', ' ')} {shown}"


def _compare(lines: list[Line]) -> None:
    """Finds the best for each number of labels, and how far the others are behind it.

    Rows are compared with the lowest mean over enough seeds, the best if no row has a lower one.
    """
    for labels in {line.labels for line in lines}:
        here = [line for line in lines if line.labels == labels and line.group]
        candidates = [line for line in here if line.enough]
        if not candidates or len(here) < 2:
            continue
        first = min(candidates, key=lambda line: line.group.mean)
        first.best = first.group.mean <= min(line.group.mean for line in here)
        for line in here:
            if line is not first:
                line.behind = line.group.mean - first.group.mean
                line.p_behind = results.welch(line.group.errors, first.group.errors)
