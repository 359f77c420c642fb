# SPDX-License-Identifier: Apache-2.0
"""Sessions of /mcp belong to the key that began them: another team's session ID opens nothing.

Requests end with their calls, and a session keeps its sandbox.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from support.tenants import Tenants
from support.wire import Answer, Wire

HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}


def say(team: Wire, message: dict[str, Any], session: str | None = None, query: str = "", **headers: str) -> Answer:
    more = {"Accept": "application/json, text/event-stream"} | ({"Mcp-Session-Id": session} if session else {})
    return team.call("POST", f"/mcp{query}", message, more | headers)


def begin(team: Wire, query: str = "") -> str:
    answer = say(team, HELLO, query=query)
    assert answer.status == 200, answer.body
    return answer.headers["Mcp-Session-Id"]


def tool(team: Wire, session: str, name: str, query: str = "", **arguments: Any) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    answer = say(team, message, session, query)
    assert answer.status == 200, answer.body
    return answer.json()["result"]


def test_a_session_id_of_another_team_leads_to_a_sandbox_of_ones_own(tenants: Tenants) -> None:
    session = begin(tenants.victim)
    own = tool(tenants.victim, session, "run_command", command="echo secret > /tmp/s; cat /tmp/s")
    assert own["structuredContent"]["stdout"] == "secret\n"
    other = tool(tenants.attacker, session, "run_command", command="cat /tmp/s")
    assert other["structuredContent"]["sandbox"] != own["structuredContent"]["sandbox"]
    assert "secret" not in str(other)
    for word in ("list_sandboxes", "list_files"):
        assert own["structuredContent"]["sandbox"] not in str(tool(tenants.attacker, session, word))
    assert tenants.attacker.call("DELETE", "/mcp", headers={"Mcp-Session-Id": session}).status == 204
    again = tool(tenants.victim, session, "run_command", command="cat /tmp/s")
    assert again["structuredContent"]["stdout"] == "secret\n"
    assert tenants.victim.call("DELETE", "/mcp", headers={"Mcp-Session-Id": session}).status == 204


def test_a_sandbox_of_another_team_is_not_reached_by_its_id(tenants: Tenants) -> None:
    box = tenants.victim.create()
    session = begin(tenants.attacker)
    for name, arguments in (
        ("run_command", {"command": "id"}), ("run_code", {"code": "1"}), ("read_file", {"path": "/etc/passwd"}),
        ("pause_sandbox", {}), ("resume_sandbox", {}), ("fork_sandbox", {}),
    ):  # fmt: skip
        answer = tool(tenants.attacker, session, name, sandbox=box.id, **arguments)
        assert answer["isError"], (name, answer)
        assert "root:" not in str(answer)
    assert tool(tenants.attacker, session, "kill_sandbox", sandbox=box.id)["structuredContent"]["existed"] is False
    assert box.run("echo alive")[1] == "alive\n"
    box.kill()


def test_the_same_name_is_another_sandbox_for_another_team(tenants: Tenants) -> None:
    query = "?name=shared&end=kill"
    one, two = begin(tenants.victim, query), begin(tenants.attacker, query)
    mine = tool(tenants.victim, one, "run_command", query, command="hostname; echo of-the-victim > /tmp/n")
    theirs = tool(tenants.attacker, two, "run_command", query, command="cat /tmp/n; true")
    assert mine["structuredContent"]["sandbox"] != theirs["structuredContent"]["sandbox"]
    assert "of-the-victim" not in str(theirs)
    for team, session in ((tenants.victim, one), (tenants.attacker, two)):
        assert team.call("DELETE", f"/mcp{query}", headers={"Mcp-Session-Id": session}).status == 204


def test_a_team_can_not_name_itself(tenants: Tenants) -> None:
    answer = say(tenants.attacker, HELLO, **{"Cloche-Team": "00000000-0000-0000-0000-000000000000"})
    assert answer.status == 200
    assert say(Wire(tenants.attacker.url, None), HELLO).status == 401


def test_a_call_that_its_client_cancels_ends_its_request(tenants: Tenants) -> None:
    session = begin(tenants.victim)
    params = {"name": "run_command", "arguments": {"command": "echo begun; sleep 600"}, "_meta": {"progressToken": 1}}
    call = {"jsonrpc": "2.0", "id": "long", "method": "tools/call", "params": params}
    link = tenants.victim.connect()
    headers = {"X-API-Key": tenants.victim.key or "", "Mcp-Session-Id": session, "Accept": "text/event-stream"}
    link.request("POST", "/mcp", json.dumps(call), headers)
    answer = link.getresponse()
    assert answer.readline() == b"event: message\n"
    stop = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "long"}}
    assert say(tenants.victim, stop, session).status == 202
    assert b'"result"' not in answer.read()
    link.close()
    assert tenants.victim.call("DELETE", "/mcp", headers={"Mcp-Session-Id": session}).status == 204


def test_a_session_keeps_its_own_sandbox_when_that_is_resumed_by_name(tenants: Tenants) -> None:
    session = begin(tenants.victim)
    own = tool(tenants.victim, session, "run_command", command="echo kept > /tmp/k")["structuredContent"]["sandbox"]
    assert not tool(tenants.victim, session, "resume_sandbox", sandbox=own)["isError"]
    again = tool(tenants.victim, session, "run_command", command="cat /tmp/k")["structuredContent"]
    assert (again["sandbox"], again["stdout"]) == (own, "kept\n")
    assert tenants.victim.call("DELETE", "/mcp", headers={"Mcp-Session-Id": session}).status == 204


def test_a_sandbox_that_was_chosen_is_found_again_after_a_pause(tenants: Tenants) -> None:
    session = begin(tenants.victim)
    first = tool(tenants.victim, session, "run_command", command="true")["structuredContent"]["sandbox"]
    chosen = tool(tenants.victim, session, "create_sandbox", timeout=120)["structuredContent"]["sandbox"]
    assert chosen != first
    assert not tool(tenants.victim, session, "pause_sandbox")["isError"]
    again = tool(tenants.victim, session, "run_command", command="true")["structuredContent"]["sandbox"]
    assert again == chosen
    for each in (first, chosen):
        tool(tenants.victim, session, "kill_sandbox", sandbox=each)
    assert tenants.victim.call("DELETE", "/mcp", headers={"Mcp-Session-Id": session}).status == 204


def test_calls_under_way_are_bounded_for_each_team(tenants: Tenants) -> None:
    box = tenants.attacker.create()
    sessions = [begin(tenants.attacker) for _ in range(6)]
    asked = {"name": "run_command", "arguments": {"sandbox": box.id, "command": "sleep 3"}}
    message = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": asked}
    with ThreadPoolExecutor(48) as many:
        calls = [many.submit(say, tenants.attacker, message, session) for session in sessions for _ in range(8)]
        refused = next(c.result() for c in as_completed(calls) if c.result().status != 200)
        assert (refused.status, "mcp_team_mb" in refused.text) == (429, True), refused.text
        own = begin(tenants.victim)
        assert tool(tenants.victim, own, "run_command", command="echo here")["structuredContent"]["stdout"] == "here\n"
        codes = [c.result().status for c in calls]
    assert set(codes) == {200, 429}
    assert 24 <= codes.count(200) <= 32
    assert tool(tenants.attacker, sessions[0], "run_command", sandbox=box.id, command="true")["isError"] is False
    box.kill()
