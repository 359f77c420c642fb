# SPDX-License-Identifier: Apache-2.0
"""The far side of the egress tests, run inside its own network namespace: servers that say what they were asked, a slow
one, one nobody vouches for, WebSockets, HTTP/2, and proxies. Prints "ready" when all listen."""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
import ssl
import sys
import threading
from typing import Any

import h2.config
import h2.connection
import h2.events
from websockets.asyncio.server import serve as serve_ws

DIR = sys.argv[1]
API, H2, FALSE, WS, SLOW, PROXY = (f"198.51.100.{n}" for n in (1, 2, 3, 4, 5, 8))
TARGETS = {"api.example.com": API, "h2.example.com": H2, "ws.example.com": WS, "plain.example.net": API}
Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter
HTTP_1_1_REQUIRED = 13


def context(name: str, *protocols: str) -> ssl.SSLContext:
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    c.load_cert_chain(f"{DIR}/{name}.pem", f"{DIR}/{name}.key")
    if protocols:
        c.set_alpn_protocols(list(protocols))
    return c


async def read_body(r: Reader, headers: list[list[str]]) -> tuple[int, str, list[list[str]]]:
    fields = {k.lower(): v for k, v in headers}
    digest, total = hashlib.sha256(), 0
    trailers = []
    if fields.get("transfer-encoding") == "chunked":
        while size := int((await r.readline()).split(b";")[0], 16):
            left = size
            while left:
                part = await r.read(min(left, 65536))
                left -= len(part)
                digest.update(part)
                total += len(part)
            await r.readline()
        while line := (await r.readline()).decode().strip():
            trailers.append(line.split(": ", 1))
    else:
        left = int(fields.get("content-length", "0"))
        while left:
            part = await r.read(min(left, 65536))
            assert part
            left -= len(part)
            digest.update(part)
            total += len(part)
    return total, digest.hexdigest(), trailers


async def answer(w: Writer, method: str, path: str, told: dict[str, Any]) -> None:
    if path.startswith("/big/"):
        size = int(path.split("/")[2])
        w.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        block = bytes(range(256)) * 256
        while size:
            w.write(block[: min(size, len(block))])
            size -= min(size, len(block))
            await w.drain()
    elif path == "/chunked":
        w.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n")
        for n in range(5):
            w.write(b"6\r\npart %d\r\n" % n)
            await w.drain()
            await asyncio.sleep(0.02)
        w.write(b"0\r\nX-Sum: 42\r\n\r\n")
    elif path == "/stream":
        w.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for n in range(600):
            w.write(b"5\r\n%04d\n\r\n" % n)
            await w.drain()
            await asyncio.sleep(0.05)
    elif path == "/close":
        w.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end")
        w.close()
    elif path == "/never":
        await asyncio.sleep(3600)
    else:
        text = json.dumps(told).encode()
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(text)
        w.write(head + (b"" if method == "HEAD" else text))


LOST: list[str] = []  # methods of requests that were read and not answered


async def http1(r: Reader, w: Writer) -> None:
    secure = w.get_extra_info("ssl_object") is not None
    peer = w.get_extra_info("peername")
    answered = 0
    try:
        while line := await r.readline():
            method, path, _ = line.decode().split()
            headers = []
            while (text := (await r.readline()).decode().rstrip("\r\n")):
                name, value = text.split(":", 1)
                headers.append([name, value.strip()])
            if any(k.lower() == "expect" for k, _ in headers):
                w.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            size, digest, trailers = await read_body(r, headers)
            told = {"method": method, "path": path, "headers": headers, "size": size, "sha256": digest}
            told["trailers"] = trailers
            if path == "/lost" and answered:  # a kept connection ends with it
                LOST.append(method)
                return
            answered += 1
            told["lost"] = LOST.copy()
            await answer(w, method, path, {**told, "secure": secure, "peer": peer})
            await w.drain()
    except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
        pass
    finally:
        w.close()


