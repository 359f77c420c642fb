# SPDX-License-Identifier: Apache-2.0
"""Reading lifecycle events as their users do: plain HTTP with the key of the SDK."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from support.wire import Wire

Event = dict[str, Any]


def events(wire: Wire, box: str = "", **query: Any) -> list[Event]:
    """The events of a box, or of the team; oldest first unless the query says otherwise."""
    asked = {"orderAsc": "true", "limit": 100} | query
    path = f"/events/sandboxes/{box}" if box else "/events/sandboxes"
    got = wire.call("GET", f"{path}?{urlencode(asked, doseq=True)}")
    assert got.status == 200, (got.status, got.body)
    return got.json()


def kinds(told: list[Event]) -> str:
    """created updated ... of the list, in its order."""
    assert all(event["type"].startswith("sandbox.lifecycle.") for event in told)
    return " ".join(event["type"].rsplit(".", 1)[1] for event in told)
