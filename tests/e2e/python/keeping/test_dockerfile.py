# SPDX-License-Identifier: Apache-2.0
"""`cloche template build` from a Dockerfile and with files: what the SDK makes of the same, hash for hash."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import e2b
import pytest
from e2b.template.utils import calculate_files_hash, read_dockerignore

from support.recipes import fresh

DATA = Path(os.environ.get("CLOCHE_DATA", "/nowhere"))


def build(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [os.environ["CLOCHE_BIN"], "template", "build", *words],
        capture_output=True, text=True, timeout=110, check=False, cwd=cwd,
    )  # fmt: skip


def built(*words: str, cwd: Path | None = None) -> list[str]:
    done = build(*words, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def inside(name: str, command: str) -> str:
    with e2b.Sandbox.create(name, timeout=60) as box:
        return box.commands.run(command).stdout


def lay(top: Path, files: dict[str, str | None]) -> Path:
    """Files by name; None makes a directory, a value beginning with -> a link."""
    for name, content in files.items():
        path = top / name
        (path if content is None else path.parent).mkdir(parents=True, exist_ok=True)
        if content is not None and content.startswith("->"):
            path.symlink_to(content[2:])
        elif content is not None:
            path.write_text(content)
    return top


def uploads() -> set[str]:
    return {path.name for path in DATA.glob("files/*/*")}


def test_a_dockerfile_becomes_a_template(tmp_path: Path) -> None:
    name = fresh("docker")
    lay(tmp_path, {
        "Dockerfile": """# syntax comes first
            FROM e2bdev/base AS only
            ARG WHO=nobody
            ENV WORD="two words" NUMBER=7
            ENV OLD style of this
            WORKDIR /srv/app
            COPY --chown=user hello.txt ./sub/
            COPY a/one.txt a/two.txt /srv/several/
            RUN echo "$WORD $NUMBER $OLD" > said && \\
                # a comment between
                echo more >> said
            EXPOSE 80
            USER user
            CMD ["touch", "/tmp/started"]
            """,
        "hello.txt": "hello\n", "a/one.txt": "1\n", "a/two.txt": "2\n",
    })  # fmt: skip
    lines = built(
        name,
        "--file",
        str(tmp_path / "Dockerfile"),
        "--ready",
        "test -e /tmp/started",
        "--cpus",
        "1",
        "--memory",
        "512",
    )
    assert any("RUN echo" in line for line in lines)
    told = inside(
        name,
        (
            "id -un; pwd; cat said sub/hello.txt; stat -c %U sub/hello.txt; cat "
            "/srv/several/*; ls /tmp/started; echo $WORD"
        ),
    )
    assert told == "user\n/srv/app\ntwo words 7 style of this\nmore\nhello\nuser\n1\n2\n/tmp/started\ntwo words\n"


def test_without_user_and_workdir_it_is_the_sdks_default(tmp_path: Path) -> None:
    lay(tmp_path, {"Dockerfile": "FROM e2bdev/base\nRUN id -un > /who; pwd > /where\n"})
    name = fresh("docker")
    built(name, "--file", "Dockerfile", cwd=tmp_path)
    assert inside(name, "cat /who /where; id -un; pwd") == "root\n/\nuser\n/home/user\n"


@pytest.mark.parametrize("source", ["f.txt", "dir", "dir/", "./dir/deep", "*.txt", "dir/**/*.txt", "d?r", "."])
def test_uploads_have_the_hash_that_the_sdk_computes(tmp_path: Path, source: str) -> None:
    mark = fresh("mark")
    lay(tmp_path, {
        "f.txt": mark, "g.txt": "g", ".hidden": "h", "dir/x.txt": "x", "dir/.dot": "d", "dir/deep/y.txt": "y",
        "dir/deep/empty": None, "dir/link": "->x.txt", "dir/ü ö.txt": "umlaut", "dir/z.bin": "z" * 300_000,
    })  # fmt: skip
    wanted = calculate_files_hash(source, f"/srv/{mark}/", str(tmp_path), [], False, None)
    name = fresh("hash")
    built(name, "--copy", f"{source}:/srv/{mark}/", "--context", str(tmp_path))
    assert wanted in uploads()
    recipe = e2b.Template(file_context_path=tmp_path).from_template("base").copy(source, f"/srv/{mark}/")
    lines: list[str] = []
    e2b.Template.build(recipe, fresh("sdk"), on_build_logs=lambda entry: lines.append(entry.message))
    assert [line for line in lines if line.startswith("CACHED") and "COPY" in line], (
        lines
    )  # what one built, the other finds
    assert mark in inside(name, f"cat /srv/{mark}/* 2>/dev/null; ls /srv/{mark} | head; echo {mark}")


def test_dockerignore_leaves_files_out(tmp_path: Path) -> None:
    lay(tmp_path, {
        ".dockerignore": "# notes\n*.log\nsecret\n**/tmp\n!keep.log\n",
        "a.txt": "a", "b.log": "b", "keep.log": "k", "secret/key": "s", "sub/tmp/t": "t", "sub/c.txt": fresh("c"),
        "sub/d.log": "d",
    })  # fmt: skip
    name = fresh("ignore")
    built(name, "--copy", ".:/srv/all/", cwd=tmp_path)
    assert inside(name, "cd /srv/all && find . -type f | sort").split() == [
        "./.dockerignore", "./a.txt", "./keep.log", "./sub/c.txt", "./sub/d.log",
    ]  # fmt: skip
    refused = build(fresh("ignore"), "--copy", "secret:/srv/", cwd=tmp_path)
    assert refused.returncode == 1
    assert ".dockerignore" in refused.stderr


def test_simple_ignore_patterns_give_the_sdks_hash(tmp_path: Path) -> None:
    lay(tmp_path, {".dockerignore": "dir/*.log\n", "dir/a.txt": fresh("a"), "dir/b.log": "b"})
    wanted = calculate_files_hash("dir", "/srv/", str(tmp_path), read_dockerignore(str(tmp_path)), False, None)
    built(fresh("ignored"), "--copy", "dir:/srv/", "--context", str(tmp_path))
    assert wanted in uploads()


def test_tags_sizes_and_no_cache(tmp_path: Path) -> None:
    lay(tmp_path, {"Dockerfile": f"FROM e2bdev/base\nRUN echo {fresh('step')}\n"})
    name = fresh("tagged")
    words = [f"{name}:one", "--tag", "two", "--tag", "three", "--file", str(tmp_path / "Dockerfile")]
    assert not any(line.startswith("CACHED") and "RUN" in line for line in built(*words))
    assert any(line.startswith("CACHED") and "RUN" in line for line in built(*words))
    assert not any(line.startswith("CACHED") for line in built(*words, "--no-cache"))
    assert {tag.tag for tag in e2b.Template.get_tags(name)} == {"one", "two", "three"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("RUN true\n", "line 1.*FROM"),
        ("FROM e2bdev/base\n\nCOPY --from=x a b\n", "line 3.*earlier stage"),
        ("FROM e2bdev/base AS x\nCOPY --from=x a b\n", "line 2.*earlier stage"),
        ("FROM e2bdev/base AS x\nRUN true\nFROM e2bdev/base\nFLY away\n", "line 4"),
        ("FROM e2bdev/base\nRUN <<EOF\ntrue\n", "line 2.*not ended"),
        ("FROM e2bdev/base\nRUN <<EOF\n#!/usr/bin/python3\nEOF\n", "line 2.*names its program"),
        ("FROM e2bdev/base\nCOPY <<EOF /x\nEOF\n", "line 2.*document"),
        ("FROM e2bdev/base\nCOPY only\n", "line 2.*destination"),
        ("FROM e2bdev/base\nCOPY ../up /x\n", "below"),
        ("FROM e2bdev/base\nCOPY nothing.here /x\n", "nothing.here"),
        ("FROM e2bdev/base\nFLY away\n", "line 2"),
        ("FROM e2bdev/base\nENV A='open\n", "line 2.*quote"),
        ("", "no FROM"),
    ],
)
def test_a_dockerfile_that_makes_no_sense_is_told_by_its_line(tmp_path: Path, text: str, complaint: str) -> None:
    lay(tmp_path, {"Dockerfile": text})
    done = build(fresh("bad"), "--file", str(tmp_path / "Dockerfile"))
    assert done.returncode == 1
    assert re.search(complaint, done.stderr), done.stderr


def test_a_base_named_twice_and_a_file_that_is_not_there(tmp_path: Path) -> None:
    lay(tmp_path, {"Dockerfile": "FROM e2bdev/base\n"})
    twice = build(fresh("twice"), "--from", "base", "--file", str(tmp_path / "Dockerfile"))
    assert "begins with one thing" in twice.stderr
    assert "No such file" in build(fresh("none"), "--file", str(tmp_path / "none")).stderr


STAGES = """
ARG BASE=e2bdev/base
ARG WORD=of-all
FROM ${BASE} AS Tools
ARG WORD
ENV KIND=tools
WORKDIR /srv/made
RUN <<EOF
set -e
mkdir -p bin deep/er
echo "made $WORD" > bin/tool
printf '\\t%s\\n' indented > deep/er/file
ln -s tool bin/link
EOF
CMD ["/no/such/program"]

