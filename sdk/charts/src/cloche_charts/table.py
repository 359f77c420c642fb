# SPDX-License-Identifier: Apache-2.0
"""A DataFrame as data: {column name: [cell, ...]}, the index left out.

Every cell becomes something JSON has. Missing values of all kinds (None, NaN, NaT, NA) and infinities
are null, times are ISO text, what is left is its str(). A strange cell never fails the user's cell.
"""

from __future__ import annotations

import datetime
import json
import math
import sys
from typing import Any

DEEPEST = 50


def table_data(table: Any) -> dict[str, list[Any]] | None:
    """The columns of a DataFrame by name; None if it cannot be read at all. Of two with one name the last counts."""
    try:
        return {_name(name): column(series) for name, series in table.items()}
    except Exception:
        return None


def table_json(table: Any) -> str | None:
    """The `e2b/data` text of a DataFrame; None if it cannot be read at all."""
    columns = table_data(table)
    try:
        return None if columns is None else json.dumps(columns)
    except Exception:
        return None


def column(series: Any) -> list[Any]:
    """The cells of one column, in row order."""
    kind = series.dtype.kind if isinstance(series.dtype, sys.modules["numpy"].dtype) else "O"
    if kind in "biu":
        whole: list[Any] = series.to_numpy().tolist()
        return whole
    if kind == "f":
        return _floats(series.to_numpy())
    return [cell(value) for value in series]


def _floats(values: Any) -> list[float | None]:
    cells: list[float | None] = values.tolist()
    numpy = sys.modules["numpy"]
    for row in numpy.flatnonzero(~numpy.isfinite(values)).tolist():
        cells[row] = None
    return cells


def moment_text(value: datetime.date | datetime.time) -> str | None:
    text = value.isoformat()
    return None if text == "NaT" else text


def cell(value: Any, depth: int = 0) -> Any:
    """One cell as JSON."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return value if math.isfinite(value) else None
    try:
        return _odd_cell(value, depth)
    except Exception:
        return f"<{kind.__name__}>"


def _odd_cell(value: Any, depth: int) -> Any:
    pandas, numpy = sys.modules["pandas"], sys.modules["numpy"]
    if value is pandas.NaT or value is pandas.NA:
        return None
    if isinstance(value, (datetime.date, datetime.time)):
        return moment_text(value)
    if isinstance(value, pandas.Timedelta):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return pandas.Timedelta(value).isoformat()
    if isinstance(value, (numpy.datetime64, numpy.timedelta64)):
        stamp = pandas.Timestamp if isinstance(value, numpy.datetime64) else pandas.Timedelta
        return cell(stamp(value), depth)
    if isinstance(value, (numpy.bool_, numpy.number)) and not isinstance(value, numpy.complexfloating):
        return cell(value.item(), depth)
    if depth < DEEPEST and isinstance(value, dict):
        return {_name(key): cell(item, depth + 1) for key, item in value.items()}
    if depth < DEEPEST and isinstance(value, (list, tuple, set, frozenset, numpy.ndarray)):
        return [cell(item, depth + 1) for item in value]
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    return str(value)


def _name(name: Any) -> str:
    return name if type(name) is str else str(name)
