# SPDX-License-Identifier: Apache-2.0
"""The JavaScript and TypeScript kernel, driven over its protocol."""

from __future__ import annotations

import base64
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from driver import Kernel


@pytest.fixture(scope="module")
def js() -> Iterator[Kernel]:
    kernel = Kernel("javascript")
    yield kernel
    kernel.close()


@pytest.fixture(scope="module")
def ts() -> Iterator[Kernel]:
    kernel = Kernel("typescript")
    yield kernel
    kernel.close()


@pytest.fixture
def fresh() -> Iterator[Kernel]:
    kernel = Kernel("javascript")
    yield kernel
    kernel.close()


@pytest.fixture
def folder(js: Kernel) -> Iterator[str]:
    """A directory with packages of its own, as the kernel names it."""
    path = f"/tmp/js-packages-{os.getpid()}"
    modules = js.place(f"{path}/node_modules")
    for name, kind, source in (
        ("plain", "commonjs", "module.exports = { two: 2, triple: (n) => n * 3 };"),
        ("modern", "module", "export const four = 4; export default 'modern default';"),
    ):
        os.makedirs(f"{modules}/{name}")
        Path(f"{modules}/{name}/package.json").write_text(
            f'{{"name": "{name}", "type": "{kind}", "exports": "./index.js"}}'
        )
        Path(f"{modules}/{name}/index.js").write_text(source)
    Path(js.place(f"{path}/local.mjs")).write_text("export const here = 'local';")
    assert js.cd(path) == {"ev": "cd", "ok": True}
    yield path
    js.cd("/")
    shutil.rmtree(js.place(path))


# -- values -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("1 + 1", "2"),
        ("'hello'", "'hello'"),
        ("({a: 1})", "{ a: 1 }"),
        ("{a: 1, b: 2}", "{ a: 1, b: 2 }"),
        ("[1, 2, 3]", "[ 1, 2, 3 ]"),
        ("null", "null"),
        ("-0", "-0"),
        ("NaN", "NaN"),
        ("12345678901234567890n", "12345678901234567890n"),
        ("Symbol('s')", "Symbol(s)"),
        ("(function f() {})", "[Function: f]"),
        ("new Map([[1, 'x']])", "Map(1) { 1 => 'x' }"),
        ("'naïve 🎈'", "'naïve 🎈'"),
        ("x_one = 1; x_one", "1"),
        ("if (true) { 5 }", "5"),
    ],
)
def test_the_last_value_is_shown_as_node_inspects_it(js: Kernel, code: str, text: str) -> None:
    run = js.run(code)
    assert (run.text, run.status, run.error) == (text, "ok", None)


@pytest.mark.parametrize("code", ["undefined", "const unused = 3", "function g() {}", "class A {}", "void 0"])
def test_an_undefined_value_gives_no_result(js: Kernel, code: str) -> None:
    run = js.run(code)
    assert run.events == [] and run.status == "ok"


def test_a_promise_is_awaited(js: Kernel) -> None:
    assert js.run("Promise.resolve('Hello World!')").text == "'Hello World!'"
    assert js.run("(async () => { await 1; return 7 })()").text == "7"


def test_a_rejected_promise_is_an_error(js: Kernel) -> None:
    error = js.run("Promise.reject(new RangeError('far'))").error
    assert error is not None and (error["name"], error["value"]) == ("RangeError", "far")


def test_top_level_await_keeps_names(js: Kernel) -> None:
    assert js.run("const waited = await Promise.resolve(41); waited + 1").text == "42"
    assert js.run("waited").text == "41"


def test_names_may_be_declared_again(js: Kernel) -> None:
    for kind in ("const", "let", "const", "var", "let", "var", "const"):
        assert js.run(f"{kind} again = '{kind}'; again").text == f"'{kind}'"
    for code in (
        "function again() { return 'f' }",
        "const again = () => 'f'",
        "class again { static call() {} }; again = () => 'f'",
    ):
        assert js.run(f"{code}\nagain()").text == "'f'"
    js.run("class Shape { sides() { return 3 } }")
    js.run("class Shape { sides() { return 4 } }")
    assert js.run("new Shape().sides()").text == "4"


def test_a_name_declared_twice_in_one_cell_is_a_syntax_error(js: Kernel) -> None:
    error = js.run("let twice = 1; let twice = 2").error
    assert error is not None and error["name"] == "SyntaxError" and "twice" in error["value"]


def test_a_top_level_return_is_a_syntax_error(js: Kernel) -> None:
    error = js.run("return 5").error
    assert error is not None and error["name"] == "SyntaxError"


