# SPDX-License-Identifier: Apache-2.0
"""Forks: as many as asked for, with everything the source had, and nothing shared from then on."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import e2b
import e2b_code_interpreter as interpreter
import pytest
import pytest_asyncio

from support.either import Either
from support.paused import (
    connect,
    counts_on,
    detail,
    fork,
    moment,
    pause,
    start_counting,
    text_of,
)
from support.waiting import eventually
from support.wire import RawBox, Wire

COUNT = 3
DRAWS = {
    "random": "import random; random.random()",
    "numpy": "import numpy; float(numpy.random.random())",
    "uuid4": "import uuid; str(uuid.uuid4())",
    "urandom": "import os; os.urandom(8).hex()",
    "secrets": "import secrets; secrets.token_hex(8)",
}

JAVA_DRAWS = [
    "Math.random()",
    "StrictMath.random()",
    "ThreadLocalRandom.current().nextLong()",
    "new SplittableRandom().nextLong()",
    "new Random().nextLong()",
    "RandomGenerator.getDefault().nextLong()",
    "UUID.randomUUID().toString()",
    "new java.security.SecureRandom().nextLong()",
    "var deck = new ArrayList<>(IntStream.range(0, 60).boxed().toList()); Collections.shuffle(deck); deck.toString()",
]
JAVA_PRIMED = "import java.util.random.RandomGenerator;\n" + "\n".join(f"{code};" for code in JAVA_DRAWS)

# Cells that draw numbers for ever, a line each.
DRAWING = {
    "python": """
import random, time
random.seed(7)
with open('/tmp/drawn', 'w', buffering=1) as drawn:
    while True:
        print(random.random(), file=drawn)
        time.sleep(0.01)
""",
    "javascript": """
const fs = require('fs'), nap = new Int32Array(new SharedArrayBuffer(4))
while (true) {
  fs.appendFileSync('/tmp/drawn', `${Math.random()}\\n`)
  Atomics.wait(nap, 0, 0, 10)
}
""",
    "java": """
