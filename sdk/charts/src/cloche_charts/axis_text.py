# SPDX-License-Identifier: Apache-2.0
"""What a label says: its unit."""

from __future__ import annotations

import re

UNIT = re.compile(r"\s\((.*?)\)|\[(.*?)\]")


def unit_of(label: str | None) -> str | None:
    """The first part of a label in brackets."""
    found = UNIT.search(label or "")
    return (found[1] or found[2] or None) if found else None
