# SPDX-License-Identifier: Apache-2.0
"""An ID is no secret: what a stranger gets who knows a sandbox's ID, and nothing else."""

from __future__ import annotations

import base64
import hashlib
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlencode

import e2b_code_interpreter as interpreter
import httpx
import pytest

from support.server import Server, own_server
from support.stranger import AGENT_PORT, INTERPRETER_PORT, Stranger
from support.tenants import Tenants
from support.waiting import eventually
from support.wire import RawBox

CELL = {"code": "print(6 * 7)"}
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


@contextmanager
def server_with(*settings: str) -> Iterator[Server]:
    with own_server(*settings) as made:
        yield made


@pytest.fixture(scope="module")
def secure(tenants: Tenants) -> Iterator[RawBox]:
    box = tenants.victim.create("code-interpreter-v1", timeout=600)
    yield box
    box.kill()


@pytest.fixture(scope="module")
def stranger(tenants: Tenants) -> Stranger:
    return Stranger(tenants.victim)


def test_code_is_run_for_who_shows_the_token(tenants: Tenants, secure: RawBox) -> None:
    token = {"X-Access-Token": secure.token}
    assert Stranger(tenants.victim, "127.0.0.5").statuses(
        secure.id, INTERPRETER_PORT, "POST", "/execute", CELL, token
    ) == {200}


@pytest.mark.parametrize(
    "shown",
    [
        {},
        {"X-Access-Token": ""},
        {"X-Access-Token": "ID"},
        {"X-Access-Token": "0" * 64},
        {"E2B-Traffic-Access-Token": "ID"},
        {"X-API-Key": "ID"},
        {"Authorization": "Bearer ID"},
        {"Authorization": "Basic dXNlcjo="},
    ],
)
def test_no_code_is_run_for_an_id(secure: RawBox, stranger: Stranger, shown: dict[str, str]) -> None:
    headers = {name: value.replace("ID", secure.id) for name, value in shown.items()}
    assert stranger.statuses(secure.id, INTERPRETER_PORT, "POST", "/execute", CELL, headers) == {401}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/", None),
        ("POST", "/health", {}),
        ("GET", "/contexts", None),
        ("POST", "/contexts", {}),
        ("DELETE", "/contexts/default", None),
        ("POST", "/contexts/default/restart", {}),
        ("POST", "/contexts/../execute", CELL),
        ("POST", "/contexts/%2e%2e/execute", CELL),
        ("POST", "/contexts/x/../../execute", CELL),
        ("POST", "//execute", CELL),
        ("OPTIONS", "/execute", None),
        ("PUT", "/execute", CELL),
    ],
)
def test_the_interpreter_answers_nothing_to_an_id(
    secure: RawBox, stranger: Stranger, method: str, path: str, body: dict[str, str] | None
) -> None:
    assert stranger.statuses(secure.id, INTERPRETER_PORT, method, path, body) == {401}


def test_health_is_for_everyone(secure: RawBox, stranger: Stranger) -> None:
    """As the agent's: it tells that the sandbox lives, and runs nothing."""
    assert stranger.statuses(secure.id, INTERPRETER_PORT, "GET", "/health") == {200}


def test_a_websocket_needs_the_token_too(secure: RawBox, stranger: Stranger) -> None:
    assert stranger.statuses(secure.id, INTERPRETER_PORT, "GET", "/execute", None, UPGRADE) == {401}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/health", 204),  # by contract: clients ask for it without a token
        ("GET", "/metrics", 401),
        ("GET", "/envs", 401),
        ("GET", "/files?path=/etc/passwd", 401),
        ("POST", "/files?path=/tmp/x", 401),
        ("POST", "/process.Process/List", 401),
        ("POST", "/filesystem.Filesystem/ListDir", 401),
        ("POST", "/init", 404),
    ],
)
def test_the_agent_answers_health_only_to_an_id(
    secure: RawBox, stranger: Stranger, method: str, path: str, status: int
) -> None:
    body = {} if method == "POST" else None
    assert stranger.statuses(secure.id, AGENT_PORT, method, path, body) == {status}
    if status == 401:
        assert stranger.statuses(secure.id, AGENT_PORT, method, path, body, {"X-Access-Token": secure.id}) <= {401, 429}


def signed(token: str, path: str = "/etc/hostname", user: str = "root") -> str:
    digest = hashlib.sha256(f"{path}:read:{user}:{token}".encode()).digest()
    signature = "v1_" + base64.b64encode(digest).decode().rstrip("=")
    return "/files?" + urlencode({"path": path, "username": user, "signature": signature})


def test_a_signature_made_with_the_id_opens_nothing(secure: RawBox, stranger: Stranger) -> None:
    assert stranger.call("GET", signed(secure.id)).status == 401
    assert stranger.statuses(secure.id, AGENT_PORT, "GET", signed(secure.id)) == {401}


