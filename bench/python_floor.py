"""What Python itself costs in this template: cells, forks of a loaded interpreter, figures, a shell, a Jupyter kernel.

Runs inside a box (or any place with the template's packages) and prints one JSON object of samples in
milliseconds. Nothing of Cloche is used.
"""

import gc
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

Samples = list[float]


def timed(count: int, work: Callable[[], object], pause: float = 0.0) -> Samples:
    samples = []
    for _ in range(count):
        time.sleep(pause)
        began = time.perf_counter()
        work()
        samples.append((time.perf_counter() - began) * 1e3)
    return samples


def cells() -> Samples:
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    shell.history_manager.enabled = False
    shell.cache_size = 0
    shell.displayhook.write_format_data = lambda *_: None
    shell.displayhook.write_output_prompt = lambda: None
    shell.displayhook.finish_displayhook = lambda: None

    def cell() -> None:
        assert shell.run_cell("1+1", store_history=True).result == 2

    timed(50, cell)
    return timed(1000, cell)


def forks() -> Samples:
    """Fork of an interpreter with everything loaded, until its first cell's result is back."""
    import IPython
    import matplotlib.pyplot
    import numpy
    import pandas

    assert numpy and pandas and matplotlib.pyplot
    shell = IPython.core.interactiveshell.InteractiveShell.instance()
    gc.collect()
    gc.freeze()

    def birth() -> None:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            done = shell.run_cell("1+1", store_history=True)
            os.write(writer, str(done.result).encode())
            os._exit(0)
        os.close(writer)
        assert os.read(reader, 10) == b"2"
        os.close(reader)
        os.waitpid(child, 0)

    return timed(30, birth, 0.05)


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

    return timed(30, echo, 0.05)


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
    floors = {"cell_ms": cells, "fork_ms": forks, "savefig_ms": savefig, "shell_ms": shell, "ipykernel_ms": jupyter}
    samples: dict[str, Samples] = {}
    for name, measure in floors.items():
        try:
            samples[name] = measure()
        except Exception as error:
            print(f"{name}: {error!r}", file=sys.stderr)
    print(json.dumps(samples))


main()
