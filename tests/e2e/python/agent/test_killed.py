# SPDX-License-Identifier: Apache-2.0
"""What a client sees when its box goes away under a running command."""

from __future__ import annotations

import threading
import time

import e2b
import pytest


def test_a_box_killed_during_a_run_is_a_timeout_error_that_says_so() -> None:
    box = e2b.Sandbox.create(timeout=60)
    timer = threading.Timer(1.5, box.kill)
    timer.start()
    started = time.monotonic()
    try:
        with pytest.raises(
            e2b.TimeoutException, match="sandbox was killed or reached its end of life"
        ):
            box.commands.run("sleep 60")
    finally:
        timer.join()
        box.kill()
    assert time.monotonic() - started < 50


def test_everything_after_the_kill_is_a_timeout_error() -> None:
    box = e2b.Sandbox.create(timeout=60)
    box.kill()
    with pytest.raises(e2b.TimeoutException):
        box.commands.run("true")
    with pytest.raises(e2b.TimeoutException):
        box.files.read("/etc/passwd")
    with pytest.raises(e2b.TimeoutException):
        box.files.list("/")
    assert box.is_running() is False