def test_a_signed_url_finds_its_box_without_naming_it(secure: RawBox, stranger: Stranger) -> None:
    got = stranger.call("GET", signed(secure.token))
    assert (got.status, got.body) == (200, secure.agent("GET", "/files?path=/etc/hostname&username=root").body)


def test_guessed_signatures_are_not_searched_for_ever(tenants: Tenants) -> None:
    """Each guess is tried against all boxes: who is wrong too often is refused without a search, and a right one still
    works."""
    guesser = Stranger(tenants.victim, "127.0.0.6")
    statuses = [guesser.call("GET", signed(f"{n:064x}")).status for n in range(400)]
    assert set(statuses[:60]) == {401}
    assert set(statuses[-50:]) == {429}
    assert Stranger(tenants.victim, "127.0.0.7").call("GET", signed("0" * 64)).status == 401


@pytest.mark.parametrize("expiry", ["7" * 50_000, "1" * 21, "soon", ""])
def test_a_signature_over_what_no_client_writes_is_refused(secure: RawBox, tenants: Tenants, expiry: str) -> None:
    """Well signed; but to try such a text against every box costs the warden what a client without a key likes."""
    digest = hashlib.sha256(f"/etc/hostname:read:root:{secure.token}:{expiry}".encode()).digest()
    signature = "v1_" + base64.b64encode(digest).decode().rstrip("=")
    fields = {"path": "/etc/hostname", "username": "root", "signature": signature, "signature_expiration": expiry}
    guesser = Stranger(tenants.victim, "127.0.0.21")
    got = guesser.call("GET", "/files?" + urlencode(fields))
    assert got.status == 401, (got.status, got.body)


