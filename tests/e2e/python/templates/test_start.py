# SPDX-License-Identifier: Apache-2.0
"""Start and ready commands: run at the end of a build, and running in every box of it."""

from __future__ import annotations

import time

import e2b
import e2b_code_interpreter as interpreter
import pytest

from support.recipes import Workshop, fresh, order, run, step
from support.server import own_server
from support.wire import Wire

SERVE = "exec python3 -m http.server 8200"


def test_a_server_runs_in_every_box(wire: Wire) -> None:
    name = fresh("serve")
    build = order(
        wire, name,
        step("ENV", "GREETING", "hello", "MARK", name),
        step("WORKDIR", "/srv/www"),
        run("echo served > index.html"),
        startCmd='echo "starting as $(id -un) in $PWD: $GREETING"; ' + SERVE,
        readyCmd=e2b.wait_for_url("http://localhost:8200/").get_cmd(),
    ).ready()  # fmt: skip
    log = build.log()
    for part in ("[start] [stdout]: ", "Waiting for template to be ready"):
        order_of = ["Running start command", part, "Template is ready"]
        places = [next(at for at, line in enumerate(log) if part in line) for part in order_of]
        assert places == sorted(places), log
    assert any(line.endswith("starting as user in /srv/www: hello") for line in log)
    boxes = [build.box() for _ in range(2)]
    try:
        for box in boxes:
            assert box.port(8200, path="/index.html").text == "served\n"
    finally:
        for box in boxes:
            box.kill()


@pytest.mark.parametrize(
    "ready",
    [
        e2b.wait_for_port(8300),
        e2b.wait_for_file("/tmp/ready"),
        e2b.wait_for_process("python3"),
        e2b.wait_for_url("http://localhost:8300", 404),
        e2b.wait_for_timeout(1000),
    ],
    ids=["port", "file", "process", "url", "timeout"],
)
def test_the_ready_helpers_of_the_sdk(ready: e2b.ReadyCmd) -> None:
    template = (
        e2b.Template()
        .from_template("base")
        .set_workdir("/srv/none")
        .set_start_cmd(
            'rm -rf /srv/none/*; touch /tmp/ready; exec python3 -c "import http.server as h\n'
            "class A(h.BaseHTTPRequestHandler):\n"
            "    def do_GET(self): self.send_error(404)\n"
            "h.HTTPServer(('', 8300), A).serve_forever()\"",
            ready,
        )
    )
    name = fresh("ready")
    e2b.Template.build(template, name)
    box = e2b.Sandbox.create(name, timeout=60)
    try:
        got = box.commands.run(
                "curl -s --retry 20 --retry-connrefused --retry-delay 1 -o /dev/null -w "
                "'%{http_code}' http://127.0.0.1:8300/"
        )
        assert got.stdout == "404"
    finally:
        box.kill()


@pytest.mark.parametrize("command", ["/root/.jupyter/start-up.sh", "sudo /root/.jupyter/start-up.sh"])
def test_the_start_command_of_the_original_interpreter_does_no_harm(command: str) -> None:
    template = (
        e2b.Template()
        .from_template("code-interpreter-v1")
        .run_cmd("echo mine >/home/user/mine")
        .set_start_cmd(command, e2b.wait_for_url("http://localhost:49999/health"))
    )
    name = fresh("original")
    e2b.Template.build(template, name)
    with interpreter.Sandbox.create(name, timeout=60) as box:
        got = box.run_code("print(open('/home/user/mine').read())")
        assert got.logs.stdout == ["mine\n\n"], got.error
        assert box.commands.run("pgrep -c start-up.sh || true").stdout.strip() == "0"


def test_a_start_command_is_inherited_and_may_be_replaced(wire: Wire) -> None:
    parent, same, other = fresh("parent"), fresh("same"), fresh("other")
    ready = e2b.wait_for_port(8400).get_cmd()
    order(
        wire, parent, step("ENV", "WORD", "parent"), run("mkdir -p ~/w"),
        startCmd="cd ~/w && exec python3 -m http.server 8400", readyCmd=ready,
    ).ready()  # fmt: skip
    order(wire, same, run("echo added > ~/w/added"), fromTemplate=parent).ready()
    order(
        wire, other, run("mkdir -p ~/v; echo other > ~/v/added"), fromTemplate=parent,
        startCmd="cd ~/v && exec python3 -m http.server 8400", readyCmd=ready,
    ).ready()  # fmt: skip
    for name, wanted in ((same, "added\n"), (other, "other\n")):
        box = wire.create(name)
        try:
            assert box.port(8400, path="/added").text == wanted
        finally:
            box.kill()


SHOW = 'echo "$(id -un):$PWD:$WORD:$ADDED" > /tmp/shown; exec sleep infinity'


