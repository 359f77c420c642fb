# SPDX-License-Identifier: Apache-2.0
"""The same program through both halves of the package."""

from __future__ import annotations

import asyncio
from typing import Any, Callable

import cloche


class Both:
    """The same program through both halves of the package."""

    def __init__(self, asynchronous: bool) -> None:
        self.asynchronous = asynchronous

    def __getattr__(self, name: str) -> Any:
        return getattr(cloche, f"Async{name}" if self.asynchronous else name)

    def run(self, work: Callable[[], Any]) -> Any:
        """What `work` returns, awaited where it is a coroutine."""
        if not self.asynchronous:
            return work()

        async def main() -> Any:
            return await work()

        return asyncio.run(main())

    def box(self, url: str, **opts: Any) -> Any:
        config = cloche.ConnectionConfig(api_key="key", api_url=url, sandbox_url=url, **opts)
        return self.Sandbox(
            sandbox_id="box",
            sandbox_domain=None,
            envd_version="0.6.13",
            envd_access_token="token",
            traffic_access_token=None,
            connection_config=config,
        )
