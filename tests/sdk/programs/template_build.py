# SPDX-License-Identifier: Apache-2.0
"""A template and a box of it, as written for the stock SDK."""

import os
import tempfile

from e2b import Sandbox, Template, wait_for_file

name = os.environ["TEMPLATE_NAME"]
with tempfile.TemporaryDirectory() as directory:
    with open(os.path.join(directory, "app.py"), "w") as file:
        file.write("open('/tmp/ready', 'w').write('yes')\n")
    template = (
        Template(file_context_path=directory)
        .from_template("base")
        .copy("app.py", "/home/user/app.py")
        .set_envs({"MODE": "test"})
        .run_cmd("echo $MODE > /home/user/mode")
        .set_start_cmd("python3 /home/user/app.py", wait_for_file("/tmp/ready"))
    )
    info = Template.build(template, name, cpu_count=1, memory_mb=512, on_build_logs=lambda entry: None)
print("name:", info.name == name)
print("exists:", Template.exists(name))
with Sandbox.create(name, timeout=60) as sandbox:
    print(sandbox.files.read("/home/user/mode").strip(), sandbox.files.read("/tmp/ready"))
Sandbox.delete_snapshot(info.template_id)
