# SPDX-License-Identifier: Apache-2.0
"""The R kernel, driven over its protocol."""

from __future__ import annotations

import base64
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from driver import Kernel, Run


@pytest.fixture(scope="module")
def r() -> Iterator[Kernel]:
    kernel = Kernel("r")
    yield kernel
    kernel.close()


@pytest.fixture
def fresh() -> Iterator[Kernel]:
    kernel = Kernel("r")
    yield kernel
    kernel.close()


def texts(run: Run) -> list[str]:
    return [d["data"]["text/plain"] for d in run.displays]


# -- values -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("1 + 1", "[1] 2"),
        ('"value"', '[1] "value"'),
        ("1:3", "[1] 1 2 3"),
        ("NULL", "NULL"),
        ("TRUE", "[1] TRUE"),
        ("list(a = 1)", "$a\n[1] 1\n"),
        ('factor(c("x", "y"))', "[1] x y\nLevels: x y"),
        ('"é ☃ 🎈"', '[1] "é ☃ 🎈"'),
        ("getwd", None),
    ],
)
def test_a_visible_value_is_displayed(r: Kernel, code: str, text: str | None) -> None:
    run = r.run(code)
    assert run.status == "ok" and len(run.displays) == 1
    assert run.displays[0]["main"] is False, "R values are displays, never the main result"
    if text is not None:
        assert texts(run) == [text]


@pytest.mark.parametrize("code", ["x <- 5", "invisible(3)", "library(stats)", "f <- function() 1"])
def test_an_invisible_value_gives_nothing(r: Kernel, code: str) -> None:
    run = r.run(code)
    assert run.events == [] and run.status == "ok"


def test_every_visible_value_is_displayed_in_order(r: Kernel) -> None:
    run = r.run('1\nprint("between")\n2')
    assert [e["ev"] for e in run.events] == ["display", "stream", "display"]
    assert texts(run) == ["[1] 1", "[1] 2"]


def test_values_have_rich_forms(r: Kernel) -> None:
    if not os.path.isdir(r.place("/usr/lib/R/site-library/repr")):
        pytest.skip("needs r-cran-repr")
    data = r.run('data.frame(a = 1:2, b = c("x", "é"))').displays[0]["data"]
    assert data["text/plain"].split() == ["a", "b", "1", "1", "x", "2", "2", "é"]
    assert "<table" in data["text/html"] and "é" in data["text/html"]
    assert "| a" in data["text/markdown"] and "tabular" in data["text/latex"]
    assert "'value'" in r.run('"value"').displays[0]["data"]["text/html"]
    assert "<table" in r.run("matrix(1:4, 2)").displays[0]["data"]["text/html"]


def test_state_persists(r: Kernel) -> None:
    r.run("kept <- 41; add <- function(a) a + 1")
    assert texts(r.run("add(kept)")) == ["[1] 42"]


def test_the_session_is_the_users_alone(fresh: Kernel) -> None:
    assert texts(fresh.run("ls(all.names = TRUE)")) == ["character(0)"]
    assert texts(fresh.run('Sys.getenv("CLOCHE_R_NONCE")')) == ['[1] ""']


# -- output -----------------------------------------------------------------------------------


def test_print_is_one_event(r: Kernel) -> None:
    assert r.run('print("Hello, World!")').stream("stdout") == ['[1] "Hello, World!"\n']


def test_cat_without_a_line_end(r: Kernel) -> None:
    assert r.run('cat("no newline")').stdout == "no newline"


