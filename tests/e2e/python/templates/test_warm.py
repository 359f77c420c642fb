# SPDX-License-Identifier: Apache-2.0
"""What a new build's first sandbox finds ready: a loaded Python, and a server that an earlier build of the same has
started."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import e2b_code_interpreter as interpreter
import pytest

from support.recipes import Order, fresh, order, run, step
from support.server import Server, own_server
from support.state import instance
from support.waiting import eventually
from support.wire import INTERPRETER_PORT, RawBox, Wire

SERVE = "date +%s%N > /tmp/begun; exec python3 -m http.server 8201"
LISTENS = '[ -n "$(ss -Htln sport = :8201)" ]'


@pytest.fixture
def server() -> Iterator[Server]:
    with own_server(start=False) as made:
        yield made


def first_cell(name: str, code: str = "1 + 1") -> tuple[float, str | None]:
    """From the request for a sandbox to its first result."""
    began = time.monotonic()
    box = interpreter.Sandbox.create(name, timeout=60)
    try:
        result = box.run_code(code)
        assert result.error is None, result.error
        return time.monotonic() - began, result.text
    finally:
        box.kill()


def limit() -> float:
    """A second; on a machine that has no time, a few times what the template everyone uses takes there."""
    return max(1.0, 3 * first_cell("code-interpreter-v1")[0])


def soon_enough(name: str, code: str, times: int = 1) -> set[str]:
    """What the first cells of new boxes say, until one comes in time: a bad moment hits one box, but not one after the
    other."""
    said, took = set(), []
    while not took or took[-1] >= times * limit():
        assert len(took) < 5, f"first cells came after {took} s"
        seconds, text = first_cell(name, code)
        took.append(seconds)
        said.add(text)
    return said


def serving(wire: Wire, *steps: dict, **recipe: object) -> Order:
    recipe = {
        "fromTemplate": "code-interpreter-v1",
        "startCmd": SERVE,
        "readyCmd": LISTENS,
    } | recipe
    return order(wire, fresh("serving"), *steps, **recipe).ready()


def begun(build: Order) -> str:
    box = build.box()
    try:
        assert box.port(8201, path="/").status == 200
        code, out, errors = box.run("cat /tmp/begun")
        assert code == 0, errors
        return out
    finally:
        box.kill()


@pytest.mark.parametrize(
    "line",
    ["echo {name} > ~/note", (
    "echo 'WORD = \"{name}\"' > $(python3 -c 'import IPython as i; "
    "print(i.__path__[0])')/../word_of_test.py"
)],
    ids=["files elsewhere", "a module beside the others"],
)  # fmt: skip
def test_the_first_cell_of_a_new_build_does_not_wait_for_python(wire: Wire, line: str) -> None:
    name = fresh("warm")
    order(
        wire, name, run(line.format(name=name), "root"), fromTemplate="code-interpreter-v1"
    ).ready()
    assert soon_enough(name, "1 + 1") == {"2"}


def test_a_changed_library_is_the_one_that_is_loaded(wire: Wire) -> None:
    """A template that changes what Python loads must not get its parent's Python."""
    name = fresh("other")
    where = "$(python3 -c 'import numpy.version as v; print(v.__file__)')"
    change = f"sed -i '1i CHANGED = \"{name}\"' {where}"
    order(wire, name, run(change, "root"), fromTemplate="code-interpreter-v1").ready()
    assert first_cell(name, "import numpy; numpy.version.CHANGED")[1] == name
    assert (
        first_cell("code-interpreter-v1", "import numpy; hasattr(numpy.version, 'CHANGED')")[1]
        == "False"
    )


def test_variables_are_each_templates_own_though_python_is_shared(wire: Wire) -> None:
    names = [fresh("own"), fresh("own")]
    for name in names:
        order(
            wire,
            name,
            step("ENV", "WORD", name, f"ONLY_{names.index(name)}", "1"),
            fromTemplate="code-interpreter-v1",
        ).ready()
    code = "import os; (os.environ['WORD'], sorted(k for k in os.environ if k.startswith('ONLY_')))"
    for at, name in enumerate(names):
        assert first_cell(name, code)[1] == repr((name, [f"ONLY_{at}"]))


def test_boxes_of_a_ready_template_have_a_loaded_python_of_their_own(wire: Wire) -> None:
    build = serving(wire, step("ENV", "WORD", fresh("word")))
    draw = "import random, uuid; (random.random(), uuid.uuid4().hex)"
    drawn = soon_enough(build.name, draw, 2) | {first_cell(build.name, draw)[1]}
    assert len(drawn) > 1


