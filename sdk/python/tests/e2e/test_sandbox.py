# SPDX-License-Identifier: Apache-2.0
"""Sandboxes of a real server, blocking."""

from __future__ import annotations

import io
import os
import threading
from datetime import timezone

import pytest
from soon import eventually

import cloche
from cloche import Sandbox


def test_leaving_the_with_block_ends_the_box() -> None:
    with Sandbox.create(timeout=60) as box:
        assert box.is_running()
    assert not box.is_running()
    with pytest.raises(cloche.SandboxNotFoundException) as caught:
        box.get_info()
    assert caught.value.cause is not None
    assert caught.value.cause.kind == "killed"
    assert caught.value.cause.ended_at is not None


def test_every_exception_of_an_ended_box_names_the_cause() -> None:
    box = Sandbox.create(timeout=60)
    box.kill()
    calls = [
        lambda: box.run_code("1"),
        lambda: box.commands.run("true"),
        lambda: box.commands.run("true", background=True),
        lambda: box.files.read("/etc/hostname"),
        lambda: box.files.list("/"),
        lambda: box.files.write("/tmp/x", "x"),
        lambda: box.pty.create(cloche.PtySize(24, 80)),
        lambda: box.create_code_context(),
        lambda: box.get_info(),
        lambda: box.set_timeout(60),
        lambda: box.pause(),
        lambda: Sandbox.connect(box.sandbox_id),
    ]
    for call in calls:
        with pytest.raises(cloche.ClocheException) as caught:
            call()
        assert caught.value.cause is not None, repr(caught.value)
        assert caught.value.cause.kind == "killed"
    assert box.kill() is False


def test_a_command_under_way_when_its_box_times_out_names_the_timeout() -> None:
    box = Sandbox.create(timeout=2)
    with pytest.raises(cloche.SandboxNotRunningException) as caught:
        box.commands.run("sleep 60")
    assert caught.value.cause is not None
    assert caught.value.cause.kind == "timeout"


def test_a_cell_under_way_when_its_box_is_killed_names_the_kill(box: Sandbox) -> None:
    run = box.run_code("print(1)\nimport time\ntime.sleep(60)", background=True)
    first = next(iter(run))
    assert isinstance(first, cloche.OutputMessage)
    Sandbox.kill(box.sandbox_id)
    with pytest.raises(cloche.SandboxNotRunningException) as caught:
        run.wait()
    assert caught.value.cause is not None and caught.value.cause.kind == "killed"


def test_info_list_timeout_and_metadata(unique: str) -> None:
    with Sandbox.create(timeout=60, metadata={"test": unique}) as box:
        info = box.get_info()
        assert info.sandbox_id == box.sandbox_id
        assert info.metadata == {"test": unique}
        assert info.state == cloche.SandboxState.RUNNING
        assert info.started_at.tzinfo == timezone.utc
        before = info.end_at
        box.set_timeout(600)
        assert Sandbox.get_info(box.sandbox_id).end_at > before
        query = cloche.SandboxQuery(metadata={"test": unique})
        assert [one.sandbox_id for one in Sandbox.list(query)] == [box.sandbox_id]
        page = Sandbox.list(query, limit=1)
        assert page.has_next
        assert len(page.next_items()) == 1


def test_pause_and_connect_keep_variables(box: Sandbox) -> None:
    box.run_code("x = 41")
    assert box.pause()
    assert Sandbox.get_info(box.sandbox_id).state == cloche.SandboxState.PAUSED
    again = Sandbox.connect(box.sandbox_id, timeout=60)
    assert again.run_code("x + 1").text == "42"
    assert again.resume() is again


def test_lifecycle_pauses_at_the_timeout() -> None:
    box = Sandbox.create(timeout=1, lifecycle={"on_timeout": "pause"})
    try:
        eventually(lambda: Sandbox.get_info(box.sandbox_id).state == cloche.SandboxState.PAUSED)
        assert Sandbox.get_info(box.sandbox_id).lifecycle == {"on_timeout": "pause", "auto_resume": False}
    finally:
        box.kill()


