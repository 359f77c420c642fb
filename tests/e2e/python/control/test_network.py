# SPDX-License-Identifier: Apache-2.0
"""Network settings: what is accepted, what is refused with which word, what is told back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.wire import RawBox, Wire

ALL = "0.0.0.0/0"

REFUSED = [
    ({"denyOut": ["example.com"]}, 400, "example.com"),
    ({"denyOut": ["10.0.0.0/33"]}, 400, "10.0.0.0/33"),
    ({"denyOut": ["0.0.0.0"]}, 400, "unspecified"),
    ({"denyOut": ["0.0.0.0/8"]}, 400, "unspecified"),
    ({"denyOut": "1.1.1.1"}, 400, "array"),
    ({"denyOut": [7]}, 400, "strings"),
    ({"allowOut": ["example.com"]}, 400, ALL),
    ({"allowOut": ["exa mple.com"], "denyOut": [ALL]}, 400, "exa mple.com"),
    ({"allowOut": ["1.2.3"], "denyOut": [ALL]}, 400, "1.2.3"),
    ({"maskRequestHost": "exämple.com"}, 400, "maskRequestHost"),
    ({"maskRequestHost": "a b"}, 400, "maskRequestHost"),
    ({"maskRequestHost": "host:http"}, 400, "maskRequestHost"),
    ({"httpsPorts": [49983]}, 400, "49983"),
    ({"httpsPorts": [0]}, 400, "httpsPorts"),
    ({"httpsPorts": [443, 8443, 443]}, 400, "443 twice"),
    ({"httpsPorts": list(range(1, 130))}, 400, "129 ports; at most 128"),
    ({"dnsServers": ["::1"]}, 400, "::1"),
    ({"dnsServers": ["1.1.1.1", "dns.google"]}, 400, "dns.google"),
    ({"dnsServers": ["1.1.1.0/24"]}, 400, "1.1.1.0/24"),
    ({"dnsServers": ["1.1.1.1"] * 11}, 400, "11 addresses; at most 10"),
    ({"egressProxy": {"address": "127.0.0.1:1080"}}, 400, "127.0.0.1"),
    ({"egressProxy": {"address": "192.168.1.1:1080"}}, 400, "192.168.1.1"),
    ({"egressProxy": {"address": "proxy.example.com"}}, 400, "host:port"),
    ({"egressProxy": {"address": "p.example.com:1080", "password": "x"}}, 400, "username"),
    ({"egressProxy": {"address": "p.example.com:1080", "username": "u" * 256}}, 400, "255"),
    ({"egressProxy": {"address": "p.example.com:1080", "tls": {}}}, 400, "enabled"),
    ({"egressProxy": {"address": "p.example.com:1080", "tls": {"enabled": False, "caCert": "x"}}}, 400, "caCert"),
    ({"egressProxy": {"address": "p.example.com:1080", "tls": {"enabled": True, "caCert": "x"}}}, 400, "PEM"),
    ({"egressProxy": {"address": "p.example.com:1080", "tls": {"enabled": True, "serverName": "a" * 254}}}, 400, "253"),
    ({"egressProxy": {"address": "9.9.9.9:1080"}}, 400, "no egress gateway"),
    ({"rules": {"*": [{}]}}, 400, "'*'"),
    ({"rules": {"a.b": [{}], "A.B": [{}]}}, 400, "twice"),
    ({"rules": {"a.b": [{"transform": {"headers": {f"H{n}": "x" for n in range(21)}}}]}}, 400, "20"),
    ({"rules": {"a.b": [{"transform": {"headers": {"Host": "x"}}}]}}, 400, "Host"),
    ({"rules": {"a.b": [{"transform": {"headers": {"A": "x\r\ny"}}}]}}, 400, "one line"),
    ({"rules": {"a.b": [{"transform": {"headers": {"A": "${e2b.other.x}"}}}]}}, 400, "${e2b.other.x}"),
    ({"rules": {"a.b": [{"transform": {"headers": {"A": "${e2b.secrets.${x}}"}}}]}}, 400, "nested"),
    ({"rules": {"a.b": [{"transform": {"headers": {"A": "x"}}}]}}, 400, "no egress gateway"),
    ({"rules": {"a b": [{}]}}, 400, "a b"),
    ({"rules": {f"h{n}.example.com": [{}] for n in range(11)}}, 400, "10"),
    ({"rules": {"example.com": [{}, {}]}}, 400, "one rule"),
    ({"rules": {"example.com": [{"transform": {"headers": {"bad name": "x"}}}]}}, 400, "bad name"),
    ({"rules": {"example.com": [{"transform": {"headers": {"A": "x" * 2049}}}]}}, 400, "2048"),
    ({"rules": {"example.com": [{"transform": {"headers": {"A": "${e2b.secrets."}}}]}}, 400, "${"),
]


@pytest.fixture(scope="module")
def living(wire: Wire) -> Iterator[RawBox]:
    box = wire.create(timeout=120, network={"maskRequestHost": "app.internal:${PORT}"})
    yield box
    box.kill()


@pytest.mark.parametrize("network, status, word", REFUSED)
def test_refusals_name_what_is_wrong(wire: Wire, network: dict, status: int, word: str) -> None:
    got = wire.call("POST", "/v2/sandboxes", {"templateID": "base", "network": network})
    assert (got.status, got.json()["code"]) == (status, status), got.body
    assert word in got.json()["message"]


@pytest.mark.parametrize(
    "network, status, word", [case for case in REFUSED if "mask" not in str(case[0])]
)
def test_an_update_is_checked_alike(
    wire: Wire, living: RawBox, network: dict, status: int, word: str
) -> None:
    got = wire.call("PUT", f"/sandboxes/{living.id}/network", network)
    assert (got.status, got.json()["code"]) == (status, status), got.body
    assert word in got.json()["message"]


def test_domains_are_allowed_when_all_else_is_denied(wire: Wire) -> None:
    network = {"allowOut": ["example.com", "*.example.org", "1.1.1.1", "8.0.0.0/8", "*"],
               "denyOut": [ALL]}  # fmt: skip
    box = wire.create(timeout=60, network=network)
    try:
        told = wire.call("GET", f"/sandboxes/{box.id}").json()["network"]
        assert told["allowOut"] == network["allowOut"]
        assert told["denyOut"] == [ALL]
    finally:
        box.kill()


def test_no_internet_is_the_same_as_denying_all(wire: Wire) -> None:
    box = wire.create(
        timeout=60, allow_internet_access=False,
        network={"allowOut": ["example.com"], "denyOut": ["9.9.9.9"]},
    )  # fmt: skip
    try:
        detail = wire.call("GET", f"/sandboxes/{box.id}").json()
        assert detail["allowInternetAccess"] is False
        assert detail["network"]["denyOut"] == [ALL]
        assert detail["network"]["allowOut"] == ["example.com"]
    finally:
        box.kill()


def test_an_update_replaces_what_goes_out_and_keeps_what_comes_in(
    wire: Wire, living: RawBox
) -> None:
    path = f"/sandboxes/{living.id}"
    assert wire.call("PUT", f"{path}/network", {"denyOut": ["9.9.9.9"]}).status == 204
    told = wire.call("GET", path).json()["network"]
    assert told["denyOut"] == ["9.9.9.9"]
    assert told["maskRequestHost"] == "app.internal:${PORT}"
    assert wire.call("PUT", f"{path}/network", {"allow_internet_access": False}).status == 204
    assert wire.call("GET", path).json()["allowInternetAccess"] is False
    assert wire.call("PUT", f"{path}/network", {}).status == 204
    detail = wire.call("GET", path).json()
    assert "allowInternetAccess" not in detail
    assert "denyOut" not in detail["network"]
    assert detail["network"]["maskRequestHost"] == "app.internal:${PORT}"
    assert wire.call("PUT", "/sandboxes/inonexistent00000000x/network", {}).status == 404
