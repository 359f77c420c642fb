# SPDX-License-Identifier: Apache-2.0
"""Templates without a server: the same steps as the stock builder makes, ignore rules, hashes, Dockerfiles."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any, Callable, Dict, List

import e2b
import pytest

import cloche
from cloche._core.template.context import archive, files_hash, files_of

Build = Callable[[Any, Any], Any]

BUILDS: Dict[str, Build] = {
    "images": lambda t, m: t.from_python_image("3.12").run_cmd("true"),
    "debian": lambda t, m: t.from_debian_image(),
    "ubuntu": lambda t, m: t.from_ubuntu_image(),
    "alpine": lambda t, m: t.from_alpine_image(),
    "fedora": lambda t, m: t.from_fedora_image(),
    "arch": lambda t, m: t.from_arch_image(),
    "node": lambda t, m: t.from_node_image(),
    "bun": lambda t, m: t.from_bun_image(),
    "base": lambda t, m: t.from_base_image(),
    "template": lambda t, m: t.from_template("base").run_cmd(["a", "b"], user="root"),
    "registry": lambda t, m: t.from_image("x/y:1", username="u", password="p"),
    "aws": lambda t, m: t.from_aws_registry("x", "k", "s", "eu"),
    "gcp": lambda t, m: t.from_gcp_registry("x", {"a": 1}),
    "files": lambda t, m: t.from_base_image()
    .remove(["/a b", "/c"], force=True, recursive=True)
    .rename("/a", "/b", force=True)
    .make_dir("/d e", mode=0o700)
    .make_symlink("/a", "/b", force=True, user="root"),
    "settings": lambda t, m: t.from_base_image().set_envs({"A": "1", "B": "2"}).set_user("x").set_workdir("/w"),
    "empty envs": lambda t, m: t.from_base_image().set_envs({}),
    "packages": lambda t, m: t.from_base_image()
    .pip_install(["a", "b"])
    .pip_install(g=False)
    .npm_install("c", g=True, dev=True)
    .bun_install(["d"], dev=True)
    .apt_install(["e", "f"], no_install_recommends=True, fix_missing=True),
    "git": lambda t, m: t.from_base_image().git_clone("https://x/y z", "/p", branch="b", depth=1, user="root"),
    "mcp": lambda t, m: t.from_template("mcp-gateway").add_mcp_server(["a", "b"]),
    "dev container": lambda t, m: t.from_template("devcontainer")
    .beta_dev_container_prebuild("/w")
    .beta_set_dev_container_start("/w"),
    "start": lambda t, m: t.from_base_image().set_start_cmd("serve", m.wait_for_port(80)),
    "ready url": lambda t, m: t.from_base_image().set_ready_cmd(m.wait_for_url("http://x", 204)),
    "ready process": lambda t, m: t.from_base_image().set_ready_cmd(m.wait_for_process("a b")),
    "ready file": lambda t, m: t.from_base_image().set_ready_cmd(m.wait_for_file("/a")),
    "ready time": lambda t, m: t.from_base_image().set_ready_cmd(m.wait_for_timeout(5000)),
    "cache": lambda t, m: t.skip_cache().from_base_image().run_cmd("a"),
    "cache later": lambda t, m: t.from_base_image().run_cmd("a").skip_cache().run_cmd("b"),
}

DOCKERFILES: Dict[str, str] = {
    "plain": "FROM python:3\nRUN pip install x\nWORKDIR /app\nUSER me\nENV A=1 B='two words'\nCMD python app.py\n",
    "old env": "FROM x\nENV NAME some value\n",
    "exec": 'FROM x\nRUN ["a", "b c"]\nENTRYPOINT ["e", "f"]\nCMD ["g"]\n',
    "shell entry": "FROM x\nENTRYPOINT run me\nCMD [\"a\"]\n",
    "continued": "# syntax=docker/dockerfile:1\nFROM x AS y\nRUN a && \\\n  # comment\n  b \\\n\n  c\n",
    "arg": "ARG VERSION=3\nFROM python:3\nARG NAME\nARG OTHER=x\nRUN echo $NAME\n",
    "variables": "FROM x\nENV APP=/srv/app\nWORKDIR $APP\nUSER ${WHO}\n",
    "ignored": "FROM x\nEXPOSE 80\nLABEL a=b\nVOLUME /v\nMAINTAINER me\n",
    "escape": "# escape=`\nFROM x\nRUN a `\n  b\n",
    "heredoc": "FROM x\nRUN <<EOF\necho one\necho two\nEOF\n",
    "heredoc of a program": "FROM x\nRUN python3 <<EOF\nprint(1)\nEOF\n",
    "lower case": "from x\nrun a\n",
}


def built(module: Any, build: Build) -> Any:
    return json.loads(module.Template.to_json(build(module.Template(), module)))


@pytest.mark.parametrize("name", BUILDS)
def test_the_builder_makes_the_same_steps_as_the_stock_one(name: str) -> None:
    assert built(cloche, BUILDS[name]) == built(e2b, BUILDS[name])


@pytest.mark.parametrize("name", DOCKERFILES)
def test_a_dockerfile_makes_the_same_steps_as_with_the_stock_one(name: str) -> None:
    def build(template: Any, module: Any) -> Any:
        return template.from_dockerfile(DOCKERFILES[name])

    assert built(cloche, build) == built(e2b, build)


def test_a_copy_makes_the_same_arguments_as_the_stock_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    text = "FROM x\nENV D=/d\nCOPY --chown=me:me --chmod=0644 a ${D}/b\nADD a /c\n"

    def args(module: Any) -> Any:
        template = module.Template(file_context_path=tmp_path).from_dockerfile(text)
        return [(one["type"], one["args"]) for one in json.loads(module.Template.to_json(template))["steps"]]

    assert args(cloche) == args(e2b)


def test_defaults_of_variables_are_resolved_here() -> None:
    """The stock SDK sends them as they are, and the server reads only `$NAME` and `${NAME}`."""
    template = cloche.Template().from_dockerfile("FROM x\nENV A=1\nWORKDIR /${A:-z}/${B:-y}/${A:+w}/${A}\n")
    steps = json.loads(cloche.Template.to_json(template))["steps"]
    assert ["/1/y/w/${A}"] in [one["args"] for one in steps if one["type"] == "WORKDIR"]


def test_a_copied_heredoc_is_a_command_of_root() -> None:
    template = cloche.Template().from_dockerfile("FROM x\nCOPY --chmod=755 <<'EOF' /bin/hi\n#!/bin/sh\necho $X\nEOF\n")
    steps = json.loads(cloche.Template.to_json(template))["steps"]
    (command, user), = [one["args"] for one in steps if one["type"] == "RUN"]
    assert user == "root" and "echo $X" in command and "chmod 755" in command


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("RUN a\n", "FROM"),
        ("FROM a\nFROM b\n", "Multi-stage"),
        ("RUN a\nFROM x\n", "preceded"),
        ("FROM x\nCOPY a\n", "two arguments"),
        ("FROM x\nCOPY --from=y a b\n", "multi-stage"),
        ("FROM x\nCOPY --chmod=u+x a b\n", "chmod"),
        ("FROM x\nADD https://x/y /z\n", "remote URL"),
        ("FROM x\nRUN --nope a\n", "unknown flag"),
        ("FROM x\nWORKDIR a b\n", "exactly one"),
        ("FROM x\nENV A='b\n", "not closed"),
        ("FROM x\nRUN <<EOF\na\n", "heredoc"),
    ],
)
def test_a_wrong_dockerfile_is_a_syntax_error(text: str, why: str) -> None:
    with pytest.raises(cloche.DockerfileSyntaxError, match=why):
        cloche.Template().from_dockerfile(text)


def test_a_template_as_a_dockerfile() -> None:
    def text(module: Any) -> Any:
        template = module.Template().from_python_image().run_cmd("a").set_envs({"A": "1"}).set_user("u")
        return module.Template.to_dockerfile(template.set_start_cmd("s", "true"))

    assert text(cloche) == text(e2b)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a.py", "b.txt", "d/a.py", "d/e/c.txt", "d/.hidden", "node_modules/x/y.js", "keep/z.log"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "link").symlink_to("a.py")
    return tmp_path


@pytest.mark.parametrize(
    ("src", "ignore", "found"),
    [
        ("a.py", [], ["a.py"]),
        ("*.py", [], ["a.py"]),
        ("**/*.py", [], ["a.py", "d/a.py"]),
        ("d", [], ["d", "d/.hidden", "d/a.py", "d/e", "d/e/c.txt"]),
        ("d", ["d/e"], ["d", "d/.hidden", "d/a.py"]),
        ("d", ["**/*.txt"], ["d", "d/.hidden", "d/a.py", "d/e"]),
        ("d", ["d/*", "!d/e/c.txt"], ["d", "d/e/c.txt"]),
        ("keep", ["*.log"], ["keep", "keep/z.log"]),
        ("keep", ["**/*.log", "!keep/z.log"], ["keep", "keep/z.log"]),
        ("?.py", [], ["a.py"]),
        ("[ab].*", [], ["a.py", "b.txt"]),
        ("node_modules", ["node_modules"], []),
        ("link", [], ["link"]),
        ("none", [], []),
    ],
)
def test_globs_and_ignore_rules(tree: Path, src: str, ignore: List[str], found: List[str]) -> None:
    from e2b.template.utils import get_all_files_in_path

    assert files_of(src, str(tree), ignore) == found
    stock = [str(Path(one).relative_to(tree)) for one in get_all_files_in_path(src, str(tree), ignore)]
    assert stock == found


def test_the_hash_changes_with_what_is_copied_and_only_then(tree: Path) -> None:
    def digest() -> str:
        return files_hash("d", "/x", str(tree), [], False)

    first = digest()
    (tree / "b.txt").write_text("other")
    assert digest() == first
    (tree / "d" / "a.py").write_text("other")
    second = digest()
    assert second != first
    (tree / "d" / "a.py").chmod(0o755)
    assert digest() != second
    assert files_hash("d", "/y", str(tree), [], False) != digest()


@pytest.mark.parametrize("gzip", [True, False])
def test_the_archive_holds_files_modes_and_links(tree: Path, gzip: bool) -> None:
    (tree / "d" / "a.py").chmod(0o750)
    (tree / "d" / "l").symlink_to("a.py")
    with archive("d", str(tree), [], False, gzip) as file, tarfile.open(fileobj=file) as tar:
        members = {one.name: one for one in tar.getmembers()}
    assert sorted(members) == ["d", "d/.hidden", "d/a.py", "d/e", "d/e/c.txt", "d/l"]
    assert members["d/a.py"].mode & 0o777 == 0o750
    assert members["d/l"].linkname == "a.py"
