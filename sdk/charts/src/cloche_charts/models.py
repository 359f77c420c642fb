# SPDX-License-Identifier: Apache-2.0
"""The classes of charts. schema.py writes the JSON schema from them, so the two cannot differ.

A chart has one of the original's types (`type`, `title`, `elements` and the fields of that type), which every client
knows. What that cannot say is in `detail`, whose `type` is one of ours: a histogram is a `bar` with a `Histogram`, an
image is `unknown` with a `Heatmap`. A detail is complete in itself. On the wire it is the key `cloche`, left out
where there is none; all other fields are always there, null where there is nothing. `kind` is the best name of both.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal, Optional, Union, cast, get_args, get_origin, get_type_hints

Value = Union[float, str, None]
Point = tuple[Value, Value]
Text = Optional[str]
Number = Optional[float]
WIRE = {"detail": "cloche"}  # names that differ between the classes and the wire


# ---- parts


@dataclass
class Sampled:
    """What a limit left out: of the `of` points (rows, columns, lines) of an element every `step`-th was kept."""

    element: int
    what: Literal["points", "rows", "columns", "lines"]
    of: int
    kept: int
    step: int


@dataclass
class PointData:
    label: str
    points: list[Point]


@dataclass
class BarData:
    label: str
    group: str
    value: Number


@dataclass
class PieData:
    label: str
    angle: float
    radius: float


@dataclass
class BoxAndWhiskerData:
    label: str
    min: Number
    first_quartile: Number
    median: Number
    third_quartile: Number
    max: Number
    outliers: list[float]


@dataclass
class Labels:
    x_label: Text
    y_label: Text
    x_unit: Text
    y_unit: Text


@dataclass
class Ticks:
    x_ticks: list[Value]
    x_tick_labels: list[str]
    x_scale: str
    y_ticks: list[Value]
    y_tick_labels: list[str]
    y_scale: str


# ---- details


@dataclass
class HistogramData:
    """Bins in order: lower edge, upper edge, value (a count, or what the bins were weighted or normed to)."""

    label: str
    bins: list[tuple[Value, Value, Number]]


@dataclass
class Histogram(Ticks, Labels):
    type: Literal["histogram"]
    orientation: Literal["vertical", "horizontal"]
    elements: list[HistogramData]
    sampled: Optional[list[Sampled]] = None


@dataclass
class AreaData:
    """What is filled: position, lower end, upper end."""

    label: str
    points: list[tuple[Value, Value, Value]]


@dataclass
class Area(Ticks, Labels):
    """Filled between two curves. `stacked`: each area begins where the one before it ends. `lines` are drawn beside."""

    type: Literal["area"]
    orientation: Literal["vertical", "horizontal"]
    stacked: bool
    elements: list[AreaData]
    lines: list[PointData]
    sampled: Optional[list[Sampled]] = None


@dataclass
class HeatmapData:
    """values[row][column] is at x[column], y[row]; values is null for pictures of 3 or 4 channels."""

    label: str
    rows: int
    columns: int
    channels: int
    x: Optional[list[Value]]
    y: Optional[list[Value]]
    values: Optional[list[list[Number]]]
    value_min: Number
    value_max: Number
    colormap: Text


@dataclass
class Heatmap(Ticks, Labels):
    type: Literal["heatmap"]
    elements: list[HeatmapData]
    sampled: Optional[list[Sampled]] = None


@dataclass
class ErrorBarData:
    """Points, and for each how far its error reaches down and up; null where that axis has no errors."""

    label: str
    points: list[Point]
    x_errors: Optional[list[tuple[Number, Number]]]
    y_errors: Optional[list[tuple[Number, Number]]]


@dataclass
class ErrorBars(Ticks, Labels):
    type: Literal["error_bar"]
    elements: list[ErrorBarData]
    sampled: Optional[list[Sampled]] = None


@dataclass
class ContourData:
    """The curves of one level; of a filled contour the outlines between `level` and `upper`."""

    level: Number
    upper: Number
    paths: list[list[Point]]


@dataclass
class Contour(Ticks, Labels):
    """levels are null where matplotlib (before 3.8) does not keep them with what it draws."""

    type: Literal["contour"]
    filled: bool
    levels: Optional[list[Number]]
    elements: list[ContourData]
    sampled: Optional[list[Sampled]] = None


@dataclass
class PolarData:
    """Points as angle (radians) and radius; of bars also their widths (radians) and where they begin."""

    label: str
    points: list[Point]
    widths: Optional[list[Number]]
    bases: Optional[list[Number]]


@dataclass
class Polar(Ticks, Labels):
    """`of` says what was drawn. Angle 0 is at theta_offset (radians from the right), direction -1 is clockwise."""

    type: Literal["polar"]
    of: Literal["line", "scatter", "bar", "area"]
    theta_offset: float
    theta_direction: float
    elements: list[PolarData]
    sampled: Optional[list[Sampled]] = None


@dataclass
class SpatialData:
    label: str
    points: list[tuple[Value, Value, Value]]


@dataclass
class Spatial(Labels):
    """Points (`elements`) and lines in three dimensions; line_3d where there are only lines."""

    type: Literal["scatter_3d", "line_3d"]
    z_label: Text
    z_unit: Text
    elements: list[SpatialData]
    lines: list[SpatialData]
    sampled: Optional[list[Sampled]] = None


@dataclass
class PlotlyData:
    """One trace: its own type, mode and orientation, and its data by the names plotly gives it (x, y, values, ...)."""

    label: str
    trace: str
    mode: Text
    orientation: Text
    columns: dict[str, list[Any]]


@dataclass
class Plotly(Labels):
    type: Literal["plotly"]
    elements: list[PlotlyData]
    sampled: Optional[list[Sampled]] = None


@dataclass
class Channel:
    """What one channel of an altair mark shows."""

    field: Text
    type: Text
    title: Text
    aggregate: Text
    bin: bool


@dataclass
class AltairData:
    """One mark: what its channels (x, y, color, ...) show, and the columns they name, of the chart's own data."""

    label: str
    mark: str
    encoding: dict[str, Channel]
    columns: dict[str, list[Any]]


