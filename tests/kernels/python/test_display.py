# SPDX-License-Identifier: Apache-2.0
"""Rich results: MIME types, JSON of structures, DataFrame data."""

from typing import Any

import pytest

from conftest import Client


def test_display_is_not_the_main_result(shared: Client) -> None:
    outcome = shared.run("display(1)\n2")
    assert [(e["main"], e["data"]) for e in outcome.results] == [
        (False, {"text/plain": "1"}),
        (True, {"text/plain": "2"}),
    ]


def test_a_raw_bundle_is_passed_as_it_is(shared: Client) -> None:
    outcome = shared.run("display({'text/latex': r'$x$'}, raw=True)")
    assert [e["data"] for e in outcome.results] == [{"text/latex": "$x$"}]


def test_updates_and_clearing_are_dropped(shared: Client) -> None:
    code = "from IPython.display import clear_output\nh = display('a', display_id=True)\nh.update('b')\nclear_output()"
    outcome = shared.run(code)
    assert [e["data"]["text/plain"] for e in outcome.results] == ["'a'"]
    assert outcome.stdout == ""


@pytest.mark.parametrize(
    ("code", "mime", "value"),
    [
        ("HTML('<b>x</b>')", "text/html", "<b>x</b>"),
        ("Markdown('*x*')", "text/markdown", "*x*"),
        (
            "SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>')",
            "image/svg+xml",
            '<svg xmlns="http://www.w3.org/2000/svg"/>',
        ),
        ("Latex('$x$')", "text/latex", "$x$"),
        ("JSON({'a': [1, 2.0]})", "application/json", {"a": [1, 2.0]}),
        ("Javascript('1')", "application/javascript", "1"),
        ("Image(data=bytes.fromhex('89504e470d0a1a0a') + b'x', format='png')", "image/png", "iVBORw0KGgp4"),
    ],
)
def test_every_type_arrives_under_its_name(shared: Client, code: str, mime: str, value: Any) -> None:
    assert shared.run(f"from IPython.display import *\n{code}").main[mime] == value


def test_objects_say_how_they_look(shared: Client) -> None:
    code = """\
class Rich:
    def __repr__(self): return 'rich'
    def _repr_html_(self): return '<i>'
    def _repr_jpeg_(self): return b'jpeg'
    def _repr_pdf_(self): return b'pdf'
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {'application/x-own': {'n': 1.0}, 'text/html': '<u>'}
    def _repr_e2b_data_(self): return {'a': [1]}
    def _repr_e2b_chart_(self): return {'type': 'unknown', 'title': None, 'elements': []}
Rich()"""
    assert shared.run(code).main == {
        "text/plain": "rich",
        "text/html": "<u>",
        "image/jpeg": "anBlZw==",
        "application/pdf": "cGRm",
        "application/x-own": {"n": 1.0},
        "e2b/data": {"a": [1]},
        "e2b/chart": {"type": "unknown", "title": None, "elements": []},
    }


def test_objects_may_display_themselves(shared: Client) -> None:
    outcome = shared.run("class Own:\n    def _ipython_display_(self): display('own')\nOwn()")
    assert [(e["main"], e["data"]["text/plain"]) for e in outcome.results] == [(False, "'own'")]


def test_registered_formatters_are_asked_also_for_simple_values(kernel: Client) -> None:
    kernel.run("f = get_ipython().display_formatter.formatters\nf['text/html'].for_type(int, lambda n: f'<b>{n}</b>')")
    assert kernel.run("5").main == {"text/plain": "5", "text/html": "<b>5</b>"}
    kernel.run("f['text/plain'].for_type(str, lambda s, p, cycle: p.text('str!'))")
    assert kernel.run("'x'").value == "str!"
    kernel.run("%precision 3")
    assert kernel.run("3.14159").value == "3.142"


def test_a_broken_repr_does_not_hang_the_cell(shared: Client) -> None:
    outcome = shared.run("class Bad:\n    def __repr__(self): raise ValueError('no')\nBad()")
    assert outcome.error["name"] == "ValueError"
    assert shared.run("1").value == "1"


