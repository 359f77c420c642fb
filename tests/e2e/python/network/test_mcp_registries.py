# SPDX-License-Identifier: Apache-2.0
"""MCP servers that are fetched from npm and PyPI when a sandbox starts, from a registry in the world of the test."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import e2b
import pytest

from support import package_registry
from support.world import PUBLIC, Abroad, World

REGISTRY, PORT = PUBLIC[3], 4873
ORIGIN = f"http://{REGISTRY}:{PORT}"
CATALOGUE = Path(__file__).parents[4] / "templates/mcp-gateway/files/usr/local/lib/mcp-gateway/catalogue.json"
# As the catalogue names them, and they need no settings.
NPM, PYPI = "context7", "duckduckgo"
# The settings of npm and pip, as a user gives them to a sandbox.
ENVS = {
    "npm_config_registry": ORIGIN,
    "npm_config_fetch_retries": "0",
    "PIP_INDEX_URL": f"{ORIGIN}/simple",
    "PIP_TRUSTED_HOST": REGISTRY,
    "PIP_RETRIES": "0",
    "PIP_TIMEOUT": "3",
}
ONLY_REGISTRY = {"allow_out": [REGISTRY], "deny_out": ["0.0.0.0/0"]}
# Both official clients are part of the template.
PYTHON_CLIENT = """
import asyncio, json, sys
from mcp import ClientSession
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

async def main():
    headers = {"Authorization": "Bearer " + sys.argv[1]}
    async with (
        create_mcp_http_client(headers=headers) as http,
        streamable_http_client("http://localhost:50005/mcp", http_client=http) as streams,
        ClientSession(streams[0], streams[1]) as client,
    ):
        await client.initialize()
        names = [tool.name for tool in (await client.list_tools()).tools]
        said = [(await client.call_tool(name, {})).content[0].text for name in names]
        print(json.dumps(dict(zip(names, said))))

asyncio.run(main())
"""
NODE_CLIENT = """
const sdk = '/usr/local/lib/node_modules/@modelcontextprotocol/sdk/dist/esm/client'
const { Client } = await import(`${sdk}/index.js`)
const { StreamableHTTPClientTransport } = await import(`${sdk}/streamableHttp.js`)
const client = new Client({ name: 'test', version: '1.0.0' })
const requestInit = { headers: { Authorization: `Bearer ${process.argv[2]}` } }
await client.connect(new StreamableHTTPClientTransport(new URL('http://localhost:50005/mcp'), { requestInit }))
const said = {}
for (const { name } of (await client.listTools()).tools)
  said[name] = (await client.callTool({ name, arguments: {} })).content[0].text
