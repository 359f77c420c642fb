# SPDX-License-Identifier: Apache-2.0
"""One figure of every kind, and what must be read from it. The gallery shows the same figures.

A case draws on a new figure and says the chart's type for every client and the kind that the detail names.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any, Callable

import matplotlib.pyplot as plt
import numpy

Draw = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    name: str
    type: str
    kind: str
    draw: Draw


CASES: list[Case] = []
DAYS = [datetime.date(2024, 1, day) for day in range(1, 8)]
RANDOM = numpy.random.RandomState(17)


def case(type: str, kind: str) -> Callable[[Draw], Draw]:
    def keep(draw: Draw) -> Draw:
        CASES.append(Case(draw.__name__, type, kind, draw))
        return draw

    return keep


def axes(**options: Any) -> tuple[Any, Any]:
    return plt.subplots(figsize=(3.6, 2.6), **options)


@case("line", "line")
def line() -> Any:
    fig, ax = axes()
    ax.plot(DAYS, [1, 3, 2, 5, 4, 6, 5], label="visits")
    ax.set_title("Visits")
    ax.set_xlabel("Day")
    ax.set_ylabel("Number (k)")
    fig.autofmt_xdate()
    return fig


@case("scatter", "scatter")
def scatter() -> Any:
    fig, ax = axes()
    ax.scatter([1, 2, 3, 4], [2.5, 1.5, 3.5, 3], label="A")
    ax.scatter([1.5, 2.5], [3, 2], label="B")
    ax.legend()
    return fig


@case("bar", "bar")
def bar() -> Any:
    fig, ax = axes()
    ax.bar(["Ada", "Bo", "Cy"], [10, 20.5, 30], label="books")
    ax.set_ylabel("Books")
    return fig


@case("pie", "pie")
def pie() -> Any:
    fig, ax = axes()
    ax.pie([90, 10], labels=["No", "No, in blue"], startangle=90)
    return fig


@case("box_and_whisker", "box_and_whisker")
def box() -> Any:
    fig, ax = axes()
    ax.boxplot([[85, 90, 78, 92, 88], [95, 89, 76, 91, 84, 87]])
    ax.set_xticks([1, 2])
    ax.set_xticklabels(["Class A", "Class B"])
    return fig


@case("superchart", "superchart")
def subplots() -> Any:
    fig, (left, right) = axes(ncols=2)
    left.plot([1, 2, 3])
    right.bar(["a", "b"], [2, 1])
    fig.suptitle("Two")
    return fig


@case("superchart", "superchart")
def inset() -> Any:
    """An inset is a chart of its own, after the axes it is drawn in."""
    fig, ax = axes()
    ax.plot([0, 1, 2], [0, 1, 4])
    ax.inset_axes([0.15, 0.55, 0.35, 0.35]).scatter([1, 2], [2, 1])
    return fig


@case("bar", "histogram")
def histogram() -> Any:
    fig, ax = axes()
    ax.hist([1, 1, 2, 3, 3, 3, 4], bins=[0.5, 1.5, 2.5, 3.5, 4.5], label="scores")
    ax.set_xlabel("Score (points)")
    return fig


@case("unknown", "histogram")
def histogram_step() -> Any:
    fig, ax = axes()
    ax.hist([1, 1, 2, 3, 3, 3, 4], bins=[0.5, 1.5, 2.5, 3.5, 4.5], histtype="step", label="scores")
    return fig


@case("unknown", "histogram")
def stairs() -> Any:
    fig, ax = axes()
    ax.stairs([1, 2, 3], [0, 1, 2, 3], label="steps")
    return fig


@case("unknown", "area")
def band() -> Any:
    fig, ax = axes()
    ax.plot([0, 1, 2], [1, 2, 4], label="mean")
    ax.fill_between([0, 1, 2], [0, 1, 3], [2, 3, 5], alpha=0.3, label="range")
    return fig


@case("unknown", "area")
def stack() -> Any:
    fig, ax = axes()
    ax.stackplot([0, 1, 2], [1, 2, 3], [3, 2, 1], labels=["a", "b"])
    ax.legend()
    return fig


@case("unknown", "heatmap")
def heatmap() -> Any:
    fig, ax = axes()
    ax.imshow([[1.0, 2.0, float("nan")], [4.0, 5.0, 6.0]], cmap="magma")
    return fig


@case("unknown", "heatmap")
def mesh() -> Any:
    fig, ax = axes()
    ax.pcolormesh([0, 1, 3], [0, 2, 4, 6], [[1, 2], [3, 4], [5, 6]])
    return fig


@case("unknown", "heatmap")
def picture() -> Any:
    fig, ax = axes()
    ax.imshow(numpy.stack([numpy.eye(4)] * 3, axis=2))
    return fig


@case("unknown", "error_bar")
def errors() -> Any:
    fig, ax = axes()
    ax.errorbar([1, 2, 3], [4, 5, 6], yerr=[[0.5, 0.5, 0.5], [1, 1, 1]], xerr=0.25, capsize=3, label="measured")
    return fig


@case("bar", "error_bar")
def bar_errors() -> Any:
    fig, ax = axes()
    ax.bar(["a", "b"], [1, 2], yerr=[0.25, 0.5], label="mean")
    return fig


def field() -> tuple[Any, Any, Any]:
    x, y = numpy.meshgrid(numpy.linspace(-1, 1, 9), numpy.linspace(-1, 1, 9))
    return x, y, x**2 + y**2


@case("unknown", "contour")
def contour() -> Any:
    fig, ax = axes()
    ax.contour(*field(), levels=[0.25, 0.5, 1.0])
    return fig


@case("unknown", "contour")
def contour_filled() -> Any:
    fig, ax = axes()
    ax.contourf(*field(), levels=[0.0, 0.5, 1.0, 2.0])
    return fig


@case("line", "polar")
def polar() -> Any:
    fig, ax = axes(subplot_kw={"projection": "polar"})
    ax.plot([0, 1.5, 3], [1, 2, 3], label="spiral")
    ax.set_theta_zero_location("N")
    ax.set_theta_direction(-1)
    return fig


@case("bar", "polar")
def polar_bars() -> Any:
    fig, ax = axes(subplot_kw={"projection": "polar"})
    ax.bar([0, 1, 2], [3, 2, 1], width=0.5, bottom=0.5)
    return fig


@case("unknown", "scatter_3d")
def cloud() -> Any:
    fig, ax = axes(subplot_kw={"projection": "3d"})
    ax.scatter([1, 2, 3], [4, 5, 6], [7, 8, 9], label="cloud")
    ax.plot([1, 3], [4, 6], [7, 9], label="way")
    ax.set_zlabel("Height (m)")
    return fig


@case("unknown", "line_3d")
def way() -> Any:
    fig, ax = axes(subplot_kw={"projection": "3d"})
    ax.plot([1, 2, 3], [4, 5, 6], [7, 8, 9])
    return fig


@case("superchart", "superchart")
def twins() -> Any:
    fig, ax = axes()
    ax.plot([1, 2, 3], label="left")
    ax.twinx().plot([30, 20, 10], label="right")
    return fig


@case("unknown", "unknown")
def circles() -> Any:
    fig, ax = axes()
    ax.add_artist(plt.Circle((0.5, 0.5), 0.3))
    ax.set_title("Circle")
    return fig
