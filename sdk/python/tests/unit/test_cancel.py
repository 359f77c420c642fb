# SPDX-License-Identifier: Apache-2.0
"""A cancellation is not lost, whenever it comes, and a connection that nobody gets is closed."""

from __future__ import annotations

import asyncio
from typing import Any, Callable

import pytest

from cloche._async.backend import _finish


class Transport:
    aborted = False

    def abort(self) -> None:
        self.aborted = True


async def canceled_after(turns: int, finish: Callable[..., Any]) -> None:
    made, ready = Transport(), asyncio.get_running_loop().create_future()

    async def connect() -> tuple[Transport, object]:
        await ready
        return made, object()

    task = asyncio.ensure_future(finish(connect(), 30))
    for _ in range(3):
        await asyncio.sleep(0)
    ready.set_result(None)
    for _ in range(turns):
        await asyncio.sleep(0)
    if not task.cancel():
        assert (await task)[0] is made
        return
    with pytest.raises(asyncio.CancelledError):
        await task
    for _ in range(3):
        await asyncio.sleep(0)
    assert made.aborted or turns == 0


@pytest.mark.parametrize("turns", range(6))
def test_a_cancellation_as_the_work_ends_is_a_cancellation(turns: int) -> None:
    asyncio.run(canceled_after(turns, _finish))


def test_work_that_takes_too_long_is_given_up() -> None:
    async def late() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await _finish(asyncio.sleep(30), 0.01)

    asyncio.run(late())
