"""Print "PASSED FAILED" for one JUnit report.

Only leaf test cases count; a case with a failure or an error child failed, and
a skipped one is neither: the suites have no reason to skip, the runner's
name pattern does.
"""

import sys
import xml.etree.ElementTree as xml


def main(path: str) -> None:
    passed = failed = 0
    for case in xml.parse(path).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is None:
            passed += 1
    print(passed, failed)


main(sys.argv[1])
