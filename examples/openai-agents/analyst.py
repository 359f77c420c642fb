# SPDX-License-Identifier: Apache-2.0
"""OpenAI Agents SDK: an agent with one tool, a notebook in a sandbox whose variables stay between calls."""

from __future__ import annotations

import os
import sys

from agents import Agent, RunContextWrapper, Runner, function_tool, set_default_openai_api, set_tracing_disabled
from cloche import Sandbox

QUESTION = "Draw 10,000 numbers from a normal distribution (numpy, seed 7). How many are above 2?"


@function_tool
def run_python(context: RunContextWrapper[Sandbox], code: str) -> str:
    """Run a notebook cell: output, the value of its last line, or the traceback. Variables stay between calls."""
    run = context.context.run_code(code)
    if run.error:
        return run.error.traceback
    return "".join(run.logs.stdout) + (run.text or "")


def main(question: str) -> None:
    set_default_openai_api("chat_completions")  # which every OpenAI-compatible server of models has
    set_tracing_disabled(True)  # traces would go to OpenAI
    agent = Agent[Sandbox](
        name="Analyst",
        instructions="Answer with numbers that you computed with the tool.",
        tools=[run_python],
        model=os.environ.get("OPENAI_MODEL", "gpt-5-mini"),
    )
    with Sandbox.create() as box:
        print(Runner.run_sync(agent, question, context=box).final_output)


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or QUESTION)
