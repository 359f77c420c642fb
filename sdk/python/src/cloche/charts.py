# SPDX-License-Identifier: Apache-2.0
"""Charts as data: what a figure shows, extracted in the sandbox beside its picture.

A type that this version does not know becomes a plain `Chart` of type `UNKNOWN`; `to_dict` gives what came. Types that
the stock SDKs do not have are in `detail`: histograms, areas, heatmaps, error bars, contours, polar and spatial charts,
plotly's and altair's.
"""

from __future__ import annotations

import enum
from typing import Any, Dict, List, Optional, Tuple, Type, Union

from ._core.chart_details import ChartDetail, read_detail


class ChartType(str, enum.Enum):
    LINE = "line"
    SCATTER = "scatter"
    BAR = "bar"
    PIE = "pie"
    BOX_AND_WHISKER = "box_and_whisker"
    SUPERCHART = "superchart"
    UNKNOWN = "unknown"


class ScaleType(str, enum.Enum):
    LINEAR = "linear"
    DATETIME = "datetime"
    CATEGORICAL = "categorical"
    LOG = "log"
    SYMLOG = "symlog"
    LOGIT = "logit"
    FUNCTION = "function"
    FUNCTIONLOG = "functionlog"
    ASINH = "asinh"
    UNKNOWN = "unknown"


def _scale(name: Any) -> ScaleType:
    try:
        return ScaleType(name)
    except ValueError:
        return ScaleType.UNKNOWN


class Chart:
    """What all charts have. `elements` of an unknown type are as they came."""

    type: ChartType
    title: str
    elements: List[Any]

    detail: Optional[ChartDetail]
    """What the chart is beyond the types here: a histogram, a heatmap, ... None where there is nothing more to say."""

    def __init__(self, **kwargs: Any) -> None:
        self._raw: Dict[str, Any] = kwargs
        self.detail = read_detail(kwargs.get("cloche"))
        try:
            self.type = ChartType(kwargs["type"] or ChartType.UNKNOWN)
        except ValueError:
            self.type = ChartType.UNKNOWN
        self.title = kwargs["title"]
        self.elements = kwargs["elements"]

    def to_dict(self) -> Dict[str, Any]:
        """The chart as it came from the sandbox."""
        return self._raw

    def __repr__(self) -> str:
        return f"{type(self).__name__}(type={self.type.value!r}, title={self.title!r}, elements={len(self.elements)})"


class Chart2D(Chart):
    x_label: Optional[str]
    y_label: Optional[str]
    x_unit: Optional[str]
    y_unit: Optional[str]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.x_label = kwargs["x_label"]
        self.y_label = kwargs["y_label"]
        self.x_unit = kwargs["x_unit"]
        self.y_unit = kwargs["y_unit"]


class PointData:
    """One line of a line chart, one group of a scatter chart."""

    label: str
    points: List[Tuple[Union[str, float], Union[str, float]]]

    def __init__(self, **kwargs: Any) -> None:
        self.label = kwargs["label"]
        self.points = [(point[0], point[1]) for point in kwargs["points"]]


class PointChart(Chart2D):
    x_ticks: List[Union[str, float]]
    x_tick_labels: List[str]
    x_scale: ScaleType
    y_ticks: List[Union[str, float]]
    y_tick_labels: List[str]
    y_scale: ScaleType
    elements: List[PointData]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.x_ticks = kwargs["x_ticks"]
        self.x_tick_labels = kwargs["x_tick_labels"]
        self.x_scale = _scale(kwargs.get("x_scale"))
        self.y_ticks = kwargs["y_ticks"]
        self.y_tick_labels = kwargs["y_tick_labels"]
        self.y_scale = _scale(kwargs.get("y_scale"))
        self.elements = [PointData(**element) for element in kwargs["elements"]]


class LineChart(PointChart):
    type = ChartType.LINE


class ScatterChart(PointChart):
    type = ChartType.SCATTER


class BarData:
    label: str
    group: str
    value: str

    def __init__(self, **kwargs: Any) -> None:
        self.label = kwargs["label"]
        self.group = kwargs["group"]
        self.value = kwargs["value"]


class BarChart(Chart2D):
    type = ChartType.BAR
    elements: List[BarData]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.elements = [BarData(**element) for element in kwargs["elements"]]


class PieData:
    label: str
    angle: float
    radius: float

    def __init__(self, **kwargs: Any) -> None:
        self.label = kwargs["label"]
        self.angle = kwargs["angle"]
        self.radius = kwargs["radius"]


class PieChart(Chart):
    type = ChartType.PIE
    elements: List[PieData]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.elements = [PieData(**element) for element in kwargs["elements"]]


class BoxAndWhiskerData:
    label: str
    min: float
    first_quartile: float
    median: float
    third_quartile: float
    max: float
    outliers: List[float]

    def __init__(self, **kwargs: Any) -> None:
        self.label = kwargs["label"]
        self.min = kwargs["min"]
        self.first_quartile = kwargs["first_quartile"]
        self.median = kwargs["median"]
        self.third_quartile = kwargs["third_quartile"]
        self.max = kwargs["max"]
        self.outliers = kwargs.get("outliers") or []


class BoxAndWhiskerChart(Chart2D):
    type = ChartType.BOX_AND_WHISKER
    elements: List[BoxAndWhiskerData]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.elements = [BoxAndWhiskerData(**element) for element in kwargs["elements"]]


class SuperChart(Chart):
    """Several charts in one figure."""

    type = ChartType.SUPERCHART
    elements: List[Chart]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.elements = [part for part in map(chart_from_dict, kwargs["elements"]) if part is not None]


ChartTypes = Union[Chart, LineChart, ScatterChart, BarChart, PieChart, BoxAndWhiskerChart, SuperChart]

_CLASSES: Dict[str, Type[Chart]] = {
    "line": LineChart,
    "scatter": ScatterChart,
    "bar": BarChart,
    "pie": PieChart,
    "box_and_whisker": BoxAndWhiskerChart,
    "superchart": SuperChart,
}


def chart_from_dict(data: Optional[Dict[str, Any]]) -> Optional[Chart]:
    """The chart that a result's data describes, None for an empty one."""
    return _CLASSES.get(data["type"], Chart)(**data) if data else None
