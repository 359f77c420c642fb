# SPDX-License-Identifier: Apache-2.0
"""A crowd of kept connections into one box: each gets its turn, and ways in are used again."""

from __future__ import annotations

import asyncio
import json

from support.waiting import eventually
from support.wire import RawBox, Wire

CROWD = 300
ROUNDS = 3
PORT = 8400
# Answers nobody before everybody has asked: all are under way at once however slow the machine is.
SERVER = r"""
const http = require('http')
let waiting = [], accepted = 0
const s = http.createServer((q, r) => {
  if (q.url === '/count') return r.end(JSON.stringify({ accepted, open: s.open }))
  waiting.push(r)
  if (waiting.length === CROWD) { for (const w of waiting) w.end('turn'); waiting = [] }
})
s.open = 0
s.on('connection', (c) => { accepted++; s.open++; c.on('close', () => s.open--) })
s.keepAliveTimeout = 600000
s.listen(PORT, '127.0.0.1', 1024)
""".replace("CROWD", str(CROWD)).replace("PORT", str(PORT))


def serve(box: RawBox) -> None:
    kind = {"Content-Type": "application/octet-stream"}
    box.agent("POST", "/files?path=/tmp/crowd.js", SERVER.encode(), kind)
    assert box.run("setsid node /tmp/crowd.js >/dev/null 2>&1 </dev/null &")[0] == 0
    eventually(lambda: box.port(PORT, path="/count").status == 200)


def counted(box: RawBox) -> dict[str, int]:
    return json.loads(box.port(PORT, path="/count").body)


async def all_ask(box: RawBox, wire: Wire) -> None:
    """Every connection asks once a round, and a round ends when all have been answered."""
    lines = [await asyncio.open_connection(*wire.address, ssl=wire.context) for _ in range(CROWD)]
    route = f"E2b-Sandbox-Id: {box.id}\r\nE2b-Sandbox-Port: {PORT}\r\n"
    request = f"GET /turn HTTP/1.1\r\nHost: bench\r\n{route}\r\n".encode()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        await reader.readuntil(b"turn")

    for _ in range(ROUNDS):
        async with asyncio.timeout(120):
            await asyncio.gather(*(one(*line) for line in lines))
    for _reader, writer in lines:
        writer.close()


def test_a_crowd_keeps_its_ways_into_the_box(wire: Wire) -> None:
    box = wire.create(timeout=300)
    try:
        serve(box)
        asyncio.run(all_ask(box, wire))
        # One way for each, not one for each question; a few more for the count and the waiting.
        assert counted(box)["accepted"] <= CROWD + 20
        # A crowd that has gone leaves no more than a few behind.
        eventually(lambda: counted(box)["open"] < CROWD - 50, 120, every=1)
    finally:
        box.kill()
