# SPDX-License-Identifier: Apache-2.0
"""The table of `make bench`: each row with its floor, our number, their ratio, the goal as both, the verdict.

As a program: table.py SAMPLES.json prints the table of a run again.
"""

import json
import sys
from pathlib import Path

from rows import ROWS
from verdict import Row, Samples, Verdict, judge, number, quantile

HEAD = ["what", "floor", "ours", "p95", "p99", "ratio", "unit", "goal", "as ratio", "verdict"]
RULE = ["---", "--:", "--:", "--:", "--:", "--:", "---", "---", "---", "---"]


def told(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def bound(row: Row, value: float | None) -> str:
    return "" if value is None else f"{'>=' if row.more else '<='} {told(value)}"


def cells(row: Row, samples: Samples) -> tuple[list[str], Verdict]:
    ours = number(samples, row.of or row.series, row.part)
    floor = number(samples, row.floor.of) if row.floor else None
    verdict = judge(row, ours, floor)
    tails = ["", ""]
    if samples.get(row.series):
        tails = [told(quantile(samples[row.series], 1 - part if row.more else part)) for part in (0.95, 0.99)]
    ratio = f"{ours / floor:.2f}" if ours is not None and floor else ""
    mine = "not measured" if ours is None else told(ours)
    goals = [bound(row, row.goal), bound(row, row.goal_ratio)]
    return [row.title, told(floor), mine, *tails, ratio, row.unit, *goals, str(verdict)], verdict


def summary(verdicts: list[Verdict]) -> str:
    """Both counts, apart from each other."""
    goals = [v for v in verdicts if v.by_number is not None]
    ratios = [v for v in goals if v.by_ratio is not None]
    return (
        f"{sum(bool(v.by_number) for v in goals)} of {len(goals)} goals met as numbers; "
        f"{sum(bool(v.by_ratio) for v in ratios)} of the {len(ratios)} beside a measured floor met by ratio; "
        f"{sum(not v.reached for v in goals)} missed both ways"
    )


def floors_told(samples: Samples) -> list[str]:
    """Which floor a verdict by ratio was given with: here, and where the goals were set."""
    lines = []
    for row in ROWS:
        if row.goal_ratio is not None and row.floor and row.floor.there:
            here = told(number(samples, row.floor.of)) or "not measured"
            lines.append(f"* {row.title.strip()}: {row.floor.title} ({here} here, {told(row.floor.there)} there)")
    return lines


def print_table(samples: Samples) -> int:
    """Prints all rows; gives the number of goals that were missed both ways."""
    for line in (HEAD, RULE):
        print("| " + " | ".join(line) + " |")
    verdicts = []
    for row in ROWS:
        texts, verdict = cells(row, samples)
        verdicts.append(verdict)
        print("| " + " | ".join(texts) + " |")
    print("\nFloors that verdicts by ratio rest on (here; where the goals were set):\n")
    print("\n".join(floors_told(samples)))
    print(f"\n{summary(verdicts)}")
    return sum(not v.reached for v in verdicts if v.by_number is not None)


if __name__ == "__main__":
    print_table(json.loads(Path(sys.argv[1]).read_text())["samples"])
