# SPDX-License-Identifier: Apache-2.0
"""Output: what is printed, in order, by whomever."""

import os
import time
from pathlib import Path

import pytest

from conftest import Client, Event


def shape(events: list[Event]) -> list[tuple[str, str]]:
    return [(e["name"], e["text"]) for e in events if e["ev"] in ("stream", "pipe")]


def test_a_print_is_one_message(shared: Client) -> None:
    assert shape(shared.run("print('a', 1, sep='-')").events) == [("stdout", "a-1\n")]
    assert shape(shared.run("import sys; print('e', file=sys.stderr)").events) == [("stderr", "e\n")]
    assert shape(shared.run("print(end='')").events) == []


def test_print_behaves_like_print(shared: Client) -> None:
    assert shared.run("print('a', sep=1)").error["name"] == "TypeError"
    assert shared.run("print(end=2)").error["name"] == "TypeError"
    code = "import io, contextlib\nb = io.StringIO()\nwith contextlib.redirect_stdout(b): print('x')\nb.getvalue()"
    outcome = shared.run(code)
    assert (outcome.stdout, outcome.value) == ("", "'x\\n'")
    assert shared.run("import pickle; pickle.loads(pickle.dumps(print)) is print").value == "True"


def test_output_is_there_at_once(kernel: Client, tmp_path: Path) -> None:
    """The cell goes on only when what it said was heard."""
    heard = tmp_path / "heard"
    kernel.start(
            f"import os, time\nprint('a', end='')\n"
            f"while not os.path.exists({str(heard)!r}):\n    time.sleep(0.01)\nprint('b')"
    )
    kernel.next()
    assert kernel.next()["text"] == "a"
    heard.touch()
    kernel.finish()


def test_both_streams_keep_their_order(shared: Client) -> None:
    code = "import sys\nprint(1)\nprint(2, file=sys.stderr)\nprint(3)"
    assert shape(shared.run(code).events) == [("stdout", "1\n"), ("stderr", "2\n"), ("stdout", "3\n")]


def test_output_of_child_processes_is_in_its_place(shared: Client) -> None:
    code = (
        "import subprocess\nprint('a')\nsubprocess.run('echo b; echo c >&2', shell=True)\n"
        "print('d')\nimport os\nos.write(1, b'e\\n');"
    )
    assert shape(shared.run(code).events) == [
        ("stdout", "a\n"),
        ("stdout", "b\n"),
        ("stderr", "c\n"),
        ("stdout", "d\n"),
        ("stdout", "e\n"),
    ]


def test_results_wait_for_older_output_of_children(shared: Client) -> None:
    events = shared.run("import os\nos.write(1, b'first\\n')\n'second'").events
    assert [e["ev"] for e in events] == ["count", "pipe", "display", "done"]


def test_the_streams_look_like_files(shared: Client) -> None:
    code = (
        "import sys\nsys.stdout.isatty(), sys.stdout.encoding, sys.stdout.fileno(), "
        "sys.stderr.fileno(), sys.stdout.writable()"
    )
    assert shared.run(code).value == "(False, 'utf-8', 1, 2, True)"
    assert (
        shared.run("sys.stdout.reconfigure(line_buffering=True); sys.stdout.flush(); sys.stdout.write('abc')").value
        == "3"
    )
    assert shared.run("sys.stdout.write(b'x')").error["name"] == "TypeError"
    assert shared.run("sys.stdout.close(); print('open')").stdout == "open\n"


def test_bytes_go_to_the_same_stream(shared: Client) -> None:
    code = (
        "import sys\nprint('a')\nsys.stdout.buffer.write('é'.encode()[:1]); "
        "sys.stdout.buffer.write('é'.encode()[1:] + b'\\n')\nprint('b');"
    )
    assert shared.run(code).stdout == "a\né\nb\n"
    assert shared.run("sys.stdout.buffer.write(b'half \\xc3');").stdout == "half \ufffd"


def test_lone_surrogates_do_not_break_the_stream(shared: Client) -> None:
    outcome = shared.run("print('\\ud800', 'ok')\n'\\udfff'")
    assert outcome.stdout == "\ud800 ok\n"
    assert outcome.error is None
    assert shared.run("1").value == "1"