def test_lone_surrogates_and_line_separators_survive(js: Kernel) -> None:
    assert js.run("console.log('a\\u2028b\\ud800c')").stdout == "a\u2028b\ud800c\n"


# -- modules ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "later", "text"),
    [
        ("import { readFileSync } from 'fs'", "typeof readFileSync", "'function'"),
        ("import { join as glue, sep } from 'node:path';", "glue('a', 'b') + sep", "'a/b/'"),
        ("import os from 'os'", "typeof os.platform()", "'string'"),
        ("import * as url from 'url'", "typeof url.parse", "'function'"),
        ("import util, { inspect } from 'util'", "util.inspect === inspect", "true"),
        ("import {\n  basename,\n  dirname,\n} from 'path'", "basename('/a/b') + dirname('/a/b')", "'b/a'"),
        ("import 'fs'", "1", "1"),
    ],
)
def test_static_imports_work_and_stay(js: Kernel, code: str, later: str, text: str) -> None:
    first = js.run(code)
    assert (first.error, first.events) == (None, [])
    assert js.run(later).text == text


def test_import_and_use_in_one_cell(js: Kernel) -> None:
    run = js.run("import { existsSync } from 'fs';\nconsole.log(typeof existsSync)")
    assert run.stream("stdout") == ["function\n"]


def test_dynamic_import_works_without_a_warning(js: Kernel) -> None:
    run = js.run("const dyn = await import('node:path'); dyn.join('x', 'y')")
    assert run.text == "'x/y'" and run.stderr == ""


def test_imports_of_packages_follow_the_working_directory(js: Kernel, folder: str) -> None:
    assert js.run("import { two } from 'plain'; import { four } from 'modern'; two + four").text == "6"
    assert js.run("import modern from 'modern'; modern").text == "'modern default'"
    assert js.run("import plain from 'plain'; plain.triple(5)").text == "15"
    assert js.run("import { here } from './local.mjs'; here").text == "'local'"
    assert js.run("require('plain').two").text == "2"


def test_a_missing_package_is_an_error_that_names_it(js: Kernel) -> None:
    for code in ("import x from 'no-such-package'", "require('no-such-package')"):
        error = js.run(code).error
        assert error is not None and "no-such-package" in error["value"]


def test_import_words_inside_text_stay_untouched(js: Kernel) -> None:
    code = """
    // import a from 'nowhere'
    const quoted = "import b from 'nowhere'", pattern = /import c from '/, half = 4 / 2 / 1
    const template = `import d from 'nowhere'; ${`export ${half}`} import('x')`
    const holder = { import: 1, export: 2 }
    import { sep } from 'path'
    ;[quoted.length, pattern.source.length, template, holder.import + holder.export, sep].join('|')
    """
    assert js.run(code).text == "\"23|15|import d from 'nowhere'; export 2 import('x')|3|/\""


def test_exports_are_ignored(js: Kernel) -> None:
    assert js.run("export const shown = 5; shown").text == "5"
    assert js.run("export { shown }").events == []
    assert js.run("export default { x: 1 }").text == "{ x: 1 }"
    assert js.run("export default function named() { return 9 }\nnamed()").text == "9"


def test_import_meta_names_the_working_directory(js: Kernel) -> None:
    js.cd("/tmp")
    assert js.run("import.meta.dirname").text == "'/tmp'"
    js.cd("/")


# -- TypeScript -------------------------------------------------------------------------------

TYPED = "interface P { x: number }\nconst p: P = { x: 3 };\nconst n: number = p.x as number; n"


def needs_transpiler(kernel: Kernel) -> None:
    places = ("/usr/bin/esbuild", "/usr/share/nodejs/typescript", "/usr/lib/node_modules/typescript")
    if not any(os.path.exists(kernel.place(p)) for p in places):
        pytest.skip("needs esbuild or node-typescript")


@pytest.mark.parametrize("language", ["js", "ts"])
def test_typescript_runs_in_both_languages(request: pytest.FixtureRequest, language: str) -> None:
    kernel: Kernel = request.getfixturevalue(language)
    needs_transpiler(kernel)
    assert kernel.run(TYPED).text == "3"
    assert kernel.run("enum Color { Red, Green }").events == []
    assert kernel.run("Color.Green").text == "1"
    assert kernel.run("const message: string = 'Hello World!'; console.log(message)").stream("stdout") == [
        "Hello World!\n"
    ]
    assert kernel.run("type A = string | number").events == []


