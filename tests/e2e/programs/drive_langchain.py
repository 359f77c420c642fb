# SPDX-License-Identifier: Apache-2.0
"""langchain-e2b: the tools of a Deep Agent on a sandbox, as the agent calls them, sync and async."""

from __future__ import annotations

import asyncio

import e2b
from langchain_e2b import AsyncE2BSandbox, E2BSandbox


def use(backend: E2BSandbox) -> None:
    done = backend.execute("echo out; echo err >&2; exit 3")
    assert (done.exit_code, "out" in done.output, "err" in done.output) == (3, True, True), done
    assert backend.execute("sleep 30", timeout=1).exit_code == 124
    assert backend.write("/home/user/app/main.py", "print('one')\nprint('two')\n").error is None
    assert "one" in str(backend.read("/home/user/app/main.py").file_data)
    edited = backend.edit("/home/user/app/main.py", "two", "three")
    assert (edited.error, edited.occurrences) == (None, 1), edited
    assert backend.execute("python3 app/main.py").output.split() == ["one", "three"]
    names = [entry["path"] for entry in backend.ls("/home/user/app").entries or []]
    assert names == ["/home/user/app/main.py"], names
    found = [match["path"] for match in backend.glob("**/*.py", "/home/user").matches or []]
    assert any(path.endswith("main.py") for path in found), found
    lines = [match["line"] for match in backend.grep("three", "/home/user").matches or []]
    assert lines == [2], lines
    data = bytes(range(256))
    assert backend.upload_files([("/home/user/data", data)])[0].error is None
    assert backend.download_files(["/home/user/data"])[0].content == data
    assert backend.download_files(["/home/user/none"])[0].error == "file_not_found"
    assert backend.read("/home/user/none").error


async def use_async() -> None:
    sandbox = await e2b.AsyncSandbox.create(timeout=120)
    try:
        backend = AsyncE2BSandbox(sandbox=sandbox)
        assert (await backend.aexecute("echo hello")).output == "hello\n"
        assert (await backend.awrite("/home/user/a", "text")).error is None
        assert "text" in str((await backend.aread("/home/user/a")).file_data)
        assert [
            each["path"] for each in (await backend.als("/home/user/")).entries or [] if each["path"].endswith("/a")
        ]
    finally:
        await sandbox.kill()


made = e2b.Sandbox.create(timeout=120)
try:
    use(E2BSandbox(sandbox=made))
finally:
    made.kill()
asyncio.run(use_async())
