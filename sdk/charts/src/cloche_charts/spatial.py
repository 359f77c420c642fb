# SPDX-License-Identifier: Apache-2.0
"""Points and lines in three dimensions."""

from __future__ import annotations

from typing import Any

import numpy

from .axis_text import unit_of
from .limits import Reading
from .line import AUTOMATIC
from .values import floats


def read(ax: Any, reading: Reading) -> dict[str, Any] | None:
    clouds = [a for a in ax._children if hasattr(a, "_offsets3d")]
    lines = [a for a in ax._children if hasattr(a, "get_data_3d")]
    if not clouds and not lines:
        return None
    return {
        "type": "scatter_3d" if clouds else "line_3d",
        "elements": [_element(a, a._offsets3d, i, "points", reading) for i, a in enumerate(clouds)],
        "lines": [_element(a, a.get_data_3d(), i, "lines", reading) for i, a in enumerate(lines)],
        **{f"{name}_label": getattr(ax, f"get_{name}label")() or None for name in "xyz"},
        **{f"{name}_unit": unit_of(getattr(ax, f"get_{name}label")()) for name in "xyz"},
    }


def _element(artist: Any, columns: Any, index: int, what: str, reading: Reading) -> dict[str, Any]:
    """Masked points are left out by matplotlib itself; the columns may be of different lengths only if broken."""
    step = reading.step(min(len(column) for column in columns), index, what)
    cells = [floats(numpy.ma.asarray(column, dtype=float)[::step]) for column in columns]
    label = str(artist.get_label())
    automatic = AUTOMATIC.fullmatch(label) if what == "lines" else None
    return {"label": f"Line {automatic[1]}" if automatic else label, "points": [list(p) for p in zip(*cells)]}
