# SPDX-License-Identifier: Apache-2.0
"""The chart of anything that has one. Never raises, never prints: the figure itself is already shown.

A figure is recognised by the module of its class, so that no library is imported for the question.
"""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any

from .guard import within
from .limits import Limits, Reading, TooLong

if TYPE_CHECKING:
    from .models import Chart


def chart_figure_to_chart(figure: Any, limits: Limits | None = None) -> Chart | None:
    """The chart of a matplotlib figure, a plotly figure (or its JSON form) or an altair chart; None if it has none."""
    from .models import chart_from_dict

    return chart_from_dict(chart_dict(figure, limits))


def chart_dict(figure: Any, limits: Limits | None = None) -> dict[str, Any]:
    """The chart as plain data, in the form it travels in; `{}` where there is none."""
    chart: dict[str, Any] = json.loads(chart_json(figure, limits))
    return chart


def chart_json(figure: Any, limits: Limits | None = None) -> str:
    """JSON text of the chart; `{}` where there is none."""
    try:
        bounds = limits or Limits.from_environment()
        return within(bounds.seconds, lambda: _text(figure, Reading(bounds)))
    except (Exception, TooLong, SystemExit, GeneratorExit):
        return "{}"


def _text(figure: Any, reading: Reading) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return json.dumps(_read(figure, reading), allow_nan=False)


def _read(figure: Any, reading: Reading) -> dict[str, Any]:
    if isinstance(figure, dict):
        from . import plotly_figure

        return plotly_figure.chart(figure, reading)
    libraries = {kind.__module__.partition(".")[0] for kind in type(figure).__mro__}
    if "plotly" in libraries:
        from . import plotly_figure

        return plotly_figure.read(figure, reading)
    if "altair" in libraries:
        from . import altair_chart

        return altair_chart.read(figure, reading)
    from . import figure as matplotlib_figure

    return matplotlib_figure.read(figure, reading)
