# SPDX-License-Identifier: Apache-2.0
"""The kernel's boot id as a box sees it: its own, new at each cold boot, the same across a pause with memory."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.paused import connect, fork, pause, snapshot
from support.wire import RawBox, Wire

BOOT_ID = "/proc/sys/kernel/random/boot_id"


def boot_id(box: RawBox) -> uuid.UUID:
    return uuid.UUID(box.run(f"cat {BOOT_ID}")[1].strip())


@pytest.fixture
def box(wire: Wire) -> Iterator[RawBox]:
    made = wire.create(timeout=120)
    yield made
    made.kill()


def test_no_two_boxes_have_the_same_and_none_has_the_hosts(wire: Wire, box: RawBox) -> None:
    others = [wire.create(timeout=60) for _ in range(2)] + [wire.create("code-interpreter-v1", timeout=60)]
    try:
        seen = {boot_id(each) for each in [box, *others]} | {uuid.UUID(Path(BOOT_ID).read_text().strip())}
        assert len(seen) == 5
    finally:
        for each in others:
            each.kill()


def test_it_is_the_same_for_every_process_and_cannot_be_written(box: RawBox) -> None:
    born = boot_id(box)
    assert box.run(f"cat {BOOT_ID}", user="root")[1].strip() == str(born)
    assert box.run(f"echo x > {BOOT_ID}", user="root")[0] != 0
    assert boot_id(box) == born


def test_it_stays_across_pauses_with_memory(box: RawBox) -> None:
    born = boot_id(box)
    for _ in range(2):
        assert pause(box).status == 204
        assert connect(box).status == 201
        assert boot_id(box) == born


def test_it_is_new_after_a_pause_of_the_files_alone(box: RawBox) -> None:
    born = boot_id(box)
    assert pause(box, memory=False).status == 204
    assert connect(box).status == 201
    cold = boot_id(box)
    assert cold != born
    assert pause(box).status == 204
    assert connect(box).status == 201
    assert boot_id(box) == cold
    assert pause(box).status == 204
    assert connect(box, memory=False).status == 201
    assert boot_id(box) not in (born, cold)


def test_forks_and_boxes_of_a_snapshot_have_their_own(wire: Wire, box: RawBox) -> None:
    born = boot_id(box)
    got = fork(box, timeout=60, count=2)
    assert got.status == 201, got.body
    copies = [RawBox(wire, each["sandbox"]) for each in got.json()]
    try:
        taken = snapshot(box)
        assert taken.status == 201, taken.body
        copies += [wire.create(taken.json()["snapshotID"], timeout=60) for _ in range(2)]
        assert len({boot_id(each) for each in [box, *copies]}) == 5
        assert boot_id(box) == born
        first = boot_id(copies[0])
        assert pause(copies[0]).status == 204
        assert connect(copies[0]).status == 201
        assert boot_id(copies[0]) == first
    finally:
        for each in copies:
            each.kill()
