# SPDX-License-Identifier: Apache-2.0
"""Building templates on a real server."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import List

import pytest

import cloche
from cloche import AsyncTemplate, Sandbox, Template


def test_a_template_with_files_and_commands_becomes_boxes(tmp_path: Path, unique: str) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "kept").write_text("kept")
    (tmp_path / "d" / "left").write_text("left")
    (tmp_path / ".dockerignore").write_text("**/left\n")
    template = (
        Template(file_context_path=tmp_path)
        .from_template("base")
        .set_envs({"COLOUR": "blue"})
        .copy("d", "/opt/d", mode=0o755)
        .set_workdir("/opt")
        .run_cmd(["echo $COLOUR > /opt/colour", "id -un >> /opt/colour"], user="root")
        .make_symlink("/opt/colour", "/opt/link", user="root")
    )
    entries: List[cloche.LogEntry] = []
    info = Template.build(template, unique, tags=["one"], memory_mb=512, on_build_logs=entries.append)
    try:
        assert isinstance(entries[0], cloche.LogEntryStart) and isinstance(entries[-1], cloche.LogEntryEnd)
        assert any("Uploaded 'd'" in entry.message for entry in entries)
        assert Template.exists(unique) and not Template.exists(unique + "-other")
        status = Template.get_build_status(info)
        assert status.status == cloche.TemplateBuildStatus.READY
        with Sandbox.create(f"{unique}:one", timeout=60) as box:
            assert box.files.read("/opt/link") == "blue\nroot\n"
            assert [one.name for one in box.files.list("/opt/d")] == ["kept"]
            assert box.commands.run("echo $COLOUR; pwd").stdout == "blue\n/opt\n"
        assert Template.assign_tags(f"{unique}:one", ["two", "three"]).build_id == info.build_id
        assert {"one", "two", "three"} <= {one.tag for one in Template.get_tags(unique)}
        Template.remove_tags(unique, "two")
        assert "two" not in {one.tag for one in Template.get_tags(unique)}
        again: List[cloche.LogEntry] = []
        Template.build(template, unique, on_build_logs=again.append)
        assert any("already cached" in entry.message for entry in again)
    finally:
        assert Sandbox.delete_snapshot(info.template_id)


async def test_a_build_in_the_background_and_from_a_dockerfile(unique: str, tmp_path: Path) -> None:
    template = AsyncTemplate(file_context_path=tmp_path).from_template("base").run_cmd("true")
    info = await AsyncTemplate.build_in_background(template, unique)
    offset, status = 0, None
    while status not in (cloche.TemplateBuildStatus.READY, cloche.TemplateBuildStatus.ERROR):
        got = await AsyncTemplate.get_build_status(info, offset)
        offset += len(got.log_entries)
        status = got.status
    assert status == cloche.TemplateBuildStatus.READY
    assert await AsyncTemplate.exists(unique)
    Sandbox.delete_snapshot(info.template_id)


def test_a_failing_step_is_blamed_on_its_line(unique: str) -> None:
    template = Template().from_template("base").run_cmd("true").run_cmd("echo no >&2; exit 7")
    with pytest.raises(cloche.BuildException) as caught:
        Template.build(template, unique)
    shown = "".join(traceback.format_exception(type(caught.value), caught.value, caught.value.__traceback__))
    assert __file__ in shown


def test_a_source_that_leaves_the_context_is_refused() -> None:
    for bad in ("/etc/passwd", "../x", "a/../../x"):
        with pytest.raises(cloche.TemplateException):
            Template().from_template("base").copy(bad, "/x")


def test_a_missing_source_is_named(unique: str, tmp_path: Path) -> None:
    template = Template(file_context_path=tmp_path).from_template("base").copy("missing", "/x")
    with pytest.raises(ValueError, match="missing"):
        Template.build(template, unique)
