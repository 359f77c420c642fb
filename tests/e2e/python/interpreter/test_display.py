# SPDX-License-Identifier: Apache-2.0
"""Rich results of Python: every kind of value in the right field."""

from __future__ import annotations

import base64
import io

import pytest
from PIL import Image

from support.either import Either

PICTURE = "from PIL import Image\nim = Image.new('RGBA', (16, 16), (255, 0, 0, 255))\n"


def picture(png: str) -> Image.Image:
    opened = Image.open(io.BytesIO(base64.b64decode(png)))
    opened.load()
    return opened


async def test_a_shown_figure_has_picture_text_and_chart_and_nothing_extra(cell: Either) -> None:
    done = await cell.run_code("""
        import matplotlib.pyplot as plt
        import numpy as np
        x = np.linspace(0, 20, 100)
        plt.plot(x, np.sin(x))
        plt.show()
    """)
    result = done.results[0]
    assert len(done.results) == 1
    assert picture(result.png).format == "PNG"
    assert result.text.startswith("<Figure size")
    assert result.extra == {}
    assert result.chart is not None
    assert result.is_main_result is False


@pytest.mark.parametrize(
    "code, kinds",
    [
        ("plt.plot([1, 2]); plt.show(); 5", [("figure", False), ("5", True)]),
        ("plt.plot([1, 2])", [("line", True), ("figure", False)]),
        ("fig = plt.figure(); plt.plot([1]); fig", [("figure", True), ("figure", False)]),
        ("plt.plot([1]); plt.close()", []),
        ("plt.figure(); plt.plot([1]); plt.figure(); plt.plot([2]); plt.show()",
         [("figure", False), ("figure", False)]),
        ("plt.plot([1]); raise ValueError('x')", [("figure", False)]),
        ("plt.plot([1]); plt.savefig('saved.png'); plt.close()", [("image", False)]),
        ("plt.plot([1]); plt.savefig('saved.svg'); plt.close()", []),
    ],
)  # fmt: skip
async def test_figures_come_when_and_as_often_as_they_should(cell: Either, code, kinds) -> None:
    done = await cell.run_code("import matplotlib.pyplot as plt\n" + code)

    def kind(result) -> tuple[str, bool]:
        if result.png and (result.text or "").startswith("<Figure"):
            name = "figure"
        elif result.png:
            name = "image"
        elif "Line2D" in (result.text or ""):
            name = "line"
        else:
            name = result.text
        return name, result.is_main_result

    assert [kind(result) for result in done.results] == kinds


async def test_a_new_cell_starts_without_figures(cell: Either) -> None:
    await cell.run_code("import matplotlib.pyplot as plt\nplt.plot([1])\nraise KeyError")
    assert (await cell.run_code("1")).results[0].text == "1"
    assert (await cell.run_code("plt.get_fignums()")).text == "[]"


async def test_an_image_is_shown_once_however_it_is_displayed(cell: Either) -> None:
    for code in ("im.show()", "im", "im.save('test.png')", "display(im)"):
        done = await cell.run_code(PICTURE + code)
        assert done.error is None, (code, done.error)
        assert len(done.results) == 1, code
        shown = picture(done.results[0].png)
        assert shown.size == (16, 16)
        assert shown.convert("RGB").getpixel((8, 8)) == (255, 0, 0)
        assert done.logs.stderr == []
    done = await cell.run_code(PICTURE + "import pathlib; im.save(pathlib.Path('x.png'))")
    assert done.results == []
    assert (await cell.commands.run("ls test.png x.png")).exit_code == 0


async def test_a_data_frame_is_data_of_plain_values(cell: Either) -> None:
    done = await cell.run_code("""
        import pandas as pd, numpy as np, decimal
        pd.DataFrame({
            "i": [1, 2], "f": [1.5, float("nan")], "s": ["x", None], "b": [True, False],
            "t": pd.to_datetime(["2024-01-01", None]),
            "d": pd.to_timedelta(["1 days", None]),
            "m": [decimal.Decimal("1.10"), decimal.Decimal(2)],
            3: [[1], {"k": 2}],
        })
    """)
    assert done.error is None
    data = done.results[0].data
    assert data["i"] == [1, 2]
    assert data["f"] == [1.5, None]
    assert data["s"] == ["x", None]
    assert data["b"] == [True, False]
    assert data["t"] == ["2024-01-01T00:00:00", None]
    assert data["d"][1] is None
    assert data["m"] == ["1.10", "2"]
    assert data["3"] == [[1], {"k": 2}]
    assert "<table" in done.results[0].html
    assert (await cell.run_code("pd.DataFrame({'a': []})")).results[0].data == {"a": []}
    assert (await cell.run_code("pd.Series([1])")).results[0].data is None


async def test_lists_and_dicts_are_json_too(cell: Either) -> None:
    done = await cell.run_code("{'a': [1, 2.0, None, float('nan')], 2: 'x'}")
    assert done.results[0].json == {"a": [1, 2.0, None, None], "2": "x"}
    assert (await cell.run_code("[1, object()]")).results[0].json is None
    assert (await cell.run_code("(1, 2)")).results[0].json is None


async def test_display_objects_reach_their_field(cell: Either) -> None:
    done = await cell.run_code("""
        from IPython.display import HTML, Markdown, SVG, Latex, JSON, Javascript
        display(HTML("<b>h</b>"), Markdown("# m"), SVG("<svg xmlns='http://www.w3.org/2000/svg'/>"))
        display(Latex("$x$"), JSON({"j": 1}), Javascript("1"))
    """)
    html, markdown, svg, latex, json, javascript = done.results
    assert html.html == "<b>h</b>"
    assert markdown.markdown == "# m"
    assert svg.svg.startswith("<svg")
    assert latex.latex == "$x$"
    assert json.json == {"j": 1}
    assert javascript.javascript == "1"
    assert [result.is_main_result for result in done.results] == [False] * 6


async def test_a_raw_bundle_gains_nothing(cell: Either) -> None:
    done = await cell.run_code("display({'text/latex': '$x$'}, raw=True)")
    assert done.results[0].formats() == ["latex"]


async def test_unknown_types_are_extra(cell: Either) -> None:
    done = await cell.run_code("display({'application/x-mine': {'a': 1}}, raw=True)")
    assert done.results[0].extra == {"application/x-mine": {"a": 1}}


async def test_a_long_list_is_not_shortened(cell: Either) -> None:
    text = (await cell.run_code("list(range(3000))")).text
    assert text.endswith("2999]")
    assert "..." not in text


async def test_numbers_keep_their_form(cell: Either) -> None:
    done = await cell.run_code("display({'application/json': {'a': 100.0, 'b': 2**62}}, raw=True)")
    value = done.results[0].json
    assert isinstance(value["a"], float)
    assert value["b"] == 2**62
