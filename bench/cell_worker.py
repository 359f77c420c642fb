# SPDX-License-Identifier: Apache-2.0
"""The Python behind cell_floor: a line of code in, a line with the cell's result out, until the input ends."""

import os
import sys

from python_floor import quiet_shell


def main() -> None:
    shell = quiet_shell()
    answers = os.dup(1)
    os.dup2(2, 1)
    for line in sys.stdin:
        done = shell.run_cell(line.rstrip("\n"), store_history=True)
        os.write(answers, f"{done.result!r}\n".encode())


main()
