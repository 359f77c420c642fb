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
        try:
            answer = probe()
        except OSError as error:
            answer, broken = None, error
        else:
            broken = None
        if answer:
            return answer
        assert time.monotonic() < deadline, (
            f"did not happen within {seconds} s: {broken or (state() if state else repr(answer))}"
        )
        time.sleep(every)
