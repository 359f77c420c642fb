#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""settings.py [--write]: docs/settings.md and deploy/cloche.conf are what src/cli/config.c says.

Without --write it compares them and tells what to do when they differ.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
DOCUMENT = TOP / "docs/settings.md"
DEFAULTS = TOP / "deploy/cloche.conf"
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

DEFAULTS_HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# Settings of the Cloche server. Every line is the default: take away a '#' and change the value. `cloche serve
# --print-config` prints what is in force; a mistyped name is an error that says which one is meant.
"""


def value_of(word: str) -> str:
    """A string as it stands, or the one that a name of a header stands for."""
    if word.startswith('"'):
        return word.strip('"')
    for header in TOP.glob("src/**/*.h"):
        if found := re.search(rf'#define {word}\s+"([^"]*)"', header.read_text()):
            return found[1]
    raise SystemExit(f"settings: no header defines {word}")


def rows() -> list[re.Match[str]]:
    source = (TOP / "src/cli/config.c").read_text()
    found = list(ROW.finditer(source))
    if len(found) != len(re.findall(r'^    \{"', source, re.MULTILINE)):
        raise SystemExit("settings: a row of src/cli/config.c is not written as the others are")
    return found


def meaning_of(row: re.Match[str]) -> str:
    return re.sub(r'"\s+"', "", row["meaning"])


def table() -> str:
    lines = []
    for row in rows():
        fallback = value_of(row["fallback"])
        reach = f"{int(row['least']):,} to {int(row['most']):,}" if row["kind"] in ("NUMBER", "TIMES") else ""
        meaning = meaning_of(row).replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")
        lines.append(f"| `{row['name']}` | {f'`{fallback}`' if fallback else ''} | {reach} | {meaning} |\n")
    return HEAD + "".join(lines)


def defaults() -> str:
    parts = [DEFAULTS_HEAD]
    for row in rows():
        fallback = value_of(row["fallback"])
        value = fallback if row["kind"] in ("NUMBER", "TIMES") else f'"{fallback}"'
        comment = textwrap.wrap(meaning_of(row), 117, break_long_words=False, break_on_hyphens=False)
        parts.append("".join(f"# {line}\n" for line in comment) + f"#{row['name']} = {value}\n")
    return "\n".join(parts)


def main() -> int:
    made = {DOCUMENT: table(), DEFAULTS: defaults()}
    if sys.argv[1:] == ["--write"]:
        for path, text in made.items():
            path.write_text(text)
        return 0
    for path, text in made.items():
        if not path.exists() or path.read_text() != text:
            print(f"{path.relative_to(TOP)} is not what src/cli/config.c says: scripts/settings.py --write")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
