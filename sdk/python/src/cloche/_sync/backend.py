# SPDX-License-Identifier: Apache-2.0
"""Sockets for httpcore, blocking: its own, but a request's head waits for the first bytes of the body.

httpcore writes them apart. The first packet alone wakes a server that can do nothing with it, which costs more than all
that this package does.
"""

from __future__ import annotations

import ssl
from typing import Any, Iterable, Optional

import httpcore

from .._core.pools import is_head


class Coalescing(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner
        self._held = b""

    def read(self, max_bytes: int, timeout: Optional[float] = None) -> bytes:
        if self._held:
            held, self._held = self._held, b""
            self._inner.write(held, timeout)
        return self._inner.read(max_bytes, timeout)

    def write(self, buffer: bytes, timeout: Optional[float] = None) -> None:
        if not self._held and is_head(buffer):
            self._held = buffer
        elif buffer:
            held, self._held = self._held, b""
            self._inner.write(held + buffer if held else buffer, timeout)

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: Optional[str] = None, timeout: Optional[float] = None
    ) -> httpcore.NetworkStream:
        return Coalescing(self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class Backend(httpcore.NetworkBackend):
    def __init__(self) -> None:
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: Optional[float] = None,
        local_address: Optional[str] = None,
        socket_options: Optional[Iterable[Any]] = None,
    ) -> httpcore.NetworkStream:
        return Coalescing(self._inner.connect_tcp(host, port, timeout, local_address, socket_options))

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)
