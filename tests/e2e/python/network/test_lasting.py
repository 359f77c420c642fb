# SPDX-License-Identifier: Apache-2.0
"""Lists outlive what happens to a box and to the daemon, and never their box."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack

import e2b
import pytest

from support.waiting import eventually
from support.world import (
    PUBLIC,
    Abroad,
    address,
    devices,
    finish_lasting,
    reached,
    run,
    start_lasting,
)

ALL = "0.0.0.0/0"
ONE, TWO, FAR = PUBLIC[1], PUBLIC[2], PUBLIC[8]

NETWORKS = {
    "plain": ({}, {ONE, TWO, FAR, "www.example.com"}),
    "denied": ({"deny_out": [ONE]}, {TWO, FAR, "www.example.com"}),
    "allowed": ({"allow_out": [ONE], "deny_out": [ALL]}, {ONE}),
    "named": ({"allow_out": ["*.example.com"], "deny_out": [ALL]}, {TWO, "www.example.com"}),
}


def reaches(box: e2b.Sandbox) -> set[str]:
    """Names before addresses: an answered name opens its address."""
    return reached(box, "www.example.com") | reached(box, ONE, TWO, FAR)


def test_lists_outlast_a_pause(server: Abroad) -> None:
    for network, expected in NETWORKS.values():
        with server.box(network=network) as box:
            assert reaches(box) == expected
            box.pause()
            again = e2b.Sandbox.connect(box.sandbox_id, **server.access)
            assert reaches(again) == expected
    with server.box(allow_internet_access=False) as box:
        box.pause()
        again = e2b.Sandbox.connect(box.sandbox_id, **server.access)
        assert devices(again) == {"lo"}
        again.update_network({})
        again.pause()
        again = e2b.Sandbox.connect(box.sandbox_id, **server.access)
        assert reaches(again) == NETWORKS["plain"][1]


def restart(server: Abroad, how: str) -> None:
    if how == "warden":
        (warden,) = server.wardens()
        os.kill(warden, signal.SIGKILL)
        eventually(lambda: server.wardens() not in ([], [warden]), state=server.log)
        eventually(lambda: server.wire.call("GET", "/sandboxes").status == 200, state=server.log)
        return
    server.signal(getattr(signal, how))
    server.start()


@pytest.mark.parametrize("how", ["SIGTERM", "SIGKILL", "warden"])
def test_lists_outlast_the_daemon(server: Abroad, how: str) -> None:
    boxes = {}
    for name, (network, _) in NETWORKS.items():
        boxes[name] = e2b.Sandbox.create("base", timeout=120, network=network, **server.access)
    closed = e2b.Sandbox.create("base", timeout=120, allow_internet_access=False, **server.access)
    try:
        restart(server, how)
        for name, box in boxes.items():
            assert reaches(box) == NETWORKS[name][1], name
        assert devices(closed) == {"lo"}
        boxes["named"].update_network({"allow_out": ["example.com"], "deny_out": [ALL]})
        assert reaches(boxes["named"]) == set()
        assert reached(boxes["named"], "example.com") == {"example.com"}
        boxes["allowed"].update_network({})
        assert reaches(boxes["allowed"]) == NETWORKS["plain"][1]
        closed.update_network({"allow_out": [TWO], "deny_out": [ALL]})
        assert reaches(closed) == {TWO}
        with server.box() as fresh:
            assert reaches(fresh) == NETWORKS["plain"][1]
    finally:
        for box in [*boxes.values(), closed]:
            box.kill()


def test_no_box_inherits_the_lists_of_a_dead_one(server: Abroad) -> None:
    for _ in range(6):
        with server.box(network={"allow_out": ["example.com"], "deny_out": [ALL]}) as listed:
            assert reached(listed, "example.com", TWO) == {"example.com"}
        with server.box() as plain:
            assert reached(plain, ONE, TWO) == {ONE, TWO}
        with server.box(network={"deny_out": [FAR]}) as other:
            assert reached(other, ONE, FAR, "other.example.net") == {ONE, "other.example.net"}


def test_no_box_goes_on_with_the_connections_of_a_dead_one(server: Abroad) -> None:
    """The next box has the same address; what its forerunner was allowed is not its own."""
    ask = f"""
import socket
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.settimeout(2)
u.bind(("", 5555))
u.connect(("{FAR}", 7))
try:
    u.send(b"hello")
    print(u.recv(9).decode())
except OSError:
    print("refused")
"""
    with ExitStack() as alive:
        # More than the boxes made ahead, which may take up to eight of the addresses that come free.
        open_boxes = [alive.enter_context(server.box()) for _ in range(14)]
        used = {address(box) for box in open_boxes}
        assert all(run(box, f"python3 -c '{ask}'") == (0, "hello\n") for box in open_boxes)
    with ExitStack() as alive:
        again = set()
        for _ in range(40):
            box = alive.enter_context(server.box(network={"deny_out": [FAR]}))
            again |= {address(box)} & used
            assert run(box, f"python3 -c '{ask}'") == (0, "refused\n")
            if len(again) > 1:
                break
        assert again, "no address was used twice"


@pytest.mark.parametrize("how", ["SIGTERM", "warden"])
def test_open_connections_outlast_the_daemon(server: Abroad, how: str) -> None:
    with server.box() as box:
        handle = start_lasting(box)
        box.update_network({"deny_out": [FAR]})
        restart(server, how)
        assert finish_lasting(box, handle) == "again\nagain\n"
        assert reached(box, ONE, FAR) == {ONE}
