# SPDX-License-Identifier: Apache-2.0
"""player.py MODULE FLAVOUR <SCENARIOS >RESULTS - plays scenarios with a Python SDK (README.md tells the language).

MODULE is `e2b_code_interpreter` or `cloche`, FLAVOUR `sync` or `async`. A step names a call as the SDK names it and its
arguments; its result is told as plain data, so that what two SDKs gave can be compared.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import datetime
import enum
import importlib
import inspect
import json
import os
import sys
import time
import urllib.request
from typing import Any

PATIENCE = 20.0  # seconds that something asked for may take to happen
LIFETIME = 300


class Player:
    def __init__(self, module: str, is_async: bool, unique: str) -> None:
        self.sdk = importlib.import_module(module)
        self.is_async = is_async
        self.unique = unique
        self.saved: dict[str, Any] = {}
        self.shared: dict[str, Any] = {}

    # ---- names and values ----

    def kind(self, name: str) -> Any:
        """Sandbox, Volume, Secret, Template of this flavour."""
        return getattr(self.sdk, f"Async{name}" if self.is_async else name)

    def resolve(self, value: Any) -> Any:
        if isinstance(value, str):
            if value.startswith("$"):
                first, *rest = value[1:].split(".")
                found = self.saved[first]
                for name in rest:
                    found = found[int(name)] if name.isdigit() else getattr(found, name)
                return found
            return value.replace("{unique}", self.unique)
        if isinstance(value, list):
            return [self.resolve(each) for each in value]
        if isinstance(value, dict):
            if set(value) == {"bytes"}:
                return base64.b64decode(value["bytes"])
            return {name: self.resolve(each) for name, each in value.items()}
        return value

    async def settle(self, value: Any) -> Any:
        """A call's own result, whatever the flavour."""
        if inspect.isawaitable(value):
            value = await value
        if hasattr(value, "next_items"):
            items = value.next_items()
            value = await items if inspect.isawaitable(items) else items
        if hasattr(value, "__aiter__") and not hasattr(value, "pid"):
            value = b"".join([chunk async for chunk in value])
        elif hasattr(value, "__next__"):
            value = b"".join(value)
        return value

    # ---- steps ----

    async def step(self, step: dict[str, Any]) -> Any:
        arguments = self.resolve({k: v for k, v in step.items() if k not in ("do", "on", "as", "streamed", "steps")})
        special = getattr(self, "do_" + step["do"].replace(".", "_"), None)
        if special:
            value = await special(step, arguments)
        else:
            value = await self.call(step, arguments)
        if "as" in step:
            self.saved[step["as"]] = value
        return value

    def target(self, step: dict[str, Any]) -> Any:
        first, *rest = step["do"].split(".")
        if first[0].isupper():
            place: Any = self.kind(first)
        else:
            place, rest = self.resolve("$" + step.get("on", "box")), [first, *rest]
        for name in rest:
            place = getattr(place, name)
        return place

    async def call(self, step: dict[str, Any], arguments: dict[str, Any]) -> Any:
        told: list[Any] = []
        for name in step.get("streamed", []):
            arguments[f"on_{name}"] = lambda said, name=name: told.append([name, plain(said)])
        value = await self.settle(self.target(step)(**arguments))
        return {"value": value, "told": told} if step.get("streamed") else value

    async def do_read(self, _step: dict[str, Any], arguments: dict[str, Any]) -> Any:
        """A property of something that was kept."""
        return arguments["of"]

    async def do_write_files(self, step: dict[str, Any], arguments: dict[str, Any]) -> Any:
        entry = self.sdk.WriteEntry if hasattr(self.sdk, "WriteEntry") else None
        files = [entry(**f) if dataclasses.is_dataclass(entry) else f for f in arguments["files"]]
        return await self.settle(self.saved["box"].files.write_files(files))

    async def do_fetch(self, _step: dict[str, Any], arguments: dict[str, Any]) -> Any:
        """Plain HTTP to an address that the SDK gave."""
        data = arguments.get("body")
        request = urllib.request.Request(
            arguments["url"], data.encode() if data else None, {"Content-Type": "application/octet-stream"}
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return {"status": answer.status, "body": answer.read().decode()[:200] if not data else ""}
        except urllib.error.HTTPError as error:
            return {"status": error.code, "body": ""}

    async def do_watch(self, step: dict[str, Any], arguments: dict[str, Any]) -> Any:
        """Steps while a folder is watched; the events before those of the last file, whose name is `until`."""
        until, files, events = arguments.pop("until"), self.saved["box"].files, []
        if self.is_async:
            handle = await files.watch_dir(on_event=events.append, **arguments)
        else:
            handle = files.watch_dir(**arguments)
        for each in step["steps"]:
            await self.step(each)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and until not in [event.name for event in events]:
            if not self.is_async:
                events += handle.get_new_events()
            await asyncio.sleep(0.02)  # between two looks
        await self.settle(handle.stop())
        return sorted({(event.name, plain(event.type)) for event in events if event.name != until})

    async def do_terminal(self, _step: dict[str, Any], arguments: dict[str, Any]) -> Any:
        """A terminal: types, resizes and reads until `until` was printed."""
        said, pty, size = [], self.saved["box"].pty, self.sdk.PtySize(rows=24, cols=80)
        if self.is_async:
            handle = await pty.create(size=size, on_data=lambda data: said.append(data))
        else:
            handle = pty.create(size=size)
        await self.settle(pty.resize(handle.pid, self.sdk.PtySize(rows=30, cols=100)))
        await self.settle(pty.send_stdin(handle.pid, arguments["type"].encode()))
        try:
            if self.is_async:
                await handle.wait()
            else:
                handle.wait(on_pty=lambda data: said.append(data))
            raised = None
        except Exception as error:
            raised = told_error(error)
        text = b"".join(said).decode(errors="replace")
        return {"found": arguments["until"] in text, "ended": raised}

    async def do_started(self, step: dict[str, Any], arguments: dict[str, Any]) -> Any:
        """A command in the background; its handle."""
        return await self.settle(self.saved["box"].commands.run(background=True, **arguments))

    async def do_wait(self, _step: dict[str, Any], arguments: dict[str, Any]) -> Any:
        return await self.settle(arguments["of"].wait())

    async def do_stop(self, _step: dict[str, Any], arguments: dict[str, Any]) -> Any:
        return await self.settle(arguments["of"].kill())

    async def do_type(self, _step: dict[str, Any], arguments: dict[str, Any]) -> Any:
        return await self.settle(self.saved["box"].commands.send_stdin(arguments["to"].pid, arguments["text"]))

    async def do_end_input(self, _step: dict[str, Any], arguments: dict[str, Any]) -> Any:
        return await self.settle(self.saved["box"].commands.close_stdin(arguments["to"].pid))

    async def do_listed(self, _step: dict[str, Any], arguments: dict[str, Any]) -> Any:
        """One process of the list."""
        found = await self.settle(self.saved["box"].commands.list())
        return [each for each in found if each.pid == arguments["of"].pid]

    async def do_connected(self, _step: dict[str, Any], arguments: dict[str, Any]) -> Any:
        return await self.settle(self.saved["box"].commands.connect(arguments["of"].pid))

    async def do_measured(self, _step: dict[str, Any], _arguments: dict[str, Any]) -> Any:
        """The first sample of a box's metrics, once there is one."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if found := await self.settle(self.saved["box"].get_metrics()):
                return found[:1]
            await asyncio.sleep(0.1)  # between two looks
        return []

    async def do_listed_boxes(self, _step: dict[str, Any], arguments: dict[str, Any]) -> Any:
        query = self.sdk.SandboxQuery(metadata=arguments["metadata"])
        if "state" in arguments:
            query.state = [self.sdk.SandboxState(each) for each in arguments["state"]]
        return await self.settle(self.kind("Sandbox").list(query=query))

    async def do_build(self, _step: dict[str, Any], arguments: dict[str, Any]) -> Any:
        """A template of one step; what the build told is left to its type."""
        lines: list[Any] = []
        recipe = self.sdk.Template().from_template(arguments["base"]).run_cmd(arguments["run"])
        if "env" in arguments:
            recipe = recipe.set_envs(arguments["env"])
        built = self.kind("Template").build(
            recipe, name=arguments["name"], tags=arguments.get("tags"), cpu_count=1, memory_mb=512,
            on_build_logs=lines.append,
        )  # fmt: skip
        value = await self.settle(built)
        return {"info": value, "log": sorted({plain(line.level) for line in lines if line.level != "debug"})}

    async def do_recipe(self, _step: dict[str, Any], arguments: dict[str, Any]) -> Any:
        """What a recipe is in the form that is sent."""
        recipe = self.sdk.Template().from_template(arguments["base"]).run_cmd(arguments["run"])
        recipe = recipe.set_workdir("/tmp").set_user("user").set_start_cmd("sleep 1", "true")
        return json.loads(self.kind("Template").to_json(recipe))

    # ---- scenarios ----

    async def box(self, template: str) -> Any:
        """The one box of that template that scenarios share."""
        if template not in self.shared:
            made = self.kind("Sandbox").create(template, timeout=LIFETIME)
            self.shared[template] = await made if inspect.isawaitable(made) else made
        return self.shared[template]

    async def scenario(self, scenario: dict[str, Any]) -> list[Any]:
        results = []
        self.saved = {}
        if scenario.get("box"):
            self.saved["box"] = await self.box(scenario["box"])
        for step in scenario["steps"]:
            try:
                results.append({"value": plain(await asyncio.wait_for(self.step(step), 60))})
            except Exception as error:
                results.append({"raised": told_error(error)})
        return results

    async def play(self, scenarios: list[dict[str, Any]]) -> None:
        for scenario in scenarios:
            began = time.monotonic()
            try:
                results = await self.scenario(scenario)
            except Exception as error:
                results = [{"raised": told_error(error)}]
            text = json.dumps({"name": scenario["name"], "results": results, "seconds": time.monotonic() - began})
            print(text.replace(self.unique, "{unique}"), flush=True)
        for made in self.shared.values():
            await self.settle(made.kill())


# ---- values as plain data ----

HANDLES = ("Sandbox", "CommandHandle", "WatchHandle", "Volume", "Secret", "Template")


def told_error(error: BaseException) -> dict[str, Any]:
    fields = {name: plain(value) for name, value in vars(error).items() if not name.startswith("_")}
    if dataclasses.is_dataclass(error):
        fields |= {field.name: plain(getattr(error, field.name)) for field in dataclasses.fields(error)}
    bases = [kind.__name__ for kind in type(error).__mro__ if kind not in (object, BaseException)]
    return {"is": bases[0], "bases": bases, "fields": fields, "message": str(error)[:300]}


def members(value: Any) -> dict[str, Any]:
    names = [name for name in vars(value) if not name.startswith("_")]
    if dataclasses.is_dataclass(value):
        names += [field.name for field in dataclasses.fields(value) if not field.name.startswith("_")]
    names += [n for n, v in inspect.getmembers(type(value)) if isinstance(v, property) and not n.startswith("_")]
    found = {name: plain(getattr(value, name)) for name in dict.fromkeys(names)}
    if callable(getattr(value, "formats", None)):
        found["formats()"] = sorted(value.formats())
    return found


def plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(each) for each in value]
    name = type(value).__name__.removeprefix("Async")
    if name in HANDLES:
        return {"is": name}
    return {"is": type(value).__name__, **members(value)}


def main() -> None:
    module, flavour = sys.argv[1:]
    player = Player(module, flavour == "async", os.environ["UNIQUE"])
    asyncio.run(player.play(json.load(sys.stdin)))


main()
