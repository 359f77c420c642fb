# SPDX-License-Identifier: Apache-2.0
"""The chart of a whole matplotlib figure: that of its one axes, or a superchart of several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from . import bar, box, detail, kind, line, pie, scatter
from .limits import Reading

READERS = {
    "line": line.read,
    "scatter": scatter.read,
    "bar": bar.read,
    "pie": pie.read,
    "box_and_whisker": box.read,
}


def read(figure: Any, reading: Reading) -> dict[str, Any]:
    axes = list(_all_axes(figure.axes, set()))
    if not any(ax.has_data() for ax in axes):
        return {}
    if len(axes) == 1:
        return axes_chart(axes[0], reading)
    parts = [axes_chart(ax, reading) for ax in axes]
    return {"type": "superchart", "title": _suptitle(figure), "elements": parts}


def _all_axes(axes: Iterable[Any], seen: set[int]) -> Iterator[Any]:
    """The figure's axes, each followed by the insets drawn inside it."""
    for ax in axes:
        if id(ax) in seen:
            continue
        seen.add(id(ax))
        yield ax
        yield from _all_axes([c for c in ax.child_axes if type(c).__name__ != "SecondaryAxis"], seen)


def axes_chart(ax: Any, reading: Reading) -> dict[str, Any]:
    """The chart of one axes; of type `unknown` if it cannot be recognised or read."""
    reading.check()
    try:
        name = kind.of(ax)
    except Exception:
        name = "unknown"
    chart: dict[str, Any] = {"type": name, "title": ax.get_title() or None, "elements": []}
    if name in READERS:
        try:
            chart.update(READERS[name](ax, reading))
        except Exception:
            chart["type"] = "unknown"
    sampled = reading.told()
    more = detail.of(ax, chart["type"], reading)
    if more is None and sampled:
        more = {"type": chart["type"], "sampled": sampled}
    if more is not None:
        chart["cloche"] = more
    return chart


def _suptitle(figure: Any) -> str:
    title = getattr(figure, "_suptitle", None)
    return title.get_text() if title is not None else ""
