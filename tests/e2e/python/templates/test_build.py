# SPDX-License-Identifier: Apache-2.0
"""A custom template with the stock builder, from the first call to a box that shows it all."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import e2b
import pytest
import pytest_asyncio

from support.either import Either, until
from support.recipes import Workshop, fresh, wheel

SERVER = "python3 -m http.server 8123 --bind 127.0.0.1"


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory, workshop: Workshop) -> Path:
    """What a project folder looks like: sources, data, a wheel and things to leave out."""
    folder = tmp_path_factory.mktemp("context")
    (folder / "app").mkdir()
    (folder / "app" / "main.py").write_text(f"print('main of {workshop.flavour}')\n")
    (folder / "app" / "data").mkdir()
    (folder / "app" / "data" / "numbers.csv").write_text("1,2,3\n")
    (folder / "app" / "notes.log").write_text("left out\n")
    (folder / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (folder / "run.sh").chmod(0o755)
    (folder / ".dockerignore").write_text("# logs stay at home\n*.log\n**/*.log\n")
    wheel(folder, "clochehello", "1.2.3", "hello from a wheel")
    return folder


class TestAWholeTemplate:
    @pytest_asyncio.fixture(scope="class")
    async def built(self, workshop: Workshop, context: Path) -> AsyncIterator[tuple[Workshop, Either]]:
        name = fresh("whole")
        template = (
            workshop.template(context)
            .from_template("code-interpreter-v1")
            .set_user("root")
            .copy("clochehello-1.2.3-py3-none-any.whl", "/opt/wheels/")
            .pip_install("/opt/wheels/clochehello-1.2.3-py3-none-any.whl")
            .set_user("user")
            .set_workdir("/home/user/project")
            .copy("app", "app")
            .copy("run.sh", "/usr/local/bin/greet", user="root", mode=0o755)
            .set_envs({"STAGE": "built", "PATH": "${PATH}:/my/path"})
            .run_cmd(["echo one > first.txt", "echo $STAGE > second.txt"])
            .run_cmd("id -un > /etc/made-by", user="root")
            .make_dir("made/here", mode=0o750)
            .make_symlink("first.txt", "link.txt")
            .rename("second.txt", "renamed.txt")
            .remove("/opt/wheels", recursive=True, force=True, user="root")
            .set_start_cmd(SERVER, e2b.wait_for_port(8123))
        )
        await workshop.build(template, name, cpu_count=2, memory_mb=1024)
        box = await workshop.cell(name, envs={"GIVEN": "at launch"})
        yield workshop, box
        await box.kill()

    async def test_the_python_package_is_there(self, built: tuple[Workshop, Either]) -> None:
        _, box = built
        got = await box.run_code("import clochehello; clochehello.WORD")
        assert got.text == "hello from a wheel", got.error

    async def test_files_owners_and_modes(self, built: tuple[Workshop, Either]) -> None:
        _, box = built
        listing = await box.commands.run(
            "stat -c '%n %U:%G %a' app app/main.py app/data/numbers.csv first.txt made/here "
            "/usr/local/bin/greet; cat first.txt renamed.txt /etc/made-by; readlink link.txt; "
            "greet; ls app; ls -d /opt/wheels"
            " || true"
        )
        assert listing.stdout.splitlines() == [
            "app user:user 755",
            "app/main.py user:user 644",
            "app/data/numbers.csv user:user 644",
            "first.txt user:user 644",
            "made/here user:user 750",
            "/usr/local/bin/greet root:root 755",
            "one",
            "built",
            "root",
            "first.txt",
            "ran",
            "data",
            "main.py",
        ]

    async def test_environment_folder_and_user(self, built: tuple[Workshop, Either]) -> None:
        _, box = built
        got = await box.commands.run('echo "$STAGE|$GIVEN|$(id -un)|$PWD|$PATH"')
        stage, given, user, folder, path = got.stdout.strip().split("|")
        assert (stage, given, user, folder) == ("built", "at launch", "user", "/home/user/project")
        assert path.endswith(":/my/path")
        assert "/usr/bin" in path.split(":")
        assert "${PATH}" not in path
        cell = await box.run_code("import os; print(os.environ['STAGE'], os.environ['GIVEN'])")
        assert cell.logs.stdout == ["built at launch\n"]

    async def test_the_server_of_the_start_command_answers(self, built: tuple[Workshop, Either]) -> None:
        _, box = built
        got = await box.commands.run("curl -s http://127.0.0.1:8123/first.txt")
        assert got.stdout == "one\n"

    def test_the_log_tells_the_story_in_order(self, built: tuple[Workshop, Either]) -> None:
        workshop, _ = built
        places = workshop.says(
            "Build started", "Requesting build", "Uploaded 'app'", "Starting building",
            "Running start command", "Waiting for template to be ready", "Template is ready",
        )  # fmt: skip
        assert places == sorted(places), workshop.messages
        assert isinstance(workshop.logs[0], e2b.LogEntryStart)
        assert isinstance(workshop.logs[-1], e2b.LogEntryEnd)
        assert {entry.level for entry in workshop.logs} <= {"debug", "info", "warn", "error"}
        stamps = [entry.timestamp.timestamp() for entry in workshop.logs]
        assert all(abs(stamp - time.time()) < 300 for stamp in stamps)


async def test_what_a_command_prints_is_in_the_log(workshop: Workshop) -> None:
    template = (
        workshop.template()
        .from_template("base")
        .set_envs({"MARK": fresh("mark")})
        .run_cmd("for i in $(seq 130); do echo line-$i; done; echo from-stderr >&2; sleep 0.2")
        .run_cmd("printf 'no newline at the end'")
    )
    await workshop.build(template, fresh("talk"))
    lines = [text for text in workshop.messages if "line-" in text and "for i in" not in text]
    assert [text.rsplit("line-", 1)[1] for text in lines] == [str(i) for i in range(1, 131)]
    assert any("from-stderr" in text and "for i in" not in text for text in workshop.messages)
    assert any(text.endswith("no newline at the end") for text in workshop.messages)


async def test_a_build_in_the_background(workshop: Workshop) -> None:
    name = fresh("behind")
    template = workshop.template().from_template("base").run_cmd(f"sleep 1; echo late > ~/late; : {name}")
    info = await workshop.call("build_in_background", template, name)
    assert (info.name, info.alias, info.tags) == (name, name, ["default"])
    first = await workshop.call("get_build_status", info)
    assert first.status == e2b.TemplateBuildStatus.BUILDING
    assert (first.template_id, first.build_id) == (info.template_id, info.build_id)

    async def state() -> bool:
        return (await workshop.call("get_build_status", info)).status.value == "ready"

    await until(state, 60, 0.2)
    whole = await workshop.call("get_build_status", info)
    rest = await workshop.call("get_build_status", info, logs_offset=2)
    assert [e.message for e in rest.log_entries] == [e.message for e in whole.log_entries][2:]
    past = await workshop.call("get_build_status", info, logs_offset=10_000)
    assert past.log_entries == []
    box = await workshop.box(name)
    try:
        assert await box.files.read("late") == "late\n"
    finally:
        await box.kill()


async def test_the_default_image_is_the_base_template(workshop: Workshop) -> None:
    """A builder without any from...() asks for the image of the base template."""
    name = fresh("plain")
    template = workshop.template().from_base_image().run_cmd("whoami > who")
    await workshop.build(template, name)
    box = await workshop.box(name)
    try:
        assert (await box.commands.run("cat who; pwd")).stdout == "user\n/home/user\n"
    finally:
        await box.kill()


async def test_a_dockerfile_is_built_step_by_step(workshop: Workshop, context: Path) -> None:
    name = fresh("docker")
    template = workshop.template(context).from_dockerfile(
        "FROM e2bdev/base\n"
        "ENV COLOUR=green SHAPE=round\n"
        "WORKDIR /srv/app\n"
        "COPY app/main.py .\n"
        "RUN echo $COLOUR > colour && whoami > who\n"
    )
    await workshop.build(template, name)
    box = await workshop.box(name)
    try:
        got = await box.commands.run("cat /srv/app/colour /srv/app/who; ls /srv/app; whoami; pwd; echo $SHAPE")
        assert got.stdout.split() == [
            "green", "root", "colour", "main.py", "who", "user", "/srv/app", "round",
        ]  # fmt: skip
    finally:
        await box.kill()


async def test_variables_of_a_dockerfile_are_replaced_as_docker_does(workshop: Workshop, context: Path) -> None:
    name = fresh("variables")
    template = workshop.template(context).from_dockerfile(
        "FROM e2bdev/base\nENV APP=/srv/app\nWORKDIR $APP\nCOPY app/main.py ${APP}/x/\nRUN pwd > where\n"
    )
    await workshop.build(template, name)
    box = await workshop.box(name)
    try:
        literal = "find / -xdev -maxdepth 4 -name '*$*APP*' 2>/dev/null | wc -l"
        got = await box.commands.run(f"cat /srv/app/where; ls /srv/app /srv/app/x; {literal}")
        assert got.stdout.split() == ["/srv/app", "/srv/app:", "where", "x", "/srv/app/x:", "main.py", "0"]
    finally:
        await box.kill()


async def test_cpu_and_memory_are_the_boxs(workshop: Workshop) -> None:
    name = fresh("sized")
    template = workshop.template().from_template("base").run_cmd("true")
    await workshop.build(template, name, cpu_count=1, memory_mb=512)
    box = await workshop.box(name)
    try:
        info = await box.get_info()
        assert (info.cpu_count, info.memory_mb) == (1, 512)
    finally:
        await box.kill()