while (true) {
    Files.writeString(Path.of("/tmp/drawn"), Math.random() + "\\n", StandardOpenOption.CREATE,
        StandardOpenOption.APPEND);
    Thread.sleep(10);
}
""",
}


class TestFamily:
    """One source with state, and its forks."""

    @pytest_asyncio.fixture(scope="class", params=["sync", "async"])
    async def family(self, request: pytest.FixtureRequest) -> AsyncIterator[list[Either]]:
        options = {"timeout": 120, "metadata": {"of": "source"}, "envs": {"GIVEN": "yes"}}
        if request.param == "sync":
            source = Either(interpreter.Sandbox.create(**options))
        else:
            source = Either(await interpreter.AsyncSandbox.create(**options))
        members = [source]
        try:
            await source.run_code(
                "import random, numpy, uuid\nrandom.seed(1); shared = ['source']; opened = open('/tmp/o', 'w+')"
            )
            await source.run_code("globalThis.kept = 7", language="javascript")
            await source.files.write("shared.txt", "source")
            await source.commands.run(
                "n=0; while :; do n=$((n+1)); echo $n > /tmp/next; mv /tmp/next /tmp/count; sleep 0.05; done",
                background=True, timeout=0,
            )  # fmt: skip
            await source.run_code("Math.random()", language="javascript")
            await source.run_code("RANDOM=7; echo $RANDOM", language="bash")
            await source.run_code("set.seed(7); runif(1)", language="r")
            await source.run_code(JAVA_PRIMED, language="java")
            before = (await source.get_info()).end_at
            made = await source.fork(count=COUNT, timeout=90)
            assert len(made) == COUNT
            for entry in made:
                assert not isinstance(entry, Exception), entry
                members.append(Either(entry))
            assert (await source.get_info()).end_at == before, "a fork does not change the source's end"
            yield members
        finally:
            for member in members:
                await member.kill()

    async def test_every_one_is_a_box_of_its_own(self, family: list[Either]) -> None:
        assert len({member.sandbox_id for member in family}) == COUNT + 1
        tokens = {member.inner._envd_access_token for member in family}
        assert len(tokens) == COUNT + 1
        source = await family[0].get_info()
        for member in family[1:]:
            info = await member.get_info()
            assert (info.state.value, info.metadata) == ("running", {"of": "source"})
            assert info.template_id == source.template_id
            assert (info.end_at - info.started_at).total_seconds() == pytest.approx(90, abs=2)

    async def test_they_know_who_they_are(self, family: list[Either]) -> None:
        for member in family:
            said = await member.commands.run("echo $E2B_SANDBOX_ID; cat /run/e2b/.E2B_SANDBOX_ID; echo; echo $GIVEN")
            assert said.stdout.split() == [member.sandbox_id, member.sandbox_id, "yes"]

    async def test_they_are_machines_of_their_own(self, family: list[Either]) -> None:
        told = [await member.files.read("/etc/machine-id") for member in family]
        assert len(set(told)) == COUNT + 1, told
        assert {len(one.strip()) for one in told} == {32}

    async def test_memory_is_there_and_apart(self, family: list[Either]) -> None:
        for number, member in enumerate(family):
            got = await member.run_code(f"shared.append({number}); shared")
            assert got.text == f"['source', {number}]", got.error
        for number, member in enumerate(family):
            assert (await member.run_code("shared[1:]")).text == f"[{number}]"
            assert (await member.run_code("kept", language="javascript")).text == "7"

    async def test_files_are_there_and_apart(self, family: list[Either]) -> None:
        for number, member in enumerate(family):
            assert await member.files.read("shared.txt") == "source"
            await member.files.write("shared.txt", str(number))
            await member.run_code(f"opened.seek(0); opened.write('{number}'); opened.flush()")
        for number, member in enumerate(family):
            assert await member.files.read("shared.txt") == str(number)
            assert await member.files.read("/tmp/o") == str(number)

    async def test_processes_run_in_all(self, family: list[Either]) -> None:
        for member in family:
            first = int(await member.files.read("/tmp/count"))
            done = await member.commands.run("sleep 0.5; cat /tmp/count")
            assert int(done.stdout) > first

    @pytest.mark.parametrize("source", DRAWS)
    async def test_random_numbers_differ_between_forks(self, family: list[Either], source: str) -> None:
        drawn = [(await member.run_code(DRAWS[source])).text for member in family]
        for one, other in combinations(drawn, 2):
            assert one != other, drawn

    @pytest.mark.parametrize(
        ("language", "code"),
        [
            ("javascript", "crypto.randomUUID()"),
            ("javascript", "Math.random()"),
            ("bash", "echo $RANDOM$RANDOM$RANDOM"),
            ("bash", "echo $SRANDOM$SRANDOM"),
            ("r", "cat(runif(3))"),
            *(("java", code) for code in JAVA_DRAWS),
        ],
    )
    async def test_chance_differs_in_other_languages(self, family: list[Either], language: str, code: str) -> None:
        drawn = []
        for member in family:
            got = await member.run_code(code, language=language)
            assert got.error is None, got.error
            drawn.append(got.text or "".join(got.logs.stdout))
        assert all(drawn), drawn
        assert len(set(drawn)) == COUNT + 1, drawn


@pytest.fixture
def box(wire: Wire) -> Iterator[RawBox]:
    made = wire.create(timeout=120)
    yield made
    made.kill()


def forks_of(box: RawBox, **body: object) -> list[RawBox]:
    got = fork(box, **body)
    assert got.status == 201, got.body
    entries = got.json()
    assert all(set(entry) == {"sandbox"} for entry in entries), entries
    return [RawBox(box.wire, entry["sandbox"]) for entry in entries]


@pytest.mark.parametrize("language", DRAWING)
def test_a_cell_that_draws_numbers_draws_others_in_a_fork(language: str) -> None:
    """It is told in the middle of its work. Numbers of both are the same up to then, and differ at some place after
    it."""
    source = interpreter.Sandbox.create(timeout=300)
    boxes = [source]

    def draw() -> None:
        with contextlib.suppress(Exception):  # the stream ends with the box
            source.run_code(DRAWING[language], language=language, timeout=0)

    def drawn(box: interpreter.Sandbox) -> list[str]:
        found = box.commands.run("cat /tmp/drawn 2>/dev/null || true").stdout.splitlines()
        return found[:-1]  # the last may be half a line

    def differ() -> bool:
        one, other = (drawn(box) for box in boxes)
        return any(mine != its for mine, its in zip(one, other, strict=False))

    worker = threading.Thread(target=draw, daemon=True)
    worker.start()
    try:
        eventually(lambda: len(drawn(source)) > 3, 60)
        (made,) = source.fork(timeout=300)
        assert isinstance(made, interpreter.Sandbox), made
        boxes.append(made)
        assert drawn(made)[:3] == drawn(source)[:3]
        eventually(differ, 60)
    finally:
        for box in boxes:
            box.kill()
        worker.join(30)


def test_a_machine_s_id_outlives_a_sleep_and_one_that_a_user_gave_a_fork(box: RawBox) -> None:
    read = "cat /etc/machine-id"
    born = box.run(read)[1]
    assert pause(box).status == 204
    assert connect(box).status == 201
    assert box.run(read)[1] == born
    given = "0123456789abcdef0123456789abcdef\n"
    box.run(f"printf '{given.strip()}\\n' > /etc/machine-id", user="root")
    child = forks_of(box, timeout=60)[0]
    try:
        assert child.run(read)[1] == given
    finally:
        child.kill()


def test_a_fork_of_a_fork_and_a_killed_source(wire: Wire, box: RawBox) -> None:
    start_counting(box)
    child = forks_of(box, timeout=60)[0]
    grandchild = None
    try:
        assert box.kill() == 204
        counts_on(child)
        grandchild = forks_of(child, timeout=60)[0]
        assert child.kill() == 204
        counts_on(grandchild)
    finally:
        child.kill()
        if grandchild:
            grandchild.kill()


def test_a_fork_can_sleep_and_wake(box: RawBox) -> None:
    start_counting(box)
    child = forks_of(box, timeout=60)[0]
    try:
        assert pause(child).status == 204
        counts_on(box)
        got = child.wire.call("POST", f"/sandboxes/{child.id}/connect", {"timeout": 60})
        assert got.status == 201
        assert got.json()["envdAccessToken"] == child.token
        counts_on(child)
    finally:
        child.kill()


def test_what_the_answer_holds(box: RawBox) -> None:
    got = fork(box)
    assert got.status == 201
    made = [RawBox(box.wire, entry["sandbox"]) for entry in got.json()]
    try:
        assert len(made) == 1
        keys = set(made[0].made)
        assert {"templateID", "sandboxID", "clientID", "envdVersion", "envdAccessToken"} <= keys
        about = detail(made[0])
        lasts = (moment(about["endAt"]) - moment(about["startedAt"])).total_seconds()
        assert lasts == pytest.approx(15, abs=2), "15 seconds when nothing is said"
        got = box.wire.call(
            "GET",
            "/files?path=/etc/hostname",
            None,
            made[0].routing(49983) | {"X-Access-Token": box.token},
            with_key=False,
        )
        assert got.status == 401, "the source's token is not the fork's"
    finally:
        for one in made:
            one.kill()


def test_a_fork_of_a_bad_count_or_of_a_paused_box_is_refused(wire: Wire, box: RawBox) -> None:
    for body in ({"count": 0}, {"count": 101}, {"count": -1}, {"count": "many"}, {"timeout": -1}):
        got = fork(box, **body)
        assert (got.status, got.json()["code"]) == (400, 400), body
    got = wire.call("POST", "/sandboxes/inonexistent00000000x/fork", {})
    assert (got.status, got.json()["code"]) == (404, 404)
    assert pause(box).status == 204
    got = fork(box)
    assert (got.status, got.json()["code"]) == (409, 409)


def test_the_sdks_words_for_it(box: RawBox) -> None:
    with pytest.raises(e2b.SandboxNotFoundException):
        e2b.Sandbox.fork("inonexistent00000000x")
    assert pause(box).status == 204
    with pytest.raises(e2b.SandboxException):
        e2b.Sandbox.fork(box.id)


def test_private_traffic_stays_private(wire: Wire) -> None:
    source = wire.create(timeout=60, network={"allowPublicTraffic": False})
    child = None
    try:
        source.run("setsid python3 -m http.server 8903 >/dev/null 2>&1 </dev/null &", cwd="/tmp")
        child = forks_of(source, timeout=60)[0]
        token = child.made["trafficAccessToken"]
        assert token != source.made["trafficAccessToken"]
        assert child.port(8903).status == 403
        assert child.port(8903, headers={"E2B-Traffic-Access-Token": source.made["trafficAccessToken"]}).status == 403
        assert child.port(8903, headers={"E2B-Traffic-Access-Token": token}).status == 200
    finally:
        source.kill()
        if child:
            child.kill()


def test_a_kernel_that_never_ran_forks_too(wire: Wire) -> None:
    source = wire.create("code-interpreter-v1", timeout=60)
    made: list[RawBox] = []
    try:
        made = forks_of(source, count=2, timeout=60)
        draws = {text_of(one.execute("import random; random.random()")) for one in [source, *made]}
        assert len(draws) == 3
    finally:
        for one in [source, *made]:
            one.kill()


def test_chance_differs_in_a_cell_that_was_running(wire: Wire) -> None:
    """Forked in the middle of a cell, which draws its numbers after that."""
    source = wire.create("code-interpreter-v1", timeout=300)
    members = [source]
    seeded = "import os, random, time, numpy; random.seed(7); numpy.random.seed(7)"
    drawn_late = (
        "open('/tmp/begun', 'w').close()\nwhile not os.path.exists('/tmp/draw'):\n    time.sleep(0.05)\n"
        "late = [random.random(), float(numpy.random.random())]"
    )
    try:
        text_of(source.execute(f"{seeded}; None"))
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(source.execute, f"{seeded}\n{drawn_late}")
            eventually(lambda: source.run("test -e /tmp/begun")[0] == 0)
            made = fork(source, count=2, timeout=200)
            assert made.status == 201, made.text
            members += [RawBox(wire, entry["sandbox"]) for entry in made.json()]
            for member in members:
                assert member.run("touch /tmp/draw")[0] == 0
            running.result()
        drawn = [text_of(member.execute("late")) for member in members]
        numbers = [number for text in drawn for number in text.strip("[]").split(", ")]
        assert len(set(numbers)) == 2 * len(members), drawn
    finally:
        for member in members:
            member.kill()
