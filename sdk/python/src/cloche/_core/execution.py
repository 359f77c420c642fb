# SPDX-License-Identifier: Apache-2.0
"""Running code on the wire: the request, and from its lines of JSON to an `Execution`."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Optional, Union, cast

from ..exceptions import InvalidArgumentException, SandboxException
from ..models import Context, Execution, ExecutionError, OutputMessage, Result
from .wire import JsonObject, dumps

LINE_MAX = 512 << 20

Event = Union[OutputMessage, Result, ExecutionError]


def execute_body(
    code: str, language: Optional[str], context: Optional[Context], envs: Optional[Dict[str, str]]
) -> bytes:
    if language and context:
        raise InvalidArgumentException("You can provide context or language, but not both at the same time.")
    return dumps(
        {"code": code, "context_id": context.id if context else None, "language": language, "env_vars": envs}
    )


def context_id(context: Union[Context, str, None]) -> Optional[str]:
    return context.id if isinstance(context, Context) else context


class Lines:
    """Takes bytes as they come and gives whole lines."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> List[bytes]:
        if self._rest:
            data = self._rest + data
        if b"\n" not in data:
            if len(data) > LINE_MAX:
                raise SandboxException(f"a line of output is longer than {LINE_MAX} bytes")
            self._rest = data
            return []
        lines = data.split(b"\n")
        self._rest = lines.pop()
        return lines

    def finish(self) -> List[bytes]:
        rest, self._rest = self._rest, b""
        return [rest] if rest.strip() else []


def take_line(execution: Execution, line: bytes) -> Optional[Event]:
    """Add a line of the answer to the execution, and give what a caller may want to see of it."""
    if not line.strip():
        return None
    try:
        parsed: Any = json.loads(line)
        kind = parsed.pop("type")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise SandboxException(f"the code interpreter sent a line that can't be read: {line[:200]!r}") from None
    return _take(execution, kind, cast(JsonObject, parsed))


def _take(execution: Execution, kind: Any, data: JsonObject) -> Optional[Event]:
    if kind == "result":
        result = Result(**data)
        execution.results.append(result)
        return result
    if kind == "stdout":
        execution.logs.stdout.append(data["text"])
        return OutputMessage(data["text"], data.get("timestamp", 0), False)
    if kind == "stderr":
        execution.logs.stderr.append(data["text"])
        return OutputMessage(data["text"], data.get("timestamp", 0), True)
    if kind == "error":
        execution.error = ExecutionError(data["name"], data["value"], data["traceback"])
        return execution.error
    if kind == "number_of_executions":
        execution.execution_count = data["execution_count"]
    return None
