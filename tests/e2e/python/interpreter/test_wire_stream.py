# SPDX-License-Identifier: Apache-2.0
"""The interpreter's HTTP face: framing, validation, order, keepalive."""

from __future__ import annotations

import http.client
import json
import re
from typing import Any

import pytest

from support.wire import INTERPRETER_PORT, Answer, RawBox

GHOST = "00000000-0000-4000-8000-000000000000"


def post(box: RawBox, path: str, body: Any) -> Answer:
    return box.port(INTERPRETER_PORT, "POST", path, body, {"X-Access-Token": box.token})


def test_health_is_a_json_string(raw_cell: RawBox) -> None:
    got = raw_cell.port(INTERPRETER_PORT, "GET", "/health")
    assert (got.status, got.body) == (200, b'"OK"')


def test_a_cell_streams_count_output_result_and_end(raw_cell: RawBox) -> None:
    made = post(raw_cell, "/contexts", {}).json()
    events = raw_cell.execute('print("é"); 1+1', context_id=made["id"])
    stamp = events[1].pop("timestamp")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+\+00:00", stamp)
    assert events == [
        {"type": "number_of_executions", "execution_count": 1},
        {"type": "stdout", "text": "é\n"},
        {"type": "result", "text": "2", "extra": {}, "is_main_result": True},
        {"type": "end_of_execution"},
    ]


def test_every_byte_is_ascii_and_no_line_is_blank(raw_cell: RawBox) -> None:
    code = "print('漢字\\u2028\\x85😀'); {'é': float('nan'), 'i': float('inf')}"
    got = post(raw_cell, "/execute", {"code": code})
    got.body.decode("ascii")
    assert got.body.endswith(b"\n")
    assert b"\r" not in got.body
    assert b"\n\n" not in got.body
    assert b"NaN" not in got.body
    assert got.headers["Content-Encoding"] is None
    assert "chunked" in got.headers["Transfer-Encoding"]


def test_number_tokens_are_copied_as_they_are(raw_cell: RawBox) -> None:
    code = "display({'application/json': [100.0, 1e22, 2**62, 0.1]}, raw=True)"
    got = post(raw_cell, "/execute", {"code": code})
    assert re.search(rb"\[100\.0, ?1e\+22, ?4611686018427387904, ?0\.1\]", got.body)


def test_an_error_is_one_event_before_the_end(raw_cell: RawBox) -> None:
    events = raw_cell.execute("1/0")
    assert [event["type"] for event in events] == [
        "number_of_executions",
        "error",
        "end_of_execution",
    ]
    assert set(events[1]) == {"type", "name", "value", "traceback"}


def test_null_empty_and_unknown_fields_mean_nothing(raw_cell: RawBox) -> None:
    for extra in (
        {"context_id": None, "language": None, "env_vars": None},
        {"context_id": "", "language": ""},
        {"something": {"else": 1}},
    ):
        assert raw_cell.execute("1", **extra)[-1] == {"type": "end_of_execution"}
    got = post(raw_cell, "/execute?source=test", {"code": "1"})
    assert got.status == 200


def test_empty_code_is_fine(raw_cell: RawBox) -> None:
    assert raw_cell.execute("")[-1] == {"type": "end_of_execution"}


@pytest.mark.parametrize(
    "body, kind, where",
    [
        ({}, "missing", ["body", "code"]),
        ({"code": 5}, "string_type", ["body", "code"]),
        ({"code": "1", "env_vars": {"A": 1}}, None, ["body", "env_vars", "A"]),
        (b"{nope", "json_invalid", None),
        (b"", "missing", ["body"]),
    ],
)
def test_bad_requests_are_explained(raw_cell: RawBox, body, kind, where) -> None:
    got = post(raw_cell, "/execute", body)
    assert got.status == 422
    detail = got.json()["detail"][0]
    assert {"type", "loc", "msg"} <= set(detail)
    if kind:
        assert detail["type"] == kind
    if where:
        assert detail["loc"] == where


def test_a_context_and_a_language_exclude_each_other(raw_cell: RawBox) -> None:
    got = post(raw_cell, "/execute", {"code": "1", "context_id": GHOST, "language": "python"})
    assert (got.status, got.text) == (400, "Only one of context_id or language can be provided")
    got = post(raw_cell, "/execute", {"code": "1", "context_id": GHOST})
    assert (got.status, got.text) == (404, f"Context {GHOST} not found")
    got = post(raw_cell, "/execute", {"code": "1", "language": "cobol"})
    assert got.status == 500
    assert got.text.startswith("Failed to create context: ")


