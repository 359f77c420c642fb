# SPDX-License-Identifier: Apache-2.0
"""How much one figure may yield and how long it may take: the numbers, and the count while a figure is read.

Every limit has a default here and a variable of the environment, read anew for every figure. What a limit
leaves out is told in the chart (`sampled`): every step-th point is kept, so what is there was plotted.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any

POINTS = 1_000_000  # of one figure, over all its axes
CELLS = 16_384  # of one heatmap
SECONDS = 5.0  # for one figure
VARIABLES = {"points": "CLOCHE_CHART_POINTS", "cells": "CLOCHE_CHART_CELLS", "seconds": "CLOCHE_CHART_SECONDS"}


class TooLong(BaseException):
    """The time is up. No Exception, so that code which shrugs at errors does not swallow it."""


@dataclass(frozen=True)
class Limits:
    points: int = POINTS
    cells: int = CELLS
    seconds: float = SECONDS

    def __post_init__(self) -> None:
        for name in VARIABLES:
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be more than 0, not {getattr(self, name)!r}")

    @classmethod
    def from_environment(cls) -> Limits:
        """The defaults, changed by the environment; a value that is no positive number counts as not set."""
        return cls(int(_setting("points", POINTS)), int(_setting("cells", CELLS)), float(_setting("seconds", SECONDS)))


def _setting(name: str, usual: float) -> float:
    try:
        value = float(os.environ[VARIABLES[name]])
    except (KeyError, ValueError):
        return usual
    return value if 1 <= value <= 1e12 or (name == "seconds" and 0 < value < 1e6) else usual


class Reading:
    """One figure being read: what is left of its limits, and what had to be left out."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.left = limits.points
        self.until = time.monotonic() + limits.seconds
        self.sampled: list[dict[str, Any]] = []

    def check(self) -> None:
        if time.monotonic() > self.until:
            raise TooLong

    def step(self, count: int, element: int, what: str = "points") -> int:
        """Which points of an element to take: every one, or every second, third, ... within what is left."""
        self.check()
        step = 1 if count <= self.left else -(-count // max(self.left, 1))
        kept = -(-count // step)
        self.left -= min(kept, self.left)
        self.note(element, what, count, kept, step)
        return step

    def note(self, element: int, what: str, count: int, kept: int, step: int) -> None:
        if step > 1:
            self.sampled.append({"element": element, "what": what, "of": count, "kept": kept, "step": step})

    def told(self) -> list[dict[str, Any]]:
        """What was left out since the last call."""
        told, self.sampled = self.sampled, []
        return told
