# SPDX-License-Identifier: Apache-2.0
"""The server over https: where it is, how it is trusted, and a relay that counts.

What a stock client trusts is read when its process starts, so clients run as
children with `environment()`. The relay passes bytes on untouched; how many
connections a client needs for many streams at once tells HTTP/2 from HTTP/1.1
without looking into anything.
"""

from __future__ import annotations

import os
import selectors
import socket
import ssl
import threading
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit


@dataclass
class Tls:
    url: str = field(default_factory=lambda: os.environ["CLOCHE_TLS_URL"])
    dir: Path = field(default_factory=lambda: Path(os.environ["CLOCHE_TLS_DIR"]))

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port
        return port

    def environment(self, port: int | None = None) -> dict[str, str]:
        """What recipe C says: one name, one port, and whom to trust."""
        url = f"https://localhost:{port or self.port}"
        return os.environ | {
            "E2B_API_URL": url,
            "E2B_SANDBOX_URL": url,
            "E2B_VOLUME_API_URL": url,
            "SSL_CERT_FILE": str(self.dir / "ca-bundle.pem"),
            "NODE_EXTRA_CA_CERTS": str(self.dir / "ca.pem"),
        }

    def context(self, *protocols: str) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.dir / "ca.pem"))
        if protocols:
            context.set_alpn_protocols(list(protocols))
        return context

    def connect(self, name: str, *protocols: str) -> ssl.SSLSocket:
        """A checked connection as a resolver that knows `name` would make it."""
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        return self.context(*protocols).wrap_socket(plain, server_hostname=name)


class Relay:
    """127.0.0.1:port -> 127.0.0.1:to, counting connections, until it is closed."""

    def __init__(self, to: int) -> None:
        self.to = to
        self.accepted = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.pairs: dict[socket.socket, socket.socket] = {}
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.wake, self.waker = socket.socketpair()

    def __enter__(self) -> Relay:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.waker.close()
        self.thread.join(10)
        self.listener.close()

    def _run(self) -> None:
        with selectors.DefaultSelector() as ready:
            ready.register(self.listener, selectors.EVENT_READ)
            ready.register(self.wake, selectors.EVENT_READ)
            while True:
                for key, _ in ready.select():
                    if key.fileobj is self.wake:
                        self._drop_all()
                        return
                    if key.fileobj is self.listener:
                        self._accept(ready)
                    else:
                        assert isinstance(key.fileobj, socket.socket)
                        self._pass_on(ready, key.fileobj)

    def _accept(self, ready: selectors.BaseSelector) -> None:
        near, _ = self.listener.accept()
        far = socket.create_connection(("127.0.0.1", self.to))
        self.accepted += 1
        self.pairs |= {near: far, far: near}
        for end in (near, far):
            ready.register(end, selectors.EVENT_READ)

    def _pass_on(self, ready: selectors.BaseSelector, end: socket.socket) -> None:
        other = self.pairs.get(end)
        if other is None:
            return
        try:
            data = end.recv(1 << 16)
            if data:
                other.sendall(data)
                return
        except OSError:
            pass
        for each in (end, other):
            ready.unregister(each)
            self.pairs.pop(each, None)
            each.close()

    def _drop_all(self) -> None:
        for end in self.pairs:
            end.close()
        self.pairs.clear()
        self.wake.close()
