# SPDX-License-Identifier: Apache-2.0
"""matplotlib and PIL: which figures and images are displayed, when, and how often."""

import base64
import struct
from typing import Any

import pytest

from conftest import Client, Outcome

PLT = "import matplotlib.pyplot as plt\n"


def shown(outcome: Outcome) -> list[tuple[bool, str]]:
    assert outcome.error is None, outcome.error
    return [(e["main"], e["data"].get("text/plain", "")) for e in outcome.results]


FIGURE = (False, "<Figure size 640x480 with 1 Axes>")


def size_of(png: str) -> tuple[int, int]:
    return struct.unpack(">II", base64.b64decode(png)[16:24])


def test_a_figure_result_has_text_png_and_chart(kernel: Client) -> None:
    outcome = kernel.run("    " + PLT.strip() + "\n    plt.plot([1, 2, 3])\n    plt.show()")
    (figure,) = outcome.results
    assert set(figure["data"]) == {"text/plain", "image/png", "e2b/chart"}
    width, height = size_of(figure["data"]["image/png"])
    assert 500 < width < 640
    assert 400 < height < 480
    assert outcome.stderr == ""


def test_a_lone_kernel_draws_too(lone: Client) -> None:
    assert shown(lone.run(PLT + "plt.plot([1, 2]);")) == [FIGURE]
    assert shown(lone.run("from PIL import Image\nImage.new('RGB', (4, 4)).show()")) != []


def test_show_displays_in_order_of_numbers_and_closes(kernel: Client) -> None:
    outcome = kernel.run(
        PLT
        + (
            "for n in (3, 1, 2):\n    plt.figure(n, figsize=(n, n)); plt.plot([1, 2])\nprint('before')\n"
            "plt.show()\nprint('after', plt.get_fignums())"
        )
    )
    assert [e["ev"] for e in outcome.events] == ["count", "stream", "display", "display", "display", "stream", "done"]
    assert [text for _, text in shown(outcome)] == [f"<Figure size {n}00x{n}00 with 1 Axes>" for n in (1, 2, 3)]
    assert outcome.stdout == "before\nafter []\n"


def test_show_and_a_value_are_two_results(kernel: Client) -> None:
    assert shown(kernel.run(PLT + "plt.plot([1, 2])\nplt.show()\nx = 5\nx")) == [FIGURE, (True, "5")]


def test_figures_left_open_are_shown_at_the_end(kernel: Client) -> None:
    found = shown(kernel.run(PLT + "plt.plot([1, 2])"))
    assert found[0][0] is True
    assert found[0][1].startswith("[<matplotlib.lines.Line2D")
    assert found[1:] == [FIGURE]
    assert shown(kernel.run("plt.get_fignums()")) == [(True, "[]")]


def test_figures_left_open_are_shown_after_an_error(kernel: Client) -> None:
    outcome = kernel.run(PLT + "plt.plot([1, 2])\n1/0")
    assert outcome.kinds == ["count", "error", "display", "done"]
    assert outcome.status == "error"


def test_a_figure_as_value_is_shown_twice(kernel: Client) -> None:
    outcome = kernel.run(PLT + "fig, ax = plt.subplots(); ax.plot([1, 2])\nfig")
    assert shown(outcome) == [(True, FIGURE[1]), FIGURE]
    assert all({"image/png", "e2b/chart"} <= set(e["data"]) for e in outcome.results)


def test_fig_show_displays_once(kernel: Client) -> None:
    outcome = kernel.run(PLT + "fig = plt.figure(); plt.plot([1, 2])\nfig.show()\nprint('after')")
    assert outcome.kinds == ["count", "display", "stream", "done"]


def test_a_figure_changed_after_its_show_is_shown_again(kernel: Client) -> None:
    outcome = kernel.run(PLT + "fig = plt.figure(); plt.plot([1, 2])\nfig.show()\nplt.title('new');")
    assert len(outcome.results) == 2


def test_a_closed_figure_is_not_shown(kernel: Client) -> None:
    assert shown(kernel.run(PLT + "plt.plot([1, 2])\nplt.close()")) == []


def test_a_blank_figure_has_a_png_and_an_empty_chart(kernel: Client) -> None:
    (figure,) = kernel.run(PLT + "plt.figure();").results
    assert figure["data"]["e2b/chart"] == {}
    assert figure["data"]["image/png"]


def test_savefig_of_a_raster_file_shows_it(kernel: Client, tmp_path: Any) -> None:
    outcome = kernel.run(PLT + f"from pathlib import Path\nplt.plot([1, 2]); plt.savefig({str(tmp_path)!r} + '/a.png')")
    saved, figure = outcome.results
    assert set(saved["data"]) == {"text/plain", "image/png"}
    assert "e2b/chart" in figure["data"]
    assert base64.b64decode(saved["data"]["image/png"]) == (tmp_path / "a.png").read_bytes()
    assert len(kernel.run(f"plt.plot([1]); plt.savefig(Path({str(tmp_path)!r}) / 'b.png'); plt.close()").results) == 1
    assert (tmp_path / "b.png").exists()


