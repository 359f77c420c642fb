# SPDX-License-Identifier: Apache-2.0
"""RUN, ENV, WORKDIR and USER, by hand on the wire, and what a box of the result shows."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from support.recipes import Order, fresh, order, run, step, tarball
from support.server import Server
from support.waiting import eventually
from support.wire import RawBox, Wire


def told(lines: list[str], mark: str) -> str:
    """What follows the mark in the one line of output that has it at its end."""
    found = [line.split(mark, 1)[1] for line in lines if f"]: {mark}" in line or line.startswith(mark)]
    assert len(found) == 1, (mark, lines)
    return found[0]


class TestOneLongRecipe:
    @pytest.fixture(scope="class")
    def log(self, wire: Wire) -> list[str]:
        build = order(
            wire,
            fresh("steps"),
            run('echo "first=$(id -un):$PWD:$HOME"'),
            run('echo "asroot=$(id -un):$PWD:$HOME"', "root"),
            run('echo "after=$(id -un)"'),
            step("ENV", "A", "1", "B", "two words"),
            step("env", "C", "${A}-$B", "D", "$(id)`id`", "E", "it's \"quoted\" \\n", "F", "l1\nl2"),
            step("ENV", "PATH", "/first:$PATH"),
            run('echo "env=$A:$B:$C"; echo "literal=$D"; echo "quotes=$E"; echo "lines=${#F}"; echo "path=$PATH"'),
            step("WORKDIR", "/srv/a"),
            step("WORKDIR", "b/c"),
            run('echo "work=$PWD:$(stat -c %U .)"'),
            step("USER", "alice"),
            run('echo "alice=$(id -un):$HOME:$(getent passwd alice | cut -d: -f7):$PWD:$A"'),
            step("USER", "bob", "true"),
            run('echo "bob=$(sudo -n id -un)"'),
            step("USER", "root"),
            run('echo "root=$(id -un):$HOME"'),
            step("USER", "user"),
            run('shopt -q login_shell && echo "login=yes"; exec 2>&1; echo "shell=$0"'),
        ).ready()
        return build.log()

    @pytest.mark.parametrize(
        "mark, wanted",
        [
            ("first=", "user:/home/user:/home/user"),
            ("asroot=", "root:/home/user:/root"),
            ("after=", "user"),
            ("env=", "1:two words:1-two words"),
            ("literal=", "$(id)`id`"),
            ("quotes=", "it's \"quoted\" \\n"),
            ("lines=", "5"),
            ("work=", "/srv/a/b/c:user"),
            ("alice=", "alice:/home/alice:/bin/bash:/srv/a/b/c:1"),
            ("bob=", "root"),
            ("root=", "root:/root"),
            ("login=", "yes"),
        ],
    )
    def test_it_ran_as_it_should(self, log: list[str], mark: str, wanted: str) -> None:
        assert told(log, mark) == wanted

    def test_the_path_is_expanded(self, log: list[str]) -> None:
        path = told(log, "path=").split(":")
        assert path[0] == "/first"
        assert "/usr/bin" in path


class TestWhatABoxInherits:
    @pytest.fixture(scope="class")
    def names(self, wire: Wire) -> tuple[str, str]:
        """A template and another one made from it."""
        parent, child = fresh("parent"), fresh("child")
        order(
            wire, parent,
            step("ENV", "KEPT", "by parent", "CHANGED", "by parent"),
            step("WORKDIR", "/srv/work"),
            step("USER", "carol"),
            run("echo parent > /tmp/of-parent; echo parent > ~/of-parent"),
        ).ready()  # fmt: skip
        order(
            wire, child,
            step("ENV", "CHANGED", "$CHANGED and child"),
            run("rm ~/of-parent; echo child > ~/of-child"),
            fromTemplate=parent,
        ).ready()  # fmt: skip
        return parent, child

    @pytest.fixture(scope="class")
    def box(self, wire: Wire, names: tuple[str, str]) -> Iterator[RawBox]:
        made = wire.create(names[1], envVars={"GIVEN": "yes", "KEPT2": "$KEPT"})
        yield made
        made.kill()

    def test_user_folder_and_environment(self, box: RawBox) -> None:
        got = box.run('echo "$(id -un)|$PWD|$HOME|$KEPT|$CHANGED|$GIVEN|$KEPT2"')[1]
        wanted = "carol|/srv/work|/home/carol|by parent|by parent and child|yes|$KEPT\n"
        assert got == wanted

    def test_another_user_can_still_be_asked_for(self, box: RawBox) -> None:
        assert box.run("id -un", user="root")[1] == "root\n"
        assert box.run("id -un", user="user")[1] == "user\n"

    def test_files_of_both_and_what_was_removed(self, box: RawBox) -> None:
        assert box.run("ls ~")[1].split() == ["of-child"]
        assert box.run("cat ~/of-child")[1] == "child\n"

    def test_relative_paths_of_the_file_api_are_the_users(self, box: RawBox) -> None:
        got = box.agent("GET", "/files?path=of-child")
        assert (got.status, got.text) == (200, "child\n")

    def test_the_parent_is_not_changed(self, wire: Wire, names: tuple[str, str]) -> None:
        box = wire.create(names[0])
        try:
            assert box.run("ls ~; echo $CHANGED")[1] == "of-parent\nby parent\n"
        finally:
            box.kill()


def test_processes_and_files_of_a_step_do_not_outlive_it(wire: Wire) -> None:
    build = order(
        wire, fresh("alone"),
        run("setsid sleep 600 >/dev/null 2>&1 & echo started; touch /home/user/stays"),
        run("pgrep -x sleep || echo nobody; ls /home/user/stays"),
    ).ready()  # fmt: skip
    lines = build.log()
    assert any(line.endswith("started") for line in lines)
    box = build.box()
    try:
        assert box.run("pgrep -x sleep")[0] == 1
    finally:
        box.kill()


def test_packages_are_installed_as_root_and_hard_links_and_modes_last(wire: Wire) -> None:
    build = order(
        wire, fresh("files"),
        run("mkdir /opt/x && echo a > /opt/x/a && ln /opt/x/a /opt/x/b && chmod 4755 /opt/x/a", "root"),
        run("touch -d 2001-02-03T04:05:06Z /opt/x/old && setcap cap_net_raw+ep /opt/x/old 2>/dev/null; true", "root"),
        run("rm -rf /usr/share/doc && mkdir /usr/share/doc && touch /usr/share/doc/new", "root"),
        run("mkfifo /opt/x/pipe && ln -s /nowhere /opt/x/dangling", "root"),
    ).ready()  # fmt: skip
    box = build.box()
    try:
        got = box.run(
            "cd /opt/x; stat -c '%h %a' a b; stat -c %Y old; ls /usr/share/doc; stat -c %F pipe; readlink dangling"
        )[1]
        assert got.splitlines() == [
            "2 4755", "2 4755", "981173106", "new", "fifo", "/nowhere",
        ]  # fmt: skip
    finally:
        box.kill()


def test_a_build_has_no_way_to_other_boxes_files(wire: Wire) -> None:
    """A step is a box like any other: the host's tree is not in it."""
    build = order(
        wire, fresh("isolation"),
        run("test ! -e /var/lib/cloche && echo unseen; cat /proc/1/cmdline | tr '\\0' ' '", "root"),
    ).ready()  # fmt: skip
    assert any(line.endswith("unseen") for line in build.log())


