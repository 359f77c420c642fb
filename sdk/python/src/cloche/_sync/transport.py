# SPDX-License-Identifier: Apache-2.0
"""Requests over httpcore, blocking. Its twin for asyncio is `_async/transport.py`; only these two differ in kind."""

from __future__ import annotations

import os
import socket
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, Mapping, Optional, Tuple, TypeVar

from .._core.pools import (
    PoolKey,
    head_of,
    pool_key,
    pool_options,
    proxy_options,
    socket_of,
    to_core,
    wire_error,
)
from .._core.wire import RETRY_BUDGET, Reply, Request, WireTimeout, retry_delay

if TYPE_CHECKING:
    import logging

    import httpcore

T = TypeVar("T")

_pools: Dict[PoolKey, httpcore.ConnectionPool] = {}
_pools_lock = threading.Lock()


def _make_pool(key: PoolKey) -> httpcore.ConnectionPool:
    import httpcore

    from .backend import Backend

    options: Dict[str, Any] = {**pool_options(key), "network_backend": Backend()}
    if key.proxy is None:
        return httpcore.ConnectionPool(**options)
    socks, more = proxy_options(key.proxy)
    return httpcore.SOCKSProxy(**options, **more) if socks else httpcore.HTTPProxy(**options, **more)


def _pool(key: PoolKey) -> httpcore.ConnectionPool:
    found = _pools.get(key)
    if found is None:
        with _pools_lock:
            found = _pools.get(key) or _pools.setdefault(key, _make_pool(key))
    return found


if hasattr(os, "register_at_fork"):
    # A child that used its parent's connections would read the parent's answers.
    os.register_at_fork(after_in_child=_pools.clear)


class _Watchdog:
    """One thread that shuts down the sockets of streams whose deadline is reached.

    httpx limits the silence between two reads, never the whole; a thread per stream would cost more than the request.
    """

    def __init__(self) -> None:
        self._wake = threading.Condition()
        self._streams: Dict[int, Stream] = {}
        self._next: Optional[float] = None
        self._thread: Optional[threading.Thread] = None
        self._pid = os.getpid()

    def add(self, stream: Stream) -> None:
        assert stream.deadline is not None
        with self._wake:
            self._streams[id(stream)] = stream
            if self._thread is None or self._pid != os.getpid():
                self._pid = os.getpid()
                self._thread = threading.Thread(target=self._run, name="cloche-deadlines", daemon=True)
                self._thread.start()
            elif self._next is None or stream.deadline < self._next:
                self._wake.notify()

    def remove(self, stream: Stream) -> None:
        with self._wake:
            self._streams.pop(id(stream), None)

    def _run(self) -> None:
        with self._wake:
            while True:
                now = time.monotonic()
                late = [one for one in self._streams.values() if one.deadline is not None and one.deadline <= now]
                for one in late:
                    self._streams.pop(id(one), None)
                    one.cut()
                times = [one.deadline for one in self._streams.values() if one.deadline is not None]
                self._next = min(times, default=None)
                self._wake.wait(None if self._next is None else max(0.0, self._next - now))


_watchdog = _Watchdog()


class Stream:
    """An answer whose body is read as it comes."""

    def __init__(self, response: httpcore.Response) -> None:
        self._response = response
        self.status, self.headers, self.reason = head_of(response)
        self.deadline: Optional[float] = None
        self._cut = False
        self._closed = False

    def set_deadline(self, at: Optional[float]) -> None:
        """End the stream at this time of the monotonic clock, None for never."""
        if self.deadline is not None:
            _watchdog.remove(self)
        self.deadline = at
        if at is not None:
            _watchdog.add(self)

    def cut(self) -> None:
        self._cut = True
        sock = socket_of(self._response)
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except (AttributeError, OSError):
            pass

    def chunks(self) -> Iterator[bytes]:
        try:
            for chunk in self._response.stream:  # type: ignore[union-attr]
                yield chunk
        except Exception as error:
            raise (WireTimeout() if self._cut else wire_error(error)) from error
        finally:
            self.close()
        if self._cut:
            raise WireTimeout()

    def read(self) -> bytes:
        return b"".join(self.chunks())

    def reply(self) -> Reply:
        return Reply(self.status, self.headers, self.read(), self.reason)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self.deadline is not None:
            _watchdog.remove(self)
        try:
            self._response.stream.close()  # type: ignore[union-attr]
        except Exception:
            # Nothing can be done about a connection that breaks while it is given back.
            pass


class Http:
    """Sends requests with one client's settings; connections are shared by all clients of the process."""

    def __init__(self, proxy: Any = None, http2: bool = True, logger: Optional[logging.Logger] = None) -> None:
        self._proxy = proxy
        self._http2 = http2
        self._logger = logger
        self._keys: Dict[Tuple[str, bool], PoolKey] = {}

    def _key(self, request: Request) -> PoolKey:
        """Which pool serves a request; proxies of the environment are looked up once for each address."""
        parts = request.url.split("/", 3)[2], request.http1
        found = self._keys.get(parts)
        if found is None:
            found = pool_key(request.url, self._http2 and not request.http1, self._proxy)
            self._keys[parts] = found
        return found

    def open(self, request: Request) -> Stream:
        key = self._key(request)
        if self._logger is not None:
            self._logger.info("Request %s %s", request.method, request.url)
        try:
            stream = Stream(_pool(key).handle_request(to_core(request, request.content)))
        except Exception as error:
            raise wire_error(error) from error
        if self._logger is not None:
            (self._logger.error if stream.status >= 400 else self._logger.info)("Response %s", stream.status)
        return stream

    def send(self, request: Request) -> Reply:
        if not request.retries:
            return self.open(request).reply()
        deadline = time.monotonic() + (request.timeout or RETRY_BUDGET)
        attempt = 0
        while True:
            reply = self.open(request).reply()
            delay = retry_delay(reply.status, reply.headers, attempt)
            if delay is None or attempt >= request.retries or time.monotonic() + delay >= deadline:
                return reply
            attempt += 1
            time.sleep(delay)


def notify(handler: Optional[Callable[[T], Any]], value: T) -> None:
    if handler is not None:
        handler(value)


def gather(calls: Mapping[int, Callable[[], T]]) -> Dict[int, T]:
    """Run calls one after the other."""
    return {name: call() for name, call in calls.items()}


sleep = time.sleep
