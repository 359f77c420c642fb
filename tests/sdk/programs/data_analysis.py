# SPDX-License-Identifier: Apache-2.0
"""A data analysis with charts, as written for the stock SDK."""

import base64
import csv
import io

from e2b_code_interpreter import Sandbox
from e2b_code_interpreter.charts import BarChart, LineChart, SuperChart

rows = [["month", "sales"], *[[str(month), str(month * month)] for month in range(1, 13)]]
text = io.StringIO()
csv.writer(text).writerows(rows)

with Sandbox.create() as sandbox:
    sandbox.files.write("/home/user/sales.csv", text.getvalue())
    loaded = sandbox.run_code("import pandas as pd\ndf = pd.read_csv('/home/user/sales.csv')\ndf.describe()")
    print("error:", loaded.error)
    print("html:", "<table" in loaded.results[0].html)
    print("sum:", sandbox.run_code("int(df.sales.sum())").text)

    line = sandbox.run_code(
        "import matplotlib.pyplot as plt\nplt.plot(df.month, df.sales, label='sales')\n"
        "plt.title('Sales')\nplt.xlabel('month')\nplt.ylabel('EUR')\nplt.show()"
    )
    chart = line.results[0].chart
    print("line:", isinstance(chart, LineChart), chart.title, chart.x_label, chart.y_label)
    print("points:", chart.elements[0].points[:2], len(chart.elements[0].points))
    print("png:", base64.b64decode(line.results[0].png)[:4] == b"\x89PNG")

    bar = sandbox.run_code("plt.bar(['a', 'b'], [3, 4])\nplt.show()").results[0].chart
    print("bar:", isinstance(bar, BarChart), [(one.label, one.value) for one in bar.elements])

    both = sandbox.run_code("f, (a, b) = plt.subplots(1, 2)\na.plot([1, 2])\nb.bar(['x'], [1])\nplt.show()")
    two = both.results[0].chart
    print("super:", isinstance(two, SuperChart), [part.type.value for part in two.elements])
    print("formats:", sorted(line.results[0].formats()))
