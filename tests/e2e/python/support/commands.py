# SPDX-License-Identifier: Apache-2.0
"""The command line of the server under test."""

from __future__ import annotations

import os
import subprocess


def cloche(*words: str) -> str:
    done = subprocess.run(
        [os.environ["CLOCHE_BIN"], *words], capture_output=True, text=True, timeout=20, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
