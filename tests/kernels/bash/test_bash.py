# SPDX-License-Identifier: Apache-2.0
"""The Bash kernel, driven over its protocol."""

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
def bash() -> Iterator[Kernel]:
    kernel = Kernel("bash")
    yield kernel
    kernel.close()


@pytest.fixture
def fresh() -> Iterator[Kernel]:
    kernel = Kernel("bash")
    yield kernel
    kernel.close()


def failed_with(run: Run, value: str) -> bool:
    error = run.error
    return error is not None and (error["name"], error["value"], error["traceback"]) == ("", value, "")


# -- output -----------------------------------------------------------------------------------


def test_each_line_is_one_event(bash: Kernel) -> None:
    run = bash.run("echo one; echo two; printf 'three\\nfour'")
    assert run.stream("stdout") == ["one\n", "two\n", "three\n", "four"]
    assert run.status == "ok" and run.displays == []


def test_both_streams_are_merged_in_order(bash: Kernel) -> None:
    run = bash.run("echo a; echo b >&2; echo c; ls /no-such-file")
    assert run.stream("stdout")[:3] == ["a\n", "b\n", "c\n"] and run.stream("stderr") == []
    assert "No such file" in run.stdout


def test_line_ends_are_normalised(bash: Kernel) -> None:
    run = bash.run(r"printf 'win\r\n10%%\r20%%\r\nend\r'")
    assert run.stream("stdout") == ["win\n", "10%\r", "20%\n", "end\r"]


def test_empty_lines_and_blanks_stay(bash: Kernel) -> None:
    assert bash.run(r"printf '\n\n  x \t\n\n'").stream("stdout") == ["\n", "\n", "  x \t\n", "\n"]


def test_any_text_passes(bash: Kernel) -> None:
    text = "quotes ' \" ` backslash \\ dollar $HOME ! bang é ☃ 🎈 \u2028 %s \\n"
    quoted = text.replace("'", "'\\''")
    assert bash.run(f"printf '%s\\n' '{quoted}'").stdout == text + "\n"


def test_a_heredoc_passes(bash: Kernel) -> None:
    assert bash.run("cat <<'EOF'\n$x `y` \"z\"\n  'w'\nEOF\necho after").stdout == "$x `y` \"z\"\n  'w'\nafter\n"


def test_bytes_that_are_no_text_do_not_break_the_stream(bash: Kernel) -> None:
    assert bash.run(r"printf '\xff\xfe ok\n'").stdout.endswith(" ok\n")
    assert bash.run(r"printf 'a\x1eb\x1e\n'").stdout == "a\x1eb\x1e\n"
    assert bash.run(r"printf 'a\0b\n'").stdout == "a\0b\n"


def test_much_output_arrives_whole(bash: Kernel) -> None:
    run = bash.run("seq 1 50000")
    assert len(run.stream("stdout")) == 50000 and run.stdout.endswith("\n50000\n")
    assert len(bash.run("head -c 3000000 /dev/zero | tr '\\0' x").stdout) == 3_000_000


