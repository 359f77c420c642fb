# SPDX-License-Identifier: Apache-2.0
"""Lines that a build says, and a logger that shows them in a terminal."""

from __future__ import annotations

import re
import sys
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Callable, Dict, Literal, Optional

LogEntryLevel = Literal["debug", "info", "warn", "error"]

_ESCAPES = re.compile(
    r"\x1b[\]PX^_].*?(?:\x07|\x1b\\|\x9c)|[\x1b\x9b][\[\]()#;?]*(?:\d{1,4}(?:[;:]\d{0,4})*)?[\dA-PR-TZcf-nq-uy=><~]",
    re.DOTALL,
)
_ORDER: Dict[str, int] = {"debug": 0, "info": 1, "warn": 2, "error": 3}
_COLOURS: Dict[str, str] = {"debug": "90", "info": "33", "warn": "35", "error": "31"}


@dataclass
class LogEntry:
    """A line of a build, without the colours of a terminal."""

    timestamp: datetime
    level: LogEntryLevel
    message: str

    def __post_init__(self) -> None:
        self.message = _ESCAPES.sub("", self.message)

    def __str__(self) -> str:
        return f"[{self.timestamp.isoformat()}] [{self.level}] {self.message}"


@dataclass
class LogEntryStart(LogEntry):
    """The first entry of a build."""

    level: LogEntryLevel = field(default="debug", init=False)


@dataclass
class LogEntryEnd(LogEntry):
    """The last entry of a build."""

    level: LogEntryLevel = field(default="debug", init=False)


def default_build_logger(min_level: Optional[LogEntryLevel] = None) -> Callable[[LogEntry], None]:
    """A logger that prints entries from `min_level` (info) on, with the time since the build began."""
    least = _ORDER[min_level or "info"]
    began = time.monotonic()

    def log(entry: LogEntry) -> None:
        nonlocal began
        if isinstance(entry, LogEntryStart):
            began = time.monotonic()
        if isinstance(entry, (LogEntryStart, LogEntryEnd)) or _ORDER[entry.level] < least:
            return
        level = entry.level.upper().ljust(5)
        if sys.stdout.isatty():
            level = f"\x1b[{_COLOURS[entry.level]}m{level}\x1b[0m"
        elapsed = f"{time.monotonic() - began:.1f}s".ljust(6)
        print(f"{elapsed}| {entry.timestamp:%H:%M:%S} {level} {entry.message}", flush=True)

    return log
