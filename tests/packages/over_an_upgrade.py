# SPDX-License-Identifier: Apache-2.0
"""over_an_upgrade - what must survive an upgrade of the server, with the stock Python SDK.

Begins a cell, a terminal, a paused box and a build, writes "begun" to standard output, and waits for a line on standard
input: meanwhile somebody upgrades the package. Then looks at all four. Prints a line each; ends with 1 at the first
that is lost.
"""

import sys
import threading
import time
import uuid

from e2b import PtySize, Template
from e2b_code_interpreter import Sandbox

CELL = """
import time
for i in range(60):
    time.sleep(0.5)
    open('/tmp/steps', 'a').write(f'{i} ')
finished = 'the cell of the older server'
"""


def until(what, seconds=120.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if what():
                return True
        except Exception as error:  # the server is away for a moment
            last = error
        else:
            last = None
        time.sleep(0.3)  # between two looks
    raise AssertionError(f"not within {seconds:.0f} s; last: {last}")


def run_cell(box):
    try:
        box.run_code(CELL, timeout=120)
    except Exception:  # the stream ends with the older server; the cell must not
        return


def build(name):
    template = Template().from_template("base").run_cmd("echo first").run_cmd("sleep 12 && echo second > /tmp/second")
    return Template.build_in_background(template, name)


def main():
    cell, paused = Sandbox.create(timeout=600), Sandbox.create(timeout=600)
    threading.Thread(target=run_cell, args=(cell,), daemon=True).start()
    terminal = cell.pty.create(PtySize(rows=24, cols=80), timeout=0)
    cell.pty.send_stdin(terminal.pid, b"kept=of-the-older-server; touch /tmp/typed\n")
    until(lambda: cell.files.exists("/tmp/typed"))
    paused.run_code("kept = [1, 2, 3]")
    paused.pause()
    name = f"upgrade-{uuid.uuid4().hex[:8]}"
    order = build(name)
    until(lambda: cell.files.exists("/tmp/steps"))
    until(lambda: Template.get_build_status(order).status.value == "building")
    print("begun", flush=True)
    sys.stdin.readline()

    until(lambda: Sandbox.connect(cell.sandbox_id))
    again = Sandbox.connect(cell.sandbox_id)
    seen = []
    handle = again.pty.connect(terminal.pid)
    again.pty.send_stdin(terminal.pid, b"echo terminal-$kept; exit\n")
    handle.wait(on_pty=lambda data: seen.append(bytes(data)))
    assert b"terminal-of-the-older-server" in b"".join(seen), seen
    print("the terminal is the same one", flush=True)
    until(lambda: again.files.read("/tmp/steps").split()[-1] == "59")
    finished = again.run_code("finished")
    assert finished.text == "the cell of the older server", finished
    print("the cell ran to its end, once:", len(again.files.read("/tmp/steps").split()) == 60, flush=True)
    assert Sandbox.connect(paused.sandbox_id).run_code("sum(kept)").text == "6"
    print("the paused box has its memory", flush=True)
    until(lambda: Template.get_build_status(order).status.value in ("ready", "error"))
    state = Template.get_build_status(order)
    assert state.status.value == "ready", state
    with Sandbox.create(name) as box:
        assert box.commands.run("cat /tmp/second").stdout == "second\n"
    print("the build went on", flush=True)
    for one in (cell, paused):
        Sandbox.connect(one.sandbox_id).kill()


main()