def test_context_routes_answer_as_documented(raw_cell: RawBox) -> None:
    port = INTERPRETER_PORT
    assert raw_cell.port(port, "POST", "/contexts").status == 422
    made = post(raw_cell, "/contexts", {"language": "JS", "cwd": None}).json()
    assert made["language"] == "javascript"
    assert made["cwd"] == "/home/user"
    path = f"/contexts/{made['id']}"
    kind = {"Content-Type": "application/json"}
    got = raw_cell.port(port, "POST", f"{path}/restart", headers=kind)
    assert (got.status, got.body) == (200, b"null")
    got = raw_cell.port(port, "DELETE", path, headers=kind)
    assert (got.status, got.body) == (200, b"null")
    got = raw_cell.port(port, "DELETE", path, headers=kind)
    assert (got.status, got.text) == (404, f"Context {made['id']} not found")
    shown = {"X-Access-Token": raw_cell.token}
    got = raw_cell.port(port, "GET", "/elsewhere", headers=shown)
    assert (got.status, got.json()) == (404, {"detail": "Not Found"})
    got = raw_cell.port(port, "PUT", "/execute", headers=shown)
    assert (got.status, got.json()) == (405, {"detail": "Method Not Allowed"})


def test_a_browsers_cross_origin_request_to_the_interpreter_is_allowed(raw_cell: RawBox) -> None:
    asked = {
        "Origin": "https://a.b",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "x-access-token",
    }
    got = raw_cell.port(INTERPRETER_PORT, "OPTIONS", "/execute", headers=asked)
    assert (got.status, got.text) == (200, "OK")
    assert got.headers["Access-Control-Allow-Headers"] == "x-access-token"


def open_execute(box: RawBox, **body: Any) -> http.client.HTTPResponse:
    connection = box.wire.connect(30)
    sent = box.routing(INTERPRETER_PORT) | {"X-Access-Token": box.token}
    connection.request("POST", "/execute", json.dumps(body).encode(), sent)
    return connection.getresponse()


def test_headers_and_output_come_before_the_end(raw_cell: RawBox) -> None:
    made = post(raw_cell, "/contexts", {}).json()
    code = "import os, time\nprint('a')\nwhile not os.path.exists('/tmp/heard'):\n    time.sleep(0.05)"
    first = open_execute(raw_cell, code=code, context_id=made["id"])
    lines = [json.loads(first.readline()) for _ in range(2)]
    assert lines[1]["text"] == "a\n"
    queued = open_execute(raw_cell, code="1", context_id=made["id"])
    assert queued.status == 200
    assert raw_cell.run("touch /tmp/heard")[0] == 0
    assert json.loads(queued.read().splitlines()[-1]) == {"type": "end_of_execution"}
    assert json.loads(first.read().splitlines()[-1]) == {"type": "end_of_execution"}


def test_silence_is_broken_by_keepalives(raw_cell: RawBox) -> None:
    made = post(raw_cell, "/contexts", {}).json()
    events = raw_cell.execute("import time; time.sleep(6)", context_id=made["id"])
    assert {"type": "keepalive"} in events
    assert events[0]["type"] == "number_of_executions"


def test_a_restart_ends_the_running_cell(raw_cell: RawBox) -> None:
    made = post(raw_cell, "/contexts", {}).json()
    running = open_execute(raw_cell, code="import time; time.sleep(30)", context_id=made["id"])
    assert running.readline()
    raw_cell.port(INTERPRETER_PORT, "POST", f"/contexts/{made['id']}/restart")
    events = [json.loads(line) for line in running.read().splitlines()]
    assert events[-2]["name"] == "UnexpectedEndOfExecution"
    wanted = "Connection to the execution was closed before the execution was finished"
    assert events[-2]["value"] == wanted
    assert events[-1] == {"type": "end_of_execution"}


def test_one_connection_serves_many_cells(raw_cell: RawBox) -> None:
    connection = raw_cell.wire.connect(30)
    sent = raw_cell.routing(INTERPRETER_PORT) | {"X-Access-Token": raw_cell.token}
    for n in range(20):
        connection.request("POST", "/execute", json.dumps({"code": f"{n}"}).encode(), sent)
        body = connection.getresponse().read()
        assert json.loads(body.splitlines()[1])["text"] == str(n)
    connection.close()


def test_a_flood_of_output_is_not_thinned(raw_cell: RawBox) -> None:
    code = "import sys\nfor n in range(5000):\n    sys.stdout.write(f'{n}\\n'); sys.stdout.flush()"
    events = raw_cell.execute(code)
    text = "".join(event["text"] for event in events if event["type"] == "stdout")
    assert text == "".join(f"{n}\n" for n in range(5000))
