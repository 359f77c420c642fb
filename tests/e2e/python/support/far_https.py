# SPDX-License-Identifier: Apache-2.0
"""HTTPS servers of the rest of the world, and proxies there; run by far_side.py in the world's namespace.

Arguments: a folder with NAME.pem and NAME.key, then ADDRESS=NAME for each server. Every server answers with what it
was sent, as JSON; with nothing at /quiet, and at /drip with lines that take two seconds to come. The proxies are at the
last address, SOCKS at 1080 and HTTP CONNECT at 3128, in TLS as `proxy` at the next port each. They let in user `agent`
with password `proxy-pass`, and resolve every name to the first server. What all have seen is told at port 99 of the
last address.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import sys

folder, *places = sys.argv[1:]
servers = dict(place.split("=") for place in places)
first, last = list(servers)[0], list(servers)[-1]
seen: list[dict[str, object]] = []


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while line := await reader.readline():
            method, path, _ = line.decode().split()
            fields = {}
            while text := (await reader.readline()).decode().strip():
                name, value = text.split(":", 1)
                fields[name.lower()] = value.strip()
            await reader.readexactly(int(fields.get("content-length", "0")))
            told = {"method": method, "path": path, "fields": fields, "at": writer.get_extra_info("sockname")[0]}
            seen.append(told)
            if path == "/drip":
                await drip(writer)
                continue
            body = b"{}" if path == "/quiet" else json.dumps(told).encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError, ValueError):
        pass
    finally:
        writer.close()


async def drip(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for number in range(40):
        writer.write(b"9\r\nline %03d\n\r\n" % number)
        await writer.drain()
        await asyncio.sleep(0.05)
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
        else:
            writer.close()
    except OSError:
        writer.transport.abort()


async def socks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        _, n = await reader.readexactly(2)
        methods = await reader.readexactly(n)
        user = ""
        writer.write(b"\x05\x02" if 2 in methods else b"\x05\x00")
        if 2 in methods:
            _, n = await reader.readexactly(2)
            user = (await reader.readexactly(n)).decode()
            (n,) = await reader.readexactly(1)
            good = (user, await reader.readexactly(n)) == ("agent", b"proxy-pass")
            writer.write(b"\x01\x00" if good else b"\x01\x01")
            if not good:
                seen.append({"turned away": user})
                return
        _, _, _, kind = await reader.readexactly(4)
        if kind == 3:
            (n,) = await reader.readexactly(1)
            host, to = (await reader.readexactly(n)).decode(), first
        else:
            host = to = ".".join(str(b) for b in await reader.readexactly(4))
        port = int.from_bytes(await reader.readexactly(2), "big")
        tls = writer.get_extra_info("ssl_object") is not None
        seen.append({"socks": host, "port": port, "user": user, "tls": tls})
        far, out = await asyncio.open_connection(to, port)
        writer.write(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
        await asyncio.gather(pump(reader, out), pump(far, writer))
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        method, target, _ = (await reader.readline()).decode().split()
        fields = {}
        while text := (await reader.readline()).decode().strip():
            name, value = text.split(":", 1)
            fields[name.lower()] = value.strip()
        given = fields.get("proxy-authorization", "").removeprefix("Basic ")
        user, _, word = base64.b64decode(given).decode().partition(":")
        if (method, user, word) != ("CONNECT", "agent", "proxy-pass"):
            seen.append({"turned away": user})
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            return
        host, port = target.rsplit(":", 1)
        tls = writer.get_extra_info("ssl_object") is not None
        seen.append({"connect": host, "port": int(port), "user": user, "tls": tls})
        named = any(c.isalpha() for c in host)
        far, out = await asyncio.open_connection(first if named else host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(pump(reader, out), pump(far, writer))
    except (OSError, asyncio.IncompleteReadError, ValueError):
        pass
    finally:
        writer.close()


async def tell(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(json.dumps(seen).encode())
    seen.clear()
    await writer.drain()
    writer.close()


async def main() -> None:
    for address, name in servers.items():
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{folder}/{name}.pem", f"{folder}/{name}.key")
        await asyncio.start_server(answer, address, 443, ssl=context)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/proxy.pem", f"{folder}/proxy.key")
    for port, serve in ((1080, socks), (3128, connect)):
        await asyncio.start_server(serve, last, port)
        await asyncio.start_server(serve, last, port + 1, ssl=context)
    await asyncio.start_server(tell, last, 99)
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main())