class Http2:
    """One connection of HTTP/2; each request is a task of its own, and sends no more than its window allows."""

    def __init__(self, r: Reader, w: Writer) -> None:
        self.r, self.w = r, w
        self.c = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.asked: dict[int, dict[str, Any]] = {}
        self.digests: dict[int, Any] = {}
        self.held: list[int] = []
        self.opened = asyncio.Event()
        self.tasks: set[asyncio.Task[None]] = set()

    async def flush(self) -> None:
        self.w.write(self.c.data_to_send())
        await self.w.drain()

    async def send(self, stream: int, size: int) -> None:
        block = bytes(range(256)) * 64
        while size:
            room = min(self.c.local_flow_control_window(stream), self.c.max_outbound_frame_size, size, len(block))
            if not room:
                self.opened.clear()
                await self.opened.wait()
                continue
            room -= room % 256 if room > 256 else 0
            self.c.send_data(stream, block[:room])
            block = block[room:] + block[:room]
            size -= room
            await self.flush()

    def tell(self, stream: int, **more: Any) -> None:
        told = {**self.asked[stream], "sha256": self.digests[stream].hexdigest(), "version": 2, **more}
        told["peer"] = self.w.get_extra_info("peername")
        bare = told["method"] == "HEAD"
        self.c.send_headers(stream, [(":status", "200"), ("content-type", "application/json")], end_stream=bare)
        if bare:
            return
        self.c.send_data(stream, json.dumps(told).encode())
        self.c.send_headers(stream, [("x-sum", "42")], end_stream=True)

    async def answer(self, stream: int) -> None:
        path = self.asked[stream]["path"]
        if path.startswith("/big/"):
            size = int(path.split("/")[2])
            self.c.send_headers(stream, [(":status", "200"), ("content-length", str(size))])
            await self.send(stream, size)
            self.c.end_stream(stream)
        elif path.startswith("/hold/"):  # until so many are there at once
            self.held.append(stream)
            if len(self.held) == int(path.split("/")[2]):
                for one in self.held:
                    self.tell(one)
                self.held.clear()
        elif path == "/goaway":
            self.tell(stream)
            self.c.close_connection(last_stream_id=stream)
        elif path.startswith("/http1/"):
            self.c.reset_stream(stream, HTTP_1_1_REQUIRED)
        elif path == "/broken":
            self.c.send_headers(stream, [(":status", "200"), ("content-length", "1000")])
            self.c.send_data(stream, b"some")
            await self.flush()
            self.c.reset_stream(stream, 2)
        elif path == "/huge":
            fields = [(f"x-{n}", "y" * 4000) for n in range(100)]
            self.c.remote_settings._settings.clear()  # what the client can take is no matter
            self.c.send_headers(stream, [(":status", "200"), *fields], end_stream=True)
        elif path == "/refused":
            self.c.send_headers(stream, [(":status", "200"), ("grpc-status", "7")], end_stream=True)
        elif path == "/echo":
            self.c.send_headers(stream, [("grpc-status", "0"), ("grpc-message", "fine")], end_stream=True)
        elif path != "/never":
            self.tell(stream)
        await self.flush()

    def begin(self, e: Any) -> None:
        headers = [list(x) for x in e.headers]
        fields = dict(e.headers)
        told = {"headers": headers, "size": 0, "trailers": [], "method": fields[":method"], "path": fields[":path"]}
        self.asked[e.stream_id] = told
        self.digests[e.stream_id] = hashlib.sha256()
        if fields[":path"] == "/echo":
            kind = ("content-type", "application/grpc")
            self.c.send_headers(e.stream_id, [(":status", "200"), kind, ("x-te", fields.get("te", "none"))])

    def take(self, e: Any) -> None:
        if isinstance(e, h2.events.RequestReceived):
            path = dict(e.headers)[":path"]
            if e.stream_id > 1 and path == "/first-only":
                self.c.reset_stream(e.stream_id, 7)
            elif path == "/http1/at-once":
                self.c.reset_stream(e.stream_id, HTTP_1_1_REQUIRED)
            elif path == "/http1/goaway":
                self.c.close_connection(error_code=HTTP_1_1_REQUIRED, last_stream_id=0)
            else:
                self.begin(e)
        elif isinstance(e, h2.events.TrailersReceived):
            self.asked[e.stream_id]["trailers"] = [list(x) for x in e.headers]
        elif isinstance(e, h2.events.DataReceived) and e.stream_id in self.asked:
            told = self.asked[e.stream_id]
            told["size"] += len(e.data)
            self.digests[e.stream_id].update(e.data)
            if told["path"] == "/echo":
                self.c.send_data(e.stream_id, e.data)
            self.c.acknowledge_received_data(e.flow_controlled_length, e.stream_id)
        elif isinstance(e, h2.events.StreamEnded) and e.stream_id in self.asked:
            task = asyncio.create_task(self.answer(e.stream_id))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        elif isinstance(e, (h2.events.WindowUpdated, h2.events.RemoteSettingsChanged)):
            self.opened.set()

    async def serve(self) -> None:
        self.c.initiate_connection()
        try:
            await self.flush()
            while data := await self.r.read(65536):
                for e in self.c.receive_data(data):
                    self.take(e)
                await self.flush()
        except (ConnectionError, ssl.SSLError):
            pass
        finally:
            for task in self.tasks:
                task.cancel()
            self.w.close()


