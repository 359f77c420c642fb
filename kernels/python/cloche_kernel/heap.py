"""Makes the loaded heap cheap to share: what is there is never counted again, never collected, and lies in huge pages.

A fork shares pages until somebody writes, and Python writes into every object it merely looks at: the count of its
references. Objects marked as immortal (Python 3.12 and 3.13) are not counted any more; a first cell then
copies a third of the pages it did, and runs faster. They would have lived as long as the process anyway: they are
modules and what modules hold. Huge pages spare a fork a few hundred page-table entries per megabyte; a child that
writes still copies only the small page it touches. Where any of this is not to be had, nothing changes.
"""

import ctypes
import gc
import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any

HUGE = 2 * 1024 * 1024
MADV_COLLAPSE = 25
IMMORTAL = 0xFFFFFFFF  # the count of an object that is not counted, in the lower half of its first word


def settle() -> None:
    """To be called once, with one thread, when everything is loaded and before the first fork."""
    gc.collect()
    immortalise()
    gc.freeze()
    collapse()


def immortalise() -> int:
    """Marks every object that can be reached; gives their number."""
    if sys.implementation.name != "cpython" or sys.version_info[:2] not in ((3, 12), (3, 13)):
        return 0
    if sys.maxsize < 2**32 or hasattr(sys, "gettotalrefcount") or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return 0
    count_of = ctypes.c_uint32.from_address
    marked = 0
    waiting: list[Any] = gc.get_objects()
    tracked = len(waiting)
    for each in range(tracked):  # these first: some are immortal from birth and still lead on to others
        marked += _mark(waiting[each], count_of)
        waiting.extend(_untracked(waiting[each]))
    del waiting[:tracked]
    while waiting:
        one = waiting.pop()
        if _mark(one, count_of):
            marked += 1
            waiting.extend(_untracked(one))
    return marked


def _mark(one: Any, count_of: Any) -> bool:
    count = count_of(id(one))
    if count.value & 0x80000000:
        return False
    count.value = IMMORTAL
    return True


def _untracked(one: Any) -> list[Any]:
    """What it holds that the collector's lists do not name."""
    held = [other for other in gc.get_referents(one) if not gc.is_tracked(other)]
    for code in [other for other in held if isinstance(other, CodeType)]:
        held += [code.co_consts, code.co_names, code.co_filename, code.co_name, code.co_qualname]
        held += [code.co_linetable, code.co_exceptiontable]
    return held


def collapse() -> int:
    """Puts the heap into huge pages; gives their number."""
    try:
        madvise = ctypes.CDLL(None, use_errno=True).madvise
        pieces = list(_pieces())
    except (OSError, AttributeError):
        return 0
    made = 0
    for address in pieces:
        made += madvise(ctypes.c_void_p(address), ctypes.c_size_t(HUGE), MADV_COLLAPSE) == 0
    return made


def _pieces() -> Iterator[int]:
    """Aligned huge-page sized pieces of our writable anonymous memory."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            span, rights, _offset, _device, inode, *name = line.split()
            if inode != "0" or not rights.startswith("rw-p") or name not in ([], ["[heap]"]):
                continue
            start, end = (int(part, 16) for part in span.split("-"))
            yield from range(-(-start // HUGE) * HUGE, end // HUGE * HUGE, HUGE)
