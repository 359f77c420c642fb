# SPDX-License-Identifier: Apache-2.0
"""COPY: where files land, whose they are, what is matched, and what an archive may not do."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import e2b
import pytest

from support.recipes import Order, fresh, order, run, step, tarball
from support.wire import RawBox, Wire

PREPARE = (
    "mkdir -p /opt/real /opt/kept && ln -s /opt/real /opt/way && "
    "echo old > /opt/kept/top && echo mine > /opt/kept/mine"
)


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy")
    (folder / "one.txt").write_text("one")
    (folder / "two.txt").write_text("two")
    (folder / "script.sh").write_text("#!/bin/sh\necho script\n")
    (folder / "script.sh").chmod(0o755)
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "leaf").write_text("leaf")
    (folder / "deep" / "top").write_text("top")
    (folder / "deep" / ".hidden").write_text("hidden")
    (folder / "empty").mkdir()
    (folder / "name with space.txt").write_text("space")
    (folder / "links").mkdir()
    (folder / "links" / "real").write_text("real")
    (folder / "links" / "soft").symlink_to("real")
    (folder / "links" / "dangling").symlink_to("nowhere")
    return folder


@pytest.fixture(scope="module")
def box(wire: Wire, context: Path) -> Iterator[RawBox]:
    """A box of one template with a copy of every kind."""
    name = fresh("copies")
    template = (
        e2b.Template(file_context_path=context)
        .from_template("base")
        .run_cmd(PREPARE, user="root")
        .copy("one.txt", "/opt/exact/renamed.txt")
        .copy("one.txt", "/opt/folder/")
        .copy("one.txt", "relative.txt")
        .copy("deep", "/opt/deep")
        .copy("deep", "/opt/kept")
        .copy("deep", "/opt/way")
        .copy("*.txt", "/opt/globbed/")
        .copy("empty", "/opt/empty")
        .copy("name with space.txt", "/opt/spaced/")
        .copy(["one.txt", "two.txt"], "/opt/both/", user="root", mode=0o600)
        .copy("deep", "/opt/moded", user="root:user", mode=0o750)
        .copy("script.sh", "/opt/script.sh", gzip=False)
        .copy("links", "/opt/links")
        .copy("links/soft", "/opt/followed", resolve_symlinks=True)
        .copy_items([{"src": "two.txt", "dest": "/opt/items/a", "mode": 0o640}])
        .set_workdir("/srv/place")
        .copy("two.txt", "here.txt")
        .copy("two.txt", ".")
    )
    e2b.Template.build(template, name)
    made = wire.create(name)
    yield made
    made.kill()


def shown(box: RawBox, command: str) -> list[str]:
    code, out, errors = box.run(command, user="root")
    assert code == 0, errors
    return out.splitlines()


def test_a_file_goes_to_the_exact_path(box: RawBox) -> None:
    assert shown(box, "cat /opt/exact/renamed.txt") == ["one"]


def test_a_trailing_slash_means_a_folder(box: RawBox) -> None:
    assert shown(box, "cat /opt/folder/one.txt") == ["one"]


def test_a_relative_destination_starts_at_the_working_directory(box: RawBox) -> None:
    assert shown(box, "cat /home/user/relative.txt") == ["one"]
    assert shown(box, "cd /srv/place; tail -n +1 here.txt two.txt; stat -c %U .") == [
        "==> here.txt <==", "two", "==> two.txt <==", "twouser",
    ]  # fmt: skip


def test_a_folder_is_merged_into_its_destination(box: RawBox) -> None:
    assert shown(box, "cd /opt/deep; find . | sort") == [".", "./.hidden", "./er", "./er/leaf", "./top"]
    assert shown(box, "cd /opt/kept; cat mine top; echo; cat er/leaf") == ["mine", "top", "leaf"]


def test_a_link_to_a_folder_stays_one(box: RawBox) -> None:
    assert shown(box, "readlink /opt/way; cat /opt/real/top") == ["/opt/real", "top"]


def test_globs_take_what_they_match(box: RawBox) -> None:
    assert shown(box, "ls /opt/globbed") == ["name with space.txt", "one.txt", "two.txt"]
    assert shown(box, "ls /opt/spaced") == ["name with space.txt"]


def test_an_empty_folder_is_one(box: RawBox) -> None:
    assert shown(box, "test -d /opt/empty && ls -A /opt/empty") == []


def test_copied_files_have_the_owner_and_mode_asked_for(box: RawBox) -> None:
    assert shown(
        box,
        "stat -c '%U:%G %a' /opt/exact/renamed.txt /opt/deep/er /opt/both/one.txt /opt/both/two.txt "
        "/opt/moded/er /opt/moded/er/leaf /opt/script.sh /opt/items/a",
    ) == [
        "user:user 644", "user:user 755", "root:root 600", "root:root 600",
        "root:user 750", "root:user 750", "user:user 755", "user:user 640",
    ]  # fmt: skip


def test_an_archive_without_gzip_is_read_too(box: RawBox) -> None:
    assert shown(box, "/opt/script.sh") == ["script"]


def test_links_stay_links_unless_followed(box: RawBox) -> None:
    assert shown(box, "readlink /opt/links/soft /opt/links/dangling") == ["real", "nowhere"]
    assert shown(box, "test ! -L /opt/followed && cat /opt/followed") == ["real"]


@pytest.mark.parametrize("owner", ["user", "1234:4321", "root:user", ""])
def test_who_may_own_a_copy(wire: Wire, owner: str) -> None:
    build = Order(wire, fresh("own")).request()
    key = build.upload(tarball(("f", b"x")))
    build.start(
        step("COPY", "f", "/opt/f", owner, "", filesHash=key),
        run("stat -c 'owner=%u:%g' /opt/f", "root"),
    ).ready()
    wanted = {"user": "1000:1000", "1234:4321": "1234:4321", "root:user": "0:1000", "": "1000:1000"}
    assert any(line.endswith(f"owner={wanted[owner]}") for line in build.log())


def device() -> bytes:
    return tarball(("sda", b""), type=tarfile.BLKTYPE, devmajor=8, devminor=0)


HOSTILE = {
    "climbing": tarball(("../../../../etc/evil", b"x"), ("f", b"x")),
    "absolute": tarball(("/etc/evil", b"x"), ("f", b"x")),
    "through a link": tarball(("way", "/etc"), ("way/evil", b"x"), ("f", b"x")),
    "not an archive": b"this is no tar file" * 60,
    "cut short": tarball(("f", b"x" * 5000), compressed=False)[:2000],
    "a device": device(),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_archive_reaches_nothing_else(wire: Wire, kind: str) -> None:
    """It may fail the build with the step's number, or leave the bad member out; never obey."""
    build = Order(wire, fresh("hostile")).request()
    key = build.upload(HOSTILE[kind])
    build.start(
        step("COPY", ".", "/opt/target/", "", "", filesHash=key),
        run("test ! -e /etc/evil && ! find /opt/target -type b | grep . && echo unharmed", "root"),
    )
    done = build.wait()
    if done["status"] == "error":
        assert done["reason"]["step"] == "1", done["reason"]
    else:
        assert any(line.endswith("unharmed") for line in build.log())
        assert kind not in ("not an archive", "cut short")


