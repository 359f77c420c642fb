# SPDX-License-Identifier: Apache-2.0
"""Examples with a model, which here is a script: it reads what the sandbox said before it answers."""

from __future__ import annotations

import re
from pathlib import Path

from programs import copied, installed, python
from scripted_model import Message, ScriptedModel, calls, last_text, says


def drive(program: Path, packages: str, model: ScriptedModel) -> str:
    with model:
        out = python(program, packages=installed(packages), **model.variables)
    model.finish()
    return out


def number_in(text: str, before: str) -> str:
    found = re.search(rf"{before}\s*([0-9.]+)", text)
    assert found, text
    return found[1]


def test_smolagents_runs_the_models_code_and_its_tool_in_a_box(tmp_path: Path) -> None:
    def code(text: str) -> Message:
        return says(f"Thought: next.\n<code>\n{text}\n</code>")

    model = ScriptedModel(
        lambda _: code("net = 12 * price('lamp') + 5 * price('chair')\nprint('net', net)"),
        lambda messages: code(f"final_answer(round({number_in(last_text(messages), 'net')} * 1.19, 2))"),
    )
    out = drive(copied("smolagents", tmp_path) / "code_agent.py", "smolagents", model)
    assert "answer: 879.41" in out, out


def test_langchain_writes_a_file_and_runs_it_in_a_box(tmp_path: Path) -> None:
    program = "squares = [n * n for n in range(1, 11)]\nprint('sum', sum(squares))\n"
    model = ScriptedModel(
        lambda _: calls("write_file", file_path="/home/user/squares.py", content=program),
        lambda _: calls("execute", command="python3 /home/user/squares.py"),
        lambda messages: says(f"The sum is {number_in(last_text(messages), 'sum')}."),
    )
    out = drive(copied("langchain", tmp_path) / "deep_agent.py", "langchain", model)
    assert "The sum is 385." in out, out


def test_openai_agents_keep_variables_between_calls_of_their_tool(tmp_path: Path) -> None:
    draw = "import numpy as np\nnumbers = np.random.default_rng(7).normal(size=10_000)"
    model = ScriptedModel(
        lambda _: calls("run_python", code=draw),
        lambda _: calls("run_python", code="print('above', int((numbers > 2).sum()), 'of', len(numbers))"),
        lambda messages: says(f"{number_in(last_text(messages), 'above')} of them."),
    )
    out = drive(copied("openai-agents", tmp_path) / "analyst.py", "openai_agents", model)
    above = int(number_in(out, "^"))
    assert 150 < above < 300, out
