# SPDX-License-Identifier: Apache-2.0
"""Private images by the SDK's own words: a user and a password, a service account of Google's, a key pair of AWS."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import e2b
import pytest

from support.recipes import fresh
from support.registry import Account, Member, PasswordProxy, Registry, TokenServer, small_image
from support.server import Server, own_server
from support.state import below

ACCOUNT = Account("AKIATEST", "wJalr/secret+key", "eu-north-1", "token-of-a-day")
SERVICE = json.dumps({"type": "service_account", "private_key": "-----BEGIN unlike any other"})


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    made = Registry(tmp_path_factory.mktemp("registry"))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def image(registry: Registry, tmp_path_factory: pytest.TempPathFactory) -> str:
    layout = small_image(tmp_path_factory.mktemp("image") / "it", Member("srv/word", b"private"))
    return registry.push(layout, f"{fresh('image')}:1").split("/", 1)[1]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    tokens = TokenServer(ACCOUNT)
    try:
        with own_server("--image-insecure", "127.0.0.1:*", "--image-ecr-url", f"http://{tokens.host}") as made:
            yield made
    finally:
        tokens.stop()


@pytest.mark.parametrize("kind", ["general", "google", "amazon"])
def test_the_sdks_credentials_open_a_registry(
    kind: str, registry: Registry, image: str, server: Server
) -> None:
    user, password = {
        "general": ("anna", "p:ss wörd"),
        "google": ("_json_key", SERVICE),
        "amazon": ("AWS", ACCOUNT.password),
    }[kind]
    access = {"api_key": server.key, "api_url": server.url}
    proxy = PasswordProxy(registry.host, user, password)
    try:
        name = f"{proxy.host}/{image}"
        recipe = {
            "general": lambda t: t.from_image(name, username=user, password=password),
            "google": lambda t: t.from_gcp_registry(name, service_account_json=json.loads(SERVICE)),
            "amazon": lambda t: t.from_aws_registry(
                name, access_key_id=ACCOUNT.key, secret_access_key=ACCOUNT.secret, region=ACCOUNT.region
            ),
        }[kind](e2b.Template())
        lines: list[str] = []
        e2b.Template.build(
            recipe.run_cmd(f"echo {fresh(kind)}; cat /srv/word"),
            fresh(kind),
            on_build_logs=lambda entry: lines.append(entry.message),
            **access,
        )
        assert any(line.endswith("private") for line in lines), lines
        with pytest.raises(e2b.BuildException, match=r"(?i)unauthorized|authentication required"):
            e2b.Template.build(e2b.Template().from_image(name), fresh("nobody"), **access)
    finally:
        proxy.stop()


def test_no_secret_is_kept(server: Server) -> None:
    """Behind the tests above: neither the server's log nor its files know what was given."""
    texts = {Path(server.home / "log"): Path(server.home / "log").read_bytes()}
    for path in below(server.data, "*"):
        with contextlib.suppress(FileNotFoundError):
            if path.is_file() and path.stat().st_size < 1 << 22:
                texts[path] = path.read_bytes()
    assert any(path.name.startswith("cloche.db") for path in texts)
    for secret in (ACCOUNT.secret, ACCOUNT.password, "unlike any other", "p:ss"):
        for path, text in texts.items():
            assert secret.encode() not in text, path
