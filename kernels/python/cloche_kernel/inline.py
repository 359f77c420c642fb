# SPDX-License-Identifier: Apache-2.0
"""The settings behind `%config InlineBackend`, and the formatters they choose for figures.

Apart from figures.py because it must exist before matplotlib is imported, and cost nothing.
"""

from typing import Any

from traitlets import Bool, CaselessStrEnum, Dict, Set, observe
from traitlets.config.configurable import Configurable

FORMS = ["png", "retina", "png2x", "svg", "jpeg", "jpg", "pdf"]
ALIASES = {"png2x": "retina", "jpg": "jpeg"}
MIMES = {
    "png": "image/png",
    "retina": "image/png",
    "svg": "image/svg+xml",
    "jpeg": "image/jpeg",
    "pdf": "application/pdf",
}
FIGURE = ("matplotlib.figure", "Figure")


class InlineBackend(Configurable):
    """Named so because users write %config InlineBackend.figure_format = 'svg'."""

    figure_formats = Set({"png"}, help="the formats of a figure: png, retina, svg, jpeg, pdf").tag(config=True)
    figure_format = CaselessStrEnum(FORMS, allow_none=True, default_value=None, help="one format").tag(config=True)
    print_figure_kwargs = Dict({}, help="options for drawing a figure").tag(config=True)
    close_figures = Bool(True, help="close figures at the end of each cell").tag(config=True)
    rc = Dict({}, help="matplotlib rc values to set").tag(config=True)

    def __init__(self, shell: Any) -> None:
        super().__init__(parent=shell)
        self.shell = shell
        self._register()

    @observe("figure_format")
    def _one_format(self, change: Any) -> None:
        if change["new"]:
            self.figure_formats = {change["new"]}

    @observe("figure_formats")
    def _formats(self, _change: Any) -> None:
        self._register()

    @observe("rc")
    def _rc(self, change: Any) -> None:
        import matplotlib

        matplotlib.rcParams.update(change["new"])

    def _register(self) -> None:
        wanted = {ALIASES.get(form, form) for form in self.figure_formats}
        unknown = wanted - MIMES.keys()
        if unknown:
            raise ValueError(f"unknown figure format {sorted(unknown)[0]!r}; known are {', '.join(FORMS)}")
        formatters = self.shell.display_formatter.formatters
        for mime in set(MIMES.values()):
            formatters[mime].pop(".".join(FIGURE), None)
        for form in sorted(wanted):
            formatters[MIMES[form]].for_type_by_name(*FIGURE, _painter(form))


def _painter(form: str) -> Any:
    def paint(figure: Any) -> Any:
        from .figures import picture

        return picture(figure, form)

    return paint
