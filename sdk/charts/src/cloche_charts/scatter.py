# SPDX-License-Identifier: Apache-2.0
"""Scatter charts: one element per collection, dates and categories under their own names."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.collections import PathCollection

from . import kind
from .axis import Axis, labels, scales
from .limits import Reading
from .values import floats


def read(ax: Any, reading: Reading) -> dict[str, Any]:
    x, y = Axis(ax, "x"), Axis(ax, "y")
    collections = [a for a in kind.drawn(ax) if isinstance(a, PathCollection)]
    elements = [element(c, x, y, index, reading) for index, c in enumerate(collections)]
    return {"elements": elements, **labels(x, y), **scales(x, y)}


def element(collection: Any, x: Axis, y: Axis, index: int, reading: Reading) -> dict[str, Any]:
    offsets: Any = numpy.ma.asarray(collection.get_offsets(), dtype=float)
    offsets = offsets[:: reading.step(len(offsets), index)]
    xs, ys = named(floats(offsets[:, 0]), x), named(floats(offsets[:, 1]), y)
    return {"label": str(collection.get_label()), "points": [list(point) for point in zip(xs, ys)]}


def named(places: list[Any], axis: Axis) -> list[Any]:
    """Places as what they stand for; plain numbers stay."""
    if axis.is_datetime:
        return [None if place is None else axis.moment(place) for place in places]
    categories = axis.categories()
    if not categories:
        return places
    return [categories.get(place, place) for place in places]
