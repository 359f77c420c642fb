"""Makes a loaded Python cheap to fork: what is there is never counted again, never collected, and lies in few large pieces.

A fork shares pages until somebody writes, and Python writes into every object it merely looks at: the count of its
references. Objects marked as immortal (Python 3.12 and 3.13) are not counted any more; a first cell then
copies a third of the pages it did, and runs faster. They would have lived as long as the process anyway: they are
modules and what modules hold. Huge pages spare a fork a few hundred page-table entries per megabyte; a child that
writes still copies only the small page it touches. A mapping costs a fork about a microsecond, and another at its end; a
hundred libraries have six hundred. Where any of this is not to be had, nothing changes.
"""

import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

HUGE = 2 * 1024 * 1024
MADV_COLLAPSE = 25
READ, WRITE, RUN = 1, 2, 4  # of mprotect
IMMORTAL = 0xFFFFFFFF  # the count of an object that is not counted, in the lower half of its first word


class Allocator(ctypes.Structure):
    """PyObjectArenaAllocator of Python's C interface."""

    _fields_ = [("context", ctypes.c_void_p), ("take", ctypes.c_void_p), ("give", ctypes.c_void_p)]


def gather() -> None:
    """From here on Python's objects lie close together: see arena.c. To be called before anything heavy is loaded."""
    try:
        library = ctypes.PyDLL(os.path.join(os.path.dirname(__file__), "arena.so"))
        take, give = (ctypes.cast(function, ctypes.c_void_p) for function in (library.arena_take, library.arena_give))
        ctypes.pythonapi.PyObject_SetArenaAllocator(ctypes.byref(Allocator(None, take, give)))
    except (OSError, AttributeError):
        return


def settle() -> None:
    """To be called once, with one thread, when everything is loaded and before the first fork."""
    gc.collect()
    immortalise()
    gc.freeze()
    join()
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


class Mapping(NamedTuple):
    """A line of /proc/self/maps."""

    start: int
    end: int
    rights: str
    offset: int
    file: str  # device and inode; "" for none
    name: str


def _mappings() -> Iterator[Mapping]:
    with open("/proc/self/maps") as maps:
        for line in maps:
            span, rights, offset, device, inode, *name = line.split(maxsplit=5)
            start, end = (int(part, 16) for part in span.split("-"))
            file = "" if inode == "0" else f"{device} {inode}"
            yield Mapping(start, end, rights, int(offset, 16), file, name[0].rstrip() if name else "")


def join() -> int:
    """Turns the mappings of each library, five as a rule, into two: one to run and read, one to write. Gives the joints.

    A library's file lies in memory as it lies on disk, cut into pieces only by what may be done with them. Who may run
    code here may as well run its constants, and write what the loader closes after linking.
    """
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    joined = 0
    for library in _libraries():
        writable = next((at for at, piece in enumerate(library) if "w" in piece.rights), len(library))
        closed = writable - 1 if 0 < writable < len(library) and library[writable - 1].rights == "r--p" else writable
        for pieces, rights in ((library[:closed], READ | RUN), (library[closed : writable + 1], READ | WRITE)):
            if len(pieces) > 1:
                start, end = pieces[0].start, pieces[-1].end
                joined += protect(ctypes.c_void_p(start), ctypes.c_size_t(end - start), rights) == 0
    return joined


def _libraries() -> Iterator[list[Mapping]]:
    """Neighbours that are one file's, without a gap in memory or file."""
    library: list[Mapping] = []
    for piece in _mappings():
        last = library[-1] if library else None
        follows = last and last.file == piece.file and last.end == piece.start
        if library and not (follows and last and last.offset + last.end - last.start == piece.offset):
            yield library
            library = []
        if piece.file and piece.rights in ("r--p", "r-xp", "rw-p"):
            library.append(piece)
        elif library:
            yield library
            library = []
    if library:
        yield library


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
    for piece in _mappings():
        if not piece.file and piece.rights == "rw-p" and piece.name in ("", "[heap]"):
            yield from range(-(-piece.start // HUGE) * HUGE, piece.end // HUGE * HUGE, HUGE)
