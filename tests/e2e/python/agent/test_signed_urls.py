# SPDX-License-Identifier: Apache-2.0
"""Signed URLs: what downloadUrl and uploadUrl give can be used by any HTTP client."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Iterator
from urllib.parse import urlencode, urlsplit

import e2b
import httpx
import pytest

from support.wire import AGENT_PORT, RawBox


@pytest.fixture(scope="module")
def secured() -> Iterator[e2b.Sandbox]:
    box = e2b.Sandbox.create(timeout=300)
    yield box
    box.kill()


def upload(url: str, content: bytes = b"uploaded") -> httpx.Response:
    return httpx.post(url, files={"file": ("ignored.txt", content)})


def test_a_download_url_works_without_any_header(secured: e2b.Sandbox, unique: str) -> None:
    secured.files.write(f"{unique}.txt", "Hello, World!")
    got = httpx.get(secured.download_url(f"{unique}.txt"))
    assert (got.status_code, got.text) == (200, "Hello, World!")


def test_an_upload_url_answers_what_it_wrote(secured: e2b.Sandbox, unique: str) -> None:
    got = upload(secured.upload_url(f"{unique}.txt"))
    assert got.status_code == 200
    path = f"/home/user/{unique}.txt"
    assert got.json() == [{"name": f"{unique}.txt", "path": path, "type": "file"}]
    assert secured.files.read(path) == "uploaded"


def test_the_user_of_the_url_decides_the_home(secured: e2b.Sandbox, unique: str) -> None:
    got = upload(secured.upload_url(unique, user="root"))
    assert got.json()[0]["path"] == f"/root/{unique}"
    assert httpx.get(secured.download_url(unique, user="root")).text == "uploaded"


def test_a_form_field_without_a_file_name_is_accepted(secured: e2b.Sandbox, unique: str) -> None:
    boundary = "cut-here"
    body = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"\r\n\r\n'
        f"plain field\r\n--{boundary}--\r\n"
    )
    kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    got = httpx.post(secured.upload_url(unique), content=body, headers=kind)
    assert got.status_code == 200, got.text
    assert secured.files.read(unique) == "plain field"


def test_an_expiration_is_honoured(secured: e2b.Sandbox, unique: str) -> None:
    secured.files.write(unique, "timed")
    url = secured.download_url(unique, use_signature_expiration=120)
    assert httpx.get(url).text == "timed"
    past = secured.download_url(unique, use_signature_expiration=-120)
    assert httpx.get(past).status_code == 401


def test_a_changed_url_is_refused(secured: e2b.Sandbox, unique: str) -> None:
    secured.files.write(unique, "x")
    url = secured.download_url(unique)
    assert httpx.get(url.replace(unique, "etc")).status_code == 401
    assert httpx.post(url, files={"file": b"x"}).status_code == 401
    assert httpx.get(f"{url}&username=root").status_code == 401
    assert httpx.get(f"{url}&signature_expiration={int(time.time()) + 60}").status_code == 401


def signed(raw: RawBox, path: str, operation: str, user: str | None, until: int | None) -> str:
    """The query of a signed URL, by the SDK's own signing function."""
    made = e2b.get_signature(path, operation, user, raw.token, None)
    signature = made["signature"]
    if until is not None:
        text = f"{path}:{operation}:{user or ''}:{raw.token}:{until}"
        digest = hashlib.sha256(text.encode()).digest()
        signature = "v1_" + base64.b64encode(digest).decode().rstrip("=")
    query = {"path": path, "signature": signature}
    if user:
        query["username"] = user
    if until is not None:
        query["signature_expiration"] = str(until)
    return urlencode(query)


def ask(raw: RawBox, query: str, **headers: str) -> tuple[int, str]:
    """GET /files of this very box, by routing headers, without its token."""
    got = raw.port(AGENT_PORT, "GET", f"/files?{query}", headers=headers)
    return got.status, got.json()["message"] if got.status != 200 else got.text


def test_the_agent_says_exactly_what_is_wrong(raw: RawBox, unique: str) -> None:
    raw.agent("POST", f"/files?path={unique}", b"hi", {"Content-Type": "application/octet-stream"})
    now = int(time.time())
    good = signed(raw, unique, "read", None, None)
    assert ask(raw, good) == (200, "hi")
    assert ask(raw, signed(raw, unique, "read", "user", now + 60)) == (200, "hi")
    assert ask(raw, f"path={unique}") == (401, "missing signature query parameter")
    assert ask(raw, signed(raw, unique, "write", None, None)) == (401, "invalid signature")
    assert ask(raw, f"{good}&signature_expiration={now + 60}") == (401, "invalid signature")
    expired = signed(raw, unique, "read", None, now - 60)
    assert ask(raw, expired) == (401, "signature is already expired")
    wrong = {"X-Access-Token": "0" * 64}
    message = "access token present in header but does not match"
    assert ask(raw, good, **wrong) == (401, message)
    gone = signed(raw, "demo/test.txt", "read", None, None)
    assert ask(raw, gone) == (404, "path '/home/user/demo/test.txt' does not exist")


def test_the_url_has_the_stock_shape(secured: e2b.Sandbox) -> None:
    parts = urlsplit(secured.download_url("/tmp/a.txt"))
    assert parts.path == "/files"
    assert "path=%2Ftmp%2Fa.txt" in parts.query
    assert "signature=v1_" in parts.query
    assert "username" not in parts.query
