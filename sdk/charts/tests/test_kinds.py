# SPDX-License-Identifier: Apache-2.0
"""Every kind of figure is told by its type and, in the detail, by its data."""

from __future__ import annotations

import math
from typing import Any

import cases
import matplotlib.pyplot as plt
import numpy
import pytest
from cases import CASES, Case
from conftest import detail, read

from cloche_charts import chart_figure_to_chart

KNOWS_LEVELS = hasattr(__import__("matplotlib.contour").contour.ContourSet, "get_paths")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_figure_has_the_type_that_all_clients_know_and_its_own_kind(case: Case) -> None:
    figure = case.draw()
    chart = read(figure)
    assert chart["type"] == case.type
    assert chart.get("cloche", chart)["type"] == case.kind
    model = chart_figure_to_chart(figure)
    assert model is not None
    assert (model.type, model.kind) == (case.type, case.kind)


def test_bars_of_a_histogram_stay_and_its_bins_are_beside_them() -> None:
    chart = read(cases.histogram())
    assert [(bar["label"], bar["value"]) for bar in chart["elements"]] == [("1", 2), ("2", 1), ("3", 3), ("4", 1)]
    found = chart["cloche"]
    bins = [[0.5, 1.5, 2.0], [1.5, 2.5, 1.0], [2.5, 3.5, 3.0], [3.5, 4.5, 1.0]]
    assert found["elements"] == [{"label": "scores", "bins": bins}]
    assert (found["orientation"], found["x_unit"]) == ("vertical", "points")
    step = detail(cases.histogram_step())
    assert step["elements"] == [{"label": "scores", "bins": bins}]


def test_a_lying_histogram_and_one_over_dates_are_read() -> None:
    fig, ax = plt.subplots()
    ax.hist([1, 1, 2], bins=[0, 1.5, 3], orientation="horizontal")
    lying = detail(fig)
    assert (lying["orientation"], lying["elements"][0]["bins"]) == ("horizontal", [[0.0, 1.5, 2.0], [1.5, 3.0, 1.0]])
    fig, ax = plt.subplots()
    ax.hist(cases.DAYS, bins=[cases.DAYS[0], cases.DAYS[3], cases.DAYS[6]])
    assert detail(fig)["elements"][0]["bins"][0] == ["2024-01-01T00:00:00", "2024-01-04T00:00:00", 3.0]


def test_bars_with_gaps_or_names_are_no_histogram() -> None:
    fig, ax = plt.subplots()
    ax.bar([1, 2, 3], [4, 5, 6])
    assert "cloche" not in read(fig)
    fig, ax = plt.subplots()
    ax.bar(["a", "b"], [1, 2], width=1.0)
    assert "cloche" not in read(fig)


def test_stairs_have_their_edges() -> None:
    assert detail(cases.stairs())["elements"] == [
        {"label": "steps", "bins": [[0.0, 1.0, 1.0], [1.0, 2.0, 2.0], [2.0, 3.0, 3.0]]}
    ]


def test_a_band_has_both_ends_and_the_line_within() -> None:
    found = detail(cases.band())
    assert found["elements"] == [{"label": "range", "points": [[0.0, 0.0, 2.0], [1.0, 1.0, 3.0], [2.0, 3.0, 5.0]]}]
    assert found["lines"] == [{"label": "mean", "points": [[0.0, 1.0], [1.0, 2.0], [2.0, 4.0]]}]
    assert (found["stacked"], found["orientation"]) == (False, "vertical")


def test_stacked_areas_begin_where_the_last_one_ends() -> None:
    found = detail(cases.stack())
    assert found["stacked"] is True
    assert [part["label"] for part in found["elements"]] == ["a", "b"]
    assert found["elements"][1]["points"] == [[0.0, 1.0, 4.0], [1.0, 2.0, 4.0], [2.0, 3.0, 4.0]]


def test_an_area_with_holes_or_lying_is_read() -> None:
    fig, ax = plt.subplots()
    ax.fill_between([0, 1, 2, 3, 4], 0, [1, 1, 1, 1, 1], where=[True, True, False, True, True])
    assert [point[0] for point in detail(fig)["elements"][0]["points"]] == [0.0, 1.0, 3.0, 4.0]
    fig, ax = plt.subplots()
    ax.fill_betweenx([0, 1], [1, 1], [2, 3])
    found = detail(fig)
    assert (found["orientation"], found["elements"][0]["points"][1]) == ("horizontal", [1.0, 1.0, 3.0])


def test_a_heatmap_has_values_places_and_range() -> None:
    (found,) = detail(cases.heatmap())["elements"]
    assert found["values"] == [[1.0, 2.0, None], [4.0, 5.0, 6.0]]
    assert (found["x"], found["y"]) == ([0.0, 1.0, 2.0], [0.0, 1.0])
    assert (found["rows"], found["columns"], found["channels"]) == (2, 3, 1)
    assert (found["value_min"], found["value_max"], found["colormap"]) == (1.0, 6.0, "magma")


def test_a_mesh_has_the_middles_of_its_cells() -> None:
    (found,) = detail(cases.mesh())["elements"]
    assert found["values"] == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert (found["x"], found["y"]) == ([0.5, 2.0], [1.0, 3.0, 5.0])


