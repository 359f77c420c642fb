# SPDX-License-Identifier: Apache-2.0
"""A registry of packages, npm's and PyPI's in one, with two packages that it packs itself: MCP servers of one tool.

Run as a program it serves the folder that it is given: `package_registry.py FOLDER ADDRESS PORT`.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import io
import json
import sys
import tarfile
import zipfile
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

# JSON-RPC on standard input and output, a message a line, is all that a server of MCP needs.
PYTHON_SERVER = """\
import json, os, sys

def main():
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        if asked["method"] == "initialize":
            result = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                      "serverInfo": {"name": "packed", "version": "1"}}
        elif asked["method"] == "tools/list":
            result = {"tools": [{"name": "from_pypi", "inputSchema": {"type": "object"}}]}
        else:
            result = {"content": [{"type": "text", "text": "fetched from PyPI"}]}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
NODE_SERVER = """\
#!/usr/bin/env node
const { createInterface } = require('node:readline')
const answer = (asked) => ({
  initialize: () => ({ protocolVersion: asked.params.protocolVersion, capabilities: { tools: {} },
    serverInfo: { name: 'packed', version: '1' } }),
  'tools/list': () => ({ tools: [{ name: 'from_npm', inputSchema: { type: 'object' } }] }),
}[asked.method] ?? (() => ({ content: [{ type: 'text', text: 'fetched from npm' }] })))()
createInterface({ input: process.stdin }).on('line', (line) => {
  const asked = JSON.parse(line)
  if ('id' in asked) console.log(JSON.stringify({ jsonrpc: '2.0', id: asked.id, result: answer(asked) }))
})
"""


def pack_npm(folder: Path, origin: str, name: str, version: str) -> None:
    manifest = {"name": name, "version": version, "bin": {name.split("/")[-1]: "main.cjs"}}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for path, text in (("package/package.json", json.dumps(manifest)), ("package/main.cjs", NODE_SERVER)):
            entry = tarfile.TarInfo(path)
            entry.size = len(text.encode())
            entry.mode = 0o755
            tar.addfile(entry, io.BytesIO(text.encode()))
    data = packed.getvalue()
    (folder / "tarballs").mkdir(parents=True, exist_ok=True)
    (folder / "tarballs" / "npm.tgz").write_bytes(data)
    dist = {
        "tarball": f"{origin}/tarballs/npm.tgz",
        "integrity": "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode(),
    }
    told = {"name": name, "dist-tags": {"latest": version}, "versions": {version: manifest | {"dist": dist}}}
    place = folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(told))


def pack_pypi(folder: Path, name: str, version: str) -> None:
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    texts = {
        f"{module}.py": PYTHON_SERVER,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {module}:main\n",
    }
    record = "".join(f"{path},,\n" for path in [*texts, f"{info}/RECORD"])
    wheel = f"{module}-{version}-py3-none-any.whl"
    place = folder / "simple" / name
    place.mkdir(parents=True)
    with zipfile.ZipFile(place / wheel, "w") as packed:
        for path, text in (texts | {f"{info}/RECORD": record}).items():
            packed.writestr(path, text)
    digest = hashlib.sha256((place / wheel).read_bytes()).hexdigest()
    (place / "index.html").write_text(f'<!DOCTYPE html><a href="{wheel}#sha256={digest}">{wheel}</a>')


class Handler(SimpleHTTPRequestHandler):
    def translate_path(self, path: str) -> str:
        return super().translate_path(path.replace("%2f", "/").replace("%2F", "/"))  # of a scope: @a%2fb


if __name__ == "__main__":
    serve = functools.partial(Handler, directory=sys.argv[1])
    server = ThreadingHTTPServer((sys.argv[2], int(sys.argv[3])), serve)
    print("ready", flush=True)
    server.serve_forever()
