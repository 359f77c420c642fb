# SPDX-License-Identifier: Apache-2.0
"""The egress gateway at its edges: proxies in TLS and HTTP CONNECT, what breaks, and what is written down."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import e2b
import pytest

from support.far_side import API, CERTIFICATE, PROXY, access, ask, far_side, gateways, rules, seen, status
from support.server import own_server
from support.waiting import eventually
from support.world import Abroad, World, run

JS = Path(__file__).resolve().parents[2] / "js"
DRIP = "https://api.example.com/drip"
ONE = {"X-One": "1"}
USER = {"username": "agent", "password": "proxy-pass"}


@pytest.fixture(scope="module")
def far(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with far_side(world, tmp_path_factory.mktemp("far")) as folder:
        yield folder


@pytest.fixture(scope="module")
def server(world: World, far: Path) -> Iterator[Abroad]:
    made = Abroad(world)
    made.resolve_there()
    with own_server("--egress-roots", str(far / "ca.pem"), "--network-log", "full", made=made) as running:
        yield running


@pytest.fixture(scope="module")
def box(server: Abroad) -> Iterator[e2b.Sandbox]:
    """One for all tests that give it settings of their own."""
    with server.box() as made:
        yield made


def tried(box: e2b.Sandbox, url: str) -> int:
    return run(box, f"curl -sk -o /dev/null -m 10 {url}")[0]


# ---- proxies ----


def test_socks_in_tls_trusts_the_given_authority_and_no_other(
    world: World, server: Abroad, box: e2b.Sandbox, far: Path
) -> None:
    proxy: dict[str, Any] = {"address": "proxy.example.com:1081", **USER}
    good, wrong = (far / "own.pem").read_text(), (far / "ca.pem").read_text()
    for tls in ({"ca_cert": wrong}, {}, {"ca_cert": good, "server_name": "other.example.com"}):
        box.update_network({**rules(**ONE), "egress_proxy": {**proxy, "tls": tls}})
        seen(world)
        assert status(box)[0] == "502", tls
        assert tried(box, "https://free.example.com/") != 0, tls
        assert seen(world) == [], tls
    box.update_network({**rules(**ONE), "egress_proxy": {**proxy, "tls": {"ca_cert": good}}})
    assert ask(box)["fields"]["x-one"] == "1"
    assert "x-one" not in ask(box, "https://free.example.com/ -k")["fields"]
    used = [one for one in seen(world) if "socks" in one]
    assert [one["socks"] for one in used] == ["api.example.com", "free.example.com"]
    assert all(one["tls"] and one["user"] == "agent" for one in used)
    told = server.wire.call("GET", f"/sandboxes/{box.sandbox_id}").json()["network"]["egressProxy"]
    assert told == {"address": proxy["address"], "username": "agent", "tls": {"enabled": True}}
    by_address = {**proxy, "address": f"{PROXY}:1081", "tls": {"ca_cert": good, "server_name": "proxy.example.com"}}
    box.update_network({**rules(**ONE), "egress_proxy": by_address})
    assert ask(box)["fields"]["x-one"] == "1"


def test_http_connect_proxies_plainly_and_in_tls(world: World, box: e2b.Sandbox, far: Path) -> None:
    trusted = {"ca_cert": (far / "own.pem").read_text()}
    plain = {"address": "http://proxy.example.com:3128", **USER}
    for proxy, in_tls in (
        (plain, False),
        ({**plain, "address": "https://proxy.example.com:3129", "tls": trusted}, True),
    ):
        box.update_network({**rules(**ONE), "egress_proxy": proxy})
        seen(world)
        assert ask(box)["fields"]["x-one"] == "1"
        assert ask(box, "https://free.example.com/ -k")["method"] == "GET"
        assert run(box, "curl -sS -m 10 http://api.example.com/")[0] == 0
        used = [(one["connect"], one["port"], one["tls"]) for one in seen(world) if "connect" in one]
        assert used == [
            ("api.example.com", 443, in_tls), ("free.example.com", 443, in_tls), ("api.example.com", 80, in_tls)
        ]  # fmt: skip
        assert (box.get_info().network or {})["egress_proxy"]["address"] == proxy["address"]


@pytest.mark.parametrize("address", ["socks5://proxy.example.com:1080", "http://proxy.example.com:3128"])
def test_a_wrong_password_opens_nothing(world: World, box: e2b.Sandbox, address: str) -> None:
    proxy = {"address": address, "username": "agent", "password": "proxy-fail"}
    box.update_network({**rules(**ONE), "egress_proxy": proxy})
    seen(world)
    code, out = status(box)
    assert code == "502", out
    assert "user name and password" in out
    assert "proxy-fail" not in out
    assert seen(world) == [{"turned away": "agent"}]


@pytest.mark.parametrize("scheme", ["", "http://", "https://"])
def test_there_is_no_way_around_a_proxy_that_does_not_answer(world: World, box: e2b.Sandbox, scheme: str) -> None:
    box.update_network({**rules(**ONE), "egress_proxy": {"address": f"{scheme}{PROXY}:9"}})
    seen(world)
    assert status(box)[0] == "502"
    for url in ("https://free.example.com/", f"https://{API}/", f"http://{API}/", f"http://{API}:443/"):
        assert tried(box, url) != 0, url
    assert seen(world) == []


@pytest.mark.parametrize(
    "proxy, word",
    [
        ({"address": "ftp://proxy.example.com:21"}, "ftp://proxy.example.com:21"),
        ({"address": "http://proxy.example.com"}, "http://proxy.example.com"),
        ({"address": "http://agent:x@proxy.example.com:3128"}, "agent:x@"),
        ({"address": "https://proxy.example.com:3129", "tls": {"enabled": False}}, "https://"),
        ({"address": "https://inward.example.com:3129"}, "192.168.77.7"),
    ],
)
def test_what_is_no_proxy_s_address_is_refused_by_name(server: Abroad, proxy: dict[str, Any], word: str) -> None:
    body = {"templateID": "base", "network": {"egressProxy": proxy}}
    got = server.wire.call("POST", "/v2/sandboxes", body)
    assert got.status == 400, got.body
    assert word in got.json()["message"]


# ---- inside the box ----


def test_rules_hold_in_a_terminal(server: Abroad) -> None:
    with server.box(network=rules(**ONE)) as box:
        terminal = box.pty.create(size=e2b.PtySize(80, 24), timeout=30)
        line = "curl -sS https://api.example.com/ | grep -c '.x-one.: .1.' | sed s/^/found-/; exit\n"
        box.pty.send_stdin(terminal.pid, line.encode())
        said = bytearray()
        terminal.wait(on_pty=said.extend)
        assert b"found-1" in said, said


def test_a_snapshot_s_child_has_an_authority_of_its_own(server: Abroad) -> None:
    with server.box(network=rules(**ONE)) as box:
        before = box.files.read(CERTIFICATE)
        shot = server.wire.call("POST", f"/sandboxes/{box.sandbox_id}/snapshots", {}).json()["snapshotID"]
        child = e2b.Sandbox.create(shot, timeout=60, network=rules(**{"X-Two": "2"}), **server.access)
        try:
            fields = ask(child)["fields"]
            assert (fields.get("x-one"), fields["x-two"]) == (None, "2")
            assert child.files.read(CERTIFICATE) != before
            assert ask(box)["fields"]["x-one"] == "1"
        finally:
            child.kill()
            server.wire.call("DELETE", f"/templates/{shot}")


# ---- what is refused ----


def test_another_host_than_the_connection_s_is_refused(world: World, box: e2b.Sandbox) -> None:
    box.update_network(rules(**ONE))
    seen(world)
    code, out = status(box, "https://api.example.com/ -H 'Host: free.example.com'")
    assert code == "421", out
    assert seen(world) == []


@pytest.mark.parametrize("value", ["sk\r\nX-Other: 1", "sk\n", "sk\x00", "sk\x7f"])
def test_a_secret_that_no_header_can_hold_is_refused(server: Abroad, value: str) -> None:
    with pytest.raises(e2b.SecretException, match=r"400: .*control character"):
        e2b.Secret.create("broken", value, **access(server))
    assert "broken" not in server.wire.call("GET", "/secrets").text


LARGE = """
import http.client
link = http.client.HTTPSConnection("api.example.com", timeout=10)
link.request("GET", "/", headers={f"X-Large-{n}": "a" * 5110 for n in range(28)})
print(link.getresponse().status)
"""


def test_headers_that_are_too_large_are_refused_and_nothing_else_is(world: World, box: e2b.Sandbox) -> None:
    """Not by curl, which gives up by itself where there are more than 64 KiB."""
    box.update_network(rules(**ONE))
    seen(world)
    box.files.write("/tmp/large.py", LARGE)
    assert run(box, "python3 /tmp/large.py 2>&1") == (0, "431\n")
    assert seen(world) == []
    box.files.write("/tmp/fits", f"X-Large: {'a' * (32 << 10)}\n")
    for version in ("--http1.1", "--http2"):
        fields = ask(box, f"https://api.example.com/ {version} -H @/tmp/fits")["fields"]
        assert (len(fields["x-large"]), fields["x-one"]) == (32 << 10, "1"), version


# ---- what breaks ----


def begin_drip(box: e2b.Sandbox, url: str = DRIP) -> None:
    run(box, "rm -f /tmp/out /tmp/code")
    box.commands.run(f"curl -skN -m 20 {url} > /tmp/out; echo $? > /tmp/code", background=True)
    eventually(lambda: run(box, "test -s /tmp/out")[0] == 0)


def end_drip(box: e2b.Sandbox) -> tuple[int, int]:
    """The program's exit code, and how many of the 40 lines it got."""
    eventually(lambda: run(box, "test -s /tmp/code")[0] == 0)
    return int(box.files.read("/tmp/code")), box.files.read("/tmp/out").count("line")


