# SPDX-License-Identifier: Apache-2.0
"""The chart of a whole figure. Never raises, never prints: the figure itself is already shown."""

import json
import warnings
from typing import Any

from ..publisher import Encoded
from . import bar, box, kind, line, pie, scatter

READERS = {
    "line": line.read,
    "scatter": scatter.read,
    "bar": bar.read,
    "pie": pie.read,
    "box_and_whisker": box.read,
}


def figure_chart(figure: Any) -> Encoded:
    """JSON text of the figure's chart; `{}` where there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Encoded(json.dumps(_chart(figure), allow_nan=False))
    except Exception:
        return Encoded("{}")


def _chart(figure: Any) -> dict[str, Any]:
    axes = list(_all_axes(figure.axes))
    if not any(ax.has_data() for ax in axes):
        return {}
    if len(axes) == 1:
        return axes_chart(axes[0])
    return {"type": "superchart", "title": _suptitle(figure), "elements": [axes_chart(ax) for ax in axes]}


def _all_axes(axes: Any) -> Any:
    """The figure's axes, each followed by the insets drawn inside it."""
    for ax in axes:
        yield ax
        yield from _all_axes([c for c in ax.child_axes if type(c).__name__ != "SecondaryAxis"])


def axes_chart(ax: Any) -> dict[str, Any]:
    """The chart of one axes; of type `unknown` if it cannot be recognised or read."""
    name = kind.of(ax)
    chart = {"type": name, "title": ax.get_title() or None, "elements": []}
    if name in READERS:
        try:
            chart.update(READERS[name](ax))
        except Exception:
            chart["type"] = "unknown"
    return chart


def _suptitle(figure: Any) -> str:
    title = getattr(figure, "_suptitle", None)
    return title.get_text() if title is not None else ""
