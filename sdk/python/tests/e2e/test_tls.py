# SPDX-License-Identifier: Apache-2.0
"""The same over TLS and HTTP/2."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, os, sys
import cloche

async def main():
    async with await cloche.AsyncSandbox.create(timeout=60) as box:
        assert (await box.run_code("1 + 1")).text == "2"
        data = os.urandom(3_000_000)
        await box.files.write("/home/user/x", data)
        assert await box.files.read("/home/user/x", format="bytes") == data
        results = await asyncio.gather(*(box.commands.run(f"echo {at}") for at in range(20)))
        assert [one.stdout for one in results] == [f"{at}\\n" for at in range(20)]

with cloche.Sandbox.create(timeout=60) as box:
    assert box.run_code("1 + 1").text == "2"
    assert box.commands.run("echo x").stdout == "x\\n"
    assert box.get_info().sandbox_id == box.sandbox_id
asyncio.run(main())
"""


@pytest.mark.parametrize("version", ["1.1", "2"])
def test_both_halves_work_over_tls(version: str) -> None:
    url = os.environ["CLOCHE_TLS_URL"]
    names = {
        "E2B_API_URL": url,
        "E2B_SANDBOX_URL": url,
        "E2B_HTTP_VERSION": version,
        "SSL_CERT_FILE": f"{os.environ['CLOCHE_TLS_DIR']}/ca-bundle.pem",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={**os.environ, **names}, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr


def test_a_certificate_that_nobody_signed_is_refused() -> None:
    import httpx

    import cloche

    url = os.environ["CLOCHE_TLS_URL"]
    with pytest.raises(httpx.ConnectError):
        cloche.Sandbox.kill("x", api_url=url)

    async def refused() -> None:
        await cloche.AsyncSandbox.kill("x", api_url=url)

    with pytest.raises(httpx.ConnectError):
        asyncio.run(refused())
