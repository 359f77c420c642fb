# SPDX-License-Identifier: Apache-2.0
"""What a program finds around it in a box, and what the server says of its use."""

from __future__ import annotations

import e2b
import pytest

from support.either import Either, until


async def test_marker_files_and_names(box: Either) -> None:
    assert await box.files.read("/run/e2b/.E2B_SANDBOX") == "true"
    assert await box.files.read("/run/e2b/.E2B_SANDBOX_ID") == box.sandbox_id
    done = await box.commands.run("hostname; cat /etc/hosts")
    assert done.stdout.startswith("e2b.local\n")
    assert "127.0.0.1 localhost" in done.stdout.replace("\t", " ")


async def test_tools_that_clients_rely_on(box: Either) -> None:
    tools = "git python3 python curl tput ss pgrep ps nice ionice sudo tar gzip"
    done = await box.commands.run(f"for t in {tools}; do command -v $t >/dev/null || echo $t; done")
    assert done.stdout == ""


async def test_the_home_belongs_to_the_user(box: Either) -> None:
    done = await box.commands.run("stat -c '%U:%G' /home/user ~/.bashrc ~/.profile")
    assert done.stdout == "user:user\n" * 3


async def test_only_the_box_is_visible(box: Either) -> None:
    done = await box.commands.run("ps ax -o pid= | wc -l; cat /proc/1/comm; hostname", user="root")
    count = int(done.stdout.split()[0])
    assert count < 30


async def test_the_loopback_device_of_a_box_is_up(box: Either, unique: str) -> None:
    server = await box.commands.run(
        f"mkdir {unique}; cd {unique}; echo hi > f; python3 -m http.server 8123 --bind 127.0.0.1",
        background=True,
    )
    done = await box.commands.run(
        "for n in $(seq 50); do curl -sf http://127.0.0.1:8123/f && exit; sleep 0.1; done; exit 1"
    )
    assert done.stdout == "hi\n"
    await server.kill()


async def test_the_user_of_a_box_may_ping(box: Either) -> None:
    assert (await box.commands.run("ping -c 1 -W 5 127.0.0.1 && id -un")).stdout.endswith("\nuser\n")


async def test_metrics_have_plausible_values(box: Either) -> None:
    async def sampled() -> list[e2b.SandboxMetrics]:
        return await box.get_metrics()

    metrics = await until(sampled, 30, 0.5)
    sample = metrics[-1]
    assert sample.cpu_count >= 1
    assert 0 <= sample.cpu_used_pct <= 100 * sample.cpu_count
    assert 0 < sample.mem_used < sample.mem_total
    assert 0 < sample.disk_used < sample.disk_total
    assert 0 <= sample.mem_cache < sample.mem_total
    assert sample.timestamp.tzinfo is not None


async def test_variables_of_the_box_reach_every_process() -> None:
    made = e2b.Sandbox.create(timeout=60, envs={"FOO": "bar", "QUOTED": "a 'b' \"c\" $d\n"})
    try:
        done = made.commands.run('printf \'%s|%s\' "$FOO" "$QUOTED"')
        assert done.stdout == "bar|a 'b' \"c\" $d\n"
        assert made.commands.run("echo $FOO", envs={"FOO": "mine"}).stdout == "mine\n"
        assert made.commands.run("echo $FOO", user="root").stdout == "bar\n"
    finally:
        made.kill()


async def test_an_absent_gateway_is_an_ordinary_failure() -> None:
    with pytest.raises(e2b.SandboxException, match="Failed to start MCP gateway"):
        e2b.Sandbox.create("base", timeout=60, mcp={"duckduckgo": {}})
