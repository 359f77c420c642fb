# SPDX-License-Identifier: Apache-2.0
"""Requests over httpcore for asyncio. Its blocking twin is `_sync/transport.py`; only these two differ in kind."""

from __future__ import annotations

import asyncio
import inspect
import socket
import sys
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, AsyncIterator, Awaitable, Callable, Dict, Mapping, Optional, Tuple, TypeVar
from weakref import WeakKeyDictionary

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

# Connections belong to the event loop in which they were made.
_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, Dict[PoolKey, httpcore.AsyncConnectionPool]] = WeakKeyDictionary()


def _remember_that_sniffio_is_missing() -> None:
    """httpcore tries to import sniffio several times for each request and goes on without it where it is not there.

    Python looks through all of sys.path each time, which takes longer than the request; None says at once that a module
    is not there, as the import would.
    """
    if "sniffio" not in sys.modules and find_spec("sniffio") is None:
        sys.modules["sniffio"] = None  # type: ignore[assignment]  # pyright: ignore[reportArgumentType]


def _make_pool(key: PoolKey) -> httpcore.AsyncConnectionPool:
    import httpcore

    from .backend import Backend

    _remember_that_sniffio_is_missing()

    options: Dict[str, Any] = {**pool_options(key), "network_backend": Backend()}
    if key.proxy is None:
        return httpcore.AsyncConnectionPool(**options)
    socks, more = proxy_options(key.proxy)
    return httpcore.AsyncSOCKSProxy(**options, **more) if socks else httpcore.AsyncHTTPProxy(**options, **more)


def _pool(key: PoolKey) -> httpcore.AsyncConnectionPool:
    of_loop = _pools.setdefault(asyncio.get_running_loop(), {})
    found = of_loop.get(key)
    if found is None:
        found = of_loop[key] = _make_pool(key)
    return found


class AsyncStream:
    """An answer whose body is read as it comes."""

    def __init__(self, response: httpcore.Response) -> None:
        self._response = response
        self.status, self.headers, self.reason = head_of(response)
        self._timer: Optional[asyncio.TimerHandle] = None
        self._cut = False
        self._closed = False

    def set_deadline(self, at: Optional[float]) -> None:
        """End the stream at this time of the monotonic clock, None for never."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, at - time.monotonic()), self.cut)

    def cut(self) -> None:
        self._cut = True
        sock = socket_of(self._response)
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except (AttributeError, OSError):
            pass

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.stream:  # type: ignore[union-attr]
                yield chunk
        except Exception as error:
            raise (WireTimeout() if self._cut else wire_error(error)) from error
        finally:
            await self.aclose()
        if self._cut:
            raise WireTimeout()

    async def read(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks()])

    async def reply(self) -> Reply:
        return Reply(self.status, self.headers, await self.read(), self.reason)

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        try:
            await self._response.stream.aclose()  # type: ignore[union-attr]
        except Exception:
            # Nothing can be done about a connection that breaks while it is given back.
            pass


class AsyncHttp:
    """Sends requests with one client's settings; connections are shared by all clients of the event loop."""

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

    async def open(self, request: Request) -> AsyncStream:
        key = self._key(request)
        if self._logger is not None:
            self._logger.info("Request %s %s", request.method, request.url)
        try:
            stream = AsyncStream(await _pool(key).handle_async_request(to_core(request, request.content)))
        except Exception as error:
            raise wire_error(error) from error
        if self._logger is not None:
            (self._logger.error if stream.status >= 400 else self._logger.info)("Response %s", stream.status)
        return stream

    async def send(self, request: Request) -> Reply:
        if not request.retries:
            return await (await self.open(request)).reply()
        deadline = time.monotonic() + (request.timeout or RETRY_BUDGET)
        attempt = 0
        while True:
            reply = await (await self.open(request)).reply()
            delay = retry_delay(reply.status, reply.headers, attempt)
            if delay is None or attempt >= request.retries or time.monotonic() + delay >= deadline:
                return reply
            attempt += 1
            await asyncio.sleep(delay)


async def notify(handler: Optional[Callable[[T], Any]], value: T) -> None:
    if handler is not None:
        result = handler(value)
        if inspect.isawaitable(result):
            await result


async def gather(calls: Mapping[int, Callable[[], Awaitable[T]]]) -> Dict[int, T]:
    """Run calls at the same time."""
    results = await asyncio.gather(*(call() for call in calls.values()))
    return dict(zip(calls, results))


sleep = asyncio.sleep
