# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import matplotlib
import pytest

matplotlib.use("agg")

import matplotlib.pyplot as plt

from cloche_charts import Limits, chart_dict, chart_from_dict

SCHEMA = json.loads((Path(__file__).parents[1] / "schema" / "chart.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


def read(figure: Any, limits: Limits | None = None) -> dict[str, Any]:
    """The chart of a figure that has been drawn; it fits the schema and comes back from the classes unchanged."""
    if hasattr(figure, "draw_without_rendering"):
        figure.draw_without_rendering()
    chart = chart_dict(figure, limits)
    VALIDATOR.validate(chart)
    model = chart_from_dict(chart)
    assert (model.to_dict() if model is not None else {}) == chart
    return chart


def detail(figure: Any, limits: Limits | None = None) -> dict[str, Any]:
    found = read(figure, limits)["cloche"]
    assert isinstance(found, dict)
    return found
