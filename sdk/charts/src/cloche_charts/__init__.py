# SPDX-License-Identifier: Apache-2.0
"""Charts and tables as data: what was plotted or tabulated, for programs.

chart_figure_to_chart() is the way in for people, chart_json() for programs that only pass it on, table_data() is for
DataFrames. figure.py decides between one chart and several, kind.py says which of the original's types
an axes is, and there is a module per type: line, scatter, bar, pie, box. detail.py finds what those cannot say
(histogram, area, heatmap, errors, contour, polar, spatial), and plotly_figure.py and altair_chart.py read what their
libraries describe themselves. axis.py knows ticks, labels, units and scales; values.py turns plotted
values into JSON, limits.py and guard.py bound it all, models.py has the classes.

Nothing is imported before it is needed: a program without matplotlib may use the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import chart_dict as chart_dict
    from .api import chart_figure_to_chart as chart_figure_to_chart
    from .api import chart_json as chart_json
    from .limits import Limits as Limits
    from .models import Chart as Chart
    from .models import chart_from_dict as chart_from_dict
    from .table import table_data as table_data

__version__ = "1.0.0"
__all__ = ["Chart", "Limits", "chart_dict", "chart_figure_to_chart", "chart_from_dict", "chart_json", "table_data"]

_HOMES = {
    "Chart": "models",
    "Limits": "limits",
    "chart_dict": "api",
    "chart_figure_to_chart": "api",
    "chart_from_dict": "models",
    "chart_json": "api",
    "table_data": "table",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