@dataclass
class Altair(Labels):
    type: Literal["altair"]
    elements: list[AltairData]
    sampled: Optional[list[Sampled]] = None


@dataclass
class Plain:
    """Nothing but what was left out, of a chart that its own type describes."""

    type: Literal["line", "scatter", "bar", "pie", "box_and_whisker"]
    sampled: list[Sampled]


Detail = Union[Histogram, Area, Heatmap, ErrorBars, Contour, Polar, Spatial, Plotly, Altair, Plain]


# ---- charts


class _Wire:
    """What all charts can do."""

    type: str
    detail: Optional[Detail]

    @property
    def kind(self) -> str:
        """The detail's type where there is one, else the chart's."""
        return self.detail.type if self.detail is not None else self.type

    def to_dict(self) -> dict[str, Any]:
        """As it travels."""
        return cast("dict[str, Any]", encode(self))


@dataclass
class UnknownChart(_Wire):
    type: Literal["unknown"]
    title: Text
    elements: list[Any]
    detail: Optional[Detail] = None


@dataclass
class LineChart(_Wire, Ticks, Labels):
    type: Literal["line"]
    title: Text
    elements: list[PointData]
    detail: Optional[Detail] = None


@dataclass
class ScatterChart(_Wire, Ticks, Labels):
    type: Literal["scatter"]
    title: Text
    elements: list[PointData]
    detail: Optional[Detail] = None


@dataclass
class BarChart(_Wire, Labels):
    type: Literal["bar"]
    title: Text
    elements: list[BarData]
    detail: Optional[Detail] = None


@dataclass
class PieChart(_Wire):
    type: Literal["pie"]
    title: Text
    elements: list[PieData]
    detail: Optional[Detail] = None