def test_a_secret_deleted_while_in_use_ends_no_stream(world: World, server: Abroad, box: e2b.Sandbox) -> None:
    e2b.Secret.create("fleeting", "still-here", **access(server))
    box.update_network(rules(**{"X-Key": e2b.Secret.fill("fleeting")}))
    seen(world)
    begin_drip(box)
    e2b.Secret.destroy("fleeting", **access(server))
    assert end_drip(box) == (0, 40)
    assert [one["fields"]["x-key"] for one in seen(world)] == ["still-here"]
    eventually(lambda: status(box)[0] == "502")
    assert seen(world) == []


def test_a_gateway_killed_in_mid_stream_costs_that_stream_alone(server: Abroad, box: e2b.Sandbox) -> None:
    box.update_network(rules(**ONE))
    with server.box() as plain:
        begin_drip(plain)
        begin_drip(box)
        (pid,) = gateways(server)
        os.kill(pid, signal.SIGKILL)
        code, lines = end_drip(box)
        assert code != 0
        assert lines < 40
        assert end_drip(plain) == (0, 40)
        assert ask(box)["fields"]["x-one"] == "1"
        eventually(lambda: gateways(server) not in ([], [pid]), state=server.log)


# ---- what is written down ----


def requests_of(server: Abroad, box: e2b.Sandbox, since: int) -> list[dict[str, Any]]:
    told = server.wire.call("GET", f"/sandboxes/{box.sandbox_id}/network/log?start={since}")
    assert told.status == 200, told.body
    return [one for one in told.json()["entries"] if one["type"] == "request"]


