# SPDX-License-Identifier: Apache-2.0
"""What our SDKs cost beside plain HTTP and the stock SDKs: cells, imports, sizes.

`sdks.py` alone (scripts/with-server runs it) prints the rows; `make bench` takes its samples into the table. Needs
`make sdk`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
CELLS = 300
IMPORTS = 9

Samples = dict[str, list[float]]


def build() -> Path:
    return ROOT / os.environ.get("BUILD", "build")


def python() -> str:
    return str(ROOT / "tests/e2e/python/.venv/bin/python")


def surroundings() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT / "sdk/python/src")}


def printed(name: str, *words: str) -> Samples:
    """The series that a program printed, under names of their own."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120, env=surroundings())
    if done.returncode:
        print(f"bench: {name}: {done.stderr[-500:]}", file=sys.stderr)
        return {}
    return {f"sdk_{name}_{series}": values for series, values in json.loads(done.stdout).items()}


def imports() -> Samples:
    """Milliseconds of a fresh Python that imports the package, without those of one that imports nothing."""
    samples: Samples = {"stock": [], "ours": [], "nothing": []}
    programs = {"stock": "import e2b_code_interpreter", "ours": "import cloche; cloche.Sandbox", "nothing": "pass"}
    for turn in range(IMPORTS + 1):
        for name, program in programs.items():
            began = time.perf_counter()
            subprocess.run([python(), "-c", program], check=True, env=surroundings())
            if turn:
                samples[name].append((time.perf_counter() - began) * 1000)
    nothing = sorted(samples["nothing"])[IMPORTS // 2]
    return {f"sdk_import_{name}_ms": [value - nothing for value in samples[name]] for name in ("stock", "ours")}


def sizes() -> Samples:
    library = next((build() / "sdk/stage/libcloche").rglob("libcloche.so.0.*"))
    with tempfile.TemporaryDirectory() as scratch:
        stripped = Path(scratch) / "lib.so"
        subprocess.run(["strip", "-o", stripped, library], check=True)
        library_kb = stripped.stat().st_size / 1000
    # Every export, minified: what is loaded at the start, and that with the chunks that calls load when they are made.
    told = subprocess.run(["node", ROOT / "sdk/typescript/sizes.mjs"], check=True, stdout=subprocess.PIPE)
    every = json.loads(told.stdout)["all"]
    bundle = {"sdk_bundle_kb": [every["eager"] / 1000], "sdk_bundle_all_kb": [every["all"] / 1000]}
    return {"sdk_library_kb": [library_kb], **bundle}


def measure() -> Samples:
    subprocess.run([ROOT / "scripts/sdk", "c", "python", "typescript"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", str(build()), "--quiet", "bench/sdk_cell"], check=True)
    samples = printed("c", str(build() / "bench/sdk_cell"), str(CELLS))
    samples |= printed("python", python(), str(HERE / "sdk_cell.py"), str(CELLS))
    samples |= printed("ts", "node", str(HERE / "sdk_cell.mjs"), str(CELLS))
    return samples | imports() | sizes()


def main() -> None:
    from rows import SDK_ROWS
    from verdict import number

    samples = measure()
    for row in SDK_ROWS:
        value = number(samples, row.of or row.series, row.part)
        said = "not measured" if value is None else f"{value:.3f} {row.unit}"
        reached = ""
        if row.goal is not None and value is not None:
            reached = f"goal {row.goal}: {'met' if value <= row.goal else 'missed'}"
        print(f"{row.title:52} {said:>16}  {reached}")


if __name__ == "__main__":
    main()
