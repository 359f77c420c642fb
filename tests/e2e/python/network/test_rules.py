# SPDX-License-Identifier: Apache-2.0
"""Header rules, secrets in them and proxies, by the stock clients: a box uses a key that it never holds."""

from __future__ import annotations

import base64
import json
import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import e2b
import pytest

from support.far_side import CERTIFICATE, PROXY, SHOWN, access, ask, far_side, gateways, rules, seen, status
from support.server import own_server
from support.tenants import cloche
from support.waiting import eventually
from support.world import Abroad, World, run

JS = Path(__file__).resolve().parents[2] / "js"
VALUE = "sk-live-4f9a27c0d1e8b35566"
HUSHED = "sk-hush-81be02f7c3d94a1177"


@pytest.fixture(scope="module")
def far(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with far_side(world, tmp_path_factory.mktemp("far")) as folder:
        yield folder


@pytest.fixture(scope="module")
def server(world: World, far: Path) -> Iterator[Abroad]:
    made = Abroad(world)
    made.resolve_there()
    with own_server("--egress-roots", str(far / "ca.pem"), made=made) as running:
        yield running


@pytest.fixture(scope="module")
def secret(server: Abroad) -> str:
    e2b.Secret.create("Model-Key", VALUE, **access(server))
    return "model-key"


def with_key() -> dict[str, Any]:
    return rules(Authorization=f"Bearer {e2b.Secret.fill('Model-Key')}")


CLIENTS = {
    "curl": f"curl -sS -m 10 {SHOWN}",
    "wget": f"wget -q -T 10 -O - {SHOWN}",
    "python": f"python3 -c 'import urllib.request as u; print(u.urlopen(\"{SHOWN}\", timeout=10).read().decode())'",
    "pip": f"python3 -c 'from pip._vendor import requests as r; print(r.get(\"{SHOWN}\", timeout=10).text)'",
    "node": f"node -e 'fetch(\"{SHOWN}\").then(r => r.text()).then(console.log)'",
}


@pytest.mark.usefixtures("secret")
def test_every_client_of_a_box_gets_the_header_set(world: World, server: Abroad) -> None:
    with server.box(network=with_key()) as box:
        for name, line in CLIENTS.items():
            code, out = run(box, f"{line} 2>&1")
            assert code == 0, (name, out)
            assert json.loads(out)["fields"]["authorization"] == f"Bearer {VALUE}", name
        seen(world)
        run(box, "git ls-remote https://api.example.com/repository 2>&1")
        asked = [one["fields"] for one in seen(world) if one.get("path", "").startswith("/repository")]
        assert asked
        assert asked[0]["authorization"] == f"Bearer {VALUE}"
        assert "authorization" not in ask(box, "https://free.example.com/ -k")["fields"]
        assert "authorization" not in ask(box, "https://sub.api.example.com/ -k")["fields"]
        told = box.get_info().network
        assert told
        assert told["rules"] == {
            "api.example.com": [{"transform": {"headers": {"Authorization": "Bearer ${e2b.secrets.Model-Key}"}}}]
        }


@pytest.mark.usefixtures("secret")
def test_kernels_and_java_trust_the_box_s_authority(server: Abroad) -> None:
    box = server.cell(timeout=120, network=with_key())
    try:
        code = f"import requests\nprint(requests.get('{SHOWN}', timeout=10).json()['fields']['authorization'])"
        ran = box.run_code(code)
        assert "".join(ran.logs.stdout).strip() == f"Bearer {VALUE}", ran
        box.files.write("/tmp/T.java", JAVA)
        out = run(box, "cd /tmp && java T.java 2>&1")[1]
        assert f"Bearer {VALUE}" in out, out
    finally:
        box.kill()


JAVA = f"""
import java.net.URI;
import java.net.http.*;
public class T {{
  public static void main(String[] a) throws Exception {{
    var request = HttpRequest.newBuilder(URI.create("{SHOWN}")).version(HttpClient.Version.HTTP_1_1).build();
    System.out.println(HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body());
  }}
}}
"""

# Searches what root of a box can read of its processes: variables and memory.
SEARCH = """
import glob, re, sys
wanted, found = bytes.fromhex(sys.argv[1]), set()
for place in glob.glob("/proc/[0-9]*"):
    try:
        if wanted in open(place + "/environ", "rb").read():
            found.add(place + "/environ")
        mem = open(place + "/mem", "rb", 0)
        for line in open(place + "/maps"):
            start, end = (int(x, 16) for x in line.split()[0].split("-"))
            if "r" not in line.split()[1] or "[v" in line:
                continue
            mem.seek(start)
            try:
                if wanted in mem.read(end - start):
                    found.add(place)
            except (OSError, OverflowError, MemoryError):
                pass
    except OSError:
        pass
import os
print(sorted(p for p in found if p != f"/proc/{os.getpid()}"))
"""


def test_the_value_is_nowhere_but_in_the_request(world: World, server: Abroad) -> None:
    """The far side does not echo it here: what it answers is the box's to see."""
    key = "PRIVATE KEY"
    e2b.Secret.create("hushed", HUSHED, **access(server))
    with server.box(network=rules(Authorization=f"Bearer {e2b.Secret.fill('hushed')}")) as box:
        seen(world)
        assert ask(box, "https://api.example.com/quiet") == {}
        assert [one["fields"]["authorization"] for one in seen(world)] == [f"Bearer {HUSHED}"]
        box.files.write("/tmp/search.py", SEARCH, user="root")
        assert box.commands.run(f"python3 /tmp/search.py {HUSHED.encode().hex()}", user="root").stdout.strip() == "[]"
        places = "/etc /usr/local /run /tmp /var /home /root /opt"
        for text in (HUSHED, f"BEGIN {key}"):  # of the key's lines the first is enough here
            wanted = f"[{text[0]}]{text[1:]}"  # which is not the text: the command is in the agent's memory
            line = (
                f"grep -rlaI --exclude=search.py -e '{wanted}' {places} 2>&- | grep -v /usr/local/lib | head -3"
            )
            assert box.commands.run(line, user="root").stdout == "", text
        before = box.files.read(CERTIFICATE)
        assert HUSHED not in box.commands.run("env; cat /proc/*/environ | tr '\\0' '\\n'", user="root").stdout
        box.pause()
        for place in [p for p in server.data.rglob("*") if p.is_file() and "layers" not in p.parts]:
            held = place.read_bytes() if place.stat().st_size < 1 << 28 else b""
            assert HUSHED.encode() not in held, place
            assert f"-----BEGIN {key}-----\nM".encode() not in held, place
        assert HUSHED.encode() not in (server.home / "log").read_bytes()
        again = e2b.Sandbox.connect(box.sandbox_id, **server.access)
        assert ask(again)["fields"]["authorization"] == f"Bearer {HUSHED}"
        assert again.files.read(CERTIFICATE) == before


def test_an_update_replaces_the_rules_and_leaves_the_authority(server: Abroad) -> None:
    with server.box() as box:
        assert "x-one" not in ask(box, "https://api.example.com/ -k")["fields"]
        box.update_network(rules(**{"X-One": "1"}))
        assert ask(box)["fields"]["x-one"] == "1"
        before = box.files.read(CERTIFICATE)
        box.update_network(rules("*.api.example.com", **{"X-Two": "2"}))
        fields = ask(box, "https://sub.api.example.com/")["fields"]
        assert (fields.get("x-one"), fields.get("x-two")) == (None, "2")
        assert "x-one" not in ask(box, "https://api.example.com/ -k")["fields"]
        assert box.files.read(CERTIFICATE) == before
        box.update_network({})
        assert "x-two" not in ask(box, "https://sub.api.example.com/ -k")["fields"]
        assert "rules" not in (box.get_info().network or {})


def test_a_changed_secret_counts_at_once_and_a_deleted_one_fails_requests(world: World, server: Abroad) -> None:
    e2b.Secret.create("passing", "first", **access(server))
    with server.box(network=rules(**{"X-Key": e2b.Secret.fill("passing")})) as box:
        assert ask(box)["fields"]["x-key"] == "first"
        e2b.Secret.update("passing", "second", **access(server))
        eventually(lambda: ask(box)["fields"]["x-key"] == "second")
        e2b.Secret.destroy("passing", **access(server))
        eventually(lambda: status(box)[0] == "502")
        assert "passing" in status(box)[1]
        seen(world)
        status(box)
        assert seen(world) == []


def test_another_team_has_no_use_of_the_secret(server: Abroad, secret: str) -> None:
    key = cloche(server, "key", "create", "--team", cloche(server, "team", "create", "strangers"))
    made = e2b.Sandbox.create(
        "base", timeout=60, network=rules(Authorization=e2b.Secret.fill(secret)), **server.access | {"api_key": key}
    )
    try:
        code, out = status(made)
        assert code == "502"
        assert VALUE not in out
        with server.box(network=with_key()) as own:
            assert ask(own)["fields"]["authorization"] == f"Bearer {VALUE}"
            assert made.files.read(CERTIFICATE) != own.files.read(CERTIFICATE)
    finally:
        made.kill()


def test_a_lying_name_server_gets_nothing(world: World, server: Abroad) -> None:
    with server.box(network=rules("lied.example.com", **{"X-Key": "plain-secret"})) as box:
        seen(world)
        code, out = status(box, "https://lied.example.com/")
        assert code == "502", out
        assert seen(world) == []


@pytest.mark.usefixtures("secret")
def test_forks_have_the_rules_and_an_authority_of_their_own(server: Abroad) -> None:
    with server.box(network=with_key()) as box:
        before = box.files.read(CERTIFICATE)
        (made,) = server.wire.call("POST", f"/sandboxes/{box.sandbox_id}/fork", {"timeout": 60}).json()
        fork = e2b.Sandbox.connect(made["sandbox"]["sandboxID"], **server.access)
        try:
            assert ask(fork)["fields"]["authorization"] == f"Bearer {VALUE}"
            assert fork.files.read(CERTIFICATE) != before
            assert ask(box)["fields"]["authorization"] == f"Bearer {VALUE}"
        finally:
            fork.kill()


def test_an_identity_token_is_signed_for_each_box(server: Abroad) -> None:
    iam = {"tokens": {"aws": {"audience": "sts.example.com", "tokenType": "JWT-SVID"}}}
    network = rules(**{"X-Token": "${e2b.identity.tokens.aws}"})
    made = server.wire.call("POST", "/v2/sandboxes", {"templateID": "base", "iam": iam, "network": network})
    assert made.status == 201, made.body
    box = e2b.Sandbox.connect(made.json()["sandboxID"], **server.access)
    try:
        parts = ask(box)["fields"]["x-token"].split(".")
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=="))
        assert claims["aud"] in ("sts.example.com", ["sts.example.com"])
        other = rules(**{"X-Token": "${e2b.identity.tokens.other}"})
        told = server.wire.call("PUT", f"/sandboxes/{box.sandbox_id}/network", other)
        assert told.status == 400
        assert "'other'" in told.body.decode()
        refused = server.wire.call("POST", "/v2/sandboxes", {"templateID": "base", "iam": iam, "network": other})
        assert refused.status == 400
        assert ask(box)["fields"]["x-token"]
    finally:
        box.kill()


@pytest.mark.usefixtures("secret")
def test_rules_outlast_the_warden_and_the_gateway(server: Abroad) -> None:
    with server.box(network=with_key()) as box:
        for role in (server.wardens, lambda: gateways(server)):
            (pid,) = role()
            os.kill(pid, signal.SIGKILL)
            eventually(lambda role=role, pid=pid: role() not in ([], [pid]), state=server.log)
            eventually(lambda: server.wire.call("GET", "/sandboxes").status == 200, state=server.log)
            eventually(lambda: status(box)[0] == "200", state=server.log)
            assert ask(box)["fields"]["authorization"] == f"Bearer {VALUE}"


def key_of_settings(server: Abroad) -> set[str]:
    link = sqlite3.connect(f"file:{server.data}/cloche.db?mode=ro", uri=True, timeout=10)
    try:
        return {key for (key,) in link.execute("SELECT key FROM box_egress")}
    finally:
        link.close()


def test_settings_of_boxes_go_with_the_master_key(server: Abroad) -> None:
    """Exchanged while boxes run; then missing, and put back: without it nothing goes out, and nothing is lost."""
    master = server.data / "secrets.key"
    with server.box(network=rules(**{"X-One": "1"})) as box, server.box(network=rules(**{"X-Two": "2"})) as paused:
        paused.pause()
        (before,) = key_of_settings(server)
        cloche(server, "secret", "rotate-key")
        assert len(master.read_text().split()) == 1
        assert len(key_of_settings(server)) == 1
        assert key_of_settings(server) != {before}
        held = master.read_bytes()
        master.unlink()
        (pid,) = server.wardens()
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: server.wardens() not in ([], [pid]), state=server.log)
        eventually(lambda: server.wire.call("GET", "/sandboxes").status == 200, state=server.log)
        assert not master.exists()
        assert run(box, f"curl -sk -o /dev/null -m 10 {SHOWN}")[0] != 0
        made = server.wire.call("POST", "/v2/sandboxes", {"templateID": "base", "network": rules(**{"X-One": "1"})})
        assert (made.status, "master key" in made.text) == (503, True)
        refused = server.wire.call("POST", f"/sandboxes/{paused.sandbox_id}/connect", {"timeout": 60})
        assert (refused.status, "rules or proxy" in refused.text) == (503, True), refused.body
        forked = server.wire.call("POST", f"/sandboxes/{box.sandbox_id}/fork", {"timeout": 60})
        assert "rules or proxy" in forked.text
        master.touch(mode=0o600)
        master.write_bytes(held)
        kept = {"name": "back-again", "value": "any"}
        eventually(lambda: server.wire.call("POST", "/secrets", kept).status == 201, state=server.log)
        eventually(lambda: status(box)[0] == "200", state=server.log)
        assert ask(box)["fields"]["x-one"] == "1"
        again = e2b.Sandbox.connect(paused.sandbox_id, **server.access)
        assert ask(again)["fields"]["x-two"] == "2"


