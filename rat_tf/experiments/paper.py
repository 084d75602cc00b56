"""The paper's results: the rows of its tables, and the flagfile of each.

Tables are numbered as in print: 1 and 2 hold ε and the parameters of VAT and RAT, 3
the compositions, 4 the ε-rampup, 5 the baselines; in the appendix 6 holds the baselines'
parameters, 7 and 8 MixMatch, 9 and 10 the numbers behind Figure 2. Errors are in %.
"""

from __future__ import annotations

import dataclasses

from rat_tf import errors

FOLDER = "configs/paper"
DATASETS = {"cifar10": "CIFAR-10", "svhn": "SVHN"}
STANDARD_LABELS = {"cifar10": 4000, "svhn": 1000}
FIGURE_LABELS = (250, 500, 1000, 2000, 4000, 8000)


@dataclasses.dataclass(frozen=True)
class Row:
    """One number of a table: its flagfile, number of labels, mean and standard deviation."""

    config: str
    dataset: str
    labels: int
    name: str
    mean: float
    std: float | None  # None if the paper gives none

    @property
    def path(self) -> str:
        return f"{FOLDER}/{self.dataset}/{self.config}.cfg"

    @property
    def shown(self) -> str:
        return f"{self.mean:.2f}" + ("" if self.std is None else f" ± {self.std:.2f}")


@dataclasses.dataclass(frozen=True)
class Table:
    title: str
    rows: tuple[Row, ...]
    note: str = ""


def _columns(names: dict[str, str], **columns: str) -> tuple[Row, ...]:
    """Rows of a table with a column of "mean±std" per data set, at its standard labels."""
    return tuple(
        Row(config, dataset, STANDARD_LABELS[dataset], name, *_number(text))
        for dataset, column in columns.items()
        for (config, name), text in zip(names.items(), column.split())
    )


def _lines(dataset: str, names: dict[str, str], labels, text: str) -> tuple[Row, ...]:
    """Rows of a table with a line per method and a column per number of labels; N/A is none."""
    return tuple(
        Row(config, dataset, count, name, *_number(cell))
        for (config, name), line in zip(names.items(), text.strip().splitlines())
        for count, cell in zip(labels, line.split())
        if cell != "N/A"
    )


def _number(text: str) -> tuple[float, float | None]:
    mean, _, std = text.partition("±")
    return float(mean), float(std) if std else None


_COMPOSITIONS = {
    "supervised": "Supervised",
    "vat": "VAT",
    "rat_channel": "RAT, channel-wise",
    "rat_affine": "RAT, affine",
    "rat_tps": "RAT, thin plate spline",
    "rat_flow": "RAT, flow field",
    "rat_channel_affine": "RAT, channel-wise and affine",
    "rat_channel_tps": "RAT, channel-wise and thin plate spline",
    "rat_channel_flow": "RAT, channel-wise and flow field",
}
_RAMPS = {
    "vat": "VAT, ε 6",
    "vat_epsilon10": "VAT, ε 10",
    "vat_rampup": "VAT with ε-rampup, ε 10",
    "rat_affine": "RAT, ε (6, 0.6)",
    "rat_epsilon1": "RAT, ε (6, 1)",
    "rat_rampup": "RAT with ε-rampup, ε (6, 1)",
}
_METHODS = {
    "supervised": "Supervised",
    "pi_model": "Π-Model",
    "pseudo_label": "Pseudo-Label",
    "mean_teacher": "Mean Teacher",
    "vat": "VAT",
    "vat_rampup": "VAT with ε-rampup",
    "random": "Random Transformation",
    "rat_affine": "RAT",
    "rat_rampup": "RAT with ε-rampup",
    "mixmatch": "MixMatch",
    "mixmatch_nomixup": "MixMatch without Mixup",
}


def _named(*configs: str) -> dict[str, str]:
    return {config: _METHODS[config] for config in configs}


_FIGURE = _named("pi_model", "pseudo_label", "mean_teacher", "vat", "rat_rampup")
_MIXMATCH = (
    "The paper takes MixMatch's numbers from the MixMatch paper, where other training lengths and "
    "the median of the last 20 checkpoints were used."
)