def test_output_comes_while_the_cell_runs(r: Kernel, tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    run = r.start(f'cat("early\\n"); while (!file.exists("{heard}")) Sys.sleep(0.05); cat("late\\n")')
    r.until(run, "early\n")
    heard.touch()
    assert r.finish(run).stdout == "early\nlate\n"


def test_messages_and_warnings_go_to_stderr(r: Kernel) -> None:
    run = r.run('message("a message"); warning("a warning"); cat("out\\n")')
    assert run.stream("stderr") == ["a message\n", "Warning message:\na warning\n"]
    assert run.stdout == "out\n" and run.status == "ok"
    assert "Warning message in f(1):\ninner" in r.run('f <- function(v) warning("inner"); f(1)').stderr
    assert r.run('suppressWarnings(warning("hidden")); suppressMessages(message("hidden"))').events == []
    assert "NAs introduced" in r.run('invisible(as.integer("x"))').stderr


def test_warnings_can_be_errors(r: Kernel) -> None:
    error = r.run('options(warn = 2); warning("now an error")').error
    assert error is not None and "now an error" in error["value"]
    assert r.run('options(warn = -1); warning("nothing")').events == []
    r.run("options(warn = 0)")


def test_output_of_children_keeps_its_place(r: Kernel) -> None:
    run = r.run('cat("before\\n"); system("echo child"); cat("after\\n"); system("echo bad >&2")')
    assert run.stdout == "before\nchild\nafter\n" and run.stderr == "bad\n"


def test_sinks_work_and_do_not_break_the_kernel(r: Kernel) -> None:
    run = r.run('sink(tempfile()); print("hidden"); 5')
    assert run.stdout == "" and run.status == "ok"
    assert r.run('sink(); cat("seen\\n")').stdout == "seen\n"
    assert r.run('x <- capture.output(print(1:2)); cat(x, "\\n")').stdout == "[1] 1 2 \n"


def test_odd_bytes_pass(r: Kernel) -> None:
    assert r.run('cat("a\\x1eb\\x1fc\\x1dd\\n")').stdout == "a\x1eb\x1fc\x1dd\n"
    assert texts(r.run('noquote("a\\x1eb\\x1fc\\x1dd")'))[0].startswith("[1] a")
    assert r.run(r"cat('\\ \" \' é', '\n')").stdout == "\\ \" ' é \n"


def test_much_output_arrives_whole(r: Kernel) -> None:
    out = r.run('for (i in 1:20000) cat("line", i, "\\n")').stdout
    assert len(out.splitlines()) == 20000 and out.endswith("line 20000 \n")
    assert len(r.run('cat(strrep("é", 300000))').stdout) == 300_000


# -- plots ------------------------------------------------------------------------------------


def test_plots_come_at_the_end_of_the_cell(r: Kernel) -> None:
    run = r.run('plot(1:10); lines(1:10); cat("text\\n"); hist(c(1, 2, 2))')
    assert [e["ev"] for e in run.events] == ["stream", "display", "display"]
    for shown in run.displays:
        assert base64.b64decode(shown["data"]["image/png"], validate=True).startswith(b"\x89PNG")
        assert shown["data"]["text/plain"] and shown["main"] is False


def test_a_cell_without_a_plot_has_none_of_the_last(r: Kernel) -> None:
    assert r.run("invisible(1)").displays == []


def test_plots_can_be_svg(r: Kernel) -> None:
    r.run('options(jupyter.plot_mimetypes = c("text/plain", "image/svg+xml"))')
    data = r.run("plot(1)").displays[0]["data"]
    r.run("options(jupyter.plot_mimetypes = NULL)")
    assert "<svg" in data["image/svg+xml"]


def test_the_size_of_plots_can_be_set(r: Kernel) -> None:
    r.run("options(repr.plot.width = 2, repr.plot.height = 1, repr.plot.res = 100)")
    png = base64.b64decode(r.run("plot.new()").displays[0]["data"]["image/png"])
    r.run("options(repr.plot.width = 7, repr.plot.height = 7, repr.plot.res = 120)")
    assert (int.from_bytes(png[16:20]), int.from_bytes(png[20:24])) == (200, 100)


def test_a_users_own_device_is_left_alone(r: Kernel) -> None:
    run = r.run('f <- tempfile(fileext = ".png"); png(f); plot(1); invisible(dev.off()); cat(file.size(f) > 0)')
    assert run.stdout == "TRUE" and run.displays == []


def test_a_plot_before_an_error_is_shown(r: Kernel) -> None:
    run = r.run('plot(1); stop("later")')
    assert [e["ev"] for e in run.events] == ["error", "display"]


# -- errors -----------------------------------------------------------------------------------


def test_an_error_tells_condition_and_calls(r: Kernel) -> None:
    run = r.run('outer <- function() inner()\ninner <- function() stop("deep")\nouter()')
    assert run.status == "error" and run.error is not None
    assert (run.error["name"], run.error["value"]) == ("ERROR", "Error in inner(): deep")
    assert run.error["traceback"] == ["Error in inner(): deep", "Traceback:", "1. outer()", "2. inner()"]


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ('stop("boom")', "Error: boom"),
        ("nothing_here", "Error: object 'nothing_here' not found"),
        ("log(-1:2, 'x')", "non-numeric argument"),
    ],
)
def test_errors_at_the_top_have_no_call(r: Kernel, code: str, value: str) -> None:
    error = r.run(code).error
    assert error is not None and error["name"] == "ERROR" and value in error["value"]


def test_the_cell_stops_at_the_first_error(r: Kernel) -> None:
    assert r.run('cat("a"); stop("x"); cat("b")').stdout == "a"


def test_a_cell_that_does_not_parse_does_nothing(r: Kernel) -> None:
    run = r.run('cat("effect\\n")\na b')
    assert run.stdout == "" and run.error is not None and "unexpected symbol" in run.error["value"]
    assert r.run("f <- function(").error is not None


def test_caught_errors_are_not_told(r: Kernel) -> None:
    assert texts(r.run('tryCatch(stop("x"), error = function(e) "caught")')) == ['[1] "caught"']
    assert r.run('invisible(try(stop("x"), silent = TRUE))').events == []


# -- interrupts -------------------------------------------------------------------------------

