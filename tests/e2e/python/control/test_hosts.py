# SPDX-License-Identifier: Apache-2.0
"""Host names of sandboxes: with the quick start's variables alone, get_host leads to a server in the sandbox."""

from __future__ import annotations

import subprocess
from urllib.parse import urlsplit

import e2b
import pytest

from support.either import Either
from support.paused import fork
from support.server import own_server
from support.wire import RawBox, Wire


def fetch(url: str) -> str:
    """By curl, which knows like browsers that every name below localhost is this machine."""
    retry = ["--retry", "20", "--retry-all-errors", "--retry-delay", "1"]
    got = subprocess.run(["curl", "-sfk", "-m", "10", *retry, url], capture_output=True, text=True, check=True)
    return got.stdout


async def test_get_host_leads_to_a_server_in_the_sandbox(box: Either, wire: Wire) -> None:
    api = urlsplit(wire.url)
    await box.files.write("/tmp/www/hello", "hello")
    await box.commands.run("python3 -m http.server 8000 -d /tmp/www", background=True)
    host = await box.get_host(8000)
    assert host == f"8000-{box.sandbox_id}.localhost:{api.port}"
    assert fetch(f"{api.scheme}://{host}/hello") == "hello"
    assert e2b.Sandbox.connect(box.sandbox_id).get_host(8000) == host


def test_every_answer_about_a_sandbox_tells_the_same_domain(raw: RawBox, wire: Wire) -> None:
    domain = f"localhost:{urlsplit(wire.url).port}"
    assert raw.made["domain"] == domain
    assert wire.call("GET", f"/sandboxes/{raw.id}").json()["domain"] == domain
    assert wire.call("POST", f"/sandboxes/{raw.id}/connect", {"timeout": 300}).json()["domain"] == domain
    copy = RawBox(wire, fork(raw, timeout=60, count=1).json()[0]["sandbox"])
    try:
        assert copy.made["domain"] == domain
    finally:
        copy.kill()


@pytest.mark.parametrize("host", ["192.0.2.7:3000", "server.lan:3000", "localhost.example.org"])
def test_a_client_from_elsewhere_is_told_no_domain(raw: RawBox, wire: Wire, host: str) -> None:
    got = wire.call("GET", f"/sandboxes/{raw.id}", headers={"Host": host})
    assert got.json()["domain"] is None


def test_the_configured_domain_wins() -> None:
    with own_server("--domain", "box.test:8443") as server:
        box = server.wire.create("base", timeout=60)
        assert box.made["domain"] == "box.test:8443"
        box.kill()
