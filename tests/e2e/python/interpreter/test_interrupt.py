# SPDX-License-Identifier: Apache-2.0
"""POST /interrupt: the running cell ends, its client hears all of it, and others go on."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from support.wire import INTERPRETER_PORT, Answer, RawBox

pytestmark = pytest.mark.timeout(180)

GHOST = "00000000-0000-4000-8000-000000000000"


class Cell:
    """A cell whose answer is read as it comes."""

    def __init__(self, box: RawBox, link: http.client.HTTPConnection, body: dict[str, Any]) -> None:
        sent = box.headers(INTERPRETER_PORT) | {"Content-Type": "application/json"}
        link.request("POST", "/execute", json.dumps(body).encode(), sent)
        self.answer = link.getresponse()
        assert self.answer.status == 200, self.answer.read()
        self.id = self.answer.headers["Cloche-Execution-Id"]

    def events(self) -> Iterator[dict[str, Any]]:
        while line := self.answer.readline():
            yield json.loads(line)

    def until_printed(self, text: str) -> None:
        said = ""
        for event in self.events():
            said += event["text"] if event["type"] == "stdout" else ""
            if text in said:
                return
        raise AssertionError(f"the cell ended with {said!r}")

    def rest(self) -> list[dict[str, Any]]:
        """What is left, keepalives aside; the end of the stream is there."""
        got = [event for event in self.events() if event["type"] != "keepalive"]
        assert got[-1] == {"type": "end_of_execution"}
        return got[:-1]


@pytest.fixture
def start(raw_cell: RawBox) -> Iterator[Any]:
    with ExitStack() as stack:

        def cell(code: str, **options: Any) -> Cell:
            link = raw_cell.wire.connect(60)
            stack.callback(link.close)
            return Cell(raw_cell, link, {"code": code} | options)

        yield cell


def post(box: RawBox, path: str, body: Any = None, **headers: str) -> Answer:
    return box.port(INTERPRETER_PORT, "POST", path, body, {"X-Access-Token": box.token} | headers)


def interrupt(box: RawBox, **named: str) -> bool:
    got = post(box, "/interrupt", named or None)
    assert got.status == 200, (got.status, got.body)
    assert list(got.json()) == ["interrupted"]
    return got.json()["interrupted"]


def context(box: RawBox, language: str) -> str:
    return post(box, "/contexts", {"language": language}).json()["id"]


LANGUAGES = [
    ("python", "kept = 7", "print('on')\nwhile True: pass", "print(kept)", "KeyboardInterrupt"),
    ("python", "kept = 8", "import time; print('on')\ntime.sleep(600)", "print(kept)", "KeyboardInterrupt"),
    ("javascript", "var kept = 7", "console.log('on'); for (;;) {}", "console.log(kept)", "Interrupted"),
    ("typescript", "var kept: number = 7", "console.log('on'); await new Promise(() => {})", "console.log(kept)",
     "Interrupted"),
    ("bash", "kept=7", "echo on; sleep 600", "echo $kept", "ExecutionAborted"),
    ("r", "kept <- 7", "cat('on\\n'); repeat Sys.sleep(0.1)", "cat(kept)", "ExecutionAborted"),
    ("java", "int kept = 7;", 'System.out.println("on"); while (true) { Thread.sleep(50); }',
     "System.out.println(kept);", "ExecutionAborted"),
]


@pytest.mark.parametrize(("language", "keep", "forever", "ask", "name"), LANGUAGES)
def test_the_running_cell_ends_with_its_languages_error_and_state_is_kept(
    raw_cell: RawBox, start: Any, language: str, keep: str, forever: str, ask: str, name: str
) -> None:
    cid = context(raw_cell, language)
    raw_cell.execute(keep, context_id=cid)
    cell = start(forever, context_id=cid)
    cell.until_printed("on")
    assert interrupt(raw_cell, context_id=cid)
    (error,) = [event for event in cell.rest() if event["type"] == "error"]
    assert error["name"] == name
    said = "".join(e["text"] for e in raw_cell.execute(ask, context_id=cid) if e["type"] == "stdout")
    assert said.strip() in {"7", "8"}
    assert not interrupt(raw_cell, context_id=cid)
    raw_cell.port(INTERPRETER_PORT, "DELETE", f"/contexts/{cid}", None, {"X-Access-Token": raw_cell.token})


def test_without_a_body_the_default_context_is_meant(raw_cell: RawBox, start: Any) -> None:
    assert not interrupt(raw_cell)
    cell = start("import time; print('on'); time.sleep(600)")
    cell.until_printed("on")
    assert not interrupt(raw_cell, language="js")
    assert interrupt(raw_cell, language="PYTHON")
    assert [event["name"] for event in cell.rest() if event["type"] == "error"] == ["KeyboardInterrupt"]


def test_output_up_to_the_interrupt_arrives_and_queued_cells_go_on(raw_cell: RawBox, start: Any) -> None:
    first = start("import time\nprint('on')\ntry:\n    time.sleep(600)\nfinally:\n    print('tail')")
    first.until_printed("on")
    second = start("6 * 7")
    assert interrupt(raw_cell)
    assert [(e["type"], e.get("text")) for e in first.rest()][0] == ("stdout", "tail\n")
    assert [e["text"] for e in second.rest() if e["type"] == "result"] == ["42"]


def test_an_interrupt_at_once_is_not_lost(raw_cell: RawBox, start: Any) -> None:
    """The head of the answer may come before the cell has begun."""
    for _ in range(20):
        cell = start("import time; time.sleep(600)")
        assert interrupt(raw_cell, execution_id=cell.id)
        assert [e["name"] for e in cell.rest() if e["type"] == "error"] == ["KeyboardInterrupt"]


def test_a_name_reaches_only_its_own_run(raw_cell: RawBox, start: Any) -> None:
    first = start("import time; print('on')\ntime.sleep(600)")
    first.until_printed("on")
    second, third = start("print('never')"), start("print('third')")
    assert len({first.id, second.id, third.id}) == 3
    assert interrupt(raw_cell, execution_id=second.id)
    assert [(e["type"], e.get("name")) for e in second.rest()] == [("error", "ExecutionCancelled")]
    assert not interrupt(raw_cell, execution_id=second.id)
    assert not interrupt(raw_cell, execution_id=GHOST)
    assert not interrupt(raw_cell, language="js", execution_id=first.id)
    assert interrupt(raw_cell, execution_id=first.id)
    assert "KeyboardInterrupt" in [e.get("name") for e in first.rest()]
    assert [e["text"] for e in third.rest() if e["type"] == "stdout"] == ["third\n"]


def test_a_cell_that_ignores_one_interrupt_is_interrupted_again(raw_cell: RawBox, start: Any) -> None:
    cell = start("import time\nprint('on')\ntry:\n    time.sleep(600)\nexcept KeyboardInterrupt:\n    print('no')\n"
                 "time.sleep(600)")
    cell.until_printed("on")
    assert interrupt(raw_cell)
    cell.until_printed("no")
    assert "KeyboardInterrupt" in [e.get("name") for e in cell.rest()]


def test_unknown_contexts_and_malformed_requests_are_refused(raw_cell: RawBox) -> None:
    assert post(raw_cell, "/interrupt", {"context_id": GHOST}).status == 404
    assert post(raw_cell, "/interrupt", {"context_id": GHOST, "language": "r"}).status == 400
    assert post(raw_cell, "/interrupt", {"execution_id": 7}).status == 422
    assert post(raw_cell, "/interrupt", {"execution_id": "x" * 70_000}).status == 413
    assert post(raw_cell, "/interrupt", {"language": "cobol"}).status == 500
    got = raw_cell.port(INTERPRETER_PORT, "GET", "/interrupt", None, {"X-Access-Token": raw_cell.token})
    assert (got.status, got.headers["Allow"]) == (405, "POST")
    assert raw_cell.port(INTERPRETER_PORT, "POST", "/interrupt").status == 401


def test_pages_may_read_the_name_of_an_execution(raw_cell: RawBox) -> None:
    got = post(raw_cell, "/execute", {"code": "1"}, Origin="http://page.example")
    assert got.headers["Cloche-Execution-Id"]
    assert "cloche-execution-id" in got.headers["Access-Control-Expose-Headers"].lower()
