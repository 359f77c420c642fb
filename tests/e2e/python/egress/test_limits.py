# SPDX-License-Identifier: Apache-2.0
"""What one box may hold, and who does not notice."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from support.egress_lab import API, SLOW, Lab

LOST = 5  # a verdict
RULE = {"api.example.com": {"X-Key": "k"}}
HOLD = """
import socket, sys, time
held = []
refused = 0
for n in range(int(sys.argv[2])):
    s = socket.create_connection((sys.argv[1], 443))
    held.append(s)
    try:
        s.sendall(b"\\x16\\x03\\x01")
    except OSError:  # refused already
        refused += 1
        held.pop()
time.sleep(0.7)
for s in held:
    s.setblocking(False)
    try:
        refused += s.recv(1) == b""
    except BlockingIOError:
        pass
    except ConnectionResetError:
        refused += 1
print(refused, flush=True)
if len(sys.argv) > 3:
    time.sleep(float(sys.argv[3]))
    over = 0
    for s in held:
        try:
            over += s.recv(1) == b""
        except BlockingIOError:
            pass
        except OSError:
            over += 1
    print(over)
"""


def test_connections_of_a_box_have_a_limit_and_a_deadline(lab: Lab) -> None:
    lab.restart(egress_box_connections=20, egress_hello_seconds=2)
    lab.set("one", hosts=RULE)
    lab.set("two", hosts=RULE)
    refused, over = lab.client("one", "python3", "-c", HOLD, API, "30", "2.5").split()
    assert refused == "10"
    assert int(over) in range(20, 31)  # those that the deadline ended, and some of the refused
    assert lab.ask("two", "https://api.example.com/")["fields"]["x-key"] == "k"
    assert lab.ask("one", "https://api.example.com/")["fields"]["x-key"] == "k"


def test_a_team_has_a_limit_over_its_boxes(lab: Lab) -> None:
    lab.restart(egress_team_connections=10)
    lab.set("one", hosts=RULE)
    lab.set("two", hosts=RULE, team="other")
    assert lab.client("one", "python3", "-c", HOLD, API, "15").split() == ["5"]
    assert lab.ask("two", "https://api.example.com/")["fields"]["x-key"] == "k"


def test_a_server_that_never_answers_holds_only_its_own_request(lab: Lab) -> None:
    lab.restart(egress_idle_seconds=1)
    lab.set("one", hosts=RULE)
    began = time.monotonic()
    said = lab.curl("one", "https://api.example.com/never", "-w", "%{http_code}", at=SLOW, wait=20, check=False)
    assert time.monotonic() - began < 15
    assert said.endswith(("504", "000")), said
    assert lab.ask("one", "https://api.example.com/")["fields"]["x-key"] == "k"


def test_the_role_has_no_rights_and_no_files(lab: Lab) -> None:
    lab.restart()
    assert lab.gateway
    pid = lab.gateway.pid
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    assert status["Name"] == "cloche-egress"
    assert status["Uid"].split() == ["64993"] * 4
    assert int(status["CapEff"], 16) == 0
    assert int(status["CapPrm"], 16) == 0
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
    assert sorted(os.listdir(f"/proc/{pid}/root")) == ["etc"]
    assert sorted(os.listdir(f"/proc/{pid}/root/etc")) == ["hosts", "nsswitch.conf", "resolv.conf"]


CONNECT = """
import socket, sys
for _ in range(int(sys.argv[2])):
    s = socket.create_connection((sys.argv[1], 443))
    s.sendall(b"no hello of TLS\\r\\n")
    s.close()
"""


def test_records_of_a_box_have_a_rate(lab: Lab) -> None:
    lab.restart(egress_connections=4000, egress_box_connections=1000)
    lab.set("one", hosts=RULE)
    lab.set("two", hosts=RULE)
    lab.records.clear()
    began = time.monotonic()
    lab.client("one", "python3", "-c", CONNECT, API, "800")
    lab.pump(2)
    took = time.monotonic() - began
    lost = [r for r in lab.records if r["verdict"] == LOST]
    assert 200 <= len(lab.records) - len(lost) <= 205 + 50 * took
    assert 1 <= len(lost) <= 2 + took
    lab.records.clear()
    assert lab.ask("two", "https://api.example.com/")["fields"]["x-key"] == "k"
    lab.pump(0.5)
    assert "api.example.com" in [r["name"] for r in lab.records]


NAMES = """
import socket, ssl, sys, time
began = time.monotonic()
made = 0
context = ssl._create_unverified_context()
for n in range(int(sys.argv[2])):
    try:
        with socket.create_connection((sys.argv[1], 443)) as s:
            with context.wrap_socket(s, server_hostname=f"n{n}.example.org"):
                made += 1
    except OSError:
        pass
print(made, time.monotonic() - began)
"""


def test_certificates_for_new_names_have_a_rate(lab: Lab) -> None:
    lab.restart(egress_certificates_per_second=4)
    lab.set("one", hosts={"*.example.org": {"X-Key": "k"}})
    lab.set("two", hosts=RULE)
    made, took = lab.client("one", "python3", "-c", NAMES, API, "150").split()
    assert 8 <= int(made) <= 10 + 4 * float(took)
    assert int(made) < 150
    assert lab.ask("two", "https://api.example.com/")["fields"]["x-key"] == "k"


DIALS = """
import socket, sys, time
held = [socket.create_connection((sys.argv[1], 22)) for _ in range(100)]
time.sleep(float(sys.argv[2]))
"""


def test_names_of_one_teams_proxies_hold_up_no_other_team(lab: Lab) -> None:
    lab.restart(egress_connect_seconds=10)
    lab.set("one", proxy={"kind": 1, "host": "silent.example.net", "port": 1080})
    lab.set("two", proxy={"kind": 1, "host": "localhost", "port": 1080}, hosts=RULE, team="other")
    busy = subprocess.Popen([*lab.enter("one"), "python3", "-c", DIALS, API, "6"])
    try:
        time.sleep(1)  # its lookups have begun by then
        began = time.monotonic()
        said = lab.curl("two", "https://api.example.com/", "-w", "%{http_code}")
        assert "private" in said, said
        assert time.monotonic() - began < 4
    finally:
        busy.wait()


def test_boxes_that_nobody_told_are_refused(lab: Lab) -> None:
    lab.remove("two")
    assert "curl: (" in lab.curl("two", "https://api.example.com/", check=False)
    assert lab.ask("plain", "https://plain.example.net/")["secure"] is True
