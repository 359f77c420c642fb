# SPDX-License-Identifier: Apache-2.0
"""`dnsServers`: who is asked for the names that a box may reach, told back, changed and kept."""

from __future__ import annotations

import signal

import e2b

from support.waiting import eventually
from support.world import DNS_QUESTION, HOST, OTHERWISE, PUBLIC, RESOLVER, Abroad, reached, run

ALL = "0.0.0.0/0"
ALLOWED = {"allow_out": ["*.example.com", "example.com"], "deny_out": [ALL]}

LOOK_UP = DNS_QUESTION + 'print(socket.inet_ntoa(answer[-4:]) if answer[7] else f"rcode {answer[3] & 15}")'


def resolved(box: e2b.Sandbox, name: str) -> str:
    return run(box, f"getent ahostsv4 {name} | sed 1q | cut -d' ' -f1")[1].strip()


def asked(box: e2b.Sandbox, server: str, name: str) -> str:
    return run(box, f"python3 -c '{LOOK_UP}' {server} {name}")[1].strip()


def told(server: Abroad, box: e2b.Sandbox) -> object:
    return server.wire.call("GET", f"/sandboxes/{box.sandbox_id}").json()["network"].get("dnsServers")


def test_names_are_asked_of_these_servers_alone(server: Abroad) -> None:
    with server.box(network=ALLOWED) as box:
        assert resolved(box, "www.example.com") == PUBLIC[2]
        before = run(box, "cat /etc/resolv.conf")
    with server.box(network={**ALLOWED, "dns_servers": [OTHERWISE]}) as box:
        assert resolved(box, "www.example.com") == PUBLIC[7]
        assert reached(box, "www.example.com", *PUBLIC) == {"www.example.com", PUBLIC[7], OTHERWISE}
        assert run(box, "cat /etc/resolv.conf") == before
        # Everything to the server itself is open; what it says of other names opens nothing.
        assert asked(box, OTHERWISE, "other.example.net") == PUBLIC[4]
        assert reached(box, PUBLIC[4]) == set()
        assert box.get_info().network["dns_servers"] == [OTHERWISE]


def test_without_a_domain_they_change_nothing(server: Abroad) -> None:
    with server.box(network={"dns_servers": [OTHERWISE]}) as box:
        assert resolved(box, "www.example.com") == PUBLIC[2]
        assert told(server, box) == [OTHERWISE]
    with server.box(network={"deny_out": [OTHERWISE], "dns_servers": [OTHERWISE]}) as box:
        assert reached(box, OTHERWISE, PUBLIC[1]) == {PUBLIC[1]}


def test_none_leaves_allowed_names_to_those_who_know_their_address(server: Abroad) -> None:
    with server.box(network={**ALLOWED, "dns_servers": []}) as box:
        assert told(server, box) == []
        assert asked(box, "203.0.113.53", "example.com") == "rcode 5"
        assert resolved(box, "example.com") == ""
        box.commands.run(f"echo {PUBLIC[1]} example.com >> /etc/hosts", user="root")
        eventually(lambda: reached(box, "example.com") == {"example.com"})
        assert reached(box, PUBLIC[2], RESOLVER) == set()


def test_the_host_and_private_addresses_are_never_asked(server: Abroad) -> None:
    for never in ("192.168.77.7", "169.254.169.254", "127.0.0.1", HOST):
        with server.box(network={**ALLOWED, "dns_servers": [never]}) as box:
            assert resolved(box, "example.com") == ""
            assert told(server, box) == [never]


def test_an_update_replaces_and_clears_them(server: Abroad) -> None:
    with server.box(network={**ALLOWED, "dns_servers": [OTHERWISE]}) as box:
        box.update_network(ALLOWED)
        assert told(server, box) is None
        assert resolved(box, "www.example.com") == PUBLIC[2]
        box.update_network({**ALLOWED, "dns_servers": ["198.51.100.200", OTHERWISE]})
        assert told(server, box) == ["198.51.100.200", OTHERWISE]
        assert resolved(box, "www.example.com") == PUBLIC[7]  # the first one is silent
        path = f"/sandboxes/{box.sandbox_id}/network"
        bad = {"allowOut": ["example.com"], "denyOut": [ALL], "dnsServers": ["::1"]}
        refused = server.wire.call("PUT", path, bad)
        assert refused.status == 400
        assert "::1" in refused.json()["message"]
        assert told(server, box) == ["198.51.100.200", OTHERWISE]


def test_they_last_as_long_as_their_box(server: Abroad) -> None:
    with server.box(network={**ALLOWED, "dns_servers": [OTHERWISE]}) as box:
        box.pause()
        assert told(server, box) == [OTHERWISE]
        box = e2b.Sandbox.connect(box.sandbox_id, **server.access)
        assert resolved(box, "www.example.com") == PUBLIC[7]
        (copy,) = box.fork(timeout=60)
        copy = e2b.Sandbox.connect(copy.sandbox_id, **server.access)
        try:
            assert told(server, copy) == [OTHERWISE]
            assert resolved(copy, "www.example.com") == PUBLIC[7]
        finally:
            copy.kill()
        box.create_snapshot()
        assert resolved(box, "www.example.com") == PUBLIC[7]
        server.signal(signal.SIGTERM)
        server.start()
        assert told(server, box) == [OTHERWISE]
        assert resolved(box, "www.example.com") == PUBLIC[7]
