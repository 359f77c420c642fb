#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The API reference as Markdown, from the package itself: every public name, signature and docstring."""

from __future__ import annotations

import enum
import inspect
import re
import sys
from typing import Any, List

import cloche
from cloche._core.dual import dual

PLAIN = re.compile(r"\b(typing|cloche(\._?\w+)*|datetime)\.(?=[A-Za-z])")
FORWARD = re.compile(r"ForwardRef\('(.*?)'(?:, module='\w+')?\)")


def signature(function: Any) -> str:
    try:
        text = str(inspect.signature(function))
    except (TypeError, ValueError):
        return "()"
    return PLAIN.sub("", text.replace("'", ""))


def doc(thing: Any) -> str:
    return inspect.cleandoc(thing.__doc__) if getattr(thing, "__doc__", None) else ""


def method(name: str, raw: Any) -> List[str]:
    if isinstance(raw, property):
        returns = signature(raw.fget).rpartition("->")[2].strip()
        return [f"#### `{name}: {returns}`", doc(raw)]
    if isinstance(raw, dual):
        by_id = signature(raw.of_class).replace("(_cls: Any, ", "(").replace("(_cls: Any", "(")
        own = signature(raw.of_instance)
        return [f"#### `{name}{own}`", f"On the class: `{name}{by_id}`", doc(raw.of_instance)]
    kind = ""
    if isinstance(raw, (classmethod, staticmethod)):
        kind, raw = type(raw).__name__ + " ", raw.__func__
    asynchronous = "async " if inspect.iscoroutinefunction(raw) else ""
    return [f"#### `{kind}{asynchronous}{name}{signature(raw)}`", doc(raw)]


def of_class(name: str, cls: type) -> List[str]:
    parts = [f"### {name}", doc(cls)]
    if issubclass(cls, enum.Enum):
        return [*parts, ", ".join(f"`{one.name}` = `{one.value!r}`" for one in cls)]
    fields = {
        key: value for base in reversed(cls.__mro__) for key, value in getattr(base, "__annotations__", {}).items()
    }
    types = {key: PLAIN.sub("", FORWARD.sub(r"\1", str(value))) for key, value in fields.items()}
    public = [f"`{key}: {text}`" for key, text in types.items() if not key.startswith("_")]
    if public:
        parts.append("Fields: " + ", ".join(public))
    for key in dir(cls):
        if key.startswith("_") or key in fields:
            continue
        raw = inspect.getattr_static(cls, key)
        if isinstance(raw, (property, dual, classmethod, staticmethod)) or inspect.isfunction(raw):
            parts += method(key, raw)
    return parts


def main() -> None:
    parts = [f"# cloche {cloche.__version__}", "Made from the sources by `tools/reference.py`."]
    names = [(name, getattr(cloche, name)) for name in cloche.__all__]
    classes = [(name, thing) for name, thing in names if inspect.isclass(thing) and thing.__module__ != "builtins"]
    failures = [(name, cls) for name, cls in classes if issubclass(cls, BaseException)]
    parts.append("## Classes")
    for name, cls in classes:
        if (name, cls) not in failures:
            parts += of_class(name, cls)
    parts.append("## Exceptions")
    for name, cls in failures:
        parts.append(f"* `{name}({cls.__bases__[0].__name__})`: {doc(cls)}")
    parts.append("## Functions")
    parts += [part for name, thing in names if inspect.isfunction(thing) for part in method(name, thing)]
    sys.stdout.write("\n\n".join(part for part in parts if part) + "\n")


if __name__ == "__main__":
    main()
