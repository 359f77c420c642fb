# SPDX-License-Identifier: Apache-2.0
"""What `cloche doctor` says of a machine on which others live, and what a second server is told."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from support.server import binary, own_server

DOCKER = """
table ip filter {
  chain DOCKER-USER { }
  chain FORWARD { type filter hook forward priority filter; policy drop; jump DOCKER-USER; }
}
"""


def checks(*prefix: str, data: str = "/tmp") -> dict[str, dict[str, Any]]:
    done = subprocess.run(
        [*prefix, binary(), "doctor", "--json", "--data", data],
        capture_output=True, text=True, timeout=120, check=False, env=os.environ | {"CLOCHE_INTERNET": "1"},
    )  # fmt: skip
    return {check["id"]: check for check in json.loads(done.stdout.splitlines()[-1])["checks"]}


def test_a_docker_beside_us_is_told_with_the_remedy() -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".nft") as rules:
        rules.write(DOCKER)
        rules.flush()
        beside = checks("unshare", "-n", "sh", "-c", f'nft -f {rules.name} && exec "$@"', "sh")
        alone = checks("unshare", "-n")
    assert beside["firewall"]["health"] == "less"
    assert "Docker" in beside["firewall"]["detail"]
    assert "DOCKER-USER" in beside["firewall"]["remedy"]
    assert alone["firewall"]["health"] == "ok", alone["firewall"]


def test_security_modules_clock_and_other_servers_are_named() -> None:
    with own_server("--gates", "1", "--pool", "0") as made:
        told = checks(data=str(made.data))
        assert "a server works on" in told["instance"]["detail"]
        assert {"security_modules", "reflinks", "clock"} <= set(told)
        second = subprocess.run(
            [binary(), "serve", "--data", str(made.data), "--listen", "127.0.0.1:0"],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert second.returncode == 1
        assert "another cloche serves the data directory" in second.stdout + second.stderr
        assert made.wire.call("GET", "/health", with_key=False).status == 200


def filesystems() -> list[str]:
    known = Path("/proc/filesystems").read_text()
    return [kind for kind in ("btrfs", "xfs") if f"\t{kind}\n" in known and shutil.which(f"mkfs.{kind}")]


@pytest.mark.parametrize("kind", filesystems() or ["none"])
def test_blocks_are_shared_where_the_filesystem_can(kind: str, tmp_path: Path) -> None:
    if kind == "none":
        pytest.skip("neither btrfs nor xfs can be made and mounted here")
    image, place = tmp_path / "image", tmp_path / "place"
    place.mkdir()
    with open(image, "wb") as file:
        file.truncate(600 << 20)
    made = subprocess.run([f"mkfs.{kind}", "-q", str(image)], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"mkfs.{kind}: {made.stderr[:100]}")
    subprocess.run(["mount", "-o", "loop", str(image), str(place)], check=True)
    try:
        assert "share blocks" in checks(data=str(place))["reflinks"]["detail"]
        assert os.listdir(place) in ([], ["lost+found"])
    finally:
        subprocess.run(["umount", str(place)], check=True)
