# SPDX-License-Identifier: Apache-2.0
"""smolagents: a CodeAgent whose code runs in a sandbox (executor_type="e2b").

The model is a script: it answers with the code that it is given. Everything between agent and sandbox is the stock
thing.
"""

from __future__ import annotations

from typing import Any

from smolagents import CodeAgent, tool
from smolagents.models import ChatMessage, MessageRole, Model
from smolagents.monitoring import AgentLogger, LogLevel
from smolagents.remote_executors import E2BExecutor
from smolagents.utils import AgentError


class Script(Model):
    def __init__(self, *codes: str) -> None:
        super().__init__(model_id="script")
        self.codes = list(codes)

    def generate(self, messages: list[Any], **_: Any) -> ChatMessage:
        text = f"Thought: next\n<code>\n{self.codes.pop(0)}\n</code>"
        return ChatMessage(role=MessageRole.ASSISTANT, content=text)


@tool
def double(number: int) -> int:
    """Doubles a number.

    Args:
        number: what to double
    """
    return number * 2


def agent_works() -> None:
    script = Script("kept = double(20)\nprint('kept', kept)", "final_answer({'sum': kept + 2, 'list': [1, 2]})")
    with CodeAgent(tools=[double], model=script, executor_type="e2b", verbosity_level=LogLevel.OFF) as agent:
        answer = agent.run("go", additional_args={"unused": 1})
    assert answer == {"sum": 42, "list": [1, 2]}, answer


def executor_works() -> None:
    executor = E2BExecutor([], AgentLogger(level=LogLevel.OFF))
    try:
        executor.send_variables({"given": [1, 2, 3]})
        assert executor("sum(given)").output == "6"
        assert executor("print('said')").logs == "said\n"
        picture = executor("from PIL import Image; Image.new('RGB', (4, 3))").output
        assert picture.size == (4, 3), picture
        try:
            executor("1 / 0")
        except AgentError as error:
            assert "ZeroDivisionError" in str(error)
        else:
            raise AssertionError("an error in the sandbox was not raised")
    finally:
        executor.cleanup()


agent_works()
executor_works()
