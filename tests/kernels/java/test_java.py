# SPDX-License-Identifier: Apache-2.0
"""The Java kernel, driven over its protocol."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from driver import Kernel


@pytest.fixture(scope="module")
def java() -> Iterator[Kernel]:
    kernel = Kernel("java")
    kernel.run("int warm = 1;")
    yield kernel
    kernel.close()


@pytest.fixture
def fresh() -> Iterator[Kernel]:
    kernel = Kernel("java")
    yield kernel
    kernel.close()


# -- values -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("1 + 1", "2"),
        ('String s = "supertest"; s', "supertest"),
        ('"quo\\"ted"', 'quo"ted'),
        ("List.of(1, 2, 3)", "[1, 2, 3]"),
        ("new int[] {1, 2}", "int[2] { 1, 2 }"),
        ("'c'", "c"),
        ("record P(int a) {}\nnew P(3)", "P[a=3]"),
        ('"é ☃ 🎈"', "é ☃ 🎈"),
        ("2.0 / 4", "0.5"),
        ("int declared = 4;\ndeclared", "4"),
    ],
)
def test_the_last_value_is_the_result(java: Kernel, code: str, text: str) -> None:
    run = java.run(code)
    assert (run.text, run.status, run.error) == (text, "ok", None)


@pytest.mark.parametrize(
    "code", ["null", "int only = 3;", "only = 4", "void f() {}", "import java.util.*;", "class C {}", "// nothing"]
)
def test_some_cells_have_no_result(java: Kernel, code: str) -> None:
    java.run("int only = 3;")
    run = java.run(code)
    assert run.events == [] and run.status == "ok"


def test_the_final_semicolon_may_be_missing(java: Kernel) -> None:
    assert java.run('System.out.print("a")').stdout == "a"
    assert java.run("int bare = 5").status == "ok"
    assert java.run("bare").text == "5"


def test_state_persists_and_names_may_be_declared_again(java: Kernel) -> None:
    java.run("int kept = 41; int add(int a) { return a + 1; } class Box { int v = 1; }")
    assert java.run("add(kept)").text == "42"
    java.run('String kept = "text"; int add(int a) { return a + 2; } class Box { int v = 2; }')
    assert java.run("kept + add(1) + new Box().v").text == "text32"


def test_common_imports_are_there(java: Kernel) -> None:
    assert java.run("Stream.of(3, 1, 2).sorted().map(String::valueOf).collect(Collectors.joining())").text == "123"


# -- output -----------------------------------------------------------------------------------


def test_println_is_two_events(java: Kernel) -> None:
    assert java.run('System.out.println("Hello, World!");').stream("stdout") == ["Hello, World!", "\n"]


def test_both_streams_are_kept_apart(java: Kernel) -> None:
    run = java.run('System.out.print("out"); System.err.print("err");')
    assert run.stream("stdout") == ["out"] and run.stream("stderr") == ["err"]


def test_formatted_text_is_one_event(java: Kernel) -> None:
    assert java.run('System.out.printf("%d-%s é%n", 3, "a");').stream("stdout") == ["3-a é\n"]


def test_output_of_children_keeps_its_place(java: Kernel) -> None:
    run = java.run(
        'System.out.print("before|");'
        'new ProcessBuilder("sh", "-c", "echo child; echo bad >&2").inheritIO().start().waitFor();'
        'System.out.print("after");'
    )
    assert run.stdout == "before|child\nafter" and run.stderr == "bad\n"


def test_much_output_arrives_whole(java: Kernel) -> None:
    run = java.run('for (int i = 0; i < 5000; i++) System.out.println("line " + i);')
    assert len(run.stdout.splitlines()) == 5000
    assert len(java.run('System.out.print("é".repeat(300000));').stdout) == 300_000


def test_display_shows_without_being_the_result(java: Kernel) -> None:
    run = java.run('display("<b>x</b>", "text/html"); display(List.of(1)); 5')
    assert [(d["main"], d["data"]) for d in run.displays] == [
        (False, {"text/html": "<b>x</b>"}),
        (False, {"text/plain": "[1]"}),
        (True, {"text/plain": "5"}),
    ]


def test_an_image_is_shown(java: Kernel) -> None:
    run = java.run("new java.awt.image.BufferedImage(4, 4, 1)")
    assert run.main is not None and run.main["image/png"].startswith("iVBOR")


# -- errors -----------------------------------------------------------------------------------


def test_an_exception_tells_class_message_and_frames(java: Kernel) -> None:
    run = java.run(
        'int deep(int n) { if (n == 0) throw new IllegalStateException("bad"); return deep(n - 1); }\ndeep(1)'
    )
    assert run.status == "error" and run.error is not None
    assert (run.error["name"], run.error["value"]) == ("java.lang.IllegalStateException", "bad")
    assert run.error["traceback"].startswith("java.lang.IllegalStateException: bad\n    at ")
    assert "\x1b" not in run.error["traceback"] and run.error["traceback"].count("deep") == 2


def test_a_cause_is_told(java: Kernel) -> None:
    error = java.run('throw new RuntimeException("outer", new RuntimeException("inner"));').error
    assert error is not None and "Caused by: java.lang.RuntimeException: inner" in error["traceback"]


@pytest.mark.parametrize("code", ['int wrong = "no";', "nothing_here", "if (true) {", "int = 5;", "foo(1)"])
def test_code_that_does_not_compile_is_an_error(java: Kernel, code: str) -> None:
    run = java.run(code)
    assert run.status == "error" and run.error is not None
    assert run.error["name"] == "CompilationException" and run.error["value"] and run.error["traceback"]


def test_the_cell_stops_at_the_first_error(java: Kernel) -> None:
    run = java.run('System.out.print("a");\nthrow new RuntimeException();\nSystem.out.print("b");')
    assert run.stdout == "a" and run.status == "error"


def test_a_tostring_that_fails_is_an_error(java: Kernel) -> None:
    run = java.run('new Object() { public String toString() { throw new RuntimeException("no text"); } }')
    assert run.error is not None and run.error["value"]
    assert java.run("1").text == "1"


# -- interrupts -------------------------------------------------------------------------------

HANGS = {
    "a loop": "while (true) {}",
    "a sleep": "Thread.sleep(60000);",
    "a loop that swallows interrupts": "for (;;) { try { Thread.sleep(1000); } catch (InterruptedException e) {} }",
    "a loop that prints": 'for (;;) System.out.println("spam");',
    "a child process": 'new ProcessBuilder("sleep", "60").start().waitFor();',
    "a loop inside the library": "java.util.stream.LongStream.iterate(1, i -> i + 1).sum()",
}


@pytest.mark.parametrize("hang", HANGS)
def test_an_interrupt_ends_the_cell_and_keeps_state(java: Kernel, hang: str) -> None:
    java.run('String held = "state";')
    run = java.run_and_interrupt(HANGS[hang], after=0.4)
    assert run.status == "aborted" and run.error is None
    assert java.run("held").text == "state"


def test_interrupts_at_any_moment_leave_the_kernel_sound(java: Kernel) -> None:
    java.run("int sound = 7;")
    cells = ["while (true) {}", "Thread.sleep(20);", "for (;;) System.out.print('y');", "1 + 1"]
    java.harass(cells, "System.out.print(sound)", "7", 12)


def test_an_interrupt_between_cells_is_ignored(java: Kernel) -> None:
    java.send({"op": "interrupt", "id": java.next_id})
    os.killpg(java.process.pid, 2)
    assert java.run("1 + 2").text == "3"


# -- life -------------------------------------------------------------------------------------


def test_exit_ends_the_process(fresh: Kernel) -> None:
    run = fresh.run('System.out.print("last words"); System.exit(3);')
    assert run.is_dead and run.stdout == "last words" and fresh.process.wait(60) == 3


def test_the_kernel_counts_and_leaves(fresh: Kernel) -> None:
    fresh.set_env({"QUIET": "1"})
    fresh.cd("/tmp")
    cells = ("1", " \n", "throw new Error();", "int = 3;", "2")
    assert [fresh.run(c).count for c in cells] == [1, 2, 2, 3, 4]
    fresh.until(fresh.start('System.out.println("go"); while (true) {}'), "go")
    assert fresh.hang_up() is not None


def test_children_do_not_get_the_protocol(java: Kernel) -> None:
    code = (
        'new String(new ProcessBuilder("sh", "-c", "echo oops >&3 && echo leaked || echo '
        'closed").start().getInputStream().readAllBytes())'
    )
    assert java.run(code).text == "closed\n"


def test_variables_of_a_run_are_put_back(java: Kernel) -> None:
    java.set_env({"GLOBAL": "global"})
    both = 'System.getProperty("FOO", "default") + " " + System.getProperty("GLOBAL")'
    assert java.run(both, env={"FOO": "bar", "GLOBAL": "over"}).text == "bar over"
    assert java.run(both).text == "default global"
    java.run("throw new Error();", env={"FOO": "bar"})
    run = java.start('System.out.println("go"); while (true) {}', env={"FOO": "bar", "GLOBAL": "over"})
    java.until(run, "go")
    java.interrupt(run)
    java.finish(run)
    assert java.run(both).text == "default global"


def test_values_of_variables_arrive_to_the_letter(java: Kernel) -> None:
    odd = 'quo\'te "x" \\ \n$HOME é'
    assert java.run('System.out.print(System.getProperty("ODD"))', env={"ODD": odd}).stdout == odd


def test_cd_sets_user_dir_or_says_why_not(java: Kernel) -> None:
    odd = f"/tmp/a 'quoted\" dir {os.getpid()}"
    os.makedirs(java.place(odd))
    assert java.cd(odd) == {"ev": "cd", "ok": True}
    assert java.run('System.getProperty("user.dir")').text == odd
    assert java.cd("/no/such") == {"ev": "cd", "ok": False, "reason": "No such file or directory"}
    java.cd("/")
    os.rmdir(java.place(odd))
