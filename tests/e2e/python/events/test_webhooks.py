# SPDX-License-Identifier: Apache-2.0
"""Webhooks: managing them, what a receiver gets, and what is told of it afterwards."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.receiver import CREATED, KILLED, PAUSED, UPDATED, Receiver, answer, drop, in_turn, receiver
from support.server import Server, binary, own_server
from support.tenants import cloche
from support.waiting import eventually, stays
from support.wire import Wire

SECRET = "secret-for-event-signature-verification"
TOKEN = "token-of-an-administrator"
ALL = [CREATED, UPDATED, PAUSED, "sandbox.lifecycle.resumed", "sandbox.lifecycle.checkpointed", KILLED]


@pytest.fixture(scope="module")
def hooked() -> Iterator[Server]:
    """Receivers on loopback are allowed, and a second passes where ten do otherwise."""
    flags = ("--webhook_private_addresses", "allow", "--webhook_retry_seconds", "1", "--webhook_seconds", "2")
    with own_server(*flags, "--pool", "1", "--admin-token", TOKEN) as made:
        yield made


@pytest.fixture
def listener() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


@pytest.fixture
def api(hooked: Server) -> Iterator[Wire]:
    """The first team's; every webhook is gone afterwards."""
    yield hooked.wire
    for hook in hooked.wire.call("GET", "/events/webhooks").json():
        hooked.wire.call("DELETE", f"/events/webhooks/{hook['id']}")


def register(api: Wire, url: str, events: list[str] | None = None, **more: Any) -> dict[str, Any]:
    body = {"name": "test", "url": url, "events": events or ALL, "signatureSecret": SECRET} | more
    made = api.call("POST", "/events/webhooks", body)
    assert made.status == 201, made.text
    return made.json()


def attempts(api: Wire, hook: dict[str, Any], query: str = "") -> list[dict[str, Any]]:
    told = api.call("GET", f"/events/webhooks/{hook['id']}/deliveries?{query}")
    assert told.status == 200, told.text
    return [one for group in told.json()["data"] for one in group["attempts"]]


def over(api: Wire, hook: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """So many attempts are over."""
    return eventually(lambda: len(found := attempts(api, hook)) >= count and found)


def run_once(hooked: Server, **options: Any) -> str:
    """A box comes and goes."""
    box = hooked.cell(**options)
    box.kill()
    return box.sandbox_id


def another_team(hooked: Server) -> Wire:
    team = cloche(hooked, "team", "create", f"other {uuid.uuid4().hex[:6]}")
    return Wire(hooked.url, cloche(hooked, "key", "create", "for a test", "--team", team))


# ---- managing ----


def test_a_webhook_is_registered_read_changed_and_deleted(api: Wire) -> None:
    hook = register(api, "https://example.com/hook", [CREATED, KILLED, CREATED], name="  first ")
    assert set(hook) == {"id", "teamId", "teamID", "name", "createdAt", "url", "enabled", "events"}
    assert hook["teamId"] == hook["teamID"]
    assert (hook["name"], hook["enabled"], hook["events"]) == ("first", True, [CREATED, KILLED])
    assert uuid.UUID(hook["id"])
    path = f"/events/webhooks/{hook['id']}"
    assert api.call("GET", path).json() == hook
    assert api.call("GET", "/events/webhooks").json() == [hook]
    changed = api.call("PATCH", path, {"enabled": False, "events": [PAUSED]})
    assert changed.status == 200
    assert changed.json() == hook | {"enabled": False, "events": [PAUSED]}
    assert api.call("PATCH", path, {}).json() == changed.json()
    gone = api.call("DELETE", path)
    assert (gone.status, gone.body) == (200, b"")
    assert api.call("DELETE", path).status == 404
    assert api.call("GET", path).status == 404
    assert api.call("GET", "/events/webhooks").json() == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "  "),
        ("name", 7),
        ("name", None),
        ("url", "example.com"),
        ("url", "ftp://example.com/"),
        ("url", "http://user:word@example.com/"),
        ("url", "http://example.com/" + "a" * 2048),
        ("url", None),
        ("events", []),
        ("events", CREATED),
        ("events", ["sandbox.lifecycle.unheard"]),
        ("events", [None]),
        ("signatureSecret", ""),
        ("signatureSecret", "s" * 1025),
        ("enabled", "yes"),
    ],
)
def test_wrong_fields_are_refused_by_name(api: Wire, field: str, value: Any) -> None:
    good = {"name": "n", "url": "http://example.com/", "events": [CREATED], "signatureSecret": "s"}
    refused = api.call("POST", "/events/webhooks", good | {field: value})
    assert refused.status == 400
    assert f"'{field}'" in refused.json()["message"]
    hook = register(api, "https://example.com/")
    assert api.call("PATCH", f"/events/webhooks/{hook['id']}", {field: value}).status == 400
    assert api.call("GET", f"/events/webhooks/{hook['id']}").json() == hook


