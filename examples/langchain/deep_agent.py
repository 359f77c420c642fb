# SPDX-License-Identifier: Apache-2.0
"""LangChain: a Deep Agent whose shell and files are a sandbox."""

from __future__ import annotations

import os
import sys

from deepagents import create_deep_agent
from e2b import Sandbox
from langchain_e2b import E2BSandbox
from langchain_openai import ChatOpenAI

TASK = "Write a Python program that prints the first ten squares, run it, and tell me their sum."


def main(task: str) -> None:
    # OPENAI_BASE_URL and OPENAI_API_KEY are read by ChatOpenAI itself.
    model = ChatOpenAI(model=os.environ.get("OPENAI_MODEL", "gpt-5-mini"))
    with Sandbox.create(timeout=600) as box:
        # Its tools execute, write_file, read_file, edit_file, ls, glob and grep now work in the sandbox.
        agent = create_deep_agent(model=model, backend=E2BSandbox(sandbox=box))
        for step in agent.stream({"messages": [("user", task)]}, stream_mode="updates"):
            for update in step.values():
                for message in (update or {}).get("messages", []):
                    message.pretty_print()


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or TASK)
