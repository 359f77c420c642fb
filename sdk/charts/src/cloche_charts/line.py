# SPDX-License-Identifier: Apache-2.0
"""Line charts: every line's points as they were given, before matplotlib's unit conversion."""

from __future__ import annotations

import re
from typing import Any

from matplotlib.lines import Line2D

from . import kind
from .axis import Axis, labels, scales
from .limits import Reading
from .values import pairs, thin

AUTOMATIC = re.compile(r"_child(\d+)")


def read(ax: Any, reading: Reading) -> dict[str, Any]:
    x, y = Axis(ax, "x"), Axis(ax, "y")
    lines = [a for a in kind.drawn(ax) if isinstance(a, Line2D) and not kind.is_guide(a)]
    return {"elements": elements(lines, x, y, reading), **labels(x, y), **scales(x, y)}


def elements(lines: list[Any], x: Axis, y: Axis, reading: Reading, what: str = "points") -> list[dict[str, Any]]:
    steps = (reading.step(len(line.get_xdata(orig=False)), index, what) for index, line in enumerate(lines))
    return [element(line, x, y, step) for line, step in zip(lines, steps)]


def element(line: Any, x: Axis, y: Axis, step: int = 1) -> dict[str, Any]:
    label = str(line.get_label())
    automatic = AUTOMATIC.fullmatch(label)
    xs, ys = thin(line.get_xdata(orig=True), step), thin(line.get_ydata(orig=True), step)
    points = pairs(x.original(xs), y.original(ys))
    return {"label": f"Line {automatic[1]}" if automatic else label, "points": points}
