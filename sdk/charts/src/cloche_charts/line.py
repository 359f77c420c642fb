# SPDX-License-Identifier: Apache-2.0
"""Line charts: every line's points as they were given, before matplotlib's unit conversion."""

import re
from typing import Any

from matplotlib.lines import Line2D

from . import kind
from .axis import Axis, labels, scales
from .values import pairs

AUTOMATIC = re.compile(r"_child(\d+)")


def read(ax: Any) -> dict[str, Any]:
    x, y = Axis(ax, "x"), Axis(ax, "y")
    lines = [a for a in kind.drawn(ax) if isinstance(a, Line2D) and not kind.is_guide(a)]
    return {"elements": [element(line, x, y) for line in lines], **labels(x, y), **scales(x, y)}


def element(line: Any, x: Axis, y: Axis) -> dict[str, Any]:
    label = str(line.get_label())
    automatic = AUTOMATIC.fullmatch(label)
    points = pairs(x.original(line.get_xdata(orig=True)), y.original(line.get_ydata(orig=True)))
    return {"label": f"Line {automatic[1]}" if automatic else label, "points": points}
