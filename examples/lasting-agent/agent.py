# SPDX-License-Identifier: Apache-2.0
"""An agent that goes on where it was left: its variables live in a sandbox that sleeps while nobody needs it.

Each run of this program is a client of its own and does three steps; the second one finds what the first one knew.
"""

from __future__ import annotations

import sys

from cloche import Sandbox, SandboxQuery

NAME = sys.argv[1] if len(sys.argv) > 1 else "counting-agent"
STEPS_PER_RUN = 3
# Seconds without a client until the sandbox goes to sleep.
AWAKE = 60

BEGIN = "found, step = [], 0"
# Where a model would choose the next piece of code; here every step looks at the next hundred numbers.
STEP = """
step += 1
numbers = range(100 * (step - 1), 100 * step)
found += [n for n in numbers if n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))]
print(f"step {step}: {len(found)} primes, the last one is {found[-1]}")
"""


def open_box() -> Sandbox:
    """The agent's sandbox: the one that an earlier run left, woken if it sleeps, or a new one."""
    for info in Sandbox.list(SandboxQuery(metadata={"agent": NAME})):
        print(f"{NAME} goes on in {info.sandbox_id}, which was {info.state.value}")
        return Sandbox.connect(info.sandbox_id, timeout=AWAKE)
    box = Sandbox.create(
        timeout=AWAKE,
        metadata={"agent": NAME},
        lifecycle={"on_timeout": "pause", "auto_resume": True},
    )
    print(f"{NAME} begins in {box.sandbox_id}")
    box.run_code(BEGIN)
    return box


def main() -> None:
    box = open_box()
    for number in range(STEPS_PER_RUN):
        run = box.run_code(STEP)
        if run.error:
            sys.exit(run.error.traceback)
        print("".join(run.logs.stdout), end="")
        if number == 0:
            # As if the model thought for an hour and the time was over: the next call wakes the sandbox by itself.
            box.pause()
    # Not killed: it sleeps on disk, with its memory, until the next run.
    box.pause()


if __name__ == "__main__":
    main()
