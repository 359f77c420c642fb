# SPDX-License-Identifier: Apache-2.0
"""Whether a Python that starts now would load what is loaded here.

A loaded Python is forked into boxes whose files may have changed since: somebody installed another version of a
library, and a new kernel is how people expect to see it. Installing changes a directory in which modules are looked
for; where none did, nothing has to be looked at. Files that are edited in place are not noticed.
"""

import importlib
import os
import site
import sys
from importlib.machinery import PathFinder

places: dict[str, int] = {}  # where modules are looked for, with the time of the last change; 0 = not there
files: dict[str, tuple[str, int, int]] = {}  # of loaded packages: path, time of change, size
starters: set[str] = set()  # .pth files: a Python that starts runs them


def note(names: list[str]) -> None:
    """Remembers what these modules were loaded from. To be called when all is loaded."""
    places.update(_look())
    starters.update(_starters())
    for name in {name.partition(".")[0] for name in names if name in sys.modules}:
        if (found := _file(name)) is not None:
            files[name] = found


def changed() -> bool:
    now = _look()
    if now == places:
        return False
    importlib.invalidate_caches()
    if _user_site() not in sys.path and now.get(_user_site()):
        return True
    if _starters() != starters or any(_file(name) != seen for name, seen in files.items()):
        return True
    places.update(now)
    return False


def _user_site() -> str:
    return site.getusersitepackages() if site.ENABLE_USER_SITE else ""


def _look() -> dict[str, int]:
    return {place: _time(place) for place in {*sys.path, _user_site()} if place.startswith("/")}


def _time(place: str) -> int:
    try:
        return os.stat(place).st_mtime_ns
    except OSError:
        return 0


def _starters() -> set[str]:
    found = set()
    for place in {path for path in sys.path if path.endswith("-packages")}:
        try:
            found |= {os.path.join(place, name) for name in os.listdir(place) if name.endswith(".pth")}
        except OSError:
            continue
    return found


def _file(name: str) -> tuple[str, int, int] | None:
    spec = PathFinder.find_spec(name)
    if spec is None or spec.origin is None:
        return None
    try:
        seen = os.stat(spec.origin)
    except OSError:
        return None
    return spec.origin, seen.st_mtime_ns, seen.st_size
