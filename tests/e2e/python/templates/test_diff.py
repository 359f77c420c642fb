# SPDX-License-Identifier: Apache-2.0
"""What differs between two builds of a template, by REST; files that were made to mislead whoever reads them."""

from __future__ import annotations

import uuid

import pytest

from support.recipes import Order, fresh, run
from support.wire import Wire

FIRST = """set -e; cd /home/user
echo one > gone; echo 12345 > grown; echo same > same; echo x > moded; ln -s /etc/shadow link"""
SECOND = """set -e; cd /home/user
echo two > new; echo 1234567890 > grown; echo same > same; echo x > moded; chmod 600 moded; ln -s /etc/passwd link
mkfifo pipe; printf 'x' > "$(printf 'bad\\377\\033[31m<img src=x>')"
mkdir -p .local/lib/python3.11/site-packages/evil-1.0.dist-info"""


@pytest.fixture(scope="module")
def builds(wire: Wire) -> tuple[str, str, str]:
    name = fresh("diff")
    first = Order(wire, name).request().start(run(FIRST)).ready()
    second = Order(wire, name).request().start(run(SECOND)).ready()
    return first.template, first.build, second.build


def test_two_builds_are_compared(wire: Wire, builds: tuple[str, str, str]) -> None:
    template, first, second = builds
    told = wire.call("GET", f"/templates/{template}/builds/{second}/diff?from={first}")
    assert told.status == 200, told.text
    rows = {one["path"].removeprefix("/home/user/"): one for one in told.json()["files"]}
    assert rows["gone"] == {"path": "/home/user/gone", "change": "removed", "sizeFrom": 4}
    assert rows["new"] == {"path": "/home/user/new", "change": "added", "sizeTo": 4}
    grown = {"change": "changed", "sizeFrom": 6, "sizeTo": 11, "detail": "6 -> 11 bytes"}
    assert grown.items() <= rows["grown"].items()
    assert rows["moded"]["detail"] == "mode 644 -> 600"
    assert rows["link"]["detail"] == "another target"  # and nobody followed it
    assert rows["pipe"]["change"] == "added"
    assert "same" not in rows
    assert any("<img src=x>" in path for path in rows)
    packages = told.json()["packages"]
    assert {"manager": "python", "name": "evil", "to": "1.0"} in packages
    assert told.json()["bytesTo"] > told.json()["bytesFrom"] > 1_000_000
    assert told.json()["complete"]
    back = wire.call("GET", f"/templates/{template}/builds/{first}/diff?from={second}").json()
    assert (back["added"], back["removed"]) == (told.json()["removed"], told.json()["added"])


def test_a_diff_needs_two_builds_of_ones_own(wire: Wire, stranger: Wire, builds: tuple[str, str, str]) -> None:
    template, first, second = builds
    path = f"/templates/{template}/builds/{second}/diff"
    assert wire.call("GET", path).status == 400
    assert wire.call("GET", f"{path}?from=nonsense").status == 400
    assert wire.call("GET", f"{path}?from={uuid.uuid4()}").status == 404
    assert stranger.call("GET", f"{path}?from={first}").status == 403
    own = Order(stranger, fresh("diff")).request().start(run("true")).ready()
    theirs = f"/templates/{own.template}/builds/{own.build}/diff?from={first}"
    assert stranger.call("GET", theirs).status == 404
    assert wire.call("GET", f"/templates/base/builds/{second}/diff?from={first}").status in (403, 404)
