# SPDX-License-Identifier: Apache-2.0
"""Makes a loaded Python cheap to fork: its objects are never counted again, never collected, and in few large pieces.

A fork shares pages until somebody writes, and Python writes into every object it merely looks at: the count of its
references. Objects marked as immortal (Python 3.12 and 3.13) are not counted any more; a first cell then
copies a third of the pages it did, and runs faster. They would have lived as long as the process anyway: they are
modules and what modules hold. Huge pages spare a fork a few hundred page-table entries per megabyte; a child that
writes still copies only the small page it touches. A mapping costs a fork about a microsecond, and another at its end;
a hundred libraries have six hundred. Where any of this is not to be had, nothing changes.
"""

import array
import ctypes
import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
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


def settle(files: Sequence[int] = ()) -> None:
    """To be called once, with one thread, when everything is loaded and before the first fork.

    With a file, memory is mapped from there afterwards: see lay. Its descriptors are closed.
    """
    gc.collect()
    immortalise()
    gc.freeze()
    join()
    if len(files) != 2 or not lay(*files):
        collapse()
    for descriptor in files:
        os.close(descriptor)


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
    for each in range(tracked):  # these first: some are immortal from the start and still lead on to others
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
    """Turns the mappings of each library, five as a rule, into two: one to run and read, one to write.

    Gives the joints.

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


class Piece(ctypes.Structure):
    """The argument of heap_file.c."""

    _fields_ = [("start", ctypes.c_uint64), ("bytes", ctypes.c_uint64), ("offset", ctypes.c_uint64)]


def lay(to: int, from_: int) -> int:
    """Moves what we have written into a file and maps it from there; gives the number of pieces.

    The descriptors are of one empty file, open for writing and for reading only. Forks then share it without a copy of
    page tables, and a checkpoint of a box holds only what its processes changed.
    """
    try:
        library = ctypes.PyDLL(os.path.join(os.path.dirname(__file__), "heap_file.so"))
        library.lay.restype = ctypes.c_long
        pieces, size = _own_pieces()
        os.ftruncate(to, size)
    except OSError:
        return 0
    table = (Piece * len(pieces))(*pieces)
    count, *files = (ctypes.c_long(number) for number in (len(pieces), to, from_))
    laid = library.lay(table, count, *files)
    collapse(table[:laid])
    return laid


PAGE = 4096
SMALL = 4 * 1024 * 1024  # a mapping up to this size moves as a whole: a piece of it would be another mapping
GAP = 256  # pages that are not ours but cost less than another mapping
PRESENT, SWAPPED, FROM_FILE = 1 << 63, 1 << 62, 1 << 61  # of /proc/self/pagemap


def _own_pieces() -> tuple[list[Piece], int]:
    """Stretches of memory that hold private pages, and the size of a file for them.

    Places in the file are those in memory, seen from the start of a huge page.
    """
    pieces: list[Piece] = []
    offset = 0
    plain = _plain()
    with open("/proc/self/pagemap", "rb", buffering=0) as pagemap:
        for mapping in _mappings():
            if mapping.start not in plain or (mapping.name.startswith("[") and mapping.name != "[heap]"):
                continue
            for start, end in _stretches(pagemap.fileno(), mapping):
                offset += (start - offset) % HUGE
                pieces.append(Piece(start, end - start, offset))
                offset += end - start
    return pieces, offset


PLAIN = {"rd", "wr", "mr", "mw", "me", "ac", "nr", "sd", "hg", "nh", "um"}  # of smaps: nothing was asked but memory


def _plain() -> set[int]:
    """Where ordinary writable memory starts. Some is not: a fork finds the state of random generators emptied."""
    plain = set()
    start = 0
    with open("/proc/self/smaps") as maps:
        for line in maps:
            first, *rest = line.split()
            if first == "VmFlags:":
                if {"wr"} <= set(rest) <= PLAIN:
                    plain.add(start)
            elif not first.endswith(":"):
                start = int(first.split("-")[0], 16)
    return plain


def _own_runs(pagemap: int, mapping: Mapping) -> Iterator[tuple[int, int]]:
    first, count = mapping.start // PAGE, (mapping.end - mapping.start) // PAGE
    entries = array.array("Q", os.pread(pagemap, count * 8, first * 8))
    begin = last = -1
    for at, entry in enumerate(entries):
        if not entry & (PRESENT | SWAPPED) or entry & FROM_FILE:
            continue
        if begin < 0:
            begin = at
        elif at - last > GAP:
            yield (first + begin) * PAGE, (first + last + 1) * PAGE
            begin = at
        last = at
    if begin >= 0:
        yield (first + begin) * PAGE, (first + last + 1) * PAGE


def _stretches(pagemap: int, mapping: Mapping) -> Iterator[tuple[int, int]]:
    runs = list(_own_runs(pagemap, mapping))
    if runs and (mapping.file or mapping.end - mapping.start <= SMALL):
        yield mapping.start, mapping.end
    else:
        yield from runs


class Span(ctypes.Structure):
    """The argument of enter_box.c."""

    _fields_ = [("start", ctypes.c_uint64), ("bytes", ctypes.c_uint64)]


OURS_ALONE = 1 << 56  # of /proc/self/pagemap: no other process has this page
NEAR = 2  # pages between two that are copied along


def written(steps: Callable[[], None]) -> ctypes.Array[Span]:
    """Where a fork writes that takes these steps: one takes them and sends its page table."""
    plain = _plain()
    places = [
        (mapping.start // PAGE, (mapping.end - mapping.start) // PAGE)
        for mapping in _mappings()
        if mapping.start in plain and (not mapping.name.startswith("[") or mapping.name == "[heap]")
    ]
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            steps()
            pagemap = os.open("/proc/self/pagemap", os.O_RDONLY)
            for first, count in places:
                _write_all(writer, os.pread(pagemap, count * 8, first * 8))
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as answers:
        spans = [Span(*span) for first, count in places for span in _alone(first, answers.read(count * 8))]
    os.waitpid(child, 0)
    return (Span * len(spans))(*spans)


def _write_all(to: int, data: bytes) -> None:
    while data:
        data = data[os.write(to, data) :]


def _alone(first: int, table: bytes) -> list[tuple[int, int]]:
    """Starts and lengths of the stretches that one process has for itself."""
    found: list[tuple[int, int]] = []
    begin = last = -NEAR - 1
    entries = array.array("Q", table[: len(table) // 8 * 8])
    for at, entry in enumerate(entries):
        if not entry & PRESENT or not entry & OURS_ALONE or entry & FROM_FILE:
            continue
        if at - last > NEAR and begin >= 0:
            found.append(((first + begin) * PAGE, (last + 1 - begin) * PAGE))
        if at - last > NEAR:
            begin = at
        last = at
    if begin >= 0:
        found.append(((first + begin) * PAGE, (last + 1 - begin) * PAGE))
    return found


def collapse(laid: list[Piece] | None = None) -> int:
    """Puts the heap, or what was laid into a file, into huge pages; gives their number."""
    try:
        madvise = ctypes.CDLL(None, use_errno=True).madvise
        spans = [(piece.start, piece.start + piece.bytes) for piece in laid] if laid else list(_spans())
    except (OSError, AttributeError):
        return 0
    made = 0
    for start, end in spans:
        for address in range(-(-start // HUGE) * HUGE, end // HUGE * HUGE, HUGE):
            made += madvise(ctypes.c_void_p(address), ctypes.c_size_t(HUGE), MADV_COLLAPSE) == 0
    return made


def _spans() -> Iterator[tuple[int, int]]:
    """Our writable anonymous memory."""
    for piece in _mappings():
        if not piece.file and piece.rights == "rw-p" and piece.name in ("", "[heap]"):
            yield piece.start, piece.end
