# SPDX-License-Identifier: Apache-2.0
"""A model for tests: an OpenAI-compatible server on loopback whose answers are a script.

Every entry of the script is a function that gets the messages of a request and returns the message of the answer; the
helpers below make such messages. A request that comes when the script is over is answered 400, and told by `finish`.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Message = dict[str, Any]
Answer = Callable[[list[Message]], Message]


def says(text: str) -> Message:
    return {"role": "assistant", "content": text}


def calls(name: str, **arguments: Any) -> Message:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"call_{uuid.uuid4().hex[:8]}", "type": "function", "function": function}],
    }


def text_of(message: Message) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or [])


def last_text(messages: list[Message]) -> str:
    return text_of(messages[-1])


class ScriptedModel:
    def __init__(self, *script: Answer) -> None:
        self.script = list(script)
        self.wrong: list[str] = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, answer = model.answer(self.path, body)
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)

    def __enter__(self) -> ScriptedModel:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    @property
    def variables(self) -> dict[str, str]:
        url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        return {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-of-the-test", "OPENAI_MODEL": "scripted"}

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        try:
            assert path == "/v1/chat/completions", path
            assert body["model"] == "scripted" and not body.get("stream"), body
            assert self.script, "the script is over"
            message = self.script.pop(0)(body["messages"])
        except Exception as error:
            self.wrong.append(f"{type(error).__name__}: {error}")
            return 400, {"error": {"message": str(error), "type": "invalid_request_error"}}
        ended = "tool_calls" if message.get("tool_calls") else "stop"
        choice = {"index": 0, "message": message, "finish_reason": ended}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        head = {"id": "answer", "object": "chat.completion", "created": 0, "model": "scripted"}
        return 200, head | {"choices": [choice], "usage": usage}

    def finish(self) -> None:
        assert not self.wrong, self.wrong
        assert not self.script, f"{len(self.script)} answers of the script were not asked for"
