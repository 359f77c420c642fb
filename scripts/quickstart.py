# SPDX-License-Identifier: Apache-2.0
"""Quick start: the stock Python SDK against a Cloche server.

pip install e2b-code-interpreter, paste the environment lines that `cloche serve`
prints, and run this file.
"""

import base64
import pathlib

from e2b_code_interpreter import Sandbox

with Sandbox.create() as box:
    # Cells share one kernel: what the first defines, the second sees.
    box.run_code("x = 1")
    print("x is", box.run_code("x += 1; x").text)

    # Rich results: a table as html and data, a figure as a picture and a chart.
    table = box.run_code("import pandas as pd; pd.DataFrame({'a': [1, 2], 'b': [3, 4]})")
    print("table columns:", table.results[0].data)
    print("table is html:", "<table" in table.results[0].html)

    figure = box.run_code(
        "import matplotlib.pyplot as plt; plt.plot([1, 2, 3], [4, 5, 6]); plt.show()"
    )
    pathlib.Path("chart.png").write_bytes(base64.b64decode(figure.results[0].png))
    print("chart type:", figure.results[0].chart.type.value)

    # Errors come back as data, with name, value and traceback.
    error = box.run_code("1 / 0").error
    print("error:", error.name, "-", error.value)
    print("traceback has the line:", "1 / 0" in error.traceback)

    # Files and commands.
    box.files.write("/home/user/hello.txt", "hello from outside")
    print("file:", box.files.read("/home/user/hello.txt"))
    result = box.commands.run("cat hello.txt | wc -c")
    print("command:", result.stdout.strip(), "bytes, exit code", result.exit_code)

    # The server knows the box while it lives.
    alive = [listed.sandbox_id for listed in Sandbox.list().next_items()]
    print("listed:", box.sandbox_id in alive)

print("running after kill:", box.is_running())