def test_typescript_reads_type_arguments(ts: Kernel) -> None:
    needs_transpiler(ts)
    ts.run("function same<T>(value: T): T { return value }")
    assert ts.run("same<number>(5)").text == "5"


def test_typescript_keeps_imports_it_does_not_use_yet(ts: Kernel) -> None:
    needs_transpiler(ts)
    ts.run("import { join } from 'path'; const typed: number = 1")
    assert ts.run("join('a', 'b')").text == "'a/b'"


def test_invalid_typescript_is_a_syntax_error(ts: Kernel) -> None:
    error = ts.run("const x: = ;").error
    assert error is not None and error["name"] == "SyntaxError" and "const x: = ;" in error["traceback"]


def test_a_cell_that_does_not_parse_has_no_effect(js: Kernel) -> None:
    js.run("globalThis.effects = 0")
    assert js.run("effects++; let = = 3").error is not None
    assert js.run("effects").text == "0"


# -- output -----------------------------------------------------------------------------------


def test_each_console_call_is_one_event(js: Kernel) -> None:
    run = js.run("console.log('a'); console.log('b', {c: 1}); console.error('e'); console.warn('w'); console.info('i')")
    assert run.stream("stdout") == ["a\n", "b { c: 1 }\n", "i\n"]
    assert run.stream("stderr") == ["e\n", "w\n"]


def test_console_formats_groups_and_tables(js: Kernel) -> None:
    assert js.run("console.log('%s is %d', 'x', 4)").stdout == "x is 4\n"
    run = js.run("console.group('g'); console.log('in'); console.groupEnd(); console.log('out')")
    assert run.stream("stdout") == ["g\n", "  in\n", "out\n"]
    assert "│ 0" in js.run("console.table([{a: 1}])").stdout


def test_process_streams_are_captured(js: Kernel) -> None:
    run = js.run("process.stdout.write('no newline'); process.stderr.write(Buffer.from('é')); 0")
    assert run.stream("stdout") == ["no newline"] and run.stream("stderr") == ["é"]


def test_output_of_children_keeps_its_place(js: Kernel) -> None:
    run = js.run(
        "const cp = require('child_process'); console.log('before');"
        "cp.execSync('echo child', {stdio: 'inherit'}); console.log('after');"
        "cp.execSync('echo bad >&2', {stdio: 'inherit'})"
    )
    assert run.stream("stdout") == ["before\n", "child\n", "after\n"]
    assert run.stream("stderr") == ["bad\n"]


def test_raw_writes_to_descriptor_one_keep_their_place(js: Kernel) -> None:
    run = js.run("console.log('a'); require('fs').writeSync(1, 'raw\\n'); console.log('b')")
    assert run.stdout == "a\nraw\nb\n"


def test_much_output_arrives_whole(js: Kernel) -> None:
    run = js.run("for (let i = 0; i < 20000; i++) console.log('line ' + i + 'x'.repeat(100))")
    lines = run.stream("stdout")
    assert len(lines) == 20000 and lines[19999].startswith("line 19999x")
    assert len(js.run("console.log('y'.repeat(5e6))").stdout) == 5_000_001


def test_timers_live_between_cells(js: Kernel) -> None:
    js.run("globalThis.ticks = 0; globalThis.beat = setInterval(() => ticks++, 5)")
    time.sleep(0.1)  # between the cells, where it must tick
    assert int(js.run("ticks").text or 0) > 3
    js.run("clearInterval(beat)")


def test_late_output_goes_to_the_cell_that_runs_then(js: Kernel) -> None:
    js.run("setTimeout(() => console.log('late'), 50)")
    assert js.run("await new Promise((r) => setTimeout(r, 150))").stdout == "late\n"


def test_background_faults_do_not_end_the_kernel(js: Kernel) -> None:
    js.run(
        "globalThis.alive = 1; setTimeout(() => { throw new Error('timer') }, 1); "
        "setTimeout(() => Promise.reject(2), 1)"
    )
    time.sleep(0.05)  # the faults come between the cells, where nothing tells
    assert js.run("alive").text == "1"
    run = js.run("setTimeout(() => { throw new Error('shown') }, 1); await new Promise((r) => setTimeout(r, 50)); 3")
    assert run.text == "3" and "Uncaught Error: shown" in run.stderr


def test_an_unhandled_rejection_of_the_cell_is_told(js: Kernel) -> None:
    run = js.run("Promise.reject(new Error('lost')); 1")
    assert run.text == "1" and run.stderr.startswith("Uncaught Error: lost")


