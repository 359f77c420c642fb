# SPDX-License-Identifier: Apache-2.0
"""Results in a notebook, as IPython's own formatter shows them."""

from __future__ import annotations

from typing import Any, Dict

import pytest
from IPython.core.formatters import DisplayFormatter
from IPython.core.interactiveshell import InteractiveShell

import cloche
from cloche import Sandbox


@pytest.fixture(scope="module")
def formatter() -> DisplayFormatter:
    return InteractiveShell.instance().display_formatter


def shown(formatter: DisplayFormatter, thing: Any) -> Dict[str, Any]:
    data, _ = formatter.format(thing)
    return data


def test_a_figure_shows_as_a_picture(shared: Sandbox, formatter: DisplayFormatter) -> None:
    execution = shared.run_code("import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()")
    data = shown(formatter, execution.results[0])
    assert data["image/png"].startswith("iVBOR")
    assert "<img src=\"data:image/png;base64,iVBOR" in shown(formatter, execution)["text/html"]


def test_a_table_shows_as_html(shared: Sandbox, formatter: DisplayFormatter) -> None:
    execution = shared.run_code("import pandas as pd; pd.DataFrame({'a': [1, 2]})")
    data = shown(formatter, execution.results[0])
    assert "<table" in data["text/html"] and data["text/plain"]
    assert "<table" in shown(formatter, execution)["text/html"]


def test_output_and_errors_show_escaped(shared: Sandbox, formatter: DisplayFormatter) -> None:
    html = shown(formatter, shared.run_code("print('<b>')\n1 / 0"))["text/html"]
    assert "<pre>&lt;b&gt;\n</pre>" in html
    assert "ZeroDivisionError" in html and "\x1b" not in html


def test_formats_without_a_field_show_too(formatter: DisplayFormatter) -> None:
    result = cloche.Result(text="x", extra={"application/x-own": {"a": 1}, "word": 2}, latex="$x$")
    data = shown(formatter, result)
    assert data["application/x-own"] == {"a": 1}
    assert data["text/latex"] == "$x$"
    assert "word" not in data
    assert result._repr_mimebundle_(include=["text/plain"]) == {"text/plain": "x"}
    assert "text/plain" not in result._repr_mimebundle_(exclude=["text/plain"])