def test_the_same_recipe_again_does_not_start_its_server_again(wire: Wire) -> None:
    steps = (step("ENV", "MARK", fresh("mark")),)
    one, two = serving(wire, *steps), serving(wire, *steps)
    assert not any("CACHED [finalize]" in line for line in one.log())
    assert any("CACHED [finalize]" in line for line in two.log())
    assert not any("Running start command" in line for line in two.log())
    assert begun(one) == begun(two)
    assert wire.call("DELETE", f"/templates/{one.template}").status in (200, 204)
    assert begun(two), "the image is both builds'"
    three = serving(wire, *steps)
    assert begun(three) == begun(two)


def test_another_command_or_size_or_force_starts_it_anew(wire: Wire) -> None:
    steps = (step("ENV", "MARK", fresh("mark")),)
    first = begun(serving(wire, *steps))
    assert begun(serving(wire, *steps, startCmd="true; " + SERVE)) != first
    assert begun(serving(wire, *steps, readyCmd="true; " + LISTENS)) != first
    assert begun(serving(wire, *steps, force=True)) != first
    sized = Order(wire, fresh("sized"), {"cpuCount": 1, "memoryMB": 512}).request()
    sized.start(
        *steps, fromTemplate="code-interpreter-v1", startCmd=SERVE, readyCmd=LISTENS
    ).ready()
    assert begun(sized) != first


def zygotes(server: Server) -> list[str]:
    return [entry.name for entry in (server.data / "boxes").iterdir() if entry.name.startswith("zygote-")]


def test_rebuilds_do_not_pile_up_pythons(server: Server) -> None:
    server.start("--zygotes-max", "2", "--private-zygotes", "1")
    common = {"fromTemplate": "code-interpreter-v1"}
    order(server.wire, fresh("first"), **common).ready()
    usual = len(zygotes(server))
    for _ in range(4):
        name = fresh("own")
        order(server.wire, name, run(f"echo {name} > /etc/python-of-test", "root"), **common).ready()
    eventually(lambda: len(zygotes(server)) <= usual + 2, 90, state=lambda: zygotes(server))
    for _ in range(2):
        order(server.wire, fresh("shared"), run("echo x > ~/x"), **common).ready()
    assert len(zygotes(server)) <= usual + 2


def own_python(server: Server) -> str:
    """A template whose Python would load what no ready-made template has."""
    name = fresh("own")
    change = run(f"echo {name} > /etc/python-of-test", "root")
    order(server.wire, name, change, fromTemplate="code-interpreter-v1").ready()
    return name


def kernels(box: RawBox) -> list[str]:
    lines = box.run("ps -eo args", user="root")[1].splitlines()
    return [line for line in lines if "kernels/python/main.py" in line]


def warm(server: Server) -> list[Path]:
    """Kernels that wait in boxes nobody has yet, by their processes."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            ready = f"{instance(str(server.data))}/ready-" in (entry / "cgroup").read_text()
            if ready and b"--nursery" in (entry / "cmdline").read_bytes():
                found.append(entry)
        except OSError:
            continue
    return found


def box_of(process: Path) -> str:
    try:
        return (process / "cgroup").read_text().split("/ready-", 1)[1].splitlines()[0]
    except (OSError, IndexError):
        return ""


@pytest.mark.parametrize("trusted", ["0", "1"], ids=["in its box", "outside"])
def test_a_python_of_its_own_is_loaded_before_anybody_asks(server: Server, trusted: str) -> None:
    server.start("--private-zygotes", trusted)
    name = own_python(server)
    if trusted == "0":
        eventually(lambda: len(warm(server)) >= 2, 60)  # what forks the kernels, and the first of them
    box = server.wire.create(name, timeout=120)
    try:
        assert any("42" in str(event) for event in box.execute("6 * 7"))
        found = kernels(box)
        assert found, found
        assert {line.endswith("--zygote") for line in found} == {trusted == "1"}, found
        made = box.port(
            INTERPRETER_PORT, "POST", "/contexts", {"language": "python"}, headers={"X-Access-Token": box.token}
        )
        assert made.status == 200, made.body
        assert any("43" in str(event) for event in box.execute("6 * 7 + 1", context_id=made.json()["id"]))
    finally:
        box.kill()


def test_boxes_that_load_their_own_python_are_few(server: Server) -> None:
    """Each has what all others share, so their memory has a limit, whatever the number of templates and of creates."""
    server.start("--ready-pool-mb", "256", "--ready-pool", "2", "--pool", "4")
    names = [own_python(server) for _ in range(3)]
    for name in names * 2:
        server.wire.create(name, timeout=60).kill()
    most, until = 0, time.monotonic() + 6
    while time.monotonic() < until:
        most = max(most, len({box_of(path) for path in warm(server)}))
        time.sleep(0.2)  # between looks; there must never be a third
    assert 1 <= most <= 2


def test_another_teams_image_is_not_shared(wire: Wire, stranger: Wire) -> None:
    steps = (step("ENV", "MARK", fresh("mark")),)
    assert begun(serving(wire, *steps)) != begun(serving(stranger, *steps))