def test_a_box_s_traffic_goes_through_its_own_proxy(world: World, server: Abroad) -> None:
    proxy = {"address": f"{PROXY}:1080", "username": "agent", "password": "proxy-pass"}
    with server.box(network={**rules(**{"X-One": "1"}), "egress_proxy": proxy}) as box:
        seen(world)
        assert ask(box)["fields"]["x-one"] == "1"
        assert any(one.get("user") == "agent" and one["port"] == 443 for one in seen(world))
        assert box.get_info().network["egress_proxy"] == {"address": f"{PROXY}:1080", "username": "agent"}
        held = b"".join(p.read_bytes() for p in server.data.glob("*.db*")) + (server.home / "log").read_bytes()
        assert b"proxy-pass" not in held
        box.update_network({"egress_proxy": {"address": f"{PROXY}:9"}})
        assert run(box, "curl -sS -m 10 http://api.example.com/")[0] != 0
        box.update_network({})
        assert run(box, "curl -sS -m 10 http://api.example.com/")[0] == 0


@pytest.mark.parametrize(
    "address, word",
    [
        ("nowhere.example.com:1080", "can't be resolved"),
        ("inward.example.com:1080", "192.168.77.7"),
        ("192.168.77.7:1080", "private"),
    ],
)
def test_a_proxy_that_may_not_be_reached_is_refused_before_there_is_a_box(
    server: Abroad, address: str, word: str
) -> None:
    network = {"egressProxy": {"address": address}}
    got = server.wire.call("POST", "/v2/sandboxes", {"templateID": "base", "network": network})
    assert got.status == 400, got.body
    assert word in got.json()["message"]
    assert server.wire.call("GET", "/v2/sandboxes").json() == []


SCRIPT = """
import { Sandbox, Secret } from 'e2b'
const opts = { apiKey: process.env.KEY, apiUrl: process.env.URL, sandboxUrl: process.env.URL }
const headers = { Authorization: `Bearer ${Secret.fill('Model-Key')}` }
const network = { rules: { 'api.example.com': [{ transform: { headers } }] } }
const box = await Sandbox.create('base', { ...opts, network })
try {
  const ran = await box.commands.run('curl -sS https://api.example.com/')
  console.log(JSON.stringify([JSON.parse(ran.stdout).fields.authorization, (await box.getInfo()).network.rules]))
} finally {
  await box.kill()
}
"""


@pytest.mark.usefixtures("secret")
def test_the_other_stock_client_writes_the_same(server: Abroad) -> None:
    done = subprocess.run(
        ["node", "--input-type=module", "-e", SCRIPT],
        cwd=JS, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "KEY": str(server.key), "URL": server.url},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    value, told = json.loads(done.stdout)
    assert value == f"Bearer {VALUE}"
    assert list(told) == ["api.example.com"]
