# SPDX-License-Identifier: Apache-2.0
"""The option `mcp` of PyPI's e2b, and MCP's own Python client at the address that it gives."""

from __future__ import annotations

import asyncio
import base64
import os
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from e2b import AsyncSandbox, AsyncTemplate, Sandbox, SandboxException, SandboxQuery
from mcp import ClientSession
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

REFERENCE = {"memory": {}, "filesystem": {"paths": ["/home/user"]}, "time": {}, "sequentialthinking": {}}
GREETER = """\
const sdk = '/usr/local/lib/node_modules/@modelcontextprotocol/sdk/dist/esm/server'
const { McpServer } = await import(`${sdk}/mcp.js`)
const { StdioServerTransport } = await import(`${sdk}/stdio.js`)
const text = (value) => ({ content: [{ type: 'text', text: value }] })
const server = new McpServer({ name: 'greeter', version: '1.0.0' })
server.tool('greet', async () => text(`${process.env.GREETING} ${process.env.INSTALLED}`))
server.tool('leave', async () => { setTimeout(() => process.exit(3), 50); return { content: [] } })
server.tool('slowly', async (extra) => {
  const progressToken = extra._meta?.progressToken
  for (let i = 1; i <= 3; i++)
    await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress: i, total: 3 } })
  return text('done')
})
server.tool('read_graph', async () => text('mine'))
await server.connect(new StdioServerTransport())
"""


@asynccontextmanager
async def session(url: str, token: str) -> AsyncIterator[ClientSession]:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        create_mcp_http_client(headers=headers) as http,
        streamable_http_client(url, http_client=http) as streams,
        ClientSession(streams[0], streams[1]) as made,
    ):
        await made.initialize()
        yield made


async def tools(client: ClientSession) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


def status(url: str, token: str | None) -> int:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    asked = urllib.request.Request(url, b"{}", headers)
    try:
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return answer.status
    except urllib.error.HTTPError as refused:
        return refused.code


async def reference_servers() -> None:
    box = await AsyncSandbox.create(mcp=REFERENCE, timeout=120)
    try:
        url, token = box.get_mcp_url(), await box.get_mcp_token()
        assert [status(url, None), status(url, token + "x"), status(url, token)] == [401, 401, 400]
        async with session(url, token) as one, session(url, token) as two:
            known = await tools(one)
            assert known >= {"create_entities", "read_text_file", "get_current_time", "sequentialthinking"}, known
            entity = {"name": "cloche", "entityType": "glass", "observations": ["holds"]}
            await one.call_tool("create_entities", {"entities": [entity]})
            graph = await two.call_tool("read_graph", {})
            assert "cloche" in graph.content[0].text, graph
            await box.files.write("/home/user/note.txt", "under glass")
            read = await two.call_tool("read_text_file", {"path": "/home/user/note.txt"})
            assert read.content[0].text == "under glass", read
            now = await one.call_tool("get_current_time", {"timezone": "Europe/Berlin"})
            assert "Europe/Berlin" in now.content[0].text, now
            outside = await one.call_tool("read_text_file", {"path": "/etc/shadow"})
            assert outside.is_error, outside
        await box.pause()
        again = await AsyncSandbox.connect(box.sandbox_id, timeout=120)
        assert await again.get_mcp_token() == token, "another handle reads the same token"
        async with session(url, token) as three:
            assert "cloche" in (await three.call_tool("read_graph", {})).content[0].text
    finally:
        await box.kill()


async def what_can_not_be_run() -> None:
    mine = {"refused-by": f"mcp-{os.getpid()}"}
    for mcp, words in (
        ({"browserbase": {"apiKey": "k"}}, "there is no MCP server 'browserbase'"),
        ({"filesystem": {}}, "the setting paths is missing"),
        ({"exa": {"apiKey": "k", "colour": "red"}}, "no setting 'colour'"),
        ({"github/nobody": {"runCmd": "x"}}, "not github/OWNER/REPO"),
        ({"github/a/b": {}}, "runCmd is missing"),
    ):
        try:
            await AsyncSandbox.create(mcp=mcp, metadata=mine, timeout=60)
        except SandboxException as refused:
            assert "Failed to start MCP gateway" in str(refused) and words in str(refused), refused
        else:
            raise AssertionError(mcp)
    assert Sandbox.list(query=SandboxQuery(metadata=mine)).next_items() == []


async def servers_of_github(template: str) -> None:
    repository = "/srv/repos/acme/greeter"
    commit = f"git -C {repository} -c user.name=a -c user.email=a@b.c"
    source = base64.b64encode(GREETER.encode()).decode()
    recipe = (
        AsyncTemplate()
        .from_template("mcp-gateway")
        .add_mcp_server(["memory", "time"])
        .run_cmd(
            f"mkdir -p {repository} && cd {repository} && echo {source} | base64 -d "
            f"> main.mjs && git init -q && git add . && {commit} commit -qm 1 "
            f"&& git config --system url.file:///srv/repos/.insteadOf https://github.com/ "
            f"&& git config --system safe.directory '*'",
            user="root",
        )
    )
    await AsyncTemplate.build(recipe, template, cpu_count=2, memory_mb=1024)
    settings = {"run_cmd": "INSTALLED=$(cat made) node main.mjs", "install_cmd": "echo yes > made",
                "envs": {"GREETING": "hello"}}  # fmt: skip
    box = await AsyncSandbox.create(template, mcp={"memory": {}, "github/acme/greeter": settings}, timeout=120)
    try:
        url, token = box.get_mcp_url(), await box.get_mcp_token()
        async with session(url, token) as client:
            assert await tools(client) >= {"greet", "read_graph", "github_acme_greeter_read_graph"}
            assert (await client.call_tool("greet", {})).content[0].text == "hello yes"
            assert (await client.call_tool("github_acme_greeter_read_graph", {})).content[0].text == "mine"
            seen: list[float] = []

            async def told(progress: float, total: float | None, message: str | None) -> None:
                seen.append(progress)

            await client.call_tool("slowly", {}, progress_callback=told)
            assert seen == [1, 2, 3], seen
            await client.call_tool("leave", {})
            for _ in range(50):  # the gateway starts a server that ended again
                await asyncio.sleep(0.2)  # between two looks
                try:
                    if (await client.call_tool("greet", {})).content[0].text == "hello yes":
                        break
                except Exception as down:
                    assert "github/acme/greeter" in str(down) or "closed" in str(down).lower(), down
            else:
                raise AssertionError("the server did not come back")
        log = await box.commands.run("cat /var/log/mcp-gateway/gateway.log", user="root")
        assert "starting it again" in log.stdout and token not in log.stdout
        listed = await box.commands.run("ls -l /etc/mcp-gateway/.token && ps axo args", user="root")
        assert listed.stdout.startswith("-rw------- 1 root root 36 ") and token not in listed.stdout
    finally:
        await box.kill()
        await AsyncTemplate.delete(template) if hasattr(AsyncTemplate, "delete") else None


async def main() -> None:
    await reference_servers()
    await what_can_not_be_run()
    await servers_of_github(f"mcp-{os.getpid()}")


asyncio.run(main())
