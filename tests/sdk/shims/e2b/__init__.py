# SPDX-License-Identifier: Apache-2.0
"""`e2b`, played by our SDK: what a program imports from the stock package comes from `cloche`.

The one thing that differs is the default template, which `e2b.Sandbox` has smaller.
"""

import cloche
from cloche import *  # noqa: F403
from cloche import exceptions  # noqa: F401

__all__ = [name for name in dir(cloche) if not name.startswith("_")]


class Sandbox(cloche.Sandbox):
    default_template = "base"


class AsyncSandbox(cloche.AsyncSandbox):
    default_template = "base"


def __getattr__(name: str) -> object:
    return getattr(cloche, name)
