# SPDX-License-Identifier: Apache-2.0
# Made by tools/unasync.py from _async/code.py: change that file.
"""Running code: cells, contexts, interrupts."""

from __future__ import annotations

import time
from typing import Any, Iterator, Callable, List, Mapping, Optional, Union
from urllib.parse import quote

from .._core.errors import code_error, execution_timeout, request_timeout
from .._core.execution import Event, Lines, context_id, take_line
from .._core.wire import JsonObject, Reply, Request, WireFault, WireTimeout, dumps, json_list, json_object, without_none
from ..models import Context, Execution, ExecutionError, OutputMessage, Result
from .envd import Envd
from .transport import Stream, notify


class Callbacks:
    """Who wants to see what, while code runs."""

    __slots__ = ("on_error", "on_result", "on_stderr", "on_stdout")

    def __init__(
        self,
        on_stdout: Optional[Callable[[OutputMessage], Any]],
        on_stderr: Optional[Callable[[OutputMessage], Any]],
        on_result: Optional[Callable[[Result], Any]],
        on_error: Optional[Callable[[ExecutionError], Any]],
    ) -> None:
        self.on_stdout = on_stdout
        self.on_stderr = on_stderr
        self.on_result = on_result
        self.on_error = on_error

    def show(self, event: Event) -> None:
        if isinstance(event, OutputMessage):
            notify(self.on_stderr if event.error else self.on_stdout, event)
        elif isinstance(event, Result):
            notify(self.on_result, event)
        else:
            notify(self.on_error, event)


class Run:
    """A cell that runs: its stream, and what has come of it."""

    def __init__(self, envd: Envd, stream: Stream) -> None:
        self._envd = envd
        self._stream = stream
        self.execution = Execution()
        self.id: Optional[str] = stream.headers.get("cloche-execution-id")
        self.closed = False

    def events(self) -> Iterator[Event]:
        lines = Lines()
        try:
            for chunk in self._stream.chunks():
                for line in lines.feed(chunk):
                    event = take_line(self.execution, line)
                    if event is not None:
                        yield event
            for line in lines.finish():
                event = take_line(self.execution, line)
                if event is not None:
                    yield event
        except WireTimeout as error:
            raise self._envd.explain_timeout(error, execution_timeout()) from None
        except WireFault as error:
            if self.closed:
                return
            raise self._envd.explain(error) from None
        finally:
            self._stream.close()

    def finish(self, callbacks: Callbacks) -> Execution:
        for event in self.events():
            callbacks.show(event)
        return self.execution

    def close(self) -> None:
        self.closed = True
        self._stream.cut()
        self._stream.close()


class Code:
    """The code interpreter of one sandbox."""

    def __init__(self, envd: Envd, base_url: str, headers: Mapping[str, str]) -> None:
        self._envd = envd
        self._base_url = base_url.rstrip("/")
        self._headers = {**headers, "Content-Type": "application/json"}
        self._execute_url = f"{self._base_url}/execute"

    def start(self, body: bytes, timeout: Optional[float], request_timeout_: Optional[float]) -> Run:
        """Send a cell. `timeout` is its whole time in seconds; connecting has `request_timeout`."""
        began = time.monotonic()
        connecting = self._envd.config.get_request_timeout(request_timeout_)
        request = Request(
            "POST", self._execute_url, self._headers, body, timeout=timeout, connect_timeout=connecting, http1=True
        )
        try:
            stream = self._envd.http.open(request)
            if stream.status >= 300:
                raise code_error(stream.reply())
        except WireTimeout as error:
            timed_out = request_timeout() if error.connecting else execution_timeout()
            raise self._envd.explain_timeout(error, timed_out) from None
        except WireFault as error:
            raise self._envd.explain(error) from None
        if timeout is not None:
            stream.set_deadline(began + timeout)
        return Run(self._envd, stream)

    def create_context(
        self, cwd: Optional[str], language: Optional[str], request_timeout: Optional[float]
    ) -> Context:
        body = without_none(language=language or None, cwd=cwd or None)
        reply = self._call("POST", "/contexts", body, request_timeout)
        return Context.from_json(json_object(reply.body))

    def list_contexts(self) -> List[Context]:
        reply = self._call("GET", "/contexts")
        return [Context.from_json(one) for one in json_list(reply.body)]

    def remove_context(self, context: Union[Context, str]) -> None:
        self._call("DELETE", f"/contexts/{quote(str(context_id(context)), safe='')}")

    def restart_context(self, context: Union[Context, str]) -> None:
        self._call("POST", f"/contexts/{quote(str(context_id(context)), safe='')}/restart")

    def interrupt(
        self,
        context: Union[Context, str, None],
        language: Optional[str],
        execution_id: Optional[str],
        request_timeout: Optional[float],
    ) -> bool:
        body = without_none(context_id=context_id(context), language=language, execution_id=execution_id)
        reply = self._call("POST", "/interrupt", body, request_timeout)
        return bool(json_object(reply.body).get("interrupted"))

    def _call(
        self, method: str, path: str, body: Optional[JsonObject] = None, timeout: Optional[float] = None
    ) -> Reply:
        limit = self._envd.config.get_request_timeout(timeout)
        content = None if body is None else dumps(body)
        request = Request(method, self._base_url + path, self._headers, content, timeout=limit, http1=True)
        try:
            reply = self._envd.http.send(request)
        except (WireTimeout, WireFault) as error:
            raise self._envd.explain(error) from None
        if reply.status >= 300:
            raise code_error(reply)
        return reply