# -- display ----------------------------------------------------------------------------------


def test_helpers_give_the_result(js: Kernel) -> None:
    for kind, mime in (
        ("html", "text/html"),
        ("svg", "image/svg+xml"),
        ("text", "text/plain"),
        ("markdown", "text/markdown"),
    ):
        assert js.run(f"$$.{kind}('<b>x</b>')").main == {mime: "<b>x</b>"}
    assert js.run("$$.json({a: [1, null]})").main == {"application/json": {"a": [1, None]}}
    assert js.run("$$.mime({'text/html': 'h', 'text/plain': 't'})").main == {"text/html": "h", "text/plain": "t"}
    png = base64.b64encode(b"\x89PNG").decode()
    assert js.run("$$.png(Buffer.from([0x89, 0x50, 0x4e, 0x47]))").main == {"image/png": png}


def test_display_shows_without_being_the_result(js: Kernel) -> None:
    run = js.run("$$.display('id').html('<i>'); display([1]); 5")
    assert [(d["main"], d["data"]) for d in run.displays] == [
        (False, {"text/html": "<i>"}),
        (False, {"text/plain": "[ 1 ]"}),
        (True, {"text/plain": "5"}),
    ]


def test_objects_say_how_they_look(js: Kernel) -> None:
    assert js.run("({ _toHtml() { return '<p>' } })").main["text/html"] == "<p>"
    assert js.run("({ _toMime() { return {'text/latex': 'x', 'text/plain': 'y'} } })").main == {
        "text/latex": "x",
        "text/plain": "y",
    }
    assert js.run("({ async _toPng() { return 'QQ==' } })").main["image/png"] == "QQ=="
    jupyter = "({ [Symbol.for('Jupyter.display')]() { return {'text/html': 'j'} } })"
    assert js.run(jupyter).main["text/html"] == "j"


# -- errors -----------------------------------------------------------------------------------


def test_an_error_has_name_value_and_stack(js: Kernel) -> None:
    run = js.run("function inner() {\n  throw new TypeError('bad')\n}\ninner()")
    assert run.status == "error" and run.error is not None
    assert (run.error["name"], run.error["value"]) == ("TypeError", "bad")
    lines = run.error["traceback"].split("\n")
    assert lines[0] == "TypeError: bad" and "inner (cell[" in lines[1] and ":2:9)" in lines[1]
    assert len(lines) == 3, "no frames of the kernel"


def test_a_name_that_is_not_defined(js: Kernel) -> None:
    error = js.run("nothing_here").error
    assert error is not None and (error["name"], error["value"]) == ("ReferenceError", "nothing_here is not defined")


@pytest.mark.parametrize(
    ("code", "name", "value"),
    [
        ("throw 'text'", "string", "'text'"),
        ("throw {a: 1}", "object", "{ a: 1 }"),
        ("throw undefined", "undefined", "undefined"),
        ("throw 5", "number", "5"),
    ],
)
def test_any_value_can_be_thrown(js: Kernel, code: str, name: str, value: str) -> None:
    error = js.run(code).error
    assert error is not None and (error["name"], error["value"], error["traceback"]) == (name, value, "")


def test_a_syntax_error_shows_the_place(js: Kernel) -> None:
    error = js.run("let fine = 1\nlet broken = = 2").error
    assert error is not None and error["name"] == "SyntaxError"
    assert "let broken = = 2\n             ^" in error["traceback"]
    assert "1 +\n   ^" in js.run("1 +").error["traceback"]


def test_a_cause_is_told(js: Kernel) -> None:
    error = js.run("throw new Error('outer', {cause: new Error('inner')})").error
    assert error is not None and "[cause]: Error: inner" in error["traceback"]


# -- interrupts -------------------------------------------------------------------------------

HANGS = {
    "a loop": "while (true) {}",
    "a promise that never settles": "await new Promise(() => {})",
    "a loop after an await": "await null; for (;;) {}",
    "a loop after a timer": "await new Promise((r) => setTimeout(r, 10)); for (;;) {}",
    "a loop of awaits": "for (;;) await new Promise((r) => setTimeout(r, 5))",
    "a loop that prints": "for (;;) console.log('spam')",
    "a loop that catches": "for (;;) { try { while (true) {} } catch {} finally {} }",
    "a child process": "require('child_process').execSync('sleep 60; true')",
    "a blocked thread": "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
    "a slow pattern": "/(a+)+$/.test('a'.repeat(50) + 'b')",
    "a loop in a microtask": "Promise.resolve().then(() => { for (;;) {} }); await new Promise(() => {})",
    "a loop in next tick": "process.nextTick(() => { for (;;) {} }); await new Promise(() => {})",
    "a loop while a value is shown": "({ [require('util').inspect.custom]() { for (;;) {} } })",
}


