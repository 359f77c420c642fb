# SPDX-License-Identifier: Apache-2.0
"""A registry for tests in other languages: `registry_child.py TOP` serves until its standard input ends.

It holds two images on one base, and a proxy of the first that wants a user and a password. One line of JSON tells
where.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.registry import Member, PasswordProxy, Registry, small_image

USER, PASSWORD = "anna", "a secret"


def main(top: Path) -> None:
    for name in ("registry", "images"):
        (top / name).mkdir()
    registry = Registry(top / "registry")
    proxy = PasswordProxy(registry.host, USER, PASSWORD)
    try:
        one = registry.push(small_image(top / "images/one", Member("srv/word", b"one")), "one:1")
        two = registry.push(small_image(top / "images/two", Member("srv/word", b"two")), "two:1")
        private = f"{proxy.host}/one:1"
        told = {"host": registry.host, "one": one, "two": two, "private": private}
        print(json.dumps(told | {"username": USER, "password": PASSWORD}), flush=True)
        sys.stdin.read()
    finally:
        proxy.stop()
        registry.stop()


main(Path(sys.argv[1]))
