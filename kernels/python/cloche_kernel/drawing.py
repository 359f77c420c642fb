# SPDX-License-Identifier: Apache-2.0
"""A figure's PNG: the pixels of `savefig(bbox_inches="tight")`, at about half its time.

matplotlib draws a tight figure twice, the first time to nowhere for its size, and computes the ticks of an axis some
fifteen times on the way. Here an axis that is asked again under the same limits, size and locators says what
it said before; the first drawing is left out where all artists are of kinds whose size needs no drawing; and the pixels
are compressed without PNG's filters, which cost most of the time and help little with lines on a plain ground.

None of it applies to a figure that has anything of the user's own in it (a class, a method, a callback, a function as
formatter): such a figure is drawn as matplotlib does it. tests/kernels compares the pixels.
"""

import struct
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import matplotlib
from matplotlib import ticker
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis, YAxis
from matplotlib.collections import LineCollection, PathCollection, PolyCollection, QuadMesh
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch, Polygon, Rectangle, StepPatch, Wedge
from matplotlib.spines import Spine
from matplotlib.text import Text

LEVEL = 3  # of zlib
DENSE = 0.1  # of the bytes: above it the picture is of the kind that filters are for
PREDICTABLE = {"matplotlib.ticker", "matplotlib.dates", "matplotlib.category"}  # locators and formatters
METRE = 0.0254  # metres in an inch
# What stands where its data says, so that its size is known before it is drawn.
SETTLED = {Line2D, LineCollection, PathCollection, PolyCollection, QuadMesh, AxesImage, PathPatch, Polygon, Rectangle}
SETTLED |= {StepPatch, Wedge, Text, Legend, Spine, XAxis, YAxis}


class _Pixels:
    """A file for print_figure(format="rgba"), which writes the whole picture at once."""

    def __init__(self) -> None:
        self.rows: Any = None

    def write(self, rows: Any) -> None:
        self.rows = memoryview(rows)

    def seek(self, *_where: Any) -> None:
        """print_figure() never does; it asks whether it could."""


def png(figure: Any, options: dict[str, Any]) -> bytes:
    """The figure as PNG; the options are those of print_figure(), without pil_kwargs or metadata."""
    target = _Pixels()
    with quick(figure):
        figure.canvas.print_figure(target, **{**options, "format": "rgba"})
    return encode(target.rows, float(options["dpi"]))


def encode(rows: memoryview, dpi: float) -> bytes:
    import numpy

    pixels = numpy.asarray(rows)
    height, width = pixels.shape[:2]
    lines = numpy.zeros((height, width * 4 + 1), numpy.uint8)
    lines[:, 1:] = pixels.reshape(height, width * 4)
    body = zlib.compress(lines, LEVEL)
    if len(body) > lines.size * DENSE:
        lines[:, 0] = 1  # each byte is the difference to the one a pixel to the left
        lines[:, 5:] -= pixels.reshape(height, width * 4)[:, :-4]
        body = zlib.compress(lines, LEVEL)
    density = int(dpi / METRE + 0.5)
    software = f"Software\0Matplotlib version{matplotlib.__version__}, https://matplotlib.org/"
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)),
        (b"tEXt", software.encode("latin-1")),
        (b"pHYs", struct.pack(">IIB", density, density, 1)),
        (b"IDAT", body),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(name)))


@contextmanager
def quick(figure: Any) -> Iterator[None]:
    """While it lasts the figure does not compute again what cannot have changed."""
    try:
        axes = _axes(figure)
    except Exception:  # another matplotlib than those known here, or an odd figure
        axes = None
    with ExitStack() as stack:
        if axes is not None:
            for axis in (axis for ax in axes for axis in (ax.xaxis, ax.yaxis)):
                stack.enter_context(_remembering(axis))
            if all(_is_settled(artist) for ax in axes for artist in _artists(ax)):
                stack.enter_context(_without_rehearsal(figure))
        yield