@pytest.mark.parametrize("hang", HANGS)
def test_an_interrupt_ends_the_cell_and_keeps_state(js: Kernel, hang: str) -> None:
    js.run("let kept = 'state'")
    run = js.run_and_interrupt(HANGS[hang], after=0.15)
    assert run.status == "error" and run.error is not None and run.error["name"] in ("Interrupted", "Error")
    after = js.run("console.log('printed'); await new Promise((r) => setTimeout(r, 5)); kept")
    assert (after.text, after.stdout) == ("'state'", "printed\n")


def test_an_interrupted_loop_of_timers_is_really_over(js: Kernel) -> None:
    js.run_and_interrupt(
        "for (;;) { console.log('zombie'); await require('timers/promises').setTimeout(5) }", after=0.1
    )
    assert "zombie" not in js.run("await new Promise((r) => setTimeout(r, 50))").stdout


def test_a_timer_of_an_earlier_cell_that_hangs_can_be_interrupted(js: Kernel) -> None:
    js.run("let survivor = 8; setTimeout(() => { for (;;) {} }, 1)")
    time.sleep(0.05)  # the timer hangs between the cells, where nothing tells
    run = js.run_and_interrupt("survivor", after=0.1)
    assert run.status in ("ok", "error")
    assert js.run("survivor").text == "8"
    assert js.run("await new Promise((r) => setTimeout(r, 5)); 1").text == "1"


def test_interrupts_at_any_moment_leave_the_kernel_sound(fresh: Kernel) -> None:
    fresh.run("globalThis.sound = 7")
    cells = [
        "for (let i = 0; i < 1e6; i++) {}",
        "for (let i = 0; i < 500; i++) console.log('x' + i)",
        "await new Promise((r) => setTimeout(r, 10))",
        "for (;;) {}",
        "for (;;) console.log('y')",
        "for (;;) await new Promise((r) => setImmediate(r))",
        "require('child_process').execSync('sleep 0.02')",
        "1 + 1",
    ]
    fresh.harass(cells, "console.log(sound)", "7", 60)


def test_an_interrupt_between_cells_is_ignored(js: Kernel) -> None:
    js.run("let calm = 1")
    js.send({"op": "interrupt", "id": js.next_id})
    js.send({"op": "interrupt", "id": js.next_id})
    assert js.run("calm").text == "1"
    time.sleep(0.1)  # a late effect has this long to come
    assert js.run("calm").text == "1"


def test_an_interrupt_does_not_cut_the_setting_of_variables(fresh: Kernel) -> None:
    """Thousands of variables take longer to set than the watch thread waits before it terminates what runs."""
    fresh.run("1")
    fresh.set_env({f"MANY_{i}": "x" for i in range(6_000)})
    fresh.send({"op": "interrupt", "id": fresh.next_id})
    counted = fresh.run("Object.keys(process.env).filter((name) => name.startsWith('MANY_')).length")
    assert (counted.text, counted.status) == ("6000", "ok")


def test_repeated_interrupts_end_a_cell_once(js: Kernel) -> None:
    run = js.start("console.log('go'); for (;;) {}")
    js.until(run, "go")
    for _ in range(5):
        js.interrupt(run)
    assert js.finish(run).error is not None
    assert [js.run("1").text for _ in range(20)] == ["1"] * 20


def test_signals_to_the_group_do_not_end_the_kernel(js: Kernel) -> None:
    os.killpg(js.process.pid, 2)
    assert js.run("6").text == "6"


# -- life -------------------------------------------------------------------------------------


def test_counts_start_at_one_and_skip_blank_cells(fresh: Kernel) -> None:
    fresh.set_env({"QUIET": "1"})
    fresh.cd("/tmp")
    assert [fresh.run(c).count for c in ("1", "  \n", "throw 1", "let = =", "2")] == [1, 2, 2, 3, 4]


def test_process_exit_ends_the_process(fresh: Kernel) -> None:
    run = fresh.run("console.log('last words'); process.exit(3)")
    assert run.is_dead and run.stdout == "last words\n"
    assert fresh.process.wait(60) == 3


def test_the_kernel_leaves_at_end_of_file(fresh: Kernel) -> None:
    fresh.run("setInterval(() => {}, 1000)")
    assert fresh.hang_up() is not None


