# SPDX-License-Identifier: Apache-2.0
"""The server's own MCP tools, with MCP's Python client: `cloche mcp` on standard input and output, and /mcp."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from e2b import Sandbox, SandboxQuery
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.shared.exceptions import MCPError

BIN = os.environ["CLOCHE_BIN"]
URL = os.environ["E2B_API_URL"]
KEY = os.environ["E2B_API_KEY"]
TABLE = "import pandas as pd; pd.DataFrame({'a': [1, 2]})"
PLOT = "import matplotlib.pyplot as plt; plt.plot([1, 2], [3, 4], label='up'); plt.legend(); plt.show()"


@asynccontextmanager
async def over_stdio(*flags: str) -> AsyncIterator[ClientSession]:
    variables = {"CLOCHE_URL": URL, "CLOCHE_KEY": KEY, "PATH": os.environ["PATH"]}
    server = StdioServerParameters(command=BIN, args=["mcp", *flags], env=variables)
    async with stdio_client(server) as streams, ClientSession(streams[0], streams[1]) as made:
        await made.initialize()
        yield made


@asynccontextmanager
async def over_http(query: str = "", key: str = KEY) -> AsyncIterator[ClientSession]:
    async with (
        create_mcp_http_client(headers={"Authorization": f"Bearer {key}"}) as http,
        streamable_http_client(f"{URL}/mcp{query}", http_client=http) as streams,
        ClientSession(streams[0], streams[1]) as made,
    ):
        await made.initialize()
        yield made


def texts(result) -> str:
    return "\n".join(part.text for part in result.content if part.type == "text")


async def run(client: ClientSession, code: str, **more):
    return await client.call_tool("run_code", {"code": code} | more)


async def tools(client: ClientSession) -> None:
    names = {tool.name for tool in (await client.list_tools()).tools}
    sandboxes = {f"{verb}_sandbox" for verb in ("create", "pause", "resume", "fork", "kill")} | {"list_sandboxes"}
    files = {"read_file", "write_file", "list_files"}
    assert names == {"run_code", "run_command", "build_template"} | files | sandboxes, names


async def state_and_results(client: ClientSession) -> str:
    assert (await client.list_resources()).resources == []
    first = await run(client, "x = 41")
    assert not first.is_error, first
    assert texts(await run(client, "x + 1")) == "42"
    table = await run(client, TABLE)
    assert "0  1" in texts(table), table
    assert table.structured_content["results"][0]["formats"], table.structured_content
    plot = await run(client, PLOT)
    picture = next(part for part in plot.content if part.type == "image")
    assert base64.b64decode(picture.data).startswith(b"\x89PNG"), picture.mime_type
    chart = next(each["chart"] for each in plot.structured_content["results"] if "chart" in each)
    assert chart["type"] == "line" and chart["elements"][0]["label"] == "up", chart
    failed = await run(client, "1 / 0")
    assert failed.is_error and failed.structured_content["error"]["name"] == "ZeroDivisionError", failed
    assert texts(await run(client, "'a' + 'b'", language="javascript")).strip("'") == "ab"
    return first.structured_content["sandbox"]


async def files(client: ClientSession, box: str) -> None:
    assert not (await client.call_tool("write_file", {"path": "a b.txt", "content": "hällo"})).is_error
    assert texts(await client.call_tool("read_file", {"path": "/home/user/a b.txt"})) == "hällo"
    listed = await client.call_tool("list_files", {})
    assert "/home/user/a b.txt" in [each["path"] for each in listed.structured_content["entries"]]
    uris = [str(each.uri) for each in (await client.list_resources()).resources]
    assert f"cloche://{box}/home/user/a%20b.txt" in uris, uris
    read = await client.read_resource(f"cloche://{box}/home/user/a%20b.txt")
    assert read.contents[0].text == "hällo"
    missing = await client.call_tool("read_file", {"path": "/nothing/here"})
    assert missing.is_error and "/nothing/here" in texts(missing), texts(missing)
    data = base64.b64encode(bytes(range(256))).decode()
    wrote = await client.call_tool("write_file", {"path": "b.bin", "content": data, "encoding": "base64"})
    assert wrote.structured_content["size"] == 256
    assert "256 bytes" in texts(await client.call_tool("read_file", {"path": "b.bin"}))
    command = await client.call_tool("run_command", {"command": "echo $WHO; exit 3", "envs": {"WHO": "me"}})
    assert command.is_error and command.structured_content["exitCode"] == 3 and "me" in texts(command), command


async def progress(client: ClientSession) -> None:
    heard: list[str] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message or "")

    code = "import time\nfor i in range(4):\n  print('line', i, flush=True); time.sleep(0.3)\n'over'"
    done = await client.call_tool("run_code", {"code": code}, progress_callback=hear)
    assert "over" in texts(done) and any("line 1" in each for each in heard), (heard, done)


async def sandboxes(client: ClientSession, own: str) -> None:
    other = (await client.call_tool("create_sandbox", {"use": False, "timeout": 120})).structured_content["sandbox"]
    assert other != own
    await run(client, "y = 'there'", sandbox=other)
    assert (await run(client, "y")).is_error
    rows = (await client.call_tool("list_sandboxes", {})).structured_content["sandboxes"]
    assert {own, other} <= {row["sandbox"] for row in rows}, rows
    forked = (await client.call_tool("fork_sandbox", {"sandbox": other, "timeout": 120})).structured_content
    copy = forked["sandboxes"][0]
    assert texts(await run(client, "y", sandbox=copy)).strip("'") == "there"
    assert not (await client.call_tool("pause_sandbox", {"sandbox": other})).is_error
    assert not (await client.call_tool("resume_sandbox", {"sandbox": other})).is_error
    assert texts(await run(client, "y", sandbox=other)).strip("'") == "there"
    for each in (other, copy):
        assert (await client.call_tool("kill_sandbox", {"sandbox": each})).structured_content["existed"]
    gone = await run(client, "1", sandbox=other)
    assert gone.is_error and other in texts(gone), texts(gone)


async def bad_words(client: ClientSession) -> None:
    for arguments, word in (({}, "code"), ({"code": 1}, "code"), ({"code": "1", "timeout": "x"}, "timeout"),
                            ({"code": "1", "sandbox": "nope!"}, "sandbox id")):  # fmt: skip
        wrong = await client.call_tool("run_code", arguments)
        assert wrong.is_error and word in texts(wrong).lower(), (arguments, texts(wrong))
    try:
        await client.call_tool("nothing", {})
    except MCPError as refused:
        assert "nothing" in str(refused)
    else:
        raise AssertionError("an unknown tool was taken")
    late = await run(client, "while True: pass", timeout=1)
    assert late.is_error and "timeout" in texts(late), texts(late)
    assert texts(await run(client, "x")) == "41"  # the interpreter survives it
    long = await run(client, "print('é' * 200_000)")
    assert "bytes left out" in texts(long) and len(texts(long)) < 70_000
    recipe = "FROM e2bdev/base\nCOPY / /x\n"
    copying = await client.call_tool("build_template", {"name": "mcp-none", "dockerfile": recipe})
    assert copying.is_error and "COPY" in texts(copying)


def alive(box: str) -> bool:
    boxes = Sandbox.list(query=SandboxQuery())
    return any(each.sandbox_id == box for each in boxes.next_items())


async def everything(client: ClientSession) -> str:
    await tools(client)
    box = await state_and_results(client)
    await files(client, box)
    await progress(client)
    await sandboxes(client, box)
    await bad_words(client)
    return box


async def by_name(over, how: str, *words: str) -> None:
    async with over(*words) as client:
        box = (await run(client, "kept = 7")).structured_content["sandbox"]
    async with over(*words) as client:
        again = await run(client, "kept")
        assert texts(again) == "7" and again.structured_content["sandbox"] == box, (how, again)
        await client.call_tool("kill_sandbox", {})


async def two_at_once() -> None:
    async with over_http() as one, over_http() as two:
        await asyncio.gather(run(one, "z = 1"), run(two, "z = 2"))
        first, second = await asyncio.gather(run(one, "z"), run(two, "z"))
        assert (texts(first), texts(second)) == ("1", "2")
        both = await asyncio.gather(*(run(one, "import os; os.getpid()") for _ in range(4)))
        assert len({texts(each) for each in both}) == 1  # one sandbox, one interpreter


def post(message: dict, key: str | None = KEY, session: str | None = None, method: str = "POST") -> tuple[int, dict]:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    headers |= {"Mcp-Session-Id": session} if session else {}
    asked = urllib.request.Request(f"{URL}/mcp", json.dumps(message).encode() if message else None, headers,
                                   method=method)  # fmt: skip
    try:
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return answer.status, dict(answer.headers)
    except urllib.error.HTTPError as refused:
        refused.read()
        return refused.code, dict(refused.headers)


def refusals() -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
    assert post(hello, key=None)[0] == 401
    assert post(hello, key="e2b_" + "0" * 40)[0] == 401
    assert post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})[0] == 400  # no session
    assert post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, session="nope")[0] == 404
    assert post({}, method="GET")[0] == 405
    status, headers = post(hello)
    assert status == 200 and len(headers["Mcp-Session-Id"]) == 32, headers
    assert post({"no": "message"}, session=headers["Mcp-Session-Id"])[0] == 400
    assert post({}, session=headers["Mcp-Session-Id"], method="DELETE")[0] == 204


def role_pid() -> int:
    server = int((Path(os.environ["CLOCHE_DATA"]).parent / "server.pid").read_text())
    for child in Path(f"/proc/{server}/task/{server}/children").read_text().split():
        if Path(f"/proc/{child}/comm").read_text().strip() == "cloche-mcp":
            return int(child)
    raise AssertionError("there is no MCP role")


async def killed_in_the_middle() -> None:
    async with over_http() as client:
        await run(client, "kept = 'through'")
        pid = role_pid()
        begun = asyncio.Event()

        async def hear(*_: object) -> None:
            begun.set()

        code = {"code": "import time; print('begun', flush=True); time.sleep(60)"}
        slow = asyncio.create_task(client.call_tool("run_code", code, progress_callback=hear))
        await asyncio.wait_for(begun.wait(), 20)
        os.kill(pid, signal.SIGKILL)
        try:
            await asyncio.wait_for(slow, 20)
        except MCPError:
            pass
        else:
            raise AssertionError("a call outlived its server")
        await run(client, "1")  # whatever became of the cell, the next call is served
        assert texts(await run(client, "kept")).strip("'") == "through"  # by the same session, in the same sandbox
        assert role_pid() != pid


async def main() -> None:
    async with over_stdio() as client:
        box = await everything(client)
        assert alive(box)
    assert not alive(box), "the end of the input ends the sandbox"
    async with over_http("?end=kill") as client:
        box = await everything(client)
    assert not alive(box), "the end of the session ends the sandbox"
    await by_name(over_stdio, "stdio", "--name", "work")
    await by_name(over_http, "http", "?name=notes")
    await two_at_once()
    refusals()
    await killed_in_the_middle()


asyncio.run(main())
