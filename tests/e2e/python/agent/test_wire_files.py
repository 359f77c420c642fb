# SPDX-License-Identifier: Apache-2.0
"""/files and the other plain routes of the agent."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.wire import AGENT_PORT, RawBox

OCTETS = {"Content-Type": "application/octet-stream"}


def multipart(*parts: tuple[str, bytes], field: str = "file") -> tuple[bytes, dict[str, str]]:
    body = b""
    for name, content in parts:
        disposition = f'Content-Disposition: form-data; name="{field}"'
        if name:
            disposition += f'; filename="{name}"'
        body += b"--xYzZy\r\n" + disposition.encode() + b"\r\n\r\n" + content + b"\r\n"
    return body + b"--xYzZy--\r\n", {"Content-Type": "multipart/form-data; boundary=xYzZy"}


def test_health_needs_no_token_and_is_empty(raw: RawBox) -> None:
    got = raw.port(AGENT_PORT, "GET", "/health")
    assert (got.status, got.body) == (204, b"")
    assert got.headers["Cache-Control"] == "no-store"


def test_the_token_is_wanted_everywhere_else(raw: RawBox) -> None:
    message = (
        "unauthorized access, please provide a valid access token or method signing if supported"
    )
    for method, path in [
        ("POST", "/process.Process/List"),
        ("POST", "/process.Process/Start"),
        ("GET", "/metrics"),
        ("GET", "/envs"),
        ("POST", "/files/compose"),
    ]:
        for headers in ({}, {"X-Access-Token": "wrong"}):
            got = raw.port(AGENT_PORT, method, path, b"{}", headers)
            assert got.status == 401, path
            assert got.json() == {"code": 401, "message": message}


def test_control_routes_are_closed_to_the_outside(raw: RawBox) -> None:
    for path in ("/init", "/freeze", "/unfreeze", "/fsfreeze", "/fsthaw", "/collapse", "/upgrade"):
        got = raw.agent("POST", path, b"{}", {"Content-Type": "application/json"})
        assert got.status == 404, path
        assert got.json()["code"] == 404
        assert got.json()["path"] == path
    assert raw.agent("POST", "/x/../init", b"{}").status == 404
    assert raw.agent("POST", "//init", b"{}").status in (404, 400)
    assert raw.agent("POST", "/%69nit", b"{}").status in (404, 400)


def test_envs_lists_the_boxs_variables(raw: RawBox) -> None:
    envs = raw.agent("GET", "/envs").json()
    assert envs["E2B_SANDBOX"] == "true"
    assert envs["E2B_SANDBOX_ID"] == raw.id


def test_metrics_have_every_key(raw: RawBox) -> None:
    figures = raw.agent("GET", "/metrics").json()
    assert set(figures) == {
        "ts", "cpu_count", "cpu_used_pct", "mem_total", "mem_used", "mem_cache",
        "mem_total_mib", "mem_used_mib", "disk_total", "disk_used",
    }  # fmt: skip
    assert 0 < figures["mem_used"] < figures["mem_total"]


def test_an_upload_answers_exactly_what_was_written(raw: RawBox, unique: str) -> None:
    body, kind = multipart(("ignored.bin", b"content"))
    got = raw.agent("POST", f"/files?path={unique}", body, kind)
    path = f"/home/user/{unique}"
    assert got.json() == [{"path": path, "name": unique, "type": "file"}]
    assert raw.agent("GET", f"/files?path={path}").body == b"content"


def test_without_a_path_the_file_names_are_the_paths(raw: RawBox, unique: str) -> None:
    body, kind = multipart((f"{unique}/a.txt", b"A"), (f"/tmp/{unique}.txt", b"\r\n--xYzZ\r\n"))
    got = raw.agent("POST", "/files", body, kind)
    assert [entry["path"] for entry in got.json()] == [
        f"/home/user/{unique}/a.txt",
        f"/tmp/{unique}.txt",
    ]
    assert raw.agent("GET", f"/files?path=/tmp/{unique}.txt").body == b"\r\n--xYzZ\r\n"


def test_bad_uploads_are_refused(raw: RawBox, unique: str) -> None:
    def refused(path: str, body: bytes, kind: dict[str, str]) -> str:
        got = raw.agent("POST", path, body, kind)
        assert got.status == 400, got.body
        assert got.json()["code"] == 400
        return got.json()["message"]

    body, kind = multipart((f"{unique}.x", b"1"), (f"{unique}.x", b"2"))
    refused("/files", body, kind)
    body, kind = multipart(("", b"1"))
    refused("/files", body, kind)
    wanted = "path query parameter is required for raw body upload"
    assert refused("/files", b"x", OCTETS) == wanted
    json_kind = {"Content-Type": "application/json"}
    assert refused(f"/files?path={unique}", b"{}", json_kind).startswith("unsupported content type")
    refused(f"/files?path={unique}", b"not gzip", OCTETS | {"Content-Encoding": "gzip"})
    refused(f"/files?path={unique}", b"x", OCTETS | {"Content-Encoding": "br"})
    assert "is a directory" in refused("/files?path=/tmp", b"x", OCTETS)
    refused("/files?path=~ghost/x", b"x", OCTETS)


def test_an_unknown_user_is_named(raw: RawBox) -> None:
    got = raw.agent("GET", "/files?path=x&username=ghost")
    assert got.status == 401
    assert got.json()["message"] == "error looking up user 'ghost': user: unknown user ghost"


@pytest.mark.parametrize("chunked", [True, False])
def test_gzip_uploads_are_inflated(raw: RawBox, unique: str, chunked: bool) -> None:
    packed = gzip.compress(b"unpacked" * 10_000)
    kind = OCTETS | {"Content-Encoding": "gzip"}
    assert raw.agent("POST", f"/files?path={unique}", packed, kind, chunked=chunked).status == 200
    assert raw.agent("GET", f"/files?path={unique}").body == b"unpacked" * 10_000
    body, kind = multipart(("x", b"in a form"))
    packed = gzip.compress(body)
    raw.agent("POST", f"/files?path={unique}", packed, kind | {"Content-Encoding": "gzip"})
    assert raw.agent("GET", f"/files?path={unique}").body == b"in a form"


def test_a_download_tells_its_type_length_and_name(raw: RawBox, unique: str) -> None:
    raw.agent("POST", f"/files?path={unique}.txt", b"0123456789", OCTETS)
    got = raw.agent("GET", f"/files?path={unique}.txt")
    assert got.headers["Content-Length"] == "10"
    assert got.headers["Content-Disposition"] == f"inline; filename={unique}.txt"
    assert got.headers["Accept-Ranges"] == "bytes"
    assert got.headers["Last-Modified"]
    assert "Accept-Encoding" in got.headers["Vary"]
    since = {"If-Modified-Since": got.headers["Last-Modified"]}
    assert raw.agent("GET", f"/files?path={unique}.txt", headers=since).status == 304


def test_a_range_request_gets_that_part_of_the_file(raw: RawBox, unique: str) -> None:
    raw.agent("POST", f"/files?path={unique}", b"0123456789", OCTETS)

    def part(span: str) -> tuple[int, bytes, str | None]:
        got = raw.agent("GET", f"/files?path={unique}", headers={"Range": f"bytes={span}"})
        return got.status, got.body, got.headers["Content-Range"]

    assert part("2-4") == (206, b"234", "bytes 2-4/10")
    assert part("7-") == (206, b"789", "bytes 7-9/10")
    assert part("-2") == (206, b"89", "bytes 8-9/10")
    status, _, content_range = part("10-")
    assert (status, content_range) == (416, "bytes */10")


def test_an_upload_of_many_megabytes_comes_back_whole(raw: RawBox, unique: str) -> None:
    content = bytes(range(256)) * 4096 * 32
    got = raw.agent("POST", f"/files?path={unique}", content, OCTETS, chunked=True)
    assert got.status == 200
    assert raw.agent("GET", f"/files?path={unique}").body == content
    assert raw.run(f"rm {unique}; cd", cwd="/home/user")[0] == 0


def test_compose_joins_files_in_order(raw: RawBox, unique: str) -> None:
    for n in range(3):
        raw.agent("POST", f"/files?path={unique}.{n}", f"part {n}\n".encode(), OCTETS)
    wanted = {
        "source_paths": [f"{unique}.{n}" for n in range(3)],
        "destination": f"{unique}/whole",
    }
    raw.rpc("filesystem.Filesystem/MakeDir", {"path": unique})
    got = raw.agent("POST", "/files/compose", wanted)
    assert got.status == 200, got.body
    path = f"/home/user/{unique}/whole"
    assert got.json() == {"path": path, "name": "whole", "type": "file"}
    assert raw.agent("GET", f"/files?path={path}").body == b"part 0\npart 1\npart 2\n"
    assert raw.agent("GET", f"/files?path={unique}.0").status == 404
    assert raw.agent("POST", "/files/compose", wanted).status == 404
    assert raw.agent("POST", "/files/compose", wanted | {"source_paths": []}).status == 400


def test_parallel_uploads_into_the_same_new_directory(raw: RawBox, unique: str) -> None:
    def put(n: int) -> int:
        path = f"/files?path={unique}/deep/er/{n}"
        return raw.agent("POST", path, b"x", OCTETS).status

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(put, range(8))) == [200] * 8


def test_a_browsers_cross_origin_request_to_the_agent_is_allowed(raw: RawBox) -> None:
    asked = {
        "Origin": "https://app.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,x-access-token",
    }
    got = raw.port(AGENT_PORT, "OPTIONS", "/process.Process/List", headers=asked)
    assert (got.status, got.body) == (204, b"")
    assert got.headers["Access-Control-Allow-Origin"] == "*"
    assert got.headers["Access-Control-Allow-Methods"] == "POST"
    assert got.headers["Access-Control-Allow-Headers"] == "authorization,x-access-token"
    assert got.headers["Access-Control-Max-Age"] == "7200"
    got = raw.port(AGENT_PORT, "POST", "/process.Process/List", headers={"Origin": "https://a.b"})
    assert got.status == 401
    assert got.headers["Access-Control-Allow-Origin"] == "*"


def test_metadata_headers_have_limits(raw: RawBox, unique: str) -> None:
    def put(**metadata: str) -> int:
        sent = OCTETS | {f"X-Metadata-{key}": value for key, value in metadata.items()}
        return raw.agent("POST", f"/files?path={unique}", b"x", sent).status

    assert put(k="v") == 200
    assert put(**{"k" * 247: "v"}) == 400
    assert put(k="v" * 4087) == 400
    assert put(k="v" * 2000) == 200


def test_a_watcher_that_was_removed_is_unknown(raw: RawBox) -> None:
    made = raw.rpc("filesystem.Filesystem/CreateWatcher", {"path": "/tmp"}).json()
    assert raw.rpc("filesystem.Filesystem/GetWatcherEvents", made).body == b"{}"
    raw.agent("POST", "/files?path=/tmp/test.txt", b"x", OCTETS)
    events = raw.rpc("filesystem.Filesystem/GetWatcherEvents", made).json()["events"]
    assert events[0] == {"name": "test.txt", "type": "EVENT_TYPE_CREATE"}
    assert raw.rpc("filesystem.Filesystem/RemoveWatcher", made).body == b"{}"
    got = raw.rpc("filesystem.Filesystem/GetWatcherEvents", made)
    assert (got.status, json.loads(got.body)["code"]) == (404, "not_found")
    assert raw.rpc("filesystem.Filesystem/RemoveWatcher", made).status == 404


def test_large_plain_bodies_arrive_to_the_byte(raw: RawBox) -> None:
    """They stay in the kernel from socket to file; sizes around its pages and pipes, several at once."""
    dice = random.Random(7)
    bodies = [dice.randbytes(size) for size in ((1 << 20) - 1, 1 << 20, (5 << 20) + 4097, (23 << 20) + 1)]

    def put(number: int) -> int:
        return raw.agent("POST", f"/files?path=/tmp/large{number}&username=user", bodies[number], OCTETS).status

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(put, range(4))) == [200] * 4
    for number, body in enumerate(bodies):
        _code, out, _err = raw.run(f"sha256sum < /tmp/large{number}")
        assert out.split()[0] == hashlib.sha256(body).hexdigest()
        assert raw.agent("GET", f"/files?path=/tmp/large{number}&username=user").body == body


def test_a_large_body_that_finds_no_room_is_told_so(raw: RawBox) -> None:
    got = raw.agent("POST", "/files?path=/dev/full&username=root", bytes(9 << 20), OCTETS)
    assert (got.status, "space" in got.json()["message"]) == (507, True)
    assert raw.agent("POST", "/files?path=/tmp/after&username=user", bytes(3 << 20), OCTETS).status == 200
