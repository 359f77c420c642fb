# SPDX-License-Identifier: Apache-2.0
import os

from e2b import Sandbox, Template

name = "program-" + os.environ["UNIQUE"]
template = Template().from_template("base").set_envs({"MODE": "test"}).run_cmd("echo built > /home/user/made")
log = []
info = Template.build(template, name=name, cpu_count=1, memory_mb=512, on_build_logs=log.append)
assert info.template_id
assert log
assert Template.exists(name)
sandbox = Sandbox.create(name)
assert sandbox.files.read("/home/user/made") == "built\n"
assert sandbox.commands.run("echo $MODE").stdout == "test\n"
sandbox.kill()
print("done")
