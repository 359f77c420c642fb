#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""settings.py [--write]: docs/settings.md is what src/cli/config.c says.

Without --write it compares the two and tells what to do when they differ.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
DOCUMENT = TOP / "docs/settings.md"
ROW = re.compile(
    r'\{"(?P<name>\w+)",\s+(?P<kind>TEXT|WORD|NUMBER|TIMES|CHOICE)\([^)]*\),\s+(?P<fallback>"[^"]*"|\w+),\s+'
    r'(?P<least>\d+),\s+(?P<most>\d+),\s+"(?P<meaning>[^"]*(?:"\s+"[^"]*)*)"\}'
)
HEAD = """# Settings

Every setting of `cloche serve`: a flag (`--log-level warn`), a variable (`CLOCHE_LOG_LEVEL=warn`) or a line of the
config file (`log_level = warn`); flags beat variables, variables beat the file. `cloche serve --print-config` prints
what is in force. Made by `scripts/settings.py --write` from `src/cli/config.c`.

| setting | default | range | meaning |
|---|---|---|---|
"""


def value_of(word: str) -> str:
    """A string as it stands, or the one that a name of a header stands for."""
    if word.startswith('"'):
        return word.strip('"')
    for header in TOP.glob("src/**/*.h"):
        if found := re.search(rf'#define {word}\s+"([^"]*)"', header.read_text()):
            return found[1]
    raise SystemExit(f"settings: no header defines {word}")


def table() -> str:
    source = (TOP / "src/cli/config.c").read_text()
    rows = list(ROW.finditer(source))
    if len(rows) != len(re.findall(r'^    \{"', source, re.MULTILINE)):
        raise SystemExit("settings: a row of src/cli/config.c is not written as the others are")
    lines = []
    for row in rows:
        fallback = value_of(row["fallback"])
        reach = f"{int(row['least']):,} to {int(row['most']):,}" if row["kind"] in ("NUMBER", "TIMES") else ""
        meaning = re.sub(r'"\s+"', "", row["meaning"]).replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")
        lines.append(f"| `{row['name']}` | {f'`{fallback}`' if fallback else ''} | {reach} | {meaning} |\n")
    return HEAD + "".join(lines)


def main() -> int:
    if sys.argv[1:] == ["--write"]:
        DOCUMENT.write_text(table())
        return 0
    if DOCUMENT.exists() and DOCUMENT.read_text() == table():
        return 0
    print("docs/settings.md is not what src/cli/config.c says: scripts/settings.py --write")
    return 1


if __name__ == "__main__":
    sys.exit(main())
