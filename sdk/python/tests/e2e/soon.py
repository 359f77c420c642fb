# SPDX-License-Identifier: Apache-2.0
"""Waiting for what has no event of its own."""

from __future__ import annotations

import time
from typing import Any, Callable


def eventually(check: Callable[[], Any], seconds: float = 30) -> Any:
    """What `check` gives as soon as it is true."""
    end = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
