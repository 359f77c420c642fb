# SPDX-License-Identifier: Apache-2.0
"""What a user's program does with the stock SDK.

Run as a child with https in its environment. Prints one JSON object of what it
saw. Nothing here knows about TLS.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time

import e2b_code_interpreter as interpreter

SIZE = 100 << 20
AT_ONCE = 40


async def main() -> dict[str, object]:
    seen: dict[str, object] = {}
    box = await interpreter.AsyncSandbox.create(timeout=300)
    try:
        seen["sum"] = (await box.run_code("print(20 + 22)")).logs.stdout

        lines: list[tuple[float, str]] = []
        began = time.monotonic()
        await box.commands.run(
            "for i in 1 2 3; do echo $i; sleep 1.2; done",
            on_stdout=lambda line: lines.append((time.monotonic() - began, line)),
        )
        seen["lines"] = [line.strip() for _, line in lines]
        seen["spread"] = lines[-1][0] - lines[0][0]

        commands = [box.commands.run(f"sleep 1; echo {i}") for i in range(AT_ONCE)]
        seen["many"] = sorted(int(each.stdout) for each in await asyncio.gather(*commands))

        data = os.urandom(1 << 20) * (SIZE >> 20)
        await box.files.write("/home/user/large", data)
        there = await box.commands.run("sha256sum /home/user/large")
        seen["uploaded"] = there.stdout.split()[0] == hashlib.sha256(data).hexdigest()
        back = await box.files.read("/home/user/large", format="bytes")
        seen["downloaded"] = bytes(back) == data

        handle = await box.commands.run("sleep 60", background=True)
        waiting = asyncio.create_task(handle.wait())
        await asyncio.sleep(0.5)  # the stream is open and stays silent for a moment
        began = time.monotonic()
        seen["killed"] = await interpreter.AsyncSandbox.kill(box.sandbox_id)
        try:
            await waiting
        except Exception as error:  # noqa: BLE001 - the type is what is tested
            seen["error"] = type(error).__name__
        seen["noticed"] = time.monotonic() - began
        seen["running"] = await box.is_running()
    finally:
        await box.kill()
    return seen


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main())), flush=True)
    # The client's native threads now and then abort an interpreter that is being torn down.
    os._exit(0)
