# SPDX-License-Identifier: Apache-2.0
"""Examples without a model, each as its README says."""

from __future__ import annotations

import re
import subprocess
import uuid
from pathlib import Path

import e2b
from programs import copied, installed, python, typescript

PNG = b"\x89PNG\r\n\x1a\n"


def test_csv_chart_prints_the_table_saves_the_picture_and_has_the_numbers(tmp_path: Path) -> None:
    folder = copied("csv-chart", tmp_path)
    out = python(folder / "analyse.py", "made.png")
    assert re.search(r"^west +3 +1345$", out, re.M), out
    assert "chart: Sales by region: west 1345, east 1330, north 1240, south 1215" in out
    assert (folder / "made.png").read_bytes().startswith(PNG)


def test_lasting_agent_goes_on_in_the_box_of_its_first_run(tmp_path: Path) -> None:
    program = copied("lasting-agent", tmp_path) / "agent.py"
    name = f"agent-{uuid.uuid4().hex[:8]}"
    query = e2b.SandboxQuery(metadata={"agent": name})
    try:
        first = python(program, name)
        (left,) = e2b.Sandbox.list(query).next_items()
        assert left.state == e2b.SandboxState.PAUSED
        second = python(program, name)
        assert first.splitlines() == [
            f"{name} begins in {left.sandbox_id}",
            "step 1: 25 primes, the last one is 97",
            "step 2: 46 primes, the last one is 199",
            "step 3: 62 primes, the last one is 293",
        ]
        assert second.splitlines() == [
            f"{name} goes on in {left.sandbox_id}, which was paused",
            "step 4: 78 primes, the last one is 397",
            "step 5: 95 primes, the last one is 499",
            "step 6: 109 primes, the last one is 599",
        ]
    finally:
        for box in e2b.Sandbox.list(query).next_items():
            e2b.Sandbox.kill(box.sandbox_id)


def test_best_of_three_keeps_the_fork_with_the_smallest_error(tmp_path: Path) -> None:
    out = python(copied("best-of-three", tmp_path) / "forks.py")
    errors = dict(re.findall(r"^(.+): error ([0-9.]+)$", out, re.M))
    assert len(errors) == 3, out
    assert min(errors, key=lambda name: float(errors[name])) == "a polynomial of degree 5"
    assert re.search(r"^best: a polynomial of degree 5, which says 0\.[0-3]\d* at 1.5$", out, re.M), out


def test_mcp_tools_have_a_state_a_picture_and_a_chart(tmp_path: Path) -> None:
    folder = copied("mcp", tmp_path)
    out = python(folder / "tools.py", "made.png", packages=installed("mcp"))
    assert "run_code" in out.splitlines()[0], out
    assert "chart: [9" in out and ", 81" in out, out
    assert "command: Python 3." in out
    assert (folder / "made.png").read_bytes().startswith(PNG)


def test_web_preview_prints_a_link_at_which_the_application_answers(tmp_path: Path) -> None:
    out = typescript(copied("web-preview", tmp_path) / "preview.ts")
    found = re.search(r"^open (http://8000-([a-z0-9]+)\.\S+/)$", out, re.M)
    assert found, out
    try:
        # curl knows that every name below localhost is the machine itself.
        page = subprocess.run(["curl", "-sS", "-m", "60", found[1]], capture_output=True, text=True, check=True).stdout
        assert "Hello from a box" in page and re.search(r"Visit \d+ of /<", page), page
    finally:
        e2b.Sandbox.kill(found[2])


def test_template_server_answers_in_a_new_box_at_once(tmp_path: Path) -> None:
    out = typescript(copied("template-server", tmp_path) / "build.ts")
    assert out.rstrip().endswith("Hello: 1000000 roots are known, that of 144 is 12"), out
