# SPDX-License-Identifier: Apache-2.0
"""The content API and sandboxes in one volume at once: each sees the other's files, and none leads the other out."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from support.wire import RawBox, Wire
from volumes.test_content_raw import Content, create, destroy, fails

SWAPS = """
import ctypes, os, threading
libc = ctypes.CDLL(None)
os.chdir("/mnt/v")
os.makedirs("race", exist_ok=True)
os.symlink("/../../../../../../etc", "race-link")
os.symlink("../../../../../../../etc/passwd", "race-file")
open("race-plain", "w").write("plain")
print("ready", flush=True)
while True:
    libc.renameat2(-100, b"race", -100, b"race-link", 2)
    libc.renameat2(-100, b"race-plain", -100, b"race-file", 2)
    try:
        os.makedirs("race/deep/er", exist_ok=True)
        open("race/deep/er/x", "w").close()
    except OSError:
        pass
"""


@pytest.fixture
def content(wire: Wire, unique: str) -> Iterator[Content]:
    made = create(wire, unique)
    yield made
    destroy(made)


@pytest.fixture
def box(wire: Wire, content: Content, unique: str) -> Iterator[RawBox]:
    made = wire.create(volumeMounts=[{"name": unique, "path": "/mnt/v"}], timeout=120)
    yield made
    made.kill()


def run(box: RawBox, command: str) -> str:
    code, out, err = box.run(command, user="root")
    assert code == 0, err
    return out


def test_each_sees_the_others_files_with_the_same_owners(content: Content, box: RawBox) -> None:
    assert content.put("/from-api", b"api", "&uid=1000&gid=1000&mode=416").status == 201
    assert run(box, "stat -c '%u %g %a %s' /mnt/v/from-api; cat /mnt/v/from-api") == "1000 1000 640 3\napi"
    run(box, "echo -n box > /mnt/v/from-box && chown 33:44 /mnt/v/from-box && chmod 604 /mnt/v/from-box")
    told = content.stat("/from-box").json()
    assert (told["uid"], told["gid"], told["mode"], told["size"]) == (33, 44, 0o604, 3)
    assert content.call("GET", "file", "/from-box").body == b"box"
    run(box, "chmod 000 /mnt/v/from-box && mkdir -m 0 /mnt/v/closed && touch /mnt/v/closed/x")
    assert content.call("GET", "file", "/from-box").body == b"box"
    assert content.names("/closed") == ["/closed/x"]
    assert content.call("DELETE", "path", "/closed").status == 204
    assert run(box, "ls -A /mnt/v") == "from-api\nfrom-box\n"


def test_links_and_special_files_of_a_box(content: Content, box: RawBox) -> None:
    run(box, "cd /mnt/v && ln -s /etc/passwd abs && ln -s ../../../etc/passwd rel && ln -s / top && ln -s loop loop && "
             "mkfifo fifo && mkdir d && echo -n in > d/f && ln -s d/f inner && ln -s /d within")  # fmt: skip
    for name in ("abs", "rel", "loop", "top/etc/passwd", "fifo"):
        fails(content.call("GET", "file", f"/{name}"), 404)
    assert content.stat("/abs").json()["target"] == "/etc/passwd"
    assert content.stat("/abs").json()["type"] == "symlink"
    assert content.stat("/fifo").json()["type"] == "unknown"
    assert content.call("GET", "file", "/inner").body == b"in"
    assert content.call("GET", "file", "/within/f").body == b"in"
    assert content.call("GET", "file", "/top/d/f").body == b"in"
    assert content.put("/abs", b"mine", "&force=true").status == 201
    assert run(box, "cat /mnt/v/abs; head -c 4 /etc/passwd") == "mineroot"
    assert content.call("DELETE", "path", "/top").status == 204
    assert content.call("GET", "file", "/d/f").body == b"in"


def test_links_in_a_cycle_end_in_an_error_and_lose_nothing(content: Content, box: RawBox) -> None:
    run(box, "cd /mnt/v && ln -s b a && ln -s a b && mkdir up && ln -s .. up/up && echo -n in > file")
    for path in ("/a", "/a/x", "/up/up/up/up/up/a"):
        fails(content.call("GET", "file", path), 404)
    fails(content.call("GET", "dir", "/a"), 404)
    fails(content.put("/a/new"), 404)
    fails(content.put("/a"), 409)
    assert content.call("POST", "dir", "/a/new", query="&force=true").status in (404, 409)
    assert content.stat("/a").json()["target"] == "b"
    assert content.call("GET", "file", "/up/up/up/up/file").body == b"in"
    assert content.names("/", "&depth=99") == ["/a", "/b", "/file", "/up", "/up/up"]
    assert content.call("DELETE", "path", "/up").status == 204  # the link of the cycle, not what it leads to
    assert content.call("DELETE", "path", "/a").status == 204
    assert run(box, "ls -A /mnt/v") == "b\nfile\n"


def test_a_box_that_swaps_directories_and_links_leads_nowhere(content: Content, box: RawBox) -> None:
    process = box.run(f"nohup python3 -c '{SWAPS}' > /tmp/out 2>&1 & while ! grep -q ready /tmp/out; do :; done",
                      user="root")  # fmt: skip
    assert process[0] == 0, process
    before = run(box, "cat /etc/passwd; ls /etc")
    end = time.monotonic() + 6
    seen: set[int] = set()
    while time.monotonic() < end:
        seen.add(content.put("/race/passwd", b"attack", "&force=true").status)
        for path in ("/race/passwd", "/race-file", "/race-plain", "/race/deep/er/x"):
            got = content.call("GET", "file", path)
            seen.add(got.status)
            assert got.status != 200 or got.body in (b"attack", b"plain", b""), got.body
        seen.add(content.call("PATCH", "path", "/race/passwd", {"mode": 0o777}).status)
        seen.add(content.call("POST", "dir", "/race/made/by/api", query="&force=true").status)
        seen.add(content.call("GET", "dir", "/", query="&depth=9").status)
        seen.add(content.call("DELETE", "path", "/race/deep").status)
    assert seen <= {200, 201, 204, 404, 409}, seen
    assert {200, 201} <= seen
    assert run(box, "cat /etc/passwd; ls /etc") == before


def test_a_mounted_volume_is_not_deleted(wire: Wire, content: Content, box: RawBox) -> None:
    refused = wire.call("DELETE", f"/volumes/{content.id}")
    assert (refused.status, " 1 " in refused.json()["message"]) == (409, True)
    assert content.stat("/").status == 200
