# SPDX-License-Identifier: Apache-2.0
"""A customer's own proxy: all TCP goes through it, or nowhere."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

from support.egress_lab import API, PROXY, Lab

SOCKS, CONNECT = 1, 2
USER = {"user": "me", "password": "pass:word"}


def tls(lab: Lab) -> dict[str, Any]:
    return {"port": 1081, "tls": 1, "server_name": "proxy.inner", "ca": (lab.dir / "otherca.pem").read_bytes()}


@pytest.mark.parametrize("way", ["plain", "password", "tls", "connect"])
def test_connections_go_through_the_proxy_by_name(lab: Lab, way: str) -> None:
    proxy: dict[str, Any] = {"kind": SOCKS, "host": PROXY, "port": 1080}
    if way == "password":
        proxy.update(USER)
    if way == "tls":
        proxy.update(USER, **tls(lab))
    if way == "connect":
        proxy.update(USER, kind=CONNECT, port=3128)
    rules = {"api.example.com": {"X-Key": "${e2b.secrets.key}"}}
    lab.set("one", proxy=proxy, hosts=rules, secrets={"key": "s3cret"})
    lab.proxy_saw()
    assert lab.ask("one", "https://api.example.com/", at="198.51.100.6")["fields"]["x-key"] == "s3cret"
    assert lab.ask("one", "https://plain.example.net/", at="198.51.100.6")["secure"] is True
    assert lab.ask("one", "http://plain.example.net/", at="198.51.100.6")["secure"] is False
    saw = lab.proxy_saw()
    assert [(s["host"], s["port"]) for s in saw] == [
        ("api.example.com", 443),
        ("plain.example.net", 443),
        ("plain.example.net", 80),
    ]
    if way in ("password", "tls"):
        assert {s["user"] for s in saw} == {"me"}
    if way != "connect":
        assert {s["tls"] for s in saw} == {way == "tls"}
    else:
        assert "Proxy-Authorization: Basic bWU6cGFzczp3b3Jk" in saw[0]["head"]


def test_names_that_lists_do_not_allow_are_not_handed_on(lab: Lab) -> None:
    proxy = {"kind": SOCKS, "host": PROXY, "port": 1080}
    lab.set("one", proxy=proxy, restricted=1, allow_nets=[("198.51.100.0", 24)], allow_names="*.example.com\n")
    lab.proxy_saw()
    lab.ask("one", "https://plain.example.net/")
    lab.ask("one", "https://api.example.com/")
    assert [s["host"] for s in lab.proxy_saw()] == [API, "api.example.com"]
    lab.set("one", proxy=proxy, restricted=1, allow_names="*.example.com\n")
    assert "curl: (" in lab.curl("one", "https://plain.example.net/", check=False)
    assert lab.proxy_saw() == []


@pytest.mark.parametrize(
    "broken",
    [
        {"port": 1},
        {"user": "me", "password": "wrong"},
        {"host": "10.9.9.9"},
        {"host": "127.0.0.1"},
        {"port": 1081, "tls": 1, "server_name": "proxy.inner"},
        {"port": 1081, "tls": 1, "server_name": "other.name", "ca": "otherca"},
        {"port": 1080, "tls": 1, "server_name": "proxy.inner", "ca": "otherca"},
    ],
)
def test_without_the_proxy_there_is_no_way(lab: Lab, broken: dict[str, Any]) -> None:
    proxy: dict[str, Any] = {"kind": SOCKS, "host": PROXY, "port": 1080, **broken}
    if "ca" in proxy:
        proxy["ca"] = (lab.dir / f"{proxy['ca']}.pem").read_bytes()
    lab.set("one", proxy=proxy, hosts={"api.example.com": {"X": "1"}})
    lab.proxy_saw()
    assert "curl: (" in lab.curl("one", "https://plain.example.net/", check=False)
    said = lab.curl("one", "https://api.example.com/", "-w", "%{http_code}", check=False)
    assert said.endswith("502"), said
    assert "proxy" in said
    assert not [s for s in lab.proxy_saw() if s["host"] in (API, "plain.example.net", "api.example.com")]


def test_half_closed_tunnels_reach_the_end(lab: Lab) -> None:
    """Every byte arrives and both ends hear the end."""
    lab.set("one", proxy={"kind": SOCKS, "host": PROXY, "port": 1080})
    code = (
        "import socket\n"
        f"s = socket.create_connection(('{API}', 80))\n"
        "s.sendall(b'GET /close HTTP/1.1\\r\\nHost: plain.example.net\\r\\n\\r\\n')\n"
        "s.shutdown(socket.SHUT_WR)\n"
        "print(b''.join(iter(lambda: s.recv(9999), b'')).decode())\n"
    )
    assert "until the end" in lab.client("one", "python3", "-c", code)


LEAVE = """
import socket, struct, sys, time
held = []
for n in range(60):
    s = socket.create_connection((sys.argv[1], 25))
    s.sendall(b"some bytes\\n")
    time.sleep(0.02)
    if sys.argv[2] == "half":
        s.shutdown(socket.SHUT_WR)
        held.append(s)
    else:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
print("done", flush=True)
sys.stdin.read()
"""


def descriptors(lab: Lab) -> int:
    assert lab.gateway
    return len(os.listdir(f"/proc/{lab.gateway.pid}/fd"))


@pytest.mark.parametrize(("port", "how"), [(1082, "whole"), (1082, "half"), (1083, "whole")])
def test_a_proxy_in_tls_that_never_closes_holds_nothing_of_boxes_that_left(lab: Lab, port: int, how: str) -> None:
    """What a box no longer has is not counted as its own: it must not stay because a proxy wants it to."""
    lab.restart(egress_connect_seconds=2, egress_box_connections=200)
    lab.set("one", proxy={"kind": SOCKS, "host": PROXY, **tls(lab), "port": port})
    before = descriptors(lab)
    with lab.running("one", "python3", "-c", LEAVE, API, how) as said:
        assert said == "done\n"
        if how == "half":
            lab.pump(0.5)
            assert descriptors(lab) > before + 120
            lab.remove("one")
        until = time.monotonic() + 20
        while descriptors(lab) > before + 4 and time.monotonic() < until:
            lab.pump(0.2)
        assert descriptors(lab) <= before + 4