async def http2(r: Reader, w: Writer) -> None:
    await Http2(r, w).serve()


async def either(r: Reader, w: Writer) -> None:
    chosen = w.get_extra_info("ssl_object").selected_alpn_protocol()
    await (http2 if chosen == "h2" else http1)(r, w)


async def pump(r: Reader, w: Writer) -> None:
    try:
        while data := await r.read(65536):
            w.write(data)
            await w.drain()
        if w.can_write_eof():
            w.write_eof()
    except (ConnectionError, OSError):
        w.transport.abort()


async def join(r: Reader, w: Writer, host: str, port: int) -> None:
    far, out = await asyncio.open_connection(TARGETS.get(host, host), port)
    await asyncio.gather(pump(r, out), pump(far, w))
    out.close()
    w.close()


SEEN: list[dict[str, Any]] = []


async def socks(r: Reader, w: Writer) -> None:
    _, n = await r.readexactly(2)
    methods = await r.readexactly(n)
    user = None
    if b"\x02" in methods:
        w.write(b"\x05\x02")
        _, n = await r.readexactly(2)
        name = await r.readexactly(n)
        password = await r.readexactly((await r.readexactly(1))[0])
        user = name.decode()
        good = password == b"pass:word"
        w.write(b"\x01\x00" if good else b"\x01\x01")
        if not good:
            w.close()
            return
    else:
        w.write(b"\x05\x00")
    _, _, _, kind = await r.readexactly(4)
    if kind == 3:
        host = (await r.readexactly((await r.readexactly(1))[0])).decode()
    else:
        host = ".".join(map(str, await r.readexactly(4)))
    port = int.from_bytes(await r.readexactly(2), "big")
    SEEN.append({"host": host, "port": port, "user": user, "tls": w.get_extra_info("ssl_object") is not None})
    w.write(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
    await join(r, w, host, port)


def hold(port: int, secure: bool) -> None:
    """A proxy that makes connections, with `secure`, or not even that; it never reads again and never closes."""
    listener = socket.create_server((PROXY, port), backlog=512)
    held: list[socket.socket] = []

    def talk(s: socket.socket) -> None:
        s = context("proxy").wrap_socket(s, server_side=True)
        held.append(s)
        s.recv(1000)
        s.sendall(b"\x05\x00")
        s.recv(1000)
        s.sendall(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")

    while True:
        held.append(listener.accept()[0])
        if secure:
            threading.Thread(target=talk, args=(held.pop(),), daemon=True).start()


async def connect(r: Reader, w: Writer) -> None:
    head = (await r.readuntil(b"\r\n\r\n")).decode()
    host, port = head.split()[1].split(":")
    SEEN.append({"host": host, "port": int(port), "head": head})
    w.write(b"HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n")
    await join(r, w, host, int(port))


async def seen(r: Reader, w: Writer) -> None:
    w.write(json.dumps(SEEN).encode())
    SEEN.clear()
    await w.drain()
    w.close()


async def echo_ws(ws: Any) -> None:
    await ws.send(json.dumps(dict(ws.request.headers.raw_items())))
    async for message in ws:
        if message == "bye":
            await ws.close(4000, "as asked")
        elif message == "die":
            ws.transport.abort()
        else:
            await ws.send(message)


async def main() -> None:
    start = asyncio.start_server
    await start(http1, API, 443, ssl=context("api", "http/1.1"))
    await start(http1, API, 80)
    await start(either, H2, 443, ssl=context("h2", "h2", "http/1.1"))
    await start(http1, FALSE, 443, ssl=context("false"))
    await serve_ws(echo_ws, WS, 443, ssl=context("ws"))
    await start(http1, SLOW, 443, ssl=context("api"))
    await start(socks, PROXY, 1080)
    await start(socks, PROXY, 1081, ssl=context("proxy"))
    await start(connect, PROXY, 3128)
    await start(seen, PROXY, 99)
    for port, secure in ((1082, True), (1083, False)):
        threading.Thread(target=hold, args=(port, secure), daemon=True).start()
    print("ready", flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
