# SPDX-License-Identifier: Apache-2.0
"""The Connect protocol as the agent speaks it, byte by byte."""

from __future__ import annotations

import base64
import json
import time

import pytest

from support.wire import RawBox, enveloped, frames_of

START = "process.Process/Start"
STREAM = {"Content-Type": "application/connect+json", "Connect-Protocol-Version": "1"}


def shell(command: str, **more: object) -> dict[str, object]:
    return {"process": {"cmd": "/bin/bash", "args": ["-c", command]}, "stdin": False} | more


def test_a_stream_is_start_data_end_and_end_of_stream(raw: RawBox) -> None:
    answer, frames = raw.stream(START, shell("echo hi"))
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/connect+json"
    assert answer.headers["Content-Encoding"] is None
    events = [frame.json() for frame in frames]
    assert [frame.flags for frame in frames] == [0] * (len(frames) - 1) + [2]
    assert list(events[0]["event"]) == ["start"]
    assert events[0]["event"]["start"]["pid"] > 1
    assert events[1] == {"event": {"data": {"stdout": "aGkK"}}}
    assert events[2] == {"event": {"end": {"exited": True, "status": "exit status 0"}}}
    assert events[3] == {}


def test_a_stream_asks_proxies_not_to_buffer_it(raw: RawBox) -> None:
    answer, _ = raw.stream(START, shell("true"))
    assert answer.headers["X-Accel-Buffering"] == "no"
    assert raw.rpc("filesystem.Filesystem/Stat", {"path": "/"}).headers["X-Accel-Buffering"] is None


def test_links_keep_the_type_of_their_target_and_say_that_they_are_links(raw: RawBox) -> None:
    raw.run("mkdir -p /tmp/links/dir && cd /tmp/links && touch file && ln -s file a && ln -s dir b && ln -s nowhere c")
    listed = raw.rpc("filesystem.Filesystem/ListDir", {"path": "/tmp/links", "depth": 1}).json()["entries"]
    found = {entry["name"]: (entry.get("type"), entry.get("isSymlink")) for entry in listed}
    assert found == {
        "a": ("FILE_TYPE_FILE", True),
        "b": ("FILE_TYPE_DIRECTORY", True),
        "c": (None, True),
        "dir": ("FILE_TYPE_DIRECTORY", None),
        "file": ("FILE_TYPE_FILE", None),
    }
    moved = raw.rpc("filesystem.Filesystem/Move", {"source": "/tmp/links/c", "destination": "/tmp/links/d"})
    assert moved.json()["entry"]["isSymlink"] is True


def test_clients_that_refuse_unknown_fields_get_no_new_one(raw: RawBox) -> None:
    raw.run("ln -sfn /etc/passwd /tmp/old-link")
    headers = {"User-Agent": "connect-python"}
    entry = raw.rpc("filesystem.Filesystem/Stat", {"path": "/tmp/old-link"}, headers=headers).json()["entry"]
    assert set(entry) == {"name", "type", "path"}


@pytest.mark.parametrize(
    "command, end",
    [
        ("exit 3", {"exitCode": 3, "exited": True, "status": "exit status 3",
                    "error": "exit status 3"}),
        ("kill -9 $$", {"exitCode": -1, "status": "signal: killed", "error": "signal: killed"}),
        ("kill -1 $$", {"exitCode": -1, "status": "signal: hangup", "error": "signal: hangup"}),
    ],
)  # fmt: skip
def test_the_end_event_tells_how_the_process_ended(raw: RawBox, command: str, end: dict[str, object]) -> None:
    _, frames = raw.stream(START, shell(command))
    assert frames[-2].json() == {"event": {"end": end}}


