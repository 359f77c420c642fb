# SPDX-License-Identifier: Apache-2.0
"""Charts: figures come back as data, exact to the worked examples of the contract."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import e2b_code_interpreter as interpreter
import pytest
from e2b_code_interpreter import charts

HEAD = "import matplotlib.pyplot as plt, numpy as np, pandas as pd, datetime as dt\n"


@pytest.fixture(scope="module")
def plotter() -> Iterator[interpreter.Sandbox]:
    box = interpreter.Sandbox.create(timeout=300)
    box.run_code(HEAD)
    yield box
    box.kill()


def draw(box: interpreter.Sandbox, code: str) -> Any:
    done = box.run_code(code + "\nplt.show()")
    assert done.error is None, done.error.traceback
    assert len(done.results) == 1
    return done.results[0].chart


def raw(box: interpreter.Sandbox, code: str) -> dict[str, Any]:
    chart = draw(box, code)
    assert chart is not None
    return chart.to_dict()


def floats(value: Any) -> bool:
    if isinstance(value, dict):
        return all(floats(item) for item in value.values())
    if isinstance(value, list):
        return all(floats(item) for item in value)
    return not isinstance(value, int) or isinstance(value, bool)


def test_a_line_chart_has_points_labels_units_and_ticks(plotter: interpreter.Sandbox) -> None:
    chart = raw(
        plotter,
        "plt.plot([1,2,3],[4,5,6]); plt.title('T'); plt.xlabel('Time (s)'); "
        "plt.ylabel('Speed [m/s]')",
    )
    labels = [f"{0.75 + 0.25 * n:.2f}" for n in range(11)]
    higher = [f"{float(label) + 3:.2f}" for label in labels]
    assert chart == {
        "type": "line",
        "title": "T",
        "elements": [{"label": "Line 0", "points": [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]}],
        "x_label": "Time (s)",
        "y_label": "Speed [m/s]",
        "x_unit": "s",
        "y_unit": "m/s",
        "x_ticks": [float(label) for label in labels],
        "x_tick_labels": labels,
        "x_scale": "linear",
        "y_ticks": [float(label) for label in higher],
        "y_tick_labels": higher,
        "y_scale": "linear",
    }
    assert floats(chart)


def test_a_line_over_dates_has_a_datetime_scale(plotter: interpreter.Sandbox) -> None:
    chart = draw(
        plotter,
        "dates = [dt.date(2023, 9, 1) + dt.timedelta(seconds=i) for i in range(100)]\n"
        "x = np.linspace(0, 2 * np.pi, 100)\n"
        "plt.plot(dates, np.sin(x), label='sin(x)'); plt.plot(dates, np.cos(x), label='cos(x)')\n"
        "plt.xlabel('Time (s)'); plt.ylabel('Amplitude (Hz)'); plt.title('Plot')",
    )
    assert isinstance(chart, charts.LineChart)
    assert (chart.x_scale.value, chart.y_scale.value) == ("datetime", "linear")
    assert (chart.x_unit, chart.y_unit) == ("s", "Hz")
    assert all(isinstance(tick, str) for tick in chart.x_ticks)
    assert all(isinstance(tick, float) for tick in chart.y_ticks)
    assert [line.label for line in chart.elements] == ["sin(x)", "cos(x)"]
    assert [len(line.points) for line in chart.elements] == [100, 100]
    x, y = chart.elements[0].points[0]
    assert datetime.fromisoformat(x).date().isoformat() == "2023-09-01"
    assert isinstance(y, float)


def test_a_line_over_two_moments_has_iso_points(plotter: interpreter.Sandbox) -> None:
    chart = raw(plotter, "plt.plot([dt.datetime(2024,1,1,12,30), dt.datetime(2024,1,2)], [1, 2])")
    assert chart["elements"][0]["points"] == [
        ["2024-01-01T12:30:00", 1.0],
        ["2024-01-02T00:00:00", 2.0],
    ]
    assert "2024-01-02T00:00:00+00:00" in chart["x_ticks"]
    assert chart["x_scale"] == "datetime"


def test_a_pandas_series_of_dates_is_a_line_over_dates(plotter: interpreter.Sandbox) -> None:
    chart = raw(
        plotter,
        "pd.Series([1.0, 2.0, 3.0], index=pd.date_range('2024-01-01', periods=3)).plot()",
    )
    assert chart["type"] == "line"
    assert chart["x_scale"] == "datetime"
    assert [point[0][:10] for point in chart["elements"][0]["points"]] == [
        "2024-01-01",
        "2024-01-02",
        "2024-01-03",
    ]


def test_a_line_over_categories_has_a_categorical_scale(plotter: interpreter.Sandbox) -> None:
    chart = raw(plotter, "plt.plot([1,2,3,4,5], list('ABCDE'))")
    assert chart["elements"][0]["points"][0] == [1.0, "A"]
    assert chart["y_ticks"] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert chart["y_tick_labels"] == list("ABCDE")
    assert (chart["x_scale"], chart["y_scale"]) == ("linear", "categorical")


def test_a_logarithmic_axis_has_a_log_scale(plotter: interpreter.Sandbox) -> None:
    chart = raw(
        plotter,
        "x = np.linspace(1, 100, 100)\nplt.plot(x, np.exp(x), label='y = e^x')\n"
        "plt.yscale('log'); plt.xlabel('X-axis'); plt.ylabel('Y-axis (log scale)')",
    )
    assert (chart["x_scale"], chart["y_scale"]) == ("linear", "log")
    assert (chart["x_unit"], chart["y_unit"]) == (None, "log scale")
    assert chart["elements"][0]["label"] == "y = e^x"
    assert len(chart["elements"][0]["points"]) == 100
    assert floats(chart)


def test_a_scatter_chart_has_its_points(plotter: interpreter.Sandbox) -> None:
    chart = raw(plotter, "plt.scatter([1,2],[3,4]); plt.title('S')")
    assert chart["type"] == "scatter"
    assert chart["elements"] == [{"label": "_child0", "points": [[1.0, 3.0], [2.0, 4.0]]}]
    assert chart["x_ticks"][0] == pytest.approx(0.8)


def test_a_bar_chart_has_a_value_per_label(plotter: interpreter.Sandbox) -> None:
    chart = raw(plotter, "plt.bar(list('ABC'), [10, 20.5, 30]); plt.ylabel('N (k)')")
    assert chart == {
        "type": "bar",
        "title": None,
        "elements": [
            {"label": "A", "group": "Group 0", "value": 10.0},
            {"label": "B", "group": "Group 0", "value": 20.5},
            {"label": "C", "group": "Group 0", "value": 30.0},
        ],
        "x_label": None,
        "y_label": "N (k)",
        "x_unit": None,
        "y_unit": "k",
    }


def test_bars_with_a_label_are_a_group_of_that_name(plotter: interpreter.Sandbox) -> None:
    chart = draw(
        plotter,
        "plt.bar(['Author A','Author B','Author C','Author D'], [100,200,300,400], "
        "label='Books Sold'); plt.title('Book Sales'); plt.xlabel('Authors'); plt.ylabel('Books')",
    )
    assert isinstance(chart, charts.BarChart)
    assert [bar.value for bar in chart.elements] == [100.0, 200.0, 300.0, 400.0]
    assert {bar.group for bar in chart.elements} == {"Books Sold"}
    assert [bar.label for bar in chart.elements] == [f"Author {c}" for c in "ABCD"]
    assert (chart.title, chart.x_label, chart.x_unit) == ("Book Sales", "Authors", None)


def test_horizontal_and_grouped_bars(plotter: interpreter.Sandbox) -> None:
    chart = raw(plotter, "plt.barh(list('AB'), [1, 2]); plt.xlabel('Count'); plt.ylabel('Cat')")
    assert [(bar["label"], bar["value"]) for bar in chart["elements"]] == [("A", 1.0), ("B", 2.0)]
    assert (chart["x_label"], chart["y_label"]) == ("Cat", "Count")
    chart = raw(
        plotter,
        "p = np.arange(3)\nplt.bar(p - 0.2, [1,2,3], 0.4, label='g1')\n"
        "plt.bar(p + 0.2, [4,5,6], 0.4, label='g2'); plt.xticks(p, list('ABC'))",
    )
    assert [bar["group"] for bar in chart["elements"]] == ["g1"] * 3 + ["g2"] * 3
    assert [bar["value"] for bar in chart["elements"]] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


@pytest.mark.parametrize("values", [[5], [3, 3, 3]])
def test_single_and_equal_bars_stand_upright(plotter: interpreter.Sandbox, values: list) -> None:
    names = list("ABC")[: len(values)]
    chart = raw(plotter, f"plt.bar({names}, {values})")
    assert [bar["value"] for bar in chart["elements"]] == [float(v) for v in values]
    assert [bar["label"] for bar in chart["elements"]] == names


def test_histogram_and_error_bars_are_bars(plotter: interpreter.Sandbox) -> None:
    chart = raw(plotter, "plt.hist([1,1,2,3,3,3], bins=3)")
    assert chart["type"] == "bar"
    assert [bar["value"] for bar in chart["elements"]] == [2.0, 1.0, 3.0]
    chart = raw(plotter, "plt.bar(['A','B'], [1, 2], yerr=[0.1, 0.2])")
    assert chart["type"] == "bar"
    assert [bar["value"] for bar in chart["elements"]] == [1.0, 2.0]


KINDS = {
    "bar histogram": "plt.hist([1, 1, 2, 3, 3, 3], bins=3)",
    "bar error_bar": "plt.bar(['A', 'B'], [1, 2], yerr=[0.1, 0.2])",
    "unknown error_bar": "plt.errorbar([1, 2], [3, 4], yerr=0.5)",
    "unknown area": "plt.stackplot([1, 2], [1, 2], [3, 4])",
    "unknown heatmap": "plt.imshow(np.eye(3))",
    "unknown contour": "plt.contourf(np.add.outer(np.arange(4), np.arange(4)))",
    "line polar": "plt.polar([0, 1, 2], [1, 2, 3])",
    "unknown scatter_3d": "plt.figure().add_subplot(projection='3d').scatter([1, 2], [3, 4], [5, 6])",
}


@pytest.mark.parametrize("kinds", KINDS)
def test_kinds_beyond_the_original_types_are_beside_a_type_that_the_client_knows(
    plotter: interpreter.Sandbox, kinds: str
) -> None:
    known, kind = kinds.split()
    chart = draw(plotter, KINDS[kinds])
    assert chart.type.value == known
    detail = chart.to_dict()["cloche"]
    assert detail["type"] == kind
    assert detail["elements"]


def test_a_plotly_figure_has_the_data_of_its_traces(plotter: interpreter.Sandbox) -> None:
    done = plotter.run_code("import plotly.graph_objects as go\ngo.Figure(go.Bar(x=['a', 'b'], y=[1, 2.5]))")
    assert done.error is None, done.error.traceback
    result = done.results[-1]
    assert result.html
    assert result.chart.type.value == "unknown"
    (bars,) = result.chart.to_dict()["cloche"]["elements"]
    assert bars["columns"] == {"x": ["a", "b"], "y": [1.0, 2.5]}


def test_a_pie_chart_has_an_angle_per_part(plotter: interpreter.Sandbox) -> None:
    chart = raw(
        plotter,
        "plt.pie([90, 10], labels=['No', 'No, in blue'], startangle=90); plt.title('W')",
    )
    assert chart == {
        "type": "pie",
        "title": "W",
        "elements": [
            {"label": "No", "angle": 324.0, "radius": 1.0},
            {"label": "No, in blue", "angle": 36.0, "radius": 1.0},
        ],
    }
    shadowed = raw(plotter, "plt.pie([1, 1], shadow=True)")
    assert [part["angle"] for part in shadowed["elements"]] == [180.0, 180.0]


SCORES = "[[85,90,78,92,88],[95,89,76,91,84,87],[75,82,88,79,86]]"
BOXES = [
    {"label": "Class A", "min": 78.0, "first_quartile": 85.0, "median": 88.0,
     "third_quartile": 90.0, "max": 92.0, "outliers": []},
    {"label": "Class B", "min": 84.0, "first_quartile": 84.75, "median": 88.0,
     "third_quartile": 90.5, "max": 95.0, "outliers": [76.0]},
    {"label": "Class C", "min": 75.0, "first_quartile": 79.0, "median": 82.0,
     "third_quartile": 86.0, "max": 88.0, "outliers": []},
]  # fmt: skip


@pytest.mark.parametrize("filled", [True, False])
def test_a_box_plot_has_its_quartiles_and_outliers(plotter: interpreter.Sandbox, filled: bool) -> None:
    chart = raw(
        plotter,
        f"plt.boxplot({SCORES}, patch_artist={filled})\n"
        "plt.xticks([1,2,3], ['Class A', 'Class B', 'Class C'])\n"
        "plt.title('Exam Scores Distribution'); plt.xlabel('Class'); plt.ylabel('Score')",
    )
    assert chart["type"] == "box_and_whisker"
    assert chart["elements"] == BOXES
    assert (chart["x_label"], chart["y_label"]) == ("Class", "Score")


def test_a_box_plot_of_large_flat_lying_or_outlying_values_is_read(plotter: interpreter.Sandbox) -> None:
    large = raw(plotter, "plt.boxplot([[1234567, 2345678, 3456789]], patch_artist=True)")
    assert large["elements"][0]["median"] == 2345678.0
    flat = raw(plotter, "plt.boxplot([[5, 5, 5, 5]], patch_artist=True)")
    assert flat["elements"][0]["max"] == 5.0
    lying = raw(plotter, f"plt.boxplot({SCORES}, patch_artist=True, vert=False)")
    assert [part["median"] for part in lying["elements"]] == [88.0, 88.0, 82.0]
    many = raw(plotter, "plt.boxplot([[1,2,3,4,5,100,-100]], patch_artist=True)")
    assert sorted(many["elements"][0]["outliers"]) == [-100.0, 100.0]


def test_subplots_are_a_superchart(plotter: interpreter.Sandbox) -> None:
    chart = draw(
        plotter,
        "f, (a, b) = plt.subplots(1, 2); f.suptitle('Multiple Charts Example')\n"
        "x = np.linspace(0, 10, 100); a.plot(x, np.sin(x)); a.set_title('Sine Wave')\n"
        "b.scatter([1,2,3,4,5], [5,4,3,2,1]); b.set_title('Scatter Plot')\n"
        "b.set_xlabel('X'); b.set_ylabel('Y')",
    )
    assert isinstance(chart, charts.SuperChart)
    assert chart.title == "Multiple Charts Example"
    line, scatter = chart.elements
    assert (line.type.value, line.title, line.x_label) == ("line", "Sine Wave", None)
    assert len(line.elements[0].points) == 100
    assert (scatter.title, scatter.x_label, scatter.y_label) == ("Scatter Plot", "X", "Y")
    assert len(scatter.elements[0].points) == 5


def test_a_colour_bar_is_an_unknown_part_of_a_superchart(plotter: interpreter.Sandbox) -> None:
    chart = raw(plotter, "s = plt.scatter([1,2],[3,4], c=[1,2]); plt.colorbar(s)")
    assert (chart["type"], chart["title"]) == ("superchart", "")
    assert chart["elements"][1] == {"type": "unknown", "title": None, "elements": []}


def test_what_is_no_known_chart_is_unknown(plotter: interpreter.Sandbox) -> None:
    chart = raw(
        plotter,
        "f, a = plt.subplots(); a.add_artist(plt.Circle((0,0),1))\n"
        "a.add_artist(plt.Circle((0,0),2))\n"
        "a.set_title('Two Concentric Circles')",
    )
    assert chart == {"type": "unknown", "title": "Two Concentric Circles", "elements": []}
    assert raw(plotter, "plt.imshow(np.eye(3))")["type"] == "unknown"


def test_a_blank_figure_has_a_picture_and_no_chart(plotter: interpreter.Sandbox) -> None:
    done = plotter.run_code("plt.figure(); plt.show()")
    assert done.results[0].png
    assert done.results[0].chart is None


def test_removed_ticks_are_empty_and_integer_ticks_are_floats(plotter: interpreter.Sandbox) -> None:
    chart = raw(plotter, "plt.plot([1,2,3]); plt.xticks([])")
    assert chart["x_ticks"] == []
    assert chart["x_scale"] == "linear"
    chart = raw(plotter, "plt.plot([1,2,3]); plt.xticks([0, 1, 2])")
    assert chart["x_ticks"] == [0.0, 1.0, 2.0]
    assert floats(chart)


def test_not_a_number_is_null(plotter: interpreter.Sandbox) -> None:
    chart = raw(plotter, "plt.plot([1, 2, 3], [1.0, float('nan'), 3.0])")
    assert chart["elements"][0]["points"][1] == [2.0, None]


def test_reading_a_chart_prints_nothing(plotter: interpreter.Sandbox) -> None:
    done = plotter.run_code(
        "s = plt.scatter([1,2],[3,4], c=[1,2]); plt.colorbar(s); plt.xticks([1, 2]); plt.show()"
    )
    assert done.logs.stderr == []


def test_an_execution_with_a_chart_serialises(plotter: interpreter.Sandbox) -> None:
    text = plotter.run_code("plt.scatter([1,2],[3,4]); plt.show()").to_json()
    assert json.loads(text)["results"][0]["chart"]["type"] == "scatter"
