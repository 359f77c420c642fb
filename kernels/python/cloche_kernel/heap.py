"""Puts the nursery's heap into huge pages, so that a fork copies a few hundred page-table entries less per megabyte.

Asked once, before the first fork; a kernel that cannot do it says no and nothing changes. A child that writes
still copies only the small page it touches.
"""

import ctypes
from collections.abc import Iterator

HUGE = 2 * 1024 * 1024
MADV_COLLAPSE = 25


def collapse() -> int:
    """Collapses what it can; gives the number of huge pages made."""
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
