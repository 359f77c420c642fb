# SPDX-License-Identifier: Apache-2.0
"""Boxes that were born with a loaded Python, and what their kernels are."""

from __future__ import annotations

from collections.abc import Callable

import e2b_code_interpreter as interpreter

from support.waiting import eventually

PATIENCE = 120  # seconds a template's Python may take to load on a machine that has no time


def pythons(box: interpreter.Sandbox) -> list[str]:
    """Arguments of the kernels' processes in a box."""
    lines = box.commands.run("ps -eo args", user="root").stdout.splitlines()
    return [line for line in lines if "kernels/python/main.py" in line]


def all_forks(box: interpreter.Sandbox) -> bool:
    """Whether every Python of the box came from outside, loaded: a cold one has other arguments."""
    found = pythons(box)
    return bool(found) and all(line.endswith("--zygote") for line in found)


def warm_box(make: Callable[[], interpreter.Sandbox] | None = None) -> interpreter.Sandbox:
    """One that was born when the template's Python was loaded."""

    def born_warm() -> interpreter.Sandbox | None:
        box = make() if make else interpreter.Sandbox.create(timeout=300)
        assert box.run_code("1 + 1").text == "2"
        if all_forks(box):
            return box
        box.kill()
        return None

    return eventually(born_warm, PATIENCE, every=1, state=lambda: "the template's Python was never loaded")
