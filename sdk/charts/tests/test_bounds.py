# SPDX-License-Identifier: Apache-2.0
"""Limits, odd values and hostile figures: a chart is bounded in size and time and never raises or prints."""

from __future__ import annotations

import datetime
import signal
import threading
import time
from typing import Any

import matplotlib.pyplot as plt
import numpy
import pandas
import pytest
from conftest import detail, read

from cloche_charts import Limits, chart_dict, chart_figure_to_chart, chart_json
from cloche_charts.limits import CELLS, POINTS, SECONDS


def lines(*columns: Any) -> Any:
    fig, ax = plt.subplots()
    for column in columns:
        ax.plot(column)
    return fig


def test_the_points_of_all_lines_together_are_bounded_and_the_chart_says_what_is_left_out() -> None:
    chart = read(lines(numpy.arange(60.0), numpy.arange(100.0)), Limits(points=100))
    first, second = chart["elements"]
    assert len(first["points"]) == 60
    assert [point[0] for point in second["points"]] == [float(n) for n in range(0, 100, 3)]
    assert chart["cloche"] == {
        "type": "line",
        "sampled": [{"element": 1, "what": "points", "of": 100, "kept": 34, "step": 3}],
    }


def test_a_chart_within_the_limits_has_no_key_beside_those_of_its_type() -> None:
    assert "cloche" not in read(lines([1, 2, 3]))


@pytest.mark.parametrize("kind", ["scatter", "bar"])
def test_other_charts_are_thinned_too(kind: str) -> None:
    fig, ax = plt.subplots()
    getattr(ax, kind)(range(50), range(50))
    chart = read(fig, Limits(points=10))
    points = sum(len(e["points"]) for e in chart["elements"]) if kind == "scatter" else len(chart["elements"])
    assert points == 10
    assert chart["cloche"]["sampled"][0]["of"] == 50


def test_a_huge_image_is_thinned_to_the_cells_allowed() -> None:
    fig, ax = plt.subplots()
    ax.imshow(numpy.arange(3000.0 * 1000).reshape(3000, 1000))
    found = detail(fig)
    (image,) = found["elements"]
    kept = len(image["values"]) * len(image["values"][0])
    assert CELLS / 2 < kept <= CELLS
    rows, columns = found["sampled"]
    assert (rows["what"], rows["of"], rows["kept"]) == ("rows", 3000, len(image["values"]))
    assert (columns["what"], columns["of"], columns["kept"]) == ("columns", 1000, len(image["values"][0]))
    assert image["values"][1][0] == 1000.0 * rows["step"]
    assert (len(image["x"]), len(image["y"])) == (columns["kept"], rows["kept"])
    assert (image["rows"], image["columns"]) == (3000, 1000)


def test_the_environment_sets_limits_and_nonsense_there_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOCHE_CHART_POINTS", "10")
    monkeypatch.setenv("CLOCHE_CHART_SECONDS", "0.5")
    assert Limits.from_environment() == Limits(10, CELLS, 0.5)
    for nonsense in ("", "many", "-1", "nan", "inf"):
        monkeypatch.setenv("CLOCHE_CHART_POINTS", nonsense)
        monkeypatch.setenv("CLOCHE_CHART_SECONDS", nonsense)
        assert Limits.from_environment() == Limits(POINTS, CELLS, SECONDS)
    with pytest.raises(ValueError, match="points must be more than 0, not 0"):
        Limits(points=0)


def test_missing_and_infinite_values_are_null() -> None:
    column = numpy.ma.masked_array([1.0, 2.0, 3.0, 4.0], [False, True, False, False])
    column[2], column[3] = numpy.inf, numpy.nan
    assert [y for _x, y in read(lines(column))["elements"][0]["points"]] == [1.0, None, None, None]


def test_dates_are_iso_text_and_categories_their_names() -> None:
    fig, ax = plt.subplots()
    ax.plot([datetime.datetime(2024, 1, 1, 12), datetime.datetime(2024, 1, 2)], ["low", "high"])
    chart = read(fig)
    assert chart["elements"][0]["points"] == [["2024-01-01T12:00:00", "low"], ["2024-01-02T00:00:00", "high"]]
    assert (chart["x_scale"], chart["y_scale"]) == ("datetime", "categorical")


