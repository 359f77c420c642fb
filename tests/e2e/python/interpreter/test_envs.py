# SPDX-License-Identifier: Apache-2.0
"""Environment variables: of the box, of one execution, and back again, in every language."""

from __future__ import annotations

from collections.abc import Iterator

import e2b_code_interpreter as interpreter
import pytest

READ = {
    "python": "import os; os.getenv('{0}', 'default')",
    "javascript": "process.env.{0} || 'default'",
    "typescript": "process.env.{0} || 'default'",
    "r": "Sys.getenv('{0}', 'default')",
    "bash": "echo ${{{0}:-default}}",
    "java": 'System.getProperty("{0}", "default")',
}
LANGUAGES = list(READ)


@pytest.fixture(scope="module")
def boxed() -> Iterator[interpreter.Sandbox]:
    box = interpreter.Sandbox.create(timeout=300, envs={"TEST_ENV_VAR": "supertest"})
    yield box
    box.kill()


def read(box: interpreter.Sandbox, language: str, name: str, **options) -> str:
    done = box.run_code(READ[language].format(name), language=language, **options)
    assert done.error is None, done.error
    if language == "bash":
        return done.logs.stdout[0].removesuffix("\n")
    if language == "r":
        return done.results[0].text.strip().removeprefix('[1] "').removesuffix('"')
    return done.text.strip()


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_boxs_variable_is_seen(boxed: interpreter.Sandbox, language: str) -> None:
    assert read(boxed, language, "TEST_ENV_VAR") == "supertest"


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_executions_variable_is_gone_after_it(boxed: interpreter.Sandbox, language: str) -> None:
    assert read(boxed, language, "FOO", envs={"FOO": "bar"}) == "bar"
    assert read(boxed, language, "FOO") == "default"


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_overwritten_variable_comes_back(boxed: interpreter.Sandbox, language: str) -> None:
    assert read(boxed, language, "TEST_ENV_VAR", envs={"TEST_ENV_VAR": "over"}) == "over"
    assert read(boxed, language, "TEST_ENV_VAR") == "supertest"


@pytest.mark.parametrize("language", ["python", "javascript", "bash"])
def test_odd_values_are_only_values(boxed: interpreter.Sandbox, language: str) -> None:
    odd = 'it\'s "odd" \\n $HOME `id` ;#'
    done = boxed.run_code(
        {
            "python": "import os; print(os.environ['ODD'])",
            "javascript": "console.log(process.env.ODD)",
            "bash": 'printf "%s\\n" "$ODD"',
        }[language],
        language=language,
        envs={"ODD": odd},
    )
    assert "".join(done.logs.stdout) == odd + "\n"


def test_values_stay_out_of_tracebacks_and_line_numbers(boxed: interpreter.Sandbox) -> None:
    done = boxed.run_code("a = 1\nraise ValueError(a)", envs={"SECRET": "hunter2"})
    assert "hunter2" not in done.error.traceback
    assert "line 2" in done.error.traceback
    done = boxed.run_code("%%bash\necho $SECRET", envs={"SECRET": "in-magic"})
    assert "".join(done.logs.stdout) == "in-magic\n"


def test_variables_are_restored_after_an_error(boxed: interpreter.Sandbox) -> None:
    boxed.run_code("raise ValueError", envs={"FOO": "bar"})
    assert read(boxed, "python", "FOO") == "default"


def test_children_of_a_cell_see_them(boxed: interpreter.Sandbox) -> None:
    done = boxed.run_code("!echo $FOO-$TEST_ENV_VAR", envs={"FOO": "bar"})
    assert "".join(done.logs.stdout).strip() == "bar-supertest"


def test_they_survive_a_restart(boxed: interpreter.Sandbox) -> None:
    context = boxed.create_code_context()
    boxed.restart_code_context(context)
    done = boxed.run_code("import os; os.environ['TEST_ENV_VAR']", context=context)
    assert done.text == "supertest"
