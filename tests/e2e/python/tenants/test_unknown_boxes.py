# SPDX-License-Identifier: Apache-2.0
"""One client that guesses sandbox IDs and others behind the same address (a NAT, a proxy)."""

from __future__ import annotations

import os
import secrets
import signal

from support.server import own_server
from support.stranger import AGENT_PORT, Stranger
from support.tenants import two_teams
from support.waiting import eventually

LIMIT = 20


def health(stranger: Stranger, box: str) -> set[int]:
    return stranger.statuses(box, AGENT_PORT, "GET", "/health")


def guess(stranger: Stranger) -> set[int]:
    return health(stranger, "i" + secrets.token_hex(10)[:19])


def test_guesses_of_one_lock_nobody_out_who_has_the_same_address() -> None:
    with own_server("--gates", "1", "--unknown-boxes-per-minute", str(LIMIT)) as server:
        tenants = two_teams(server)
        stranger = Stranger(tenants.attacker)
        eventually(lambda: guess(stranger) == {429}, 30)
        box = tenants.victim.create(timeout=120)
        assert health(stranger, box.id) == {204}
        assert guess(stranger) == {429}
        (warden,) = server.wardens()
        os.kill(warden, signal.SIGKILL)  # the next one tells the gate anew which boxes there are
        eventually(lambda: server.wardens() not in ([], [warden]), 30)
        other = tenants.victim.create(timeout=120)
        eventually(lambda: guess(stranger) == {429}, 30)
        assert health(stranger, other.id) == {204}
        assert health(stranger, box.id) == {204}
        for made in (box, other):
            made.kill()
        assert health(stranger, box.id) <= {429, 502}