def test_the_network_log_tells_each_request(server: Abroad) -> None:
    since = int(time.time() * 1000) - 1000
    with server.box(network=rules("*.api.example.com", Authorization="Bearer never-told")) as box:
        ask(box, "https://sub.api.example.com/v1/items?page=2 -d abc")
        status(box, "https://sub.api.example.com/ -H 'Host: free.example.com'")
        box.update_network({**rules("*.api.example.com", **ONE), "egress_proxy": {"address": f"{PROXY}:1080", **USER}})
        ask(box, "https://sub.api.example.com/by-proxy")
        eventually(lambda: len(requests_of(server, box, since)) >= 3, 10, state=lambda: requests_of(server, box, since))
        done, refused, proxied = requests_of(server, box, since)
        assert done.items() >= {
            "verdict": "inspected", "name": "sub.api.example.com", "address": API, "port": 443, "method": "POST",
            "rule": "*.api.example.com", "path": "/v1/items", "status": 200, "proxied": False,
        }.items()  # fmt: skip
        assert done["bytesIn"] > 100
        assert (refused["verdict"], refused["status"]) == ("refused", 421)
        assert (proxied["verdict"], proxied["path"], proxied["proxied"]) == ("inspected", "/by-proxy", True)
        held = server.wire.call("GET", f"/sandboxes/{box.sandbox_id}/network/log?start={since}").text
        assert "never-told" not in held
        assert "proxy-pass" not in held


# ---- the other stock clients ----

NETWORK = {**rules(**ONE), "egress_proxy": {"address": f"http://{PROXY}:3128", **USER}}


def test_the_asynchronous_client_is_told_the_same(server: Abroad) -> None:
    async def create() -> tuple[str, Any]:
        box = await e2b.AsyncSandbox.create("base", timeout=60, network=NETWORK, **server.access)
        try:
            ran = await box.commands.run("curl -sS https://api.example.com/")
            return json.loads(ran.stdout)["fields"]["x-one"], (await box.get_info()).network
        finally:
            await box.kill()

    value, told = asyncio.run(create())
    assert value == "1"
    assert told["rules"] == NETWORK["rules"]
    assert told["egress_proxy"] == {"address": f"http://{PROXY}:3128", "username": "agent"}


SCRIPT = """
import { Sandbox } from 'e2b'
const opts = { apiKey: process.env.KEY, apiUrl: process.env.URL, sandboxUrl: process.env.URL }
const network = {
  rules: { 'api.example.com': [{ transform: { headers: { 'X-One': '1' } } }] },
  egressProxy: { address: process.env.PROXY, username: 'agent', password: 'proxy-pass' },
}
const box = await Sandbox.create('base', { ...opts, network })
try {
  const ran = await box.commands.run('curl -sS https://api.example.com/')
  const told = (await box.getInfo()).network
  console.log(JSON.stringify([JSON.parse(ran.stdout).fields['x-one'], told.rules, told.egressProxy]))
} finally {
  await box.kill()
}
"""


def test_the_client_of_npm_is_told_the_same(server: Abroad) -> None:
    done = subprocess.run(
        ["node", "--input-type=module", "-e", SCRIPT],
        cwd=JS, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "KEY": str(server.key), "URL": server.url, "PROXY": f"socks5://{PROXY}:1080"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    value, told, proxy = json.loads(done.stdout)
    assert value == "1"
    assert told == rules(**ONE)["rules"]
    assert proxy == {"address": f"socks5://{PROXY}:1080", "username": "agent"}