def test_scales_and_units_are_told_in_details_too() -> None:
    fig, ax = plt.subplots()
    ax.errorbar([1, 10], [1, 10], yerr=0.5)
    ax.set_xscale("log")
    ax.set_ylabel("Speed [m/s]")
    found = detail(fig)
    assert (found["x_scale"], found["y_unit"]) == ("log", "m/s")


def loop(*_args: Any, **_options: Any) -> Any:
    while True:
        pass


def stubborn(*_args: Any, **_options: Any) -> Any:
    """Shrugs at a few errors of every kind, as careless code does."""
    for _ in range(2):
        try:
            loop()
        except BaseException:
            pass
    loop()


def leave(*_args: Any, **_options: Any) -> Any:
    raise SystemExit


def fail(*_args: Any, **_options: Any) -> Any:
    raise RuntimeError("no")


@pytest.mark.parametrize("method", [loop, stubborn])
def test_a_method_that_loops_costs_the_chart_and_not_more_than_the_time_allowed(method: Any) -> None:
    figure = lines([1, 2])
    figure.axes[0].lines[0].get_label = method
    began = time.monotonic()
    assert chart_dict(figure, Limits(seconds=0.2)) == {}
    assert time.monotonic() - began < 5
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


@pytest.mark.parametrize("name", ["get_label", "get_xdata", "get_ydata"])
def test_a_line_whose_methods_raise_is_unknown_and_its_neighbours_are_read(name: str) -> None:
    fig, (one, two) = plt.subplots(1, 2)
    (line,) = one.plot([1, 2])
    two.plot([1, 2])
    setattr(line, name, fail)
    assert [part["type"] for part in chart_dict(fig)["elements"]] == ["unknown", "line"]


def test_what_is_no_figure_or_breaks_everywhere_has_no_chart(capsys: pytest.CaptureFixture[str]) -> None:
    broken = lines([1, 2])
    broken.axes[0].has_data = fail
    leaving = lines([1, 2])
    leaving.axes[0].get_title = leave
    for thing in (None, 1, "x", object(), object, broken, leaving):
        assert chart_json(thing) == "{}"
        assert chart_figure_to_chart(thing) is None
    assert capsys.readouterr() == ("", "")


def test_axes_within_themselves_are_read_once() -> None:
    figure = lines([1, 2])
    figure.axes[0].child_axes.append(figure.axes[0])
    assert chart_dict(figure)["type"] == "line"


def test_strange_children_make_an_axes_unknown() -> None:
    figure = lines([1, 2])
    figure.axes[0]._children.append(object())
    assert chart_dict(figure) == {"type": "unknown", "title": None, "elements": []}


def test_an_alarm_of_the_programs_own_is_left_alone() -> None:
    rang = threading.Event()
    before = signal.signal(signal.SIGALRM, lambda *_: rang.set())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        assert chart_dict(lines([1, 2]))["type"] == "line"
        assert rang.wait(5)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_charts_are_read_in_other_threads() -> None:
    figure, found = lines([1, 2]), []
    thread = threading.Thread(target=lambda: found.append(chart_dict(figure)))
    thread.start()
    thread.join()
    assert found[0]["type"] == "line"


def test_tables_are_columns_of_json_values() -> None:
    from cloche_charts import table_data

    class Odd:
        def __str__(self) -> str:
            raise RuntimeError

    table = pandas.DataFrame(
        {
            "n": [1, 2],
            "f": [0.5, float("inf")],
            "when": [pandas.Timestamp(2024, 1, 1), pandas.NaT],
            1: [[1, {"a": float("nan")}], Odd()],
        }
    )
    assert table_data(table) == {
        "n": [1, 2],
        "f": [0.5, None],
        "when": ["2024-01-01T00:00:00", None],
        "1": [[1, {"a": None}], "<Odd>"],
    }
    assert table_data(object()) is None
