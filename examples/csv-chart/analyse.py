# SPDX-License-Identifier: Apache-2.0
"""Analyse a CSV file in a sandbox: its table, its chart as a picture, and the numbers behind the chart."""

from __future__ import annotations

import base64
import sys
from pathlib import Path

from e2b_code_interpreter import Sandbox

# What a model would write. Values of cells come back as a notebook shows them.
ANALYSIS = """
import matplotlib.pyplot as plt
import pandas as pd

sales = pd.read_csv("sales.csv")
regions = sales.groupby("region")["amount"].agg(["count", "sum"]).sort_values("sum", ascending=False)
plt.bar(regions.index, regions["sum"])
plt.title("Sales by region")
plt.show()
regions
"""


def main(picture: Path) -> None:
    with Sandbox.create() as box:
        box.files.write("sales.csv", Path(__file__).with_name("sales.csv").read_bytes())
        run = box.run_code(ANALYSIS)
    if run.error:
        sys.exit(run.error.traceback)
    for result in run.results:
        if result.is_main_result:
            print(result.text)
        if result.png:
            picture.write_bytes(base64.b64decode(result.png))
            print(f"\npicture: {picture}")
        if result.chart:
            bars = ", ".join(f"{bar.label} {bar.value:.0f}" for bar in result.chart.elements)
            print(f"chart: {result.chart.title}: {bars}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "sales.png"))
