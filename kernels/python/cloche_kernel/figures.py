# SPDX-License-Identifier: Apache-2.0
"""matplotlib inside a cell: a backend whose screen is the client.

It is an ordinary matplotlib backend module (`module://cloche_kernel.figures`): Agg draws, show() displays
every open figure and closes it, and what is still open when a cell ends is displayed then.
A figure is drawn once per display; its chart is read from that drawing. %config InlineBackend
chooses formats and drawing options as in any notebook.
"""

import io
import sys
from typing import Any

from IPython.core.getipython import get_ipython
from IPython.display import display
from matplotlib import interactive, rcParams
from matplotlib._pylab_helpers import Gcf
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg

from . import drawing

BACKEND = "module://cloche_kernel.figures"
LOOKS = {"facecolor", "edgecolor", "bbox_inches", "pad_inches"}  # options that leave the encoding of a PNG alone


class FigureManager(FigureManagerBase):
    def show(self) -> None:
        """fig.show(): displayed now, and again at the end of the cell only if it changes."""
        figure = self.canvas.figure
        display(figure)
        figure.stale = False
        self.shown = True

    @classmethod
    def pyplot_show(cls, *, block: bool | None = None) -> None:  # type: ignore[override]
        display_all()


class FigureCanvas(FigureCanvasAgg):
    manager_class = FigureManager  # type: ignore[assignment]


def display_all() -> None:
    """Displays the open figures by number and closes them."""
    managers = sorted(Gcf.get_all_fig_managers(), key=lambda manager: manager.num)
    try:
        for manager in managers:
            figure = manager.canvas.figure
            if not (getattr(manager, "shown", False) and not figure.stale):
                display(figure)
    finally:
        if inline().close_figures:
            Gcf.destroy_all()


def flush() -> None:
    """The end of a cell: shows what is left open, if the figures are ours to show."""
    if Gcf.figs and rcParams._get("backend") == BACKEND:
        display_all()


def activate() -> None:
    """Makes this the backend, also when pyplot already runs with another one."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        rcParams["backend"] = BACKEND
    else:
        pyplot.switch_backend(BACKEND)
    interactive(True)


def inline() -> Any:
    return get_ipython().inline


def picture(figure: Any, form: str) -> Any:
    """The figure drawn in one format: text for svg, bytes for the others."""
    options = {
        "format": "png" if form == "retina" else form,
        "dpi": figure.dpi * 2 if form == "retina" else figure.dpi,
        "facecolor": figure.get_facecolor(),
        "edgecolor": figure.get_edgecolor(),
        "bbox_inches": "tight",
        **inline().print_figure_kwargs,
    }
    if figure.canvas is None:
        FigureCanvasAgg(figure)
    if options["format"] == "png" and inline().print_figure_kwargs.keys() <= LOOKS:
        return drawing.png(figure, options)
    target = io.BytesIO()
    figure.canvas.print_figure(target, **options)
    drawn = target.getvalue()
    return drawn.decode("utf-8") if form == "svg" else drawn
