# SPDX-License-Identifier: Apache-2.0
"""Error bars: points with how far their errors reach, drawn by errorbar() or on top of bars."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.container import BarContainer, ErrorbarContainer

from .axis import Axis, labels, scales
from .bar import group, is_horizontal
from .limits import Reading
from .line import AUTOMATIC
from .scatter import named
from .values import floats, number, plain


def read(ax: Any, reading: Reading) -> dict[str, Any] | None:
    owners = [c for c in ax.containers if isinstance(c, ErrorbarContainer)]
    bars = [c for c in ax.containers if isinstance(c, BarContainer) and c.errorbar is not None]
    owned = {id(c.errorbar) for c in bars}
    plain = [(c, None) for c in owners if id(c) not in owned]
    found = [*plain, *((c.errorbar, c) for c in bars)]
    if not found:
        return None
    x, y = Axis(ax, "x"), Axis(ax, "y")
    elements = [element(errors, bar, index, x, y, reading) for index, (errors, bar) in enumerate(found)]
    return {"type": "error_bar", "elements": elements, **labels(x, y), **scales(x, y)}


def element(errors: Any, bar: Any, index: int, x: Axis, y: Axis, reading: Reading) -> dict[str, Any]:
    spans = _spans(errors)
    points = _points(errors, bar, spans)
    step = reading.step(len(points), index)
    label = group(bar) if bar is not None else str(errors.get_label())
    automatic = AUTOMATIC.fullmatch(label)
    kept = points[::step]
    return {
        "label": f"Line {automatic[1]}" if automatic else label,
        "points": [list(p) for p in zip(named(floats(kept[:, 0]), x), named(floats(kept[:, 1]), y))],
        "x_errors": _reach(points, spans.get(0), 0, step),
        "y_errors": _reach(points, spans.get(1), 1, step),
    }


def _spans(errors: Any) -> dict[int, Any]:
    """The ends of the bars along x (0) and y (1); matplotlib draws those along x first."""
    axes = [axis for axis, there in enumerate((errors.has_xerr, errors.has_yerr)) if there]
    return {axis: [numpy.asarray(s, dtype=float) for s in c.get_segments()] for axis, c in zip(axes, errors.lines[2])}


def _points(errors: Any, bar: Any, spans: dict[int, Any]) -> Any:
    line = errors.lines[0]
    if line is not None:
        return numpy.column_stack([plain(column) for column in line.get_data(orig=False)])
    if bar is not None:
        return numpy.array([_tip(patch, is_horizontal(bar)) for patch in bar.patches], dtype=float)
    middles = [[_middle(s, axis) for s in found] for axis, found in spans.items()]
    return numpy.array(middles[0] if middles else [], dtype=float).reshape(-1, 2)


def _tip(patch: Any, flat: bool) -> tuple[float, float]:
    """Where a bar ends."""
    if flat:
        return patch.get_x() + patch.get_width(), patch.get_y() + patch.get_height() / 2
    return patch.get_x() + patch.get_width() / 2, patch.get_y() + patch.get_height()


def _middle(span: Any, _axis: int) -> Any:
    return span.mean(axis=0) if len(span) else numpy.array([numpy.nan, numpy.nan])


def _reach(points: Any, spans: Any, axis: int, step: int) -> list[list[float | None]] | None:
    """How far below and above each point its bar goes. Bars may be fewer than points (errorevery, missing values)."""
    if spans is None:
        return None
    across = 1 - axis
    by_place: dict[tuple[float, int], Any] = {}
    for span in spans:
        if len(span):
            by_place.setdefault((float(span[0, across]), 0), []).append(span[:, axis])
    reach: list[list[float | None]] = []
    for point in points[::step]:
        candidates = by_place.get((float(point[across]), 0), [])
        ends = next((e for e in candidates if e.min() <= point[axis] <= e.max()), None)
        if ends is None:
            reach.append([None, None])
        else:
            reach.append([number(point[axis] - ends.min()), number(ends.max() - point[axis])])
    return reach