@dataclass
class BoxAndWhiskerChart(_Wire, Labels):
    type: Literal["box_and_whisker"]
    title: Text
    elements: list[BoxAndWhiskerData]
    detail: Optional[Detail] = None


Part = Union[LineChart, ScatterChart, BarChart, PieChart, BoxAndWhiskerChart, UnknownChart]


@dataclass
class SuperChart(_Wire):
    """The charts of a figure with several axes, in their order; an inset follows the axes it is in."""

    type: Literal["superchart"]
    title: Text
    elements: list[Part] = field(default_factory=list)
    detail: Optional[Detail] = None


Chart = Union[LineChart, ScatterChart, BarChart, PieChart, BoxAndWhiskerChart, SuperChart, UnknownChart]


# ---- to and from plain data


class ChartError(ValueError):
    """The data is no chart; the message says where."""


def chart_from_dict(data: Optional[dict[str, Any]]) -> Optional[Chart]:
    """The chart in what was received; None for `{}`. A type that is not known is an UnknownChart.

    A detail of a type that is not known, or of a shape that this version cannot read, is left out.
    """
    if not data:
        return None
    return cast("Chart", decode(Chart, data, "chart"))


def encode(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        fields = ((f.name, f.default is None, getattr(value, f.name)) for f in dataclasses.fields(value))
        return {
            WIRE.get(name, name): encode(item) for name, optional, item in fields if not (optional and item is None)
        }
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {key: encode(item) for key, item in value.items()}
    return value


def decode(hint: Any, value: Any, place: str) -> Any:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Union:
        return _decode_union(args, value, place)
    if origin is list:
        return [decode(args[0], item, f"{place}[{i}]") for i, item in enumerate(_must(value, list, place))]
    if origin is tuple:
        if len(_must(value, list, place)) != len(args):
            raise ChartError(f"{place} has {len(value)} values, not {len(args)}")
        return tuple(decode(arg, item, f"{place}[{i}]") for i, (arg, item) in enumerate(zip(args, value)))
    if origin is dict:
        return {key: decode(args[1], item, f"{place}.{key}") for key, item in _must(value, dict, place).items()}
    if origin is Literal:
        if value not in args:
            raise ChartError(f"{place} is {value!r}, not one of {', '.join(map(repr, args))}")
        return value
    if dataclasses.is_dataclass(hint):
        return _decode_class(hint, _must(value, dict, place), place)
    return value if hint is Any else _must(value, (int, float) if hint is float else hint, place)


def _must(value: Any, kind: Any, place: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ChartError(f"{place} is {value!r:.50}, which is no {getattr(kind, '__name__', 'number')}")
    return value


def _decode_union(args: tuple[Any, ...], value: Any, place: str) -> Any:
    if value is None and type(None) in args:
        return None
    classes = [arg for arg in args if dataclasses.is_dataclass(arg)]
    if not classes:
        for arg in args:
            if arg is not type(None) and isinstance(value, (int, float) if arg is float else get_origin(arg) or arg):
                return decode(arg, value, place)
        raise ChartError(f"{place} is {value!r:.50}, which it cannot be")
    if len(classes) == 1:
        return decode(classes[0], value, place)
    name = _must(value, dict, place).get("type")
    chosen = [c for c in classes if name in get_args(get_type_hints(c)["type"])]
    if chosen:
        return decode(chosen[0], value, place)
    if UnknownChart in classes:
        return _decode_class(UnknownChart, {**value, "type": "unknown"}, place)
    raise ChartError(f"{place} has the type {name!r}, which is not known")


def _decode_class(kind: Any, value: dict[str, Any], place: str) -> Any:
    given: dict[str, Any] = {}
    hints = get_type_hints(kind)
    for one in dataclasses.fields(kind):
        name = WIRE.get(one.name, one.name)
        if name in value:
            try:
                given[one.name] = decode(hints[one.name], value[name], f"{place}.{name}")
            except ChartError:
                if one.name != "detail":
                    raise
        elif one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING:
            raise ChartError(f"{place} has no {name}")
    return kind(**given)