def test_an_inherited_start_command_runs_in_its_own_context(wire: Wire) -> None:
    """User, directory and variables are those of the template that gave the command, also two templates later."""
    parent, child, grandchild = fresh("parent"), fresh("child"), fresh("grandchild")
    order(
        wire, parent, step("ENV", "WORD", "parent"), step("WORKDIR", "/srv/parent"),
        startCmd=SHOW, readyCmd="test -s /tmp/shown && echo ready in $PWD",
    ).ready()  # fmt: skip
    changes = (
        step("ENV", "WORD", "child", "ADDED", "later"), step("WORKDIR", "/srv/child"), step("USER", "erin"),
    )  # fmt: skip
    build = order(wire, child, *changes, fromTemplate=parent).ready()
    assert any(line.endswith("ready in /srv/parent") for line in build.log())
    order(wire, grandchild, run("true"), fromTemplate=child).ready()
    for name in (child, grandchild):
        box = wire.create(name)
        try:
            assert box.run("cat /tmp/shown")[1] == "user:/srv/parent:parent:\n"
            assert box.run('echo "$(id -un):$PWD:$WORD:$ADDED"')[1] == "erin:/srv/child:child:later\n"
        finally:
            box.kill()


def test_an_inherited_start_command_keeps_its_context_without_checkpoints() -> None:
    """Where no checkpoint can be kept, the command is begun at the launch of each box."""
    with own_server("--criu", "/nowhere/criu", "--pool", "0") as server:
        parent, child = fresh("parent"), fresh("child")
        order(
            server.wire, parent, step("ENV", "WORD", "parent"), step("WORKDIR", "/srv/parent"),
            startCmd=SHOW, readyCmd="test -s /tmp/shown",
        ).ready()  # fmt: skip
        changes = (step("ENV", "WORD", "child", "ADDED", "x"), step("WORKDIR", "/srv/child"), step("USER", "erin"))
        order(server.wire, child, *changes, fromTemplate=parent).ready()
        box = server.wire.create(child)
        assert box.run("cat /tmp/shown")[1] == "user:/srv/parent:parent:\n"


def test_a_start_command_of_its_own_runs_in_the_new_context(wire: Wire) -> None:
    parent, child = fresh("parent"), fresh("child")
    ready = "test -s /tmp/shown"
    order(wire, parent, step("WORKDIR", "/srv/parent"), startCmd=SHOW, readyCmd=ready).ready()
    order(
        wire, child, step("WORKDIR", "/srv/child"), step("ENV", "WORD", "child"), fromTemplate=parent,
        startCmd=SHOW, readyCmd=ready,
    ).ready()  # fmt: skip
    box = wire.create(child)
    try:
        assert box.run("cat /tmp/shown")[1] == "user:/srv/child:child:\n"
    finally:
        box.kill()


def test_a_start_command_that_ends_badly_fails_the_build(wire: Wire) -> None:
    build = order(
        wire, fresh("dies"), run("true"),
        startCmd="echo last words; sleep 0.3; exit 7", readyCmd="false",
    )  # fmt: skip
    began = time.monotonic()
    reason = build.failed()
    assert time.monotonic() - began < 60
    assert reason["step"] == "finalize"
    assert "start" in reason["message"].lower()
    assert "7" in reason["message"]
    assert any("last words" in line for line in build.log())


def test_a_start_command_that_ends_well_may_be_ready(wire: Wire) -> None:
    build = order(
        wire, fresh("once"),
        startCmd="echo prepared > ~/prepared", readyCmd="test -f ~/prepared",
    ).ready()  # fmt: skip
    box = build.box()
    try:
        assert box.run("cat ~/prepared")[1] == "prepared\n"
    finally:
        box.kill()


async def test_a_ready_command_alone(workshop: Workshop) -> None:
    """It is tried again until it says yes."""
    template = (
        workshop.template()
        .from_template("base")
        .set_ready_cmd('n=$(cat ~/n 2>/dev/null || echo 0); echo $((n+1)) > ~/n; [ "$n" -ge 1 ]')
    )
    await workshop.build(template, fresh("again"))
    workshop.says("Waiting for template to be ready", "Template is ready")


def test_a_box_made_from_it_has_its_own_process(wire: Wire) -> None:
    """Two boxes of one ready template do not share what the server keeps."""
    build = order(
        wire, fresh("apart"),
        startCmd='exec python3 -c "import http.server as h\n'
        "class C(h.BaseHTTPRequestHandler):\n"
        "    n = 0\n"
        "    def do_GET(self):\n"
        "        C.n += 1; body = str(C.n).encode(); self.send_response(200)\n"
        "        self.send_header('Content-Length', str(len(body))); self.end_headers(); self.wfile.write(body)\n"
        "    def log_message(self, *a): pass\n"
        "h.HTTPServer(('127.0.0.1', 8500), C).serve_forever()\"",
        readyCmd=e2b.wait_for_port(8500).get_cmd(),
    ).ready()  # fmt: skip
    one, two = build.box(), build.box()
    try:
        first = int(one.port(8500).text)
        assert [int(one.port(8500).text) for _ in range(3)] == [first + 1, first + 2, first + 3]
        assert int(two.port(8500).text) == first
    finally:
        one.kill()
        two.kill()
