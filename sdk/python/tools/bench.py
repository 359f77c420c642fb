#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much time the package itself takes: run with scripts/with-server and the Python of sdk/python/.venv.

run_code("1+1") of this package, of the stock one and of http.client with the same bytes, taken in turns; a package's
overhead is its median minus that of http.client. Import: medians of fresh interpreters, minus one that imports nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any, Callable, Dict, List
from urllib.parse import urlsplit

BODY = json.dumps({"code": "1+1", "context_id": None, "language": None, "env_vars": None}).encode()


def turns(calls: Dict[str, Callable[[], Any]], count: int) -> Dict[str, float]:
    """Median milliseconds of each call, taken in turns so that what disturbs one disturbs all."""
    times: Dict[str, List[float]] = {name: [] for name in calls}
    for at in range(count + 20):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            if at >= 20:
                times[name].append((time.perf_counter() - began) * 1000)
    return {name: statistics.median(some) for name, some in times.items()}


def raw(box: Any) -> Callable[[], bytes]:
    connection = http.client.HTTPConnection(urlsplit(os.environ["E2B_SANDBOX_URL"]).netloc)
    headers = {
        "Content-Type": "application/json",
        "E2b-Sandbox-Id": box.sandbox_id,
        "E2b-Sandbox-Port": "49999",
        "X-Access-Token": box._envd_access_token,
    }

    def call() -> bytes:
        connection.request("POST", "/execute", BODY, headers)
        return connection.getresponse().read()

    return call


def run_code(count: int) -> None:
    import e2b_code_interpreter

    import cloche

    with cloche.Sandbox.create(timeout=600) as box:
        stock = e2b_code_interpreter.Sandbox.connect(box.sandbox_id)
        calls = {"raw": raw(box), "stock": lambda: stock.run_code("1+1"), "cloche": lambda: box.run_code("1+1")}
        report("run_code, blocking", turns(calls, count))
        loop = asyncio.new_event_loop()
        mine = loop.run_until_complete(cloche.AsyncSandbox.connect(box.sandbox_id))
        theirs = loop.run_until_complete(e2b_code_interpreter.AsyncSandbox.connect(box.sandbox_id))
        calls = {
            "raw": raw(box),
            "stock": lambda: loop.run_until_complete(theirs.run_code("1+1")),
            "cloche": lambda: loop.run_until_complete(mine.run_code("1+1")),
        }
        report("run_code, asyncio", turns(calls, count))
        loop.run_until_complete(asyncio.sleep(0))


def report(what: str, medians: Dict[str, float]) -> None:
    ours, theirs = (medians[name] - medians["raw"] for name in ("cloche", "stock"))
    print(
        f"{what}: raw {medians['raw']:.3f} ms, stock {medians['stock']:.3f} ms, cloche {medians['cloche']:.3f} ms; "
        f"overhead {ours:.3f} ms of {theirs:.3f} ms = {ours / theirs:.0%}"
    )


def imports(count: int) -> None:
    lines = {
        "nothing": "pass",
        "stock": "import e2b_code_interpreter",
        "cloche": "import cloche",
        "cloche.Sandbox": "from cloche import Sandbox",
    }
    calls = {
        name: (lambda code=code: subprocess.run([sys.executable, "-c", code], check=True))
        for name, code in lines.items()
    }
    medians = turns(calls, count)
    base, theirs = medians["nothing"], medians["stock"] - medians["nothing"]
    for name in ("cloche", "cloche.Sandbox"):
        ours = medians[name] - base
        print(f"import {name}: {ours:.1f} ms of {theirs:.1f} ms = {ours / theirs:.0%}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=300)
    count = parser.parse_args().count
    run_code(count)
    imports(max(5, count // 20))


if __name__ == "__main__":
    main()