def test_variables_are_replaced_in_workdir_copy_and_user(wire: Wire) -> None:
    build = Order(wire, fresh("refs")).request()
    key = build.upload(tarball(("f", "content\n")))
    build.start(
        step("ENV", "APP", "/srv/app", "WHO", "dave", "PART", "deep"),
        step("ARG", "LATE", "${PART}er"),
        step("WORKDIR", "$APP"),
        step("WORKDIR", "${PART}/$LATE"),
        step("USER", "$WHO"),
        step("COPY", "f", "${APP}/x/", "$WHO", "", filesHash=key),
        step("COPY", "f", "$APP/\\$WHO/", filesHash=key),
        step("WORKDIR", "/srv/$MISSING/end"),
        run('echo "at=$PWD:$(id -un):$(stat -c %U:%n /srv/app/x/f)"; echo "found=$(cd /srv/app; ls | tr "\\n" " ")"'),
    ).ready()
    log = build.log()
    assert told(log, "at=") == "/srv/end:dave:dave:/srv/app/x/f"
    assert told(log, "found=").split() == ["$WHO", "deep", "x"]


def test_a_value_is_never_taken_for_a_command_or_another_reference(wire: Wire) -> None:
    build = order(
        wire, fresh("quoted"),
        step("ENV", "ODD", "a;touch pwned `id` $(id)", "NEXT", "never"),
        step("WORKDIR", "/srv/$ODD"),
        run('echo "here=$PWD"; ls -A /srv/* | grep -c pwned | sed "s/^/bad=/"'),
    ).ready()  # fmt: skip
    assert told(build.log(), "here=") == "/srv/a;touch pwned `id` $(id)"
    assert told(build.log(), "bad=") == "0"


