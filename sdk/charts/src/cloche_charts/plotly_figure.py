# SPDX-License-Identifier: Apache-2.0
"""plotly figures by their own data: every trace with its columns. Read from the figure's JSON form, nothing is drawn.

plotly is not imported: a figure says of itself what it holds (to_plotly_json), and so does the bundle it displays.
"""

from __future__ import annotations

import base64
import binascii
import math
from typing import Any

from .axis_text import unit_of
from .limits import Reading
from .table import cell

# The data of traces, by plotly's names; anything else is about looks.
COLUMNS = (
    *("x", "y", "z", "r", "theta", "a", "b", "c", "labels", "values", "parents", "ids", "text", "base", "measure"),
    *("open", "high", "low", "close", "lat", "lon", "locations", "value", "q1", "median", "q3", "mean", "sd"),
    *("lowerfence", "upperfence", "header", "cells"),
)
SIZES = {"i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q", "f4": "f", "f8": "d"}


def read(figure: Any, reading: Reading) -> dict[str, Any]:
    return chart(figure.to_plotly_json(), reading)


def chart(form: Any, reading: Reading) -> dict[str, Any]:
    """The chart of a figure's JSON form: {"data": traces, "layout": ...}."""
    traces, layout = form.get("data") or [], form.get("layout") or {}
    if not traces:
        return {}
    x_label, y_label = _title(layout.get("xaxis")), _title(layout.get("yaxis"))
    elements = [element(trace, index, reading) for index, trace in enumerate(traces)]
    detail = {
        "type": "plotly",
        "elements": elements,
        **{"x_label": x_label, "y_label": y_label, "x_unit": unit_of(x_label), "y_unit": unit_of(y_label)},
    }
    sampled = reading.told()
    if sampled:
        detail["sampled"] = sampled
    return {"type": "unknown", "title": _title(layout), "elements": [], "cloche": detail}


def element(trace: Any, index: int, reading: Reading) -> dict[str, Any]:
    found = {name: _column(trace[name]) for name in COLUMNS if trace.get(name) is not None}
    lists = {name: values for name, values in found.items() if values is not None}
    step = reading.step(max((_size(values) for values in lists.values()), default=0), index)
    return {
        "label": _text(trace.get("name")) or f"trace {index}",
        "trace": _text(trace.get("type")) or "scatter",
        "mode": _text(trace.get("mode")),
        "orientation": _text(trace.get("orientation")),
        "columns": {name: _thin(values, step) for name, values in lists.items()},
    }


def _column(value: Any) -> list[Any] | None:
    if isinstance(value, dict):
        return _typed(value) if "bdata" in value else None
    if isinstance(value, str):
        return None
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (int, float)):
        return [value]
    return list(value) if isinstance(value, (list, tuple)) else None


def _typed(value: dict[str, Any]) -> list[Any] | None:
    """plotly 6 and newer send arrays as base64 of their bytes."""
    code = SIZES.get(str(value.get("dtype")))
    try:
        data = base64.b64decode(value["bdata"])
        flat = memoryview(data).cast(code) if code else None  # type: ignore[call-overload]
    except (ValueError, TypeError, binascii.Error):
        return None
    if flat is None:
        return None
    cells: list[Any] = flat.tolist()
    shape = [int(part) for part in str(value.get("shape", "")).split(",") if part.strip()]
    if len(shape) == 2 and shape[0] * shape[1] == len(cells):
        return [cells[row * shape[1] : (row + 1) * shape[1]] for row in range(shape[0])]
    return cells


def _size(values: list[Any]) -> int:
    return sum(len(row) if isinstance(row, list) else 1 for row in values)


def _thin(values: list[Any], step: int) -> list[Any]:
    """Every step-th; of a table fewer rows and columns, with the same product."""
    if any(isinstance(row, list) for row in values):
        side = math.ceil(math.sqrt(step))
        return [cell(row[::side] if isinstance(row, list) else row) for row in values[::side]]
    return [cell(value) for value in values[::step]]


def _title(part: Any) -> str | None:
    title = part.get("title") if isinstance(part, dict) else None
    return _text(title.get("text") if isinstance(title, dict) else title)


def _text(value: Any) -> str | None:
    return None if value is None or value == "" else str(value)
