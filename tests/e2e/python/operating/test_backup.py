# SPDX-License-Identifier: Apache-2.0
"""`cloche backup` while the server works, and `cloche restore` into an empty directory, served by another server."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.paused import connect, pause, state
from support.server import Server, binary, own_server
from support.tenants import cloche
from support.wire import RawBox, Wire


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with own_server("--gates", "1", "--pool", "1") as made:
        yield made


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([binary(), *words], capture_output=True, text=True, timeout=300, check=False)


def test_what_is_kept_comes_back_on_another_server(server: Server, tmp_path: Path) -> None:
    counting = server.wire.create("code-interpreter-v1", timeout=3600)
    counting.execute("x = 41")
    counting.run("echo kept > /home/user/file")
    assert pause(counting).status == 204
    running = server.wire.create(timeout=3600)
    running.run("echo gone > /home/user/file")
    made = server.wire.call("POST", f"/sandboxes/{running.id}/snapshots", {"name": "a-snapshot"})
    assert made.status == 201, made.body
    snapshot = made.json()["snapshotID"]
    cloche(server, "volume", "create", "a-volume")
    note = tmp_path / "note"
    note.write_text("in the volume")
    cloche(server, "volume", "cp", str(note), "a-volume:/note")
    value = server.wire.call("POST", "/secrets", {"name": "TOKEN_OF_A_TEST", "value": "sesame"})
    assert value.status in (200, 201), value.body

    stop = threading.Event()

    def churn() -> None:  # rows and files come and go meanwhile
        while not stop.is_set():
            box = server.wire.create(timeout=60)
            pause(box)
            connect(box)
            box.kill()

    worker = threading.Thread(target=churn)
    worker.start()
    try:
        done = run("backup", str(tmp_path / "backup"), "--with-key", "--data", str(server.data))
    finally:
        stop.set()
        worker.join()
    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "backup/manifest.json").read_text())
    assert manifest["sandboxes"] >= 1
    assert manifest["volumes"] == 1
    assert oct((tmp_path / "backup").stat().st_mode & 0o777) == "0o700"
    note.write_text("changed later")
    cloche(server, "volume", "cp", str(note), "a-volume:/note")  # the filesystem is not frozen any more

    second = Server()
    done = run("restore", str(tmp_path / "backup"), "--data", str(second.data))
    assert done.returncode == 0, done.stderr
    second.key = server.key
    server.stop()  # both would give the same user ids to boxes
    with own_server("--gates", "1", "--pool", "0", made=second) as restored:
        wire = Wire(restored.url, server.key)
        box = RawBox(wire, counting.made)
        assert state(box) == "paused"
        resumed = connect(box)
        assert resumed.status == 201, resumed.body
        events = box.execute("x + 1")
        assert "42" in json.dumps(events)
        assert box.run("cat /home/user/file")[1] == "kept\n"
        box.kill()
        ended = wire.call("GET", f"/sandboxes/{running.id}")
        assert ended.status == 404
        assert "not in the backup" in ended.text
        again = wire.create(snapshot, timeout=60)
        assert again.run("cat /home/user/file")[1] == "gone\n"
        again.kill()
        out = tmp_path / "out"
        cloche(restored, "volume", "cp", "a-volume:/note", str(out))
        assert out.read_text() == "in the volume"
        checked = cloche(restored, "secret", "check")
        assert "1" in checked


def test_volumes_that_are_directories_are_named_as_left_out(tmp_path: Path) -> None:
    """As docs/backup.md decides: their filesystem is the operator's, and so is its backup; nobody is misled."""
    with own_server("--gates", "1", "--pool", "0", "--volumes-backing", "directory") as made:
        cloche(made, "volume", "create", "a-tree")
        note = tmp_path / "note"
        note.write_text("in the tree")
        cloche(made, "volume", "cp", str(note), "a-tree:/note")
        done = run("backup", str(tmp_path / "backup"), "--data", str(made.data))
        assert done.returncode == 0, done.stderr
        assert f"1 volumes are no images in {made.data}/volumes and were left out" in done.stdout
        manifest = json.loads((tmp_path / "backup/manifest.json").read_text())
        assert (manifest["volumes"], manifest["volumesLeftOut"]) == (0, 1)
        kept = [name for _, _, files in os.walk(tmp_path / "backup") for name in files]
        assert "note" not in kept
        cloche(made, "volume", "backup", "a-tree", str(tmp_path / "a-tree.tar.zst"))
        assert (tmp_path / "a-tree.tar.zst").stat().st_size > 0


def test_a_restore_refuses_what_is_not_whole_and_never_mixes(tmp_path: Path) -> None:
    (tmp_path / "half").mkdir()
    done = run("restore", str(tmp_path / "half"), "--data", str(tmp_path / "data"))
    assert done.returncode == 1
    assert "no backup, or one that was interrupted" in done.stderr
    (tmp_path / "half/manifest.json").write_text('{"format": 99, "data": "/x"}')
    done = run("restore", str(tmp_path / "half"), "--data", str(tmp_path / "data"))
    assert "written by a newer cloche" in done.stderr
    (tmp_path / "half/manifest.json").write_text('{"format": 1, "data": "/x", "masterKey": false}')
    (tmp_path / "data").mkdir(exist_ok=True)
    (tmp_path / "data/something").write_text("x")
    done = run("restore", str(tmp_path / "half"), "--data", str(tmp_path / "data"))
    assert done.returncode == 1
    assert "is not empty (something is there)" in done.stderr
    assert os.listdir(tmp_path / "data") == ["something"]
    done = run("backup", str(tmp_path / "data"), "--data", str(tmp_path / "nothing"))
    assert done.returncode == 1
    assert "neither a data directory nor a server" in done.stderr
