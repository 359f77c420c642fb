# SPDX-License-Identifier: Apache-2.0
"""A build that fails says where and why, and the SDK points at the line that asked for it."""

from __future__ import annotations

import inspect
import traceback
from pathlib import Path

import e2b
import pytest

from support.recipes import Order, Workshop, fresh, order, run, step
from support.wire import Wire


def here() -> int:
    frame = inspect.currentframe()
    assert frame
    assert frame.f_back
    return frame.f_back.f_lineno


async def failure(workshop: Workshop, template: object) -> tuple[str, int]:
    """The message of the build's failure and the line of this file it is traced to."""
    with pytest.raises(e2b.BuildException) as caught:
        await workshop.build(template, fresh("fails"))
    lines = [f.lineno for f in traceback.extract_tb(caught.value.__traceback__) if f.filename == __file__]
    assert lines, "the trace does not lead here"
    assert lines[-1] is not None
    return str(caught.value), lines[-1]


async def test_a_failing_command_is_named_with_its_status_and_line(workshop: Workshop) -> None:
    builder = workshop.template().from_template("base").run_cmd("echo fine")
    line = here() + 1
    builder.run_cmd("echo about to fail; exit 42")
    builder.run_cmd("echo never")
    message, at = await failure(workshop, builder)
    assert "exit 42" in message
    assert "42" in message.replace("exit 42", "", 1)
    assert at == line
    assert any(text.endswith("about to fail") for text in workshop.messages)
    assert not any(text.endswith("]: never") for text in workshop.messages)


async def test_an_unknown_template_to_start_from(workshop: Workshop) -> None:
    template = workshop.template()
    line = here() + 1
    builder = template.from_template(fresh("no-such"))
    builder.run_cmd("true")
    message, at = await failure(workshop, builder)
    assert "no-such" in message
    assert at == line


async def test_a_start_command_that_dies(workshop: Workshop) -> None:
    builder = workshop.template().from_template("base").run_cmd("true")
    line = here() + 1
    final = builder.set_start_cmd("exit 3", "false")
    _, at = await failure(workshop, final)
    assert at == line


@pytest.mark.parametrize("method", ["remove", "rename", "make_symlink", "pip_install", "git_clone", "copy"])
async def test_helpers_are_traced_too(workshop: Workshop, method: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    builder = workshop.template(tmp_path).from_template("base").run_cmd("true")
    calls = {
        "remove": lambda: builder.remove("/no/such"),
        "rename": lambda: builder.rename("/no/such", "/nowhere"),
        "make_symlink": lambda: builder.make_symlink("/x", "/proc/no/such"),
        "pip_install": lambda: builder.pip_install("/no/such.whl"),
        "git_clone": lambda: builder.git_clone("/no/such/repo"),
        "copy": lambda: builder.copy("f", "/proc/no/such/f"),
    }
    line = inspect.getsourcelines(calls[method])[1]
    calls[method]()
    _, at = await failure(workshop, builder)
    assert at == line


def test_the_number_of_the_step(wire: Wire) -> None:
    build = order(wire, fresh("third"), run("true"), step("ENV", "A", "b"), run("echo oops >&2; false"), run("true"))
    reason = build.failed()
    assert reason["step"] == "3"
    assert "false" in reason["message"]
    done = build.status()
    assert done["logs"] == [] or isinstance(done["logs"], list)
    kept = reason.get("logEntries", [])
    assert all({"timestamp", "message", "level"} <= set(entry) for entry in kept)
    assert all(entry["level"] in ("warn", "error") for entry in kept)
    assert any("oops" in line for line in build.log())


@pytest.mark.parametrize(
    "bad",
    [
        step("FLY", "away"),
        step("RUN"),
        step("ENV", "ODD"),
        step("ENV", "A=B", "x"),
        step("WORKDIR", "/proc/no/such"),
        step("USER", "not a name"),
        run("true", "nobody-of-this-name"),
    ],
    ids=["kind", "run", "env", "env name", "workdir", "user", "run user"],
)
def test_steps_that_make_no_sense(wire: Wire, bad: dict) -> None:
    """Refused at once as a bad request, or failing at their own number."""
    build = order_or_refusal(wire, run("true"), bad)
    if build is not None:
        assert build["step"] == "2", build


def order_or_refusal(wire: Wire, *steps: dict) -> dict | None:
    build = Order(wire, fresh("nonsense")).request()
    got = build.try_start({"steps": list(steps), "fromTemplate": "base"})
    if got.status == 400:
        assert got.json()["code"] == 400
        return None
    assert got.status == 202, got.body
    return build.failed()


def test_an_image_that_cannot_be_had_fails_at_the_base(wire: Wire) -> None:
    build = order(wire, fresh("image"), run("true"), fromImage="127.0.0.1:9/no/such:image")
    assert build.failed()["step"] == "base"


def test_a_failed_build_leaves_the_last_good_one_in_use(wire: Wire) -> None:
    name = fresh("good")
    good = order(wire, name, run("echo good > ~/mark")).ready()
    order(wire, name, run("false")).failed()
    box = good.box()
    try:
        assert box.run("cat ~/mark")[1] == "good\n"
    finally:
        box.kill()


def test_a_template_that_was_never_ready_makes_no_box(wire: Wire) -> None:
    name = fresh("never")
    order(wire, name, run("false")).failed()
    got = wire.call("POST", "/sandboxes", {"templateID": name})
    assert (got.status, got.json()["code"]) == (404, 404)


def test_a_step_killed_for_memory_says_so(wire: Wire) -> None:
    build = Order(wire, fresh("small"), {"memoryMB": 256, "cpuCount": 1}).request()
    build.start(run("exec python3 -c \"b = bytearray(900_000_000); b[::4096] = b'x' * len(b[::4096])\""))
    reason = build.failed()
    assert reason["step"] == "1"
    assert "137" in reason["message"] or "memory" in reason["message"].lower()
