# SPDX-License-Identifier: Apache-2.0
"""Tracebacks in IPython's layout, without IPython's price.

IPython parses the whole source file of every frame to choose the lines it shows; an error that passes
through pandas costs it more than a second. Here the lines around the failing one are read from
linecache. Frames of IPython and of this kernel are left out, and endless recursion is folded.
"""

import inspect
import linecache
import os
import textwrap
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

import IPython

WIDTH = 75
GUTTER = 7  # columns of the line numbers
BEFORE, AFTER = 3, 2  # lines of context
REPEATS = 3  # equal frames in a row that are shown
LINKS = 32  # exceptions of one chain that are shown
OURS = tuple(os.path.join(os.path.dirname(os.path.realpath(f)), "") for f in (IPython.__file__, __file__))
CAUSE = "\nThe above exception was the direct cause of the following exception:\n"
CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n"

CellName = Callable[[str], Any]  # a code object's file name -> ("Cell", "In[3]"), None for other files
Step = tuple[Any, int]  # a frame, and the line that failed in it


def pieces(error: BaseException, cell_name: CellName) -> list[str]:
    """The traceback as a list: rule, title, one block per frame, last line; causes come first."""
    parts = ["-" * WIDTH]
    for link, joint in _chain(error):
        name = type(link).__name__
        parts.append(name + "Traceback (most recent call last)".rjust(max(WIDTH - len(name), 34)))
        parts.extend(_blocks(link.__traceback__, cell_name))
        parts.extend(last_lines(link))
        if joint:
            parts.append(joint)
    return parts


def last_lines(error: BaseException) -> list[str]:
    """`Name: value`, and the notes that were added to the exception."""
    name = type(error).__name__
    try:
        value = str(error)
    except Exception:
        value = f"<unprintable {name}>"
    notes = getattr(error, "__notes__", None)
    return [f"{name}: {value}" if value else f"{name}: ", *(str(note) for note in notes or ())]


def _chain(error: BaseException) -> list[tuple[BaseException, str]]:
    """The exceptions that led to this one, oldest first, each with the words that lead on."""
    links: list[tuple[BaseException, str]] = [(error, "")]
    seen = {id(error)}
    while len(links) < LINKS:
        latest = links[-1][0]
        if latest.__cause__ is not None:
            earlier, joint = latest.__cause__, CAUSE
        elif latest.__context__ is not None and not latest.__suppress_context__:
            earlier, joint = latest.__context__, CONTEXT
        else:
            break
        if id(earlier) in seen:
            break
        seen.add(id(earlier))
        links.append((earlier, joint))
    return links[::-1]


def _blocks(trace: TracebackType | None, cell_name: CellName) -> Iterator[str]:
    steps = list(_steps(trace))
    index = 0
    while index < len(steps):
        frame, line = steps[index]
        run = _run_length(steps, index)
        if run <= REPEATS + 1:
            yield _block(frame, line, cell_name)
            index += 1
            continue
        for _ in range(REPEATS):
            yield _block(frame, line, cell_name)
        skipped = run - REPEATS - 1
        yield f"    [... skipping similar frames: {frame.f_code.co_qualname} at line {line} ({skipped} times)]\n"
        yield _block(frame, line, cell_name)
        index += run


def _steps(trace: TracebackType | None) -> Iterator[Step]:
    while trace is not None:
        frame = trace.tb_frame
        if not frame.f_code.co_filename.startswith(OURS) and not frame.f_locals.get("__tracebackhide__"):
            yield frame, trace.tb_lineno
        trace = trace.tb_next


def _run_length(steps: list[Step], start: int) -> int:
    code, line = steps[start][0].f_code, steps[start][1]
    end = start
    while end < len(steps) and steps[end][0].f_code is code and steps[end][1] == line:
        end += 1
    return end - start


def _block(frame: Any, line: int, cell_name: CellName) -> str:
    """One frame: where it is, and the source around the line, marked by an arrow."""
    path = frame.f_code.co_filename
    cell = cell_name(path)
    where = f"{cell[0]} {cell[1]}, line {line}" if cell else f"File {path}:{line}"
    return f"{where}{_call(frame)}\n{_source(frame, line)}"


def _call(frame: Any) -> str:
    name = frame.f_code.co_qualname
    if name == "<module>":
        return ""
    found = inspect.getargs(frame.f_code)
    names = [*found.args]
    names += [f"*{found.varargs}"] if found.varargs else []
    names += [f"**{found.varkw}"] if found.varkw else []
    return f", in {name}({', '.join(names)})"


def _source(frame: Any, line: int) -> str:
    path, known = frame.f_code.co_filename, frame.f_globals
    first = line - BEFORE
    if frame.f_code.co_name != "<module>":
        first = max(first, frame.f_code.co_firstlineno)
    numbers = [n for n in range(max(first, 1), line + AFTER + 1) if linecache.getline(path, n, known)]
    if line not in numbers:
        return ""
    text = textwrap.dedent("".join(linecache.getline(path, n, known) for n in numbers)).splitlines()
    rows = [f"{_number(n, n == line)} {source}".rstrip() for n, source in zip(numbers, text, strict=False)]
    while len(rows) > 1 and numbers[len(rows) - 1] > line and rows[-1].strip().isdigit():
        rows.pop()
    return "\n".join(rows) + "\n"


def _number(number: int, failing: bool) -> str:
    digits = str(number)
    if not failing:
        return digits.rjust(GUTTER)
    return "-" * (GUTTER - len(digits) - 2) + "> " + digits