def test_a_fork_goes_its_own_way(box: Sandbox) -> None:
    box.run_code("x = 1")
    (fork,) = box.fork(timeout=60)
    assert isinstance(fork, Sandbox)
    with fork:
        fork.run_code("x = 2")
        assert (box.run_code("x").text, fork.run_code("x").text) == ("1", "2")


def test_a_snapshot_makes_others_and_can_be_deleted(box: Sandbox) -> None:
    box.files.write("/home/user/kept", "yes")
    snapshot = box.create_snapshot(mode="filesystem")
    assert snapshot.snapshot_id in [one.snapshot_id for one in box.list_snapshots()]
    with Sandbox.create(snapshot.snapshot_id, timeout=60) as other:
        assert other.files.read("/home/user/kept") == "yes"
    assert Sandbox.delete_snapshot(snapshot.snapshot_id)
    assert not Sandbox.delete_snapshot(snapshot.snapshot_id)


def test_code_state_results_errors_and_streams(shared: Sandbox) -> None:
    seen = []
    code = "x = 20\nprint('a')\nimport sys; print('b', file=sys.stderr)\nx + 1"
    execution = shared.run_code(code, on_stdout=seen.append)
    assert execution.text == "21"
    assert execution.logs.stdout == ["a\n"]
    assert execution.logs.stderr == ["b\n"]
    assert [message.line for message in seen] == ["a\n"]
    failed = shared.run_code("1 / 0")
    assert failed.error is not None and failed.error.name == "ZeroDivisionError"
    assert failed.text is None


def test_contexts_have_variables_of_their_own(shared: Sandbox) -> None:
    context = shared.create_code_context(cwd="/tmp")
    assert context.cwd == "/tmp"
    shared.run_code("y = 1", context=context)
    assert shared.run_code("'y' in globals()").text == "False"
    assert context.id in [one.id for one in shared.list_code_contexts()]
    shared.restart_code_context(context)
    assert shared.run_code("'y' in globals()", context=context).text == "False"
    shared.remove_code_context(context)
    assert context.id not in [one.id for one in shared.list_code_contexts()]
    with pytest.raises(cloche.InvalidArgumentException):
        shared.run_code("1", language="python", context=context)


def test_a_cell_in_the_background_shows_its_output_as_it_comes(shared: Sandbox) -> None:
    run = shared.run_code("print('one')\nimport time\ntime.sleep(0.2)\nprint('two')\n3", background=True)
    lines = [event.line for event in run if isinstance(event, cloche.OutputMessage)]
    assert lines == ["one\n", "two\n"]
    assert run.wait().text == "3"


def test_files(shared: Sandbox) -> None:
    written = shared.files.write("/home/user/d/a.txt", "h\u00e9llo", metadata={"k": "v"})
    assert (written.name, written.type, written.metadata) == ("a.txt", cloche.FileType.FILE, {"k": "v"})
    assert shared.files.read("/home/user/d/a.txt") == "h\u00e9llo"
    assert shared.files.read("/home/user/d/a.txt", format="bytes") == "h\u00e9llo".encode()
    with shared.files.read("/home/user/d/a.txt", format="stream") as stream:
        assert b"".join(stream) == "h\u00e9llo".encode()
    shared.files.write_files([{"path": "/home/user/d/b", "data": b"1"}, {"path": "/home/user/d/c", "data": "2"}])
    assert [one.name for one in shared.files.list("/home/user/d")] == ["a.txt", "b", "c"]
    assert shared.files.rename("/home/user/d/b", "/home/user/d/e").name == "e"
    assert not shared.files.exists("/home/user/d/b")
    assert shared.files.get_info("/home/user/d/e").size == 1
    assert shared.files.make_dir("/home/user/d/f")
    assert not shared.files.make_dir("/home/user/d/f")
    shared.files.remove("/home/user/d")
    assert not shared.files.exists("/home/user/d")
    with pytest.raises(cloche.FileNotFoundException):
        shared.files.list("/home/user/d")


