"""Options as arguments in Python: the checks of the flags, with a ValueError in the same words."""

from __future__ import annotations

import dataclasses
import numbers
import re
from collections.abc import Collection, Mapping

import numpy as np

from rat_tf import errors, fields
from rat_tf.methods.options import base
from rat_tf.transforms import spec

#: Arguments of the classes that are called otherwise than their flags.
NAMES = {"adversary": "adversary_kind", "pseudo_label_threshold": "threshold"}

# Shares of the run, which a flag may have, need a run of known length.
_KINDS = {
    "int": (numbers.Integral, "a whole number"),
    "float": (numbers.Real, "a number"),
    "bool": ((bool, np.bool_), "True or False"),
    "fields.Steps": (numbers.Real, "a number of steps"),
    "spec.Xi": ((spec.Xi, str), "a number, or a multiple of ε such as '0.5eps'"),
    "spec.Spec": ((spec.Spec, str), "text such as 'noise:1.0,affine:0.3'"),
}


def value(kind: type[base.Options], name: str, given, names: Mapping[str, str] = NAMES):
    """The value of the option `name` of `kind`, parsed and checked; `names` as in `options`."""
    field = next((field for field in dataclasses.fields(kind) if field.name == name), None)
    if field is None:
        known = ", ".join(field.name for field in dataclasses.fields(kind))
        raise ValueError(f"{name}: no option of {kind.__name__}; expected one of {known}")
    if isinstance(given, np.ndarray) and not given.ndim:
        given = given.item()
    if field.type == "spec.Xi" and isinstance(given, numbers.Real):
        given = str(given)
    expected, words = _KINDS.get(field.type, (object, ""))
    try:
        if not isinstance(given, expected):
            raise errors.UserError(f"--{name}: expected {words}, got {given!r}")
        return fields.value_of(field, given)
    except errors.UserError as error:
        raise ValueError(_in_python(error, names)) from None


def options(
    kind: type[base.Options],
    given: Mapping,
    names: Mapping[str, str] = NAMES,
    unchecked: Collection[str] = (),
) -> base.Options:
    """Options of `kind` with the values `given`, None for a default, and nothing that clashes.

    `names` are those of arguments that are called otherwise than their flags. Those that are
    `unchecked` are taken as they are, such as tensors, but must not clash with others either.
    """
    # The classes do not ask whose result counts; without a default, mixmatch would need averages.
    given = {"evaluate": "student", **given}
    defaults = {field.name: field.default for field in dataclasses.fields(kind)}
    values = {n: default if given.get(n) is None else given[n] for n, default in defaults.items()}
    checked = {n: value(kind, n, v, names) for n, v in values.items() if n not in unchecked}
    found = kind(**{**values, **checked})
    try:
        found.check()
    except errors.UserError as error:
        raise ValueError(_in_python(error, names)) from None
    return found


def _in_python(error: errors.UserError, names: Mapping[str, str]) -> str:
    """An error about --adversary as one about adversary_kind."""
    return re.sub(r"--(\w+)", lambda match: names.get(match[1], match[1]), str(error))
