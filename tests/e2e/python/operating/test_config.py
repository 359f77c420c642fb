# SPDX-License-Identifier: Apache-2.0
"""Settings from files and drop-ins, and their reload in a running server."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.server import Server, binary, own_server
from support.waiting import eventually


@pytest.fixture(scope="module")
def made() -> Iterator[Server]:
    server = Server()
    drop_ins = server.home / "cloche.conf.d"
    drop_ins.mkdir()
    (server.home / "cloche.conf").write_text("gates = 1\nlog_level = warn\nteam_boxes_max = 7\n")
    (drop_ins / "50-log.conf").write_text("log_level = info  # wins\n")
    with own_server("--config", str(server.home / "cloche.conf"), "--pool", "0", made=server) as running:
        yield running


def whole_log(server: Server) -> str:
    return (server.home / "log").read_text(errors="replace")


def reload_with(server: Server, text: str, *says: str) -> str:
    """What is logged from the SIGHUP on, once all of `says` is in it."""
    (server.home / "cloche.conf.d/90-test.conf").write_text(text)
    before = len(whole_log(server))
    assert server.process
    server.process.send_signal(signal.SIGHUP)
    eventually(lambda: all(word in whole_log(server)[before:] for word in says), 60, state=lambda: whole_log(server))
    return whole_log(server)[before:]


def cloche(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([binary(), *words], capture_output=True, text=True, timeout=60, check=False)


def test_each_value_is_shown_with_its_source(made: Server) -> None:
    file = made.home / "cloche.conf"
    shown = cloche("config", "show", "--changed", "--config", str(file), "--pool", "0")
    lines = dict(line.split(" = ", 1) for line in shown.stdout.splitlines())
    assert lines["gates"].split() == ["1", "#", f"{file}:1"]
    assert lines["log_level"].split() == ['"info"', "#", f"{file}.d/50-log.conf:1"]
    assert lines["pool"].split() == ["0", "#", "flag", "--pool"]
    assert "boxes_max" not in lines


def test_the_server_prints_every_setting_and_where_it_comes_from(made: Server) -> None:
    file = made.home / "cloche.conf"
    environment = {**os.environ, "CLOCHE_BOXES_MAX": "11", "CLOCHE_ADMIN_TOKEN": "not-to-be-shown"}
    shown = subprocess.run(
        [binary(), "serve", "--print-config", "--config", str(file), "--pool", "0"],
        capture_output=True, text=True, timeout=60, check=True, env=environment,
    )  # fmt: skip
    lines = dict(line.split(" = ", 1) for line in shown.stdout.splitlines())
    reference = (Path(__file__).parents[4] / "docs/settings.md").read_text()
    assert set(lines) == set(re.findall(r"^\| `(\w+)` \|", reference, re.MULTILINE))
    sources = {name: rest.rsplit(" # ", 1)[1] for name, rest in lines.items()}
    assert {"gates": f"{file}:1", "log_level": f"{file}.d/50-log.conf:1", "team_boxes_max": f"{file}:3"} == {
        name: source for name, source in sources.items() if str(file) in source
    }
    assert sources["pool"] == "flag --pool"
    assert (lines["boxes_max"].split()[0], sources["boxes_max"]) == ("11", "environment CLOCHE_BOXES_MAX")
    assert sources["checkpoint_jobs"] == "default"
    assert "not-to-be-shown" not in shown.stdout


def test_a_check_names_file_line_value_and_remedy(tmp_path: Path) -> None:
    file = tmp_path / "cloche.conf"
    file.write_text("gates = 1\n")
    assert cloche("config", "check", str(file)).returncode == 0
    file.write_text("gates = 1\n\nteam_boxs_max = 3\npool = -1\n")
    checked = cloche("config", "check", str(file))
    assert checked.returncode == 1
    assert f"{file}:3: no setting 'team_boxs_max'; did you mean 'team_boxes_max'?" in checked.stderr
    assert f"{file}:4: 'pool' must be a whole number from 0 to 1000, not '-1'" in checked.stderr


def test_a_reload_changes_limits_of_warden_and_gate(made: Server) -> None:
    told = reload_with(
        made, "team_boxes_max = 1\naccess_log_every = 1\nauth_failures_per_minute = 1\n", "settings reloaded; 3 changed"
    )
    assert "setting 'team_boxes_max' is '1' now, no longer '7'" in told
    box = made.wire.create(timeout=300)
    try:
        refused = made.wire.call("POST", "/sandboxes", {"templateID": "base"})
        assert refused.status == 429, refused.body
        assert "/sandboxes" in whole_log(made)  # the access log of a gate
        wrong = {"X-API-Key": "e2b_" + "0" * 40}
        found = [made.wire.call("GET", "/v2/sandboxes", headers=wrong, with_key=False).status for _ in range(4)]
        assert 429 in found, found
        reload_with(made, "team_boxes_max = 2\n", "'team_boxes_max' is '2' now")
        made.wire.create(timeout=300).kill()
    finally:
        box.kill()


def test_what_needs_a_restart_is_named(made: Server) -> None:
    told = reload_with(made, "id_base = 600000000\nadmin_token = other\n", "settings reloaded; ")
    assert "setting 'id_base' needs a restart to become '600000000'; it stays '536870912'" in told
    assert "admin_token" not in told  # the flag wins


def test_a_wrong_file_changes_nothing_also_for_roles_that_start_again(made: Server) -> None:
    reload_with(made, "team_boxes_max = 2\n", "settings reloaded; ")
    told = reload_with(made, "team_boxes_max = 3\npool = lots\n", "settings are not reloaded")
    assert "90-test.conf:2: 'pool' must be a whole number from 0 to 1000, not 'lots'" in told
    gone = (*made.gates(), *made.wardens())
    for role in gone:
        os.kill(role, signal.SIGKILL)
    eventually(
        lambda: made.wire.call("GET", "/v2/sandboxes").status == 200 and not set(gone) & set(made.gates()),
        state=lambda: whole_log(made),
    )
    assert "can't start" not in whole_log(made)
    (made.home / "cloche.conf.d/90-test.conf").unlink()
