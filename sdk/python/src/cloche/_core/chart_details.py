# SPDX-License-Identifier: Apache-2.0
"""What a chart is beyond the types that the stock SDKs know, in its key `cloche` (sdk/charts/schema/chart.json).

Older clients see such a chart as `unknown`, or as the plain type that it also is.
"""

from __future__ import annotations

from typing import Any, ClassVar, Dict, List, Optional, Type, Union

Value = Union[str, float, None]


class _Fields:
    """Takes the annotated fields of a class from an object of JSON; what is not there is None."""

    def __init__(self, **kwargs: Any) -> None:
        self._raw: Dict[str, Any] = kwargs
        for name in self._names():
            setattr(self, name, kwargs.get(name))

    @classmethod
    def _names(cls) -> List[str]:
        names = {name: "" for base in reversed(cls.__mro__) for name in base.__dict__.get("__annotations__", {})}
        return [name for name in names if not name.startswith("_")]

    def to_dict(self) -> Dict[str, Any]:
        """The object as it came."""
        return self._raw

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._names())})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    __hash__ = None  # type: ignore[assignment]


class Sampled(_Fields):
    """Of an element with more values than a chart may have: how many there were, and every which was kept."""

    element: int
    what: str
    of: int
    kept: int
    step: int


class HistogramData(_Fields):
    label: str
    bins: List[List[Value]]
    """Each is left edge, right edge, count."""


class AreaData(_Fields):
    label: str
    points: List[List[Value]]
    """Each is x, lower y, upper y."""


class HeatmapData(_Fields):
    label: str
    rows: int
    columns: int
    channels: int
    x: Optional[List[Value]]
    y: Optional[List[Value]]
    values: Optional[List[List[Optional[float]]]]
    value_min: Optional[float]
    value_max: Optional[float]
    colormap: Optional[str]


class ErrorBarData(_Fields):
    label: str
    points: List[List[Value]]
    x_errors: Optional[List[List[Optional[float]]]]
    y_errors: Optional[List[List[Optional[float]]]]


class ContourData(_Fields):
    level: Optional[float]
    upper: Optional[float]
    paths: List[List[List[Value]]]


class PolarData(_Fields):
    label: str
    points: List[List[Value]]
    widths: Optional[List[Optional[float]]]
    bases: Optional[List[Optional[float]]]


class SpatialData(_Fields):
    label: str
    points: List[List[Value]]


class PlotlyData(_Fields):
    label: str
    trace: str
    mode: Optional[str]
    orientation: Optional[str]
    columns: Dict[str, List[Any]]


class AltairData(_Fields):
    label: str
    mark: str
    encoding: Dict[str, Any]
    columns: Dict[str, List[Any]]


class ChartDetail(_Fields):
    """What all details have: their own type, and what was left out of too many values."""

    _element: ClassVar[Type[_Fields]] = _Fields

    type: str
    sampled: Optional[List[Sampled]]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        given: Optional[List[Any]] = kwargs.get("sampled")
        self.sampled = None if given is None else [Sampled(**one) for one in given]
        if "elements" in self._names():
            raw: List[Dict[str, Any]] = kwargs.get("elements") or []
            self.elements: List[Any] = [self._element(**one) for one in raw]


class _Axes(ChartDetail):
    x_label: Optional[str]
    y_label: Optional[str]
    x_unit: Optional[str]
    y_unit: Optional[str]


class _Ticks(_Axes):
    x_ticks: List[Value]
    x_tick_labels: List[str]
    x_scale: str
    y_ticks: List[Value]
    y_tick_labels: List[str]
    y_scale: str


class Histogram(_Ticks):
    _element = HistogramData

    orientation: str
    elements: List[HistogramData]


class Area(_Ticks):
    _element = AreaData

    orientation: str
    stacked: bool
    elements: List[AreaData]
    lines: List[Dict[str, Any]]


class Heatmap(_Ticks):
    _element = HeatmapData

    elements: List[HeatmapData]


class ErrorBars(_Ticks):
    _element = ErrorBarData

    elements: List[ErrorBarData]


class Contour(_Ticks):
    _element = ContourData

    filled: bool
    levels: Optional[List[Optional[float]]]
    elements: List[ContourData]


class Polar(_Ticks):
    _element = PolarData

    of: str
    theta_offset: float
    theta_direction: float
    elements: List[PolarData]


class Spatial(_Axes):
    """Points or lines in space."""

    _element = SpatialData

    z_label: Optional[str]
    z_unit: Optional[str]
    elements: List[SpatialData]
    lines: List[Dict[str, Any]]


class Plotly(_Axes):
    _element = PlotlyData

    elements: List[PlotlyData]


class Altair(_Axes):
    _element = AltairData

    elements: List[AltairData]


_CLASSES: Dict[str, Type[ChartDetail]] = {
    "histogram": Histogram,
    "area": Area,
    "heatmap": Heatmap,
    "error_bar": ErrorBars,
    "contour": Contour,
    "polar": Polar,
    "scatter_3d": Spatial,
    "line_3d": Spatial,
    "plotly": Plotly,
    "altair": Altair,
}


def read_detail(data: Any) -> Optional[ChartDetail]:
    """The detail of a chart, None where it has none; one of an unknown type is a plain ChartDetail."""
    if not isinstance(data, dict) or "type" not in data:
        return None
    fields: Dict[str, Any] = dict(data)  # pyright: ignore[reportUnknownArgumentType]
    return _CLASSES.get(str(fields["type"]), ChartDetail)(**fields)
