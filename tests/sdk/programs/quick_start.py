# SPDX-License-Identifier: Apache-2.0
from e2b_code_interpreter import Sandbox

sandbox = Sandbox.create()
sandbox.run_code("x = 1")
execution = sandbox.run_code("x += 1; x")
assert execution.text == "2", execution
assert sandbox.files.list("/")
sandbox.kill()
print("done")