@pytest.mark.parametrize("field", ["name", "url", "events", "signatureSecret"])
def test_missing_fields_are_named(api: Wire, field: str) -> None:
    good = {"name": "n", "url": "http://example.com/", "events": [CREATED], "signatureSecret": "s"}
    refused = api.call("POST", "/events/webhooks", {k: v for k, v in good.items() if k != field})
    assert refused.status == 400
    assert f"'{field}'" in refused.json()["message"]


def test_no_key_or_no_webhook_is_refused(api: Wire) -> None:
    assert api.call("GET", "/events/webhooks", with_key=False).status == 401
    assert api.call("GET", f"/events/webhooks/{uuid.uuid4()}").status == 404
    assert api.call("GET", "/events/webhooks/sandboxes").status == 404
    assert api.call("PATCH", f"/events/webhooks/{uuid.uuid4()}", {"name": "x"}).status == 404
    assert api.call("GET", f"/events/webhooks/{uuid.uuid4()}/deliveries").status == 404
    assert api.call("GET", f"/events/webhooks/{uuid.uuid4()}/stats").status == 404


def test_another_team_sees_and_gets_nothing(hooked: Server, api: Wire, listener: Receiver) -> None:
    other = another_team(hooked)
    hook = register(api, listener.url)
    path = f"/events/webhooks/{hook['id']}"
    assert other.call("GET", "/events/webhooks").json() == []
    for method, where, body in (
        ("GET", path, None),
        ("PATCH", path, {"name": "mine"}),
        ("DELETE", path, None),
        ("GET", f"{path}/deliveries", None),
        ("GET", f"{path}/stats", None),
    ):
        assert other.call(method, where, body).status == 404
    theirs = other.create()
    theirs.kill()
    mine = run_once(hooked)
    eventually(lambda: len(listener.got) == 2)
    assert {one.json()["sandbox_id"] for one in listener.got} == {mine}


def test_a_team_has_so_many_webhooks_at_most(hooked: Server) -> None:
    other = another_team(hooked)
    made = [register(other, "http://example.com/") for _ in range(20)]
    body = {"name": "n", "url": "http://example.com/", "events": [CREATED], "signatureSecret": "s"}
    refused = other.call("POST", "/events/webhooks", body)
    assert refused.status == 400
    assert "20" in refused.json()["message"]
    assert len(other.call("GET", "/events/webhooks").json()) == 20
    for hook in made:
        assert other.call("DELETE", f"/events/webhooks/{hook['id']}").status == 200


# ---- what a receiver gets ----


