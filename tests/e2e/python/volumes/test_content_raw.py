# SPDX-License-Identifier: Apache-2.0
"""The content API row by row, without an SDK: statuses, bodies, bad input, other people's tokens."""

from __future__ import annotations

import http.client
import random
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from support.server import Server, own_server
from support.tenants import two_teams
from support.waiting import eventually
from support.wire import Answer, Wire

STAT = {"name", "type", "path", "size", "mode", "uid", "gid", "atime", "mtime", "ctime"}


@dataclass
class Content:
    wire: Wire
    id: str
    token: str

    def call(self, method: str, kind: str, path: str | None, body: Any = None, query: str = "", **more: Any) -> Answer:
        named = "" if path is None else f"path={quote_plus(path)}"
        headers = {"Authorization": f"Bearer {self.token}"} | more.pop("headers", {})
        target = f"/volumecontent/{self.id}/{kind}?{named}{query}"
        return self.wire.call(method, target, body, headers, with_key=False, **more)

    def put(self, path: str, data: bytes = b"x", query: str = "", **more: Any) -> Answer:
        return self.call("PUT", "file", path, data, query, **more)

    def stat(self, path: str) -> Answer:
        return self.call("GET", "path", path)

    def names(self, path: str = "/", query: str = "") -> list[str]:
        got = self.call("GET", "dir", path, query=query)
        assert got.status == 200, got.text
        return [one["path"] for one in got.json()]


def create(wire: Wire, name: str) -> Content:
    made = wire.call("POST", "/volumes", {"name": name})
    assert made.status == 201, made.text
    return Content(wire, made.json()["volumeID"], made.json()["token"])


def destroy(content: Content) -> None:
    assert content.wire.call("DELETE", f"/volumes/{content.id}").status == 204


@pytest.fixture
def content(wire: Wire, unique: str) -> Iterator[Content]:
    made = create(wire, unique)
    yield made
    destroy(made)


@pytest.fixture(scope="module")
def tiny() -> Iterator[Server]:
    """Volumes of 16 MiB, and few entries in a listing."""
    with own_server("--volume_mb", "16", "--volume_inodes", "64", "--volume_listing_max", "10", "--pool", "0") as made:
        yield made


def fails(answer: Answer, status: int, code: str | None = None) -> str:
    assert answer.status == status, (answer.status, answer.body)
    told = answer.json()
    assert isinstance(told["code"], str)
    assert code is None or told["code"] == code
    return told["message"]


# ---- paths ----


def test_stat_of_the_root_and_of_what_is_missing(content: Content) -> None:
    root = content.stat("/").json()
    assert set(root) == STAT
    assert (root["name"], root["path"], root["type"], root["uid"], root["gid"]) == ("/", "/", "directory", 0, 0)
    fails(content.stat("/nothing"), 404, "not_found")
    assert content.put("/file").status == 201
    fails(content.stat("/file/below"), 404)


def test_paths_are_cleaned(content: Content) -> None:
    assert content.put("/a b+c", b"1").status == 201
    spaced = content.wire.call(
        "GET", f"/volumecontent/{content.id}/path?path=%2Fa+b%2Bc", None, {"Authorization": f"Bearer {content.token}"}
    )
    assert spaced.json()["path"] == "/a b+c"
    assert content.call("POST", "dir", "/d").status == 201
    for path in ("d", "/d/", "//d", " /d ", "/./d", "/x/../d", "/../../d", "d/.", "/d/../d"):
        assert content.stat(path).json()["path"] == "/d", path
    for path in ("/..", ".", "../..", "//", "/d/.."):
        assert content.stat(path).json()["path"] == "/", path


@pytest.mark.parametrize("path", [None, "", "   ", "/a\x00b", "/" + "x" * 256, "/x" * 2500, "a/" * 3000])
def test_a_bad_path_is_refused(content: Content, path: str | None) -> None:
    for method, kind in (("GET", "path"), ("PATCH", "path"), ("DELETE", "path"), ("GET", "dir"), ("POST", "dir"),
                         ("GET", "file"), ("PUT", "file")):  # fmt: skip
        assert "path" in fails(content.call(method, kind, path, b"{}" if method == "PATCH" else None), 400)
    assert content.names() == []


