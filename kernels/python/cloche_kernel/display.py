# SPDX-License-Identifier: Apache-2.0
"""What a value looks like: IPython's formatters, the two of our own, and a quicker way through them.

IPython asks thirteen formatters about every value, and asking costs far more than answering. Here
only those are asked that have something registered for the value's type or whose method the value
has; the answers are the same. `e2b/data` and `e2b/chart` are MIME types of our own, after all others,
so that a chart is read off a figure that has just been drawn.
"""

from typing import Any

from IPython.core.formatters import BaseFormatter, DisplayFormatter, JSONFormatter
from traitlets import ObjectName, Unicode

from . import plain
from .charts import table
from .publisher import Encoded

# Values of exactly these types have no methods to ask for, and their text is their repr.
SIMPLE = frozenset({int, bool, str, float, complex, bytes, type(None)})
REPR = frozenset({int, str, float})
CHARTS = [("matplotlib.figure", "Figure"), ("plotly.basedatatypes", "BaseFigure")]
CHARTS += [(f"altair.vegalite.v{n}.api", "TopLevelMixin") for n in (4, 5, 6)]
PLOTLY = "application/vnd.plotly.v1+json"


class DataFormatter(BaseFormatter):
    """Table data of a DataFrame, or of anything with _repr_e2b_data_()."""

    format_type = Unicode("e2b/data")
    print_method = ObjectName("_repr_e2b_data_")
    _return_type = (dict, str)


class ChartFormatter(BaseFormatter):
    """The chart in a figure, or in anything with _repr_e2b_chart_()."""

    format_type = Unicode("e2b/chart")
    print_method = ObjectName("_repr_e2b_chart_")
    _return_type = (dict, str)

    def pop(self, typ: Any, default: Any = None) -> Any:
        """Keeps what it has: whoever changes the formats of figures pops them from all formatters."""
        return default


class StructureFormatter(JSONFormatter):
    """application/json, also of plain lists and dicts."""

    _return_type = (list, dict, str)

    def _check_return(self, r: Any, obj: Any) -> Any:
        return r if isinstance(r, Encoded) else super()._check_return(r, obj)


class Formatter(DisplayFormatter):
    def format(self, obj: Any, include: Any = None, exclude: Any = None) -> tuple[dict, dict]:
        text = self.formatters["text/plain"]
        if type(obj) in REPR and not include and not exclude and not self._others(obj):
            if text.enabled and text.pprint and text.float_format == "%r" and self._untouched(text, type(obj)):
                return {"text/plain": repr(obj)}, {}
        if speaks(self.ipython_display_formatter, obj) and self.ipython_display_formatter(obj):
            return {}, {}
        data, metadata = self._bundle(obj, include, exclude)
        for mime, formatter in self.formatters.items():
            if mime in data or (include and mime not in include) or (exclude and mime in exclude):
                continue
            if formatter is not text and not speaks(formatter, obj):
                continue
            value = formatter(obj)
            if isinstance(value, tuple) and len(value) == 2:
                value, about = value
                if about is not None:
                    metadata[mime] = about
            if value is not None:
                data[mime] = value
        return data, metadata

    def _untouched(self, text: Any, kind: type) -> bool:
        return text.type_printers.get(kind) is self.printers.get(kind)

    printers: dict[type, Any]

    def _bundle(self, obj: Any, include: Any, exclude: Any) -> tuple[dict, dict]:
        if not speaks(self.mimebundle_formatter, obj):
            return {}, {}
        data, metadata = self.mimebundle_formatter(obj, include=include, exclude=exclude) or ({}, {})
        keep = [m for m in data if (not include or m in include) and not (exclude and m in exclude)]
        return {m: data[m] for m in keep}, {m: metadata[m] for m in keep if m in metadata}

    def _others(self, obj: Any) -> bool:
        """Has anything but plain text been registered for this simple value?"""
        if speaks(self.ipython_display_formatter, obj) or speaks(self.mimebundle_formatter, obj):
            return True
        return any(speaks(f, obj) for mime, f in self.formatters.items() if mime != "text/plain")


def speaks(formatter: Any, obj: Any) -> bool:
    """Would this formatter find a printer or a method for the value?"""
    kind = type(obj)
    known = formatter._trait_values
    by_type, by_name = known.get("type_printers"), known.get("deferred_printers")
    if by_type is None or by_name is None:
        by_type, by_name = formatter.type_printers, formatter.deferred_printers
    if by_type and not by_type.keys().isdisjoint(kind.__mro__):
        return True
    if by_name and any((c.__module__, c.__name__) in by_name for c in kind.__mro__):
        return True
    if kind in SIMPLE:
        return bool(known.get("singleton_printers")) and id(obj) in formatter.singleton_printers
    if id(obj) in formatter.singleton_printers:
        return True
    try:
        return getattr(obj, formatter.print_method, None) is not None
    except Exception:
        return False


def build(shell: Any) -> Formatter:
    """The shell's formatter, with our types registered."""
    formatter = Formatter(parent=shell)
    structure = StructureFormatter(parent=formatter)
    structure.for_type(list, plain.structure)
    structure.for_type(dict, plain.structure)
    data = DataFormatter(parent=formatter)
    for module in ("pandas.core.frame", "pandas"):
        data.for_type_by_name(module, "DataFrame", _table)
    chart = ChartFormatter(parent=formatter)
    for module, name in CHARTS:
        chart.for_type_by_name(module, name, _chart)
    formatter.formatters["application/json"] = structure
    formatter.formatters["e2b/data"] = data
    formatter.formatters["e2b/chart"] = chart
    text = formatter.formatters["text/plain"]
    text.max_seq_length = 0
    formatter.printers = {kind: text.type_printers.get(kind) for kind in REPR}
    return formatter


def with_chart(bundle: dict[str, Any]) -> dict[str, Any]:
    """A bundle that is displayed as it is: one of plotly's own has its chart added."""
    if PLOTLY not in bundle or "e2b/chart" in bundle:
        return bundle
    from .charts.api import chart_json

    return {**bundle, "e2b/chart": Encoded(chart_json(bundle[PLOTLY]))}


def _table(frame: Any) -> Encoded | None:
    text = table.table_json(frame)
    return None if text is None else Encoded(text)


def _chart(figure: Any) -> Encoded:
    from .charts.api import chart_json

    return Encoded(chart_json(figure))