def test_an_event_arrives_signed_and_as_listed(hooked: Server, api: Wire, listener: Receiver) -> None:
    hook = register(api, listener.url, [CREATED, KILLED])
    before = time.monotonic()
    box = run_once(hooked, metadata={"user": "ünï"})
    eventually(lambda: len(listener.got) == 2)
    first, last = listener.got
    assert first.at - before < 30
    for one in (first, last):
        assert one.headers["content-type"] == "application/json"
        assert one.headers["e2b-webhook-id"] == hook["id"]
        assert uuid.UUID(one.headers["e2b-delivery-id"])
        assert one.headers["e2b-signature-version"] == "v1"
        assert one.signed_by(SECRET)
        assert len(one.headers["e2b-signature"]) == 43
        assert one.json()["sandbox_id"] == box
        assert one.json()["event_data"]["sandbox_metadata"] == {"user": "ünï"}
        assert not one.body.endswith(b"\n")
    assert [first.json()["type"], last.json()["type"]] == [CREATED, KILLED]
    listed = api.call("GET", f"/events/sandboxes/{box}?orderAsc=true").json()
    assert [one["id"] for one in listed] == [first.json()["id"], last.json()["id"]]
    assert {one["eventId"] for one in over(api, hook, 2)} == {one["id"] for one in listed}


def test_events_of_one_sandbox_arrive_in_order(hooked: Server, api: Wire, listener: Receiver) -> None:
    register(api, listener.url)
    box = hooked.cell()
    for seconds in (100, 200, 300, 400):
        box.set_timeout(seconds)
    box.kill()
    eventually(lambda: KILLED in listener.types())
    assert listener.types() == [CREATED, *[UPDATED] * 4, KILLED]


def test_a_failed_attempt_is_repeated_with_the_same_body(hooked: Server, api: Wire, listener: Receiver) -> None:
    listener.behaviour = in_turn(answer(500, b"not now", X_Why="tired"), answer(204))
    hook = register(api, listener.url, [CREATED])
    run_once(hooked)
    eventually(lambda: len(listener.got) == 2)
    first, second = listener.got
    assert 0.9 < second.at - first.at < 20
    assert first.body == second.body
    assert first.headers["e2b-signature"] == second.headers["e2b-signature"]
    assert first.headers["e2b-delivery-id"] != second.headers["e2b-delivery-id"]
    failed, success = over(api, hook, 2)
    assert [failed["id"], success["id"]] == [one.headers["e2b-delivery-id"] for one in listener.got]
    assert (failed["status"], failed["errorClass"], failed["responseHttpStatusCode"]) == ("failed", "http_error", 500)
    assert failed["responseBody"] == "not now"
    assert json.loads(failed["responseHeaders"])["X-Why"] == "tired"
    assert (success["status"], success["errorClass"], success["responseHttpStatusCode"]) == ("success", None, 204)
    assert success["errorMessage"] is None
    assert failed["requestBody"].encode() == first.body
    assert failed["requestUrl"] == listener.url
    assert json.loads(failed["requestHeaders"])["e2b-signature"] == "[redacted]"
    assert first.headers["e2b-signature"] not in json.dumps(failed)


