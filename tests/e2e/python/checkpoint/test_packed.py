# SPDX-License-Identifier: Apache-2.0
"""Memory of boxes that sleep long is packed, where the settings ask for it, and nobody notices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.paused import connect, pause, state, text_of
from support.reboot import power_off
from support.server import Server, own_server
from support.state import below
from support.waiting import eventually
from support.wire import RawBox

pytestmark = pytest.mark.timeout(180)
PACKING = ("--checkpoint-zstd", "3", "--checkpoint-zstd-after", "0")
FILL = "x = 41; held = b'written by a person, or so ' * 1_000_000"
CHECK = "(x + 1, len(held), hash(held) == before)"


@pytest.fixture
def server() -> Iterator[Server]:
    with own_server(*PACKING) as made:
        yield made


def asleep(server: Server) -> RawBox:
    box = server.wire.create("code-interpreter-v1", timeout=600)
    text_of(box.execute(FILL))
    text_of(box.execute("before = hash(held)"))
    assert pause(box).status == 204
    return box


def packed(server: Server) -> list[Path]:
    def whole() -> list[Path] | None:
        found = below(server.data, "pages-*.img.zst")
        raw = [file for file in below(server.data, "pages-*.img") if file.with_name(file.name + ".zst") in found]
        return None if raw else found

    return eventually(whole, state=server.log)


def manifest(image: Path) -> Any:
    return json.loads((image / "manifest").read_text().splitlines()[0])


def test_a_paused_box_is_packed_and_resumes_whole(server: Server) -> None:
    box = asleep(server)
    files = packed(server)
    before = {image["name"]: image["size"] for file in files for image in manifest(file.parent)["images"]}
    assert sum(file.stat().st_blocks * 512 for file in files) < sum(before[file.stem] for file in files) / 3
    got = connect(box)
    assert got.status == 201, got.body
    assert text_of(box.execute(CHECK)) == "(42, 27000000, True)"
    assert pause(box).status == 204
    packed(server)
    assert connect(box).status == 201
    assert text_of(box.execute(CHECK)) == "(42, 27000000, True)"
    box.kill()


def test_a_packed_box_outlives_a_reboot(server: Server) -> None:
    box = asleep(server)
    packed(server)
    power_off(server)
    server.start(*PACKING)
    box = RawBox(server.wire, box.made)
    assert connect(box).status == 201
    assert text_of(box.execute(CHECK)) == "(42, 27000000, True)"


def test_who_is_wanted_while_it_is_packed_wakes_up(server: Server) -> None:
    box = server.wire.create("code-interpreter-v1", timeout=600)
    text_of(box.execute("import os; held = os.urandom(120_000_000); before = hash(held)"))
    for _ in range(3):
        assert pause(box).status == 204
        eventually(lambda: below(server.data, "pages-*.img.zst"), every=0.01)
        assert connect(box).status == 201
        assert text_of(box.execute("hash(held) == before")) == "True"


def test_a_damaged_packed_image_is_refused_with_its_name(server: Server) -> None:
    box = asleep(server)
    file = max(packed(server), key=lambda one: one.stat().st_size)
    with open(file, "r+b") as image:
        image.seek(file.stat().st_size // 2)
        byte = image.read(1)
        image.seek(-1, 1)
        image.write(bytes([byte[0] ^ 0xFF]))
    got = connect(box)
    assert got.status >= 400
    assert file.name in got.json()["message"], got.body
    assert state(box) == "paused"
