# SPDX-License-Identifier: Apache-2.0
"""Print "PASSED FAILED" for one JUnit report and tell of the failing cases.

    count.py REPORT LABEL FAILURES

Only leaf test cases count; a case with a failure or an error child failed, and
a skipped one is neither: the suites have no reason to skip, the runner's
name pattern does. Each failing case adds its name and the first lines of its
reason to the file FAILURES, so that the runner can close with them: what ran
after a failure may be thousands of lines long.
"""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as xml

REASON_LINES = 3
LINE_LENGTH = 160
SCRIPT = re.compile(r"(\w+/\w+)\.test\.mjs:")
ESCAPES = re.compile(r"(\x1b|#x1B)\[[0-9;]*m")


def reason(problem: xml.Element) -> list[str]:
    """The first lines that say something; of a trace, those that pytest marks with E."""
    text = ESCAPES.sub("", problem.text or "")
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    marked = [line[1:] for line in lines if line.startswith("E ")]
    message = ESCAPES.sub("", problem.get("message") or "").strip().splitlines()
    return [line.strip()[:LINE_LENGTH] for line in (marked or message or lines)[:REASON_LINES]]


def tell(case: xml.Element, problem: xml.Element, label: str) -> str:
    """node's reports name no file for a case; the trace of its failure does."""
    place = (case.get("classname") or "").removeprefix("test").replace(".", "/")
    name = f"{place}: {case.get('name')}" if place else str(case.get("name"))
    if script := SCRIPT.search(problem.text or ""):
        name = f"{script[1]}: {name}"
    return "\n      ".join([f"FAIL  {label} {name}", *reason(problem)]) + "\n"


def main(path: str, label: str, failures: str) -> None:
    passed = failed = 0
    with open(failures, "a", encoding="utf-8") as told:
        for case in xml.parse(path).getroot().iter("testcase"):
            problem = case.find("failure")
            if problem is None:
                problem = case.find("error")
            if problem is not None:
                failed += 1
                told.write(tell(case, problem, label))
            elif case.find("skipped") is None:
                passed += 1
    print(passed, failed)


main(*sys.argv[1:])
