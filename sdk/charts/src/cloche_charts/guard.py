# SPDX-License-Identifier: Apache-2.0
"""A time limit for code that may belong to anybody: artists are objects of the user's, and theirs may loop.

The alarm clock of the process is borrowed for it, in the main thread and only while nobody else has it (a handler for
SIGALRM, a running timer); elsewhere the checks between elements are all there is. Code that catches BaseException in
an endless loop is not ended by this: then the cell hangs on the user's own loop and is interrupted as any other.
"""

from __future__ import annotations

import signal
import threading
from typing import Any, Callable, TypeVar

from .limits import TooLong

Result = TypeVar("Result")
AGAIN = 0.25  # seconds until the next try, where the first exception was caught on its way


def within(seconds: float, call: Callable[[], Result]) -> Result:
    """The call's result; raises TooLong when the time is up."""
    if not _is_free():
        return call()
    armed = True

    def ring(_signum: int, _frame: Any) -> None:
        if armed:
            raise TooLong

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
        try:
            return call()
        finally:
            armed = False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _is_free() -> bool:
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        return False
    return signal.getsignal(signal.SIGALRM) is signal.SIG_DFL and signal.getitimer(signal.ITIMER_REAL)[0] == 0
