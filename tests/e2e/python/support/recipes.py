# SPDX-License-Identifier: Apache-2.0
"""Building templates: with the SDK of either flavour, and by hand on the wire.

Workshop is one face for the synchronous and the asynchronous builder; it keeps
what a build logged. Order is a build driven by REST calls alone, for what the
builder never sends. Names are unique per run, so nothing needs to be deleted.
"""

from __future__ import annotations

import gzip
import hashlib
import inspect
import io
import tarfile
import uuid
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import e2b
import e2b_code_interpreter as interpreter

from support.either import Either
from support.waiting import eventually
from support.wire import Answer, RawBox, Wire

BUILD_SECONDS = 90


def fresh(stem: str) -> str:
    return f"{stem}-{uuid.uuid4().hex[:12]}"


async def answer(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


class Workshop:
    """The template builder of one flavour, and boxes of what it built."""

    def __init__(self, flavour: str) -> None:
        self.flavour = flavour
        self.is_async = flavour == "async"
        self.kind = e2b.AsyncTemplate if self.is_async else e2b.Template
        self.logs: list[e2b.LogEntry] = []

    def template(self, context: Path | str | None = None, **options: Any) -> Any:
        return self.kind(file_context_path=context, **options) if context else self.kind(**options)

    async def build(self, template: Any, name: str, **options: Any) -> e2b.BuildInfo:
        self.logs = []
        made = self.kind.build(template, name, on_build_logs=self.logs.append, **options)
        return await answer(made)

    async def call(self, method: str, *args: Any, **options: Any) -> Any:
        return await answer(getattr(self.kind, method)(*args, **options))

    async def box(self, name: str, sdk: Any = e2b, **options: Any) -> Either:
        kind = sdk.AsyncSandbox if self.is_async else sdk.Sandbox
        return Either(await answer(kind.create(name, **{"timeout": 120} | options)))

    async def cell(self, name: str, **options: Any) -> Either:
        return await self.box(name, sdk=interpreter, **options)

    @property
    def messages(self) -> list[str]:
        return [entry.message for entry in self.logs]

    def says(self, *parts: str) -> list[int]:
        """Where each part is first found in the log, in the order asked for."""
        places = []
        for part in parts:
            found = [at for at, text in enumerate(self.messages) if part in text]
            assert found, f"{part!r} is not in the log: {self.messages}"
            places.append(found[0])
        return places


@dataclass
class Order:
    """One build, ordered by hand: requested, started, watched."""

    wire: Wire
    name: str
    fields: dict[str, Any] = field(default_factory=dict)
    made: dict[str, Any] = field(default_factory=dict)

    def request(self) -> Order:
        got = self.wire.call("POST", "/v3/templates", {"name": self.name} | self.fields)
        assert got.status == 202, (got.status, got.body)
        self.made = got.json()
        return self

    @property
    def template(self) -> str:
        return self.made["templateID"]

    @property
    def build(self) -> str:
        return self.made["buildID"]

    def try_start(self, recipe: dict[str, Any]) -> Answer:
        return self.wire.call("POST", f"/v2/templates/{self.template}/builds/{self.build}", recipe)

    def start(self, *steps: dict[str, Any], **recipe: Any) -> Order:
        if "fromImage" not in recipe:
            recipe.setdefault("fromTemplate", "base")
        got = self.try_start({"steps": list(steps), "force": False} | recipe)
        assert got.status == 202, (got.status, got.body)
        assert got.headers["Content-Length"] == "0"
        return self

    def status(self, query: str = "") -> dict[str, Any]:
        path = f"/templates/{self.template}/builds/{self.build}/status{query}"
        got = self.wire.call("GET", path)
        assert got.status == 200, (got.status, got.body)
        return got.json()

    def wait(self, seconds: float = BUILD_SECONDS) -> dict[str, Any]:
        def over() -> dict[str, Any] | None:
            now = self.status()
            return None if now["status"] in ("waiting", "building") else now

        return eventually(over, seconds, every=0.1, state=lambda: (self.status(), self.log()[-10:]))

    def log(self) -> list[str]:
        """The whole log, page by page."""
        lines: list[str] = []
        while page := self.status(f"?logsOffset={len(lines)}")["logEntries"]:
            lines += [entry["message"] for entry in page]
        return lines

    def ready(self) -> Order:
        done = self.wait()
        assert done["status"] == "ready", (done.get("reason"), self.log()[-10:])
        return self

    def failed(self) -> dict[str, Any]:
        done = self.wait()
        assert done["status"] == "error", done
        return done["reason"]

    def upload(self, archive: bytes, key: str | None = None) -> str:
        """Store an archive under a key of its own, as a client does with the hash it computed."""
        key = key or hashlib.sha256(archive).hexdigest()
        link = self.wire.call("GET", f"/templates/{self.template}/files/{key}")
        assert link.status == 201, (link.status, link.body)
        sent = self.wire_of(link.json()["url"]).call(
            "PUT", path_of(link.json()["url"]), archive, link.json().get("headers"), with_key=False
        )
        assert 200 <= sent.status < 300, (sent.status, sent.body)
        return key

    def wire_of(self, url: str) -> Wire:
        scheme, rest = url.split("://", 1)
        return Wire(f"{scheme}://{rest.split('/', 1)[0]}", None)

    def box(self, tag: str | None = None, **options: Any) -> RawBox:
        return self.wire.create(f"{self.name}:{tag}" if tag else self.name, **options)


def path_of(url: str) -> str:
    return "/" + url.split("://", 1)[1].split("/", 1)[1]


def order(wire: Wire, name: str, *steps: dict[str, Any], **recipe: Any) -> Order:
    return Order(wire, name).request().start(*steps, **recipe)


def run(command: str, user: str | None = None, **more: Any) -> dict[str, Any]:
    return {"type": "RUN", "args": [command, *([user] if user else [])]} | more


def step(kind: str, *args: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "args": list(args)} | more


def tarball(*members: tuple[str, bytes | str | None], compressed: bool = True, **fields: Any) -> bytes:
    """Members are (name, content); None makes a directory, a str a symbolic link."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            if content is None:
                member.type, member.mode = tarfile.DIRTYPE, 0o755
            elif isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
            else:
                member.size, member.mode = len(content), 0o644
            for key, value in fields.items():
                setattr(member, key, value)
            archive.addfile(member, io.BytesIO(content) if isinstance(content, bytes) else None)
    return gzip.compress(buffer.getvalue()) if compressed else buffer.getvalue()


def wheel(folder: Path, name: str, version: str, text: str) -> str:
    """A tiny package of one module with one WORD, as a wheel; returns its file name."""
    file = f"{name}-{version}-py3-none-any.whl"
    notes = f"{name}-{version}.dist-info"
    members = {
        f"{name}.py": f"WORD = {text!r}\n",
        f"{notes}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{notes}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    members[f"{notes}/RECORD"] = "".join(f"{path},,\n" for path in [*members, f"{notes}/RECORD"])
    with zipfile.ZipFile(folder / file, "w") as archive:
        for path, body in members.items():
            archive.writestr(path, body)
    return file
