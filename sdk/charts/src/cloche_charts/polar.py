# SPDX-License-Identifier: Apache-2.0
"""Polar axes: points as angle and radius, and where angle 0 is."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.container import BarContainer
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon

from . import kind, line
from .axis import Axis, labels, scales
from .bar import group
from .limits import Reading
from .values import floats, plain


def read(ax: Any, reading: Reading) -> dict[str, Any] | None:
    name, elements = _bars(ax, reading) or _shapes(ax, reading)
    if not elements:
        return None
    x, y = Axis(ax, "x"), Axis(ax, "y")
    return {
        "type": "polar",
        "of": name,
        "theta_offset": float(ax.get_theta_offset()),
        "theta_direction": float(ax.get_theta_direction()),
        "elements": elements,
        **labels(x, y),
        **scales(x, y),
    }


def _bars(ax: Any, reading: Reading) -> tuple[str, list[dict[str, Any]]] | None:
    containers = [c for c in ax.containers if isinstance(c, BarContainer)]
    if not containers:
        return None
    return "bar", [_bar_element(c, index, reading) for index, c in enumerate(containers)]


def _bar_element(container: Any, index: int, reading: Reading) -> dict[str, Any]:
    patches = container.patches[:: reading.step(len(container.patches), index)]
    rows = [(p.get_x(), p.get_width(), p.get_y(), p.get_height()) for p in patches]
    table = numpy.asarray(rows, dtype=float).reshape(-1, 4)
    angles, tops = floats(table[:, 0] + table[:, 1] / 2), floats(table[:, 2] + table[:, 3])
    return {
        "label": group(container),
        "points": [list(point) for point in zip(angles, tops)],
        "widths": floats(table[:, 1]),
        "bases": floats(table[:, 2]),
    }


def _shapes(ax: Any, reading: Reading) -> tuple[str, list[dict[str, Any]]]:
    artists = [a for a in kind.drawn(ax) if not kind.is_empty(a)]
    names = {"area": (Polygon, PolyCollection), "line": (Line2D,), "scatter": (PathCollection,)}
    name = next((n for n in ("line", "scatter", "area") if any(isinstance(a, names[n]) for a in artists)), "line")
    chosen = [a for a in artists if isinstance(a, names[name])]
    return name, [_element(a, index, reading) for index, a in enumerate(chosen)]


def _element(artist: Any, index: int, reading: Reading) -> dict[str, Any]:
    table = _table(artist)
    kept = table[:: reading.step(len(table), index)]
    label = str(artist.get_label())
    automatic = line.AUTOMATIC.fullmatch(label) if isinstance(artist, Line2D) else None
    return {
        "label": f"Line {automatic[1]}" if automatic else label,
        "points": [list(point) for point in zip(floats(kept[:, 0]), floats(kept[:, 1]))],
        "widths": None,
        "bases": None,
    }


def _table(artist: Any) -> Any:
    if isinstance(artist, Line2D):
        return numpy.column_stack([plain(column) for column in artist.get_data(orig=False)])
    if isinstance(artist, Polygon):
        return numpy.asarray(artist.get_xy(), dtype=float)
    if isinstance(artist, PolyCollection):
        return numpy.concatenate([path.vertices for path in artist.get_paths()])
    return plain(artist.get_offsets())