def refuse_connections() -> str:
    """Nobody is at this address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/"


def test_four_attempts_fail_each_for_its_reason(hooked: Server, api: Wire, tmp_path: Path) -> None:
    files = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"]
        + ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-out", files[0], "-keyout", files[1]],
        check=True,
        capture_output=True,
    )
    with (
        receiver() as hanging,
        receiver() as closing,
        receiver() as moving,
        receiver() as target,
        receiver((str(files[0]), str(files[1]))) as unknown,
    ):
        hanging.behaviour = hanging.hang
        closing.behaviour = drop
        moving.behaviour = answer(302, Location=target.url)
        cases = {
            hanging.url: "timeout",
            closing.url: "transport_error",
            moving.url: "http_error",
            unknown.url: "transport_error",
            refuse_connections(): "transport_error",
            "http://nowhere.invalid/": "dns_error",
        }
        hooks = {url: register(api, url, [CREATED]) for url in cases}
        run_once(hooked)
        for url, hook in hooks.items():
            found = over(api, hook, 4)
            assert [one["errorClass"] for one in found] == [cases[url]] * 4, url
            assert all(one["status"] == "failed" and one["errorMessage"] for one in found)
            assert len({one["id"] for one in found}) == 4
            assert len({one["requestBody"] for one in found}) == 1
        assert len(hanging.got) == len(closing.got) == len(moving.got) == 4
        assert target.got == unknown.got == []
        stays(lambda: all(len(attempts(api, hook)) == 4 for hook in hooks.values()), 1.5)


def test_a_hanging_receiver_delays_neither_sandboxes_nor_others(hooked: Server, api: Wire, listener: Receiver) -> None:
    quiet = [created_in(hooked) for _ in range(5)]
    with receiver() as hanging:
        hanging.behaviour = hanging.hang
        register(api, hanging.url)
        register(api, listener.url, [CREATED])
        busy = [created_in(hooked) for _ in range(10)]
        eventually(lambda: len(listener.got) == 10, 10)
        assert hanging.got
    assert sorted(busy)[5] < 3 * max(quiet) + 0.5


def test_an_event_goes_to_each_of_many_webhooks_once(hooked: Server, listener: Receiver) -> None:
    other = another_team(hooked)
    hooks = {register(other, listener.url, [CREATED, KILLED])["id"] for _ in range(20)}
    made = other.call("POST", "/sandboxes", {"templateID": "base"})
    assert made.status == 201, made.text
    assert other.call("DELETE", f"/sandboxes/{made.json()['sandboxID']}").status == 204
    eventually(lambda: len(listener.got) >= 40)
    stays(lambda: len(listener.got) == 40, 1)
    got = [(one.headers["e2b-webhook-id"], one.json()["type"]) for one in listener.got]
    assert sorted(got) == sorted((hook, kind) for hook in hooks for kind in (CREATED, KILLED))
    for hook in hooks:
        assert other.call("DELETE", f"/events/webhooks/{hook}").status == 200


def created_in(hooked: Server) -> float:
    began = time.monotonic()
    box = hooked.cell()
    took = time.monotonic() - began
    box.kill()
    return took


def test_disabled_deleted_and_other_types_get_nothing(hooked: Server, api: Wire, listener: Receiver) -> None:
    with receiver() as others:
        register(api, others.url, [PAUSED])
        off = register(api, others.url, enabled=False)
        gone = register(api, others.url)
        api.call("DELETE", f"/events/webhooks/{gone['id']}")
        register(api, listener.url)
        run_once(hooked)
        eventually(lambda: len(listener.got) == 2)
        stays(lambda: not others.got, 1)
        assert attempts(api, off) == []


def test_disabling_cancels_what_waits(hooked: Server, api: Wire, listener: Receiver) -> None:
    listener.behaviour = answer(500)
    hook = register(api, listener.url, [CREATED])
    run_once(hooked)
    over(api, hook, 1)
    assert api.call("PATCH", f"/events/webhooks/{hook['id']}", {"enabled": False}).status == 200
    seen = len(listener.got)
    last = over(api, hook, seen + 1)[-1]
    assert (last["status"], last["errorClass"]) == ("failed", "canceled")
    stays(lambda: len(listener.got) == seen, 2)
    assert api.call("PATCH", f"/events/webhooks/{hook['id']}", {"enabled": True}).status == 200
    stays(lambda: len(listener.got) == seen, 1.5)


def test_a_new_secret_counts_for_the_next_attempt(hooked: Server, api: Wire, listener: Receiver) -> None:
    listener.behaviour = in_turn(answer(500), answer(200))
    hook = register(api, listener.url, [CREATED])
    run_once(hooked)
    eventually(lambda: listener.got)
    assert api.call("PATCH", f"/events/webhooks/{hook['id']}", {"signatureSecret": "änother"}).status == 200
    eventually(lambda: len(listener.got) == 2)
    assert listener.got[0].signed_by(SECRET)
    assert listener.got[1].signed_by("änother")


def test_a_receiver_that_says_too_much_is_cut_off(hooked: Server, api: Wire, listener: Receiver) -> None:
    listener.behaviour = answer(200, b"x" * 10_000_000)
    hook = register(api, listener.url, [CREATED])
    run_once(hooked)
    (one,) = over(api, hook, 1)
    assert one["status"] == "success"
    assert one["responseBody"] == "x" * 4096


# ---- what may be reached ----


def test_metadata_boxes_and_the_api_are_never_reached(hooked: Server, api: Wire) -> None:
    body = {"name": "n", "events": [CREATED], "signatureSecret": "s"}
    fine = register(api, "https://example.com/", [KILLED])
    for url in ("http://169.254.169.254/latest/meta-data", "http://0.0.0.0:1/", "http://[fd00:ec2::254]/",
                "http://2852039166/", "http://0xa9fea9fe/", "http://[::ffff:169.254.169.254]/"):  # fmt: skip
        refused = api.call("POST", "/events/webhooks", body | {"url": url})
        assert refused.status == 400, url
        assert "never" in refused.json()["message"]
        assert api.call("PATCH", f"/events/webhooks/{fine['id']}", {"url": url}).status == 400
    targets = [hooked.url, f"http://localhost:{hooked.wire.address[1]}/sandboxes"]
    hooks = {url: register(api, url, [CREATED]) for url in targets}
    run_once(hooked)
    for url, hook in hooks.items():
        found = over(api, hook, 1)
        assert found[0]["errorClass"] == "request_error", (url, found[0])
        assert "never" in found[0]["errorMessage"]


def test_loopback_and_private_addresses_are_refused_by_default(listener: Receiver) -> None:
    with own_server("--webhook_retry_seconds", "1", "--pool", "1") as made:
        api = made.wire
        for url in (listener.url, "http://10.1.2.3/", "http://[::1]/", "http://127.1/"):
            body = {"name": "n", "url": url, "events": [CREATED], "signatureSecret": "s"}
            refused = api.call("POST", "/events/webhooks", body)
            assert refused.status == 400, url
            assert "webhook_private_addresses" in refused.json()["message"]
        hook = register(api, listener.url.replace("127.0.0.1", "localhost"), [CREATED])
        run_once(made)
        one = over(api, hook, 1)[0]
        assert one["errorClass"] == "request_error"
        assert "webhook_private_addresses" in one["errorMessage"]
        assert listener.got == []


def test_an_authority_of_the_operator_is_trusted(tmp_path: Path) -> None:
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"]
        + ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-out", cert, "-keyout", key],
        check=True,
        capture_output=True,
    )
    flags = ("--webhook_private_addresses", "allow", "--webhook_ca", cert, "--pool", "1")
    with receiver((cert, key)) as listener, own_server(*flags) as made:
        register(made.wire, listener.url, [CREATED])
        run_once(made)
        eventually(lambda: len(listener.got) == 1)
        assert listener.got[0].signed_by(SECRET)


# ---- what is told afterwards ----


def test_deliveries_are_paged_and_filtered(hooked: Server, api: Wire, listener: Receiver) -> None:
    listener.behaviour = in_turn(answer(500), answer(200))
    hook = register(api, listener.url, [CREATED, KILLED])
    path = f"/events/webhooks/{hook['id']}/deliveries"
    boxes = [run_once(hooked) for _ in range(3)]
    over(api, hook, 7)
    whole = api.call("GET", path).json()
    assert whole["nextCursor"] is None
    assert len(whole["data"]) == 6
    assert whole["data"][-1]["sandboxId"] == boxes[0]
    assert sorted(len(group["attempts"]) for group in whole["data"]) == [1, 1, 1, 1, 1, 2]
    for order in ("false", "true"):
        pages, cursor = [], ""
        while cursor is not None:
            page = api.call("GET", f"{path}?limit=4&orderAsc={order}&cursor={cursor}").json()
            assert len(page["data"]) <= 4
            pages += page["data"]
            cursor = page["nextCursor"]
        assert pages == (whole["data"] if order == "false" else whole["data"][::-1])
    assert len(api.call("GET", f"{path}?deliveryStatus=failed").json()["data"]) == 1
    assert len(api.call("GET", f"{path}?deliveryStatus=success,failed").json()["data"]) == 6
    assert len(api.call("GET", f"{path}?eventType={KILLED}").json()["data"]) == 3
    assert len(api.call("GET", f"{path}?eventType={KILLED},{CREATED}").json()["data"]) == 6
    first = whole["data"][-1]["attempts"][0]["timestamp"]
    assert len(api.call("GET", f"{path}?start={first}").json()["data"]) == 6
    assert api.call("GET", f"{path}?end={first}").json() == {"data": [], "nextCursor": None}
    down = api.call("GET", f"{path}?limit=1").json()["nextCursor"]
    wrong = ["limit=0", "limit=101", "limit=x", "orderAsc=1", "cursor=zz", f"cursor={down}&orderAsc=true"]
    wrong += ["start=yesterday", "deliveryStatus=late", "eventType=created"]
    for query in wrong:
        assert api.call("GET", f"{path}?{query}").status == 400, query


def test_figures_count_attempts(hooked: Server, api: Wire, listener: Receiver) -> None:
    listener.behaviour = in_turn(answer(500), answer(200))
    hook = register(api, listener.url, [CREATED])
    path = f"/events/webhooks/{hook['id']}/stats"
    empty = api.call("GET", path).json()
    nothing = {"minimum": 0, "average": 0, "maximum": 0}
    assert (empty["total"], empty["failed"], empty["durationMs"]) == (0, 0, nothing)
    assert 24 <= len(empty["buckets"]) <= 25
    run_once(hooked)
    over(api, hook, 2)
    told = api.call("GET", path).json()
    assert (told["total"], told["failed"]) == (2, 1)
    assert told["durationMs"]["minimum"] <= told["durationMs"]["average"] <= told["durationMs"]["maximum"]
    assert sum(bucket["total"] for bucket in told["buckets"]) == 2
    assert all(set(bucket) == {"timestamp", "total", "failed", "durationMs"} for bucket in told["buckets"])
    assert api.call("GET", f"{path}?start=2026-01-01T00:00:00Z&end=2026-01-01T01:00:00Z").json()["total"] == 0
    assert len(api.call("GET", f"{path}?start=2026-01-01T00:00:00Z&end=2026-01-01T01:00:00Z").json()["buckets"]) == 12
    assert api.call("GET", f"{path}?start=2026-01-01T00:00:00Z&end=2026-01-09T00:00:00Z").status == 400
    assert api.call("GET", f"{path}?start=x").status == 400
    metrics = api.call("GET", "/metrics", headers={"X-Admin-Token": TOKEN}, with_key=False).text
    assert 'cloche_webhook_attempts_total{result="success"}' in metrics
    assert "cloche_webhook_waiting " in metrics


def test_no_secret_is_ever_told(hooked: Server, api: Wire, listener: Receiver) -> None:
    secret = f"word-{uuid.uuid4().hex}"
    listener.behaviour = in_turn(answer(500), answer(200))
    made = api.call(
        "POST",
        "/events/webhooks",
        {"name": "n", "url": listener.url, "events": [CREATED], "signatureSecret": secret},
    )
    path = f"/events/webhooks/{made.json()['id']}"
    run_once(hooked)
    over(api, made.json(), 2)
    told = made.text + api.call("GET", path).text + api.call("GET", "/events/webhooks").text
    told += api.call("PATCH", path, {"signatureSecret": secret}).text + api.call("GET", f"{path}/deliveries").text
    told += (hooked.home / "log").read_text(errors="replace")
    told += subprocess.run([binary(), "serve", "--print-config"], capture_output=True, text=True, check=True).stdout
    assert secret not in told
    assert listener.got[0].headers["e2b-signature"] not in told
    database = hooked.data / "cloche.db"
    assert database.stat().st_mode & 0o077 == 0
    sender = hooked.senders()[0]
    memory = Path(f"/proc/{sender}/maps").read_text()
    assert "cloche" in memory
    assert secret.encode() not in readable_memory(sender)


def readable_memory(pid: int) -> bytes:
    """What the process holds in its heap and other private memory."""
    found = b""
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            words = line.split()
            if words[1].startswith("rw") and (len(words) < 6 or words[5] == "[heap]"):
                first, last = (int(word, 16) for word in words[0].split("-"))
                memory.seek(first)
                try:
                    found += memory.read(last - first)
                except OSError:
                    continue
    return found


# ---- the documentation's own verification ----

PYTHON = """
import base64, hashlib, sys
def verify_webhook_signature(secret, payload, payload_signature):
    expected = base64.b64encode(hashlib.sha256((secret + payload).encode()).digest()).decode().rstrip('=')
    return expected == payload_signature
