# SPDX-License-Identifier: Apache-2.0
"""What the original's types cannot say of an axes: the `cloche` part of its chart.

The chart's own type stays what every client knows (a histogram is a `bar`, an image `unknown`); this is beside it. A
detail that cannot be read is left out, and the chart stays as it is.
"""

from __future__ import annotations

from typing import Any, Callable, Optional

from . import area, contour, errors, heatmap, histogram, kind, polar, spatial
from .limits import Reading

Reader = Callable[[Any, Reading], Optional[dict[str, Any]]]

# Which modules are asked, by the chart's own type; the first that answers counts.
ASKED: dict[str, tuple[Reader, ...]] = {
    "bar": (errors.read, histogram.read),
    "unknown": (contour.read, heatmap.read, errors.read, histogram.read, area.read),
}


def of(ax: Any, name: str, reading: Reading) -> dict[str, Any] | None:
    for reader in _readers(ax, name):
        try:
            found = reader(ax, reading)
        except Exception:
            found = None
        sampled = reading.told()
        if found is not None:
            return {**found, "sampled": sampled} if sampled else found
    return None


def _readers(ax: Any, name: str) -> tuple[Reader, ...]:
    if ax.name == "polar":
        return (polar.read,)
    if ax.name == "3d":
        return (spatial.read,)
    return () if kind.is_colorbar(ax) else ASKED.get(name, ())
