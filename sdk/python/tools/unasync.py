#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the blocking half of the package from the asynchronous one.

    unasync.py          write src/cloche/_sync
    unasync.py --check  say which files are not as they would be written

Every file of _async is translated word by word, but those of which _sync has a hand-written twin: transports and
handles, where the two kinds of program do not do the same thing.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent / "src" / "cloche"
TWINS = {
    "__init__.py", "backend.py", "transport.py", "uploads.py", "command_handle.py", "execution_handle.py", "running.py",
    "watch_handle.py",
}  # fmt: skip
MARK = "# Made by tools/unasync.py from _async/{name}: change that file.\n"
WORDS = [
    (re.compile(r"\basync (def|for|with)\b"), r"\1"),
    (re.compile(r"\bawait "), ""),
    (re.compile(r"\bAsync(WriteData)\b"), r"\1"),
    (re.compile(r"\bAsyncWriteEntry\b"), "SyncWriteEntry"),
    (re.compile(r"\bAsync(Iterator|Iterable|Generator)\b"), r"\1"),
    (re.compile(r"\bAsync([A-Z]\w*)"), r"\1"),
    (re.compile(r"__a(enter|exit|iter|next)__"), r"__\1__"),
    (re.compile(r"\baclose\b"), "close"),
    (re.compile(r"`async with`"), "`with`"),
    (re.compile(r"\basyncio\.sleep\b"), "time.sleep"),
]


def translate(name: str, text: str) -> str:
    for pattern, replacement in WORDS:
        text = pattern.sub(replacement, text)
    first, rest = text.split("\n", 1)
    return f"{first}\n{MARK.format(name=name)}{rest}"


def names_table() -> str:
    """Which module has which public name, from the imports that type checkers see."""
    tree = ast.parse((HERE / "__init__.py").read_text())
    table = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module != "_version":
            names = [alias.name for alias in node.names if alias.asname]
            if names:
                table.setdefault("." + (node.module or ""), []).extend(names)
    lines = [f'    "{module}": "{" ".join(names)}",' for module, names in sorted(table.items())]
    folded = []
    for line in lines:
        folded.append(line if len(line) <= 120 else fold(line))
    body = "\n".join(folded)
    head = "# SPDX-License-Identifier: Apache-2.0\n# Made by tools/unasync.py from __init__.py: change that file.\n"
    return f"{head}NAMES = {{\n{body}\n}}\n"


def fold(line: str) -> str:
    module, names = line.split(": ", 1)
    rows = textwrap.wrap(names.strip('",'), 100, break_long_words=False)
    return module + ": (\n" + "\n".join(f'        "{row} "' for row in rows) + "\n    ),"


def main() -> int:
    stale = []
    table = HERE / "_names.py"
    if not table.exists() or table.read_text() != names_table():
        stale.append("_names.py")
        if "--check" not in sys.argv:
            table.write_text(names_table())
    for source in sorted((HERE / "_async").glob("*.py")):
        if source.name in TWINS:
            continue
        target = HERE / "_sync" / source.name
        text = translate(source.name, source.read_text())
        if target.exists() and target.read_text() == text:
            continue
        stale.append(source.name)
        if "--check" not in sys.argv:
            target.write_text(text)
    if "--check" in sys.argv and stale:
        print(f"not up to date with _async: {', '.join(stale)}; run tools/unasync.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
