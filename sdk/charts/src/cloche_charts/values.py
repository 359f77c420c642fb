# SPDX-License-Identifier: Apache-2.0
"""Plotted values as JSON: numbers are floats, times ISO text, what is missing null."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any, Union

import numpy

Value = Union[float, str, None]


def number(value: Any) -> float | None:
    result = float(value)
    return result if math.isfinite(result) else None


def column(values: Any) -> list[Value]:
    """The values of one coordinate, in order."""
    if hasattr(values, "dtype") and getattr(values.dtype, "kind", "O") in "biuf":
        return floats(numpy.ma.asarray(values, dtype=float))
    return [one(value) for value in values]


def floats(values: Any) -> list[Value]:
    masked = numpy.ma.getmaskarray(values) | ~numpy.isfinite(numpy.ma.getdata(values))
    cells: list[Value] = numpy.ma.getdata(values).tolist()
    for index in numpy.flatnonzero(masked).tolist():
        cells[index] = None
    return cells


def pairs(xs: Any, ys: Any) -> list[list[Value]]:
    """[x, y] points; quick when both are plain finite numbers."""
    if _plain(xs) and _plain(ys):
        table = numpy.column_stack((numpy.asarray(xs, dtype=float), numpy.asarray(ys, dtype=float)))
        if numpy.isfinite(table).all():
            points: list[list[Value]] = table.tolist()
            return points
    return [[x, y] for x, y in zip(column(xs), column(ys))]


def plain(values: Any) -> Any:
    """Floats with NaN for what is missing."""
    return numpy.ma.filled(numpy.ma.asarray(values, dtype=float), numpy.nan)


def thin(values: Any, step: int) -> Any:
    """Every step-th value; the values themselves where that is all of them."""
    return values if step == 1 else values[::step]


def _plain(values: Any) -> bool:
    return type(values) is numpy.ndarray and values.ndim == 1 and values.dtype.kind in "biuf"


def one(value: Any) -> Value:
    if value is None or value is numpy.ma.masked:
        return None
    if isinstance(value, str):
        return str(value)
    if isinstance(value, numpy.datetime64):
        return None if numpy.isnat(value) else str(value.astype("datetime64[s]"))
    if isinstance(value, (datetime.date, datetime.time)):
        text = value.isoformat()
        return None if text == "NaT" else text
    if hasattr(value, "start_time"):  # a pandas Period
        return str(value.start_time.isoformat())
    if isinstance(value, (bool, int, float, Decimal, numpy.bool_, numpy.number)):
        return number(value)
    return _other(value)


def _other(value: Any) -> Value:
    try:
        return number(value)
    except (TypeError, ValueError):
        text = str(value)
        return None if text in ("NaT", "<NA>") else text


def text_of_number(value: float) -> str:
    """A number as a label: no noise digits, no trailing zeros."""
    return f"{value:.12g}"
