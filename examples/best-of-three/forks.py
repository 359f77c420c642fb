# SPDX-License-Identifier: Apache-2.0
"""Best of three: a prepared sandbox is forked, each fork tries another solution, the best one goes on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from cloche import Sandbox

# Done once, in the first sandbox: forks have its memory, so that none of them does it again.
PREPARE = """
import numpy as np

noise = np.random.default_rng(3).normal(0, 0.15, 60)
x = np.linspace(0, 3, 60)
y = np.sin(2 * x) + noise
train, test = slice(0, None, 2), slice(1, None, 2)

def error(model):
    return float(np.sqrt(np.mean((model(x[test]) - y[test]) ** 2)))
"""
# What three answers of a model would be.
CANDIDATES = {
    "a straight line": "model = np.poly1d(np.polyfit(x[train], y[train], 1)); error(model)",
    "a polynomial of degree 5": "model = np.poly1d(np.polyfit(x[train], y[train], 5)); error(model)",
    "the mean": "mean = y[train].mean(); model = lambda x: np.full_like(x, mean); error(model)",
}


def attempt(name: str, box: Sandbox) -> float:
    run = box.run_code(CANDIDATES[name])
    return float("inf") if run.error else float(run.text or "inf")


def main() -> None:
    with Sandbox.create() as first:
        first.run_code(PREPARE)
        copies = first.fork(count=len(CANDIDATES), timeout=120)
    # A copy that could not be made is an exception in the list: then there is one candidate less.
    forks = {name: copy for name, copy in zip(CANDIDATES, copies, strict=True) if isinstance(copy, Sandbox)}
    try:
        with ThreadPoolExecutor() as pool:
            errors = dict(zip(forks, pool.map(attempt, forks, forks.values()), strict=True))
        for name, error in errors.items():
            print(f"{name}: error {error:.3f}")
        best = min(errors, key=errors.__getitem__)
        # The model is still a variable in its fork.
        answer = forks[best].run_code("round(float(model(np.array([1.5]))[0]), 2)").text
        print(f"best: {best}, which says {answer} at 1.5")
    finally:
        for fork in forks.values():
            fork.kill()


if __name__ == "__main__":
    main()
