# SPDX-License-Identifier: Apache-2.0
# Made by tools/unasync.py from _async/envd.py: change that file.
"""Calls of the agent in a sandbox, and what to make of their failures.

A connection that breaks does not say why. The agent's `/health` does: when the edge answers that the sandbox was not
found, it ended, and the answer holds the cause.
"""

from __future__ import annotations

import base64
import time
from typing import Iterator, Dict, Mapping, Optional

from .._core import connect
from .._core.config import KEEPALIVE_SECONDS, STREAM_SILENCE, ConnectionConfig
from .._core.connect import Frames, RpcError
from .._core.errors import (
    GONE,
    Maker,
    ended_while,
    files_error,
    is_ambiguous,
    request_timeout,
    rpc_error,
    unavailable,
    unreachable,
)
from .._core.wire import Body, JsonObject, Reply, Request, WireFault, WireTimeout, dumps, json_object
from ..exceptions import SandboxNotRunningException
from .api import http_of
from .transport import Stream

HEALTH_TIMEOUT = 5.0


def user_header(user: Optional[str]) -> Dict[str, str]:
    if not user:
        return {}
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:".encode()).decode("ascii")}


class Envd:
    """The agent of one sandbox."""

    def __init__(self, config: ConnectionConfig, base_url: str, headers: Mapping[str, str]) -> None:
        self.config = config
        self.base_url = base_url.rstrip("/")
        self.headers = dict(headers)
        self.http = http_of(config)

    def call(
        self,
        method: str,
        message: JsonObject,
        request_timeout: Optional[float] = None,
        *,
        user: Optional[str] = None,
        errors: Optional[Mapping[str, Maker]] = None,
    ) -> JsonObject:
        """A call with one answer. `method` is `service/Method`."""
        try:
            return self.raw_call(method, message, request_timeout, user=user)
        except RpcError as error:
            raise self.explain(error, errors) from None

    def raw_call(
        self, method: str, message: JsonObject, timeout: Optional[float] = None, *, user: Optional[str] = None
    ) -> JsonObject:
        """As `call`, with the agent's own errors as RpcError."""
        limit = self.config.get_request_timeout(timeout)
        headers = connect.unary_headers({**self.headers, **user_header(user)}, limit)
        request = Request("POST", f"{self.base_url}/{method}", headers, dumps(message), timeout=limit)
        try:
            reply = self.http.send(request)
        except (WireTimeout, WireFault) as error:
            raise self.explain(error) from None
        if reply.status != 200:
            raise connect.error_of(reply.status, reply.body)
        return connect.decode(reply.body, method)

    def open(
        self,
        method: str,
        body: Body,
        timeout: Optional[float],
        request_timeout: Optional[float],
        *,
        headers: Optional[Mapping[str, str]] = None,
        user: Optional[str] = None,
        silence: Optional[float] = STREAM_SILENCE,
        errors: Optional[Mapping[str, Maker]] = None,
    ) -> Events:
        """A call with a stream of answers. `timeout` is the stream's whole time, which the agent keeps."""
        limit = self.config.get_request_timeout(request_timeout)
        base = {**self.headers, **user_header(user), **(headers or {})}
        base["Keepalive-Ping-Interval"] = str(KEEPALIVE_SECONDS)
        request = Request(
            "POST",
            f"{self.base_url}/{method}",
            connect.stream_headers(base, timeout),
            body,
            timeout=silence,
            connect_timeout=limit,
            http1=True,
        )
        try:
            stream = self.http.open(request)
            if stream.status != 200:
                raise connect.error_of(stream.status, stream.read())
        except (WireTimeout, WireFault, RpcError) as error:
            raise self.explain(error, errors) from None
        events = Events(self, stream, errors)
        if limit is not None:
            stream.set_deadline(time.monotonic() + limit)
        return events

    def send(self, request: Request) -> Reply:
        """A request of the agent's plain HTTP routes."""
        try:
            reply = self.http.send(request)
        except (WireTimeout, WireFault) as error:
            raise self.explain(error) from None
        if reply.status >= 300:
            raise files_error(reply)
        return reply

    def health(self, timeout: Optional[float] = HEALTH_TIMEOUT) -> Reply:
        return self.http.send(Request("GET", f"{self.base_url}/health", self.headers, timeout=timeout))

    def explain(self, error: Exception, errors: Optional[Mapping[str, Maker]] = None) -> Exception:
        """The exception that a caller sees for a failure of the wire."""
        if isinstance(error, WireTimeout):
            if not error.connecting:
                return self._if_gone(request_timeout())
            return request_timeout()
        if isinstance(error, RpcError):
            if not is_ambiguous(error):
                return rpc_error(error, errors)
            found = self._probe(error)
            return found if isinstance(found, SandboxNotRunningException) else rpc_error(error, errors)
        if isinstance(error, WireFault):
            return self._probe(error.original)
        return error

    def explain_timeout(self, error: WireTimeout, timed_out: Exception) -> Exception:
        """As `explain` for a request whose timeout has a meaning of its own."""
        timed_out.__cause__ = error.original
        return self._if_gone(timed_out)

    def _if_gone(self, error: Exception) -> Exception:
        found = self._probe(error)
        return found if isinstance(found, SandboxNotRunningException) else error

    def _probe(self, error: Exception) -> Exception:
        try:
            reply = self.health()
        except (WireTimeout, WireFault) as failed:
            return unreachable(error, str(failed))
        message = str(json_object(reply.body).get("message") or reply.text)
        if reply.status == 502 and GONE in message:
            return ended_while(error, message)
        if reply.status == 502:
            found = unavailable(message)
            found.__cause__ = error
            return found
        return error


class Events:
    """The messages of a streaming call."""

    def __init__(self, envd: Envd, stream: Stream, errors: Optional[Mapping[str, Maker]] = None) -> None:
        self._envd = envd
        self._stream = stream
        self._errors = errors
        self._messages = self._read()
        self.closed = False

    def __iter__(self) -> Iterator[JsonObject]:
        return self._messages

    def first(self) -> JsonObject:
        """The first message, which has `request_timeout` seconds to come."""
        for message in self._messages:
            self._stream.set_deadline(None)
            return message
        self.close()
        raise rpc_error(RpcError("internal", "the stream ended before its first message"))

    def _read(self) -> Iterator[JsonObject]:
        frames = Frames()
        try:
            for chunk in self._stream.chunks():
                for message in frames.feed(chunk):
                    yield message
                if frames.ended:
                    frames.finish()
                    return
            raise WireFault(ConnectionError("the stream was cut before its end"))
        except (WireTimeout, WireFault, RpcError) as error:
            if self.closed:
                return
            raise self._envd.explain(error, self._errors) from None
        finally:
            self._stream.close()

    def close(self) -> None:
        self.closed = True
        self._stream.cut()
        self._stream.close()
