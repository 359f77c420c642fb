# SPDX-License-Identifier: Apache-2.0
"""Output as it comes, of code and of commands, as written for the stock SDK."""

import asyncio

from e2b_code_interpreter import AsyncSandbox, CommandExitException, TimeoutException


async def main():
    sandbox = await AsyncSandbox.create(timeout=60)
    try:
        lines = []
        execution = await sandbox.run_code(
            "import sys\nfor i in range(3):\n    print(i)\n    print(-i, file=sys.stderr)\n1/0",
            on_stdout=lambda message: lines.append(("out", message.line)),
            on_stderr=lambda message: lines.append(("err", message.line)),
            on_error=lambda error: lines.append(("error", error.name)),
        )
        print(sorted("".join(text for kind, text in lines if kind == "out").split()), execution.error.value)

        seen = []

        async def on_stdout(data):
            seen.append(data)

        command = await sandbox.commands.run("for i in 1 2 3; do echo $i; done", background=True, on_stdout=on_stdout)
        result = await command.wait()
        print("".join(seen) == result.stdout, result.exit_code)
        try:
            await sandbox.commands.run("exit 4")
        except CommandExitException as error:
            print("exit", error.exit_code)
        try:
            await sandbox.commands.run("sleep 20", timeout=0.5)
        except TimeoutException:
            print("timed out")
        context = await sandbox.create_code_context(language="javascript")
        print((await sandbox.run_code("[1, 2].map(x => x * 2)", context=context)).text)
    finally:
        print("killed", await sandbox.kill())


asyncio.run(main())
