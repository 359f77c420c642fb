# SPDX-License-Identifier: Apache-2.0
"""A client that knows a sandbox's ID and nothing else.

It comes from an address of its own (127.0.0.2), because a client is also known by
where it showed a key or a token before.
"""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any

from support.wire import AGENT_PORT, INTERPRETER_PORT, Answer, Wire

STRANGER = "127.0.0.2"


@dataclass
class Stranger:
    wire: Wire
    address: str = STRANGER

    def call(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, timeout: float = 30
    ) -> Answer:
        host, port = self.wire.address
        link = http.client.HTTPConnection(host, port, timeout=timeout, source_address=(self.address, 0))
        sent = dict(headers or {})
        if isinstance(body, dict):
            body = json.dumps(body)
            sent["Content-Type"] = "application/json"
        try:
            link.request(method, path, body, sent)
            got = link.getresponse()
            return Answer(got.status, got.msg, got.read() if got.status != 101 else b"")
        finally:
            link.close()

    def ways(self, box: str, port: int, path: str) -> list[tuple[str, str, dict[str, str]]]:
        """Every way to name a port of a box: (name, path, headers)."""
        return [
            ("headers", path, {"E2b-Sandbox-Id": box, "E2b-Sandbox-Port": str(port)}),
            ("headers with client", path, {"E2b-Sandbox-Id": f"{box}-6532622b", "E2b-Sandbox-Port": str(port)}),
            ("host", path, {"Host": f"{port}-{box}.localhost"}),
            ("path", f"/box/{box}/{port}{path}", {}),
        ]

    def statuses(
        self, box: str, port: int, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> set[int]:
        """The statuses of one request over all ways."""
        return {
            self.call(method, at, body, routing | (headers or {})).status
            for _name, at, routing in self.ways(box, port, path)
        }


__all__ = ["AGENT_PORT", "INTERPRETER_PORT", "STRANGER", "Stranger"]
