# SPDX-License-Identifier: Apache-2.0
"""Header rules: what the server gets, what the box sees, and what never goes out."""

from __future__ import annotations

import json
import subprocess
import sys

from support.egress_lab import API, FALSE, Lab

RULE = {"api.example.com": {"Authorization": "Bearer ${e2b.secrets.key}", "X-Fixed": "always"}}


def test_a_rule_sets_headers_on_requests_to_its_host(lab: Lab) -> None:
    lab.set("one", hosts=RULE, secrets={"key": "s3cret"})
    told = lab.ask("one", "https://api.example.com/v1/x?q=1", "-H", "Authorization: mine", "-H", "X-Own: 1")
    assert told["fields"]["authorization"] == "Bearer s3cret"
    assert told["fields"]["x-fixed"] == "always"
    assert told["fields"]["x-own"] == "1"
    assert told["path"] == "/v1/x?q=1"
    assert told["secure"] is True
    assert sum(k.lower() == "authorization" for k, _ in told["headers"]) == 1


def test_other_hosts_pass_untouched(lab: Lab) -> None:
    lab.set("one", hosts=RULE, secrets={"key": "s3cret"})
    told = lab.ask("one", "https://plain.example.net/")
    assert "x-fixed" not in told["fields"]
    issuer = lab.curl("one", "https://plain.example.net/", "-v", "-o", "/dev/null")
    assert "issuer: CN=ca" in issuer
    issuer = lab.curl("one", "https://api.example.com/", "-v", "-o", "/dev/null")
    assert "issuer: CN=boxca" in issuer


def test_plain_http_gets_no_secret(lab: Lab) -> None:
    lab.set("one", hosts=RULE, secrets={"key": "s3cret"})
    told = lab.ask("one", "http://api.example.com/")
    assert told["secure"] is False
    assert "authorization" not in told["fields"]
    assert "x-fixed" not in told["fields"]


def test_a_server_that_proves_nothing_gets_nothing(lab: Lab) -> None:
    """A lying name server sends the box to an address whose certificate nobody trusts."""
    lab.set("one", hosts=RULE, secrets={"key": "s3cret"})
    said = lab.curl("one", "https://api.example.com/", "-w", "%{http_code}", at=FALSE)
    assert said.endswith("502")
    assert "certificate" in said
    assert "s3cret" not in said


def test_a_missing_secret_fails_the_request_by_name(lab: Lab) -> None:
    lab.set("one", hosts=RULE, secrets={"key": None})
    said = lab.curl("one", "https://api.example.com/", "-w", "%{http_code}")
    assert said.endswith("502")
    assert "'key'" in said
    assert "does not exist" in said
    lab.set("one", hosts=RULE, secrets={"key": "now"})
    assert lab.ask("one", "https://api.example.com/")["fields"]["authorization"] == "Bearer now"


def test_a_line_break_in_a_secret_refuses_the_request(lab: Lab) -> None:
    lab.set("one", hosts=RULE, secrets={"key": "a\r\nX-Evil: 1"})
    said = lab.curl("one", "https://api.example.com/", "-w", "%{http_code}")
    assert said.endswith("502")
    assert "Evil" not in said


def test_a_changed_secret_counts_from_the_next_request_on(lab: Lab) -> None:
    lab.set("one", hosts=RULE, secrets={"key": "first"})
    assert lab.ask("one", "https://api.example.com/")["fields"]["authorization"] == "Bearer first"
    lab.set("one", hosts=RULE, secrets={"key": "second"})
    assert lab.ask("one", "https://api.example.com/")["fields"]["authorization"] == "Bearer second"


def test_another_host_on_the_same_connection_is_refused(lab: Lab) -> None:
    lab.set("one", hosts=RULE, secrets={"key": "s3cret"})
    for version in ("--http1.1", "--http2"):
        other = ("-H", "Host: other.example.com")
        said = lab.curl("one", "https://api.example.com/", version, *other, "-w", "%{http_code}")
        assert said.endswith("421"), said


def test_the_exact_name_beats_the_longest_wildcard(lab: Lab) -> None:
    rules = {"*.example.com": {"X-Rule": "wild"}, "api.example.com": {"X-Rule": "exact"}}
    lab.set("one", hosts=rules)
    assert lab.ask("one", "https://api.example.com/")["fields"]["x-rule"] == "exact"
    assert lab.ask("one", "https://else.example.com/")["fields"]["x-rule"] == "wild"