@pytest.mark.parametrize("gzip", [False, True])
def test_uploads_from_files_and_iterables(shared: Sandbox, gzip: bool) -> None:
    data = os.urandom(2_000_000)
    for source in (data, io.BytesIO(data), (data[at : at + 70000] for at in range(0, len(data), 70000))):
        shared.files.write("/home/user/big", source, gzip=gzip)
        assert shared.files.read("/home/user/big", format="bytes", gzip=gzip) == data
    shared.files.write("/home/user/big", io.StringIO("text\u00e9"), gzip=gzip)
    assert shared.files.read("/home/user/big", gzip=gzip) == "text\u00e9"


def test_signed_urls(shared: Sandbox) -> None:
    import httpx

    shared.files.write("/home/user/s p a c e", "signed")
    assert httpx.get(shared.download_url("/home/user/s p a c e", use_signature_expiration=60)).text == "signed"
    put = httpx.post(shared.upload_url("/home/user/up"), files={"file": b"sent"})
    assert put.status_code == 200
    assert shared.files.read("/home/user/up") == "sent"


def test_watching(shared: Sandbox) -> None:
    shared.files.make_dir("/home/user/w")
    watch = shared.files.watch_dir("/home/user/w")
    shared.files.write("/home/user/w/x", "1")
    events = []
    eventually(lambda: events.extend(watch.get_new_events()) or events)
    assert (events[0].name, events[0].type) == ("x", cloche.FilesystemEventType.CREATE)
    watch.stop()
    with pytest.raises(cloche.SandboxException):
        watch.get_new_events()


def test_commands(shared: Sandbox) -> None:
    out = []
    result = shared.commands.run("echo $A; echo b >&2; pwd", envs={"A": "x"}, cwd="/tmp", on_stdout=out.append)
    assert (result.stdout, result.stderr, result.exit_code) == ("x\n/tmp\n", "b\n", 0)
    assert "".join(out) == "x\n/tmp\n"
    with pytest.raises(cloche.CommandExitException) as caught:
        shared.commands.run("echo why >&2; exit 3")
    assert (caught.value.exit_code, caught.value.stderr) == (3, "why\n")
    assert shared.commands.run("id -un", user="root").stdout == "root\n"
    with pytest.raises(cloche.TimeoutException):
        shared.commands.run("sleep 30", timeout=0.3)
    assert shared.commands.run("echo x", retain_output=False).stdout is None


def test_a_command_in_the_background(shared: Sandbox) -> None:
    handle = shared.commands.run("cat; echo end", background=True, stdin=True)
    assert handle.pid in [one.pid for one in shared.commands.list()]
    handle.send_stdin("a")
    shared.commands.stream_input(handle.pid, ["b", b"c"])
    handle.close_stdin()
    assert handle.wait().stdout == "abcend\n"
    long = shared.commands.run("sleep 60", background=True)
    other = shared.commands.connect(long.pid)
    other.disconnect()
    assert long.kill()
    with pytest.raises(cloche.CommandExitException):
        long.wait()
    assert not shared.commands.kill(long.pid)


def test_terminals(shared: Sandbox) -> None:
    terminal = shared.pty.create(cloche.PtySize(rows=30, cols=100), cwd="/tmp", envs={"V": "7"})
    shared.pty.resize(terminal.pid, cloche.PtySize(rows=40, cols=120))
    shared.pty.send_stdin(terminal.pid, b"stty size; echo v$V; exit\n")
    seen = bytearray()
    terminal.wait(on_pty=seen.extend)
    assert b"40 120" in seen and b"v7" in seen


def test_many_threads_share_one_box(shared: Sandbox) -> None:
    results = [""] * 8

    def work(at: int) -> None:
        results[at] = shared.commands.run(f"echo {at}").stdout

    threads = [threading.Thread(target=work, args=(at,)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [f"{at}\n" for at in range(8)]


def test_a_histogram_is_more_than_the_stock_sdk_sees(shared: Sandbox) -> None:
    code = "import matplotlib.pyplot as plt\nplt.hist([1, 2, 2, 3], bins=3)\nplt.show()"
    chart = shared.run_code(code).results[0].chart
    assert chart is not None
    assert isinstance(chart.detail, cloche.Histogram)
    assert [one[2] for one in chart.detail.elements[0].bins] == [1, 2, 1]
