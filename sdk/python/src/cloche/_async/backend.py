# SPDX-License-Identifier: Apache-2.0
"""Sockets for httpcore on asyncio's own transports.

httpcore would go through anyio, which takes several turns of the event loop for a read; this takes one, or none if the
bytes are there. As in the blocking half a request's head waits for the first bytes of the body.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any, Coroutine, Iterable, List, Optional, cast

import httpcore

from .._core.pools import is_head

HIGH_WATER = 1 << 20


class _Protocol(asyncio.Protocol):
    """Keeps what came until it is read, and stops the peer when that is much."""

    def __init__(self) -> None:
        self.transport: Optional[asyncio.Transport] = None
        self.buffer = bytearray()
        self.ended = False
        self.error: Optional[Exception] = None
        self.reader: Optional[asyncio.Future[None]] = None
        self.writers: List[asyncio.Future[None]] = []
        self.full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def _wake(self) -> None:
        if self.reader is not None and not self.reader.done():
            self.reader.set_result(None)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if len(self.buffer) > HIGH_WATER and self.transport is not None:
            self.transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        self.ended = True
        self._wake()
        return False

    def connection_lost(self, exc: Optional[Exception]) -> None:
        self.ended = True
        self.error = exc
        self._wake()
        self.resume_writing()

    def pause_writing(self) -> None:
        self.full = True

    def resume_writing(self) -> None:
        self.full = False
        for one in self.writers:
            if not one.done():
                one.set_result(None)
        self.writers.clear()


async def _within(future: asyncio.Future[None], timeout: Optional[float], error: Exception) -> None:
    """Wait for a future; a timer that fails it costs less than a task of its own."""
    if timeout is None:
        await future
        return
    timer = future.get_loop().call_later(timeout, lambda: None if future.done() else future.set_exception(error))
    try:
        await future
    finally:
        timer.cancel()


class Stream(httpcore.AsyncNetworkStream):
    def __init__(self, protocol: _Protocol) -> None:
        self._protocol = protocol
        self._held = b""

    @property
    def _transport(self) -> asyncio.Transport:
        assert self._protocol.transport is not None
        return self._protocol.transport

    async def read(self, max_bytes: int, timeout: Optional[float] = None) -> bytes:
        protocol = self._protocol
        if self._held:
            held, self._held = self._held, b""
            await self._send(held, timeout)
        while not protocol.buffer and not protocol.ended:
            protocol.reader = asyncio.get_running_loop().create_future()
            try:
                await _within(protocol.reader, timeout, httpcore.ReadTimeout("nothing came in time"))
            finally:
                protocol.reader = None
        if not protocol.buffer and protocol.error is not None:
            raise httpcore.ReadError(str(protocol.error)) from protocol.error
        data = bytes(protocol.buffer[:max_bytes])
        del protocol.buffer[:max_bytes]
        if not protocol.ended and len(protocol.buffer) <= HIGH_WATER:
            self._transport.resume_reading()
        return data

    async def write(self, buffer: bytes, timeout: Optional[float] = None) -> None:
        if not self._held and is_head(buffer):
            self._held = buffer
        elif buffer:
            held, self._held = self._held, b""
            await self._send(held + buffer if held else buffer, timeout)

    async def _send(self, data: bytes, timeout: Optional[float]) -> None:
        protocol = self._protocol
        if protocol.ended and (protocol.error is not None or self._transport.is_closing()):
            raise httpcore.WriteError("the connection is closed")
        self._transport.write(data)
        if protocol.full:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            protocol.writers.append(waiter)
            await _within(waiter, timeout, httpcore.WriteTimeout("nothing was taken in time"))

    async def aclose(self) -> None:
        self._transport.abort() if self._protocol.full else self._transport.close()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: Optional[str] = None, timeout: Optional[float] = None
    ) -> httpcore.AsyncNetworkStream:
        loop = asyncio.get_running_loop()
        handshake = loop.start_tls(self._transport, self._protocol, ssl_context, server_hostname=server_hostname)
        try:
            upgraded = await _finish(handshake, timeout)
        except asyncio.TimeoutError:
            self._transport.abort()
            raise httpcore.ConnectTimeout("the TLS handshake took too long") from None
        except (OSError, ssl.SSLError) as error:
            self._transport.abort()
            raise httpcore.ConnectError(str(error)) from error
        self._protocol.transport = cast(asyncio.Transport, upgraded)
        return Stream(self._protocol)

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":
            # Of an idle connection: the peer has closed it, or said something that nobody asked for.
            return self._protocol.ended or bool(self._protocol.buffer)
        return self._transport.get_extra_info({"server_addr": "peername", "client_addr": "sockname"}.get(info, info))


def _abandon(task: asyncio.Future[Any]) -> None:
    """Closes a connection that nobody waits for any more."""
    if task.cancelled() or task.exception() is not None:
        return
    made: Any = task.result()  # a transport, or one with its protocol
    transport: Any = made if hasattr(made, "abort") else made[0]
    transport.abort()


async def _finish(work: Coroutine[Any, Any, Any], timeout: Optional[float]) -> Any:
    """As `asyncio.wait_for`, which before Python 3.12 loses a cancellation that comes as the work ends."""
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=timeout)
    except asyncio.CancelledError:
        task.cancel()
        task.add_done_callback(_abandon)
        raise
    if not done:
        task.cancel()
        task.add_done_callback(_abandon)
        raise asyncio.TimeoutError
    return task.result()


class Backend(httpcore.AsyncNetworkBackend):
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: Optional[float] = None,
        local_address: Optional[str] = None,
        socket_options: Optional[Iterable[Any]] = None,
    ) -> httpcore.AsyncNetworkStream:
        loop = asyncio.get_running_loop()
        source = None if local_address is None else (local_address, 0)
        try:
            transport, protocol = await _finish(
                loop.create_connection(_Protocol, host, port, local_addr=source), timeout
            )
        except asyncio.TimeoutError:
            raise httpcore.ConnectTimeout(f"{host}:{port} did not answer in time") from None
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        made = transport.get_extra_info("socket")
        if made is not None:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for option in socket_options or ():
                made.setsockopt(*option)
        return Stream(protocol)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
