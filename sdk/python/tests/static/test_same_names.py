# SPDX-License-Identifier: Apache-2.0
"""Every name that the two stock packages export is here, with the same parameters, kinds and defaults.

What differs is in DEVIATIONS with its reason; a deviation that is none fails as well.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import typing
from typing import Any, Dict, Iterator, List, Optional, Tuple

import e2b
import e2b_code_interpreter
import pytest

import cloche
from cloche._core.dual import dual

INTERNAL = "made by this package only: what it is constructed from is not part of the interface"
DEVIATIONS: Dict[str, str] = {
    "AsyncCommandHandle.__init__": INTERNAL,
    "AsyncCommandInputHandle.__init__": INTERNAL,
    "AsyncWatchHandle.__init__": INTERNAL,
    "CommandHandle.__init__": INTERNAL,
    "WatchHandle.__init__": INTERNAL,
    "Commands.__init__": INTERNAL,
    "AsyncCommands.__init__": INTERNAL,
    "Pty.__init__": INTERNAL,
    "AsyncPty.__init__": INTERNAL,
    "Filesystem.__init__": INTERNAL,
    "AsyncFilesystem.__init__": INTERNAL,
    "Sandbox.__init__": "the options of the stock `**opts` by their names",
    "AsyncSandbox.__init__": "the options of the stock `**opts` by their names",
    "McpServer": "a dict: the types of 265 servers of a catalogue change with the catalogue, not with this package",
    "GitHubMcpServer": "a dict, see McpServer",
    "ProxyTypes": "httpx is loaded with the first request; type checkers see the union",
}


def exported() -> Dict[str, Any]:
    names: Dict[str, Any] = {}
    for package in (e2b, e2b_code_interpreter):
        listed = getattr(package, "__all__", None) or [one for one in dir(package) if not one.startswith("_")]
        names.update({name: getattr(package, name) for name in listed})
    return names


STOCK = exported()
MODULES = sorted(name for name, thing in STOCK.items() if inspect.ismodule(thing))
NAMES = sorted(set(STOCK) - set(MODULES))

# Reached through a sandbox, exported by nobody.
PARTS = {
    "Commands": ("e2b.sandbox_sync.commands.command", "cloche._sync.running", "Commands"),
    "AsyncCommands": ("e2b.sandbox_async.commands.command", "cloche._async.running", "AsyncCommands"),
    "Pty": ("e2b.sandbox_sync.commands.pty", "cloche._sync.running", "Pty"),
    "AsyncPty": ("e2b.sandbox_async.commands.pty", "cloche._async.running", "AsyncPty"),
    "Filesystem": ("e2b.sandbox_sync.filesystem.filesystem", "cloche._sync.watch_handle", "Filesystem"),
    "AsyncFilesystem": ("e2b.sandbox_async.filesystem.filesystem", "cloche._async.watch_handle", "AsyncFilesystem"),
    "AsyncGit": ("e2b.sandbox_async.git", "cloche._async.git", "AsyncGit"),
    "TemplateBuilder": ("e2b.template.main", "cloche._core.template.base", "TemplateBuilder"),
}


def classes() -> Iterator[Tuple[str, Any, Any]]:
    for name in NAMES:
        if inspect.isclass(STOCK[name]) and STOCK[name].__module__ != "builtins":
            yield name, STOCK[name], getattr(cloche, name)
    for name, (stock, ours, called) in PARTS.items():
        stock_name = name.replace("Async", "") if name != "AsyncGit" else "Git"
        yield name, getattr(importlib.import_module(stock), stock_name), getattr(importlib.import_module(ours), called)
    for name in dir(e2b_code_interpreter.charts):
        thing = getattr(e2b_code_interpreter.charts, name)
        if inspect.isclass(thing) and thing.__module__ == "e2b_code_interpreter.charts":
            yield name, thing, getattr(cloche, name)


CLASSES = list(classes())

Shape = List[Tuple[str, str, Any]]


def shape(function: Any) -> Optional[Shape]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    return [
        (one.name, one.kind.name, "no default" if one.default is inspect.Parameter.empty else repr(one.default))
        for one in parameters
        if one.name not in ("self", "cls", "_cls")
    ]


def extends(ours: Shape, stock: Shape) -> bool:
    """Whether a call that fits the stock signature fits ours: the same parameters, and more only with a default."""
    free = [one for one in ours if one[1] == "KEYWORD_ONLY" and one[2] != "no default" and one not in stock]
    rest = [one for one in ours if one not in free]
    return rest == stock


def both_forms(cls: Any, name: str) -> Dict[str, Any]:
    """The functions behind a name: on an instance, and on the class where that is another one."""
    raw = inspect.getattr_static(cls, name)
    if isinstance(raw, dual):
        return {"instance": raw.of_instance, "class": raw.of_class}
    kind = type(raw).__name__
    if kind == "class_method_variant":
        return {"instance": raw.method, "class": inspect.getattr_static(cls, raw.class_method_name).__func__}
    if kind == "DualMethod":
        return {"instance": raw._instance_fn, "class": raw._static_fn.__func__}
    if isinstance(raw, (classmethod, staticmethod)):
        return {"function": raw.__func__}
    return {"function": raw} if callable(raw) else {}


def members(cls: Any) -> List[str]:
    return [name for name in dir(cls) if not name.startswith("_") or name in ("__init__", "__enter__", "__aenter__")]


def method_cases() -> Iterator[Any]:
    for name, stock, ours in CLASSES:
        if issubclass(stock, (enum.Enum, dict)):
            continue
        for member in members(stock):
            yield pytest.param(name, member, stock, ours, id=f"{name}.{member}")


@pytest.mark.parametrize("name", NAMES)
def test_every_stock_name_is_exported(name: str) -> None:
    assert name in cloche.__all__
    assert getattr(cloche, name) is not None or STOCK[name] is None


@pytest.mark.parametrize("name", MODULES)
def test_every_stock_module_is_there_with_its_public_names(name: str) -> None:
    ours = importlib.import_module(f"cloche.{name}")
    stock = STOCK[name]
    own = [
        one
        for one, thing in vars(stock).items()
        if not one.startswith("_") and getattr(thing, "__module__", None) == stock.__name__
    ]
    helpers = ("format_", "extract_", "aextract_", "parse_", "async_parse_", "serialize_")
    missing = [one for one in own if not hasattr(ours, one) and not one.startswith(helpers)]
    assert missing == []


@pytest.mark.parametrize(("name", "member", "stock", "ours"), list(method_cases()))
def test_every_member_has_the_same_signature(name: str, member: str, stock: Any, ours: Any) -> None:
    assert hasattr(ours, member) or member in getattr(ours, "__annotations__", {}), f"{name}.{member} is missing"
    raw = inspect.getattr_static(stock, member)
    if isinstance(raw, property):
        assert isinstance(inspect.getattr_static(ours, member), property) or member == "pid"
        return
    if inspect.isdatadescriptor(raw) or not callable(getattr(stock, member)):
        return
    differences = []
    forms = both_forms(ours, member)
    for form, function in both_forms(stock, member).items():
        wanted, found = shape(function), shape(forms.get(form, forms.get("function")))
        if wanted is not None and (found is None or not extends(found, wanted)):
            differences.append(f"{form}\n  stock {wanted}\n  ours  {found}")
    allowed = f"{name}.{member}" in DEVIATIONS
    assert bool(differences) == allowed, "\n".join(differences) or "a deviation that is none"


@pytest.mark.parametrize("name", [name for name in NAMES if inspect.isfunction(STOCK[name])])
def test_every_function_has_the_same_signature(name: str) -> None:
    assert shape(getattr(cloche, name)) == shape(STOCK[name])


@pytest.mark.parametrize(("name", "stock", "ours"), CLASSES, ids=[name for name, _, _ in CLASSES])
def test_every_class_has_the_same_data(name: str, stock: Any, ours: Any) -> None:
    if issubclass(stock, enum.Enum):
        theirs = {key: one.value for key, one in stock.__members__.items()}
        mine = {key: one.value for key, one in ours.__members__.items()}
        assert {key: mine.get(key) for key in theirs} == theirs
        return
    if typing.is_typeddict(stock):
        assert set(ours.__annotations__) == set(stock.__annotations__)
        assert set(ours.__required_keys__) == set(stock.__required_keys__)
        return
    if issubclass(stock, BaseException):
        wanted = [one.__name__ for one in stock.__mro__ if one.__module__.startswith(("e2b", "builtins"))]
        found = [one.__name__ for one in ours.__mro__]
        assert [one for one in wanted if one not in found and one not in ("Generic", "object")] == []
    if dataclasses.is_dataclass(stock):
        wanted_fields = {one.name for one in dataclasses.fields(stock)}
        assert wanted_fields <= {one.name for one in dataclasses.fields(ours)}


def test_the_exception_tree_keeps_what_is_no_sandbox_exception() -> None:
    for name in NAMES:
        stock = STOCK[name]
        if inspect.isclass(stock) and issubclass(stock, Exception):
            ours = getattr(cloche, name)
            assert issubclass(ours, cloche.SandboxException) == issubclass(stock, e2b.SandboxException), name
            assert issubclass(ours, cloche.TimeoutException) == issubclass(stock, e2b.TimeoutException), name


def test_every_exception_has_a_cause() -> None:
    for name in cloche.__all__:
        thing = getattr(cloche, name)
        if inspect.isclass(thing) and issubclass(thing, Exception) and thing is not cloche.DockerfileSyntaxError:
            assert thing.cause is None and thing.status_code in (None, 503), name