def test_output_comes_while_the_cell_runs(bash: Kernel, tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    run = bash.start(f"echo early; until [ -e {heard} ]; do sleep 0.05; done; echo late")
    bash.until(run, "early\n")
    heard.touch()
    bash.finish(run)
    assert run.stdout == "early\nlate\n"


def test_a_line_without_an_end_is_shown_after_a_while(bash: Kernel) -> None:
    run = bash.start("printf 'half '; sleep 3; echo whole")
    bash.until(run, "half ", timeout=2.7)
    assert bash.finish(run).stdout == "half whole\n"


def test_prompts_and_job_notices_are_not_shown(bash: Kernel) -> None:
    run = bash.run("sleep 0.05 & echo started; wait; echo $((1 + 1))")
    assert run.stream("stdout") == ["started\n", "2\n"]
    time.sleep(0.1)  # a notice that must not come has this long to come
    assert bash.run("true").events == []


def test_traces_show_only_the_cell(bash: Kernel) -> None:
    run = bash.run("set -x\necho traced\n{ set +x; } 2>/dev/null")
    assert [line.lstrip("+ ") for line in run.stream("stdout")] == ["echo traced\n", "traced\n"]


def test_display_helpers_send_html_and_images(bash: Kernel) -> None:
    assert bash.run("displayHTML <<< '<b>é</b>'").displays[0]["data"] == {"text/html": "<b>é</b>\n"}
    png = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40
    code = f"echo before; echo {base64.b64encode(png).decode()} | base64 -d | display; echo after"
    run = bash.run(code)
    assert [e["ev"] for e in run.events] == ["stream", "display", "stream"]
    assert base64.b64decode(run.displays[0]["data"]["image/png"]) == png and run.displays[0]["main"] is False


# -- state and status -------------------------------------------------------------------------


def test_state_persists(bash: Kernel) -> None:
    bash.run("name=value; list=(a b c); greet() { echo \"hi $1\"; }; alias ll='echo aliased'; declare -A map=([k]=v)")
    run = bash.run("echo $name ${list[2]} ${map[k]}; greet you; set -- p q")
    assert run.stdout == "value c v\nhi you\n"
    assert bash.run("ll; echo $2; set --").stdout == "aliased\nq\n"
    bash.run("cd /tmp")
    assert bash.run("pwd").stdout == "/tmp\n"


def test_a_status_other_than_zero_is_an_error(bash: Kernel) -> None:
    assert failed_with(bash.run("(exit 42)"), "42")
    assert failed_with(bash.run("false"), "1")
    assert failed_with(bash.run("no-such-command"), "127")
    run = bash.run("false; echo fine")
    assert run.error is None and run.status == "ok"


def test_the_status_is_known_to_the_next_cell(bash: Kernel) -> None:
    bash.run("(exit 7)")
    assert bash.run("echo $?").stdout == "7\n"
    assert bash.run("echo $?").stdout == "0\n"


@pytest.mark.parametrize(
    "code", ["echo 'unclosed", 'echo "unclosed', "if true", "for x in 1 2; do", "echo $(", "case x in", ")"]
)
def test_broken_code_is_an_error_and_harms_nothing(bash: Kernel, code: str) -> None:
    bash.run("kept=still")
    run = bash.run(code)
    assert run.status == "error" and "bash" in run.stdout
    assert bash.run("echo $kept").stdout == "still\n"


def test_a_trailing_backslash_is_an_error(bash: Kernel) -> None:
    assert failed_with(bash.run("echo a \\"), "Cell has trailing backslash")
    assert failed_with(bash.run("echo a \\\n"), "Cell has trailing backslash")
    assert bash.run("echo a \\\\").stdout == "a \\\n"
    assert bash.run("echo a \\\n  b").stdout == "a b\n"


def test_a_nul_is_refused(bash: Kernel) -> None:
    assert failed_with(bash.run("echo a\0b"), "Cell has a NUL character")


def test_loop_words_outside_a_loop_harm_nothing(bash: Kernel) -> None:
    bash.run("break; continue")
    assert bash.run("echo fine").stdout == "fine\n"


@pytest.mark.parametrize(
    "code", ['read line; echo "[$line]"', "cat", "python3 - </dev/null || true", "read -t 1 x; true"]
)
def test_standard_input_is_empty(bash: Kernel, code: str) -> None:
    assert bash.run(code).status in ("ok", "error")
    assert bash.run("echo next").stdout == "next\n"


def test_redirections_of_the_shell_last_for_the_cell(bash: Kernel) -> None:
    bash.run("exec >/dev/null; echo hidden")
    assert bash.run("echo seen").stdout == "seen\n"


def test_options_do_not_break_the_kernel(bash: Kernel) -> None:
    bash.run("set -u; set -o pipefail")
    assert bash.run("echo ${x_unset:-none}").stdout == "none\n"
    assert bash.run("true | false | true").status == "error"
    bash.run("set +u; set +o pipefail")


def test_a_trap_set_in_one_cell_runs(bash: Kernel) -> None:
    bash.run("trap 'echo trapped' USR1")
    assert bash.run("kill -USR1 $$").stdout == "trapped\n"
    bash.run("trap - USR1")


# -- the shell's end --------------------------------------------------------------------------


def test_exit_restarts_the_shell(fresh: Kernel) -> None:
    fresh.set_env({"GLOBAL": "kept"})
    fresh.cd("/usr")
    fresh.run("gone=1")
    run = fresh.run("echo bye; exit")
    assert run.stream("stdout") == ["bye\n", "Restarting Bash"] and run.status == "ok"
    assert fresh.run('echo "[$gone] $GLOBAL"; pwd').stdout == "[] kept\n/usr\n"
    assert failed_with(fresh.run("exit 3"), "3")


def test_a_failing_cell_under_errexit_restarts_the_shell(fresh: Kernel) -> None:
    run = fresh.run("set -e; echo before; false; echo after")
    assert run.stream("stdout") == ["before\n", "Restarting Bash"] and failed_with(run, "1")
    assert fresh.run("false; echo alive").stdout == "alive\n"


def test_a_shell_that_is_killed_is_replaced(fresh: Kernel) -> None:
    run = fresh.run("kill -9 $$")
    assert run.stdout == "Restarting Bash" and failed_with(run, "137")
    assert fresh.run("echo back").stdout == "back\n"
    fresh.run("(sleep 0.1; kill -9 $$) & disown")
    time.sleep(0.4)  # the shell dies between the cells, where nothing tells
    assert fresh.run("echo again").stdout == "again\n"


def test_exec_replaces_the_shell_for_one_cell(fresh: Kernel) -> None:
    assert fresh.run("exec echo replaced").stdout == "replaced\nRestarting Bash"
    assert fresh.run("echo back").stdout == "back\n"


def test_counts_start_at_one_and_skip_blank_cells(fresh: Kernel) -> None:
    fresh.set_env({"QUIET": "1"})
    fresh.cd("/tmp")
    assert [fresh.run(c).count for c in ("true", " \n", "false", "echo 'broken", "exit", "true")] == [1, 2, 2, 3, 4, 5]


def test_the_kernel_leaves_at_end_of_file(fresh: Kernel) -> None:
    fresh.until(fresh.start("echo go; sleep 60"), "go")
    assert fresh.hang_up() == 0


def test_children_do_not_get_the_protocol(bash: Kernel) -> None:
    assert bash.run("echo oops >&3").status == "error"
    assert bash.run("ls /proc/self/fd | tr '\\n' ' '").stdout.split()[:3] == ["0", "1", "2"]


# -- interrupts -------------------------------------------------------------------------------

HANGS = {
    "a command": "sleep 60; echo never",
    "a loop of commands": "while true; do sleep 1; done; echo never",
    "a busy loop": "while :; do :; done",
    "a pipeline": "sleep 60 | cat | sleep 60",
    "a loop that prints": "yes",
    "a wait": "sleep 60 & wait",
    "a subshell": "(sleep 60; echo never)",
    "a substitution": "x=$(sleep 60)",
}


@pytest.mark.parametrize("hang", HANGS)
def test_an_interrupt_ends_the_cell_and_keeps_state(bash: Kernel, hang: str) -> None:
    bash.run("kept=state")
    run = bash.run_and_interrupt(HANGS[hang], after=0.2)
    assert run.status == "aborted" and run.error is None and "never" not in run.stdout
    assert bash.run("echo $kept").stdout == "state\n"


def test_an_interrupt_ends_the_children(bash: Kernel) -> None:
    run = bash.start("sleep 4242; true")
    time.sleep(0.2)  # inside the child, not before it
    bash.interrupt(run)
    bash.finish(run)
    assert (
        bash.run(
            "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline; echo; done 2>/dev/null | grep -c '^sleep 4242'"
        ).stdout
        == "0\n"
    )


def test_a_child_that_ignores_interrupts_is_killed_in_the_end(bash: Kernel) -> None:
    bash.run("kept=state")
    run = bash.start("bash -c 'trap \"\" INT; while :; do sleep 1; done'")
    for _ in range(4):
        time.sleep(0.2)  # the pace of somebody who insists
        bash.interrupt(run)
    assert bash.finish(run).status == "aborted"
    assert bash.run("echo $kept").stdout == "state\n"


def test_interrupts_at_any_moment_leave_the_kernel_sound(bash: Kernel) -> None:
    bash.run("sound=7")
    cells = [
        "for i in {1..2000}; do :; done",
        "seq 1 300",
        "sleep 0.02",
        "while :; do :; done",
        "x=$(sleep 0.02; echo hi); echo $x",
        "while echo y; do sleep 0.001; done",
        "true",
    ]
    bash.harass(cells, "echo $sound", "7", 40)


def test_an_interrupt_between_cells_is_ignored(bash: Kernel) -> None:
    bash.run("kept=state")
    for _ in range(3):
        os.killpg(bash.process.pid, 2)
        time.sleep(0.02)  # signals that are pending together are one
    assert bash.run("echo $kept").stdout == "state\n"


def test_a_background_job_survives_an_interrupt(bash: Kernel) -> None:
    bash.run("sleep 30 & job=$!")
    bash.run_and_interrupt("sleep 60", after=0.2)
    assert bash.run("kill $job && echo was alive").stdout == "was alive\n"


# -- surroundings -----------------------------------------------------------------------------


def test_variables_of_a_run_are_put_back(bash: Kernel) -> None:
    bash.set_env({"GLOBAL": "global"})
    bash.run("plain=mine")
    show = 'echo "$FOO|$GLOBAL|$plain"; sh -c \'echo "$FOO|$plain"\''
    odd = {"FOO": "bar", "GLOBAL": "over", "plain": "env", "in-valid": "x", "1BAD": "y", "": "z"}
    assert bash.run(show, env=odd).stdout == "bar|over|env\nbar|env\n"
    assert bash.run(show).stdout == "|global|mine\n|\n"
    assert bash.run('echo "${FOO-unset}"').stdout == "unset\n"
    run = bash.start("echo go; sleep 60", env={"FOO": "bar", "GLOBAL": "over"})
    bash.until(run, "go")
    bash.interrupt(run)
    bash.finish(run)
    bash.run("FOO=changed; false", env={"FOO": "bar"})
    assert bash.run('echo "${FOO-unset} $GLOBAL"').stdout == "unset global\n"


def test_values_of_variables_arrive_to_the_letter(bash: Kernel) -> None:
    odd = 'quo\'te "x" \\ $(touch /tmp/injected) `id` \nnext é'
    assert bash.run('printf %s "$ODD"', env={"ODD": odd}).stdout == odd


def test_cd_changes_the_directory_or_says_why_not(bash: Kernel) -> None:
    odd = f"/tmp/a 'quoted\" $dir {os.getpid()}"
    os.makedirs(bash.place(odd))
    assert bash.cd(odd) == {"ev": "cd", "ok": True}
    assert bash.run("pwd").stdout == odd + "\n"
    assert bash.cd("/no/such") == {"ev": "cd", "ok": False, "reason": "No such file or directory"}
    assert bash.run("pwd").stdout == odd + "\n"
    bash.cd("/")
    os.rmdir(bash.place(odd))


def test_a_long_cell_arrives_whole(bash: Kernel) -> None:
    assert bash.run(f": {'x' * 300_000}\necho ${{#_}}").stdout == "300000\n"


def test_a_box_made_from_anothers_memory_draws_its_own_numbers(fresh: Kernel) -> None:
    draw = "echo $RANDOM$RANDOM$RANDOM"
    first = fresh.run(f"RANDOM=7; {draw}").stdout
    assert fresh.run(f"RANDOM=7; {draw}").stdout == first
    fresh.run("RANDOM=7")
    fresh.send({"op": "env", "set": {}, "renew": True})
    assert fresh.run(draw).stdout not in ("", first)
