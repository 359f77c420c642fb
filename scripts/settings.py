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
DEFAULT_FILE = TOP / "deploy/cloche.conf"
ROW = re.compile(
    r'\{"(?P<name>\w+)",\s+'
    r'(?P<live>LIVE_)?(?P<kind>TEXT|WORD|NUMBER|TIMES|CHOICE)\((?P<place>[^)]*)\),\s+(?P<fallback>"[^"]*"|\w+),\s+'
    r'(?P<least>\d+),\s+(?P<most>\d+),\s+"(?P<meaning>[^"]*(?:"\s+"[^"]*)*)"\}'
)
HEAD = """# Settings

Every setting of `cloche serve`: a flag (`--log-level warn`), a variable (`CLOCHE_LOG_LEVEL=warn`) or a line of the
config file (`log_level = warn`); flags beat variables, variables beat the file ([configuration.md](configuration.md)).
`cloche config show` prints what is in force and where each value comes from. "Reload": SIGHUP changes it in a running
server; the others need a restart. Made by `scripts/settings.py --write` from `src/cli/config.c`.

| setting | default | range | reload | meaning |
|---|---|---|---|---|
"""
FILE_HEAD = """# SPDX-License-Identifier: Apache-2.0
# Settings of `cloche serve`. Read at start and at SIGHUP (systemctl reload cloche); so are the files in
# cloche.conf.d beside this one whose names end with .conf, by name. What is read later wins; the environment
# (CLOCHE_NAME) and flags (--name) win over files. `cloche config check` finds mistakes, `cloche config show` prints
# what is in force. All lines here are the defaults, as comments. Settings marked with "reload" change at SIGHUP.
#
# Made by scripts/settings.py from src/cli/config.c.
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


def reach_of(row: re.Match[str]) -> str:
    return f"{int(row['least']):,} to {int(row['most']):,}" if row["kind"] in ("NUMBER", "TIMES") else ""


def meaning_of(row: re.Match[str]) -> str:
    return re.sub(r'"\s+"', "", row["meaning"])


def table() -> str:
    lines = []
    for row in rows():
        fallback = value_of(row["fallback"])
        meaning = meaning_of(row).replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")
        live = "yes" if row["live"] else ""
        lines.append(
            f"| `{row['name']}` | {f'`{fallback}`' if fallback else ''} | {reach_of(row)} | {live} | {meaning} |\n"
        )
    return HEAD + "".join(lines)


def default_file() -> str:
    """All settings, commented out, each with its meaning and range."""
    parts = [FILE_HEAD]
    for row in rows():
        words = re.search(r'"([^"]*)"', row["place"])
        reach = reach_of(row) or (f"one of: {words[1]}" if words else "")
        notes = "; ".join(note for note in (reach, "reload" if row["live"] else "") if note)
        meaning = meaning_of(row) + (f" ({notes})" if notes else "")
        text = textwrap.fill(meaning, 118, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
        fallback = value_of(row["fallback"])
        value = fallback if row["kind"] in ("NUMBER", "TIMES") else f'"{fallback}"'
        parts.append(f"\n{text}\n#{row['name']} = {value}\n")
    return "".join(parts)


def main() -> int:
    made = {DOCUMENT: table(), DEFAULT_FILE: default_file()}
    if sys.argv[1:] == ["--write"]:
        for path, text in made.items():
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        return 0
    stale = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        print(f"{path.relative_to(TOP)} is not what src/cli/config.c says: scripts/settings.py --write")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
