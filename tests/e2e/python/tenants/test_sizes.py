# SPDX-License-Identifier: Apache-2.0
"""A tenant does not choose how large its boxes are: the server and its operator set the most, for every way to make
one."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from support.server import Server, own_server
from support.tenants import cloche, two_teams


@pytest.fixture
def asleep() -> Iterator[Server]:
    """A server that is not started yet."""
    with own_server(start=False) as made:
        yield made


def memory_mb() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20


def test_no_template_is_larger_than_the_machine(server: Server) -> None:
    wire = server.wire
    cores = max(os.cpu_count() or 1, 2)
    for field, value, most in (("memoryMB", 1_000_000, memory_mb()), ("cpuCount", 32, cores)):
        if most >= value:
            continue
        got = wire.call("POST", "/v3/templates", {"name": "large"} | {field: value})
        assert got.status == 400, (field, got.status, got.body)
        message = got.json()["message"]
        assert str(value) in message, message
        assert str(most) in message, message


@pytest.mark.parametrize("value", [-2, 0, 2, 127, 129, 1.5, "512", 2**31, 10**30])
def test_odd_sizes_are_refused_by_name(tenants, value) -> None:
    got = tenants.attacker.call("POST", "/v3/templates", {"name": "odd", "memoryMB": value})
    assert got.status == 400, (value, got.body)
    assert "memoryMB" in got.json()["message"]


def test_a_stored_template_above_a_lowered_limit_is_refused(asleep: Server) -> None:
    asleep.start()
    wire = asleep.wire
    size = wire.create(timeout=300).made
    paused, running = wire.create(timeout=300), wire.create(timeout=300)
    assert wire.call("POST", f"/sandboxes/{paused.id}/pause").status == 204
    memory = wire.call("GET", f"/sandboxes/{running.id}").json()["memoryMB"]
    assert size["sandboxID"]
    asleep.signal(signal.SIGTERM)
    asleep.start("--box-memory-max-mb", str(memory - 2))
    wire = asleep.wire
    for method, path, body in (
        ("POST", "/sandboxes", {"templateID": "base"}),
        ("POST", "/v2/sandboxes", {"templateID": "base"}),
        ("POST", f"/sandboxes/{paused.id}/connect", {"timeout": 60}),
        ("POST", f"/sandboxes/{paused.id}/resume", {"timeout": 60}),
    ):
        got = wire.call(method, path, body)
        assert got.status == 400, (path, got.status, got.body)
        message = got.json()["message"]
        assert f"memoryMB {memory}" in message, message
        assert str(memory - 2) in message, message
    forked = wire.call("POST", f"/sandboxes/{running.id}/fork", {"count": 1, "timeout": 60})
    assert f"memoryMB {memory}" in forked.text, forked.text
    assert len(wire.call("GET", "/v2/sandboxes?state=running").json()) == 2


def test_a_team_has_so_much_memory_together(server: Server) -> None:
    tenants = two_teams(server)
    first = tenants.attacker.create(timeout=60)
    memory = tenants.attacker.call("GET", f"/sandboxes/{first.id}").json()["memoryMB"]
    team = next(line.split()[0] for line in cloche(server, "team", "list").splitlines() if "Attacker" in line)
    cloche(server, "team", "limit", team, "--total-memory", str(2 * memory - 2))
    got = tenants.attacker.call("POST", "/sandboxes", {"templateID": "base"})
    assert got.status == 429, got.body
    assert str(2 * memory - 2) in got.json()["message"]
    tenants.victim.create(timeout=60).kill()  # nobody else's business
    assert tenants.attacker.call("POST", f"/sandboxes/{first.id}/pause").status == 204
    second = tenants.attacker.create(timeout=60)  # a sleeping one has no memory
    got = tenants.attacker.call("POST", f"/sandboxes/{first.id}/connect", {"timeout": 60})
    assert got.status == 429, got.body
    second.kill()
    got = tenants.attacker.call("POST", f"/sandboxes/{first.id}/connect", {"timeout": 60})
    assert got.status in (200, 201), got.body
