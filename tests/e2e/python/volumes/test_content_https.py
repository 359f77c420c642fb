# SPDX-License-Identifier: Apache-2.0
"""Files of volumes over https and HTTP/2: both stock clients, with streams in both directions, and curl."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.wire import Wire
from volumes.test_content_raw import Content, create, destroy

JS = Path(__file__).parents[2] / "js"
PYTHON_SYNC = """
import hashlib, io, json, os, sys
import e2b
data = os.urandom(9_000_017)
volume = e2b.Volume.create(sys.argv[1])
try:
    volume.write_file("/stream", io.BytesIO(data))
    pieces = list(volume.read_file("/stream", format="stream"))
    volume.write_file("/text", io.StringIO("u\\u0308" * 50_000))
    same = b"".join(pieces) == data
    print(json.dumps([same, len(pieces) > 1, volume.get_info("/text").size, volume.exists("/none"),
                      [one.path for one in volume.list("/")]]))
finally:
    e2b.Volume.destroy(volume.volume_id)
"""
PYTHON_ASYNC = """
import asyncio, io, json, os, sys
import e2b
async def main():
    data = os.urandom(9_000_017)
    volume = await e2b.AsyncVolume.create(sys.argv[1])
    try:
        await volume.write_file("/stream", io.BytesIO(data))
        pieces = [piece async for piece in await volume.read_file("/stream", format="stream")]
        await volume.write_file("/text", io.StringIO("u\\u0308" * 50_000))
        same = b"".join(pieces) == data
        print(json.dumps([same, len(pieces) > 1, (await volume.get_info("/text")).size, await volume.exists("/none"),
                          [one.path for one in await volume.list("/")]]))
    finally:
        await e2b.AsyncVolume.destroy(volume.volume_id)
asyncio.run(main())
"""
NODE = """
import { randomBytes } from 'node:crypto'
import { Volume } from 'e2b'
const data = randomBytes(9_000_017)
const volume = await Volume.create(process.argv[1])
try {
  const stream = new ReadableStream({ start(c) {
    for (let i = 0; i < data.length; i += 100_000) c.enqueue(new Uint8Array(data.subarray(i, i + 100_000)))
    c.close()
  } })
  await volume.writeFile('/stream', stream)
  const pieces = []
  for await (const piece of await volume.readFile('/stream', { format: 'stream' })) pieces.push(piece)
  await volume.writeFile('/text', 'u\\u0308'.repeat(50_000))
  const same = Buffer.concat(pieces).equals(data)
  const listed = (await volume.list('/')).map((one) => one.path)
  console.log(JSON.stringify([same, pieces.length > 1, (await volume.getInfo('/text')).size,
    await volume.exists('/none'), listed]))
} finally {
  await Volume.destroy(volume.volumeId)
}
"""


@pytest.fixture
def secure() -> dict[str, str]:
    url, folder = os.environ["CLOCHE_TLS_URL"], os.environ["CLOCHE_TLS_DIR"]
    return os.environ | {
        "E2B_API_URL": url,
        "E2B_VOLUME_API_URL": url,
        "SSL_CERT_FILE": f"{folder}/ca-bundle.pem",
        "NODE_EXTRA_CA_CERTS": f"{folder}/ca.pem",
    }


@pytest.mark.parametrize("client", ["sync", "async", "node"])
def test_stock_clients_stream_both_ways(secure: dict[str, str], unique: str, client: str) -> None:
    if client == "node":
        words = ["node", "--input-type=module", "-e", NODE, "--", unique]
    else:
        words = [sys.executable, "-c", PYTHON_SYNC if client == "sync" else PYTHON_ASYNC, unique]
    done = subprocess.run(words, env=secure, cwd=JS, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [True, True, 150_000, False, ["/stream", "/text"]]


@pytest.fixture
def content(wire: Wire, unique: str) -> Iterator[Content]:
    made = create(wire, unique)
    yield made
    destroy(made)


@pytest.mark.parametrize("version", ["--http2", "--http1.1"])
def test_a_large_file_comes_back_whole(
    secure: dict[str, str], content: Content, tmp_path: Path, version: str
) -> None:
    """Larger than a window of HTTP/2, than a piece of an upload, and than what a thread takes from a plain socket."""
    there, back = tmp_path / "there", tmp_path / "back"
    there.write_bytes(os.urandom(1 << 20) * 48)
    target = f"{secure['CLOCHE_TLS_URL']}/volumecontent/{content.id}/file?path=/large"
    curl = ["curl", "-sS", version, "--cacert", secure["NODE_EXTRA_CA_CERTS"], "-w", "%{http_code} %{http_version}",
            "-H", f"Authorization: Bearer {content.token}"]  # fmt: skip
    for words, status in ((["-T", str(there), "-o", "/dev/null"], 201), (["-o", str(back)], 200)):
        done = subprocess.run([*curl, *words, target], capture_output=True, text=True, timeout=120, check=True)
        assert done.stdout == f"{status} {version[6:]}"
    assert hashlib.sha256(back.read_bytes()).digest() == hashlib.sha256(there.read_bytes()).digest()
