#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""egress.py [SECONDS]: what the egress gateway costs, between network namespaces of its own, as root.

Small requests over TLS on kept connections, the same client and server on three ways: forwarded by the kernel, as a
tunnel through the gateway, and inspected with a header set. Goals: at most 1 ms more than the plain way at the median
of one connection, at least 5,000 requests a second on 32. Needs `ninja -C build bench-floors`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e/python"))

from support.egress_lab import Lab  # noqa: E402

LOAD = str(ROOT / "build/bench/egress_load")
SERVER = "198.51.100.7"
WAYS = {"plain": "plain", "two": "tunnel", "one": "inspected"}


def measure(lab: Lab, seconds: str) -> dict[tuple[str, str], list[int]]:
    lab.set("one", hosts={"api.example.com": {"X-Key": "${e2b.secrets.key}"}}, secrets={"key": "v"}, log=0)
    lab.set("two", hosts={"other.example.com": {"X-Key": "v"}}, log=0)
    trust = str(lab.dir / "both.pem")
    found = {}
    for connections in ("1", "32"):
        for box, way in WAYS.items():
            words = [LOAD, "ask", SERVER, "443", "api.example.com", trust, seconds, connections]
            found[way, connections] = [int(n) for n in lab.client(box, *words, wait=60).split()]
    return found


def main() -> int:
    lab = Lab()
    try:
        words = [LOAD, "serve", SERVER, "443", str(lab.dir / "api.pem"), str(lab.dir / "api.key")]
        server = subprocess.Popen([*lab.enter("net"), *words], stdout=subprocess.PIPE)
        try:
            assert server.stdout
            server.stdout.readline()
            found = measure(lab, sys.argv[1] if len(sys.argv) > 1 else "3")
        finally:
            server.kill()
            server.wait()
    finally:
        lab.close()
    print(f"{'way':<10} {'conns':>5} {'req/s':>8} {'p50 us':>8} {'p99 us':>8}")
    for (way, connections), (rate, median, worst) in found.items():
        print(f"{way:<10} {connections:>5} {rate:>8} {median:>8} {worst:>8}")
    added = found["inspected", "1"][1] - found["plain", "1"][1]
    rate = found["inspected", "32"][0]
    good = added <= 1000 and rate >= 5000
    print(f"added at the median: {added} us (goal 1000); {rate} requests/s (goal 5000): {'met' if good else 'missed'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
