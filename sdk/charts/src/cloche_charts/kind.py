# SPDX-License-Identifier: Apache-2.0
"""Which type of chart an axes holds, judged by the artists drawn into it."""

from __future__ import annotations

from typing import Any

from matplotlib.collections import Collection, PathCollection
from matplotlib.container import BarContainer
from matplotlib.contour import ContourSet
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch, Rectangle, Shadow, Wedge
from matplotlib.text import Text

from . import box

OLD_CONTOURS = not issubclass(ContourSet, Collection)


def of(ax: Any) -> str:
    if ax.name == "3d":
        return "unknown"
    artists = drawn(ax)
    if all(isinstance(a, Line2D) for a in artists):
        return "box_and_whisker" if box.unfilled(artists) else "line"
    if all(isinstance(a, (PathPatch, Line2D)) for a in artists):
        return "box_and_whisker" if box.filled(artists) else "unknown"
    rest = [a for a in artists if not is_guide(a) and not is_empty(a)]
    for family, name in ((PathCollection, "scatter"), (Wedge, "pie"), (Rectangle, "bar")):
        if all(isinstance(a, family) for a in rest):
            return "unknown" if any(is_region(a, ax) for a in rest) else name
    return "unknown"


def drawn(ax: Any) -> list[Any]:
    """The artists that carry data: no text, no shadows, no error bars of bars, no stand-ins for the legend."""
    whiskers = {id(part) for container in ax.containers for part in _error_parts(container)}
    bars = {id(bar) for container in ax.containers for bar in container if isinstance(container, BarContainer)}
    return [
        a
        for a in ax._children
        if not isinstance(a, (Text, Shadow)) and id(a) not in whiskers and not (_is_nothing(a) and id(a) not in bars)
    ]


def _is_nothing(artist: Any) -> bool:
    """A rectangle without size: drawn only to have an entry in the legend."""
    return isinstance(artist, Rectangle) and artist.get_width() == 0 and artist.get_height() == 0


def _error_parts(container: Any) -> list[Any]:
    if not isinstance(container, BarContainer) or container.errorbar is None:
        return []
    data_line, caps, bars = container.errorbar
    return [data_line, *caps, *bars]


def is_colorbar(ax: Any) -> bool:
    return hasattr(ax, "_colorbar") or ax.get_label() == "<colorbar>"


def is_region(artist: Any, ax: Any) -> bool:
    """A collection of shapes at places of their own, as contourf() draws before matplotlib 3.8: no points."""
    if not OLD_CONTOURS or not isinstance(artist, PathCollection):
        return False
    return bool(artist.get_transform().contains_branch(ax.transData))


def is_empty(artist: Any) -> bool:
    return isinstance(artist, Line2D) and len(artist.get_xdata(orig=False)) == 0


def is_guide(artist: Any) -> bool:
    """A straight line of two points across or up: an axis line, a grid line, a threshold."""
    if not isinstance(artist, Line2D):
        return False
    x, y = artist.get_xdata(orig=False), artist.get_ydata(orig=False)
    if len(x) != 2 or len(y) != 2:
        return False
    return bool(x[0] == x[1] or y[0] == y[1])