def test_an_image_from_below_has_its_rows_from_below() -> None:
    fig, ax = plt.subplots()
    ax.imshow([[1, 2], [3, 4]], origin="lower", extent=(0, 4, 10, 30))
    (found,) = detail(fig)["elements"]
    assert (found["x"], found["y"], found["values"][0]) == ([1.0, 3.0], [15.0, 25.0], [1.0, 2.0])


def test_a_picture_in_colours_has_a_size_and_no_values() -> None:
    (found,) = detail(cases.picture())["elements"]
    assert (found["channels"], found["values"], found["rows"], found["columns"]) == (3, None, 4, 4)


def test_errors_reach_down_and_up() -> None:
    (found,) = detail(cases.errors())["elements"]
    assert found["label"] == "measured"
    assert found["points"] == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
    assert found["y_errors"] == [[0.5, 1.0]] * 3
    assert found["x_errors"] == [[0.25, 0.25]] * 3


def test_errors_of_bars_are_at_their_tips() -> None:
    chart = read(cases.bar_errors())
    assert [bar["value"] for bar in chart["elements"]] == [1.0, 2.0]
    (found,) = chart["cloche"]["elements"]
    assert (found["points"], found["y_errors"]) == ([["a", 1.0], ["b", 2.0]], [[0.25, 0.25], [0.5, 0.5]])


def test_errors_at_some_points_only() -> None:
    fig, ax = plt.subplots()
    ax.errorbar([1, 2, 3], [1, 1, 1], yerr=0.5, errorevery=2)
    assert detail(fig)["elements"][0]["y_errors"] == [[0.5, 0.5], [None, None], [0.5, 0.5]]


def radius(point: list[Any]) -> float:
    return math.hypot(*point)


def test_the_curves_of_a_contour_lie_at_their_level() -> None:
    found = detail(cases.contour())
    assert found["filled"] is False
    if KNOWS_LEVELS:
        assert found["levels"] == [0.25, 0.5, 1.0]
        assert [part["level"] for part in found["elements"]] == [0.25, 0.5, 1.0]
    radii = [numpy.mean([radius(p) for path in part["paths"] for p in path]) for part in found["elements"]]
    assert radii == pytest.approx([0.5, 0.5**0.5, 1.0], abs=0.03)


def test_a_filled_contour_has_the_outlines_between_two_levels() -> None:
    found = detail(cases.contour_filled())
    assert found["filled"] is True
    if KNOWS_LEVELS:
        assert [(part["level"], part["upper"]) for part in found["elements"]] == [(0.0, 0.5), (0.5, 1.0), (1.0, 2.0)]
    assert all(part["paths"] for part in found["elements"])


def test_polar_points_are_angle_and_radius() -> None:
    chart = read(cases.polar())
    assert chart["elements"][0]["points"] == [[0.0, 1.0], [1.5, 2.0], [3.0, 3.0]]
    found = chart["cloche"]
    assert (found["of"], found["theta_direction"]) == ("line", -1.0)
    assert found["theta_offset"] == pytest.approx(math.pi / 2)
    assert found["elements"][0]["points"] == [[0.0, 1.0], [1.5, 2.0], [3.0, 3.0]]


def test_polar_bars_have_widths_and_bases() -> None:
    (found,) = detail(cases.polar_bars())["elements"]
    assert found["points"] == [[0.0, 3.5], [1.0, 2.5], [2.0, 1.5]]
    assert (found["widths"], found["bases"]) == ([0.5] * 3, [0.5] * 3)


@pytest.mark.parametrize(("draw", "of"), [("scatter", "scatter"), ("fill", "area")])
def test_other_polar_shapes(draw: str, of: str) -> None:
    fig, ax = plt.subplots(subplot_kw={"projection": "polar"})
    getattr(ax, draw)([0, 1, 2], [1, 2, 3])
    found = detail(fig)
    assert (found["of"], found["elements"][0]["points"][:3]) == (of, [[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]])


def test_points_in_three_dimensions() -> None:
    found = detail(cases.cloud())
    assert found["elements"] == [{"label": "cloud", "points": [[1.0, 4.0, 7.0], [2.0, 5.0, 8.0], [3.0, 6.0, 9.0]]}]
    assert found["lines"] == [{"label": "way", "points": [[1.0, 4.0, 7.0], [3.0, 6.0, 9.0]]}]
    assert (found["z_label"], found["z_unit"], found["x_label"]) == ("Height (m)", "m", None)


def test_an_inset_follows_its_axes_in_a_superchart() -> None:
    assert [part["type"] for part in read(cases.inset())["elements"]] == ["line", "scatter"]


def test_twin_axes_are_two_charts_and_an_empty_one_is_a_line_without_elements() -> None:
    left, right = read(cases.twins())["elements"]
    assert (left["elements"][0]["label"], right["elements"][0]["label"]) == ("left", "right")
    fig, (one, _empty) = plt.subplots(1, 2)
    one.plot([1, 2])
    assert read(fig)["elements"][1]["elements"] == []
    assert read(plt.figure()) == {}
    assert chart_figure_to_chart(plt.figure()) is None
