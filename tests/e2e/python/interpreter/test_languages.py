# SPDX-License-Identifier: Apache-2.0
"""The five languages: what each prints, returns, remembers and complains about."""

from __future__ import annotations

import pytest

from support.either import Either

pytestmark = pytest.mark.timeout(180)


def out(done) -> str:
    return "".join(done.logs.stdout)


@pytest.mark.parametrize(
    "language, code, read",
    [
        ("python", "import os; print(os.getcwd())", lambda d: out(d).strip()),
        ("javascript", "process.cwd()", lambda d: d.text),
        ("typescript", "process.cwd()", lambda d: d.text),
        ("bash", "pwd", lambda d: out(d).strip()),
        ("java", 'System.getProperty("user.dir")', lambda d: d.results[0].text),
    ],
)
async def test_every_language_starts_at_home(cell: Either, language, code, read) -> None:
    assert read(await cell.run_code(code, language=language)) == "/home/user"


async def test_r_starts_at_home(cell: Either) -> None:
    done = await cell.run_code("getwd()", language="r")
    assert done.results[0].text.strip() == '[1] "/home/user"'


class TestJavaScript:
    async def run(self, cell: Either, code: str):
        return await cell.run_code(code, language="js")

    async def test_console_lines_are_events(self, cell: Either) -> None:
        done = await self.run(cell, "console.log('Hello, World!'); console.error('bad')")
        assert done.logs.stdout == ["Hello, World!\n"]
        assert done.logs.stderr == ["bad\n"]
        assert done.results == []

    @pytest.mark.parametrize(
        "code, text",
        [
            ("'hello'", "hello"),
            ("({ a: 1 })", "{ a: 1 }"),
            ("[1, 2, 3]", "[ 1, 2, 3 ]"),
            ("null", "null"),
            ("await Promise.resolve('Hello World!')", "Hello World!"),
            ("Promise.resolve(42)", "42"),
            ("1n + 2n", "3n"),
        ],
    )
    async def test_the_last_value_is_the_result(self, cell: Either, code: str, text: str) -> None:
        assert (await self.run(cell, code)).text == text

    async def test_undefined_is_no_result(self, cell: Either) -> None:
        assert (await self.run(cell, "undefined")).results == []

    async def test_names_live_on_and_may_be_declared_again(self, cell: Either) -> None:
        await self.run(cell, "const kept = 1; let other = await Promise.resolve(2); class C {}")
        assert (await self.run(cell, "kept + other")).text == "3"
        again = await self.run(cell, "const kept = 10; class C { static n = 5 }; kept + C.n")
        assert again.error is None
        assert again.text == "15"

    async def test_modules_are_imported_and_stay_imported(self, cell: Either) -> None:
        done = await self.run(
            cell, "import { readFileSync } from 'fs';\nconsole.log(typeof readFileSync)"
        )
        assert done.logs.stdout == ["function\n"]
        assert (await self.run(cell, "typeof readFileSync")).text == "function"
        assert (await self.run(cell, "const os = require('os'); typeof os.cpus")).text == "function"
        done = await self.run(cell, "(await import('node:path')).basename('/a/b')")
        assert done.text == "b"
        assert done.logs.stderr == []

    async def test_an_error_has_its_name_value_and_traceback(self, cell: Either) -> None:
        done = await self.run(cell, "throw new RangeError('too far')")
        assert (done.error.name, done.error.value) == ("RangeError", "too far")
        assert "RangeError: too far" in done.error.traceback
        done = await self.run(cell, "throw 'plain'")
        assert (done.error.name, done.error.value) == ("string", "'plain'")
        assert (await self.run(cell, "let 1x")).error.name == "SyntaxError"
        done = await self.run(cell, "await Promise.reject(new TypeError('later'))")
        assert (done.error.name, done.error.value) == ("TypeError", "later")

    async def test_the_count_starts_at_one(self, cell: Either) -> None:
        context = await cell.create_code_context(language="javascript")
        assert (await cell.run_code("1", context=context)).execution_count == 1
        assert (await cell.run_code("2", context=context)).execution_count == 2

    async def test_typescript_is_compiled_and_run(self, cell: Either) -> None:
        code = """
        interface Named { name: string }
        enum Level { Low, High }
        const greet = (who: Named): string => `Hello ${who.name}`
        console.log(greet({ name: 'World!' }), Level.High)
        """
        done = await cell.run_code(code, language="ts")
        assert done.error is None
        assert done.logs.stdout == ["Hello World! 1\n"]

    async def test_exit_restarts_the_context(self, cell: Either) -> None:
        context = await cell.create_code_context(language="javascript")
        done = await cell.run_code("process.exit(3)", context=context)
        assert done.error.name == "ContextRestarting"
        assert (await cell.run_code("1 + 1", context=context)).text == "2"

    async def test_output_of_children_is_captured(self, cell: Either) -> None:
        code = "require('child_process').execSync('echo child', {stdio: 'inherit'}); 1"
        assert "child\n" in out(await self.run(cell, code))


