# SPDX-License-Identifier: Apache-2.0
"""Waiting for what must come, on a machine that may have no time: generous, and over at once when it is there."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

PATIENCE = 60


def eventually(
    probe: Callable[[], Any], seconds: float = PATIENCE, every: float = 0.05, state: Callable[[], Any] | None = None
) -> Any:
    """The first true answer of probe; a connection that breaks is an answer that did not come.

    `state` is asked when it did not come in time, to say in the failure what was there instead.
    """
    deadline = time.monotonic() + seconds
    while True:
        broken: OSError | None = None
        try:
            answer = probe()
        except OSError as error:
            answer, broken = None, error
        if answer:
            return answer
        assert time.monotonic() < deadline, (
            f"did not happen within {seconds} s: {broken or (state() if state else repr(answer))}"
        )
        time.sleep(every)


def stays(probe: Callable[[], Any], seconds: float, every: float = 0.1) -> None:
    """The opposite of eventually: what must not happen has so long to happen, and is looked for all the while."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert probe(), f"was no longer so {seconds - (end - time.monotonic()):.1f} s later"
        time.sleep(every)


def settled(probe: Callable[[], Any], quiet: float, seconds: float = PATIENCE, every: float = 0.1) -> Any:
    """The answer of probe once it has been the same for `quiet` seconds."""
    deadline = time.monotonic() + seconds
    answer, since = probe(), time.monotonic()
    while time.monotonic() - since < quiet:
        assert time.monotonic() < deadline, f"still changing after {seconds} s: {answer!r}"
        time.sleep(every)
        if (now := probe()) != answer:
            answer, since = now, time.monotonic()
    return answer
