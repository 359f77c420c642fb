# SPDX-License-Identifier: Apache-2.0
"""`e2b_code_interpreter`, played by our SDK."""

import cloche
from cloche import *  # noqa: F403

__all__ = [name for name in dir(cloche) if not name.startswith("_")]


def __getattr__(name: str) -> object:
    return getattr(cloche, name)
