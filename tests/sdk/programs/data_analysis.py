# SPDX-License-Identifier: Apache-2.0
import base64

from e2b_code_interpreter import Sandbox

CSV = "city,rent\nOslo,900\nRome,700\nBern,1100\n"
CODE = """
import pandas as pd
import matplotlib.pyplot as plt
frame = pd.read_csv("/home/user/rents.csv")
display(frame.describe())
plt.bar(frame["city"], frame["rent"])
plt.title("Rents")
plt.ylabel("EUR")
plt.show()
float(frame["rent"].mean())
"""

sandbox = Sandbox.create(timeout=120)
try:
    sandbox.files.write("/home/user/rents.csv", CSV)
    execution = sandbox.run_code(CODE)
    assert not execution.error, execution.error
    table, figure, mean = execution.results
    assert table.html
    assert base64.b64decode(figure.png).startswith(b"\x89PNG")
    chart = figure.chart
    assert (chart.type, chart.title, chart.y_label) == ("bar", "Rents", "EUR"), chart
    assert [(bar.label, float(bar.value)) for bar in chart.elements] == [("Oslo", 900), ("Rome", 700), ("Bern", 1100)]
    assert mean.is_main_result
    assert float(execution.text) == 900
finally:
    sandbox.kill()
print("done")
