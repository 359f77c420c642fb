# SPDX-License-Identifier: Apache-2.0
"""An id is no secret: knowing another team's sandbox ID opens nothing."""

from __future__ import annotations

from support.tenants import Tenants


def test_the_api_hides_a_foreign_sandbox(tenants: Tenants) -> None:
    box = tenants.victim.create(timeout=60)
    try:
        for method, path in (
            ("GET", ""),
            ("DELETE", ""),
            ("POST", "/pause"),
            ("POST", "/connect"),
            ("POST", "/resume"),
            ("POST", "/timeout"),
            ("POST", "/snapshots"),
            ("POST", "/fork"),
            ("GET", "/logs"),
            ("GET", "/metrics"),
        ):
            body = {"timeout": 30} if method == "POST" else None
            got = tenants.attacker.call(method, f"/sandboxes/{box.id}{path}", body)
            assert got.status == 404, (method, path, got.status, got.body)
        assert box.agent("GET", "/health").status == 204
    finally:
        box.kill()