class TestBash:
    async def run(self, cell: Either, code: str):
        return await cell.run_code(code, language="bash")

    async def test_every_line_of_bash_is_an_event(self, cell: Either) -> None:
        done = await self.run(cell, "echo one; echo two >&2")
        assert done.logs.stdout == ["one\n", "two\n"]

    async def test_variables_functions_and_folder_are_kept_between_cells(self, cell: Either) -> None:
        await self.run(cell, "v=5; f() { echo f-$1; }; cd /tmp")
        assert out(await self.run(cell, "f $v; pwd")) == "f-5\n/tmp\n"
        await self.run(cell, "cd ~- 2>/dev/null || cd /home/user")

    async def test_a_failure_is_an_error_with_the_status(self, cell: Either) -> None:
        done = await self.run(cell, "echo before; (exit 3)")
        assert out(done) == "before\n"
        assert (done.error.name, done.error.value) == ("", "3")
        assert (await self.run(cell, "true")).error is None

    async def test_exit_gives_a_fresh_shell(self, cell: Either) -> None:
        context = await cell.create_code_context(language="bash")
        await cell.run_code("v=1", context=context)
        await cell.run_code("exit", context=context)
        done = await cell.run_code("echo [$v]", context=context)
        assert out(done) == "[]\n"


class TestR:
    async def run(self, cell: Either, code: str):
        return await cell.run_code(code, language="r")

    async def test_print_is_one_event(self, cell: Either) -> None:
        assert (await self.run(cell, 'print("Hello, World!")')).logs.stdout == [
            '[1] "Hello, World!"\n'
        ]

    async def test_values_are_displayed_not_main(self, cell: Either) -> None:
        done = await self.run(cell, "x <- 41\nx + 1")
        assert done.text is None
        assert done.results[0].text.strip() == "[1] 42"
        assert done.results[0].is_main_result is False
        assert (await self.run(cell, "invisible(5)")).results == []
        assert (await self.run(cell, "x")).results[0].text.strip() == "[1] 41"

    async def test_an_error_is_told_and_warnings_go_to_stderr(self, cell: Either) -> None:
        done = await self.run(cell, 'stop("broken")')
        assert done.error.name == "ERROR"
        assert "broken" in done.error.value
        done = await self.run(cell, 'message("note"); warning("careful")')
        assert "note" in "".join(done.logs.stderr)
        assert "careful" in "".join(done.logs.stderr)

    async def test_a_plot_is_a_picture(self, cell: Either) -> None:
        done = await self.run(cell, "plot(1:10)")
        assert done.results[0].png.startswith("iVBORw0KGgo")

    async def test_a_data_frame_has_html(self, cell: Either) -> None:
        done = await self.run(cell, "data.frame(a = 1:2, b = c('x', 'y'))")
        assert "<table" in done.results[0].html

    async def test_readline_does_not_hang(self, cell: Either) -> None:
        done = await cell.run_code('readline("name? "); 1', language="r", timeout=20)
        assert done.error is None
        assert done.results[-1].text.strip() == "[1] 1"


class TestJava:
    async def run(self, cell: Either, code: str):
        return await cell.run_code(code, language="java")

    async def test_println_is_text_and_newline(self, cell: Either) -> None:
        done = await self.run(cell, 'System.out.println("Hello, World!")')
        assert done.logs.stdout[0] == "Hello, World!"
        assert out(done) == "Hello, World!\n"

    async def test_values_are_results_and_are_kept_between_cells(self, cell: Either) -> None:
        assert (await self.run(cell, 'String s = "super" + "test"; s')).text == "supertest"
        assert (await self.run(cell, "s.length()")).text == "9"
        assert (await self.run(cell, "Object o = null; o")).results == []

    async def test_an_error_has_its_name_value_and_traceback(self, cell: Either) -> None:
        done = await self.run(cell, 'throw new IllegalStateException("odd")')
        assert done.error.name.endswith("IllegalStateException")
        assert "odd" in done.error.value + done.error.traceback
        assert "\x1b" not in done.error.traceback
        assert (await self.run(cell, "int x = ;")).error is not None
        assert (await self.run(cell, "1 + 1")).text == "2"
