# SPDX-License-Identifier: Apache-2.0
"""Plain http on the https port: for clients on the machine itself, among them programs that always say http://."""

from __future__ import annotations

import subprocess
from urllib.parse import urlsplit

import e2b
import pytest

from support.server import own_server
from support.tls import Tls
from support.wire import Wire
from support.world import HOST, Abroad, World

REFUSED = (ConnectionError, OSError)


def plain(url: str) -> str:
    return f"http://127.0.0.1:{urlsplit(url).port}"


def test_a_stock_client_works_over_http_on_the_https_port() -> None:
    url = plain(Tls().url)
    box = e2b.Sandbox.create("base", timeout=60, api_url=url, sandbox_url=url)
    try:
        assert box.commands.run("echo over plain http").stdout == "over plain http\n"
        box.files.write("/tmp/large", "x" * 3_000_000)
        assert len(box.files.read("/tmp/large")) == 3_000_000
    finally:
        box.kill()


def test_upload_links_are_of_the_way_one_came(wire: Wire) -> None:
    """Whether a connection is https is asked of the connection, not of the port."""
    hashed = "0" * 64
    made = wire.call("POST", "/v3/templates", {"name": "plain-links"}).json()
    path = f"/templates/{made['templateID']}/files/{hashed}"
    assert Wire(plain(Tls().url)).call("GET", path).json()["url"].startswith("http://")
    wire.call("DELETE", f"/templates/{made['templateID']}")


def test_plain_http_can_be_refused() -> None:
    flags = ["--tls-listen", "127.0.0.1:0", "--tls-cert", f"{Tls().dir}/cert.pem", "--tls-key", f"{Tls().dir}/key.pem"]
    with own_server(start=False) as server:
        told = server.start(*flags, "--tls-plain", "refuse")
        with pytest.raises(REFUSED):
            Wire(plain(told["tlsUrl"]), server.key).call("GET", "/health")


def test_others_than_this_machine_need_https() -> None:
    world = World()
    tls = ["--tls-listen", "0.0.0.0:3443", "--tls-cert", f"{Tls().dir}/cert.pem", "--tls-key", f"{Tls().dir}/key.pem"]

    def asked(url: str) -> str:
        line = ["nsenter", "-t", str(world.child.pid), "-n", "curl", "-sk", "-m", "5", "-o", "/dev/null", "-w"]
        done = subprocess.run([*line, "%{http_code}", url], capture_output=True, text=True, check=False)
        return done.stdout

    try:
        with own_server(made=Abroad(world), start=False) as server:
            for who, expected in (("loopback", "000"), ("serve", "200")):
                server.start(*tls, "--tls-plain", who)
                assert asked(f"https://{HOST}:3443/health") == "200"
                assert asked(f"http://{HOST}:3443/health") == expected, who
                with world.inside():
                    assert Wire("http://127.0.0.1:3443", server.key).call("GET", "/health").status == 200
                server.signal(2)
    finally:
        world.close()
