# SPDX-License-Identifier: Apache-2.0
"""Thousands of requests nobody would write: each gets a kind refusal, none a fault.

NOISE_SECONDS makes it go on for so long with new dice each round (`make soak`: ten minutes), and then the daemon
must not have grown either.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import string
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from support import state
from support.server import children
from support.waiting import eventually
from support.wire import RawBox, Wire

SEED = 20261115
ROUNDS = 2500
SECONDS = float(os.environ.get("NOISE_SECONDS", "0"))
GROWTH_MB = 8  # caches and pools of the daemon's roles together; a leak per request would be far more

ROUTES = """
POST /sandboxes
POST /v2/sandboxes
GET /sandboxes
GET /v2/sandboxes
GET /sandboxes/{id}
POST /sandboxes/{id}/timeout
POST /sandboxes/{id}/refreshes
POST /sandboxes/{id}/connect
POST /v2/sandboxes/{id}/connect
POST /sandboxes/{id}/resume
PUT /sandboxes/{id}/network
GET /sandboxes/{id}/metrics
GET /sandboxes/metrics
GET /sandboxes/{id}/logs
GET /v2/sandboxes/{id}/logs
POST /sandboxes/{id}/fork
POST /sandboxes/{id}/snapshots
GET /snapshots
GET /templates
GET /v2/templates
GET /templates/{word}
GET /templates/{word}/tags
GET /templates/aliases/{word}
POST /templates/tags
DELETE /templates/tags
PATCH /v2/templates/{word}
DELETE /templates/{word}
GET /volumes
GET /secrets/{word}
GET /teams
GET /api-keys
PATCH /api-keys/{word}
DELETE /api-keys/{word}
GET /nodes
GET /{word}/{word}
"""

KEYS = """
templateID timeout metadata envVars network allowOut denyOut rules secure autoPause autoResume
autoPauseMemory allow_internet_access maskRequestHost egressProxy httpsPorts name tags target
public memory duration iam volumeMounts
"""

QUERIES = """
limit nextToken metadata state order startedAfter start end cursor direction level search
template sandbox_ids teamID
"""


class Dice(random.Random):
    def word(self) -> str:
        pool = string.ascii_letters + string.digits + "%/:-_. \x00\u00e4\U0001f600{}[]\"'\\&=?#"
        return "".join(self.choices(pool, k=self.randint(0, 24)))

    def value(self, depth: int = 0) -> object:
        if depth < 3 and self.random() < 0.35:
            if self.random() < 0.5:
                return [self.value(depth + 1) for _ in range(self.randint(0, 4))]
            return {self.choice([self.word(), self.choice(KEYS.split())]): self.value(depth + 1)
                    for _ in range(self.randint(0, 4))}  # fmt: skip
        return self.choice([
            None, True, False, 0, -1, 1, 60, 2**31, -(2**63), 1e308, 0.5, "", "base", "0.0.0.0/0",
            "example.com", self.word(), "x" * self.randint(0, 5000),
        ])  # fmt: skip

    def body(self) -> bytes | None:
        kind = self.random()
        if kind < 0.1:
            return None
        if kind < 0.2:
            return self.randbytes(self.randint(0, 200))
        made: object = {self.choice(KEYS.split()): self.value() for _ in range(self.randint(0, 6))}
        if kind < 0.3:
            made = self.value()
        text = json.dumps(made).encode("utf-8", "surrogatepass")
        if kind < 0.4 and text:
            cut = self.randrange(len(text))
            text = text[:cut] + self.randbytes(2) + text[cut + 1 :]
        return text

    def query(self) -> str:
        pairs = [f"{self.choice(QUERIES.split())}={quote(self.word(), safe='%&=')}"
                 for _ in range(self.randint(0, 3))]  # fmt: skip
        return "?" + "&".join(pairs) if pairs else ""


@pytest.fixture
def living(wire: Wire) -> Iterator[RawBox]:
    box = wire.create(timeout=600)
    yield box
    box.kill()


def pick(dice: Dice, living: RawBox) -> tuple[str, str, bytes | None]:
    """A request: method, target, body."""
    method, path = dice.choice(ROUTES.strip().splitlines()).split()
    odd = quote(dice.word(), safe="%")
    name = dice.choice([living.id, living.id, "inonexistent00000000x", odd])
    path = path.replace("{id}", name).replace("{word}", quote(dice.word(), safe="%") or "x")
    target = path + (dice.query() if method == "GET" else "")
    return method, target.replace(" ", "+"), dice.body() if method != "GET" else None


def make_noise(wire: Wire, living: RawBox, dice: Dice, rounds: int) -> int:
    """Sends that many; gives the number of answers that came."""
    made: list[str] = []
    templates: list[str] = []
    heard = 0
    link = wire.connect(30)
    for turn in range(rounds):
        method, target, body = pick(dice, living)
        headers = {"X-API-KEY": wire.key or "", "Content-Type": "application/json"}
        try:
            link.request(method, target, body, headers)
            got = link.getresponse()
            told = got.read()
        except (http.client.HTTPException, ConnectionError):
            link.close()
            link = wire.connect(30)
            continue
        heard += 1
        what = f"turn {turn}: {method} {target} {body!r} -> {got.status} {told[:300]!r}"
        assert got.status < 500 or got.status == 501, what
        if got.status >= 400:
            assert json.loads(told)["code"] == got.status, what
            assert json.loads(told)["message"], what
        if got.status == 201 and b"sandboxID" in told:
            told = json.loads(told)
            forks = told if isinstance(told, list) else [{"sandbox": told}]
            made += [one["sandbox"]["sandboxID"] for one in forks if "sandbox" in one]
        elif got.status in (200, 201, 202) and method == "POST" and (b"templateID" in told or b"snapshotID" in told):
            told = json.loads(told)
            templates.append(told.get("templateID") or told["snapshotID"])
    link.close()
    for name in templates:
        wire.call("DELETE", f"/templates/{quote(name, safe='')}")
    for name in set(made) - {living.id}:
        wire.call("DELETE", f"/sandboxes/{name}")
    return heard


@pytest.mark.timeout(180)
def test_noise_gets_kind_refusals(wire: Wire, living: RawBox) -> None:
    make_noise(wire, living, Dice(SEED), ROUNDS)
    assert wire.call("GET", "/health").status == 200
    after = wire.create(timeout=60)  # `living` may have been told to end
    assert after.agent("GET", "/health").status == 204
    after.kill()


def daemon_size() -> tuple[float, int]:
    """Private memory in MB and open descriptors of all roles."""
    supervisor = int((Path(os.environ["CLOCHE_DATA"]).parent / "server.pid").read_text())
    private, files = 0.0, 0
    for pid in [supervisor, *children(supervisor)]:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        private += sum(int(n) for n in re.findall(r"^Private_\w+:\s+(\d+) kB", text, re.MULTILINE)) / 1024
        files += len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return private, files


def kinds(data: str) -> Counter[str]:
    """How many mounts, control groups, loop devices and processes the server has."""
    return Counter(line.split()[0] for line in state.look(data))


if SECONDS:

    @pytest.mark.timeout(SECONDS * 1.5 + 300)
    def test_long_noise_leaves_nothing_behind(wire: Wire, capsys: pytest.CaptureFixture[str]) -> None:
        data = os.environ["CLOCHE_DATA"]
        seed, heard, began = SEED, 0, time.monotonic()
        sizes: list[tuple[float, int]] = []
        usual: Counter[str] = Counter()
        while time.monotonic() < began + SECONDS or len(sizes) < 4:
            box = wire.create(timeout=3600)
            heard += make_noise(wire, box, Dice(seed), ROUNDS)
            box.kill()
            seed += 1
            time.sleep(1)  # the sizes are those of a daemon at rest
            sizes.append(daemon_size())
            if len(sizes) == 2:  # caches are warm, the pool is full
                usual = kinds(data)
        with capsys.disabled():
            print(f"\nnoise: {heard} answers in {time.monotonic() - began:.0f} s, none a fault; sizes of the daemon"
                  f" (MB, descriptors): {sizes[0]}, {sizes[1]} ... {sizes[-1]}")  # fmt: skip
        assert sizes[-1][0] < sizes[1][0] + GROWTH_MB, sizes
        assert sizes[-1][1] < sizes[1][1] + 32, sizes
        # Boxes of the pool have new names, but there are no more of them.
        eventually(lambda: not kinds(data) - usual, state=lambda: (usual, kinds(data)))
