# SPDX-License-Identifier: Apache-2.0
"""smolagents: a CodeAgent writes Python, a sandbox runs it."""

from __future__ import annotations

import os
import sys

from smolagents import CodeAgent, OpenAIModel, tool

QUESTION = "The order is 12 lamps and 5 chairs. What does it cost, with 19 % tax, rounded to cents?"


@tool
def price(product: str) -> float:
    """The price of one piece, without tax.

    Args:
        product: its name, e.g. "lamp"
    """
    return {"lamp": 24.5, "chair": 89.0, "table": 240.0}[product]


def main(question: str) -> None:
    model = OpenAIModel(
        model_id=os.environ.get("OPENAI_MODEL", "gpt-5-mini"),
        api_base=os.environ.get("OPENAI_BASE_URL"),
        api_key=os.environ.get("OPENAI_API_KEY"),
    )
    # With executor_type "e2b" the code runs in a sandbox of the server that E2B_API_URL names, the tools with it.
    with CodeAgent(tools=[price], model=model, executor_type="e2b", max_steps=6) as agent:
        print("answer:", agent.run(question))


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or QUESTION)
