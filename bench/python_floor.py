# SPDX-License-Identifier: Apache-2.0
"""What Python itself costs in this template: cells, forks of a loaded interpreter, figures, a shell, a Jupyter kernel.

Runs in a plain chroot of the template (scripts/in-template), with OPENBLAS_NUM_THREADS=1, and prints one JSON object of
samples in milliseconds. Nothing of Cloche is used.
"""

import ctypes
import gc
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Samples = list[float]
SPACE = 0.15  # seconds between spaced events


def timed(count: int, work: Callable[[], object], pause: float = 0.0) -> Samples:
    samples = []
    for _ in range(count):
        time.sleep(pause)
        began = time.perf_counter()
        work()
        samples.append((time.perf_counter() - began) * 1e3)
    return samples


def quiet_shell() -> Any:
    """IPython's shell without a history thread (a fork has one thread) and without text on standard output."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    shell = InteractiveShell.instance(
        config=Config(HistoryManager={"enabled": False}, InteractiveShell={"cache_size": 0})
    )
    shell.displayhook.write_format_data = lambda *_: None
    shell.displayhook.write_output_prompt = lambda: None
    shell.displayhook.finish_displayhook = lambda: None
    return shell


def cells() -> Samples:
    shell = quiet_shell()

    def cell() -> None:
        assert shell.run_cell("1+1", store_history=True).result == 2

    timed(50, cell)
    return timed(1000, cell)


# ---- forks: each measurement in a process of its own, loaded, warmed by one cell, collected, frozen, one thread ----


def loaded_shell() -> Any:
    import matplotlib.pyplot
    import numpy
    import pandas

    assert numpy and pandas and matplotlib.pyplot
    shell = quiet_shell()
    shell.run_cell("1+1", store_history=True)
    gc.collect()
    gc.freeze()
    assert len(os.listdir("/proc/self/task")) == 1
    return shell


def collapse_heap() -> None:
    """Puts private memory into huge pages, as far as the machine has them."""
    libc = ctypes.CDLL(None)
    huge, advice = 1 << 21, 25  # MADV_COLLAPSE
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, access, *rest = line.split()
        begin, end = (int(text, 16) for text in span.split("-"))
        begin = -(-begin // huge) * huge
        if access == "rw-p" and len(rest) < 4 and end - begin >= huge:
            libc.madvise(ctypes.c_void_p(begin), ctypes.c_size_t((end - begin) // huge * huge), advice)


def fork_and_run(shell: Any) -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, str(shell.run_cell("1+1", store_history=True).result).encode())
        os._exit(0)
    os.close(writer)
    assert os.read(reader, 10) == b"2"
    os.close(reader)
    os.waitpid(child, 0)


def forks() -> Samples:
    """Fork of an interpreter with everything loaded, until its first cell's result is back."""
    shell = loaded_shell()
    return timed(30, lambda: fork_and_run(shell), SPACE)


def forks_tight() -> Samples:
    shell = loaded_shell()
    return timed(30, lambda: fork_and_run(shell))


def forks_huge() -> Samples:
    shell = loaded_shell()
    collapse_heap()
    return timed(30, lambda: fork_and_run(shell), SPACE)


def parked() -> Samples:
    """Forks that wait; one is woken and its first cell's result comes back."""
    shell = loaded_shell()
    samples = []
    for _ in range(30):
        asks, answers = os.pipe(), os.pipe()
        child = os.fork()
        if child == 0:
            code = os.read(asks[0], 100).decode()
            os.write(answers[1], str(shell.run_cell(code, store_history=True).result).encode())
            os._exit(0)

        def wake(ask: int = asks[1], answer: int = answers[0]) -> None:
            os.write(ask, b"1+1")
            assert os.read(answer, 10) == b"2"

        samples += timed(1, wake, SPACE)
        os.waitpid(child, 0)
        for end in (*asks, *answers):
            os.close(end)
    return samples


def apart(measure: Callable[[], Samples]) -> Callable[[], Samples]:
    """In a child, so that what one measurement loads does not weigh on the next."""

    def measured() -> Samples:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                with os.fdopen(writer, "w") as out:
                    json.dump(measure(), out)
            except BaseException as error:
                print(f"{measure.__name__}: {error!r}", file=sys.stderr)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as told:
            text = told.read()
        os.waitpid(child, 0)
        return json.loads(text)

    return measured


def savefig() -> Samples:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots()
    ax.plot([1, 2, 3, 4], [10, 20, 25, 30])
    ax.set_title("t")
    return timed(20, lambda: fig.savefig(io.BytesIO(), format="png", bbox_inches="tight"))


def shell() -> Samples:
    def echo() -> None:
        done = subprocess.run(["/bin/bash", "-l", "-c", "echo hi"], stdout=subprocess.PIPE, check=True)
        assert done.stdout == b"hi\n"

    return timed(30, echo, SPACE)


def jupyter() -> Samples:
    """A bare ipykernel, asked over ZeroMQ until it is idle again."""
    from jupyter_client.manager import KernelManager

    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)

    def cell() -> None:
        asked = client.execute("1+1")
        while True:
            message = client.get_iopub_msg(timeout=30)
            if message["parent_header"].get("msg_id") != asked:
                continue
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return

    timed(10, cell)
    samples = timed(100, cell)
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    return samples


def main() -> None:
    floors = {
        "fork_ms": apart(forks),
        "fork_tight_ms": apart(forks_tight),
        "fork_huge_ms": apart(forks_huge),
        "parked_ms": apart(parked),
        "cell_ms": apart(cells),
        "savefig_ms": apart(savefig),
        "shell_ms": shell,
        "ipykernel_ms": jupyter,
    }
    samples: dict[str, Samples] = {}
    for name, measure in floors.items():
        try:
            samples[name] = measure()
        except Exception as error:
            print(f"{name}: {error!r}", file=sys.stderr)
    print(json.dumps(samples))


if __name__ == "__main__":
    main()
