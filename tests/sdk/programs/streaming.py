# SPDX-License-Identifier: Apache-2.0
import asyncio

from e2b_code_interpreter import AsyncSandbox

CODE = """
import sys
import time
for step in range(3):
    print("step", step)
    time.sleep(0.1)
print("warning", file=sys.stderr)
display("shown")
raise ValueError("at the end")
"""


async def main() -> None:
    sandbox = await AsyncSandbox.create()
    told = []
    execution = await sandbox.run_code(
        CODE,
        on_stdout=lambda message: told.append(("out", message.line)),
        on_stderr=lambda message: told.append(("err", message.line)),
        on_result=lambda result: told.append(("result", result.text)),
        on_error=lambda error: told.append(("error", error.name)),
    )
    out = "".join(line for kind, line in told if kind == "out")
    assert out == "step 0\nstep 1\nstep 2\n", told
    assert told[-1] == ("error", "ValueError"), told
    assert execution.error.value == "at the end"
    command = await sandbox.commands.run("for i in 1 2 3; do echo $i; done", on_stdout=lambda data: told.append(data))
    assert command.stdout == "1\n2\n3\n"
    await sandbox.kill()


asyncio.run(main())
print("done")