FROM $BASE
RUN echo second > /srv/second

FROM tools AS more
RUN cat > /srv/made/more <<'X' && echo "$KIND in $PWD" >> /srv/made/more
  $not expanded
X

FROM ${NONE:-e2bdev/base}
COPY --from=tools /srv/made /opt/made
COPY --from=1 /srv/second /opt/
COPY --from=more --chown=user --chmod=600 /srv/made/more /opt/more
COPY here.txt /opt/
"""


def test_stages_are_builds_and_can_be_copied_from(tmp_path: Path) -> None:
    name = fresh("stages")
    lay(tmp_path, {"Dockerfile": STAGES, "here.txt": "here\n"})
    words = (name, "--file", str(tmp_path / "Dockerfile"))
    built(*words)
    with e2b.Sandbox.create(name, timeout=60) as box:
        assert box.files.read("/opt/made/bin/tool") == "made of-all\n"
        assert box.commands.run("readlink /opt/made/bin/link").stdout == "tool\n"
        assert box.files.read("/opt/made/deep/er/file") == "\tindented\n"
        assert box.files.read("/opt/second") == "second\n"
        assert box.files.read("/opt/here.txt") == "here\n"
        assert box.commands.run("cat /opt/more").stdout == "  $not expanded\ntools in /srv/made\n"
        assert box.commands.run("stat -c '%U %a' /opt/more /opt/made/bin/tool").stdout == "user 600\nroot 644\n"
        assert not box.files.exists("/srv/made"), "nothing of a stage but what was copied"
        assert box.commands.run("echo $KIND; pwd; id -un").stdout == "\n/home/user\nuser\n"
    assert {tag.tag for tag in e2b.Template.get_tags(name)} == {"default", "stage-tools", "stage-1", "stage-more"}
    again = built(*words)
    steps = [line for line in again if re.search(r"\] (RUN|COPY) ", line)]
    assert steps
    assert all(line.startswith("CACHED") for line in steps), steps
    (tmp_path / "Dockerfile").write_text(STAGES.replace("WORD=of-all", "WORD=other"))
    built(*words)
    assert inside(name, "cat /opt/made/bin/tool") == "made other\n"


def test_a_stage_that_fails_is_told(tmp_path: Path) -> None:
    name = fresh("stages")
    lay(tmp_path, {"Dockerfile": "FROM e2bdev/base AS a\nRUN exit 4\nFROM e2bdev/base\nCOPY --from=a /x /x\n"})
    done = build(name, "--file", str(tmp_path / "Dockerfile"))
    assert done.returncode == 1
    assert "exit status 4" in done.stderr
    lay(tmp_path, {"Dockerfile": "FROM e2bdev/base AS a\nFROM e2bdev/base\nCOPY --from=a /no/such /x\n"})
    done = build(name, "--file", str(tmp_path / "Dockerfile"))
    assert done.returncode == 1
    assert "COPY 'no/such': there is no such file in stage-a" in done.stderr


def test_links_in_a_stage_lead_nowhere_else(tmp_path: Path) -> None:
    """What is copied from a stage is read by root of this machine: no link of it may lead out."""
    name = fresh("stages")
    lay(
        tmp_path,
        {
            "Dockerfile": (
                "FROM e2bdev/base AS a\nRUN ln -s /etc /srv/out\nFROM e2bdev/base\nCOPY --from=a /srv/out/hostname /x\n"
            )
        },
    )
    done = build(name, "--file", str(tmp_path / "Dockerfile"))
    assert done.returncode == 1
    assert "no such file in stage-a" in done.stderr
