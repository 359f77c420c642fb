# SPDX-License-Identifier: Apache-2.0
"""What two forks of one nursery must not share, renewed in the child.

A fork copies the state of every random generator and every secret made so far; two boxes would draw
the same numbers. Modules that were never loaded need nothing: they start fresh when imported.
Python's string hash seed is fixed when the interpreter starts and cannot be renewed.
"""

import ctypes
import os
import random
import sys

TWISTER_WORDS = 624
numpy_key = 0  # where numpy's global generator has its numbers, once prepare() has found them there


def prepare() -> None:
    """In the nursery, before the first fork: what every child would else do anew, at a page fault a step."""
    global numpy_key
    ssl = sys.modules.get("ssl")
    if ssl is not None:
        ssl.RAND_add(os.urandom(48), 48.0)  # begins with loading half of the library
        ssl.RAND_bytes(1)
    if "numpy.random" in sys.modules:
        try:
            numpy_key = _find_numpy_key()
        except (AttributeError, TypeError, ValueError):
            numpy_key = 0


def _find_numpy_key() -> int:
    """Address of the Mersenne twister's words, with the position behind them; 0 where memory does not look so."""
    generator = sys.modules["numpy.random"].mtrand._rand
    kind, key, position, has_gauss, _gauss = generator.get_state(legacy=True)
    address = int(generator._bit_generator.ctypes.state_address)
    if kind != "MT19937" or has_gauss or len(key) != TWISTER_WORDS:
        return 0
    expected = key.tobytes() + position.to_bytes(4, sys.byteorder)
    return address if ctypes.string_at(address, len(expected)) == expected else 0


def _renew_numpy(fresh: bool) -> None:
    if fresh and numpy_key:
        ctypes.memmove(numpy_key, os.urandom(4 * TWISTER_WORDS), 4 * TWISTER_WORDS)
        ctypes.c_int32.from_address(numpy_key + 4 * TWISTER_WORDS).value = TWISTER_WORDS
        return
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is None:
        return
    lock = numpy_random.mtrand._rand._bit_generator.lock
    if lock.acquire(False):  # else a cell is drawing numbers this very moment, and gets the signal again then over
        lock.release()
        numpy_random.seed()


def renew(fresh: bool = False) -> None:
    """fresh: in a fork of the nursery, where nobody's code has run."""
    random.seed()
    _renew_numpy(fresh)
    tempfile = sys.modules.get("tempfile")
    if tempfile is not None:
        tempfile._name_sequence = None  # type: ignore[attr-defined]
    uuid = sys.modules.get("uuid")
    if uuid is not None:
        uuid._node = uuid._last_timestamp = None  # type: ignore[attr-defined]
    ssl = sys.modules.get("ssl")
    if ssl is not None and not fresh:  # it sees a fork by itself, but not that it was restored
        ssl.RAND_add(os.urandom(48), 48.0)  # the same library makes keys and numbers for hashlib and requests
    process = sys.modules.get("multiprocessing.process")
    if process is not None:
        process.current_process().authkey = os.urandom(32)