def test_who_leaves_before_the_answer_has_guessed() -> None:
    with server_with("--auth-failures-per-minute", "6", "--gates", "1", "--pool", "0") as server:
        box = server.wire.create(timeout=120)
        os.kill(server.wardens()[0], signal.SIGSTOP)
        try:
            for n in range(6):  # a search is asked for, nobody waits for its end
                with socket.create_connection(server.wire.address, 10, ("127.0.0.22", 0)) as link:
                    link.sendall(f"GET {signed(f'{n:064x}')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                    link.settimeout(0.2)
                    with pytest.raises(TimeoutError):
                        link.recv(1)
            server.wire.call("GET", "/health")  # the gate has seen them go
        finally:
            os.kill(server.wardens()[0], signal.SIGCONT)
        assert Stranger(server.wire, "127.0.0.22").call("GET", signed("0" * 64)).status == 429
        assert Stranger(server.wire, "127.0.0.23").call("GET", signed(box.token)).status == 200
        box.kill()


def test_contexts_work_from_where_the_token_was_shown(tenants: Tenants, secure: RawBox) -> None:
    """Stock clients show no token with these; that they showed the key or the token before counts."""
    owner = Stranger(tenants.victim, "127.0.0.1")  # made the box, with a key
    assert owner.statuses(secure.id, INTERPRETER_PORT, "GET", "/contexts") == {200}
    guest = Stranger(tenants.victim, "127.0.0.3")  # was given the token
    routing = {"E2b-Sandbox-Id": secure.id, "E2b-Sandbox-Port": str(INTERPRETER_PORT)}
    assert guest.call("GET", "/contexts", None, routing).status == 401
    assert guest.call("POST", "/execute", CELL, routing | {"X-Access-Token": secure.token}).status == 200
    # each gate hears of it from the warden
    eventually(lambda: guest.call("GET", "/contexts", None, routing).status == 200)
    for _ in range(8):
        assert guest.call("GET", "/contexts", None, routing).status == 200
    assert guest.call("POST", "/execute", CELL, routing).status == 401


def test_a_foreign_key_vouches_for_nothing(tenants: Tenants, secure: RawBox) -> None:
    other = Stranger(tenants.attacker, "127.0.0.4")
    for path in (f"/sandboxes/{secure.id}", f"/v2/sandboxes/{secure.id}/connect"):
        method = "GET" if path.startswith("/sandboxes") else "POST"
        body = None if method == "GET" else {"timeout": 30}
        got = other.call(method, path, body, {"X-API-Key": tenants.attacker.key or ""})
        assert got.status == 404
    assert other.statuses(secure.id, INTERPRETER_PORT, "GET", "/contexts") == {401}


def test_user_ports_are_public_unless_the_box_says_otherwise(tenants: Tenants, stranger: Stranger) -> None:
    public = tenants.victim.create(timeout=120)
    private = tenants.victim.create(timeout=120, network={"allowPublicTraffic": False})
    try:
        for box in (public, private):
            code, _out, err = box.run("cd /tmp && (nohup python3 -m http.server 8000 >/dev/null 2>&1 &) ; sleep 1")
            assert code == 0, err
        eventually(lambda: stranger.statuses(public.id, 8000, "GET", "/") == {200})
        traffic = {"E2B-Traffic-Access-Token": private.made["trafficAccessToken"]}
        eventually(lambda: stranger.statuses(private.id, 8000, "GET", "/", None, traffic) == {200})
        for shown in ({}, {"E2B-Traffic-Access-Token": private.id}, {"X-Access-Token": private.token}):
            assert stranger.statuses(private.id, 8000, "GET", "/", None, shown) == {403}
            assert stranger.statuses(private.id, INTERPRETER_PORT, "GET", "/contexts", None, shown) == {403}
        assert stranger.statuses(private.id, INTERPRETER_PORT, "GET", "/contexts", None, traffic) == {401}
    finally:
        public.kill()
        private.kill()


def test_an_open_box_asks_for_nothing(tenants: Tenants, stranger: Stranger) -> None:
    """By contract: `secure: false` of the first API is a box for everyone who knows its ID."""
    box = tenants.victim.create("code-interpreter-v1", timeout=120, secure=False)
    try:
        assert stranger.statuses(box.id, INTERPRETER_PORT, "POST", "/execute", CELL) == {200}
    finally:
        box.kill()


def test_an_id_wakes_no_sleeping_secure_box(tenants: Tenants, stranger: Stranger) -> None:
    options = {"autoPause": True, "autoResume": {"enabled": True}}
    box = tenants.victim.create("code-interpreter-v1", timeout=300, **options)
    try:
        assert tenants.victim.call("POST", f"/sandboxes/{box.id}/pause").status == 204
        for port, path in ((AGENT_PORT, "/envs"), (INTERPRETER_PORT, "/execute"), (INTERPRETER_PORT, "/contexts")):
            assert stranger.statuses(box.id, port, "GET", path) <= {401, 403}
        state = tenants.victim.call("GET", f"/sandboxes/{box.id}").json()["state"]
        assert state == "paused"
        owner = Stranger(tenants.victim, "127.0.0.1")
        routing = {"E2b-Sandbox-Id": box.id, "E2b-Sandbox-Port": str(INTERPRETER_PORT)}
        assert owner.call("GET", "/contexts", None, routing, timeout=60).status == 200
    finally:
        box.kill()


def test_the_stock_client_makes_contexts_after_a_connect(tenants: Tenants, secure: RawBox) -> None:
    url = tenants.victim.url
    cell = interpreter.Sandbox.connect(secure.id, api_key=tenants.victim.key, api_url=url, sandbox_url=url)
    context = cell.create_code_context()
    assert cell.run_code("1 + 1", context=context).text == "2"
    assert httpx.get(cell.download_url("/etc/hostname", user="root")).status_code == 200


def test_old_clients_can_be_let_in_by_a_setting() -> None:
    with server_with("--interpreter-token", "compatible", "--pool", "0") as server:
        stranger = Stranger(server.wire)
        first = server.wire.create("code-interpreter-v1", timeout=120)
        second = server.wire.create("code-interpreter-v1", "/v2/sandboxes", timeout=120)
        assert stranger.statuses(first.id, INTERPRETER_PORT, "POST", "/execute", CELL) == {200}
        wrong = {"X-Access-Token": first.id}
        assert stranger.statuses(first.id, INTERPRETER_PORT, "POST", "/execute", CELL, wrong) == {401}
        assert stranger.statuses(second.id, INTERPRETER_PORT, "POST", "/execute", CELL) == {401}
        first.kill()
        second.kill()


def test_who_guesses_waits_and_is_logged() -> None:
    with server_with(
        "--auth-failures-per-minute", "6", "--gates", "1", "--pool", "0", "--admin-token", "right"
    ) as server:
        box = server.wire.create(timeout=120)
        guesses = {
            "127.0.0.11": lambda who: who.call("GET", "/sandboxes", None, {"X-API-Key": "e2b_" + "ab" * 20}),
            "127.0.0.12": lambda who: who.call("GET", "/nodes", None, {"X-Admin-Token": "wrong"}),
            "127.0.0.13": lambda who: who.call("GET", signed("0" * 64)),
            "127.0.0.14": lambda who: who.call(
                "GET", "/envs", None, box.routing(AGENT_PORT) | {"X-Access-Token": "0" * 64}
            ),
            "127.0.0.15": lambda who: who.call(
                "POST", "/execute", CELL, box.routing(INTERPRETER_PORT) | {"X-Access-Token": "0" * 64}
            ),
        }
        for address, guess in guesses.items():
            who = Stranger(server.wire, address)
            answers = [guess(who) for _ in range(8)]
            assert [a.status for a in answers[:6]] == [401] * 6, address
            assert answers[-1].status == 429, address
            assert int(answers[-1].headers["Retry-After"]) >= 1
            eventually(lambda who=who, guess=guess: guess(who) and f'"client":"{who.address}:' in server.log())
            # what is right still passes where it is known to be, and from everywhere else
            assert who.call("GET", "/envs", None, box.headers()).status == 200
        assert server.wire.call("GET", "/sandboxes").status == 200
        assert server.wire.call("GET", "/nodes", None, {"X-Admin-Token": "right"}).status == 200
        assert "ab" * 20 not in server.log()
        assert "0" * 64 not in server.log()
        box.kill()
