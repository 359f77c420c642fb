# SPDX-License-Identifier: Apache-2.0
"""Figures of plotly and altair, for the gallery and its test. Not drawn with the oldest versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import altair as alt
import pandas
import plotly.graph_objects as go


class LibraryCase(NamedTuple):
    name: str
    kind: str
    draw: Callable[[], Any]


FRAME = pandas.DataFrame({"month": [1, 2, 3, 4], "rain": [40.5, 33.0, 51.2, 28.4], "city": ["Oslo", "Rome"] * 2})


def plotly_traces() -> Any:
    traces = [
        go.Scatter(x=[1, 2, 3], y=[4, 1, 3], mode="lines+markers", name="line"),
        go.Bar(x=[1, 2, 3], y=[2, 3, 1], name="bars"),
    ]
    return go.Figure(traces, {"title": {"text": "Traces"}, "xaxis": {"title": {"text": "Time (s)"}}})


def plotly_heatmap() -> Any:
    return go.Figure([go.Heatmap(z=[[1, 2, 3], [4, 5, 6]], x=["a", "b", "c"], y=["p", "q"])])


def altair_points() -> Any:
    return alt.Chart(FRAME, title="Rain").mark_point().encode(x="month:Q", y="rain:Q", color="city:N")


def altair_layers() -> Any:
    bars = alt.Chart(FRAME).mark_bar().encode(x="city:N", y="mean(rain):Q")
    return bars + alt.Chart(FRAME).mark_point(color="black").encode(x="city:N", y="rain:Q")


LIBRARY_CASES = [
    LibraryCase("plotly_traces", "plotly", plotly_traces),
    LibraryCase("plotly_heatmap", "plotly", plotly_heatmap),
    LibraryCase("altair_points", "altair", altair_points),
    LibraryCase("altair_layers", "altair", altair_layers),
]
