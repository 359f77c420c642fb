# SPDX-License-Identifier: Apache-2.0
"""A displayed figure has exactly the pixels that savefig(bbox_inches="tight") gives the same figure."""

import pytest

from chart_cases import CASES, HEAD
from conftest import Client

COMPARE = """
import io, base64, PIL.Image as _I
def pixels(data):
    picture = _I.open(io.BytesIO(data))
    return picture.mode, picture.size, picture.info.get("dpi"), picture.tobytes()
def saved(fig):
    target = io.BytesIO()
    fig.savefig(target, format="png", dpi="figure", bbox_inches="tight",
                facecolor=fig.get_facecolor(), edgecolor=fig.get_edgecolor())
    return target.getvalue()
def drawn(fig):
    return get_ipython().display_formatter.formatters["image/png"](fig)
def same(make):
    numpy.random.seed(1)
    one = make(); first = pixels(drawn(one)); again = pixels(drawn(one)); plt.close(one)
    numpy.random.seed(1)
    two = make(); wanted = pixels(saved(two)), pixels(saved(two)); plt.close(two)
    return (first, again) == wanted
import numpy
"""

# What decides where things are: text outside, legends, scales, sizes, insets, functions of the user's.
MORE = {
    "legend_best": "plt.plot([1, 5, 2], label='a'); plt.legend()",
    "legend_outside": "plt.plot([1, 2], label='a long label'); plt.legend(loc='upper left', bbox_to_anchor=(1, 1))",
    "long_labels": "plt.plot([1e6, 3e6]); plt.ylabel('y' + chr(10) + 'lines'); plt.title('T' + chr(10) + 't')",
    "rotated_ticks": "plt.bar(['first thing', 'second thing'], [1, 2]); plt.xticks(rotation=60)",
    "offset_text": "plt.plot([1e9, 1e9 + 1]); plt.plot([1e9 + 2, 1e9 + 3])",
    "text_outside": "plt.plot([1, 2]); plt.text(3, 3, 'outside'); plt.text(-1, 0, 'left')",
    "annotation": "plt.plot([1, 2]); plt.annotate('here', (0, 1), (2, 4), arrowprops={'arrowstyle': '->'})",
    "scatter_sizes": "plt.scatter(np.random.rand(50), np.random.rand(50), s=900 * np.random.rand(50), clip_on=False)",
    "scatter_clipped": "plt.scatter([0, 1], [0, 1], s=4000); plt.xlim(0, 1)",
    "heat_and_bar": "plt.colorbar(plt.imshow(np.random.rand(20, 20)))",
    "shared": "f, a = plt.subplots(2, 2, sharex=True, sharey='row'); a[0][0].plot([1, 100]); f.suptitle('S')",
    "tight_layout": "f, a = plt.subplots(2, 2); f.tight_layout(); a[0][0].set_xlabel('late')",
    "constrained": "f, a = plt.subplots(2, 2, layout='constrained'); a[1][1].set_ylabel('Y')",
    "log_log": "plt.loglog([1, 10, 1e5], [1, 1e3, 1e9]); plt.grid(True, which='both')",
    "dates": "plt.plot([datetime.date(2024, 1, d) for d in range(1, 20)], range(19)); plt.gcf().autofmt_xdate()",
    "function_formatter": "plt.plot([1, 2]); plt.gca().xaxis.set_major_formatter(lambda v, p: f'<{v}>')",
    "counting_formatter": "n = []; plt.plot([1, 2])\nplt.gca().xaxis.set_major_formatter("
    "lambda v, p: (n.append(1), str(len(n)))[1])",
    "facecolor": "plt.figure(facecolor='#abcdef', edgecolor='red'); plt.plot([1, 2])",
    "size_and_dpi": "plt.figure(figsize=(3, 7), dpi=171); plt.plot([1, 2]); plt.title('narrow')",
    "equal_aspect": "plt.plot([1, 2], [1, 9]); plt.axis('equal')",
    "outward_spines": "plt.plot([1, 2]); plt.gca().spines['left'].set_position(('outward', 20))",
    "twin": "plt.plot([1, 2]); plt.twinx().plot([300, 200]); plt.ylabel('right')",
    "secondary": "plt.plot([1, 2]); plt.gca().secondary_xaxis('top', functions=(np.negative, np.negative))",
    "table": "plt.plot([1, 2]); plt.table([['a', 'b']], loc='bottom')",
    "quiver": "plt.quiver([1, 2], [1, 2], [1, 0], [0, 1])",
    "many_lines": "[plt.plot(np.random.rand(100)) for _ in range(20)]",
    "categories": "plt.scatter(list('abc'), list('xyz'))",
    "nothing": "plt.figure()",
    "own_artist": "from matplotlib.lines import Line2D\\nclass L(Line2D):\\n  def draw(self, r):\\n"
    "    self.set_linewidth(self.get_linewidth() + 1); super().draw(r)\\nplt.gca().add_line(L([0, 1], [0, 1]))",
    "style": "plt.style.use('ggplot'); plt.plot([1, 2]); plt.style.use('default')",
    "sketch": "with plt.rc_context({'path.sketch': (1, 100, 2)}): plt.plot([1, 2])",
}
FIGURES = {**{name: code.replace("plt.show()", "") for name, code in CASES.items()}, **MORE}


@pytest.fixture(scope="module")
def drawer(shared: Client) -> Client:
    assert shared.run(HEAD + COMPARE).error is None
    return shared


@pytest.mark.parametrize("name", FIGURES)
def test_a_displayed_figure_has_the_pixels_of_a_tight_savefig(drawer: Client, name: str) -> None:
    body = "".join(f"    {line}\n" for line in FIGURES[name].replace("\\n", "\n").splitlines())
    outcome = drawer.run(f"def make():\n{body}    return plt.gcf()\nsame(make)")
    assert outcome.error is None, outcome.error
    assert outcome.value == "True"


def test_a_picture_in_colours_stays_small(drawer: Client) -> None:
    code = "x = np.linspace(0, 6, 400)\ndef make():\n    plt.imshow(np.sin(x)[:, None] * np.cos(x)); return plt.gcf()\n"
    outcome = drawer.run(code + "f = make(); a, b = len(drawn(f)), len(saved(f)); plt.close(f); (a, b, a < 1.5 * b)")
    assert outcome.value.endswith("True)"), outcome.value