HANGS = {
    "a sleep": "Sys.sleep(60)",
    "a loop": "while (TRUE) {}",
    "a loop that prints": "repeat cat('spam\\n')",
    "a child process": "system('sleep 60')",
    "a loop that catches errors": "repeat try(while (TRUE) {}, silent = TRUE)",
}


@pytest.mark.parametrize("hang", HANGS)
def test_an_interrupt_ends_the_cell_and_keeps_state(r: Kernel, hang: str) -> None:
    r.run('kept <- "state"')
    run = r.run_and_interrupt(HANGS[hang], after=0.2)
    assert run.status == "aborted" and run.error is None
    assert texts(r.run("kept")) == ['[1] "state"']


def test_interrupts_at_any_moment_leave_the_kernel_sound(r: Kernel) -> None:
    r.run("sound <- 7")
    cells = [
        "for (i in 1:100000) i",
        "for (i in 1:100) cat(i, '\\n')",
        "Sys.sleep(0.02)",
        "repeat {}",
        "repeat cat('y\\n')",
        "invisible(system('sleep 0.02'))",
        "1 + 1",
    ]
    r.harass(cells, "cat(sound)", "7", 40)


def test_an_interrupt_between_cells_is_ignored(r: Kernel) -> None:
    for _ in range(3):
        os.killpg(r.process.pid, 2)
        time.sleep(0.05)  # signals that are pending together are one
    assert texts(r.run("kept <- 1; kept")) == ["[1] 1"]


# -- life -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code", ['x <- readline("name? "); x', 'x <- readLines("stdin", 1); length(x)', "invisible(scan(quiet = TRUE))"]
)
def test_input_is_empty_at_once(r: Kernel, code: str) -> None:
    assert r.run(code).status in ("ok", "error")


def test_readline_answers_with_nothing(r: Kernel) -> None:
    assert texts(r.run('readline("name? ")')) == ['[1] ""']


def test_quit_ends_the_process(fresh: Kernel) -> None:
    run = fresh.run('cat("last words\\n"); q(status = 3)')
    assert run.is_dead and run.stdout == "last words\n" and fresh.process.wait(60) == 3


def test_the_kernel_leaves_at_end_of_file(fresh: Kernel) -> None:
    fresh.until(fresh.start('cat("go\\n"); while (TRUE) {}'), "go")
    assert fresh.hang_up() == 0


def test_counts_start_at_one_and_skip_blank_cells(fresh: Kernel) -> None:
    fresh.set_env({"QUIET": "1"})
    fresh.cd("/tmp")
    assert [fresh.run(c).count for c in ("1", " \n", "stop()", "a b", "2")] == [1, 2, 2, 3, 4]


def test_children_do_not_get_the_protocol(r: Kernel) -> None:
    code = 'cat(system("readlink /proc/self/fd/* | grep -c socket", intern = TRUE))'
    assert r.run(f"suppressWarnings({code})").stdout == "0"


def test_variables_of_a_run_are_put_back(r: Kernel) -> None:
    r.set_env({"GLOBAL": "global"})
    both = 'cat(Sys.getenv("FOO", "default"), Sys.getenv("GLOBAL"))'
    assert r.run(both, env={"FOO": "bar", "GLOBAL": "over"}).stdout == "bar over"
    assert r.run(both).stdout == "default global"
    r.run("stop()", env={"FOO": "bar"})
    run = r.start('cat("go\\n"); Sys.sleep(60)', env={"FOO": "bar", "GLOBAL": "over"})
    r.until(run, "go")
    r.interrupt(run)
    r.finish(run)
    assert r.run(both).stdout == "default global"
    assert texts(r.run('Sys.getenv("FOO")', env={"FOO": "bar"})) == ['[1] "bar"']


def test_values_of_variables_arrive_to_the_letter(r: Kernel) -> None:
    odd = 'quo\'te "x" \\ \n\r\x1d\x1e\x1f $HOME é'
    assert r.run('cat(Sys.getenv("ODD"))', env={"ODD": odd}).stdout == odd


def test_cd_changes_the_directory_or_says_why_not(r: Kernel) -> None:
    odd = f"/tmp/a 'quoted\" dir {os.getpid()}"
    os.makedirs(r.place(odd))
    assert r.cd(odd) == {"ev": "cd", "ok": True}
    assert r.run("cat(getwd())").stdout == odd
    assert r.cd("/no/such") == {"ev": "cd", "ok": False, "reason": "No such file or directory"}
    r.cd("/")
    os.rmdir(r.place(odd))


def test_a_long_cell_arrives_whole(r: Kernel) -> None:
    assert r.run(f'cat(nchar("{"z" * 500_000}"))').stdout == "500000"


def test_a_box_made_from_anothers_memory_draws_its_own_numbers(fresh: Kernel) -> None:
    fresh.run("set.seed(1)")
    first = texts(fresh.run("runif(1)"))
    fresh.run("set.seed(1)")
    fresh.send({"op": "env", "set": {}, "renew": True})
    second = texts(fresh.run("runif(1)"))
    assert first and second and first != second
