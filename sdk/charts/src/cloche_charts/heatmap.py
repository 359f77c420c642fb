# SPDX-License-Identifier: Apache-2.0
"""Heatmaps: images of values (imshow, matshow, spy) and meshes (pcolormesh, pcolor, seaborn's heatmap).

A large one is thinned to a bounded number of cells: every n-th row and column, so that each value was
plotted. A picture in colours has no values of its own; its size is told.
"""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.collections import PolyCollection, QuadMesh
from matplotlib.image import AxesImage

from . import kind
from .axis import Axis, labels, scales
from .limits import Reading
from .scatter import named
from .values import floats, number


def read(ax: Any, reading: Reading) -> dict[str, Any] | None:
    maps = [a for a in kind.drawn(ax) if isinstance(a, (AxesImage, QuadMesh)) or _is_pcolor(a)]
    if not maps:
        return None
    x, y = Axis(ax, "x"), Axis(ax, "y")
    elements = [element(a, index, x, y, reading) for index, a in enumerate(maps)]
    return {"type": "heatmap", "elements": elements, **labels(x, y), **scales(x, y)}


def _is_pcolor(artist: Any) -> bool:
    """pcolor() draws cells as polygons; newer versions know their places."""
    return isinstance(artist, PolyCollection) and hasattr(artist, "_coordinates") and artist.get_array() is not None


def element(artist: Any, index: int, x: Axis, y: Axis, reading: Reading) -> dict[str, Any]:
    values, xs, ys = _image(artist) if isinstance(artist, AxesImage) else _mesh(artist)
    rows, columns = values.shape[:2]
    channels = values.shape[2] if values.ndim == 3 else 1
    steps = _steps(rows, columns, reading.limits.cells)
    for what, count, step in zip(("rows", "columns"), (rows, columns), steps):
        reading.note(index, what, count, -(-count // step), step)
    reading.step(-(-rows // steps[0]) * -(-columns // steps[1]), index)
    low, high = artist.get_clim()
    return {
        "label": str(artist.get_label()),
        "rows": rows,
        "columns": columns,
        "channels": channels,
        "x": None if xs is None else named(floats(xs[:: steps[1]]), x),
        "y": None if ys is None else named(floats(ys[:: steps[0]]), y),
        "values": _values(values[:: steps[0], :: steps[1]]) if channels == 1 else None,
        "value_min": None if low is None or channels > 1 else number(low),
        "value_max": None if high is None or channels > 1 else number(high),
        "colormap": str(artist.get_cmap().name) if channels == 1 else None,
    }


def _image(image: Any) -> tuple[Any, Any, Any]:
    values = numpy.ma.asarray(image.get_array())
    left, right, bottom, top = image.get_extent()
    if image.origin == "upper":
        bottom, top = top, bottom
    return values, _centres(left, right, values.shape[1]), _centres(bottom, top, values.shape[0])


def _centres(first: float, last: float, count: int) -> Any:
    return first + (numpy.arange(count) + 0.5) * ((last - first) / count)


def _mesh(mesh: Any) -> tuple[Any, Any, Any]:
    """Values and the middles of columns and rows; those are None where the mesh is not a grid along the axes."""
    corners: Any = numpy.ma.asarray(mesh._coordinates, dtype=float)
    shape = (corners.shape[0] - 1, corners.shape[1] - 1)
    values = numpy.ma.asarray(mesh.get_array())
    if values.ndim == 1 and values.size == corners.shape[0] * corners.shape[1]:
        shape = corners.shape[:2]  # shading='gouraud': a value at every corner
    values = values.reshape(shape) if values.ndim == 1 else values
    xs, ys = corners[..., 0], corners[..., 1]
    straight = bool((xs == xs[:1]).all() and (ys == ys[:, :1]).all())
    if not straight:
        return values, None, None
    edges = xs[0], ys[:, 0]
    counts = values.shape[1], values.shape[0]
    middles = [e if len(e) == n else (e[1:] + e[:-1]) / 2 for e, n in zip(edges, counts)]
    return values, middles[0], middles[1]


def _steps(rows: int, columns: int, cells: int) -> tuple[int, int]:
    """How many rows and columns to go on at once: the same for both until one of them is a single line."""
    step = 1
    while -(-rows // step) * -(-columns // step) > cells:
        step = max(step + 1, int(step * ((-(-rows // step) * -(-columns // step)) / cells) ** 0.5))
    return step, step


def _values(values: Any) -> list[list[Any]]:
    table: Any = numpy.ma.asarray(values, dtype=float)
    missing = numpy.ma.getmaskarray(table) | ~numpy.isfinite(numpy.ma.getdata(table))
    cells: list[list[Any]] = numpy.ma.getdata(table).tolist()
    for row, column in numpy.argwhere(missing).tolist():
        cells[row][column] = None
    return cells
