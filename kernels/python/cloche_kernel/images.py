# SPDX-License-Identifier: Apache-2.0
"""PIL images: show() displays, and saving to a named file displays the image as well.

Saving shows only what the user saves: a save deep inside a library stays silent, except that of
matplotlib, since savefig() of a raster file has always been seen. A PNG file is encoded once, for both uses.
"""

import io
import os
import sys
import sysconfig
from types import ModuleType
from typing import Any

from IPython.display import display, publish_display_data

LIBRARIES = tuple(
    {os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    | {"/usr/lib/python3/dist-packages/", "/usr/local/lib/python3/dist-packages/"}
    | {os.path.join(path, "") for path in sys.path if path.endswith(("site-packages", "dist-packages"))}
)


def hook(image_module: ModuleType) -> None:
    """PIL.Image has just been imported."""
    image_class = image_module.Image
    original = image_class.save

    def save(self: Any, fp: Any, format: str | None = None, **params: Any) -> None:
        if not isinstance(fp, str) or _silent(sys._getframe(1)):
            original(self, fp, format, **params)
        elif (format or os.path.splitext(fp)[1][1:]).lower() == "png":
            _save_png(original, self, fp, params)
        else:
            display(self)
            original(self, fp, format, **params)

    def show(self: Any, title: str | None = None, **_options: Any) -> None:
        display(self)

    save.__doc__ = original.__doc__
    show.__doc__ = "Displays this image."
    image_class.save, image_class.show = save, show


def _silent(caller: Any) -> bool:
    """Is the caller library code (other than matplotlib writing a figure)?"""
    module = caller.f_globals.get("__name__", "")
    if module == "matplotlib.image":
        return False
    return caller.f_code.co_filename.startswith(LIBRARIES)


def _save_png(original: Any, image: Any, path: str, params: dict[str, Any]) -> None:
    target = io.BytesIO()
    original(image, target, "PNG", **params)
    data = {"text/plain": repr(image), "image/png": target.getvalue()}
    jpeg = image._repr_jpeg_() if hasattr(image, "_repr_jpeg_") else None
    if jpeg is not None:
        data["image/jpeg"] = jpeg
    publish_display_data(data)
    with open(path, "wb") as file:
        file.write(target.getvalue())
