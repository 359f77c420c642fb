# SPDX-License-Identifier: Apache-2.0
"""plotly and altair figures by their own data, and what seaborn draws. Not run with the oldest versions."""

from __future__ import annotations

from typing import Any

import altair as alt
import matplotlib.pyplot as plt
import numpy
import pandas
import plotly.graph_objects as go
import seaborn
from conftest import detail, read

from cloche_charts import Limits, chart_dict


def plotly(*traces: Any, **layout: Any) -> Any:
    return go.Figure(list(traces), layout)


def test_a_plotly_figure_has_a_part_per_trace() -> None:
    figure = plotly(
        go.Scatter(x=["2024-01-01", "2024-01-02"], y=numpy.array([1.5, numpy.nan]), mode="lines", name="a"),
        go.Bar(x=["p", "q"], y=[3, 4], name="b"),
        title={"text": "T"},
        xaxis={"title": {"text": "Time (s)"}},
    )
    chart = read(figure)
    assert (chart["type"], chart["title"], chart["elements"]) == ("unknown", "T", [])
    found = chart["cloche"]
    assert (found["type"], found["x_label"], found["x_unit"], found["y_label"]) == ("plotly", "Time (s)", "s", None)
    line, bars = found["elements"]
    assert (line["label"], line["trace"], line["mode"]) == ("a", "scatter", "lines")
    assert line["columns"] == {"x": ["2024-01-01", "2024-01-02"], "y": [1.5, None]}
    assert (bars["trace"], bars["columns"]) == ("bar", {"x": ["p", "q"], "y": [3, 4]})


def test_plotly_tables_of_values_and_parts_are_read() -> None:
    found = detail(plotly(go.Heatmap(z=numpy.arange(6.0).reshape(2, 3)), go.Pie(labels=["a", "b"], values=[1, 2])))
    assert found["elements"][0]["columns"] == {"z": [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]}
    assert found["elements"][1]["columns"] == {"labels": ["a", "b"], "values": [1, 2]}


def test_the_json_form_of_a_plotly_figure_is_read_like_the_figure() -> None:
    figure = plotly(go.Scatter(y=numpy.arange(4)), title={"text": "T"})
    assert chart_dict(figure.to_plotly_json()) == chart_dict(figure)


def test_a_large_plotly_trace_is_thinned_and_says_so() -> None:
    found = detail(plotly(go.Scatter(y=numpy.arange(1000.0))), Limits(points=100))
    assert found["elements"][0]["columns"]["y"] == [float(n) for n in range(0, 1000, 10)]
    assert found["sampled"] == [{"element": 0, "what": "points", "of": 1000, "kept": 100, "step": 10}]


def test_an_empty_plotly_figure_has_no_chart() -> None:
    assert read(plotly()) == {}


def frame(rows: int = 3) -> Any:
    return pandas.DataFrame({"a": range(rows), "b": [n * 0.5 for n in range(rows)], "unused": "x"})


def test_an_altair_chart_has_its_mark_channels_and_columns() -> None:
    picture = alt.Chart(frame(), title="T").mark_line().encode(x=alt.X("a:Q", title="Time (s)"), y="mean(b):Q")
    chart = read(picture)
    assert (chart["type"], chart["title"]) == ("unknown", "T")
    found = chart["cloche"]
    assert (found["type"], found["x_label"], found["x_unit"], found["y_label"]) == ("altair", "Time (s)", "s", "b")
    (line,) = found["elements"]
    assert (line["mark"], line["columns"]) == ("line", {"a": [0, 1, 2], "b": [0.0, 0.5, 1.0]})
    assert line["encoding"]["y"] == {
        "field": "b", "type": "quantitative", "title": None, "aggregate": "mean", "bin": False,
    }  # fmt: skip


def test_layers_of_altair_are_parts_with_the_data_of_the_whole() -> None:
    base = alt.Chart(frame()).encode(x="a:Q", y="b:Q")
    found = detail(alt.layer(base.mark_line(), base.mark_point()))
    assert [part["mark"] for part in found["elements"]] == ["line", "point"]
    assert found["elements"][1]["columns"]["a"] == [0, 1, 2]
    beside = detail(base.mark_bar() | base.mark_area())
    assert [part["mark"] for part in beside["elements"]] == ["bar", "area"]


def test_an_altair_chart_of_more_rows_than_altair_allows_is_read_within_our_limit() -> None:
    found = detail(alt.Chart(frame(6000)).mark_point().encode(x="a:Q"), Limits(points=1000))
    assert found["elements"][0]["columns"]["a"] == list(range(0, 6000, 6))
    assert found["sampled"][0]["of"] == 6000


def test_a_library_object_that_fails_has_no_chart() -> None:
    broken = type("Figure", (), {"__module__": "plotly.x", "to_plotly_json": lambda self: 1 / 0})
    assert chart_dict(broken()) == {}


def test_a_seaborn_heatmap_is_read() -> None:
    fig, ax = plt.subplots()
    seaborn.heatmap([[1, 2], [3, 4]], ax=ax, annot=True, xticklabels=["a", "b"])
    first, bar = read(fig)["elements"]
    assert first["cloche"]["elements"][0]["values"] == [[1.0, 2.0], [3.0, 4.0]]
    assert first["cloche"]["x_tick_labels"] == ["a", "b"]
    assert bar == {"type": "unknown", "title": None, "elements": []}
