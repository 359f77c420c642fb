# SPDX-License-Identifier: Apache-2.0
"""sdk_cell.py COUNT: 1+1 through the stock Python SDK, ours and plain HTTP, in turns, each on a box of its own.

Prints {"stock_ms": [...], "ours_ms": [...], "raw_ms": [...]}. What an SDK costs is its time without plain HTTP's.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import time
from collections.abc import Callable
from urllib.parse import urlsplit

import cloche
import e2b_code_interpreter

WARM = 30


def raw(box: cloche.Sandbox) -> Callable[[], str]:
    parts = urlsplit(os.environ["E2B_SANDBOX_URL"])
    link = http.client.HTTPConnection(str(parts.hostname), parts.port)
    token = box._envd_access_token if hasattr(box, "_envd_access_token") else ""
    headers = {"E2b-Sandbox-Id": box.sandbox_id, "E2b-Sandbox-Port": "49999", "X-Access-Token": str(token)}
    headers["Content-Type"] = "application/json"

    def run() -> str:
        link.request("POST", "/execute", b'{"code":"1+1"}', headers)
        lines = link.getresponse().read().splitlines()
        return next(event["text"] for event in map(json.loads, lines) if event["type"] == "result")

    return run


def main(count: int) -> None:
    stock, ours = e2b_code_interpreter.Sandbox.create(timeout=120), cloche.Sandbox.create(timeout=120)
    runs = {"stock_ms": lambda: stock.run_code("1+1").text, "ours_ms": lambda: ours.run_code("1+1").text}
    runs["raw_ms"] = raw(stock)
    samples: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(WARM + count):
        for name, run in runs.items():
            began = time.perf_counter()
            text = run()
            took = (time.perf_counter() - began) * 1000
            if text != "2":
                raise SystemExit(f"{name}: 1+1 gave {text!r}")
            if turn >= WARM:
                samples[name].append(took)
    stock.kill()
    ours.kill()
    print(json.dumps(samples))


main(int(sys.argv[1]))
