# SPDX-License-Identifier: Apache-2.0
"""Unchanged steps cost nothing, changed ones and all after them run again."""

from __future__ import annotations

import re
from pathlib import Path

import e2b

from support.recipes import Order, Workshop, fresh, order, run, step
from support.wire import Wire

STAMP = "date +%s%N > ~/stamp; sleep 0.1"


def stamp(wire: Wire, name: str, file: str = "stamp") -> str:
    box = wire.create(name)
    try:
        code, out, errors = box.run(f"cat ~/{file}")
        assert code == 0, errors
        return out.strip()
    finally:
        box.kill()


def cached(build: Order) -> set[str]:
    """The numbers of the steps that an earlier build had."""
    return set(re.findall(r"CACHED \[builder (\d+/\d+)\]", "\n".join(build.log())))


def test_the_same_steps_are_taken_from_the_cache(wire: Wire) -> None:
    mark = fresh("same")
    steps = (step("ENV", "MARK", mark), run(STAMP), run("true"))
    one, two = fresh("one"), fresh("two")
    order(wire, one, *steps).ready()
    again = order(wire, two, *steps).ready()
    assert cached(again) == {"1/3", "2/3", "3/3"}, "a build of cached steps only must not run them"
    assert any(line.startswith(f"CACHED [builder 1/3] ENV MARK {mark} ") for line in again.log()), again.log()
    assert stamp(wire, one) == stamp(wire, two)


def test_a_changed_last_step_builds_on_the_cached_ones(wire: Wire) -> None:
    mark = fresh("last")
    steps = (step("ENV", "MARK", mark), run(STAMP), run("echo slow"))
    one, two = fresh("one"), fresh("two")
    order(wire, one, *steps, run("echo 1 > ~/last")).ready()
    again = order(wire, two, *steps, run("echo 2 > ~/last")).ready()
    assert cached(again) == {"1/4", "2/4", "3/4"}, "only the last step has changed"
    assert stamp(wire, one) == stamp(wire, two)
    assert stamp(wire, two, "last") == "2"


def test_a_changed_early_step_runs_all_after_it(wire: Wire) -> None:
    one, two = fresh("one"), fresh("two")
    order(wire, one, step("ENV", "MARK", one), run(STAMP)).ready()
    order(wire, two, step("ENV", "MARK", two), run(STAMP)).ready()
    assert stamp(wire, one) != stamp(wire, two)


def test_force_runs_a_step_and_all_after_it_again(wire: Wire) -> None:
    mark = fresh("force")
    first, second = "date +%s%N > ~/first", "date +%s%N > ~/second"
    one, two, three = fresh("one"), fresh("two"), fresh("three")
    order(wire, one, step("ENV", "MARK", mark), run(first), run("true"), run(second)).ready()
    order(wire, two, step("ENV", "MARK", mark), run(first), run("true", force=True), run(second)).ready()
    assert stamp(wire, one, "first") == stamp(wire, two, "first")
    assert stamp(wire, one, "second") != stamp(wire, two, "second")
    order(wire, three, step("ENV", "MARK", mark), run(first), run("true"), run(second), force=True).ready()
    assert stamp(wire, three, "first") not in (stamp(wire, one, "first"), stamp(wire, two, "first"))


async def test_skip_cache_in_the_sdk(wire: Wire, workshop: Workshop) -> None:
    mark = fresh("skip")

    def recipe() -> e2b.TemplateClass:
        return workshop.template().from_template("base").set_envs({"MARK": mark}).run_cmd(STAMP)

    names = [fresh("skip") for _ in range(3)]
    await workshop.build(recipe(), names[0])
    await workshop.build(recipe(), names[1])
    await workshop.build(recipe(), names[2], skip_cache=True)
    stamps = [stamp(wire, name) for name in names]
    assert stamps[0] == stamps[1] != stamps[2]


def test_changed_files_are_copied_again(wire: Wire, tmp_path: Path) -> None:
    def build(content: str) -> str:
        (tmp_path / "f").write_text(content)
        name = fresh("file")
        template = e2b.Template(file_context_path=tmp_path).from_template("base").copy("f", "/home/user/f")
        e2b.Template.build(template.run_cmd(STAMP), name)
        return name

    one, two, three = build("a"), build("b"), build("a")
    assert [stamp(wire, name, "f") for name in (one, two, three)] == ["a", "b", "a"]
    assert stamp(wire, one) == stamp(wire, three) != stamp(wire, two)


def test_a_rebuilt_parent_is_not_the_old_one(wire: Wire) -> None:
    parent = fresh("parent")
    order(wire, parent, run("echo 1 > ~/gen")).ready()
    order(wire, fresh("child"), run("cp ~/gen ~/copy"), fromTemplate=parent).ready()
    order(wire, parent, run("echo 2 > ~/gen")).ready()
    child = fresh("child")
    order(wire, child, run("cp ~/gen ~/copy"), fromTemplate=parent).ready()
    assert stamp(wire, child, "copy") == "2"


def test_another_team_has_a_cache_of_its_own(wire: Wire, stranger: Wire) -> None:
    steps = (step("ENV", "MARK", fresh("team")), run(STAMP))
    one, two = fresh("one"), fresh("two")
    order(wire, one, *steps).ready()
    order(stranger, two, *steps).ready()
    assert stamp(wire, one) != stamp(stranger, two)