def test_a_broken_escape_is_refused(content: Content) -> None:
    got = content.wire.call(
        "GET", f"/volumecontent/{content.id}/path?path=%zz", None, {"Authorization": f"Bearer {content.token}"}
    )
    fails(got, 400)


def test_names_of_any_bytes(content: Content) -> None:
    for name in ("ä\u2028😀", "a\nb", "%2e%2e", "-rf", "...", "a\\b", '"', "x" * 255):
        assert content.put(f"/{name}", b"1").json()["name"] == name
        assert content.call("GET", "file", f"/{name}").body == b"1"
    raw = f"/volumecontent/{content.id}/file?path=%2Fbad-%FF"
    assert content.wire.call("PUT", raw, b"1", {"Authorization": f"Bearer {content.token}"}).status == 201
    assert "/bad-\ufffd" in content.names()
    assert content.wire.call("GET", raw, None, {"Authorization": f"Bearer {content.token}"}).body == b"1"


def test_patch(content: Content) -> None:
    content.put("/f", b"1")
    got = content.call("PATCH", "path", "/f", {"uid": 1, "gid": 2, "mode": 0o4750})
    assert got.status == 200
    assert (got.json()["uid"], got.json()["gid"], got.json()["mode"]) == (1, 2, 0o4750)
    assert content.call("PATCH", "path", "/f", {}).status == 200
    assert content.call("PATCH", "path", "/f", {"mode": None, "other": 1}).json()["mode"] == 0o4750
    assert content.call("PATCH", "path", "/", {"mode": 0o700}).json()["mode"] == 0o700
    fails(content.call("PATCH", "path", "/none", {"uid": 1}), 404)
    for body in ({"uid": "1"}, {"mode": -1}, {"mode": 0o10000}, {"gid": 65536}, {"uid": 1.5}, {"uid": True}, [1]):
        fails(content.call("PATCH", "path", "/f", body), 400)
    fails(content.call("PATCH", "path", "/f", b"{"), 400)
    assert content.call("PATCH", "path", "/f", b"x" * 100000).status == 413


def test_delete(content: Content) -> None:
    content.put("/f")
    content.call("POST", "dir", "/d/e/f", query="&force=true")
    content.put("/d/e/g")
    assert content.call("DELETE", "path", "/f").status == 204
    assert content.call("DELETE", "path", "/d").status == 204
    fails(content.call("DELETE", "path", "/d"), 404)
    fails(content.call("DELETE", "path", "/"), 404)
    fails(content.call("DELETE", "path", "/x/y"), 404)
    assert content.names() == []


# ---- directories ----


def test_making_directories(content: Content) -> None:
    made = content.call("POST", "dir", "/a", query="&uid=3&gid=4&mode=448")
    assert made.status == 201
    told = made.json()
    assert (told["uid"], told["gid"], told["mode"], told["type"]) == (3, 4, 0o700, "directory")
    assert content.call("POST", "dir", "/b").json()["mode"] == 0o755
    fails(content.call("POST", "dir", "/a"), 409, "conflict")
    fails(content.call("POST", "dir", "/"), 409)
    fails(content.call("POST", "dir", "/p/q"), 404)
    assert content.call("POST", "dir", "/a", query="&force=true").json()["mode"] == 0o700
    assert content.call("POST", "dir", "/", query="&force=true").status == 201
    assert content.call("POST", "dir", "/p/q/r", query="&force=true&uid=9&mode=493").status == 201
    assert content.stat("/p").json()["uid"] == 9
    content.put("/file")
    for query in ("", "&force=true"):
        fails(content.call("POST", "dir", "/file", query=query), 409)
    fails(content.call("POST", "dir", "/file/x", query="&force=true"), 409)
    fails(content.call("POST", "dir", "/file/x"), 404)


