# SPDX-License-Identifier: Apache-2.0
"""Histograms: bars that touch on an axis of numbers or dates, stairs, and the outlines that hist() draws.

matplotlib does not say which bars hist() drew. Bars that stand side by side without a gap, on an axis without
names, are one in all but name.
"""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.container import BarContainer
from matplotlib.patches import Polygon, StepPatch

from . import kind
from .axis import Axis, labels, scales
from .bar import group, is_horizontal
from .limits import Reading
from .values import floats

Bins = list[list[Any]]


def read(ax: Any, reading: Reading) -> dict[str, Any] | None:
    x, y = Axis(ax, "x"), Axis(ax, "y")
    found = _bars(ax, x, y) or _outlines(ax)
    if found is None:
        return None
    flat, elements = found
    base = y if flat else x
    for index, element in enumerate(elements):
        bins = element["bins"][:: reading.step(len(element["bins"]), index)]
        if base.is_datetime:
            bins = [[base.moment(low), base.moment(high), value] for low, high, value in bins]
        element["bins"] = bins
    orientation = "horizontal" if flat else "vertical"
    return {"type": "histogram", "orientation": orientation, "elements": elements, **labels(x, y), **scales(x, y)}


def _bars(ax: Any, x: Axis, y: Axis) -> tuple[bool, list[dict[str, Any]]] | None:
    containers = [c for c in ax.containers if isinstance(c, BarContainer)]
    if not containers:
        return None
    flat = is_horizontal(containers[0])
    base = y if flat else x
    if base.categories() or base.is_named_by_hand() or any(is_horizontal(c) != flat for c in containers):
        return None
    elements = []
    for container in containers:
        bins = _touching(container, flat)
        if bins is None:
            return None
        elements.append({"label": _label(container), "bins": bins})
    return flat, elements


def _label(container: Any) -> str:
    """hist() gives its label to the first of its bars."""
    label = str(container.patches[0].get_label())
    return group(container) if label.startswith("_") or not label else label


def _touching(container: Any, flat: bool) -> Bins | None:
    """The bins of bars without gaps: at least two, each beginning where the one before it ends."""
    if flat:
        rows = [(p.get_y(), p.get_y() + p.get_height(), p.get_width()) for p in container.patches]
    else:
        rows = [(p.get_x(), p.get_x() + p.get_width(), p.get_height()) for p in container.patches]
    table = numpy.asarray(rows, dtype=float)
    if len(table) < 2 or not (table[:, 0] < table[:, 1]).all():
        return None
    widths = table[:, 1] - table[:, 0]
    if not (numpy.abs(table[1:, 0] - table[:-1, 1]) <= widths.min() * 1e-6).all():
        return None
    return _bins(table[:, 0], table[:, 1], table[:, 2])


def _outlines(ax: Any) -> tuple[bool, list[dict[str, Any]]] | None:
    """Stairs and the polygons of histtype='step': nothing else may be drawn but guides."""
    artists = [a for a in kind.drawn(ax) if not kind.is_guide(a)]
    if not artists:
        return None
    if all(isinstance(a, StepPatch) for a in artists):
        flat = artists[0].orientation == "horizontal"
        return flat, [{"label": str(a.get_label()), "bins": _stairs(a)} for a in artists]
    if all(isinstance(a, Polygon) for a in artists):
        shapes = [_steps(numpy.asarray(a.get_xy(), dtype=float)) for a in artists]
        if all(shape is not None for shape in shapes):
            return False, [{"label": str(a.get_label()), "bins": shape} for a, shape in zip(artists, shapes)]
    return None


def _stairs(patch: Any) -> Bins:
    values, edges, _base = patch.get_data()
    return _bins(edges[:-1], edges[1:], values)


def _steps(points: Any) -> Bins | None:
    """The bins of an outline that goes up, right, up or down, right, ... and back; None if it is another shape."""
    steps = numpy.diff(points, axis=0)
    rises = int(numpy.argmax(steps[:, 0] < 0)) if (steps[:, 0] < 0).any() else len(steps)
    steps, points = steps[:rises], points[: rises + 1]
    if len(steps) < 3 or (steps[0::2, 0] != 0).any() or (steps[1::2, 1] != 0).any():
        return None
    tops = points[1:-1:2]
    ends = points[2::2]
    count = min(len(tops), len(ends))
    return _bins(tops[:count, 0], ends[:count, 0], tops[:count, 1])


def _bins(low: Any, high: Any, values: Any) -> Bins:
    columns = [floats(numpy.ma.asarray(column, dtype=float)) for column in (low, high, values)]
    return [list(row) for row in zip(*columns)]