def test_an_unknown_user_of_a_step_is_named(wire: Wire) -> None:
    reason = order(wire, fresh("ghost"), run("true", "ghost")).failed()
    assert reason["message"] == "command failed: unauthenticated: invalid username: 'ghost'"
    assert reason["step"] == "1"


def test_a_certificate_that_a_step_adds_is_trusted_afterwards(wire: Wire) -> None:
    make = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj '/CN=ours' "
        "-keyout /tmp/key -out '/usr/local/share/ca-certificates/our own (1).crt' 2>/dev/null"
    )
    check = "openssl verify -CAfile /etc/ssl/certs/ca-certificates.crt /usr/local/share/ca-certificates/*.crt"
    build = order(wire, fresh("trust"), run(make, "root"), run(f"{check} && echo trusted=yes"), run("true")).ready()
    log = build.log()
    assert told(log, "trusted=") == "yes"
    assert sum("Updating certificates" in line for line in log) == 1, log
    box = build.box()
    try:
        assert box.run(check)[0] == 0
    finally:
        box.kill()


def test_a_disk_grows_to_the_free_space_that_was_asked_for(wire: Wire) -> None:
    wanted = 20480
    build = Order(wire, fresh("roomy"), {"minFreeDiskMb": wanted}).request().start(run("true")).ready()
    child = order(wire, fresh("child"), run("true"), fromTemplate=build.name).ready()
    for made in (build, child):
        box = made.box()
        try:
            assert int(box.run("df --output=avail -m / | tail -1")[1]) >= wanted
        finally:
            box.kill()


def test_a_wish_for_free_space_outlives_the_warden(server: Server) -> None:
    wanted = 20480
    build = Order(server.wire, fresh("patient"), {"minFreeDiskMb": wanted}).request()
    (warden,) = server.wardens()
    os.kill(warden, signal.SIGKILL)
    eventually(lambda: server.wardens() not in ([], [warden]))
    box = build.start(run("true")).ready().box()
    try:
        assert int(box.run("df --output=avail -m / | tail -1")[1]) >= wanted
    finally:
        box.kill()


def test_a_wish_for_free_space_never_shrinks_a_disk(wire: Wire) -> None:
    build = Order(wire, fresh("modest"), {"minFreeDiskMb": 1}).request().start(run("true")).ready()
    box = build.box()
    try:
        assert int(box.run("df --output=size -m / | tail -1")[1]) > 9000
    finally:
        box.kill()
