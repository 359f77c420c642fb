# SPDX-License-Identifier: Apache-2.0
"""against.py PHASE OUT: what is measured while a server runs (scripts/with-server started us). Writes samples as JSON.

Phases: `main` (everything), `unpooled` (a server without ready boxes), `frozen` (one whose boxes sleep in memory),
`burst` (one with a hundred ready boxes).
Times a client waits for are taken by `cloche bench`, which is C; here is what needs a look at the machine
(memory, sizes) and the stock JavaScript SDK.
"""

import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from e2b_code_interpreter import Sandbox

import sdks

HERE = Path(__file__).resolve().parent
TEMPLATE = "code-interpreter-v1"
Samples = dict[str, list[float]]


def cloche_bench(only: str = "", scale: float = 1.0) -> Samples:
    """Series of `cloche bench`; what it could not measure is simply absent."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [os.environ["CLOCHE_BIN"], "bench", "--json", out.name, "--scale", str(scale)]
        if only:
            command += ["--only", only]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        text = Path(out.name).read_text()
    return {series["name"]: series["samples"] for series in json.loads(text or "[]")}


# ---- looking at the machine ----


def server_processes() -> dict[str, list[int]]:
    """The daemon's processes by role."""
    supervisor = int((Path(os.environ["CLOCHE_DATA"]).parent / "server.pid").read_text())
    found: dict[str, list[int]] = {"supervisor": [supervisor]}
    for pid, parent in all_processes():
        name = comm(pid)
        if parent == supervisor and name.startswith("cloche-"):
            found.setdefault(name.removeprefix("cloche-"), []).append(pid)
    return found


def all_processes() -> Iterator[tuple[int, int]]:
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue
            yield int(entry), int(stat.rsplit(")", 1)[1].split()[1])


def comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def pss_mb(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    match = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    return int(match[1]) / 1024 if match else 0.0


def box_processes() -> dict[str, list[int]]:
    """Processes of this server by the name of their box."""
    with sqlite3.connect(f"file:{os.environ['CLOCHE_DATA']}/cloche.db?mode=ro", uri=True) as db:
        value = db.execute("SELECT value FROM meta WHERE name='instance'").fetchone()[0]
    instance = value.decode() if isinstance(value, bytes) else value
    mark = re.compile(rf"/cloche-{instance}/([^/\n]+)")
    found: dict[str, list[int]] = {}
    for pid, _parent in all_processes():
        try:
            match = mark.search(Path(f"/proc/{pid}/cgroup").read_text())
        except OSError:
            continue
        if match:
            found.setdefault(match[1], []).append(pid)
    return found


def available_mb() -> float:
    match = re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())
    assert match
    return int(match[1]) / 1024


# ---- measurements ----


def daemon_mb() -> float:
    return sum(pss_mb(pid) for pids in server_processes().values() for pid in pids)


def sizes() -> Samples:
    """The daemon when nothing has happened yet; its file; one agent."""
    binary = Path(os.environ["CLOCHE_BIN"]).resolve()
    with tempfile.NamedTemporaryFile() as stripped:
        subprocess.run(["strip", "-o", stripped.name, str(binary)], check=True)
        size = Path(stripped.name).stat().st_size / 1e6
    return {"daemon_pss": [daemon_mb()], "binary_mb": [size]}


def javascript_sdk() -> Samples:
    done = subprocess.run(["node", str(HERE / "sdk.mjs")], stdout=subprocess.PIPE, check=False, timeout=240)
    return {f"sdk_js_{name}": values for name, values in json.loads(done.stdout or "{}").items()}


def density() -> Samples:
    """Many idle boxes, each with a warm Python that has run a cell: memory, creates meanwhile, and all still answer."""
    count = 1000 if os.environ.get("BENCH_FULL") else int(os.environ.get("BENCH_BOXES", "200"))
    before = set(box_processes())
    free = available_mb()

    def settle(number: int) -> Sandbox:
        box = Sandbox.create(TEMPLATE, timeout=1800)
        box.run_code(f"x = {number}")
        return box

    with ThreadPoolExecutor(4) as pool:
        boxes = list(pool.map(settle, range(count)))
        time.sleep(2)
        used = free - available_mb()
        processes = {name: pids for name, pids in box_processes().items() if name not in before}
        each = [sum(pss_mb(pid) for pid in pids) for pids in processes.values()]
        agents = [pss_mb(pid) for pids in processes.values() for pid in pids if comm(pid) == "cloche-agent"]
        creates = cloche_bench("create", 0.5)
        answers = list(pool.map(lambda pair: pair[1].run_code("x").text == str(pair[0]), enumerate(boxes)))
        for _ in pool.map(lambda box: box.kill(), boxes):
            pass
    return {
        "density_boxes": [float(count)],
        "density_pss": each,
        "density_host_mb": [used / count],
        "density_answers": [float(sum(answers))],
        "density_create": creates.get("create", []),
        "agent_pss": agents,
    }


def complaints() -> list[str]:
    """What the server said that it should not have to."""
    log = Path(os.environ["CLOCHE_DATA"]).parent / "server.log"
    return [line for line in log.read_text().splitlines() if '"level":"warn"' in line or '"level":"error"' in line]


def main(phase: str, out: Path) -> None:
    samples: Samples = {}
    if phase == "main":
        time.sleep(3)
        samples |= sizes()
        cloche_bench("create", 0.1)
        samples |= cloche_bench()
        samples |= javascript_sdk()
        samples |= sdks.measure()
        samples |= density()
        samples["daemon_after"] = [daemon_mb()]
    elif phase == "unpooled":
        cloche_bench("create", 0.1)
        samples |= cloche_bench("create,create_echo,create_run,sustained")
    elif phase == "frozen":
        samples |= cloche_bench("pause")
    elif phase == "burst":
        samples |= cloche_bench("burst")
    out.write_text(json.dumps(samples))
    for line in complaints()[:20]:
        print(line, file=sys.stderr)


main(sys.argv[1], Path(sys.argv[2]))
