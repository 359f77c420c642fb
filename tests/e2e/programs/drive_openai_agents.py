# SPDX-License-Identifier: Apache-2.0
"""openai-agents: a sandbox session of E2BSandboxClient: commands, files, terminal, keeping the workspace, coming
back."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

from agents.extensions.sandbox.e2b import (
    E2BSandboxClient,
    E2BSandboxClientOptions,
    E2BSandboxType,
)
from agents.sandbox.entries import File
from agents.sandbox.manifest import Manifest
from agents.sandbox.session import SandboxSession


def options(persistence: str) -> E2BSandboxClientOptions:
    return E2BSandboxClientOptions(
        sandbox_type=E2BSandboxType.E2B,
        timeout=120,
        envs={"FROM_OPTIONS": "yes"},
        pause_on_exit=True,
        workspace_persistence=persistence,  # type: ignore[arg-type]
    )


async def terminal(session: SandboxSession) -> None:
    begun = await session.pty_exec_start("cat", tty=True, yield_time_s=0.5)
    assert begun.process_id is not None, begun
    told = await session.pty_write_stdin(session_id=begun.process_id, chars="echoed\n", yield_time_s=2)
    assert b"echoed" in told.output, told
    await session.pty_terminate_all()


async def use(session: SandboxSession) -> None:
    done = await session.exec("echo $FROM_OPTIONS; pwd; echo err >&2; exit 3")
    assert done.exit_code == 3, done
    assert done.stdout.split() == [b"yes", b"/workspace"], done
    assert done.stderr == b"err\n", done
    assert (await session.read(Path("given.txt"))).read() == b"from the manifest"
    await session.write(Path("deep/data"), io.BytesIO(bytes(range(256))))
    assert (await session.read(Path("deep/data"))).read() == bytes(range(256))
    assert await session.running()
    await terminal(session)


async def main() -> None:
    manifest = Manifest(root="/workspace", entries={"given.txt": File(content=b"from the manifest")})
    client = E2BSandboxClient()
    for persistence in ("tar", "snapshot"):
        session = await client.create(manifest=manifest, options=options(persistence))
        async with session:
            await use(session)
            kept = await session.persist_workspace()
            await session.write(Path("deep/data"), io.BytesIO(b"changed"))
            await session.hydrate_workspace(kept)
            assert (await session.read(Path("deep/data"))).read() == bytes(range(256))
        # Left with pause_on_exit: the sandbox sleeps, and the stored state finds it again.
        state = client.deserialize_session_state(session.state.model_dump(mode="json"))
        async with await client.resume(state) as again:
            assert again.state.sandbox_id == session.state.sandbox_id, "another sandbox"
            assert (await again.read(Path("deep/data"))).read() == bytes(range(256))


asyncio.run(main())
