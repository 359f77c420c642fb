# SPDX-License-Identifier: Apache-2.0
"""What goes wrong around the gateway: a clear answer, nothing lost, nothing leaked, and others go on."""

from __future__ import annotations

import json
import subprocess

import pytest

from support.egress_lab import API, BOXES, GATEWAY, H2, Lab

RULE = {"*.example.com": {"X-Key": "${e2b.secrets.key}"}}


def policy(lab: Lab, box: str = "one", key: str | None = "s3cret") -> None:
    lab.set(box, hosts=RULE, secrets={"key": key})


@pytest.mark.parametrize("place", [GATEWAY, BOXES["two"], "127.0.0.1", "203.0.113.1"])
def test_a_proxy_that_leads_back_here_is_no_cycle(lab: Lab, place: str) -> None:
    """The gateway itself, another box behind it, the host: connections end at once instead of coming round again."""
    lab.set("one", hosts=RULE, secrets={"key": "s3cret"}, proxy={"kind": 1, "host": place, "port": 4980})
    policy(lab, "two", "other")
    said = lab.curl("one", "https://api.example.com/", "-w", "%{http_code}", wait=8)
    assert said.endswith(("502", "504")), said
    assert "s3cret" not in said
    assert lab.ask("two", "https://api.example.com/")["fields"]["x-key"] == "other"


def test_a_secret_deleted_in_the_middle_of_a_request(lab: Lab) -> None:
    """What is under way goes on with the value it began with; the next request fails by the secret's name."""
    policy(lab)
    words = ["curl", "-sSN", "--cacert", str(lab.dir / "both.pem"), "--resolve", f"api.example.com:443:{API}"]
    words += ["https://api.example.com/stream"]
    p = subprocess.Popen([*lab.enter("one"), *words], stdout=subprocess.PIPE)
    try:
        assert p.stdout
        first = p.stdout.readline()
        policy(lab, key=None)
        assert first
        assert p.stdout.readline(), "it is not cut"
    finally:
        p.kill()
        p.wait()
    said = lab.curl("one", "https://api.example.com/", "-w", "%{http_code}")
    assert said.endswith("502"), said
    assert "'key'" in json.loads(said[:-3])["message"]
    assert "s3cret" not in said


def test_an_answer_with_oversized_headers_is_refused(lab: Lab) -> None:
    policy(lab)
    for version in ("--http1.1", "--http2"):
        said = lab.curl("one", "https://h2.example.com/huge", version, "-w", "%{http_code}", at=H2)
        assert said.endswith("502"), said[-200:]
        assert "too large" in said
        assert lab.ask("one", "https://h2.example.com/", version, at=H2)["fields"]["x-key"] == "s3cret"


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_line_breaks_in_a_boxs_headers_reach_no_server(lab: Lab, version: str) -> None:
    policy(lab)
    told = lab.curl("one", "https://api.example.com/", version, "-H", "X-Mine: a\r\nX-Key: forged", check=False)
    if told.startswith("{"):  # the client wrote two lines, which are two headers
        fields = [value for name, value in json.loads(told)["headers"] if name.lower() == "x-key"]
        assert fields == ["s3cret"]
    else:
        assert "forged" not in told or "400" in told or "PROTOCOL_ERROR" in told, told