@pytest.mark.parametrize("query", ["&uid=-1", "&uid=65536", "&gid=x", "&mode=0o755", "&mode=4096", "&force=1",
                                   "&force=TRUE", "&uid=1.0", "&mode="])  # fmt: skip
def test_bad_numbers_are_refused(content: Content, query: str) -> None:
    fails(content.call("POST", "dir", "/a", query=query), 400, "bad_request")
    fails(content.put("/a", query=query), 400)
    assert content.names() == []


def test_listing(content: Content) -> None:
    assert content.names() == []
    content.call("POST", "dir", "/a/b/c", query="&force=true")
    content.put("/z")
    content.put("/a/y")
    assert content.names() == ["/a", "/z"]
    assert content.names("/", "&depth=2") == ["/a", "/z", "/a/b", "/a/y"]
    assert content.names("/a", "&depth=99999999999") == ["/a/b", "/a/y", "/a/b/c"]
    fails(content.call("GET", "dir", "/z"), 404)
    fails(content.call("GET", "dir", "/none"), 404)
    for depth in ("0", "-1", "x", "1.5", "", "99999999999999999999999"):
        fails(content.call("GET", "dir", "/", query=f"&depth={depth}"), 400)
    assert all(set(one) == STAT for one in content.call("GET", "dir", "/").json())


def test_a_listing_has_a_limit(tiny: Server, unique: str) -> None:
    content = create(tiny.wire, unique)
    for i in range(11):
        assert content.put(f"/{i}").status == 201
    assert "10" in fails(content.call("GET", "dir", "/"), 400)
    destroy(content)


# ---- files ----


def test_writing_and_reading(content: Content) -> None:
    made = content.put("/f", b"hello", "&uid=1&gid=2&mode=384")
    assert made.status == 201
    assert set(made.json()) == STAT
    assert (made.json()["uid"], made.json()["gid"], made.json()["mode"], made.json()["size"]) == (1, 2, 0o600, 5)
    got = content.call("GET", "file", "/f")
    assert (got.status, got.body, got.headers["content-type"]) == (200, b"hello", "application/octet-stream")
    assert content.put("/empty", b"").status == 201
    empty = content.call("GET", "file", "/empty")
    assert (empty.status, empty.body, empty.headers["content-length"]) == (200, b"", "0")
    fails(content.put("/f", b"2"), 409, "conflict")
    again = content.put("/f", b"22", "&force=true")
    assert (again.status, again.json()["mode"], again.json()["uid"]) == (201, 0o644, 0)
    assert content.call("GET", "file", "/f").body == b"22"
    content.call("POST", "dir", "/d")
    for query in ("", "&force=true"):
        fails(content.put("/d", query=query), 409)
        fails(content.put("/", query=query), 409)
        fails(content.put("/none/f", query=query), 404)
        fails(content.put("/f/below", query=query), 404)
    fails(content.call("GET", "file", "/d"), 404)
    fails(content.call("GET", "file", "/none"), 404)
    assert content.names() == ["/d", "/empty", "/f"]


def test_chunked_bodies(content: Content) -> None:
    assert content.put("/c", b"a" * 300000, chunked=True).json()["size"] == 300000
    assert content.call("GET", "file", "/c").body == b"a" * 300000


def test_a_body_that_breaks_off_leaves_nothing(content: Content) -> None:
    content.put("/kept", b"old")
    for path, query in (("/new", ""), ("/kept", "&force=true")):
        head = (f"PUT /volumecontent/{content.id}/file?path={quote(path)}{query} HTTP/1.1\r\nHost: x\r\n"
                f"Authorization: Bearer {content.token}\r\nContent-Length: 1000000\r\n\r\n")  # fmt: skip
        with content.wire.open() as link:
            link.sendall(head.encode() + b"x" * 500000)
            time.sleep(0.2)  # the bytes arrive before the connection ends
    assert content.names() == ["/kept"]
    assert content.call("GET", "file", "/kept").body == b"old"
    assert content.stat("/").json()["type"] == "directory"


