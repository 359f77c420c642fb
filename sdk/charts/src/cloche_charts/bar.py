# SPDX-License-Identifier: Apache-2.0
"""Bar charts and histograms: one element per bar, grouped by the call that drew them.

For horizontal bars x_label stays the label of the categories and y_label that of the values.
"""

from __future__ import annotations

import re
from typing import Any

from matplotlib.container import BarContainer

from .axis import Axis, labels
from .limits import Reading
from .values import number

AUTOMATIC = re.compile(r"_container(\d+)")


def read(ax: Any, reading: Reading) -> dict[str, Any]:
    containers = [c for c in ax.containers if isinstance(c, BarContainer)]
    sideways = bool(containers) and all(is_horizontal(c) for c in containers)
    base, value = (Axis(ax, "y"), Axis(ax, "x")) if sideways else (Axis(ax, "x"), Axis(ax, "y"))
    bars = [(group(c), patch, is_horizontal(c)) for c in containers for patch in c.patches]
    step = reading.step(len(bars), 0)
    bars = bars[::step]
    names = base.names([middle(patch, flat) for _, patch, flat in bars])
    elements = [
        {"label": name, "group": owner, "value": size(patch, flat)} for name, (owner, patch, flat) in zip(names, bars)
    ]
    return {"elements": elements, **labels(base, value)}


def is_horizontal(container: Any) -> bool:
    return bool(container.orientation == "horizontal")


def group(container: Any) -> str:
    label = str(container.get_label())
    automatic = AUTOMATIC.fullmatch(label)
    return f"Group {automatic[1]}" if automatic else label


def middle(patch: Any, flat: bool) -> float:
    if flat:
        return float(patch.get_y() + patch.get_height() / 2)
    return float(patch.get_x() + patch.get_width() / 2)


def size(patch: Any, flat: bool) -> float | None:
    return number(patch.get_width() if flat else patch.get_height())
