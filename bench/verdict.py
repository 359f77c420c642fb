# SPDX-License-Identifier: Apache-2.0
"""Rows, floors, and what becomes of a goal.

A goal is a time or a rate that was set on a certain machine, beside floors measured on that machine. Where the goals
name a floor for a row (`counts`), the goal is also a ratio: goal / what the floor was there. The same floor is measured
here in the same run, and ours / floor is held against that ratio. A goal is

    met                 the number itself is reached
    met, not by ratio   it is, on a machine that is faster by more
    met by ratio        it is not, but no more (or no fewer) times the floor than the goal allows
    missed              neither

A floor that stands beside a row only for comparison gives no verdict.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

Samples = dict[str, list[float]]
Number = str | Callable[[Samples], float]  # a series, whose median counts, or what is made of several


def quantile(values: list[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[math.ceil((len(ordered) - 1) * part)]


def p50(samples: Samples, name: str) -> float:
    return quantile(samples[name], 0.5)


def number(samples: Samples, of: Number, part: float = 0.5) -> float | None:
    """None where something it is made of was not measured."""
    try:
        return of(samples) if callable(of) else quantile(samples[of], part)
    except (KeyError, IndexError, ZeroDivisionError):
        return None


@dataclass(frozen=True)
class Floor:
    """What the machine gives without us, and what it gave where the goals were set."""

    title: str
    of: Number
    there: float | None = None


@dataclass(frozen=True)
class Row:
    title: str
    series: str
    unit: str
    goal: float | None = None
    more: bool = False  # more is better
    floor: Floor | None = None
    counts: bool = False  # the goals name this floor for this row
    part: float = 0.5  # the quantile that the goal is for
    of: Callable[[Samples], float] | None = None  # a number made of several series

    @property
    def goal_ratio(self) -> float | None:
        if self.goal is None or not self.counts or not self.floor or not self.floor.there:
            return None
        return self.goal / self.floor.there


@dataclass(frozen=True)
class Verdict:
    """None: there is no goal of that kind."""

    by_number: bool | None = None
    by_ratio: bool | None = None

    @property
    def reached(self) -> bool:
        return bool(self.by_number or self.by_ratio)

    def __str__(self) -> str:
        if self.by_number is None:
            return ""
        if self.by_number:
            return "met, not by ratio" if self.by_ratio is False else "met"
        return "met by ratio" if self.by_ratio else "missed"


def judge(row: Row, ours: float | None, floor: float | None) -> Verdict:
    """What could not be measured has not reached anything; without its floor there is no word on a ratio."""
    if row.goal is None:
        return Verdict()

    def reaches(value: float | None, goal: float) -> bool:
        if value is None:
            return False
        return value >= goal if row.more else value <= goal

    by_number = reaches(ours, row.goal)
    if row.goal_ratio is None or not floor:
        return Verdict(by_number)
    return Verdict(by_number, reaches(None if ours is None else ours / floor, row.goal_ratio))