def test_a_missing_program_is_an_exit_code_not_an_rpc_error(raw: RawBox) -> None:
    _, frames = raw.stream(START, {"process": {"cmd": "no-such-program"}, "stdin": False})
    assert frames[-1].json() == {}
    assert frames[-2].json()["event"]["end"]["exitCode"] == 127
    assert any("stderr" in f.json().get("event", {}).get("data", {}) for f in frames[1:-2])
    _, frames = raw.stream(START, {"process": {"cmd": "/etc/passwd"}, "stdin": False})
    assert frames[-2].json()["event"]["end"]["exitCode"] == 126


def test_stream_failures_are_http_200_with_an_error_in_the_last_frame(raw: RawBox) -> None:
    answer, frames = raw.stream("process.Process/Connect", {"process": {"pid": 999999}})
    assert answer.status == 200
    assert [frame.flags for frame in frames] == [2]
    message = "process with pid 999999 not found"
    assert frames[0].json() == {"error": {"code": "not_found", "message": message}}
    _, frames = raw.stream("process.Process/Connect", {"process": {"tag": "nobody"}})
    assert frames[0].json()["error"]["message"] == "process with tag nobody not found"
    answer, frames = raw.stream(START, shell("true"), user="ghost")
    assert answer.status == 200
    error = {"code": "unauthenticated", "message": "invalid username: 'ghost'"}
    assert frames[0].json() == {"error": error}


def test_unary_failures_use_the_http_status_of_their_code(raw: RawBox) -> None:
    got = raw.rpc("filesystem.Filesystem/Stat", {"path": "/nowhere"})
    assert (got.status, got.json()["code"]) == (404, "not_found")
    assert got.headers["Content-Type"] == "application/json"
    got = raw.rpc("filesystem.Filesystem/MakeDir", {"path": "/tmp"})
    assert (got.status, got.json()["code"]) == (409, "already_exists")
    got = raw.rpc("filesystem.Filesystem/ListDir", {"path": "/etc/passwd"})
    assert (got.status, got.json()["code"]) == (400, "invalid_argument")
    got = raw.rpc("filesystem.Filesystem/Stat", {"path": "~other/x"})
    assert (got.status, got.json()["code"]) == (400, "invalid_argument")
    got = raw.rpc("filesystem.Filesystem/Stat", {"path": "/"}, user="ghost")
    assert (got.status, got.json()["code"]) == (401, "unauthenticated")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"path": 7}', b"\xff\xfe"])
def test_what_is_not_the_message_is_an_invalid_argument(raw: RawBox, body: bytes) -> None:
    got = raw.rpc("filesystem.Filesystem/Stat", body)
    assert (got.status, got.json()["code"]) == (400, "invalid_argument")


def test_json_is_read_generously(raw: RawBox) -> None:
    odd = b'{"path": "\\u002fetc", "depth": "1", "unknown": {"a": [1, null]}, "nothing": null}'
    got = raw.rpc("filesystem.Filesystem/ListDir", odd)
    assert got.status == 200
    assert "passwd" in {entry["name"] for entry in got.json()["entries"]}
    charset = {"Content-Type": "application/json; charset=UTF-8"}
    assert raw.rpc("process.Process/List", {}, charset).status == 200
    identity = {"Content-Encoding": "identity", "Accept-Encoding": "identity"}
    assert raw.rpc("process.Process/List", {}, identity).status == 200


def test_an_empty_answer_is_two_braces(raw: RawBox) -> None:
    got = raw.rpc("filesystem.Filesystem/Remove", {"path": "/tmp/not-there"})
    assert (got.status, got.body) == (200, b"{}")


def test_entries_follow_the_json_mapping(raw: RawBox) -> None:
    raw.run("printf 1234 > /tmp/mapped; chown user:user /tmp/mapped", user="root")
    entry = raw.rpc("filesystem.Filesystem/Stat", {"path": "/tmp/mapped"}).json()["entry"]
    assert entry.pop("modifiedTime").endswith("Z")
    assert entry == {
        "name": "mapped",
        "type": "FILE_TYPE_FILE",
        "path": "/tmp/mapped",
        "size": "4",
        "mode": 420,
        "permissions": "-rw-r--r--",
        "owner": "user",
        "group": "user",
    }


