# SPDX-License-Identifier: Apache-2.0
"""One axis of a chart: label, unit, ticks and scale, and what a position on it stands for."""

from __future__ import annotations

from typing import Any

from matplotlib import dates
from matplotlib.ticker import FixedFormatter, FuncFormatter

from .axis_text import unit_of
from .values import number, text_of_number

DATE_CONVERTERS = {
    "_SwitchableDateConverter",
    "DateConverter",
    "ConciseDateConverter",
    "DatetimeConverter",
    "PeriodConverter",
    "TimeConverter",
}


class Axis:
    """Reads one matplotlib axis. Ticks and labels are computed once, when first asked for."""

    def __init__(self, ax: Any, name: str) -> None:
        self.ax = ax
        self.axis = ax.xaxis if name == "x" else ax.yaxis
        self._ticks: list[float] | None = None
        self._labels: list[str] = []
        self._converters = {c.__name__ for c in type(_converter(self.axis)).__mro__}

    @property
    def label(self) -> str | None:
        return self.axis.get_label_text() or None

    @property
    def unit(self) -> str | None:
        return unit_of(self.label)

    @property
    def is_datetime(self) -> bool:
        return bool(self._converters & DATE_CONVERTERS)

    @property
    def positions(self) -> list[float]:
        """Where the ticks are, also those outside the view."""
        if self._ticks is None:
            places = self.axis.get_majorticklocs()
            self._ticks = [float(place) for place in places]
            texts = self.axis.get_major_formatter().format_ticks(places) if len(places) else []
            self._labels = [str(text) for text in texts]
        return self._ticks

    @property
    def ticks(self) -> list[Any]:
        if self.is_datetime:
            return [self.moment(place, zone=True) for place in self.positions]
        return [number(place) for place in self.positions]

    @property
    def tick_labels(self) -> list[str]:
        return self._labels if self.positions else []

    @property
    def scale(self) -> str:
        if self.is_datetime:
            return "datetime"
        if self.axis.get_scale() != "linear":
            return str(self.axis.get_scale())
        ticks, labels = self.positions, self.tick_labels
        named = all(tick == i and label != str(i) for i, (tick, label) in enumerate(zip(ticks, labels)))
        return "categorical" if ticks and named else "linear"

    def moment(self, place: float, zone: bool = False) -> Any:
        """ISO text of a place on a datetime axis."""
        suffix = "+00:00" if zone else ""
        try:
            if "PeriodConverter" in self._converters:
                return _period(self.ax, place).isoformat() + suffix
            if "TimeConverter" in self._converters:
                minutes, seconds = divmod(round(place), 60)
                return f"{minutes // 60 % 24:02}:{minutes % 60:02}:{seconds:02}"
            return dates.num2date(place).replace(tzinfo=None).isoformat() + suffix
        except Exception:
            return number(place)

    def original(self, values: Any) -> Any:
        """What was plotted here: newer pandas hands matplotlib the numbers of its periods, not the periods."""
        if "PeriodConverter" in self._converters and getattr(values, "dtype", None) is not None:
            if values.dtype.kind in "iuf":
                return [self.moment(float(value)) for value in values]
        return values

    def categories(self) -> dict[int, str]:
        """The names behind a category axis, by position."""
        mapping = getattr(self.axis.units, "_mapping", None)
        return {place: str(name) for name, place in mapping.items()} if mapping else {}

    def names(self, places: list[float]) -> list[str]:
        """What to call bars or boxes standing at these places.

        Named ticks (categories, labels set by hand) give their name to what is nearest, within half the way
        to the next one: that is how grouped bars are drawn. On an axis of plain numbers the tick labels are
        used only if every place has one.
        """
        categories = self.categories()
        if categories:
            return [categories.get(round(place), text_of_number(place)) for place in places]
        if self.is_named_by_hand():
            return [self._nearest(place) for place in places]
        if self.is_datetime:
            return [_short_moment(self.moment(place)) for place in places]
        exact = [self._exactly_at(place) for place in places]
        if all(exact):
            return [str(label) for label in exact]
        return [text_of_number(place) for place in places]

    def is_named_by_hand(self) -> bool:
        formatter = self.axis.get_major_formatter()
        return isinstance(formatter, FixedFormatter) or (isinstance(formatter, FuncFormatter) and any(self.tick_labels))

    def _nearest(self, place: float) -> str:
        spots = sorted(zip(self.positions, self.tick_labels), key=lambda spot: abs(spot[0] - place))
        if not spots:
            return text_of_number(place)
        ticks = sorted(set(self.positions))
        gaps = [b - a for a, b in zip(ticks, ticks[1:])]
        reach = min(gaps) / 2 if gaps else 0.5
        distance, label = abs(spots[0][0] - place), spots[0][1]
        return label if label and distance <= reach * 1.0001 else text_of_number(place)

    def _exactly_at(self, place: float) -> str | None:
        for tick, label in zip(self.positions, self.tick_labels):
            if abs(tick - place) <= 1e-9 * max(1.0, abs(place)):
                return label
        return None


def labels(x: Axis, y: Axis) -> dict[str, Any]:
    """The label and unit keys every chart with two axes has."""
    return {"x_label": x.label, "y_label": y.label, "x_unit": x.unit, "y_unit": y.unit}


def scales(x: Axis, y: Axis) -> dict[str, Any]:
    """The tick and scale keys of point charts."""
    return {
        "x_ticks": x.ticks,
        "x_tick_labels": x.tick_labels,
        "x_scale": x.scale,
        "y_ticks": y.ticks,
        "y_tick_labels": y.tick_labels,
        "y_scale": y.scale,
    }


def _converter(axis: Any) -> Any:
    if hasattr(axis, "get_converter"):
        return axis.get_converter()
    return axis.converter


def _period(ax: Any, place: float) -> Any:
    import pandas

    return pandas.Period(ordinal=int(place), freq=ax.freq).start_time


def _short_moment(text: Any) -> str:
    """A day is a day: midnight goes unsaid."""
    return str(text).removesuffix("T00:00:00")
