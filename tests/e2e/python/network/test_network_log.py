# SPDX-License-Identifier: Apache-2.0
"""The log of what boxes looked up and where they connected: GET /sandboxes/{id}/network/log and `cloche net`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from support.schema import check
from support.server import binary, children, own_server
from support.tenants import two_teams
from support.waiting import eventually
from support.wire import Wire
from support.world import NAMES, NEVER, PUBLIC, Abroad, World, run

Entry = dict[str, Any]
CURL = "curl -s -o /dev/null -m 5"


@pytest.fixture(scope="module")
def server(world: World) -> Iterator[Abroad]:
    with own_server("--network-log", "full", made=Abroad(world)) as made:
        yield made


def log(wire: Wire, box: str, **query: object) -> list[Entry]:
    asked = "&".join(f"{key}={value}" for key, value in query.items())
    got = wire.call("GET", f"/sandboxes/{box}/network/log?{asked}")
    assert got.status == 200, got.text
    for each in got.json()["entries"]:
        check("NetworkLogEntry", each)
    return list(got.json()["entries"])


def find(server: Abroad, box: str, wanted: Callable[[Entry], bool]) -> Entry:
    def look() -> Entry | None:
        return next((each for each in log(server.wire, box) if wanted(each)), None)

    return eventually(look, 10, state=lambda: json.dumps(log(server.wire, box), indent=1))


def to(address: str, port: int = 80) -> Callable[[Entry], bool]:
    return lambda each: each["type"] == "connection" and (each["address"], each["port"]) == (address, port)


def watchers(server: Abroad) -> list[int]:
    """The process that writes the logs: a child of a child of the warden."""
    found = []
    for warden in server.wardens():
        for keeper in children(warden):
            names = [(pid, Path(f"/proc/{pid}/comm").read_text().strip()) for pid in children(keeper)]
            found += [pid for pid, name in names if name == "netlog"]
    return found


def test_names_connections_and_bytes_are_told(server: Abroad) -> None:
    with server.box() as box:
        assert run(box, f"{CURL} http://www.example.com/")[0] == 0
        ended = find(server, box.sandbox_id, lambda each: each.get("name") == "www.example.com" and "endedAt" in each)
        assert ended["type"] == "connection"
        assert (ended["verdict"], ended["protocol"], ended["port"]) == ("allowed", "tcp", 80)
        assert ended["address"] == NAMES["www.example.com"]
        assert ended["bytesIn"] > 100
        assert ended["bytesOut"] > 100
        assert ended["timestamp"] <= ended["endedAt"]
        asked = find(server, box.sandbox_id, lambda each: each["type"] == "name" and each["addresses"] != [])
        assert (asked["name"], asked["status"]) == ("www.example.com", "NOERROR")
        assert asked["addresses"] == [NAMES["www.example.com"]]
        run(box, "getent hosts nowhere.example.org")
        missing = find(server, box.sandbox_id, lambda each: each.get("name") == "nowhere.example.org")
        assert (missing["status"], missing["addresses"]) == ("NXDOMAIN", [])
        order = [each["timestamp"] for each in log(server.wire, box.sandbox_id)]
        assert order == sorted(order)


# How a connection of a box comes to its end, to a server that keeps it open.
ENDS = {
    "closed": "s.close()",
    "reset": "s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); s.close()",
}


@pytest.mark.parametrize("how", ENDS)
def test_the_end_of_a_connection_is_told_at_once(server: Abroad, how: str) -> None:
    script = (
        f"import socket, struct, time; s = socket.create_connection(('{PUBLIC[1]}', 80));"
        f"s.sendall(b'GET / HTTP/1.1' + bytes([13, 10])); {ENDS[how]}; print(time.time())"
    )
    with server.box() as box:
        over = float(run(box, f'python3 -c "{script}"')[1])

        def told() -> Entry | None:
            return next((each for each in log(server.wire, box.sandbox_id) if "endedAt" in each), None)

        ended = eventually(told, 2, state=lambda: json.dumps(log(server.wire, box.sandbox_id), indent=1))
        assert to(PUBLIC[1])(ended)
        assert ended["bytesOut"] > 40
        assert abs(datetime.fromisoformat(ended["endedAt"]).timestamp() - over) < 2


def test_a_crowd_of_connections_delays_no_end_of_another_box(server: Abroad) -> None:
    crowd = (
        "import socket\n"
        "for i in range(20000):\n"
        "    s = socket.socket()\n"
        f"    s.connect_ex(('{PUBLIC[5]}', 9))\n"
        "    s.close()\n"
    )
    with server.box() as loud, server.box() as quiet:
        loud.files.write("/tmp/crowd.py", crowd)
        loud.commands.run("python3 /tmp/crowd.py", background=True)
        find(server, loud.sandbox_id, lambda each: each["type"] == "lost")
        for address in PUBLIC[1:4]:
            assert run(quiet, f"{CURL} http://{address}/")[0] == 0

            def told(address: str = address) -> bool:
                return any("endedAt" in each and to(address)(each) for each in log(server.wire, quiet.sandbox_id))

            eventually(told, 3)


def test_refusals_are_told_with_the_reason(server: Abroad) -> None:
    network = {"deny_out": [PUBLIC[2]]}
    with server.box(network=network) as box:
        for address in (PUBLIC[1], PUBLIC[2], NEVER[0]):
            run(box, f"{CURL} http://{address}/")
        assert find(server, box.sandbox_id, to(PUBLIC[1]))["verdict"] == "allowed"
        by_list, by_range = (find(server, box.sandbox_id, to(address)) for address in (PUBLIC[2], NEVER[0]))
        assert (by_list["verdict"], by_list["reason"]) == ("refused", "list")
        assert (by_range["verdict"], by_range["reason"]) == ("refused", "range")
        assert "endedAt" not in by_list


def test_queries_choose_time_and_number(server: Abroad) -> None:
    with server.box() as box:
        wire = server.wire
        for address in PUBLIC[1:5]:
            run(box, f"{CURL} http://{address}/")
        find(server, box.sandbox_id, to(PUBLIC[4]))
        newest = log(wire, box.sandbox_id, limit=2)
        assert len(newest) == 2
        assert newest[-1]["address"] == PUBLIC[4]
        assert log(wire, box.sandbox_id, start=4102444800000) == []
        assert log(wire, box.sandbox_id, end=1000) == []
        for query in ("start=soon", "end=-1", "limit=0", "limit=1001"):
            got = wire.call("GET", f"/sandboxes/{box.sandbox_id}/network/log?{query}")
            assert got.status == 400, query
            assert query.split("=")[0] in got.json()["message"]


def test_the_log_outlives_pauses_restarts_its_writer_and_its_box(server: Abroad) -> None:
    wire = server.wire
    with server.box() as box:
        run(box, f"{CURL} http://{PUBLIC[1]}/")
        find(server, box.sandbox_id, to(PUBLIC[1]))
        box.pause()
        assert any(to(PUBLIC[1])(each) for each in log(wire, box.sandbox_id))
        box.connect()
        run(box, f"{CURL} http://{PUBLIC[2]}/")
        find(server, box.sandbox_id, to(PUBLIC[2]))
        for victim in (watchers, Abroad.wardens):
            (pid,) = victim(server)
            os.kill(pid, signal.SIGKILL)
            eventually(lambda old=pid, find=victim: find(server) not in ([], [old]), 20)
            eventually(lambda: wire.call("GET", f"/sandboxes/{box.sandbox_id}").status == 200, 20)

            began = int(eventually(lambda: run(box, "date +%s%3N")[1], 20))

            def seen(since: int = began) -> bool:
                run(box, f"{CURL} http://{PUBLIC[3]}:7/")
                return any(to(PUBLIC[3], 7)(each) for each in log(wire, box.sandbox_id, start=since))

            eventually(seen, 20)
    entries = log(wire, box.sandbox_id)
    assert all(any(to(address)(each) for each in entries) for address in PUBLIC[1:3]), "kept after its end"


def test_a_slot_that_changes_hands_tells_nothing_of_the_box_before(server: Abroad) -> None:
    """Boxes one after the other on the same ranges, each with connections until its very end."""
    mine = PUBLIC[6]
    for turn in range(6):
        with server.box() as box:
            if turn % 2:
                found = [each for each in log(server.wire, box.sandbox_id) if each.get("address") == mine]
                assert found == []
                run(box, f"{CURL} http://{PUBLIC[1]}/")
                find(server, box.sandbox_id, to(PUBLIC[1]))
                found = [each for each in log(server.wire, box.sandbox_id) if each.get("address") == mine]
                assert found == []
            else:
                box.commands.run(f"for i in $(seq 300); do {CURL} http://{mine}/; done", background=True)
                find(server, box.sandbox_id, to(mine))


def test_other_teams_read_nothing(server: Abroad) -> None:
    teams = two_teams(server)
    box = teams.victim.create("base", timeout=60)
    try:
        path = f"/sandboxes/{box.id}/network/log"
        assert teams.victim.call("GET", path).status == 200
        assert teams.attacker.call("GET", path).status == 404
        assert teams.attacker.call("GET", "/sandboxes/inothingofanybody000/network/log").status == 404
    finally:
        box.kill()


def test_a_flood_of_one_box_hides_nothing_of_another(server: Abroad) -> None:
    flood = (
        "import socket\nu = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        f"for i in range(60000): u.sendto(b'x', ('{PUBLIC[5]}', 1024 + i % 60000))"
    )
    with server.box() as loud, server.box() as quiet:
        loud.files.write("/tmp/flood.py", flood)
        loud.commands.run("python3 /tmp/flood.py", background=True)
        find(server, loud.sandbox_id, lambda each: each["type"] == "lost")
        run(quiet, f"{CURL} http://{PUBLIC[1]}/")
        find(server, quiet.sandbox_id, to(PUBLIC[1]))


def test_the_command_shows_it(server: Abroad) -> None:
    words = [binary(), "net", "--data", str(server.data)]
    with server.box() as box:
        follow = subprocess.Popen([*words, "-f", box.sandbox_id], stdout=subprocess.PIPE, text=True)
        try:
            run(box, f"{CURL} http://www.example.com/")
            assert follow.stdout
            seen = ""
            find(server, box.sandbox_id, lambda each: "endedAt" in each)
            while " end " not in seen:
                line = follow.stdout.readline()
                assert line, seen
                seen += line
        finally:
            follow.kill()
            follow.wait()
        assert "name     www.example.com 198.51.100.2" in seen
        assert "tcp 198.51.100.2:80 www.example.com" in seen
        raw = subprocess.run([*words, "--json", box.sandbox_id], capture_output=True, text=True, check=True).stdout
        assert {json.loads(line)["e"] for line in raw.splitlines()} >= {"name", "open", "end"}
    gone = subprocess.run([*words, "inothingofanybody000"], capture_output=True, text=True, check=False)
    assert (gone.returncode, "no sandbox inothingofanybody000" in gone.stderr) == (1, True)


def test_what_a_server_without_it_says(world: World) -> None:
    del world  # the other server listens there
    with own_server("--network-log", "off", "--internet", "0") as made:
        wire = made.wire
        box = wire.create("base", timeout=60)
        got = wire.call("GET", f"/sandboxes/{box.id}/network/log")
        assert (got.status, "network_log" in got.json()["message"]) == (403, True)
        box.kill()
