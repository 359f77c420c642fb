# SPDX-License-Identifier: Apache-2.0
"""Identity tokens of sandboxes: asked for at creation, signed by the server, verified by others with what it publishes.

`cloche secret token` gives the very token that a request of the sandbox would carry.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import Any

import e2b
import jwt
import pytest

from support.commands import cloche
from support.server import Server, binary, own_server
from support.waiting import eventually
from support.wire import Wire

IAM = {"tokens": {"aws": {"audience": "sts.amazonaws.com", "tokenType": "JWT-SVID"}}}


def keys(wire: Wire) -> dict[str, Any]:
    answer = wire.call("GET", "/.well-known/jwks.json", with_key=False)
    assert answer.status == 200, answer.text
    return answer.json()


def verify(wire: Wire, token: str, audience: str = "sts.amazonaws.com") -> dict[str, Any]:
    """As a stranger does who knows the server's address: with the library's own look-up of the key."""
    key = jwt.PyJWKSet.from_dict(keys(wire))[jwt.get_unverified_header(token)["kid"]]
    return jwt.decode(token, key, algorithms=["ES256"], audience=audience, options={"require": ["exp", "iat", "sub"]})


def token_of(server: Server, box: str, name: str = "aws") -> str:
    done = subprocess.run(
        [binary(), "secret", "token", box, name, "--data", str(server.data)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_token_of_a_sandbox_is_verified_by_strangers(wire: Wire) -> None:
    iam = {
        "tokens": {
            "aws": e2b.Secret.iam_token(audience="sts.amazonaws.com", token_type="JWT-SVID"),
            "Own Name": e2b.Secret.iam_token(audience='https://a.example/"ü"', token_type="JWT-SVID"),
        }
    }
    with e2b.Sandbox.create(iam=iam, timeout=60) as box:
        before = int(time.time())
        token = cloche("secret", "token", box.sandbox_id, "aws")
        claims = verify(wire, token)
        assert jwt.get_unverified_header(token)["alg"] == "ES256"
        team = wire.call("GET", "/teams").json()[0]["teamID"]
        assert claims["sub"] == f"spiffe://cloche/team/{team}/sandbox/{box.sandbox_id}"
        assert claims["aud"] == "sts.amazonaws.com"
        assert before - 1 <= claims["iat"] <= time.time() + 1
        assert claims["exp"] - claims["iat"] == 300
        assert "iss" not in claims
        again = verify(wire, cloche("secret", "token", box.sandbox_id, "aws"))
        assert again["jti"] != claims["jti"]
        verify(wire, cloche("secret", "token", box.sandbox_id, "Own Name"), 'https://a.example/"ü"')
        with pytest.raises(jwt.InvalidAudienceError):
            verify(wire, token, "another")
        head, body, signature = token.split(".")
        with pytest.raises(jwt.InvalidSignatureError):
            verify(wire, f"{head}.{body}.{signature[:-6]}AAAAAA")
        with pytest.raises(AssertionError, match="no identity token of this name"):
            cloche("secret", "token", box.sandbox_id, "AWS")


async def test_the_async_sdk_asks_for_tokens(wire: Wire) -> None:
    token = e2b.AsyncSecret.iam_token(audience="vault", token_type="JWT-SVID")
    box = await e2b.AsyncSandbox.create(iam={"tokens": {"v": token}}, timeout=60)
    assert verify(wire, cloche("secret", "token", box.sandbox_id, "v"), "vault")
    await box.kill()


def test_the_keys_are_public_and_hold_nothing_private(wire: Wire) -> None:
    answer = wire.call("GET", "/.well-known/jwks.json", with_key=False)
    assert answer.headers["Cache-Control"] == "public, max-age=60"
    for key in answer.json()["keys"]:
        assert set(key) == {"kty", "crv", "alg", "use", "kid", "x", "y"}
    assert wire.call("GET", "/.well-known/openid-configuration", with_key=False).status == 404
    assert wire.call("POST", "/.well-known/jwks.json", with_key=False).status == 405


@pytest.mark.parametrize(
    "iam",
    [
        "aws",
        [],
        {"tokens": []},
        {"tokens": {"a": "b"}},
        {"tokens": {"a": {}}},
        {"tokens": {"a": {"audience": "b"}}},
        {"tokens": {"a": {"audience": "", "tokenType": "JWT-SVID"}}},
        {"tokens": {"a": {"audience": 5, "tokenType": "JWT-SVID"}}},
        {"tokens": {"a": {"audience": "b\nc", "tokenType": "JWT-SVID"}}},
        {"tokens": {"a": {"audience": "b" * 1025, "tokenType": "JWT-SVID"}}},
        {"tokens": {"a": {"audience": "b", "tokenType": "jwt-svid"}}},
        {"tokens": {"a": {"audience": "b", "tokenType": "X509-SVID"}}},
        {"tokens": {"": {"audience": "b", "tokenType": "JWT-SVID"}}},
        {"tokens": {"a}b": {"audience": "b", "tokenType": "JWT-SVID"}}},
        {"tokens": {"a{": {"audience": "b", "tokenType": "JWT-SVID"}}},
        {"tokens": {"a\tb": {"audience": "b", "tokenType": "JWT-SVID"}}},
        {"tokens": {"a\u0085": {"audience": "b", "tokenType": "JWT-SVID"}}},
        {"tokens": {"a" * 129: {"audience": "b", "tokenType": "JWT-SVID"}}},
        {"tokens": {f"t{i}": {"audience": "b", "tokenType": "JWT-SVID"} for i in range(6)}},
    ],
    ids=lambda iam: json.dumps(iam)[:40],
)
def test_bad_tokens_are_refused(wire: Wire, iam: object) -> None:
    answer = wire.call("POST", "/v2/sandboxes", {"templateID": "base", "iam": iam})
    assert answer.status == 400, answer.text
    assert "iam" in answer.json()["message"]


@pytest.mark.parametrize("iam", [None, {}, {"tokens": None}, {"tokens": {}}], ids=str)
def test_no_tokens_are_no_error(wire: Wire, iam: object) -> None:
    box = wire.create(iam=iam)
    with pytest.raises(AssertionError, match="no identity token"):
        cloche("secret", "token", box.id, "aws")
    box.kill()


def test_tokens_go_with_the_sandbox() -> None:
    issuer = "https://issuer.example"
    flags = f"--identity-issuer {issuer} --identity-trust-domain Prod.Example:443 --identity-token-seconds 60".split()
    with own_server(*flags) as server:
        wire = server.wire
        box = wire.create(iam=IAM, timeout=300)
        claims = verify(wire, token_of(server, box.id))
        assert claims["iss"] == issuer
        assert claims["sub"].startswith("spiffe://prod.example/team/")
        assert claims["exp"] - claims["iat"] == 60
        told = wire.call("GET", "/.well-known/openid-configuration", with_key=False).json()
        assert told["issuer"] == issuer
        assert told["jwks_uri"] == f"{issuer}/.well-known/jwks.json"
        assert told["id_token_signing_alg_values_supported"] == ["ES256"]
        copies = wire.call("POST", f"/sandboxes/{box.id}/fork", {"count": 1}).json()
        copy = copies[0]["sandbox"]["sandboxID"]
        assert verify(wire, token_of(server, copy))["sub"].endswith(f"/sandbox/{copy}")
        assert wire.call("POST", f"/sandboxes/{box.id}/pause").status == 204
        first = keys(wire)
        for pid in server.wardens():
            os.kill(pid, signal.SIGKILL)
        eventually(lambda: wire.call("GET", f"/sandboxes/{box.id}").status == 200)
        assert wire.call("POST", f"/sandboxes/{box.id}/connect", {"timeout": 60}).status in (200, 201)
        assert verify(wire, token_of(server, box.id))["sub"].endswith(f"/sandbox/{box.id}")
        assert keys(wire) == first  # the key survives, too


def test_a_key_that_signs_no_more_stays_published(server: Server) -> None:
    wire = server.wire
    box = wire.create(iam=IAM, timeout=300)
    old = token_of(server, box.id)
    verify(wire, old)
    command = [binary(), "secret", "--data", str(server.data)]
    subprocess.run([*command, "rotate-identity-key"], check=True, timeout=30)
    new = token_of(server, box.id)
    assert jwt.get_unverified_header(new)["kid"] != jwt.get_unverified_header(old)["kid"]
    verify(wire, new)  # by whichever gate
    verify(wire, old)
    subprocess.run([*command, "rotate-key"], check=True, timeout=30)  # the master key: both go on
    server.stop()
    server.start()
    box = server.wire.create(iam=IAM, timeout=60)
    verify(server.wire, token_of(server, box.id))
    verify(server.wire, old)
    assert len(keys(server.wire)["keys"]) == 2


def test_without_the_master_key_tokens_are_refused(server: Server) -> None:
    box = server.wire.create(iam=IAM)
    box.kill()
    server.stop()
    (server.data / "secrets.key").unlink()
    server.start()
    answer = server.wire.call("POST", "/v2/sandboxes", {"templateID": "base", "iam": IAM})
    assert answer.status == 400
    assert "master key" in answer.json()["message"]
    assert not (server.data / "secrets.key").exists()
    assert keys(server.wire)["keys"]  # what was signed can still be verified
    server.wire.create().kill()
