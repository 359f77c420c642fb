# SPDX-License-Identifier: Apache-2.0
"""What one box may hold, and who does not notice."""

from __future__ import annotations

import os
import time
from pathlib import Path

from support.egress_lab import API, SLOW, Lab

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


def test_boxes_that_nobody_told_are_refused(lab: Lab) -> None:
    lab.remove("two")
    assert "curl: (" in lab.curl("two", "https://api.example.com/", check=False)
    assert lab.ask("plain", "https://plain.example.net/")["secure"] is True