def test_all_characters_survive(shared: Client) -> None:
    text = 'é 漢 😀 \u2028 \x85 \x00 \x7f \\ " \r \t'
    assert shared.run(f"print({text!r})").stdout == text + "\n"


def test_a_long_text_comes_whole(shared: Client) -> None:
    assert shared.run("print('x' * 1_000_000 + 'é' * 100_000)").stdout == "x" * 1_000_000 + "é" * 100_000 + "\n"


def test_many_lines_come_whole_while_the_reader_is_slow(kernel: Client) -> None:
    kernel.start("for i in range(20000): print('%05d' % i + 'z' * 100)")
    time.sleep(0.5)  # the slowness that is tried
    text = "".join(e["text"] for e in kernel.finish() if e["ev"] == "stream")
    assert text.splitlines() == ["%05d" % i + "z" * 100 for i in range(20000)]


def test_threads_print_whole_messages(kernel: Client) -> None:
    code = """\
import threading
def work(n):
    for i in range(300): print(f'{n}:{i}:' + 'x' * 60000 * (i % 100 == 0))
ts = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[t.start() for t in ts]; [t.join() for t in ts];"""
    lines = kernel.run(code).stdout.splitlines()
    assert sorted((line.split(":")[0], int(line.split(":")[1])) for line in lines) == sorted(
        (str(n), i) for n in range(4) for i in range(300)
    )


def test_a_thread_is_heard_in_the_next_run_and_not_between(kernel: Client) -> None:
    code = (
        "import threading, time\nstop = False\ndef talk():\n    while not stop:\n"
        "        print('tick'); time.sleep(0.01)\nt = threading.Thread(target=talk); t.start()"
    )
    kernel.run(code)
    time.sleep(0.2)  # what must not come has this long to come
    assert kernel.received == b""
    assert "tick\n" in kernel.run("time.sleep(0.1)").stdout
    kernel.run("stop = True; t.join()")


def test_a_signal_handler_may_print_and_raise(kernel: Client) -> None:
    code = """\
import signal
def handler(*_):
    print('alarm'); raise TimeoutError('late')
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.05)
while True: print('w' * 5000)"""
    outcome = kernel.run(code)
    assert outcome.error["name"] == "TimeoutError"
    assert "alarm\n" in outcome.stdout
    assert kernel.run("1").value == "1"


def test_forked_children_print_through_the_pipes(kernel: Client) -> None:
    code = "import os\nif os.fork() == 0:\n    print('child'); os._exit(0)\nos.wait()\nprint('parent')"
    assert shape(kernel.run(code).events) == [("stdout", "child\n"), ("stdout", "parent\n")]


def test_a_forked_child_that_goes_on_does_not_answer(kernel: Client) -> None:
    outcome = kernel.run("import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint('both')\n'value'")
    assert outcome.stdout.count("both") == 2
    assert len(outcome.results) == 1
    assert kernel.run("1").value == "1"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_multiprocessing_pool_returns_its_results(kernel: Client, method: str) -> None:
    code = (
        f"import multiprocessing as mp, math\n"
        f"with mp.get_context({method!r}).Pool(2) as p: r = p.map(math.factorial, [3, 4])\nr"
    )
    outcome = kernel.run(code)
    assert outcome.value == "[6, 24]", outcome.events


def test_children_do_not_inherit_the_protocol(shared: Client) -> None:
    code = (
        "import subprocess, sys, os\nsubprocess.run(['ls', '/proc/self/fd'], close_fds=False, "
        "capture_output=True, text=True).stdout.split()"
    )
    fds = shared.run(code).main["application/json"]
    me = f"/proc/{shared.ready['pid']}/fd"
    inherited = {fd for fd in os.listdir(me) if os.readlink(f"{me}/{fd}").startswith("socket:")}
    assert "3" in inherited
    assert set(fds) <= {"0", "1", "2", "3"}
    listing = shared.run(
        "subprocess.run(['readlink', '/proc/self/fd/3'], close_fds=False, capture_output=True, text=True).stdout"
    )
    assert "socket" not in listing.value


def test_warnings_and_logging_go_to_stderr(shared: Client) -> None:
    assert "careful" in shared.run("import warnings; warnings.warn('careful')").stderr
    assert "noted" in shared.run("import logging; logging.warning('noted')").stderr
