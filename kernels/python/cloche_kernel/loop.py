# SPDX-License-Identifier: Apache-2.0
"""The asyncio loop of a kernel: it lives as long as the kernel, across cells.

While a cell runs plain code the loop counts as the running one, so asyncio.create_task() works in it;
the tasks go on whenever a cell awaits, and between cells. In that state asyncio.run() is possible
too (a notebook usually refuses it), because the loop is not really inside a callback.
"""

import asyncio
import asyncio.runners
import functools
from asyncio import events
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

IDLE_CODE = frozenset(
    {
        asyncio.BaseEventLoop._run_once.__code__,  # type: ignore[attr-defined]
        asyncio.BaseEventLoop.run_forever.__code__,
    }
)


class CellLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self.cell_task: asyncio.Task[Any] | None = None

    def enter(self) -> None:
        """Plain code starts: count as the running loop."""
        events._set_running_loop(self)

    def leave(self) -> None:
        events._set_running_loop(None)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Not the running loop for a while, so that a loop can really run."""
        running = events._get_running_loop()
        events._set_running_loop(None)
        try:
            yield
        finally:
            events._set_running_loop(running)
            if running is self:
                events.set_event_loop(self)

    def run_forever(self) -> None:
        if self.is_running():
            super().run_forever()  # raises, as it must
        with self.aside():
            super().run_forever()

    def run_until_complete(self, future: Awaitable[Any]) -> Any:  # type: ignore[override]
        if self.is_running():
            return super().run_until_complete(future)  # type: ignore[arg-type]
        with self.aside():
            return super().run_until_complete(future)  # type: ignore[arg-type]

    def run_cell(self, code: Awaitable[Any]) -> Any:
        """Awaits the code of a cell; an interrupt that finds the loop idle cancels it."""
        task: asyncio.Task[Any] = self.create_task(code)  # type: ignore[arg-type]
        self.cell_task = task
        try:
            return self.run_until_complete(task)
        finally:
            self.cell_task = None

    def busy(self) -> bool:
        """Is anything waiting to go on?"""
        return bool(self._ready or self._scheduled or asyncio.all_tasks(self))  # type: ignore[attr-defined]

    def pump(self, fd: int) -> None:
        """Lets tasks go on until the descriptor is readable."""
        self.add_reader(fd, self.stop)
        try:
            self.run_forever()
        finally:
            self.remove_reader(fd)

    def idle(self, frame: FrameType | None) -> bool:
        """Does this innermost frame show that the loop was between callbacks?"""
        depth = 0
        while frame is not None and depth < 3:
            if frame.f_code in IDLE_CODE:
                return True
            if "selectors" not in frame.f_code.co_filename:
                return False
            frame, depth = frame.f_back, depth + 1
        return False

    def cancel_cell(self) -> bool:
        """Cancels what the cell awaits. False if it awaits nothing."""
        if self.cell_task is None or self.cell_task.done():
            return False
        self.cell_task.cancel()
        self.call_soon_threadsafe(_wake)
        return True


def _wake() -> None:
    """Nothing to do: the loop only has to leave its select()."""


def allow_run() -> None:
    """Makes asyncio.run() and Runner.run() work from plain code in a cell."""
    asyncio.run = asyncio.runners.run = _standing_aside(asyncio.runners.run)
    asyncio.Runner.run = _standing_aside(asyncio.Runner.run)  # type: ignore[method-assign]


def _standing_aside(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        running = events._get_running_loop()
        if isinstance(running, CellLoop) and not running.is_running():
            with running.aside():
                return original(*args, **kwargs)
        return original(*args, **kwargs)

    return run
