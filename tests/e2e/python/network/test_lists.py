# SPDX-License-Identifier: Apache-2.0
"""What a box may reach: internet access, lists by address and by name, changed while it runs."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from support.world import (
    DNS_QUESTION,
    GATEWAY,
    HOST,
    INSIDE,
    NAMES,
    PUBLIC,
    RESOLVER,
    Abroad,
    devices,
    finish_lasting,
    reached,
    run,
    start_lasting,
)

ALL = "0.0.0.0/0"
ONE, TWO, FAR = PUBLIC[1], PUBLIC[2], PUBLIC[8]

ECHO = """
import socket, sys
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.settimeout(2)
try:
    u.sendto(b"hello", (sys.argv[1], 7))
    print(u.recv(9).decode())
except OSError as error:
    print(type(error).__name__)
"""

LOOK_UP = DNS_QUESTION + 'print(answer[3] & 15, struct.unpack(">H", answer[6:8])[0])'

STOCK_JS = """
import { Sandbox } from 'e2b'
const closed = await Sandbox.create('base', { allowInternetAccess: false })
const open = await Sandbox.create('base')
const line = 'curl -s -m 5 http://%s/; echo $?'
const curl = async (box) => (await box.commands.run(line)).stdout
const seen = [await curl(open), await curl(closed)]
await open.updateNetwork({ denyOut: ['0.0.0.0/0'] })
seen.push(await curl(open))
await open.kill()
await closed.kill()
console.log(JSON.stringify(seen))
"""


def test_a_box_reaches_the_world_by_address_and_by_name(server: Abroad) -> None:
    with server.box() as box:
        assert run(box, f"curl -s -m 5 http://{FAR}/") == (0, f"{FAR} sees {HOST}\n")
        answered = run(box, "curl -s -m 5 http://www.example.com/")
        assert answered == (0, f"{NAMES['www.example.com']} sees {HOST}\n")
        assert run(box, f"python3 -c '{ECHO}' {FAR}") == (0, "hello\n")


def test_ping_follows_the_lists(server: Abroad) -> None:
    with server.box(network={"deny_out": [ONE]}) as box:
        assert run(box, f"ping -c 1 -W 5 {FAR} > /dev/null; id -un") == (0, "user\n")
        assert run(box, f"ping -c 1 -W 5 {FAR} > /dev/null")[0] == 0
        assert run(box, f"ping -c 1 -W 2 {ONE} > /dev/null")[0] != 0


def test_a_box_without_internet_has_only_a_loopback(server: Abroad) -> None:
    with server.box(allow_internet_access=False) as box:
        assert devices(box) == {"lo"}
        began = time.monotonic()
        code, _ = run(box, f"curl -s -m 20 http://{FAR}/")
        assert code not in (0, 28)
        code, _ = run(box, "curl -s -m 20 http://example.com/")
        assert code not in (0, 28)
        assert time.monotonic() - began < 19
        assert run(box, "curl -s -m 5 http://127.0.0.1:49983/health; echo $?")[1].endswith("0\n")


def test_what_is_denied_is_refused_and_the_rest_is_not(server: Abroad) -> None:
    with server.box(network={"deny_out": [ONE, "198.51.100.2/31"]}) as box:
        places = [ONE, TWO, "198.51.100.3", "198.51.100.4", FAR, GATEWAY]
        assert reached(box, *places) == {"198.51.100.4", FAR, GATEWAY}
        assert run(box, f"curl -s -m 20 http://{ONE}/")[0] == 7
        assert run(box, f"python3 -c '{ECHO}' {ONE}")[1] != "hello\n"


def test_allowed_addresses_beat_the_denial_of_everything(server: Abroad) -> None:
    with server.box(network={"allow_out": [ONE], "deny_out": [ALL]}) as box:
        assert reached(box, ONE, TWO, GATEWAY) == {ONE}
        assert run(box, f"python3 -c '{ECHO}' {ONE}") == (0, "hello\n")
        assert run(box, f"python3 -c '{ECHO}' {TWO}")[1] != "hello\n"


def test_allowed_addresses_stay_open_without_internet(server: Abroad) -> None:
    network = {"allow_out": ["198.51.100.2/32"], "deny_out": [ONE]}
    with server.box(allow_internet_access=False, network=network) as box:
        assert reached(box, ONE, TWO, FAR) == {TWO}


def test_an_exact_name_opens_that_name_alone(server: Abroad) -> None:
    with server.box(network={"allow_out": ["Example.COM"], "deny_out": [ALL]}) as box:
        assert reached(box, NAMES["example.com"]) == set()
        names = ["example.com", "EXAMPLE.com", "www.example.com", "other.example.net"]
        assert reached(box, *names) == {"example.com", "EXAMPLE.com"}
        assert reached(box, *NAMES.values()) == {NAMES["example.com"]}


def test_a_wildcard_opens_the_names_below_it(server: Abroad) -> None:
    with server.box(network={"allow_out": ["*.example.com"], "deny_out": [ALL]}) as box:
        assert reached(box, *NAMES) == {"www.example.com", "deep.www.example.com"}


def test_any_name_is_open_with_a_star_but_no_address_by_itself(server: Abroad) -> None:
    with server.box(network={"allow_out": ["*"], "deny_out": [ALL]}) as box:
        assert reached(box, FAR, NAMES["other.example.net"]) == set()
        assert reached(box, *NAMES) == set(NAMES) - {"inside.example.net"}
        assert reached(box, FAR, INSIDE) == set()


def test_no_other_name_server_helps_a_box_with_a_list_of_names(server: Abroad) -> None:
    with server.box(network={"allow_out": ["example.com"], "deny_out": [ALL]}) as box:
        for asked in [RESOLVER, FAR]:
            assert run(box, f"python3 -c '{LOOK_UP}' {asked} example.com")[1] == "0 1\n"
            refused = run(box, f"python3 -c '{LOOK_UP}' {asked} other.example.net")[1]
            assert refused.split()[0] != "0"
        assert reached(box, NAMES["other.example.net"]) == set()


def test_names_resolve_where_every_address_is_allowed(server: Abroad) -> None:
    with server.box(network={"allow_out": [ALL], "deny_out": [ALL]}) as box:
        answered = run(box, "curl -s -m 5 http://www.example.com/")
        assert answered == (0, f"{NAMES['www.example.com']} sees {HOST}\n")
        assert run(box, f"python3 -c '{LOOK_UP}' {RESOLVER} example.com")[1] == "0 1\n"


def test_an_allowed_name_server_is_asked_itself_and_another_gives_no_answer(server: Abroad) -> None:
    with server.box(network={"allow_out": [RESOLVER], "deny_out": [ALL]}) as box:
        assert run(box, f"python3 -c '{LOOK_UP}' {RESOLVER} other.example.net")[1] == "0 1\n"
        assert run(box, "getent ahostsv4 www.example.com")[1].startswith(NAMES["www.example.com"])
        assert reached(box, "www.example.com") == set()
    with server.box(network={"allow_out": [ONE], "deny_out": [ALL]}) as box:
        for asked in [RESOLVER, FAR, "$(sed -n 's/^nameserver //p' /etc/resolv.conf)"]:
            code, told = run(box, f"python3 -c '{LOOK_UP}' {asked} example.com")
            assert code != 0
            assert told == ""
        assert run(box, "getent ahostsv4 www.example.com")[0] != 0
        assert reached(box, ONE) == {ONE}


def test_a_running_box_is_closed_and_opened(server: Abroad) -> None:
    with server.box() as box:
        assert reached(box, ONE, TWO) == {ONE, TWO}
        box.update_network({"deny_out": [ONE]})
        assert reached(box, ONE, TWO) == {TWO}
        box.update_network({"allow_out": [ONE], "deny_out": [ALL]})
        assert reached(box, ONE, TWO) == {ONE}
        box.update_network({"allow_internet_access": False})
        assert reached(box, ONE, TWO) == set()
        box.update_network({"allow_out": ["*.example.com"], "deny_out": [ALL]})
        assert reached(box, ONE, "www.example.com") == {"www.example.com"}
        box.update_network({"allow_out": ["example.com"], "deny_out": [ALL]})
        assert reached(box, TWO, "www.example.com") == set()
        box.update_network({})
        assert reached(box, ONE, "www.example.com", "other.example.net") == {
            ONE, "www.example.com", "other.example.net"
        }  # fmt: skip


def test_a_box_born_without_internet_gets_it_later(server: Abroad) -> None:
    with server.box(allow_internet_access=False) as box:
        box.update_network({"allow_out": [ONE], "deny_out": [ALL]})
        assert reached(box, ONE, TWO) == {ONE}
        box.update_network({})
        assert reached(box, TWO, "www.example.com") == {TWO, "www.example.com"}
        box.update_network({"allow_internet_access": False})
        assert reached(box, ONE, TWO, "www.example.com") == set()


def test_a_connection_that_was_open_goes_on_when_lists_close(server: Abroad) -> None:
    """Lists are for new connections; the echo of datagrams is one that lasts."""
    with server.box() as box:
        handle = start_lasting(box)
        box.update_network({"allow_internet_access": False})
        assert finish_lasting(box, handle) == "again\nagain\n"
        assert reached(box, FAR) == set()


@pytest.mark.parametrize("entry", ["2001:db8::7", "fd00::/8", "::1"])
def test_ipv6_entries_are_taken_and_open_nothing(server: Abroad, entry: str) -> None:
    with server.box(network={"allow_out": [entry, ONE], "deny_out": [ALL, "2001:db8::/32"]}) as box:
        assert reached(box, ONE, TWO, "[2001:db8::7]") == {ONE}
        box.update_network({"allow_out": [entry, TWO], "deny_out": [ALL]})
        assert reached(box, ONE, TWO) == {TWO}


def test_the_javascript_sdk_opens_and_closes_alike(server: Abroad) -> None:
    access = {"E2B_API_KEY": server.key, "E2B_API_URL": server.url, "E2B_SANDBOX_URL": server.url}
    done = subprocess.run(
        ["node", "--input-type=module", "-"],
        input=STOCK_JS % FAR,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin"} | access,
        cwd=Path(__file__).parents[2] / "js",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    opened, closed, shut = json.loads(done.stdout)
    assert opened == f"{FAR} sees {HOST}\n0\n"
    assert closed.strip() not in ("0", "28")
    assert shut.strip() == "7"
