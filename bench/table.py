"""The table of `make bench`: each row with its floor, our number, their ratio, the goal and the verdict.

As a program: table.py SAMPLES.json prints the table of a run again.
"""

import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Samples = dict[str, list[float]]


def quantile(values: list[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[math.ceil((len(ordered) - 1) * part)]


@dataclass
class Row:
    title: str
    series: str
    unit: str
    goal: float | None = None
    more: bool = False  # more is better
    floor: str = ""
    part: float = 0.5  # the quantile that the goal is for
    of: Callable[[Samples], float] | None = None  # a number made of several series


def _added(samples: Samples) -> float:
    return quantile(samples["http"], 0.5) - quantile(samples["floor_http_ms"], 0.5)


def _figure(samples: Samples) -> float:
    return quantile(samples["figure"], 0.5) / quantile(samples["figure_savefig"], 0.5)


def _cells(samples: Samples) -> float:
    return quantile(samples["run"], 0.5) / quantile(samples["floor_cell_ms"], 0.5)


def _crowded(samples: Samples) -> float:
    return quantile(samples["density_create"], 0.5) / quantile(samples["create"], 0.5)


def _answered(samples: Samples) -> float:
    return samples["density_answers"][0] / samples["density_boxes"][0]


BOX, CELL, FORK = "floor_box_spaced_ms", "floor_cell_ms", "floor_fork_ms"
ROWS = [
    Row("create, ready box", "create", "ms", 2, floor=BOX),
    Row("create, ready box, p99", "create", "ms", 10, part=0.99),
    Row("create, one after the other", "create_tight", "ms", floor="floor_box_tight_ms"),
    Row("create without a pool", "unpooled_create", "ms", 6, floor=BOX),
    Row("create -> echo's output", "create_echo", "ms", 8, floor="floor_shell_ms"),
    Row("create -> echo's output, no pool", "unpooled_create_echo", "ms", floor="floor_shell_ms"),
    Row("create -> node -v's output", "create_node", "ms"),
    Row("create -> first cell", "create_run", "ms", 3, floor=CELL),
    Row("create -> first cell, no pool", "unpooled_create_run", "ms", 10, floor=FORK),
    Row("1+1, warm, raw HTTP", "run", "ms", 0.8, floor=CELL),
    Row("  times run_cell in process", "", "x", 4, of=_cells),
    Row("1+1, warm, 150 ms apart", "run_spaced", "ms", floor=CELL),
    Row("1+1, warm, stock JS SDK", "sdk_js_run_ms", "ms", 1.6),
    Row("bare ipykernel, no HTTP, for comparison", "floor_ipykernel_ms", "ms"),
    Row("Sandbox.create, stock JS SDK", "sdk_js_create_ms", "ms"),
    Row("new Python context", "context", "ms", 5, floor=FORK),
    Row("8 contexts in parallel", "contexts", "cells/s", 2500, more=True),
    Row("first byte of a print", "first_byte", "ms", 3),
    Row("10 MB in 1 KB prints", "output", "MB/s", 50, more=True),
    Row("figure with its chart", "figure", "ms", floor="figure_savefig"),
    Row("  times savefig", "", "x", 1.15, of=_figure),
    Row("100 creates at once, a numpy cell each", "burst", "ms", 600, part=1.0),
    Row("  the same with 104 boxes ready", "ready_burst", "ms", 600, part=1.0),
    Row("create + run + kill", "sustained", "per s", 150, more=True),
    Row("create + run + kill, no pool", "unpooled_sustained", "per s", more=True),
    Row("idle boxes: PSS each", "density_pss", "MB", 6),
    Row("idle boxes: the host's memory each", "density_host_mb", "MB"),
    Row("idle boxes: create, times the usual", "", "x", 2, of=_crowded),
    Row("idle boxes: share that answers afterwards", "", "", 1, more=True, of=_answered),
    Row("pause, on disk, 40 MB of its own", "pause", "ms", 150),
    Row("resume from disk", "resume", "ms", 80),
    Row("pause (frozen)", "frozen_pause", "ms", 3),
    Row("resume (frozen)", "frozen_resume", "ms", 3),
    Row("fork of a running box, one copy", "fork", "ms", 200),
    Row("  the copy's first cell", "fork_first_cell", "ms"),
    Row("rebuild of a template, all cached", "rebuild", "ms"),
    Row("rebuild, another last step", "rebuild_last", "ms", 2000),
    Row("rebuild with a start command, all cached", "rebuild_ready", "ms"),
    Row("rebuild with a start command, another last step", "rebuild_ready_last", "ms", 2000),
    Row("create from a ready template -> its server answers", "create_ready", "ms"),
    Row("upload", "upload", "GB/s", 1, more=True, floor="floor_tcp_gb_per_second"),
    Row("download", "download", "GB/s", 1, more=True, floor="floor_tcp_gb_per_second"),
    Row("command: true", "command_true", "ms", floor="floor_shell_ms"),
    Row("command: echo", "command_echo", "ms", floor="floor_shell_ms"),
    Row("list of 10,000 entries", "list", "ms"),
    Row("HTTP into a box", "http", "ms", floor="floor_http_ms"),
    Row("  added to HTTP by itself", "", "ms", 0.15, of=_added),
    Row("HTTP into a box, 32 connections", "http_rate", "req/s", 30000, more=True, floor="floor_proxy_rate"),
    Row("HTTP into a Node server in a box, 5,000 connections", "crowd_rate", "req/s", more=True),
    Row("  the longest wait among them", "crowd_wait", "ms", part=1.0),
    Row("loopback TCP round trip, for comparison", "floor_tcp_round_trip_ms", "ms"),
    Row("daemon, idle (PSS of all roles)", "daemon_pss", "MB", 20),
    Row("daemon, after all of this", "daemon_after", "MB"),
    Row("binary, stripped", "binary_mb", "MB", 5),
    Row("agent: PSS each", "agent_pss", "MB", 0.7),
]


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _line(row: Row, samples: Samples) -> tuple[list[str], bool]:
    """The cells of a row, and whether its goal was missed."""
    try:
        ours = row.of(samples) if row.of else quantile(samples[row.series], row.part)
    except (KeyError, IndexError, ZeroDivisionError):
        return [row.title, "", "not measured", "", "", "", row.unit, "", ""], row.goal is not None
    values = samples.get(row.series) or [ours]
    tails = [quantile(values, 0.05 if row.more else 0.95), quantile(values, 0.01 if row.more else 0.99)]
    floor = quantile(samples[row.floor], 0.5) if samples.get(row.floor) else None
    ratio = f"{ours / floor:.2f}" if floor else ""
    goal, verdict = "", ""
    if row.goal is not None:
        good = ours >= row.goal if row.more else ours <= row.goal
        goal, verdict = f"{'>=' if row.more else '<='} {row.goal:g}", "met" if good else "missed"
    shown = ["", ""] if row.of else [_number(tail) for tail in tails]
    return [row.title, _number(floor), _number(ours), *shown, ratio, row.unit, goal, verdict], verdict == "missed"


def print_table(samples: Samples) -> int:
    """Prints all rows; gives the number of goals that were missed."""
    print("| what | floor | ours | p95 | p99 | ratio | unit | goal | |\n|---|--:|--:|--:|--:|--:|---|---|---|")
    missed = 0
    for row in ROWS:
        cells, bad = _line(row, samples)
        missed += bad
        print("| " + " | ".join(cells) + " |")
    goals = sum(row.goal is not None for row in ROWS)
    print(f"\n{goals - missed} of {goals} goals met")
    return missed


if __name__ == "__main__":
    print_table(json.loads(Path(sys.argv[1]).read_text())["samples"])
