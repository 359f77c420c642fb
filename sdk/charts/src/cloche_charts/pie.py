# SPDX-License-Identifier: Apache-2.0
"""Pie charts: label, angle in degrees and radius of each wedge."""

from __future__ import annotations

from typing import Any

from matplotlib.patches import Wedge

from . import kind
from .limits import Reading


def read(ax: Any, _reading: Reading) -> dict[str, Any]:
    return {"elements": [element(a) for a in kind.drawn(ax) if isinstance(a, Wedge)]}


def element(wedge: Any) -> dict[str, Any]:
    angle = abs(float(wedge.theta2) - float(wedge.theta1))
    return {"label": str(wedge.get_label()), "angle": float(f"{angle:.6g}"), "radius": float(wedge.r)}