TABLES = {
    "table3": Table(
        "Table 3: compositions of transformations, all with noise",
        _columns(
            _COMPOSITIONS,
            cifar10="20.35±0.14 13.68±0.25 14.33±0.44 11.70±0.32 13.06±0.44 14.27±0.41 11.32±0.44 "
            "13.46±0.37 14.17±0.27",
            svhn="12.33±0.25 5.32±0.25 5.19±0.29 3.10±0.12 4.12±0.11 4.93±0.35 3.14±0.12 "
            "4.06±0.16 4.85±0.12",
        ),
    ),
    "table4": Table(
        "Table 4: with and without ε-rampup",
        _columns(
            _RAMPS, cifar10="13.68±0.25 14.31±0.33 13.26±0.20 11.70±0.32 12.68±0.29 11.26±0.34"
        ),
    ),
    "table5": Table(
        "Table 5: RAT and baselines",
        _columns(
            dict(list(_METHODS.items())[:9]),
            cifar10="20.35±0.14 16.24±0.38 14.78±0.26 15.77±0.22 13.68±0.25 13.26±0.20 12.71±0.82 "
            "11.70±0.32 11.26±0.34",
            svhn="12.33±0.25 7.81±0.39 7.26±0.27 6.48±0.44 5.32±0.25 5.17±0.26 6.06±0.50 "
            "3.10±0.12 2.86±0.07",
        ),
    ),
    "table7": Table(
        "Table 7: MixMatch and RAT on SVHN",
        _lines(
            "svhn",
            _named("mixmatch", "rat_rampup"),
            FIGURE_LABELS,
            """3.78±0.26 3.64±0.46 3.27±0.31 3.04±0.13 2.89±0.06 N/A
            3.30±0.08 3.14±0.11 2.86±0.07 2.78±0.11 2.89±0.05 2.99±0.05""",
        ),
        _MIXMATCH,
    ),
    "table8": Table(
        "Table 8: MixMatch and RAT on CIFAR-10",
        _lines(
            "cifar10",
            _named("mixmatch_nomixup", "mixmatch", "rat_rampup"),
            (250, 4000),
            """39.11 10.97
            11.80 6.00
            36.31±2.03 11.26±0.34""",
        ),
        _MIXMATCH,
    ),
    "table9": Table(
        "Table 9: error against the number of labels, CIFAR-10 (Figure 2b)",
        _lines(
            "cifar10",
            _FIGURE,
            FIGURE_LABELS,
            """52.24±0.94 43.92±1.08 34.19±1.48 24.31±0.55 16.24±0.38 12.74±0.25
            50.20±1.88 41.86±0.68 30.42±1.24 18.23±0.33 14.78±0.26 12.61±0.19
            50.78±0.93 42.96±0.25 33.31±1.30 21.64±0.63 15.77±0.22 12.84±0.18
            51.12±1.54 30.52±0.93 24.23±0.82 16.04±0.43 13.68±0.25 11.39±0.27
            36.31±2.03 27.17±0.95 21.38±1.74 15.38±0.42 11.26±0.34 10.51±0.21""",
        ),
    ),
    "table10": Table(
        "Table 10: error against the number of labels, SVHN (Figure 2a)",
        _lines(
            "svhn",
            _FIGURE,
            FIGURE_LABELS,
            """25.51±1.67 12.21±0.61 7.81±0.39 6.39±0.34 5.33±0.12 4.51±0.11
            13.66±0.96 7.78±0.21 7.26±0.27 5.67±0.29 5.03±0.28 4.43±0.12
            12.35±0.60 7.80±0.40 6.48±0.44 5.40±0.32 5.05±0.21 4.33±0.21
            7.24±0.30 6.37±0.13 5.32±0.25 5.22±0.11 4.76±0.28 4.28±0.13
            3.30±0.08 3.14±0.11 2.86±0.07 2.78±0.11 2.89±0.05 2.99±0.05""",
        ),
    ),
}
TABLES["figure2"] = Table(
    "Figure 2: error against the number of labels", TABLES["table10"].rows + TABLES["table9"].rows
)
TABLES["mixmatch"] = Table(
    "Tables 7 and 8: MixMatch and RAT", TABLES["table7"].rows + TABLES["table8"].rows, _MIXMATCH
)


#: One name for each flagfile, for tables that are combined, in the order to show them.
NAMES = {
    **_METHODS,
    "vat_epsilon10": _RAMPS["vat_epsilon10"],
    **_COMPOSITIONS,
    "rat_epsilon1": _RAMPS["rat_epsilon1"],
}


def rows() -> list[Row]:
    """Every row once per flagfile and number of labels, over all tables."""
    found = {}
    for table in TABLES.values():
        for row in table.rows:
            named = dataclasses.replace(row, name=NAMES[row.config])
            found.setdefault((row.path, row.labels), named)
    return sorted(found.values(), key=lambda row: list(NAMES).index(row.config))


def table(name: str) -> Table:
    """The table of --paper."""
    if name not in TABLES:
        hint = errors.did_you_mean(name, TABLES)
        raise errors.UserError(f"--paper: expected one of {', '.join(TABLES)}, got {name!r}{hint}")
    return TABLES[name]


def tables_of(path: str, labels: int) -> list[str]:
    """The numbered tables that contain a flagfile's result."""
    return [
        name
        for name, table in TABLES.items()
        if name.startswith("table")
        and any((r.path, r.labels) == (path, labels) for r in table.rows)
    ]


def listing() -> str:
    """The paper's rows: flagfile, labels, tables, error."""
    lines = [f"{'flagfile':<44}{'labels':>6}  {'tables':<14}the paper's error, %"]
    for row in sorted(rows(), key=lambda row: (row.path, row.labels)):
        numbers = ", ".join(name[len("table") :] for name in tables_of(row.path, row.labels))
        lines.append(f"{row.path:<44}{row.labels:>6}  {numbers:<14}{row.shown}")
    return "\n".join(lines)