def test_the_kernel_leaves_at_end_of_file_even_when_stuck(fresh: Kernel) -> None:
    fresh.until(fresh.start("console.log('go'); for (;;) {}"), "go")
    assert fresh.hang_up() is not None


def test_children_do_not_get_the_protocol(js: Kernel) -> None:
    assert js.run("require('child_process').execSync('ls /proc/self/fd').toString().includes('3\\n4')").error is None
    assert js.run("require('child_process').spawnSync('sh', ['-c', 'echo oops >&3']).status !== 0").text == "true"


def test_variables_of_a_run_are_put_back(js: Kernel) -> None:
    js.set_env({"GLOBAL": "global"})
    both = "[process.env.FOO, process.env.GLOBAL]"
    assert js.run(both, env={"FOO": "bar", "GLOBAL": "over"}).text == "[ 'bar', 'over' ]"
    assert js.run(both).text == "[ undefined, 'global' ]"
    js.run("throw 1", env={"FOO": "bar"})
    run = js.start("console.log('go'); for (;;) {}", env={"FOO": "bar", "GLOBAL": "over"})
    js.until(run, "go")
    js.interrupt(run)
    js.finish(run)
    assert js.run(both).text == "[ undefined, 'global' ]"


def test_values_of_variables_arrive_to_the_letter(js: Kernel) -> None:
    odd = 'quo\'te "x" \\ \n$HOME é'
    assert js.run("console.log(process.env.ODD)", env={"ODD": odd}).stdout == odd + "\n"


def test_cd_changes_the_directory_or_says_why_not(js: Kernel) -> None:
    odd = f"/tmp/a 'quoted\" dir {os.getpid()}"
    os.makedirs(js.place(odd))
    assert js.cd(odd) == {"ev": "cd", "ok": True}
    assert js.run("console.log(process.cwd())").stdout == odd + "\n"
    assert js.cd("/no/such") == {"ev": "cd", "ok": False, "reason": "No such file or directory"}
    js.cd("/")
    os.rmdir(js.place(odd))


def test_code_of_many_megabytes_arrives_whole(js: Kernel) -> None:
    assert js.run(f"'{'z' * 3_000_000}'.length").text == "3000000"


def test_a_box_made_from_anothers_memory_draws_its_own_numbers(fresh: Kernel) -> None:
    fresh.send({"op": "env", "set": {}, "renew": True})
    first = fresh.run("[Math.random(), Math.random()].join()").text
    fresh.send({"op": "env", "set": {}, "renew": True})
    second = fresh.run("[Math.random(), Math.random()].join()").text
    assert first and second and first != second
    assert fresh.run("Math.random() < 1 && Math.random() >= 0").text == "true"


def test_cryptographic_numbers_keep_their_ways_after_a_renewal(fresh: Kernel) -> None:
    fresh.send({"op": "env", "set": {}, "renew": True})
    fresh.send({"op": "env", "set": {}, "renew": True})
    told = fresh.run("""
        import { randomUUID } from 'node:crypto'
        const c = require('crypto'), { promisify } = require('util')
        const words = new Uint32Array(4), view = new Uint8Array(8)
        const three = () => [randomUUID(), crypto.randomUUID(), c.randomUUID()]
        const ids = new Set(Array.from({ length: 50 }, three).flat())
        const form = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
        const ints = Array.from({ length: 500 }, () => c.randomInt(3, 7))
        c.randomFillSync(words, 1, 2)
        JSON.stringify([
          ids.size, [...ids].every((id) => form.test(id)),
          c.randomBytes(7).length, (await promisify(c.randomBytes)(5)).length,
          c.randomBytes(16).equals(c.randomBytes(16)),
          Math.min(...ints), Math.max(...ints), c.randomInt(1), words[0] + words[3], words[1] !== words[2],
          crypto.getRandomValues(view) === view, view.some((byte) => byte), (await promisify(c.randomInt)(5)) < 5,
          (await promisify(c.randomFill)(Buffer.alloc(9))).length,
        ])
    """)
    assert told.text == "'[150,true,7,5,false,3,6,0,0,true,true,true,true,9]'", told
    assert fresh.run("[c, crypto, c.webcrypto].some((one) => /native|_random/.test(one.randomUUID))").text == "false"
    for wrong in ("c.randomBytes(-1)", "c.randomInt(5, 2)", "c.randomFillSync('x')", "crypto.getRandomValues([1])"):
        assert fresh.run(wrong).error, wrong
