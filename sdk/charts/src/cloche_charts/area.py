# SPDX-License-Identifier: Apache-2.0
"""Areas: what fill_between() and stackplot() fill, and the lines beside them."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D

from . import kind, line
from .axis import Axis, labels, scales
from .limits import Reading
from .scatter import named
from .values import floats


def read(ax: Any, reading: Reading) -> dict[str, Any] | None:
    artists = [a for a in kind.drawn(ax) if not kind.is_guide(a)]
    areas = [a for a in artists if isinstance(a, PolyCollection)]
    if not areas or not all(isinstance(a, (PolyCollection, Line2D)) for a in artists):
        return None
    shapes = [_between(a) for a in areas]
    if any(flat is None for flat, _ in shapes) or len({flat for flat, _ in shapes}) != 1:
        return None
    flat = bool(shapes[0][0])
    x, y = Axis(ax, "x"), Axis(ax, "y")
    tables = [table for _, table in shapes]
    base, value = (y, x) if flat else (x, y)
    lines = [a for a in artists if isinstance(a, Line2D)]
    return {
        "type": "area",
        "orientation": "horizontal" if flat else "vertical",
        "stacked": _stacked(tables),
        "elements": [
            element(a, table[:: reading.step(len(table), index)], base, value)
            for index, (a, table) in enumerate(zip(areas, tables))
        ],
        "lines": line.elements(lines, x, y, reading, "lines"),
        **labels(x, y),
        **scales(x, y),
    }


def element(collection: Any, table: Any, base: Axis, value: Axis) -> dict[str, Any]:
    places = named(floats(table[:, 0]), base)
    lows, highs = named(floats(table[:, 1]), value), named(floats(table[:, 2]), value)
    return {"label": str(collection.get_label()), "points": [list(row) for row in zip(places, lows, highs)]}


def _between(collection: Any) -> tuple[bool | None, Any]:
    """Whether it lies, and its rows of position, low, high; None if nothing was filled between two curves."""
    found = [_polygon(path.vertices) for path in collection.get_paths()]
    if not found or any(flat is None for flat, _ in found):
        return None, None
    return found[0][0], numpy.concatenate([table for _, table in found])


def _polygon(points: Any) -> tuple[bool | None, Any]:
    """fill_between draws: one end, n points there, the other end, n points back, and the first again."""
    count = (len(points) - 3) // 2
    if count < 1 or len(points) != 2 * count + 3:
        return None, None
    there, back = points[1 : count + 1], points[count + 2 : 2 * count + 2][::-1]
    for axis in (0, 1):
        if numpy.array_equal(there[:, axis], back[:, axis], equal_nan=True):
            ends = numpy.sort(numpy.column_stack((there[:, 1 - axis], back[:, 1 - axis])), axis=1)
            return axis == 1, numpy.column_stack((there[:, axis], ends))
    return None, None


def _stacked(tables: list[Any]) -> bool:
    """Does each begin where the one before it ends?"""
    if len(tables) < 2 or len({len(table) for table in tables}) != 1:
        return False
    return all(numpy.allclose(a[:, 2], b[:, 1], equal_nan=True) for a, b in zip(tables, tables[1:]))
