# SPDX-License-Identifier: Apache-2.0
"""pydantic-ai-harness: an E2B sandbox as the workspace of an agent's run: commands, deadlines, files."""

from __future__ import annotations

import asyncio
import time

from pydantic_ai.workspaces import WorkspaceTimeoutError
from pydantic_ai_harness.e2b_sandbox import E2BSandbox
from pydantic_ai_harness.e2b_sandbox._backend import E2BSandboxBackend


async def commands(backend: E2BSandboxBackend) -> None:
    assert await backend.working_dir() == "/home/user"
    done = await backend.run(["sh", "-c", "echo $GIVEN; echo err >&2; exit 3"], env={"GIVEN": "a b"})
    assert (done.exit_code, done.stdout, done.stderr) == (3, "a b\n", "err\n"), done
    assert (await backend.run("echo one | tr a-z A-Z", shell=True)).stdout == "ONE\n"
    began = time.monotonic()
    try:
        await backend.run("echo begun; sleep 987; echo over", shell=True, timeout=1)
    except WorkspaceTimeoutError as error:
        assert error.stdout == "begun\n", error.stdout
    else:
        raise AssertionError("a command outlived its deadline")
    assert time.monotonic() - began < 30
    left = await backend.run(["pgrep", "-f", "sleep 98[7]"])
    assert left.exit_code == 1, f"the command goes on: {left.stdout}"


async def files(backend: E2BSandboxBackend) -> None:
    await backend.make_dir("/home/user/made")
    await backend.write_bytes("/home/user/made/data", bytes(range(256)))
    assert await backend.read_bytes("/home/user/made/data") == bytes(range(256))
    await backend.run(["ln", "-s", "data", "/home/user/made/link"])
    found = {entry.name: (entry.is_dir, entry.size) for entry in await backend.list_dir("/home/user/made")}
    assert found == {"data": (False, 256), "link": (False, 256)}, found
    for path, wanted in (("/home/user/none", FileNotFoundError), ("/home/user/made", IsADirectoryError)):
        try:
            await backend.read_bytes(path)
        except wanted:
            continue
        raise AssertionError(f"{path} did not raise {wanted.__name__}")
    await backend.remove("/home/user/made/data")
    assert not await backend.exists("/home/user/made/data")


async def main() -> None:
    capability = E2BSandbox(sandbox_timeout=300)
    backend = E2BSandboxBackend(sandbox_timeout=300)
    try:
        await commands(backend)
        await files(backend)
        again = capability.backend(backend.ref)
        assert (await again.run(["echo", "again"])).stdout == "again\n"
    finally:
        await capability.destroy(backend.ref)


asyncio.run(main())