def test_absolute_paths_are_echoed_as_given(raw: RawBox) -> None:
    entry = raw.rpc("filesystem.Filesystem/Stat", {"path": "/etc/../etc//passwd"}).json()["entry"]
    assert entry["path"] == "/etc/../etc//passwd"
    entry = raw.rpc("filesystem.Filesystem/Stat", {"path": "a/../.profile"}).json()["entry"]
    assert entry["path"] == "/home/user/.profile"


def test_wrong_methods_types_and_paths_are_refused(raw: RawBox) -> None:
    assert raw.agent("GET", "/process.Process/List").status == 405
    assert raw.agent("GET", "/process.Process/List").headers["Allow"] == "POST"
    got = raw.agent("POST", "/process.Process/List", b"{}", {"Content-Type": "text/plain"})
    assert (got.status, got.body) == (415, b"")
    assert "application/json" in got.headers["Accept-Post"]
    assert raw.agent("GET", "/no/such/path").status == 404
    assert raw.agent("DELETE", "/files").status == 405


def test_the_protocol_version_and_deadline_headers_are_checked(raw: RawBox) -> None:
    got = raw.rpc("process.Process/List", {}, {"Connect-Protocol-Version": "2"})
    assert (got.status, got.json()["code"]) == (400, "invalid_argument")
    got = raw.rpc("process.Process/List", {}, {"Connect-Timeout-Ms": "soon"})
    assert (got.status, got.json()["code"]) == (400, "invalid_argument")
    got = raw.rpc("process.Process/List", {}, {"Connect-Timeout-Ms": "12345678901"})
    assert got.status == 400


def test_a_deadline_is_the_streams_error_and_kills_the_process(raw: RawBox) -> None:
    _, frames = raw.stream(START, shell("exec sleep 30"), {"Connect-Timeout-Ms": "500"})
    pid = frames[0].json()["event"]["start"]["pid"]
    assert frames[-1].json()["error"]["code"] == "deadline_exceeded"
    assert not any("end" in frame.json().get("event", {}) for frame in frames)
    code, _, _ = raw.run(f"for n in $(seq 30); do kill -0 {pid} || exit 7; sleep 0.1; done")
    assert code == 7


def test_the_deadline_of_a_gone_client_still_kills(raw: RawBox) -> None:
    with raw.open_stream(START, shell("exec sleep 30"), {"Connect-Timeout-Ms": "5000"}) as frames:
        pid = next(frames).json()["event"]["start"]["pid"]
    assert raw.run(f"kill -0 {pid}", user="root")[0] == 0
    code, _, _ = raw.run(f"for n in $(seq 500); do kill -0 {pid} || exit 7; sleep 0.1; done")
    assert code == 7


def test_keepalives_come_when_asked(raw: RawBox) -> None:
    message = shell("sleep 2.6; echo done")
    began = time.monotonic()
    _, frames = raw.stream(START, message, {"Keepalive-Ping-Interval": "1"})
    lasted = time.monotonic() - began
    pings = [f for f in frames if f.json().get("event") == {"keepalive": {}}]
    assert 1 <= len(pings) <= lasted + 1


def test_request_frames_are_counted(raw: RawBox) -> None:
    def code_of(body: bytes) -> str:
        got = raw.agent("POST", f"/{START}", body, STREAM)
        assert got.status == 200
        return frames_of(got.body)[-1].json()["error"]["code"]

    one = enveloped(json.dumps(shell("true")).encode())
    assert code_of(b"") == "unimplemented"
    assert code_of(one + one) == "unimplemented"
    assert code_of(one[:-3]) == "invalid_argument"
    assert code_of(b"\x00\xff\xff\xff\xff") in ("invalid_argument", "resource_exhausted")