def test_objects_with_every_attribute_are_not_fooled(shared: Client) -> None:
    outcome = shared.run("from unittest.mock import MagicMock\nMagicMock()")
    assert set(outcome.main) == {"text/plain"}
    assert set(shared.run("class All:\n    def __getattr__(self, n): return lambda *a, **k: 'x'\nAll()").main) == {
        "text/plain"
    }


# -- application/json

NO_JSON = object()


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("[1, 2.0, 'x', None, True]", [1, 2.0, "x", None, True]),
        ("{'a': {'b': []}}", {"a": {"b": []}}),
        ("{1: 'i', 2.5: 'f', None: 'n', True: 't'}", {"1": "t", "2.5": "f", "null": "n"}),
        ("[float('nan'), float('inf')]", [None, None]),
        ("[(1, 2)]", [[1, 2]]),
        ("from collections import OrderedDict; OrderedDict(a=1)", {"a": 1}),
        ("from collections import Counter; Counter('aab')", {"a": 2, "b": 1}),
        (
            "import numpy as np; [np.float64(1.5), np.int32(3), np.array([[1, 2]]), np.bool_(True)]",
            [1.5, 3, [[1, 2]], True],
        ),
        ("{np.int64(4): np.float32(0.5)}", {"4": 0.5}),
        (
            "import datetime as d; [d.datetime(2024, 1, 2, 3), d.date(2024, 1, 2), d.time(1)]",
            ["2024-01-02T03:00:00", "2024-01-02", "01:00:00"],
        ),
        ("import uuid; [uuid.UUID(int=0)]", ["00000000-0000-0000-0000-000000000000"]),
        ("[2**63, -2**63, 1234567890123456789]", [2**63, -(2**63), 1234567890123456789]),
        ("['12345678901234567890123']", ["12345678901234567890123"]),
        ("[2**64]", NO_JSON),
        ("[object()]", NO_JSON),
        ("[{1, 2}]", NO_JSON),
        ("{(1, 2): 3}", NO_JSON),
        ("a = []; a.append(a); a", NO_JSON),
        ("(1, 2)", NO_JSON),
        ("{1, 2}", NO_JSON),
        ("'text'", NO_JSON),
        ("class L(list):\n    def _repr_json_(self): return {'own': 1}\nL([object()])", {"own": 1}),
    ],
)
def test_structures_are_displayed_as_json_too(shared: Client, code: str, value: Any) -> None:
    outcome = shared.run(code)
    assert outcome.error is None
    assert outcome.stderr == ""
    assert outcome.main.get("application/json", NO_JSON) == value


def test_floats_stay_floats(shared: Client) -> None:
    shared.start("[100.0, 1e22, 0.1]")
    line = b""
    while b'"done"' not in line:
        line += shared.pipes.sock.recv(65536)
    assert b"[100.0, 1e+22, 0.1]" in line


# -- e2b/data

FRAME = """\
import pandas as pd, numpy as np, datetime, decimal, uuid, warnings
warnings.simplefilter('error')
"""


