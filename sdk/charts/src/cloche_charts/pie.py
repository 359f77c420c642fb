# SPDX-License-Identifier: Apache-2.0
"""Pie charts: label, angle in degrees and radius of each wedge."""

from typing import Any

from matplotlib.patches import Wedge

from . import kind


def read(ax: Any) -> dict[str, Any]:
    return {"elements": [element(a) for a in kind.drawn(ax) if isinstance(a, Wedge)]}


def element(wedge: Any) -> dict[str, Any]:
    angle = abs(float(wedge.theta2) - float(wedge.theta1))
    return {"label": str(wedge.get_label()), "angle": float(f"{angle:.6g}"), "radius": float(wedge.r)}
