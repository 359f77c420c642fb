# SPDX-License-Identifier: Apache-2.0
"""What no list opens: private and metadata addresses, the host, other boxes, the way in.

Every refusal is first shown to refuse something that is there: the host itself, or the
edge, reaches what the box must not.
"""

from __future__ import annotations

import json
import subprocess

import pytest

from support.wire import RawBox
from support.world import (
    API,
    HOST,
    NEVER,
    PUBLIC,
    SERVICE,
    Abroad,
    World,
    address,
    fetch,
    ip,
    reached,
    run,
)

ALL = "0.0.0.0/0"
PORT = 8000


@pytest.mark.parametrize("lists", ["none", "listed", "all"])
def test_private_and_metadata_addresses_are_never_reached(
    server: Abroad, world: World, lists: str
) -> None:
    with world.inside():
        assert all("sees" in fetch(each) for each in NEVER)
    network = {
        "none": {},
        "listed": {"allow_out": [*NEVER, "10.0.0.0/8", PUBLIC[1]], "deny_out": [ALL]},
        "all": {"allow_out": [ALL]},
    }[lists]  # fmt: skip
    with server.box(network=network) as box:
        assert reached(box, *NEVER, PUBLIC[1]) == {PUBLIC[1]}


def host_addresses() -> set[str]:
    found = {HOST, "127.0.0.1", "127.0.0.2"}
    for link in json.loads(ip("-j", "-4", "addr")):
        found |= {each["local"] for each in link["addr_info"]}
    return found


def test_the_host_and_its_api_are_not_reached(server: Abroad, world: World) -> None:
    with server.box() as open_box:
        with world.inside():
            gateways = host_addresses()
            assert len(gateways) > 3, "the boxes' gateway is one of the host's addresses"
            for each in gateways:
                assert "the host" in fetch(each, SERVICE)
                assert "HTTP/1" in fetch(each, API)
        places = [f"{each}:{port}" for each in gateways for port in [SERVICE, API]]
        with server.box(network={"allow_out": [*gateways], "deny_out": [ALL]}) as listed:
            assert reached(open_box, *places) == set()
            assert reached(listed, *places) == set()


def test_the_host_is_not_reached_by_ipv6_on_the_link(server: Abroad, world: World) -> None:
    with server.box() as box:
        with world.inside():
            told = json.loads(ip("-j", "-6", "addr"))
        local = [
            (link["ifname"], each["local"])
            for link in told
            for each in link["addr_info"]
            if each["scope"] == "link"
        ]
        assert any(name == "out" for name, _ in local)
        places = [f"[{each}%25eth0]:{SERVICE}" for _, each in local]
        assert reached(box, *places, PUBLIC[0]) == {PUBLIC[0]}


def test_boxes_do_not_reach_each_other(server: Abroad) -> None:
    with server.box() as one:
        one.files.write("/tmp/www/index.html", "a neighbour")
        one.commands.run(
            f"python3 -m http.server -d /tmp/www {PORT} --bind 0.0.0.0", background=True
        )
        run(one, f"curl -s --retry 20 --retry-connrefused --retry-delay 1 http://127.0.0.1:{PORT}/")
        its = address(one)
        through = RawBox(server.wire, {"sandboxID": one.sandbox_id}).port(PORT)
        assert through.body == b"a neighbour"
        assert run(one, f"curl -s -m 5 http://{its}:{PORT}/") == (0, "a neighbour")
        with server.box(network={"allow_out": [its, "10.0.0.0/8"], "deny_out": [ALL]}) as two:
            assert address(two) != its
            assert run(two, f"curl -s -m 20 http://{its}:{PORT}/")[0] == 7
        with server.box() as three:
            assert reached(three, f"{its}:{PORT}", PUBLIC[0]) == {PUBLIC[0]}


def test_the_world_does_not_reach_into_a_box(server: Abroad, world: World) -> None:
    with server.box() as box:
        box.commands.run(f"python3 -m http.server {PORT} --bind 0.0.0.0", background=True)
        run(box, f"curl -s --retry 20 --retry-connrefused --retry-delay 1 http://127.0.0.1:{PORT}/")
        assert world.fetch(HOST, SERVICE) == "the host"
        assert world.fetch(address(box), PORT) == ""


def test_a_false_source_address_gets_no_answer(server: Abroad) -> None:
    """Root in a box may call its link what it likes; the host takes one address from it."""
    with server.box() as box:
        its = address(box)
        last = int(its.rsplit(".", 1)[1])
        false = its.rsplit(".", 1)[0] + f".{(last + 100) % 250 + 1}"
        inside = box_pid(server, its)
        ip("addr", "add", f"{false}/32", "dev", "eth0", inside=inside)
        for source, expected in [(its, True), (false, False)]:
            code, _ = run(box, f"curl -s -m 3 --interface {source} http://{PUBLIC[0]}/")
            assert (code == 0) is expected
        assert reached(box, PUBLIC[0]) == {PUBLIC[0]}


def box_pid(server: Abroad, its: str) -> int:
    """A process whose network has this address."""
    for line in subprocess.run(
        ["ps", "-eo", "pid="], capture_output=True, text=True, check=True
    ).stdout.split():
        try:
            with open(f"/proc/{line}/net/fib_trie") as table:
                text = table.read()
        except OSError:
            continue
        if f"|-- {its}\n" in text and "/32 host LOCAL" in text and HOST not in text:
            return int(line)
    raise ProcessLookupError(its)