def test_a_copy_without_its_archive_fails_at_its_step(wire: Wire) -> None:
    build = order(wire, fresh("lost"), run("true"), step("COPY", "f", "/f", "", "", filesHash="0" * 64))
    reason = build.failed()
    assert reason["step"] == "2"


def test_nothing_to_copy_is_the_clients_error(context: Path) -> None:
    template = e2b.Template(file_context_path=context).from_template("base").copy("no-such-file", "/x")
    with pytest.raises(Exception, match="no-such-file"):
        e2b.Template.build(template, fresh("none"))


def test_a_forced_upload_replaces_what_was_stored(wire: Wire, context: Path) -> None:
    """Content is part of the hash, so the same key means the same files; a forced one is sent again."""
    for _ in range(2):
        logs: list[str] = []
        template = (
            e2b.Template(file_context_path=context)
            .from_template("base")
            .copy("one.txt", "/opt/forced", force_upload=True)
        )
        e2b.Template.build(template, fresh("forced"), on_build_logs=lambda e, to=logs: to.append(e.message))
        assert "Uploaded 'one.txt'" in logs
    logs = []
    template = e2b.Template(file_context_path=context).from_template("base").copy("one.txt", "/opt/forced")
    e2b.Template.build(template, fresh("forced"), on_build_logs=lambda e: logs.append(e.message))
    assert any("already cached" in line for line in logs)
