# SPDX-License-Identifier: Apache-2.0
"""Contours, as lines or filled: the curves of every level."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.contour import ContourSet

from . import kind
from .axis import Axis, labels, scales
from .limits import Reading
from .scatter import named
from .values import floats, number


def read(ax: Any, reading: Reading) -> dict[str, Any] | None:
    artists = kind.drawn(ax)
    levels, filled, layers = _sets([a for a in artists if isinstance(a, ContourSet)]) or _older(ax, artists)
    if not layers:
        return None
    x, y = Axis(ax, "x"), Axis(ax, "y")
    elements = []
    for index, (level, upper, pieces) in enumerate(layers):
        step = reading.step(sum(len(piece) for piece in pieces), index)
        paths = [_points(piece[::step], x, y) for piece in pieces if len(piece)]
        elements.append({"level": level, "upper": upper, "paths": paths})
    return {
        "type": "contour",
        "filled": filled,
        "levels": levels,
        "elements": elements,
        **labels(x, y),
        **scales(x, y),
    }


Layers = list[tuple[Any, Any, list[Any]]]


def _sets(sets: list[Any]) -> tuple[list[Any] | None, bool, Layers] | None:
    """matplotlib 3.8 and newer: an artist that knows its levels."""
    if not sets:
        return None
    layers: Layers = []
    for one in sets:
        bounds = list(one.levels)
        pairs = list(zip(bounds, bounds[1:])) if one.filled else [(level, None) for level in bounds]
        for (level, upper), path in zip(pairs, one.get_paths()):
            above = None if upper is None else number(upper)
            layers.append((number(level), above, _pieces(path)))
    levels = sorted({float(level) for one in sets for level in one.levels})
    return [number(level) for level in levels], all(bool(one.filled) for one in sets), layers


def _older(ax: Any, artists: list[Any]) -> tuple[list[Any] | None, bool, Layers]:
    """Before 3.8: a collection per level, which has forgotten it."""
    found = [a for a in artists if kind.is_region(a, ax) or type(a) is LineCollection]
    if not found or len(found) != len(artists) or any(c for c in ax.containers):
        return None, False, []
    filled = all(isinstance(a, PathCollection) and len(a.get_facecolor()) for a in found)
    return None, filled, [(None, None, [p for path in a.get_paths() for p in _pieces(path)]) for a in found]


def _pieces(path: Any) -> list[Any]:
    """The separate curves of a path."""
    if path.codes is None:
        return [path.vertices]
    starts = numpy.flatnonzero(path.codes == path.MOVETO)
    closing = path.codes == path.CLOSEPOLY
    vertices = path.vertices.copy()
    for end in numpy.flatnonzero(closing).tolist():
        vertices[end] = vertices[starts[starts <= end][-1]]  # the vertex of a closing code has no meaning
    return [piece for piece in numpy.split(vertices, starts[1:]) if len(piece)]


def _points(piece: Any, x: Axis, y: Axis) -> list[list[Any]]:
    return [list(point) for point in zip(named(floats(piece[:, 0]), x), named(floats(piece[:, 1]), y))]
