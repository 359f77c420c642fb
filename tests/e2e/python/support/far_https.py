# SPDX-License-Identifier: Apache-2.0
"""HTTPS servers of the rest of the world, and a SOCKS proxy there; run by test_rules.py in the world's namespace.

Arguments: a folder with NAME.pem and NAME.key, then ADDRESS=NAME for each server. Every server answers with what it
was sent, as JSON, and with nothing at /quiet. The proxy, at 1080 of the last address, lets in user `agent` with
password `proxy-pass`, and resolves every name to the first server. What both have seen is told at port 99 of the
last address.
"""

from __future__ import annotations

import asyncio
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
            body = b"{}" if path == "/quiet" else json.dumps(told).encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError, ValueError):
        pass
    finally:
        writer.close()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
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
        _, _, _, kind = await reader.readexactly(4)
        if kind == 3:
            (n,) = await reader.readexactly(1)
            host, to = (await reader.readexactly(n)).decode(), first
        else:
            host = to = ".".join(str(b) for b in await reader.readexactly(4))
        port = int.from_bytes(await reader.readexactly(2), "big")
        seen.append({"socks": host, "port": port, "user": user})
        far, out = await asyncio.open_connection(to, port)
        writer.write(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
        await asyncio.gather(pump(reader, out), pump(far, writer))
    except (OSError, asyncio.IncompleteReadError):
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
    await asyncio.start_server(socks, last, 1080)
    await asyncio.start_server(tell, last, 99)
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main())