def data_of(kernel: Client, expression: str) -> Any:
    outcome = kernel.run(FRAME + f"pd.DataFrame({expression})")
    assert outcome.error is None, outcome.error
    assert outcome.stderr == ""
    assert {"text/plain", "text/html", "e2b/data"} <= set(outcome.main)
    return outcome.main["e2b/data"]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ("[1, 2]", [1, 2]),
        ("[1.5, 2.0]", [1.5, 2.0]),
        ("[True, False]", [True, False]),
        ("['x', None]", ["x", None]),
        ("[1.0, np.nan, np.inf, -np.inf]", [1.0, None, None, None]),
        ("[2**62, -5]", [2**62, -5]),
        ("pd.to_datetime(['2024-01-01', None])", ["2024-01-01T00:00:00", None]),
        (
            "pd.to_datetime(['2024-01-01T01:02:03.5']).tz_localize('Europe/Prague')",
            ["2024-01-01T01:02:03.500000+01:00"],
        ),
        ("[datetime.date(2024, 1, 2), datetime.time(3, 4)]", ["2024-01-02", "03:04:00"]),
        ("pd.to_timedelta(['1 days 02:00:00', None])", ["P1DT2H0M0S", None]),
        ("[decimal.Decimal('1.50'), None]", ["1.50", None]),
        ("pd.period_range('2024-01', periods=2, freq='M')", ["2024-01", "2024-02"]),
        ("pd.arrays.IntervalArray.from_breaks([0, 1])", ["(0, 1]"]),
        ("[uuid.UUID(int=1)]", ["00000000-0000-0000-0000-000000000001"]),
        ("[b'raw']", ["b'raw'"]),
        ("pd.array([1, None], dtype='Int64')", [1, None]),
        ("pd.array(['a', None], dtype='string')", ["a", None]),
        ("pd.array([True, None], dtype='boolean')", [True, None]),
        ("pd.Categorical(['p', 'q', None])", ["p", "q", None]),
        ("[pd.NaT, pd.NA]", [None, None]),
        ("[[1, (2.5, np.nan)], {'k': pd.Timestamp('2024-01-01')}]", [[1, [2.5, None]], {"k": "2024-01-01T00:00:00"}]),
        ("[np.int8(3), np.float32(0.5), np.datetime64('2024-01-01')]", [3, 0.5, "2024-01-01T00:00:00"]),
        ("[1 + 2j]", ["(1+2j)"]),
        ("[2**70]", [2**70]),
        ("[[float('inf')]]", [[None]]),
    ],
)
def test_cells_of_a_frame(shared: Client, cells: str, expected: list[Any]) -> None:
    assert data_of(shared, f"{{'c': {cells}}}") == {"c": expected}


def test_types_of_cells_are_kept(shared: Client) -> None:
    data = data_of(shared, "{'i': [1], 'f': [1.0], 'b': [True]}")
    assert [type(data[k][0]) for k in "ifb"] == [int, float, bool]


def test_an_object_that_cannot_be_printed_does_not_lose_the_data(shared: Client) -> None:
    shared.run("class Bad:\n    def __str__(self): raise ValueError\n    __repr__ = __str__")
    outcome = shared.run(FRAME + "pd.DataFrame({'c': [Bad()], 'd': [1]})")
    assert outcome.main["e2b/data"] == {"c": ["<Bad>"], "d": [1]}


def test_names_of_columns_are_text(shared: Client) -> None:
    assert data_of(shared, "[[1, 2]], columns=[0, True]") == {"0": [1], "True": [2]}
    names = "pd.MultiIndex.from_tuples([('a', 'b'), ('a', 'c')])"
    assert data_of(shared, f"[[1, 2]], columns={names}") == {"('a', 'b')": [1], "('a', 'c')": [2]}


def test_the_last_of_equal_names_wins_without_a_warning(shared: Client) -> None:
    assert data_of(shared, "[[1, 2, 3]], columns=['a', 'b', 'a']") == {"a": [3], "b": [2]}


def test_empty_frames_and_the_index(shared: Client) -> None:
    assert data_of(shared, "{'a': []}") == {"a": []}
    assert data_of(shared, "") == {}
    assert data_of(shared, "{'a': [1, 2]}, index=['x', 'y']") == {"a": [1, 2]}


def test_subclasses_count_and_other_things_do_not(shared: Client) -> None:
    assert shared.run("import pandas as pd\nclass Sub(pd.DataFrame): pass\nSub({'a': [1]})").main["e2b/data"] == {
        "a": [1]
    }
    for code in ("pd.Series([1])", "pd.Index([1])", "pd.DataFrame({'a': [1]}).describe"):
        assert "e2b/data" not in shared.run(code).main


def test_a_large_frame_comes_whole(shared: Client) -> None:
    data = shared.run("import pandas as pd; pd.DataFrame({'a': range(100_000), 'b': 0.5})").main["e2b/data"]
    assert len(data["a"]) == len(data["b"]) == 100_000