def test_identity_tokens_are_asked_for_per_request(lab: Lab) -> None:
    lab.set("one", hosts={"api.example.com": {"X-Token": "${e2b.identity.tokens.aud}"}})
    lab.asks.clear()
    lab.tokens = {"aud": ("jwt-1", 0)}
    assert lab.ask("one", "https://api.example.com/")["fields"]["x-token"] == "jwt-1"
    lab.tokens = {"aud": ("jwt-2", 60)}
    assert lab.ask("one", "https://api.example.com/")["fields"]["x-token"] == "jwt-2"
    lab.tokens = {"aud": ("jwt-3", 0)}
    assert lab.ask("one", "https://api.example.com/")["fields"]["x-token"] == "jwt-2"
    assert lab.asks == ["aud", "aud"]
    lab.set("one", "ione", hosts={"api.example.com": {"X-Token": "${e2b.identity.tokens.none}"}})
    said = lab.curl("one", "https://api.example.com/", "-w", "%{http_code}")
    assert said.endswith("502")
    assert "'none'" in said


def test_two_boxes_have_their_own_policies_and_connections(lab: Lab) -> None:
    lab.set("one", hosts=RULE, secrets={"key": "of-one"})
    lab.set("two", hosts=RULE, secrets={"key": "of-two"})
    peers = set()
    for box in ("one", "two", "one", "two"):
        told = lab.ask(box, "https://api.example.com/")
        assert told["fields"]["authorization"] == f"Bearer of-{box}"
        peers.add((box, tuple(told["peer"])))
    assert len({p for _, p in peers}) == len(peers)
    lab.remove("two")
    assert lab.curl("two", "https://api.example.com/", check=False).startswith("curl: (")
    assert lab.ask("one", "https://api.example.com/")["fields"]["authorization"] == "Bearer of-one"


def test_a_request_that_would_be_echoed_is_refused(lab: Lab) -> None:
    lab.set("one", hosts=RULE, secrets={"key": "s3cret"})
    for method in ("TRACE", "TRACK", "trace"):
        said = lab.curl("one", "https://api.example.com/", "-X", method, "-w", "%{http_code}")
        assert said.endswith("405"), said
        assert "s3cret" not in said


def test_connection_takes_neither_host_nor_a_rules_header_away(lab: Lab) -> None:
    lab.set("one", hosts=RULE, secrets={"key": "s3cret"})
    named = "Connection: host, authorization, x-fixed, x-own"
    told = lab.ask("one", "https://api.example.com/", "--http1.1", "-H", named, "-H", "X-Own: 1")
    assert told["fields"]["host"] == "api.example.com"
    assert told["fields"]["authorization"] == "Bearer s3cret"
    assert told["fields"]["x-fixed"] == "always"
    assert "x-own" not in told["fields"]


def test_connections_are_recorded(lab: Lab) -> None:
    lab.set("one", hosts=RULE, secrets={"key": "s3cret"})
    lab.pump(0.2)
    lab.records.clear()
    lab.curl("one", "https://api.example.com/recorded?with=query")
    lab.curl("one", "https://plain.example.net/")
    lab.pump(0.5)
    inspected = [r for r in lab.records if r["name"] == "api.example.com"]
    passed = [r for r in lab.records if r["name"] == "plain.example.net"]
    assert len(inspected) == 1, lab.records
    assert len(passed) == 1, lab.records
    assert inspected[0]["verdict"] == 2
    assert inspected[0]["status"] == 200
    assert inspected[0]["method"] == "GET"
    assert inspected[0]["path"] == "/recorded"
    assert inspected[0]["rule"] == "api.example.com"
    assert passed[0]["verdict"] == 1
    assert passed[0]["in"] > 500
    assert passed[0]["path"] == ""
    assert "s3cret" not in json.dumps(lab.records)


TWICE = """
import http.client, socket, ssl, sys
trust = ssl.create_default_context(cafile=sys.argv[1])
made = http.client.HTTPSConnection("api.example.com", context=trust)
made.sock = trust.wrap_socket(socket.create_connection((sys.argv[2], 443)), server_hostname="api.example.com")
for _ in range(2):
    try:
        made.request("GET", "/")
        answer = made.getresponse()
        answer.read()
        print(answer.status, flush=True)
    except (OSError, http.client.HTTPException) as why:
        print(type(why).__name__, flush=True)
    sys.stdin.readline()
"""


def test_a_narrower_list_holds_for_connections_that_are_open(lab: Lab) -> None:
    words = [*lab.enter("one"), sys.executable, "-c", TWICE, str(lab.dir / "both.pem"), API]
    for narrower, second in (("api.example.com\n", "200"), ("else.example.com\n", "RemoteDisconnected")):
        lab.set("one", hosts=RULE, secrets={"key": "s3cret"}, restricted=1, allow_names="*.example.com\n")
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdin
            assert client.stdout
            assert client.stdout.readline() == "200\n"
            lab.set("one", hosts=RULE, secrets={"key": "s3cret"}, restricted=1, allow_names=narrower)
            client.stdin.write("\n")
            client.stdin.flush()
            assert client.stdout.readline() == f"{second}\n"
            client.stdin.close()
