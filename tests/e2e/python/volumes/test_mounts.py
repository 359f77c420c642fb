# SPDX-License-Identifier: Apache-2.0
"""Volumes inside sandboxes: mounted by name, shared, and there after everything that happens to a sandbox."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import e2b
import pytest

from support.recipes import Order, fresh, order
from support.recipes import run as run_step
from support.server import Server, own_server
from support.tenants import Tenants, two_teams
from support.waiting import eventually
from support.wire import Wire

PATH = "/mnt/data"


@pytest.fixture
def volume(unique: str) -> Iterator[e2b.Volume]:
    made = e2b.Volume.create(unique)
    yield made
    eventually(lambda: gone(made.volume_id))


def gone(volume: str) -> bool:
    """Delete it once the sandboxes of the test are gone."""
    try:
        e2b.Volume.destroy(volume)
    except e2b.SandboxException:
        return False
    return True


@pytest.fixture
def boxes(volume: e2b.Volume) -> Iterator[list[e2b.Sandbox]]:
    made: list[e2b.Sandbox] = []
    yield made
    for one in made:
        one.kill()


def mounted(boxes: list[e2b.Sandbox], volume: e2b.Volume, path: str = PATH, **more: object) -> e2b.Sandbox:
    box = e2b.Sandbox.create(volume_mounts={path: volume}, timeout=120, **more)
    boxes.append(box)
    return box


def run(box: e2b.Sandbox, command: str, user: str = "user") -> str:
    return str(box.commands.run(command, user=user).stdout).strip()


def test_the_example_of_the_documentation_works(volume: e2b.Volume, boxes: list[e2b.Sandbox]) -> None:
    box = mounted(boxes, volume)
    box.files.write(f"{PATH}/hello.txt", "Hello, world!")
    assert box.files.read(f"{PATH}/hello.txt") == "Hello, world!"
    assert run(box, f"cat {PATH}/hello.txt") == "Hello, world!"
    again = mounted(boxes, volume, "/somewhere/else")
    assert again.files.read("/somewhere/else/hello.txt") == "Hello, world!"


def test_mounts_are_told_back_in_get_and_list(volume: e2b.Volume, boxes: list[e2b.Sandbox], wire: Wire) -> None:
    box = mounted(boxes, volume)
    want = [{"name": volume.name, "path": PATH}]
    assert wire.call("GET", f"/sandboxes/{box.sandbox_id}").json()["volumeMounts"] == want
    listed = wire.call("GET", "/v2/sandboxes").json()
    assert [one["volumeMounts"] for one in listed if one["sandboxID"] == box.sandbox_id] == [want]


def test_owners_and_modes_are_the_same_in_all(volume: e2b.Volume, boxes: list[e2b.Sandbox]) -> None:
    one, two = mounted(boxes, volume), mounted(boxes, volume)
    run(one, f"echo x > {PATH}/f && chmod 640 {PATH}/f")
    run(one, f"echo y > {PATH}/r && chown 7:8 {PATH}/r", "root")
    assert run(two, f"stat -c '%u:%g %a' {PATH}/f") == run(one, f"stat -c '%u:%g %a' {PATH}/f")
    assert run(two, f"stat -c '%u:%g %a' {PATH}/r") == "7:8 644"
    assert "nosuid" in run(two, f"grep ' {PATH} ' /proc/mounts")


def test_two_boxes_write_at_once_and_lose_nothing(volume: e2b.Volume, boxes: list[e2b.Sandbox]) -> None:
    pair = [mounted(boxes, volume), mounted(boxes, volume)]
    with ThreadPoolExecutor(2) as pool:
        list(
            pool.map(
                lambda at: run(pair[at], f"for i in $(seq 300); do echo {at}-$i >> {PATH}/log; done"),
                range(2),
            )
        )
    lines = set(run(pair[0], f"cat {PATH}/log").splitlines())
    assert lines == {f"{at}-{i}" for at in range(2) for i in range(1, 301)}


def test_the_agent_watches_a_volume_for_what_others_write(volume: e2b.Volume, boxes: list[e2b.Sandbox]) -> None:
    one, two = mounted(boxes, volume), mounted(boxes, volume)
    watch = one.files.watch_dir(PATH)
    two.files.write(f"{PATH}/seen", "x")
    names: list[str] = []

    def seen() -> bool:
        names.extend(event.name for event in watch.get_new_events())
        return "seen" in names

    eventually(seen)
    watch.stop()


def test_an_open_file_survives_pause_and_resume(volume: e2b.Volume, boxes: list[e2b.Sandbox]) -> None:
    box, other = mounted(boxes, volume), mounted(boxes, volume)
    box.commands.run(f"cd {PATH} && exec python3 -c 'WRITER'".replace("WRITER", WRITER), background=True, timeout=0)
    eventually(lambda: run(other, f"cat {PATH}/ticks | wc -l") != "0")
    box.pause()
    before = int(run(other, f"cat {PATH}/ticks | wc -l"))
    run(other, f"echo other >> {PATH}/ticks")
    box.connect()
    eventually(lambda: int(run(other, f"cat {PATH}/ticks | wc -l")) > before + 2)
    assert "other" in run(other, f"cat {PATH}/ticks").splitlines()
    assert box.files.read(f"{PATH}/ticks")


WRITER = (
    'import time\nf = open("ticks", "a")\n'
    "while True:\n    print(time.time(), file=f, flush=True)\n    time.sleep(0.05)\n"
)


def test_a_pause_without_memory_keeps_the_mount(volume: e2b.Volume, boxes: list[e2b.Sandbox], wire: Wire) -> None:
    box = mounted(boxes, volume)
    box.files.write(f"{PATH}/kept", "1")
    assert wire.call("POST", f"/sandboxes/{box.sandbox_id}/pause", {"memory": False}).status == 204
    box.connect()
    assert box.files.read(f"{PATH}/kept") == "1"


def test_a_fork_shares_the_volume(volume: e2b.Volume, boxes: list[e2b.Sandbox], wire: Wire) -> None:
    box = mounted(boxes, volume)
    box.commands.run(f"cd {PATH} && exec python3 -c 'WRITER'".replace("WRITER", WRITER), background=True, timeout=0)
    answer = wire.call("POST", f"/sandboxes/{box.sandbox_id}/fork", {"timeout": 60})
    assert answer.status == 201, answer.body
    copy = e2b.Sandbox.connect(answer.json()[0]["sandbox"]["sandboxID"])
    boxes.append(copy)
    copy.files.write(f"{PATH}/of-copy", "1")
    assert box.files.read(f"{PATH}/of-copy") == "1"
    got = wire.call("GET", f"/sandboxes/{copy.sandbox_id}").json()
    assert got["volumeMounts"] == [{"name": volume.name, "path": PATH}]


def test_a_snapshot_keeps_the_mount_and_not_the_files(volume: e2b.Volume, boxes: list[e2b.Sandbox], wire: Wire) -> None:
    box = mounted(boxes, volume)
    box.files.write(f"{PATH}/first", "1")
    shot = wire.call("POST", f"/sandboxes/{box.sandbox_id}/snapshots", {}).json()["snapshotID"]
    box.files.remove(f"{PATH}/first")
    box.files.write(f"{PATH}/second", "2")
    of_it = e2b.Sandbox.create(shot, timeout=60)
    boxes.append(of_it)
    assert run(of_it, f"ls {PATH}") == "second"
    assert wire.call("GET", f"/sandboxes/{of_it.sandbox_id}").json()["volumeMounts"][0]["path"] == PATH
    other = e2b.Volume.create(f"{volume.name}-2")
    more = e2b.Sandbox.create(shot, timeout=60, volume_mounts={"/mnt/more": other})
    boxes.append(more)
    more.files.write("/mnt/more/x", "1")
    assert run(more, f"ls {PATH} /mnt/more") == f"{PATH}:\nsecond\n\n/mnt/more:\nx"
    for one in (box, of_it, more):
        one.kill()
    eventually(lambda: gone(volume.volume_id))
    eventually(lambda: gone(other.volume_id))
    refused = wire.call("POST", "/sandboxes", {"templateID": shot, "timeout": 20})
    assert refused.status == 400
    assert volume.name in refused.json()["message"]
    assert "deleted" in refused.json()["message"]
    assert wire.call("DELETE", f"/templates/{shot}").status == 204


def test_a_mounted_volume_is_not_deleted(volume: e2b.Volume, boxes: list[e2b.Sandbox], wire: Wire) -> None:
    box = mounted(boxes, volume)
    for _ in range(2):
        refused = wire.call("DELETE", f"/volumes/{volume.volume_id}")
        assert refused.status == 409
        assert box.sandbox_id in refused.json()["message"]
        box.pause()
    box.kill()
    assert wire.call("DELETE", f"/volumes/{volume.volume_id}").status == 204


def test_all_mistakes_are_in_one_answer(volume: e2b.Volume, wire: Wire) -> None:
    asked = [
        {"name": "nosuch-1", "path": "/a"},
        {"name": "nosuch-2", "path": "/b"},
        {"name": volume.name, "path": "relative"},
        {"name": volume.name, "path": "/proc/x"},
    ]
    refused = wire.call("POST", "/sandboxes", {"templateID": "base", "volumeMounts": asked})
    assert refused.status == 400
    for part in ("nosuch-1", "nosuch-2", "'relative'", "'/proc/x'"):
        assert part in refused.json()["message"]


def test_a_mount_point_that_is_a_file_is_named(volume: e2b.Volume, wire: Wire) -> None:
    body = {"templateID": "base", "volumeMounts": [{"name": volume.name, "path": "/etc/passwd"}]}
    refused = wire.call("POST", "/sandboxes", body)
    assert refused.status == 400
    assert "/etc/passwd" in refused.json()["message"]


@pytest.mark.parametrize("memory", [True, False])
def test_a_mount_point_behind_links_in_a_cycle_is_named(
    volume: e2b.Volume, boxes: list[e2b.Sandbox], wire: Wire, memory: bool
) -> None:
    boxes.append(e2b.Sandbox.create(timeout=60))
    run(boxes[0], "ln -s /b /a && ln -s /a /b && ln -s /etc/passwd /c", "root")
    shot = wire.call("POST", f"/sandboxes/{boxes[0].sandbox_id}/snapshots", {"memory": memory}).json()["snapshotID"]
    for path in ("/a/x", "/a", "/c"):
        body = {"templateID": shot, "volumeMounts": [{"name": volume.name, "path": path}]}
        refused = wire.call("POST", "/sandboxes", body)
        assert refused.status == 400, refused.text
        assert f"'{path}'" in refused.json()["message"] or f"{path} " in refused.json()["message"], refused.text
    assert wire.call("DELETE", f"/templates/{shot}").status == 204


# ---- with a server of one's own ----


@pytest.fixture(scope="module")
def own() -> Iterator[Server]:
    with own_server("--volume_mb", "32", "--volume_inodes", "500", "--box_volumes_max", "2", "--pool", "1") as made:
        yield made


@pytest.fixture(scope="module")
def teams(own: Server) -> Tenants:
    return two_teams(own)


def make(wire: Wire, name: str) -> str:
    answer = wire.call("POST", "/volumes", {"name": name})
    assert answer.status == 201, answer.body
    return str(answer.json()["volumeID"])


def test_a_full_volume_is_full_in_itself_only(own: Server) -> None:
    volume = make(own.wire, "full")
    options = {"volume_mounts": {PATH: "full"}, "timeout": 60}
    with own.cell(**options) as box, own.cell(**options) as other:
        assert 30 < int(box.commands.run(f"df -B1M --output=size {PATH} | tail -1").stdout) < 40
        out = box.commands.run(f"dd if=/dev/zero of={PATH}/big bs=1M count=100 2>&1; true").stdout
        assert "No space left" in out
        assert other.commands.run("dd if=/dev/zero of=/tmp/own bs=1M count=50 2>&1; echo $?").stdout.endswith("0\n")
        box.commands.run(f"rm {PATH}/big")
        out = box.commands.run(f"cd {PATH}; for i in $(seq 2000); do : > f$i || break; done 2>&1; true").stdout
        assert "No space left" in out
        assert other.commands.run(f"rm {PATH}/f*; echo ok > {PATH}/again; cat {PATH}/again").stdout == "ok\n"
    eventually(lambda: own.wire.call("DELETE", f"/volumes/{volume}").status in (204, 404))


def test_another_teams_volume_is_not_there_by_name(own: Server, teams: Tenants) -> None:
    volume = make(teams.victim, "private")
    body = {"templateID": "base", "volumeMounts": [{"name": "private", "path": "/x"}]}
    refused = teams.attacker.call("POST", "/sandboxes", body)
    assert refused.status == 400
    assert "private" in refused.json()["message"]
    assert teams.victim.call("DELETE", f"/volumes/{volume}").status == 204


def test_too_many_volumes_are_refused(own: Server) -> None:
    ids = [make(own.wire, f"many-{i}") for i in range(3)]
    mounts = [{"name": f"many-{i}", "path": f"/v{i}"} for i in range(3)]
    refused = own.wire.call("POST", "/sandboxes", {"templateID": "base", "volumeMounts": mounts})
    assert refused.status == 400
    assert "box_volumes_max" in refused.json()["message"]
    for one in ids:
        assert own.wire.call("DELETE", f"/volumes/{one}").status == 204


@pytest.mark.parametrize("how", ["warden", "SIGTERM"])
def test_volumes_survive_the_server(own: Server, how: str) -> None:
    volume = make(own.wire, f"kept-{how}")
    box = own.cell(volume_mounts={PATH: f"kept-{how}"}, timeout=120)
    asleep = own.cell(volume_mounts={PATH: f"kept-{how}"}, timeout=120)
    box.files.write(f"{PATH}/before", "1")
    asleep.pause()
    if how == "warden":
        (warden,) = own.wardens()
        os.kill(warden, signal.SIGKILL)
        eventually(lambda: own.wardens() not in ([], [warden]))
        eventually(lambda: own.wire.call("GET", "/health").status == 200)
    else:
        own.signal(signal.SIGTERM)
        own.start(*own.flags)
    box = own.connect(box.sandbox_id)
    box.files.write(f"{PATH}/after", "2")
    third = own.cell(volume_mounts={PATH: f"kept-{how}"}, timeout=120)
    assert third.files.read(f"{PATH}/after") == "2"
    third.files.write(f"{PATH}/third", "3")
    assert box.files.read(f"{PATH}/third") == "3"
    asleep = own.connect(asleep.sandbox_id)
    assert asleep.files.read(f"{PATH}/before") == "1"
    assert own.wire.call("DELETE", f"/volumes/{volume}").status == 409
    for one in (box, third, asleep):
        one.kill()
    eventually(lambda: own.wire.call("DELETE", f"/volumes/{volume}").status in (204, 404))


def test_volumes_outlive_all_sandboxes_and_a_stop(own: Server) -> None:
    volume = make(own.wire, "lasting")
    with own.cell(volume_mounts={PATH: "lasting"}, timeout=60) as box:
        box.files.write(f"{PATH}/kept", "text")
        box.commands.run("sync")
    own.stop()
    own.start(*own.flags)
    with own.cell(volume_mounts={PATH: "lasting"}, timeout=60) as box:
        assert box.files.read(f"{PATH}/kept") == "text"
    eventually(lambda: own.wire.call("DELETE", f"/volumes/{volume}").status in (204, 404))


def test_steps_of_a_build_have_volumes(own: Server) -> None:
    volume = make(own.wire, "for-builds")
    with own.cell(volume_mounts={PATH: "for-builds"}, timeout=60) as box:
        box.files.write(f"{PATH}/data", "from the volume")
    mounts = [{"name": "for-builds", "path": "/in"}]
    copy = run_step("cat /in/data > /etc/copied; echo made > /in/out", user="root")
    build = order(own.wire, fresh("mounts"), copy, volumeMounts=mounts)
    build.ready()
    with own.cell(template=build.name, volume_mounts={PATH: "for-builds"}, timeout=60) as box:
        assert box.files.read("/etc/copied") == "from the volume"
        assert box.files.read(f"{PATH}/out") == "made\n"
        assert box.commands.run("ls -A /in").stdout == ""
    eventually(lambda: own.wire.call("DELETE", f"/volumes/{volume}").status in (204, 404))


def test_a_build_names_volumes_that_are_not_there(own: Server) -> None:
    asked = Order(own.wire, fresh("nosuch")).request()
    body = {"fromTemplate": "base", "steps": [], "volumeMounts": [{"name": "nosuch", "path": "/in"}]}
    refused = own.wire.call("POST", f"/v2/templates/{asked.template}/builds/{asked.build}", body)
    assert refused.status == 400
    assert "nosuch" in refused.json()["message"]


def test_a_public_snapshot_gives_its_volumes_to_no_other_team(own: Server, teams: Tenants) -> None:
    attacker = Wire(own.url, teams.attacker.key)  # a server that was started again has another port
    volume = make(own.wire, "shown")
    with own.cell(volume_mounts={PATH: "shown"}, timeout=60) as box:
        box.files.write(f"{PATH}/private", "1")
        shot = own.wire.call("POST", f"/sandboxes/{box.sandbox_id}/snapshots", {"name": "shown"}).json()["snapshotID"]
    template = own.wire.call("GET", "/snapshots").json()
    assert shot in [one["snapshotID"] for one in template]
    alias = own.wire.call("GET", "/templates/aliases/shown").json()["templateID"]
    assert own.wire.call("PATCH", f"/v2/templates/{alias}", {"public": True}).status == 200
    refused = attacker.call("POST", "/sandboxes", {"templateID": alias, "timeout": 20})
    assert refused.status == 400, refused.body
    assert "another team" in refused.json()["message"]
    assert own.wire.call("DELETE", f"/templates/{alias}").status == 204
    eventually(lambda: own.wire.call("DELETE", f"/volumes/{volume}").status in (204, 404))


def test_traffic_wakes_a_sandbox_with_its_volume(own: Server) -> None:
    volume = make(own.wire, "woken")
    box = own.cell(
        volume_mounts={PATH: "woken"}, timeout=60, lifecycle={"on_timeout": "pause", "auto_resume": True}
    )
    box.files.write(f"{PATH}/before", "1")
    assert own.wire.call("POST", f"/sandboxes/{box.sandbox_id}/timeout", {"timeout": 0}).status == 204
    path = f"/sandboxes/{box.sandbox_id}"
    eventually(lambda: own.wire.call("GET", path).json()["state"] == "paused")
    assert box.files.read(f"{PATH}/before") == "1"
    assert own.wire.call("GET", path).json()["state"] == "running"
    box.kill()
    eventually(lambda: own.wire.call("DELETE", f"/volumes/{volume}").status in (204, 404))


# ---- directories on a filesystem of the operator's ----


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    place = str(tmp_path_factory.mktemp("volumes"))
    flags = ("--volumes_backing", "directory", "--volumes_dir", place)
    frozen = ("--criu", "/none")  # pauses freeze
    with own_server(*flags, *frozen, "--volume_mb", "32", "--volume_scan_seconds", "5") as made:
        yield made


def test_a_directory_is_shared_as_an_image_is(shared: Server) -> None:
    volume = make(shared.wire, "tree")
    options = {"volume_mounts": {PATH: "tree"}, "timeout": 60}
    with shared.cell(**options) as box, shared.cell(**options) as other:
        box.commands.run(f"cd {PATH}; echo 1 > f; chown 7:8 f; ln -s /etc/passwd out; ln f g", user="root")
        assert other.commands.run(f"stat -c %u:%g {PATH}/f").stdout == "7:8\n"
        box.pause()
        other.files.write(f"{PATH}/meanwhile", "2")
        box.connect()
        assert box.files.read(f"{PATH}/meanwhile") == "2"
    eventually(lambda: shared.wire.call("DELETE", f"/volumes/{volume}").status in (204, 404))


def test_a_directory_over_its_limit_is_read_only_until_it_is_under(shared: Server) -> None:
    volume = make(shared.wire, "over")
    files = f"{shared.flags[3]}/{volume}/volume-{volume}"
    with shared.cell(volume_mounts={PATH: "over"}, timeout=120) as box:
        box.commands.run(f"head -c 40M /dev/zero > {PATH}/big")
        eventually(lambda: box.commands.run(f"touch {PATH}/x 2>&1; true").stdout.endswith("Read-only file system\n"))
        with shared.cell(volume_mounts={PATH: "over"}, timeout=60) as other:
            assert "Read-only" in other.commands.run(f"touch {PATH}/x 2>&1; true").stdout
        os.unlink(f"{files}/big")
        eventually(lambda: box.commands.run(f"touch {PATH}/x 2>&1; true").stdout == "")
    eventually(lambda: shared.wire.call("DELETE", f"/volumes/{volume}").status in (204, 404))
