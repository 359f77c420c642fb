# SPDX-License-Identifier: Apache-2.0
"""MCP: the server's tools from the official client, as an agent calls them."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from pathlib import Path

from mcp import ClientSession
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

URL = os.environ.get("E2B_API_URL", "http://127.0.0.1:3000") + "/mcp"
PLOT = """
import matplotlib.pyplot as plt
plt.plot(squares, label="squares")
plt.legend()
plt.show()
"""


async def use(session: ClientSession, picture: Path) -> None:
    await session.initialize()
    print("tools:", ", ".join(tool.name for tool in (await session.list_tools()).tools))
    # The first call makes the session's sandbox; it ends with the session.
    await session.call_tool("run_code", {"code": "squares = [n * n for n in range(10)]"})
    run = await session.call_tool("run_code", {"code": PLOT})
    for part in run.content:
        if part.type == "image":
            picture.write_bytes(base64.b64decode(part.data))
            print("picture:", picture)
    for result in (run.structured_content or {})["results"]:
        if "chart" in result:
            print("chart:", result["chart"]["elements"][0]["points"][-1])
    command = await session.call_tool("run_command", {"command": "python3 --version"})
    print("command:", "".join(part.text for part in command.content if part.type == "text").strip())


async def main(picture: Path) -> None:
    headers = {"Authorization": f"Bearer {os.environ['E2B_API_KEY']}"}
    async with (
        create_mcp_http_client(headers=headers) as http,
        streamable_http_client(URL, http_client=http) as (read, write, *_),
        ClientSession(read, write) as session,
    ):
        await use(session, picture)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1] if len(sys.argv) > 1 else "squares.png")))