sys.exit(not verify_webhook_signature(sys.argv[1], sys.stdin.read(), sys.argv[2]))
"""
JAVASCRIPT = """
import crypto from 'node:crypto'
import fs from 'node:fs'
function verifyWebhookSignature(secret, payload, payloadSignature) {
  const expected = crypto.createHash('sha256').update(secret + payload).digest('base64').replace(/=+$/, '')
  return expected === payloadSignature
}
process.exit(verifyWebhookSignature(process.argv[2], fs.readFileSync(0, 'utf8'), process.argv[3]) ? 0 : 1)
"""
GO = """
package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"io"
	"os"
)

func verifyWebhookSignature(secret string, payload []byte, payloadSignature string) bool {
	hash := sha256.Sum256(append([]byte(secret), payload...))
	expected := base64.RawStdEncoding.EncodeToString(hash[:])
	return subtle.ConstantTimeCompare([]byte(expected), []byte(payloadSignature)) == 1
}

func main() {
	payload, err := io.ReadAll(os.Stdin)
	if err != nil || !verifyWebhookSignature(os.Args[1], payload, os.Args[2]) {
		os.Exit(1)
	}
}
"""
# Go is the one language here that neither the server nor a template needs.
CHECKS = {"python": ("check.py", PYTHON), "javascript": ("check.mjs", JAVASCRIPT)} | (
    {"go": ("check.go", GO)} if shutil.which("go") else {}
)


def checker(language: str, folder: Path) -> list[str]:
    name, text = CHECKS[language]
    program = folder / name
    program.write_text(text)
    if language == "go":
        built = str(folder / "check")
        words = ["go", "build", "-o", built, str(program)]
        subprocess.run(words, check=True, cwd=folder, env=os.environ | {"GOFLAGS": "-mod=mod", "GO111MODULE": "off"})
        return [built]
    return ["python3" if language == "python" else "node", str(program)]


@pytest.mark.parametrize("language", CHECKS)
def test_the_documented_check_accepts_a_delivery(
    hooked: Server, api: Wire, listener: Receiver, tmp_path: Path, language: str
) -> None:
    register(api, listener.url, [CREATED])
    for _ in range(3):
        run_once(hooked, metadata={"name": "ünï"})
    eventually(lambda: len(listener.got) == 3)
    command = checker(language, tmp_path)
    for one in listener.got:
        for secret, status in ((SECRET, 0), ("another", 1)):
            words = [*command, secret, one.headers["e2b-signature"]]
            done = subprocess.run(words, input=one.body, check=False, timeout=60)
            assert done.returncode == status
        assert base64.b64decode(one.headers["e2b-signature"] + "=")
