# SPDX-License-Identifier: Apache-2.0
"""e2b-mcp-server: started as an MCP client's configuration would, spoken to over stdin and stdout."""

from __future__ import annotations

import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

SERVER = StdioServerParameters(
    command=sys.executable,
    args=["-S", "-c", "import e2b_mcp_server; e2b_mcp_server.main()"],
    env=dict(os.environ),
)


async def main() -> None:
    async with stdio_client(SERVER) as streams, ClientSession(*streams) as session:
        await session.initialize()
        assert [tool.name for tool in (await session.list_tools()).tools] == ["run_code"]
        code = "import sys\nprint(6 * 7)\nprint('warned', file=sys.stderr)"
        result = await session.call_tool("run_code", {"code": code})
        told = json.loads(result.content[0].text)
        assert told == {"stdout": ["42\n"], "stderr": ["warned\n"]}, told


asyncio.run(main())
