# SPDX-License-Identifier: Apache-2.0
"""cloche template: builds and tags, differences, images out and in, and what is cleared."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import e2b
import pytest

from support.recipes import fresh
from support.registry import Member, small_image
from support.waiting import eventually

DATA = Path(os.environ.get("CLOCHE_DATA", "/nowhere"))


def ask(*words: str, status: int = 0) -> str:
    done = subprocess.run(
        [os.environ["CLOCHE_BIN"], "template", *words],
        capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout if status == 0 else done.stderr


def build_of(told: str) -> str:
    found = re.search(r"is build ([0-9a-f-]{36})", told)
    assert found, told
    return found[1]


def builds(name: str) -> list[tuple[str, set[str]]]:
    """Newest first: id and tags."""
    lines = ask("history", name).splitlines()[1:]
    return [(line.split()[0], set(line.split()[6:])) for line in lines]


@pytest.fixture
def name() -> Iterator[str]:
    made = fresh("kept")
    yield made
    subprocess.run(
        [os.environ["CLOCHE_BIN"], "template", "delete", made], capture_output=True, check=False
    )


def make(path: Path, name: str, *members: Member) -> str:
    return build_of(ask("import", str(small_image(path, *members)), name))


def layer_of(ref: str) -> Path:
    return Path(ask("show", ref).split("layers, top first")[1].split()[2]).parent


def read(template: str, path: str) -> str:
    with e2b.Sandbox.create(template, timeout=60) as box:
        return str(box.files.read(path))


def test_a_rollback_is_one_call_and_running_boxes_keep_their_build(
    tmp_path: Path, name: str
) -> None:
    first = make(tmp_path / "1", name, Member("word", b"one"))
    with e2b.Sandbox.create(name, timeout=60) as old:
        second = make(tmp_path / "2", name, Member("word", b"two"))
        assert builds(name) == [(second, {"default"}), (first, set())]
        assert read(name, "/word") == "two"
        assert old.files.read("/word") == "one"
    ask("rollback", name, "previous")
    assert read(name, "/word") == "one"
    ask("rollback", f"{name}:stable", second[:8])
    assert read(f"{name}:stable", "/word") == "two"
    assert builds(name) == [(second, {"stable"}), (first, {"default"})]
    assert "no finished build" in ask("rollback", name, "ffffffff", status=1)


def test_tags_come_and_go(tmp_path: Path, name: str) -> None:
    build = make(tmp_path / "1", name)
    ask("tag", name, "v1", "v2")
    ask("untag", name, "v1")
    assert builds(name) == [(build, {"default", "v2"})]
    assert "default" in ask("untag", name, "default", status=1)


def test_a_difference_names_files_packages_and_settings(tmp_path: Path, name: str) -> None:
    status = "Package: {}\nStatus: install ok installed\nVersion: {}\n\n"
    dist = "usr/lib/python3/dist-packages"
    first = make(
        tmp_path / "1", name,
        Member("same", b"1"), Member("gone", b"1"), Member("grown", b"1"),
        Member("var/lib/dpkg/status", (status.format("a", "1") + status.format("b", "1")).encode()),
        Member(f"{dist}/numpy-1.0.dist-info/METADATA"),
    )  # fmt: skip
    second = make(
        tmp_path / "2", name,
        Member("same", b"1"), Member("grown", b"12"), Member("mode\x1b[31m", b"1"),
        Member("new/deep", b"1"),
        Member("var/lib/dpkg/status", (status.format("b", "2") + status.format("c", "1")).encode()),
        Member(f"{dist}/numpy-2.0.dist-info/METADATA"),
    )  # fmt: skip
    told = ask("diff", f"{name}:{first}", f"{name}:{second}").splitlines()
    for line in ("  - dpkg a 1", "  ~ dpkg b 1 -> 2", "  + dpkg c 1", "  ~ python numpy 1.0 -> 2.0",
                 "  - /gone", "  ~ /grown  (1 -> 2 bytes)", "  + /mode\\x1b[31m",
                 "  + /new", "  + /new/deep"):  # fmt: skip
        assert line in told
    assert not [line for line in told if "same" in line]
    assert "same files" in ask("diff", name, f"{name}:{second}")


@pytest.mark.parametrize("packing", ["zstd", "gzip"])
@pytest.mark.parametrize("shape", ["layout", "image.tar"])
def test_what_is_exported_comes_back_the_same(
    tmp_path: Path, name: str, shape: str, packing: str
) -> None:
    odd = Member(
        "n" * 120 + "/deep", b"x", mode=0o4751, uid=12, gid=34, xattrs={"user.colour": "blue"}
    )
    make(tmp_path / "1", name, odd, Member("hard", kind=b"1", link="bin/bash"))
    out = tmp_path / shape
    ask("export", *(["--gzip"] if packing == "gzip" else []), name, str(out))
    if out.is_dir():
        (manifest,) = (
            b
            for b in (out / "blobs/sha256").iterdir()
            if b'"layers"' in b.read_bytes()[:2000] and b"rootfs" not in b.read_bytes()[:2000]
        )
        (described,) = json.loads(manifest.read_text())["layers"]
        magic = (out / "blobs/sha256" / described["digest"].split(":")[1]).read_bytes()[:4]
        assert described["mediaType"].endswith(f"+{packing}")
        assert magic.startswith({"zstd": b"\x28\xb5\x2f\xfd", "gzip": b"\x1f\x8b"}[packing])
    again = f"{name}-again"
    try:
        build_of(ask("import", str(out), again))
        assert ask("diff", name, again).splitlines()[-1] == "0 added, 0 removed, 0 changed"
        settings = [
            line
            for line in ask("show", again).splitlines()
            if line.startswith(("settings", "sandbox"))
        ]
        assert settings == [
            line
            for line in ask("show", name).splitlines()
            if line.startswith(("settings", "sandbox"))
        ]
        fs = layer_of(again) / "fs"
        assert (fs / "hard").stat().st_ino == (fs / "bin/bash").stat().st_ino
        assert os.getxattr(fs / odd.name, "user.colour") == b"blue"
        assert read(again, "/etc/group").startswith("root:")
    finally:
        ask("delete", again)
    assert "already exists" in ask("export", name, str(out), status=1)


def test_a_docker_archive_is_imported_and_nonsense_is_not(tmp_path: Path, name: str) -> None:
    layout = small_image(tmp_path / "1", Member("word", b"docker"))
    archive = tmp_path / "docker.tar"
    subprocess.run(
        [
            "skopeo",
            "--insecure-policy",
            "copy",
            "-q",
            f"oci:{layout}",
            f"docker-archive:{archive}:a/b:1",
        ],
        check=True,
    )
    build_of(ask("import", str(archive), name))
    assert read(name, "/word") == "docker"
    assert (
        json.loads(ask("show", name).split("settings")[1].splitlines()[0])["env"]["FROM_IMAGE"]
        == "yes"
    )
    (tmp_path / "nonsense").write_bytes(b"nonsense" * 100)
    told = ask("import", str(tmp_path / "nonsense"), fresh("never"), status=1)
    assert f"'{tmp_path}/nonsense' can't be imported; as an OCI archive: " in told
    assert "; as a docker archive: " in told
    assert "Invalid template reference 'Not!'" in ask("import", str(archive), "Not!", status=1)


def age(path: Path, days: float) -> None:
    then = time.time() - days * 86400
    os.utime(path, (then, then))


def test_only_what_nothing_needs_is_cleared(tmp_path: Path, name: str) -> None:
    make(tmp_path / "1", name, Member("word", b"one"))
    first = layer_of(name)
    make(tmp_path / "2", name, Member("word", b"two"))
    second = layer_of(name)
    spare = DATA / "layers" / ("0" * 64)
    (spare / "fs").mkdir(parents=True)
    for path in (first, second, spare):
        age(path, 30)
    assert ask("gc", "--dry-run").splitlines()[0].endswith(str(spare))
    assert spare.exists()
    assert "removed 1 things" in ask("gc")
    assert [path.exists() for path in (first, second, spare)] == [True, True, False]
    with e2b.Sandbox.create(name, timeout=60) as box:
        assert "sandboxes are based on it" in ask("delete", name, status=1)
        assert box.files.read("/word") == "two"
    words = [os.environ["CLOCHE_BIN"], "template", "delete", name]
    eventually(lambda: subprocess.run(words, capture_output=True, check=False).returncode == 0)
    for path in (first, second):
        age(path, 1)
    ask("gc")
    assert first.exists(), "used within cache_days"
    ask("gc", "--all")
    assert not first.exists()
    assert not second.exists()


def test_a_build_from_the_command_line_shows_its_log_and_fails_with_the_step(name: str) -> None:
    steps = ["--from", "base", "--env", "WORD=here", "--run", "echo got $WORD > /tmp/w; cat /tmp/w"]
    told = ask("build", f"{name}:v1", *steps, "--workdir", "/srv")
    assert "[stdout]: got here\n" in told
    assert "Build finished" in told
    assert read(f"{name}:v1", "/tmp/w") == "got here\n"
    failed = ask("build", f"{name}:v2", *steps, "--run", "ls /nowhere", "--keep", status=1)
    assert "step 3: " in failed
    assert "exit status 2" in failed
    states = [line.split()[5] for line in ask("history", name).splitlines()[1:]]
    assert sorted(states) == ["failed", "ready", "ready"]
    assert read(f"{name}:failed", "/tmp/w") == "got here\n"
    assert "no option '--what'" in ask("build", name, "--what", "x", status=1)


def test_a_verb_that_is_none_is_told_with_the_nearest() -> None:
    assert "did you mean 'history'" in ask("histori", "x", status=1)
    assert "other arguments" in ask("diff", "base", status=1)


def test_what_is_not_there_is_named_with_where_to_look(name: str) -> None:
    ask("build", name, "--run", "echo 1 > ~/one")
    assert "older than the one 'default' points to" in ask("rollback", name, "previous", status=1)
    assert f"no build '1234' of {name}; cloche template history" in ask("log", name, "1234", status=1)
    assert "'nowhere' not found; cloche template list" in ask("show", "nowhere", status=1)
    assert "--cpus needs a number, not 'x'" in ask("build", name, "--cpus", "x", status=1)
    told = ask("diff", "base", name)
    assert "/home/user/one" in told
    assert "/etc/hosts" not in told, "a box's own files are of no build"
    assert told.splitlines()[-1] == "1 added, 0 removed, 0 changed"


def test_a_template_that_is_none_is_named() -> None:
    assert "not found" in ask("show", "nobody-has-this", status=1)
