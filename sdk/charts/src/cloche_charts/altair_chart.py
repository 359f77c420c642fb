# SPDX-License-Identifier: Apache-2.0
"""altair charts by their own data: every mark with its channels and the columns they name.

Read from the chart's Vega-Lite form; layers and charts side by side are taken apart into their marks. What Vega
computes while it draws (transforms, aggregates) is told by name, not computed here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

from .axis_text import unit_of
from .limits import Reading
from .table import cell

PARTS = ("layer", "hconcat", "vconcat", "concat")
DEEPEST = 20


def read(chart: Any, reading: Reading) -> dict[str, Any]:
    altair = sys.modules.get("altair")
    rows = altair.data_transformers.disable_max_rows() if altair is not None else nullcontext()
    with rows:
        return from_spec(chart.to_dict(), reading)


def from_spec(spec: dict[str, Any], reading: Reading) -> dict[str, Any]:
    """The chart of a Vega-Lite specification."""
    datasets = spec.get("datasets") or {}
    marks = list(_marks(spec, {}, 0))
    if not marks:
        return {}
    elements = [element(mark, index, datasets, reading) for index, mark in enumerate(marks)]
    x_label, y_label = (_label(elements[0]["encoding"].get(name)) for name in ("x", "y"))
    detail = {
        "type": "altair",
        "elements": elements,
        **{"x_label": x_label, "y_label": y_label, "x_unit": unit_of(x_label), "y_unit": unit_of(y_label)},
    }
    sampled = reading.told()
    if sampled:
        detail["sampled"] = sampled
    return {"type": "unknown", "title": _title(spec.get("title")), "elements": [], "cloche": detail}


def _marks(spec: dict[str, Any], above: dict[str, Any], depth: int) -> Iterator[dict[str, Any]]:
    """The single marks of a specification, each with the data and channels it has from what it is part of."""
    here = {
        "data": spec.get("data", above.get("data")),
        "encoding": {**(above.get("encoding") or {}), **(spec.get("encoding") or {})},
        "title": spec.get("title", above.get("title")),
    }
    if "mark" in spec:
        yield {**here, "mark": spec["mark"]}
    elif depth < DEEPEST:
        inner = spec.get("spec")
        for part in [*([inner] if isinstance(inner, dict) else []), *(p for name in PARTS for p in spec.get(name, []))]:
            yield from _marks(part, here, depth + 1)


def element(mark: dict[str, Any], index: int, datasets: dict[str, Any], reading: Reading) -> dict[str, Any]:
    kind = mark["mark"]
    encoding = {name: _channel(value) for name, value in mark["encoding"].items() if isinstance(value, dict)}
    data = mark["data"] if isinstance(mark["data"], dict) else {}
    rows = datasets.get(str(data.get("name")), data.get("values"))
    rows = rows if isinstance(rows, list) else []
    rows = rows[:: reading.step(len(rows), index)]
    fields = sorted({channel["field"] for channel in encoding.values() if channel["field"]})
    return {
        "label": _title(mark["title"]) or f"mark {index}",
        "mark": str(kind.get("type") if isinstance(kind, dict) else kind),
        "encoding": encoding,
        "columns": {
            field: [cell(row.get(field)) for row in rows if isinstance(row, dict)]
            for field in fields
            if any(isinstance(row, dict) and field in row for row in rows[:1])
        },
    }


def _channel(value: dict[str, Any]) -> dict[str, Any]:
    names = {name: value.get(name) for name in ("field", "type", "title", "aggregate")}
    return {**{name: _title(text) for name, text in names.items()}, "bin": bool(value.get("bin"))}


def _label(channel: dict[str, Any] | None) -> str | None:
    return (channel["title"] or channel["field"]) if channel else None


def _title(value: Any) -> str | None:
    if isinstance(value, dict):
        value = value.get("text")
    if isinstance(value, list):
        value = " ".join(map(str, value))
    return None if value is None or value == "" else str(value)
