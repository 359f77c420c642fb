# SPDX-License-Identifier: Apache-2.0
"""Floors: what the machine, Python, criu and the stock SDK take without a server, a box or an agent of ours.

`measure` gives samples by series. A floor that cannot be had (no criu, no template) is left out with a word on why, and
rows beside it get no verdict by ratio.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
IN_TEMPLATE = [str(ROOT / "scripts/in-template"), "-c", f"{HERE}:/floor", "env", "OPENBLAS_NUM_THREADS=1", "python3"]
Samples = dict[str, list[float]]


def ask(*command: str | Path, **more: Any) -> dict:
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, check=True, timeout=240, **more)
    return json.loads(done.stdout)


def named(prefix: str, values: dict) -> Samples:
    return {f"{prefix}_{name}": samples for name, samples in values.items()}


def clones(build: Path) -> Samples:
    with tempfile.TemporaryDirectory(prefix="cloche-bench.", dir="/tmp") as scratch:
        os.chmod(scratch, 0o755)
        return named("floor_box", ask(build / "bench/box_floor", f"{scratch}/floor"))


def loopback(build: Path) -> Samples:
    samples = named("floor_tcp", ask(build / "bench/tcp_floor"))
    program = build / "bench/http_floor"
    samples["floor_http_ms"] = [ask(program, "--conns", "1", "--seconds", "2", "--body", "0")["p50_ms"]]
    many = ask(program, "--conns", "32", "--seconds", "2", "--body", "0", "--proxy")
    samples["floor_proxy_rate"] = [many["per_second"]]
    return samples


def python(_build: Path) -> Samples:
    return named("floor", ask(*IN_TEMPLATE, "/floor/python_floor.py"))


def checkpoint(_build: Path) -> Samples:
    """The criu that boxes are put to sleep with, on a plain process tree."""
    where = subprocess.run([str(ROOT / "scripts/criu"), "--where"], stdout=subprocess.PIPE, check=False, text=True)
    criu = where.stdout.strip() or shutil.which("criu")
    if not criu:
        raise OSError("there is no criu; make criu")
    with tempfile.TemporaryDirectory(prefix="cloche-bench.", dir="/tmp") as scratch:
        namespaces = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
        return named("floor_criu", ask(*namespaces, sys.executable, HERE / "criu_floor.py", criu, f"{scratch}/images"))


def cells(build: Path) -> Samples:
    """HTTP -> pipe -> run_cell, asked by the clients that ask the server."""
    worker = [str(build / "bench/cell_floor"), *IN_TEMPLATE, "/floor/cell_worker.py"]
    with subprocess.Popen(worker, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin and server.stdout
        try:
            url = f"http://127.0.0.1:{int(server.stdout.readline())}"
            key = f"e2b_{'0' * 40}"
            environment = os.environ | {"E2B_API_URL": url, "E2B_SANDBOX_URL": url, "E2B_API_KEY": key}
            with tempfile.NamedTemporaryFile(suffix=".json") as out:
                command = [str(build / "cloche"), "bench", "--only", "run", "--json", out.name]
                subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True, timeout=120)
                raw = {series["name"]: series["samples"] for series in json.loads(Path(out.name).read_text())}
            return named("floor_pipe", raw) | named("floor_pipe_sdk", ask("node", HERE / "sdk.mjs", env=environment))
        finally:
            server.stdin.close()


FLOORS: dict[str, Callable[[Path], Samples]] = {
    "bare clones": clones,
    "loopback and HTTP": loopback,
    "Python": python,
    "HTTP -> pipe -> run_cell": cells,
    "criu": checkpoint,
}


def measure(build: Path, say: Callable[[str], None]) -> Samples:
    samples: Samples = {}
    for name, floor in FLOORS.items():
        say(f"floor: {name}")
        try:
            samples |= floor(build)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            say(f"floor: {name}: not measured: {error}")
    return samples
