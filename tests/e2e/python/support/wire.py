# SPDX-License-Identifier: Apache-2.0
"""Raw HTTP to the server, for what no SDK lets a test say.

A Wire speaks to one origin with one key and never interprets an answer: status,
headers and bytes come back as they were sent. RawBox adds what the edge wants to
see (routing headers, tokens) and the Connect protocol by hand.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

AGENT_PORT = 49983
INTERPRETER_PORT = 49999


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass
class Wire:
    url: str = field(default_factory=lambda: os.environ["E2B_API_URL"])
    key: str | None = field(default_factory=lambda: os.environ["E2B_API_KEY"])

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        assert parts.hostname
        assert parts.port
        return parts.hostname, parts.port

    @property
    def context(self) -> ssl.SSLContext | None:
        """For https: whom SSL_CERT_FILE tells to trust."""
        return ssl.create_default_context() if self.url.startswith("https:") else None

    def connect(self, timeout: float = 60) -> http.client.HTTPConnection:
        host, port = self.address
        if context := self.context:
            return http.client.HTTPSConnection(host, port, timeout=timeout, context=context)
        return http.client.HTTPConnection(host, port, timeout=timeout)

    def open(self, timeout: float = 10) -> socket.socket:
        link = socket.create_connection(self.address, timeout=timeout)
        if context := self.context:
            return context.wrap_socket(link, server_hostname=self.address[0])
        return link

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        *,
        chunked: bool = False,
        with_key: bool = True,
        timeout: float = 60,
    ) -> Answer:
        """One request on a connection of its own. A dict or list body is sent as JSON."""
        sent: dict[str, str] = {}
        if with_key and self.key is not None:
            sent["X-API-KEY"] = self.key
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        if isinstance(body, str):
            body = body.encode()
        sent |= headers or {}
        if chunked:
            sent["Transfer-Encoding"] = "chunked"
            body = iter([body or b""])
        connection = self.connect(timeout)
        try:
            connection.request(method, path, body, sent, encode_chunked=chunked)
            response = connection.getresponse()
            return Answer(response.status, response.msg, response.read())
        finally:
            connection.close()

    def exchange(self, raw: bytes, timeout: float = 10) -> bytes:
        """Send bytes as they are and return everything until the server closes or goes quiet."""
        with self.open(timeout) as link:
            link.sendall(raw)
            parts = []
            try:
                while part := link.recv(65536):
                    parts.append(part)
            except TimeoutError:
                pass
            except ConnectionResetError:
                pass
        return b"".join(parts)

    def create(self, template: str = "base", path: str = "/sandboxes", **options: Any) -> RawBox:
        """A box made by one REST call, without any SDK."""
        fields: dict[str, Any] = {"templateID": template, "timeout": 120, "secure": True}
        if path.startswith("/v2"):
            del fields["secure"]
        answer = self.call("POST", path, fields | options)
        assert answer.status == 201, (answer.status, answer.body)
        return RawBox(self, answer.json())


@dataclass
class Frame:
    flags: int
    payload: bytes

    @property
    def last(self) -> bool:
        return bool(self.flags & 2)

    def json(self) -> Any:
        return json.loads(self.payload)


def enveloped(payload: bytes, flags: int = 0) -> bytes:
    return struct.pack(">BI", flags, len(payload)) + payload


def frames_of(body: bytes) -> list[Frame]:
    frames = []
    while body:
        flags, size = struct.unpack(">BI", body[:5])
        assert len(body) >= 5 + size, "a frame is cut short"
        frames.append(Frame(flags, body[5 : 5 + size]))
        body = body[5 + size :]
    return frames


def basic(user: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:".encode()).decode()


@dataclass
class RawBox:
    wire: Wire
    made: dict[str, Any]

    @property
    def id(self) -> str:
        return self.made["sandboxID"]

    @property
    def token(self) -> str:
        return self.made["envdAccessToken"]

    def routing(self, port: int) -> dict[str, str]:
        return {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": str(port)}

    def headers(self, port: int = AGENT_PORT, user: str | None = None) -> dict[str, str]:
        sent = self.routing(port)
        if self.made.get("envdAccessToken"):
            sent["X-Access-Token"] = self.token
        if self.made.get("trafficAccessToken"):
            sent["E2B-Traffic-Access-Token"] = self.made["trafficAccessToken"]
        if user:
            sent["Authorization"] = basic(user)
        return sent

    def agent(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        **more,
    ) -> Answer:
        """A plain HTTP request to the agent, with the box's token."""
        sent = self.headers() | (headers or {})
        return self.wire.call(method, path, body, sent, with_key=False, **more)

    def port(
        self,
        port: int,
        method: str = "GET",
        path: str = "/",
        body: Any = None,
        headers: dict[str, str] | None = None,
        **more: Any,
    ) -> Answer:
        """A request to any port in the box, with routing headers only."""
        sent = self.routing(port) | (headers or {})
        return self.wire.call(method, path, body, sent, with_key=False, **more)

    def rpc(
        self,
        method: str,
        message: Any,
        headers: dict[str, str] | None = None,
        user: str | None = None,
    ) -> Answer:
        """A unary Connect call in JSON."""
        sent = self.headers(user=user)
        sent |= {"Content-Type": "application/json", "Connect-Protocol-Version": "1"}
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return self.wire.call("POST", f"/{method}", body, sent | (headers or {}), with_key=False)

    def stream(
        self,
        method: str,
        message: Any,
        headers: dict[str, str] | None = None,
        user: str | None = None,
    ) -> tuple[Answer, list[Frame]]:
        """A server-streaming Connect call in JSON, read to its end."""
        sent = self.headers(user=user)
        sent |= {"Content-Type": "application/connect+json", "Connect-Protocol-Version": "1"}
        body = enveloped(json.dumps(message).encode())
        answer = self.wire.call("POST", f"/{method}", body, sent | (headers or {}), with_key=False)
        return answer, frames_of(answer.body)

    @contextmanager
    def open_stream(
        self, method: str, message: Any, headers: dict[str, str] | None = None, timeout: float = 30
    ) -> Iterator[Iterator[Frame]]:
        """A server-streaming Connect call whose frames are read as they come."""
        sent = self.headers()
        sent |= {"Content-Type": "application/connect+json", "Connect-Protocol-Version": "1"}
        connection = self.wire.connect(timeout)
        try:
            body = enveloped(json.dumps(message).encode())
            connection.request("POST", f"/{method}", body, sent | (headers or {}))
            response = connection.getresponse()
            assert response.status == 200, (response.status, response.read())
            yield self._frames(response)
        finally:
            connection.close()

    @staticmethod
    def _frames(response: http.client.HTTPResponse) -> Iterator[Frame]:
        while True:
            head = response.read(5)
            if len(head) < 5:
                return
            flags, size = struct.unpack(">BI", head)
            yield Frame(flags, response.read(size))

    def run(self, command: str, user: str | None = None, **config: Any) -> tuple[int, str, str]:
        """Run a shell line; exit code, stdout, stderr."""
        message = {
            "process": {"cmd": "/bin/bash", "args": ["-c", command]} | config,
            "stdin": False,
        }
        answer, frames = self.stream("process.Process/Start", message, user=user)
        assert answer.status == 200, answer.body
        out = {"stdout": b"", "stderr": b""}
        code = None
        for frame in frames:
            event = frame.json().get("event", {})
            for name, data in event.get("data", {}).items():
                out[name] += base64.b64decode(data)
            if "end" in event:
                code = event["end"].get("exitCode", 0)
        assert code is not None, frames
        return code, out["stdout"].decode(), out["stderr"].decode()

    def execute(self, code: str, **options: Any) -> list[dict[str, Any]]:
        """Run a cell through the interpreter's own HTTP face and return its events."""
        answer = self.port(
            INTERPRETER_PORT,
            "POST",
            "/execute",
            {"code": code} | options,
            headers={"X-Access-Token": self.token},
        )
        assert answer.status == 200, (answer.status, answer.body)
        return [json.loads(line) for line in answer.body.decode("ascii").splitlines()]

    def kill(self) -> int:
        return self.wire.call("DELETE", f"/sandboxes/{self.id}").status