def test_of_parallel_writers_one_wins_whole(content: Content) -> None:
    bodies = [bytes([65 + i]) * 2_000_000 for i in range(8)]
    with ThreadPoolExecutor(8) as pool:
        codes = sorted(pool.map(lambda b: content.put("/once", b).status, bodies))
        assert codes == [201] + [409] * 7
        assert content.call("GET", "file", "/once").body in bodies
        assert set(pool.map(lambda b: content.put("/many", b, "&force=true").status, bodies)) == {201}
    assert content.call("GET", "file", "/many").body in bodies
    assert content.names() == ["/many", "/once"]


def test_a_full_volume(tiny: Server, unique: str) -> None:
    content = create(tiny.wire, unique)
    assert content.put("/kept", b"k" * 1000).status == 201
    head = (f"PUT /volumecontent/{content.id}/file?path=/big HTTP/1.1\r\nHost: x\r\n"
            f"Authorization: Bearer {content.token}\r\nContent-Length: {40 << 20}\r\n\r\n")  # fmt: skip
    with content.wire.open() as link:
        link.sendall(head.encode())
        early = link.recv(65536)
    assert early.startswith(b"HTTP/1.1 507")
    assert b"bytes left" in early
    chunked = tiny.wire.connect()
    chunked.putrequest("PUT", f"/volumecontent/{content.id}/file?path=/big")
    for name, value in (("Authorization", f"Bearer {content.token}"), ("Transfer-Encoding", "chunked")):
        chunked.putheader(name, value)
    chunked.endheaders()
    try:
        for _ in range(40):
            chunked.send(b"100000\r\n" + b"x" * (1 << 20) + b"\r\n")
    except (BrokenPipeError, ConnectionResetError):
        pass
    try:
        answer = chunked.getresponse()
        assert (answer.status, b"volume_mb" in answer.read()) == (507, True)
    except (http.client.HTTPException, ConnectionError):
        pass
    assert content.names() == ["/kept"]

    def stored() -> bool:
        return content.put("/fits", b"y" * (4 << 20), "&force=true").status == 201

    eventually(stored)
    for i in range(100):
        got = content.put(f"/{i}")
        if got.status != 201:
            break
    assert "volume_inodes" in fails(got, 507)
    destroy(content)


def test_a_volume_that_gets_full_in_the_middle_of_an_upload(tiny: Server, unique: str) -> None:
    """It fitted when it began."""
    content = create(tiny.wire, unique)
    link = tiny.wire.connect()
    link.putrequest("PUT", f"/volumecontent/{content.id}/file?path=/big")
    link.putheader("Authorization", f"Bearer {content.token}")
    link.putheader("Content-Length", str(10 << 20))
    link.endheaders()
    link.send(b"x" * (1 << 20))
    assert content.put("/other", b"y" * (10 << 20)).status == 201
    with suppress(BrokenPipeError, ConnectionResetError):
        link.send(b"x" * (9 << 20))
    answer = link.getresponse()
    assert (answer.status, b"volume_mb" in answer.read()) == (507, True)
    assert content.names() == ["/other"]
    destroy(content)


# ---- links: boxes make them; here the host's root does ----


def test_deep_trees_go(content: Content) -> None:
    path = ""
    for _ in range(8):
        path += "/d" * 200
        assert content.call("POST", "dir", path, query="&force=true").status == 201
    assert content.call("DELETE", "path", "/d").status == 204
    assert content.names() == []


# ---- tokens ----


