# SPDX-License-Identifier: Apache-2.0
"""Box-and-whisker charts, filled or not, upright or lying.

matplotlib draws a box as loose artists in a fixed order: the box (a patch, or a closed line), the low and the high
whisker, two caps, the median, perhaps a mean, the fliers. A whisker runs from the quartile to the end, so
the two whiskers give quartiles and extremes exactly, also when one of them has no length.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy
from matplotlib import rcParams
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch

from . import kind
from .axis import Axis, labels
from .limits import Reading
from .values import number

Array = Any  # numpy's, whose type parameters differ between its versions


@dataclass
class Box:
    """One box: its corners, and the lines drawn after it."""

    corners: Array
    lines: list[Any] = field(default_factory=list)

    @property
    def low(self) -> Array:
        return self.corners.min(axis=0)

    @property
    def high(self) -> Array:
        return self.corners.max(axis=0)

    @property
    def centre(self) -> Array:
        return (self.low + self.high) / 2

    def value_axis(self) -> int | None:
        """1 if upright, 0 if lying, None if the two lines that follow are no whiskers of this box."""
        if len(self.lines) < 3 or any(len(points(line)) != 2 for line in self.lines[:2]):
            return None
        return next((axis for axis in (1, 0) if self._fits(axis)), None)

    def _fits(self, axis: int) -> bool:
        across = 1 - axis
        width = self.high[across] - self.low[across]
        if not width > 0:
            return False
        ends = numpy.vstack([points(line) for line in self.lines[:2]])
        if not numpy.allclose(ends[:, across], self.centre[across], rtol=1e-9, atol=width * 1e-6):
            return False
        quartiles = ends[[0, 2], axis]
        span = max(self.high[axis] - self.low[axis], abs(self.high[axis]) * 1e-9, 1e-300)
        inside = (quartiles >= self.low[axis] - span * 1e-6) & (quartiles <= self.high[axis] + span * 1e-6)
        return bool(inside.all() and quartiles[0] <= quartiles[1])


def points(line: Any) -> Array:
    return numpy.column_stack((line.get_xdata(orig=False), line.get_ydata(orig=False))).astype(float)


def filled(artists: list[Any]) -> list[Box]:
    """The boxes drawn as patches."""
    return _boxes(artists, lambda a: _shape(a.get_path()) if isinstance(a, PathPatch) else None)


def _shape(path: Any) -> Array:
    """The corners of a path, without the vertex of the code that closes it: matplotlib 3.5 leaves that at 0, 0."""
    return path.vertices if path.codes is None else path.vertices[path.codes != path.CLOSEPOLY]


def unfilled(artists: list[Any]) -> list[Box]:
    """The boxes drawn as closed lines."""
    return _boxes(artists, lambda a: _outline(a) if isinstance(a, Line2D) else None)


def _outline(line: Any) -> Array | None:
    """Corners of a line that closes in on itself along the axes (5 points, 11 with a notch)."""
    shape = points(line)
    if len(shape) not in (5, 11) or not numpy.array_equal(shape[0], shape[-1]):
        return None
    if len(shape) == 5:
        steps = numpy.abs(numpy.diff(shape, axis=0))
        if not (steps.min(axis=1) == 0).all():
            return None
    return shape


def _boxes(artists: list[Any], corners_of: Any) -> list[Box]:
    found: list[Box] = []
    for artist in artists:
        corners = corners_of(artist)
        if corners is not None and len(corners) >= 4:
            found.append(Box(numpy.asarray(corners, dtype=float)))
        elif found and isinstance(artist, Line2D):
            found[-1].lines.append(artist)
    return [box for box in found if box.value_axis() is not None]


def read(ax: Any, reading: Reading) -> dict[str, Any]:
    artists = kind.drawn(ax)
    boxes = filled(artists) or unfilled(artists)
    reading.check()
    lying = boxes[0].value_axis() == 0
    base, value = (Axis(ax, "y"), Axis(ax, "x")) if lying else (Axis(ax, "x"), Axis(ax, "y"))
    names = base.names([float(box.centre[1 if lying else 0]) for box in boxes])
    elements = [element(name, box) for name, box in zip(names, boxes)]
    return {"elements": elements, **labels(base, value)}


def element(name: str, box: Box) -> dict[str, Any]:
    axis = box.value_axis()
    assert axis is not None
    low_whisker, high_whisker, *rest = (points(line)[:, axis] for line in box.lines)
    (first, least), (third, most) = low_whisker, high_whisker
    return {
        "label": name,
        "min": number(least),
        "first_quartile": number(first),
        "median": _median(rest, least, most),
        "third_quartile": number(third),
        "max": number(most),
        "outliers": _outliers(box, axis, least, most),
    }


def _median(rest: list[Any], least: float, most: float) -> float | None:
    """The first line across that is not a cap."""
    level = [values for values in rest if len(values) == 2 and values[0] == values[1]]
    if len(level) >= 3 and level[0][0] == least and level[1][0] == most:
        level = level[2:]
    return number(level[0][0]) if level else None


def _outliers(box: Box, axis: int, least: float, most: float) -> list[float]:
    """Points beyond the whiskers: the last line of markers, unless that is the mark of the mean."""
    marks = [line for line in box.lines[2:] if line.get_linestyle() in ("None", "none", "", " ")]
    if not marks or (len(marks) == 1 and _is_mean(marks[0])):
        return []
    values = points(marks[-1])[:, axis]
    return [float(v) for v in values if v < least or v > most]


def _is_mean(line: Any) -> bool:
    mean, flier = rcParams["boxplot.meanprops.marker"], rcParams["boxplot.flierprops.marker"]
    return len(points(line)) == 1 and mean != flier and line.get_marker() == mean
