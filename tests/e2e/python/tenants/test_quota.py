# SPDX-License-Identifier: Apache-2.0
"""What a team keeps on the disk has a limit, another team has its own, and the disk keeps a reserve."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.recipes import Order, path_of
from support.server import Server, binary
from support.state import leaked, look
from support.tenants import Tenants, cloche
from support.waiting import eventually
from support.wire import Answer, RawBox, Wire


def team_of(tenants: Tenants) -> str:
    return next(line.split()[0] for line in cloche(tenants.server, "team", "list").splitlines() if "Attacker" in line)


def limit(tenants: Tenants, *words: str) -> None:
    cloche(tenants.server, "team", "limit", team_of(tenants), *words)


@pytest.fixture(autouse=True)
def unlimited(request: pytest.FixtureRequest) -> Iterator[None]:
    """Limits of one test are not those of the next."""
    yield
    if "tenants" in request.fixturenames:
        limit(request.getfixturevalue("tenants"), "--storage", "0", "--paused", "0", "--snapshots", "0")


def pause(box: RawBox) -> Answer:
    return box.wire.call("POST", f"/sandboxes/{box.id}/pause")


def test_paused_sandboxes_have_a_number(tenants: Tenants) -> None:
    limit(tenants, "--paused", "1")
    first, second = (tenants.attacker.create(timeout=120) for _ in range(2))
    other = tenants.victim.create(timeout=120)
    try:
        assert pause(first).status == 204
        refused = pause(second)
        assert refused.status == 429, refused.body
        assert b"1 paused sandboxes and may have 1" in refused.body, refused.body
        assert "Retry-After" not in refused.headers
        assert second.run("echo alive")[1] == "alive\n"
        assert pause(other).status == 204  # another team's
        assert first.wire.call("POST", f"/sandboxes/{first.id}/connect", {"timeout": 60}).status == 201
        assert pause(second).status == 204
    finally:
        for box in (first, second, other):
            box.kill()


def test_a_sandbox_whose_time_is_up_is_kept_over_the_limit(tenants: Tenants) -> None:
    keeper = tenants.attacker.create(timeout=120, autoPause=True)
    last = tenants.attacker.create(timeout=120)
    try:
        limit(tenants, "--paused", "1")
        assert pause(last).status == 204
        path = f"/sandboxes/{keeper.id}"
        assert tenants.attacker.call("POST", f"{path}/timeout", {"timeout": 1}).status == 204
        eventually(lambda: tenants.attacker.call("GET", path).json()["state"] == "paused", 30)
        answer = tenants.attacker.call("POST", "/sandboxes", {"templateID": "base", "timeout": 60, "autoPause": True})
        assert answer.status == 429, answer.body
        assert b"2 paused sandboxes and may have 1" in answer.body, answer.body
        plain = tenants.attacker.create(timeout=60)  # one that ends at its timeout takes nothing for long
        plain.kill()
        assert tenants.attacker.call("POST", f"{path}/connect", {"timeout": 60}).status == 201
        assert keeper.run("echo alive")[1] == "alive\n"
    finally:
        keeper.kill()
        last.kill()


def test_snapshots_have_a_number(tenants: Tenants) -> None:
    box = tenants.attacker.create(timeout=120)
    made: list[str] = []
    try:
        limit(tenants, "--snapshots", "2")
        for _ in range(2):
            shot = tenants.attacker.call("POST", f"/sandboxes/{box.id}/snapshots", {})
            assert shot.status == 201, shot.body
            made.append(shot.json()["snapshotID"])
        refused = tenants.attacker.call("POST", f"/sandboxes/{box.id}/snapshots", {})
        assert refused.status == 429, refused.body
        assert b"2 snapshots and may have 2" in refused.body, refused.body
        assert tenants.attacker.call("DELETE", f"/templates/{made.pop().split(':')[0]}").status in (200, 204)
        again = tenants.attacker.call("POST", f"/sandboxes/{box.id}/snapshots", {})
        assert again.status == 201, again.body
        made.append(again.json()["snapshotID"])
    finally:
        for name in made:
            tenants.attacker.call("DELETE", f"/templates/{name.split(':')[0]}")
        box.kill()


def test_paused_sandboxes_and_snapshots_have_a_size(tenants: Tenants) -> None:
    box, next_box = (tenants.attacker.create(timeout=120) for _ in range(2))
    snapshot = ""
    try:
        limit(tenants, "--storage", "40")
        assert box.run("head -c 50000000 /dev/urandom > /home/user/filled && sync", user="root")[0] == 0
        shot = tenants.attacker.call("POST", f"/sandboxes/{box.id}/snapshots", {})
        assert shot.status == 201, shot.body
        snapshot = shot.json()["snapshotID"].split(":")[0]
        refused = pause(next_box)
        assert refused.status == 429, refused.body
        assert b"may keep 40" in refused.body, refused.body
        assert tenants.attacker.call("DELETE", f"/templates/{snapshot}").status in (200, 204)
        assert pause(box).status == 204
        refused = pause(next_box)  # its disk is counted
        assert refused.status == 429, refused.body
        assert b"may keep 40" in refused.body, refused.body
    finally:
        box.kill()
        next_box.kill()


FILL = "head -c 50000000 /dev/urandom > /home/user/filled && sync"


def fork(box: RawBox, count: int = 1) -> Answer:
    return box.wire.call("POST", f"/sandboxes/{box.id}/fork", {"count": count, "timeout": 60}, timeout=120)


def kill_all(wire: Wire) -> None:
    for row in wire.call("GET", "/v2/sandboxes?state=running,paused").json():
        wire.call("DELETE", f"/sandboxes/{row['sandboxID']}")


def test_what_forks_stand_on_counts(tenants: Tenants) -> None:
    box, other = (tenants.attacker.create(timeout=120) for _ in range(2))
    try:
        limit(tenants, "--storage", "40")
        assert box.run(FILL, user="root")[0] == 0
        assert fork(box, 2).status == 201
        for refused in (fork(box), fork(other), pause(other)):
            assert refused.status == 429, refused.body
            assert b"may keep 40" in refused.body, refused.body
        kept = {box.id, other.id}
        for row in tenants.attacker.call("GET", "/v2/sandboxes?state=running").json():
            if row["sandboxID"] not in kept:
                tenants.attacker.call("DELETE", f"/sandboxes/{row['sandboxID']}")
        eventually(lambda: pause(other).status == 204, 20)  # with the last fork its files go
    finally:
        kill_all(tenants.attacker)


def test_forks_that_pause_themselves_need_room_for_it(tenants: Tenants) -> None:
    box = tenants.attacker.create(timeout=120, autoPause=True)
    last = tenants.attacker.create(timeout=120)
    try:
        limit(tenants, "--paused", "1")
        assert pause(last).status == 204
        refused = fork(box, 2)
        assert b"1 paused sandboxes and may have 1" in refused.body, (refused.status, refused.body)
        assert len(tenants.attacker.call("GET", "/v2/sandboxes?state=running").json()) == 1
    finally:
        kill_all(tenants.attacker)


def at_once(boxes: list[RawBox], act: Callable[[RawBox], Answer]) -> list[int]:
    with ThreadPoolExecutor(len(boxes)) as pool:
        return sorted(answer.status for answer in pool.map(act, boxes))


def test_pauses_at_once_are_counted_before_they_are_done(tenants: Tenants) -> None:
    boxes = [tenants.attacker.create(timeout=120) for _ in range(5)]
    try:
        for box in boxes:  # so that a dump takes a while
            assert box.run("head -c 30000000 /dev/urandom > /dev/shm/bytes", user="root")[0] == 0
        limit(tenants, "--storage", "100")
        statuses = at_once(boxes, pause)
        assert statuses[0] == 204
        assert 429 in statuses, statuses
    finally:
        kill_all(tenants.attacker)


def test_snapshots_at_once_are_counted_before_they_are_done(tenants: Tenants) -> None:
    boxes = [tenants.attacker.create(timeout=120) for _ in range(4)]
    try:
        limit(tenants, "--snapshots", "1")
        statuses = at_once(boxes, lambda box: box.wire.call("POST", f"/sandboxes/{box.id}/snapshots", {}))
        assert statuses == [201, 429, 429, 429]
    finally:
        for row in tenants.attacker.call("GET", "/snapshots").json():
            tenants.attacker.call("DELETE", f"/templates/{row['snapshotID'].split(':')[0]}")
        kill_all(tenants.attacker)


def test_layers_of_templates_count(tenants: Tenants) -> None:
    box = tenants.attacker.create(timeout=120)
    order = Order(tenants.attacker, f"layers-{os.getpid()}").request()
    step = {"type": "RUN", "args": ["head -c 50000000 /dev/urandom > /filled", "root"]}
    try:
        order.start(step).ready()
        limit(tenants, "--storage", "40")
        other = tenants.attacker.call("POST", "/v3/templates", {"name": f"layers-more-{os.getpid()}"})
        for refused in (pause(box), other):
            assert refused.status == 429, refused.body
            assert b"may keep 40" in refused.body, refused.body
        assert tenants.attacker.call("DELETE", f"/templates/{order.template}").status in (200, 204)
        refused = pause(box)  # nothing needs the layer, but it is there
        assert refused.status == 429, refused.body
        assert b"may keep 40" in refused.body, refused.body
        for layer in (tenants.server.data / "layers").iterdir():  # as after a while: what is new may be in use
            os.utime(layer, (time.time() - 3600,) * 2)
        eventually(lambda: pause(box).status == 204, 30)
    finally:
        kill_all(tenants.attacker)


def upload(order: Order, archive: bytes, *, chunked: bool = False) -> Answer:
    key = hashlib.sha256(archive).hexdigest()
    link = order.wire.call("GET", f"/templates/{order.template}/files/{key}").json()["url"]
    sent = iter([archive]) if chunked else archive
    headers = {"Transfer-Encoding": "chunked"} if chunked else {}
    return order.wire_of(link).call("PUT", path_of(link), sent, headers, with_key=False, chunked=False)


def test_uploads_count_against_the_teams_storage(tenants: Tenants) -> None:
    build = Order(tenants.attacker, f"quota-{os.getpid()}").request()
    other = Order(tenants.victim, f"quota-{os.getpid()}").request()
    used = sum(entry.stat().st_size for entry in (tenants.server.data / "files").rglob("*"))
    assert used < 1 << 20
    limit(tenants, "--storage", "8")
    assert upload(build, b"a" * (5 << 20)).status == 200
    refused = upload(build, b"b" * (5 << 20))
    assert refused.status == 429, refused.body
    assert b"may keep 8" in refused.body, refused.body
    assert upload(build, b"a" * (5 << 20)).status in (200, 429)  # the same again takes no more than it had
    assert upload(build, b"c" * (2 << 20)).status == 200
    assert upload(other, b"b" * (5 << 20)).status == 200
    kept = sum(entry.stat().st_size for entry in (tenants.server.data / "files" / team_of(tenants)).iterdir())
    assert kept == 7 << 20
    limit(tenants, "--storage", "0")
    for _ in range(40):  # nothing is taken for long by what was refused
        assert upload(build, b"d" * 1000).status == 200


def small_disk(server: Server, mib: int) -> None:
    """The data directory on a filesystem of its own."""
    image = server.home / "disk.ext4"
    with open(image, "wb") as file:
        file.truncate(mib << 20)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(image)], check=True)
    server.data.mkdir()
    subprocess.run(["mount", "-o", "loop", str(image), str(server.data)], check=True)


def test_the_disk_keeps_a_reserve() -> None:
    server = Server()
    small_disk(server, 2048)
    filler = server.data / "filler"
    try:
        server.start("--pool", "0", "--disks-ready", "0")
        wire = server.wire
        box = wire.create(timeout=120)
        disk = os.statvfs(server.data)
        reserve = disk.f_blocks * disk.f_frsize // 20
        with open(filler, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, disk.f_bavail * disk.f_frsize - reserve // 2)
        for answer, setting in (
            (pause(box), b"disk_reserve_mb"),
            (wire.call("POST", f"/sandboxes/{box.id}/snapshots", {}), b"disk_builds_mb"),
            (wire.call("POST", f"/sandboxes/{box.id}/fork", {"count": 1, "timeout": 60}), b"disk_creates_mb"),
            (wire.call("POST", "/sandboxes", {"templateID": "base", "timeout": 60}), b"disk_creates_mb"),
            (wire.call("POST", "/v3/templates", {"name": "full"}), b"disk_builds_mb"),
        ):
            assert answer.status == 507, (answer.status, answer.body)
            assert setting in answer.body, (answer.status, answer.body)
        assert box.run("echo alive")[1] == "alive\n"
        filler.unlink()
        assert pause(box).status == 204
        assert wire.call("POST", f"/sandboxes/{box.id}/connect", {"timeout": 60}).status == 201
        box.kill()
        server.stop()
    finally:
        if server.process and server.process.poll() is None:
            server.stop()
        subprocess.run(["umount", "--lazy", str(server.data)], check=True)
        server.close()


def test_a_data_directory_that_is_open_to_others_is_closed() -> None:
    server = Server()
    before = look(str(server.data))
    server.data.mkdir(mode=0o755)
    (server.data / "layers").mkdir()
    (server.data / "layers").chmod(0o777)
    os.chmod(server.data, 0o755)
    try:
        server.start("--pool", "0")
        assert stat.S_IMODE(server.data.stat().st_mode) == 0o700
        assert stat.S_IMODE((server.data / "layers").stat().st_mode) & 0o022 == 0
        assert "access of others removed" in server.log()
    finally:
        server.close()
    assert leaked(before, str(server.data)) == set()


@pytest.mark.parametrize("how", ["foreign", "link", "link below", "foreign below"])
def test_a_data_directory_that_is_not_the_servers_is_refused(how: str, tmp_path: Path) -> None:
    real = tmp_path / "real"
    (real / "boxes").mkdir(parents=True)
    data = real
    if how == "foreign":
        os.chown(real, 12345, 12345)
    elif how == "foreign below":
        os.chown(real / "boxes", 12345, 12345)
    elif how == "link":
        data = tmp_path / "link"
        data.symlink_to(real)
    else:
        (real / "boxes").rmdir()
        (real / "boxes").symlink_to(tmp_path)
    command = [binary(), "serve", "--listen", "127.0.0.1:0", "--data", str(data), "--exit-with", str(os.getpid())]
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        said, _none = process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        process.send_signal(2)
        said, _none = process.communicate(timeout=60)
        raise AssertionError(f"it runs:\n{said.decode()[-500:]}") from None
    assert process.returncode != 0
    assert time.monotonic() - began < 20
    assert (b"belongs to user" if "foreign" in how else b"symbolic link") in said, said