def test_who_may(content: Content, wire: Wire, unique: str) -> None:
    other = create(wire, unique + "b")
    content.put("/secret", b"SECRET")
    stranger = Content(wire, content.id, other.token)
    for method, kind in (("GET", "path"), ("PATCH", "path"), ("DELETE", "path"), ("GET", "dir"), ("POST", "dir"),
                         ("GET", "file"), ("PUT", "file")):  # fmt: skip
        body = b"{}" if method in ("PATCH", "PUT") else None
        fails(stranger.call(method, kind, "/secret", body), 403, "forbidden")
        fails(stranger.call(method, kind, "/secret", body, headers={"Authorization": ""}), 401, "unauthorized")
        wrong = content.token[:-1] + ("0" if content.token[-1] != "0" else "1")
        fails(stranger.call(method, kind, "/secret", body, headers={"Authorization": f"Bearer {wrong}"}), 401)
        fails(content.call(method, kind, "/secret", body, headers={"Authorization": f"Basic {content.token}"}), 401)
    key_only = wire.call("GET", f"/volumecontent/{content.id}/path?path=/secret")
    fails(key_only, 401)
    destroy(other)
    fails(other.stat("/"), 401)
    fails(Content(wire, "not-a-uuid", content.token).stat("/"), 400)
    assert content.call("GET", "file", "/secret").body == b"SECRET"


def test_guesses_are_throttled_and_a_known_token_is_not(unique: str) -> None:
    with own_server("--auth_failures_per_minute", "5", "--pool", "0") as server:
        two_teams(server)
        content = create(server.wire, unique)
        assert content.stat("/").status == 200
        guesser = Content(server.wire, content.id, "cvol_guess")
        assert {guesser.stat("/").status for _ in range(40)} == {401, 429}
        # each gate counts for itself, and knows the tokens that it has seen
        assert 200 in {content.stat("/").status for _ in range(20)}


def test_no_body_is_read_for_a_stranger(content: Content) -> None:
    head = (f"PUT /volumecontent/{content.id}/file?path=/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong\r\n"
            f"Expect: 100-continue\r\nContent-Length: 100000000\r\n\r\n")  # fmt: skip
    with socket.create_connection(content.wire.address, 10) as link:
        link.sendall(head.encode())
        assert link.recv(65536).startswith(b"HTTP/1.1 401")


def upload_in_pieces(content: Content, path: str, body: bytes, sizes: list[int], chunked: bool) -> int:
    """Pieces that come after a pause: whatever the server does with one ends before the next."""
    link = content.wire.connect()
    link.putrequest("PUT", f"/volumecontent/{content.id}/file?path={path}&force=true")
    link.putheader("Authorization", f"Bearer {content.token}")
    if chunked:
        link.putheader("Transfer-Encoding", "chunked")
    else:
        link.putheader("Content-Length", str(len(body)))
    link.endheaders()
    at = 0
    for size in [*sizes, len(body) - sum(sizes)]:
        piece = body[at : at + size]
        link.send(b"%x\r\n%b\r\n" % (size, piece) if chunked else piece)
        at += size
        time.sleep(0.02)  # it arrives alone
    if chunked:
        link.send(b"0\r\n\r\n")
    status = link.getresponse().status
    link.close()
    return status


@pytest.mark.parametrize("chunked", [False, True])
def test_large_uploads_at_once_come_whole(content: Content, chunked: bool) -> None:
    """More of them than go by the fast way, in pieces of all sizes."""
    chosen = random.Random(7)
    body = chosen.randbytes(9_000_001)

    def one(number: int) -> int:
        sizes = [1, 70_000, 3_000_000, 5, 1 << 20, number * 1000 + 1, 65_536]
        return upload_in_pieces(content, f"/{number}", body, sizes, chunked)

    with ThreadPoolExecutor(5) as threads:
        assert set(threads.map(one, range(5))) == {201}
    for number in range(5):
        assert content.call("GET", "file", f"/{number}").body == body


def test_who_leaves_in_a_large_upload_leaves_room_for_others(content: Content) -> None:
    for _ in range(6):
        link = content.wire.connect()
        link.putrequest("PUT", f"/volumecontent/{content.id}/file?path=/left")
        link.putheader("Authorization", f"Bearer {content.token}")
        link.putheader("Content-Length", "50000000")
        link.endheaders()
        link.send(b"x" * 6_000_000)
        link.close()
    assert content.put("/whole", b"y" * 20_000_000).status == 201
    assert content.call("GET", "file", "/whole").body == b"y" * 20_000_000
    assert content.names() == ["/whole"]