def test_chunked_request_bodies_are_read(raw: RawBox) -> None:
    body = enveloped(json.dumps(shell("echo hi")).encode())
    got = raw.agent("POST", f"/{START}", body, STREAM, chunked=True)
    assert frames_of(got.body)[1].json() == {"event": {"data": {"stdout": "aGkK"}}}


def test_binary_messages_work_too(raw: RawBox) -> None:
    message = bytes.fromhex(
        "0a170a092f62696e2f62617368 12022d6c 12022d63 12026964 2000".replace(" ", "")
    )
    headers = {"Content-Type": "application/connect+proto", "Connect-Protocol-Version": "1"}
    got = raw.agent("POST", f"/{START}", enveloped(message), headers)
    assert got.headers["Content-Type"] == "application/connect+proto"
    frames = frames_of(got.body)
    assert frames[0].payload[:5] == b"\x0a" + bytes([len(frames[0].payload) - 2]) + b"\x0a" + (
        bytes([len(frames[0].payload) - 4]) + b"\x08"
    )
    assert any(b"uid=" in frame.payload for frame in frames)
    assert frames[-2].payload == bytes.fromhex("0a131a1110011a0d") + b"exit status 0"
    assert (frames[-1].flags, frames[-1].payload) == (2, b"{}")
    unary = raw.agent("POST", "/process.Process/List", b"", {"Content-Type": "application/proto"})
    assert unary.status == 200
    assert unary.headers["Content-Type"] == "application/proto"


def test_tags_select_processes_and_subscribers_share_output(raw: RawBox) -> None:
    message = shell("sleep 0.8; echo shared; exit 5", tag="mine")
    with raw.open_stream(START, message) as first:
        pid = next(first).json()["event"]["start"]["pid"]
        listed = raw.rpc("process.Process/List", {}).json()["processes"]
        assert [p["tag"] for p in listed if p["pid"] == pid] == ["mine"]
        _, second = raw.stream("process.Process/Connect", {"process": {"tag": "mine"}})
        data = base64.b64encode(b"shared\n").decode()
        assert next(first).json() == {"event": {"data": {"stdout": data}}}
    assert second[0].json() == {"event": {"start": {"pid": pid}}}
    assert second[1].json() == {"event": {"data": {"stdout": data}}}
    assert second[2].json()["event"]["end"]["exitCode"] == 5
    _, late = raw.stream("process.Process/Connect", {"process": {"tag": "mine"}})
    assert [list(f.json().get("event", {})) for f in late] == [["start"], ["end"], []]


def test_signals_and_inputs_refuse_what_they_cannot_do(raw: RawBox) -> None:
    with raw.open_stream(START, shell("exec sleep 20")) as frames:
        pid = next(frames).json()["event"]["start"]["pid"]
        who = {"process": {"pid": pid}}
        got = raw.rpc("process.Process/SendInput", who | {"input": {"stdin": "eA=="}})
        assert (got.status, got.json()["code"]) == (500, "internal")
        got = raw.rpc("process.Process/SendInput", who | {"input": {"pty": "eA=="}})
        assert got.json()["code"] == "internal"
        got = raw.rpc("process.Process/Update", who | {"pty": {"size": {"cols": 1, "rows": 1}}})
        assert got.json()["code"] == "internal"
        assert raw.rpc("process.Process/CloseStdin", who).body == b"{}"
        got = raw.rpc("process.Process/SendSignal", who | {"signal": "SIGNAL_UNSPECIFIED"})
        assert got.json()["code"] == "unimplemented"
        got = raw.rpc("process.Process/SendSignal", who | {"signal": "SIGNAL_SIGTERM"})
        assert (got.status, got.body) == (200, b"{}")
        end = next(frames).json()["event"]["end"]
        assert end["status"] == "signal: terminated"
    got = raw.rpc("process.Process/SendSignal", who | {"signal": "SIGNAL_SIGKILL"})
    assert (got.status, got.json()["code"]) == (404, "not_found")