def test_savefig_of_other_files_shows_nothing_more(kernel: Client, tmp_path: Any) -> None:
    code = (
        f"import io\nplt.plot([1, 2]);\nfor f in ('a.pdf', 'a.svg'): "
        f"plt.savefig({str(tmp_path)!r} + '/' + f)\nplt.savefig(io.BytesIO())"
    )
    assert shown(kernel.run(PLT + code)) == [FIGURE]


@pytest.mark.parametrize(
    ("setting", "types"),
    [
        ("figure_formats = ['svg']", {"image/svg+xml"}),
        (
            "figure_formats = ['png', 'svg', 'pdf', 'jpeg']",
            {"image/png", "image/svg+xml", "application/pdf", "image/jpeg"},
        ),
        ("figure_format = 'retina'", {"image/png"}),
    ],
)
def test_formats_can_be_chosen(kernel: Client, setting: str, types: set[str]) -> None:
    outcome = kernel.run(f"%config InlineBackend.{setting}\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]);")
    (figure,) = outcome.results
    assert set(figure["data"]) == types | {"text/plain", "e2b/chart"}
    if "retina" in setting:
        assert size_of(figure["data"]["image/png"])[0] > 900


def test_formats_can_be_chosen_the_old_way(kernel: Client) -> None:
    code = "from matplotlib_inline.backend_inline import set_matplotlib_formats\nset_matplotlib_formats('svg')\n"
    (figure,) = kernel.run(code + PLT + "plt.plot([1, 2]);").results
    assert set(figure["data"]) == {"text/plain", "image/svg+xml", "e2b/chart"}


def test_matplotlib_magic_is_accepted(kernel: Client) -> None:
    assert shown(kernel.run("%matplotlib inline\n" + PLT + "plt.plot([1, 2]);")) == [FIGURE]


def test_an_explicit_backend_is_respected(kernel: Client) -> None:
    outcome = kernel.run("import matplotlib\nmatplotlib.use('Agg')\n" + PLT + "plt.plot([1, 2]);")
    assert shown(outcome) == []
    assert shown(kernel.run("%matplotlib inline\nplt.plot([1, 2]);"))[-1] == FIGURE


def test_a_figure_that_cannot_be_drawn_does_not_hang(kernel: Client) -> None:
    outcome = kernel.run(PLT + "plt.plot([1, 2]); plt.title('$\\\\nonsense{$');")
    assert outcome.error["name"] == "ValueError"
    assert shown(kernel.run("plt.get_fignums()")) == [(True, "[]")]


# -- PIL

PIL = "from PIL import Image\nim = Image.new('RGB', (16, 16), 'red')\nrgba = Image.new('RGBA', (16, 16))\n"


def test_an_image_is_a_result(kernel: Client) -> None:
    assert set(kernel.run(PIL + "im").main) == {"text/plain", "image/png", "image/jpeg"}
    assert set(kernel.run("rgba").main) == {"text/plain", "image/png"}
    assert len(kernel.run("display(im)").results) == 1


def test_show_is_exactly_one_result(kernel: Client) -> None:
    outcome = kernel.run(PIL + "rgba.show()")
    (result,) = outcome.results
    assert result["data"]["image/png"]
    assert (outcome.stderr, outcome.stdout) == ("", "")


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.gif"])
def test_saving_to_a_named_file_shows_the_image(kernel: Client, tmp_path: Any, name: str) -> None:
    outcome = kernel.run(PIL + f"im.save({str(tmp_path / name)!r})")
    (result,) = outcome.results
    assert result["data"]["image/png"]
    assert (tmp_path / name).stat().st_size > 0
    assert kernel.run(f"Image.open({str(tmp_path / name)!r}).size").value == "(16, 16)"


def test_other_ways_of_saving_show_nothing(kernel: Client, tmp_path: Any) -> None:
    code = f"import io, pathlib\nim.save(pathlib.Path({str(tmp_path)!r}) / 'a.png')\nim.save(io.BytesIO(), 'PNG')"
    assert kernel.run(PIL + code).results == []
    assert (tmp_path / "a.png").exists()


def test_saving_inside_a_library_shows_nothing(kernel: Client, tmp_path: Any) -> None:
    code = (
        "import sys, types, sysconfig\ncode = compile('def f(im, p): im.save(p)', "
        "sysconfig.get_path('purelib') + '/lib.py', 'exec')\nns = {'__name__': 'lib'}\nexec(code, ns)\n"
    )
    assert kernel.run(PIL + code + f"ns['f'](im, {str(tmp_path / 'a.png')!r})").results == []
    assert (tmp_path / "a.png").exists()


def test_a_save_that_fails_raises(kernel: Client) -> None:
    assert kernel.run(PIL + "im.save('/nowhere/a.png')").error["name"] == "FileNotFoundError"