console.log(JSON.stringify(said))
process.exit(0)
"""


@pytest.fixture(scope="module")
def registry(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("registry")
    known = json.loads(CATALOGUE.read_text())
    name, _, version = known[NPM]["npm"].rpartition("@")
    package_registry.pack_npm(folder, ORIGIN, name, version)
    package_registry.pack_pypi(folder, *known[PYPI]["pypi"].split("=="))
    program = [sys.executable, package_registry.__file__, str(folder), REGISTRY, str(PORT)]
    child = subprocess.Popen(
        ["nsenter", "-t", str(world.child.pid), "-n", *program],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert child.stdout
        assert child.stdout.readline() == "ready\n"
        yield folder
    finally:
        child.kill()
        child.wait()


def start(server: Abroad, mcp: dict[str, Any], **options: Any) -> e2b.Sandbox:
    return e2b.Sandbox.create(mcp=mcp, envs=ENVS, timeout=120, **server.access, **options)


@contextmanager
def box_of_template(server: Abroad, **options: Any) -> Iterator[e2b.Sandbox]:
    made = e2b.Sandbox.create("mcp-gateway", timeout=120, **server.access, **options)
    try:
        yield made
    finally:
        made.kill()


def ask(box: e2b.Sandbox, program: str, text: str) -> dict[str, str]:
    suffix = "mjs" if program == "node" else "py"
    box.files.write(f"/tmp/client.{suffix}", text)
    done = box.commands.run(f"{program} /tmp/client.{suffix} {box.get_mcp_token()}", timeout=60)
    return json.loads(done.stdout)


@pytest.mark.usefixtures("registry")
def test_servers_of_npm_and_pypi_are_fetched_when_the_sandbox_starts(server: Abroad) -> None:
    box = start(server, {NPM: {}, PYPI: {}}, network=ONLY_REGISTRY)
    try:
        both = {"from_npm": "fetched from npm", "from_pypi": "fetched from PyPI"}
        assert ask(box, "python3", PYTHON_CLIENT) == both
        assert ask(box, "node", NODE_CLIENT) == both
        token = box.commands.run("stat -c '%a %U' /etc/mcp-gateway/.token", user="root").stdout.split()
        assert token == ["600", "root"]
        log = box.commands.run("cat /var/log/mcp-gateway/gateway.log", user="root").stdout
        assert NPM in log
        assert PYPI in log
        copied = e2b.Sandbox.create(box.create_snapshot().snapshot_id, timeout=120, **server.access)
        try:
            assert copied.get_mcp_token() == box.get_mcp_token(), "the client keeps it"
            assert ask(copied, "python3", PYTHON_CLIENT) == both
        finally:
            copied.kill()
    finally:
        box.kill()


@pytest.mark.usefixtures("registry")
def test_pull_brings_them_ahead_and_nothing_is_fetched_later(server: Abroad) -> None:
    with box_of_template(server, network=ONLY_REGISTRY) as box:
        box.commands.run(f"mcp-gateway pull {NPM} {PYPI}", user="root", envs=ENVS, timeout=120)
        with pytest.raises(e2b.CommandExitException, match="nothing-of-that-name"):
            box.commands.run("mcp-gateway pull nothing-of-that-name", user="root")
        config = json.dumps({NPM: {}, PYPI: {}})
        nowhere = {"GATEWAY_ACCESS_TOKEN": "t", "npm_config_registry": "http://127.0.0.1:9",
                   "PIP_INDEX_URL": "http://127.0.0.1:9"}  # fmt: skip
        box.commands.run(f"mcp-gateway --config '{config}'", user="root", envs=nowhere, timeout=60)
        assert set(ask(box, "python3", PYTHON_CLIENT)) == {"from_npm", "from_pypi"}


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("key", [NPM, PYPI])
def test_a_registry_that_is_not_reached_is_told_and_no_sandbox_is_left(server: Abroad, key: str) -> None:
    mine = {"unreached": key}
    closed = {"deny_out": ["0.0.0.0/0"]}
    with pytest.raises(e2b.SandboxException, match="Failed to start MCP gateway") as refused:
        start(server, {key: {}}, network=closed, metadata=mine)
    assert key in str(refused.value)
    assert e2b.Sandbox.list(query=e2b.SandboxQuery(metadata=mine), **server.access).next_items() == []


@pytest.mark.parametrize(("install", "run"), [("installCmd", "runCmd"), ("install_cmd", "run_cmd")])
def test_servers_of_github_are_named_in_both_spellings(server: Abroad, install: str, run: str) -> None:
    """JavaScript's and Python's; the repository is one of the box, which stands for github.com."""
    with box_of_template(server) as box:
        box.files.write("/srv/repos/acme/packed/main.py", package_registry.PYTHON_SERVER + "main()\n", user="root")
        box.commands.run(
            "cd /srv/repos/acme/packed && git init -q && git add . && "
            "git -c user.name=a -c user.email=a@b.c commit -qm 1 && git config --system safe.directory '*' && "
            "git config --system url.file:///srv/repos/.insteadOf https://github.com/",
            user="root",
        )
        config = json.dumps({"github/acme/packed": {install: "echo yes > made", run: "cat made >&2; python3 main.py"}})
        token = {"GATEWAY_ACCESS_TOKEN": "t"}
        box.commands.run(f"mcp-gateway --config '{config}'", user="root", envs=token, timeout=60)
        assert set(ask(box, "node", NODE_CLIENT)) == {"from_pypi"}
