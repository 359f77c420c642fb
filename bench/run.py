# SPDX-License-Identifier: Apache-2.0
"""run.py BUILD OUT: all of `make bench`. Floors, four servers, one table; every sample into OUT (JSON).

The table's goals hold for two cores. Absolute times move with the machine, so each row stands beside the floor that was
measured in the same run, where there is one (floors.py), and has a verdict by number and one by ratio (verdict.py).
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import floors
from table import print_table

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
Samples = dict[str, list[float]]


def say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def server(build: Path, phase: str, scratch: Path, **settings: int | str) -> Samples:
    """Starts a server with these settings, lets against.py measure it, gives back the samples."""
    say(f"server: {phase} {settings or ''}")
    out = scratch / f"{phase}.json"
    environment = os.environ | {"CLOCHE_BIN": str(build / "cloche"), "CLOCHE_TEAM_BOXES_MAX": "2000"}
    environment |= {f"CLOCHE_{name.upper()}": str(value) for name, value in settings.items()}
    python = ROOT / "tests/e2e/python/.venv/bin/python"
    command = [str(ROOT / "scripts/with-server"), str(python), str(HERE / "against.py"), phase, str(out)]
    if subprocess.run(command, env=environment, check=False, timeout=600).returncode or not out.exists():
        say(f"{phase}: not measured to the end")
        return {}
    return json.loads(out.read_text())


def egress(build: Path, scratch: Path) -> Samples:
    """The ways out of boxes, with and without the gateway, in network namespaces."""
    say("ways out of boxes")
    out = scratch / "egress.json"
    python = ROOT / "tests/e2e/python/.venv/bin/python"
    command = [str(python), str(HERE / "egress.py"), str(build), str(out)]
    if subprocess.run(command, check=False, timeout=300).returncode or not out.exists():
        say("ways out of boxes: not measured to the end")
        return {}
    return json.loads(out.read_text())


def main(build: Path, out: Path) -> int:
    began = time.time()
    load = os.getloadavg()[0]
    samples = floors.measure(build, say)
    with tempfile.TemporaryDirectory(prefix="cloche-bench.") as scratch:
        samples |= server(build, "main", Path(scratch), pool_spare_percent=2)  # as by default; with-server has none
        for name, values in server(build, "unpooled", Path(scratch), pool=0).items():
            samples[f"unpooled_{name}"] = values
        for name, values in server(build, "frozen", Path(scratch), checkpoint="frozen").items():
            samples[f"frozen_{name}"] = values
        for name, values in server(build, "burst", Path(scratch), pool=104).items():
            samples[f"ready_{name}"] = values
        samples |= egress(build, Path(scratch))
    about = {
        "kernel": platform.release(),
        "cores": os.cpu_count(),
        "load_before": load,
        "seconds": round(time.time() - began),
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
    }
    out.write_text(json.dumps({"about": about, "samples": samples}))
    missed = print_table(samples)
    machine = f"{about['cores']} cores, Linux {about['kernel']}, load {load:.1f} at the start"
    print(f"\n{about['seconds']} s on {machine}; samples in {out}")
    return 1 if missed and os.environ.get("BENCH_STRICT") else 0


sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
