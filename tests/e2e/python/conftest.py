# SPDX-License-Identifier: Apache-2.0
"""Fixtures of all areas.

Boxes are shared per file (scope "module") and always killed. `box` and `cell`
run each test twice, with the synchronous and the asynchronous SDK.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator

import e2b
import e2b_code_interpreter as interpreter
import pytest
import pytest_asyncio

from support.either import Either
from support.server import Server, own_server
from support.wire import RawBox, Wire

FLAVOURS = ["sync", "async"]
LIFETIME = 300


@pytest.fixture(scope="session")
def wire() -> Wire:
    return Wire()


@pytest.fixture
def unique() -> str:
    return uuid.uuid4().hex[:12]


@pytest.fixture
def server() -> Iterator[Server]:
    """A server of the test's own, started; after the test it is stopped and must have left nothing."""
    with own_server() as made:
        yield made


@pytest_asyncio.fixture(scope="module", params=FLAVOURS)
async def box(request: pytest.FixtureRequest) -> AsyncIterator[Either]:
    """A box of the SDK's own default template."""
    if request.param == "sync":
        made = Either(e2b.Sandbox.create(timeout=LIFETIME))
    else:
        made = Either(await e2b.AsyncSandbox.create(timeout=LIFETIME))
    try:
        yield made
    finally:
        await made.kill()


@pytest_asyncio.fixture(scope="module", params=FLAVOURS)
async def cell(request: pytest.FixtureRequest) -> AsyncIterator[Either]:
    """A box of the code interpreter's default template."""
    if request.param == "sync":
        made = Either(interpreter.Sandbox.create(timeout=LIFETIME))
    else:
        made = Either(await interpreter.AsyncSandbox.create(timeout=LIFETIME))
    try:
        yield made
    finally:
        await made.kill()


@pytest.fixture(scope="module")
def raw(wire: Wire) -> Iterator[RawBox]:
    """A secured box of the base template, made and driven without an SDK."""
    made = wire.create(timeout=LIFETIME)
    yield made
    made.kill()


@pytest.fixture(scope="module")
def raw_cell(wire: Wire) -> Iterator[RawBox]:
    """A secured box of the interpreter's template, driven without an SDK."""
    made = wire.create("code-interpreter-v1", timeout=LIFETIME)
    yield made
    made.kill()