def _axes(figure: Any) -> list[Any] | None:
    """All axes of a figure in which everything is matplotlib's own; None if something is not."""
    if type(figure) is not Figure or figure.subfigs or figure.get_layout_engine() is not None or "draw" in vars(figure):
        return None
    if figure.canvas.callbacks.callbacks.get("draw_event"):
        return None
    axes, found = list(figure.axes), []
    if {id(a) for a in figure.get_children()} - {id(a) for a in axes} - {id(figure.patch)}:
        return None
    while axes:
        ax = axes.pop()
        if type(ax) is not Axes or ax in found or not all(_is_plain(artist) for artist in _artists(ax)):
            return None
        if not (_is_predictable(ax.xaxis) and _is_predictable(ax.yaxis)):
            return None
        found.append(ax)
        axes.extend(ax.child_axes)
    return found


def _artists(ax: Any) -> list[Any]:
    legend = [ax.legend_] if ax.legend_ is not None else []
    return [*ax._children, *ax.spines.values(), *legend, ax.xaxis, ax.yaxis, ax.title, ax.patch]


def _is_plain(artist: Any) -> bool:
    """matplotlib's own class, and no method of it replaced."""
    if not isinstance(artist, Artist) or not type(artist).__module__.startswith("matplotlib."):
        return False
    return not any(callable(getattr(type(artist), name, None)) for name in vars(artist)) and not artist._agg_filter


def _is_settled(artist: Any) -> bool:
    if type(artist) not in SETTLED or artist.get_sketch_params() is not None:
        return False
    return bool(artist.get_clip_on()) or not hasattr(artist, "get_offsets")


def _is_predictable(axis: Any) -> bool:
    """Locators and formatters of matplotlib's that depend on nothing but the axis."""
    parts = (axis.major.locator, axis.minor.locator, axis.major.formatter, axis.minor.formatter)
    if not hasattr(axis, "_get_ticklabel_bboxes") or type(axis)._update_ticks is not Axis._update_ticks:
        return False
    return all(type(part).__module__ in PREDICTABLE and not _is_function(part) for part in parts)


def _is_function(formatter: Any) -> bool:
    """A formatter that calls a function, but for the one that looks up labels set by hand."""
    if not isinstance(formatter, ticker.FuncFormatter):
        return False
    called = getattr(formatter.func, "func", None)
    return getattr(called, "__module__", None) != "matplotlib.axis"


@contextmanager
def _remembering(axis: Any) -> Iterator[None]:
    ticks, boxes = axis._update_ticks, axis._get_ticklabel_bboxes
    known: dict[str, Any] = {}
    measured: dict[Any, Any] = {}

    def state() -> Any:
        bounds, dpi = axis.axes.bbox.get_points(), axis.axes.figure.dpi
        size = ((bounds[1] - bounds[0]) / dpi).round(6)
        low, high = axis.get_view_interval()
        parts = (axis.major.locator, axis.minor.locator, axis.major.formatter, axis.minor.formatter)
        return low, high, *size, dpi, axis.get_scale(), *map(id, parts)

    def update_ticks(*args: Any, **options: Any) -> Any:
        if known.get("state") != state():
            known["ticks"] = ticks(*args, **options)
            known["state"] = state()
        return list(known["ticks"])

    def ticklabel_bboxes(drawn: list[Any], renderer: Any = None) -> Any:
        key = (*map(id, drawn), renderer, axis.axes.bbox.get_points().tobytes(), *known.get("state", ()))
        if key not in measured:
            measured[key] = boxes(drawn, renderer)
        return tuple(list(part) for part in measured[key])

    axis._update_ticks, axis._get_ticklabel_bboxes = update_ticks, ticklabel_bboxes
    try:
        yield
    finally:
        del axis._update_ticks, axis._get_ticklabel_bboxes


@contextmanager
def _without_rehearsal(figure: Any) -> Iterator[None]:
    """Leaves out the drawing with a renderer that draws nothing: its methods are replaced by empty ones."""
    draw = figure.draw

    def draw_for_real(renderer: Any) -> None:
        if "draw_path" not in vars(renderer):
            draw(renderer)

    figure.draw = draw_for_real
    try:
        yield
    finally:
        del figure.draw
