# SPDX-License-Identifier: Apache-2.0
"""The models of C, Python and TypeScript have the fields that sdk/schema/models.toml says, and no others."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import re
import subprocess
import sys
import typing
from pathlib import Path
from typing import Any

import pytest
from table import ROOT

sys.path[:0] = [str(ROOT / "sdk/schema"), str(ROOT / "sdk/python/src")]
from models import Field, Model, load  # noqa: E402

MODELS = load()


def models_of(language: str) -> list[Model]:
    return [model for model in MODELS.values() if language in model.places]


def complain(model: Model, language: str, there: set[str]) -> None:
    wanted = model.names(language)
    place = model.places[language]
    assert there >= wanted, f"{language} {place} lacks {sorted(wanted - there)} of model {model.name}"
    assert there <= wanted, f"{language} {place} has {sorted(there - wanted)}, which models.toml does not know"


# ---- C ----

HEADER = ROOT / "sdk/c/include/cloche.h"
# What a kind may be written as.
C_TYPES = {
    "string": r"const char \*|char|struct cloche_text", "time": r"const char \*", "any": r".*",
    "int": r"(u?int(32|64)_t|int|size_t|const char \*)", "number": r"double", "bool": r"bool",
}  # fmt: skip


def c_structs() -> dict[str, dict[str, str]]:
    """Members of every struct of the header with their types as text."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
    structs = {}
    for name, body in re.findall(r"^struct (cloche_\w+) \{\n(.*?)^\};", text, flags=re.S | re.M):
        members: dict[str, str] = {}
        for line in body.split(";"):
            declared = re.match(r"\s*(.*?)(\**\w+(?:\s*,\s*\**\w+)*)\s*$", " ".join(line.split()))
            for each in re.split(r"\s*,\s*", declared[2]) if declared else []:
                members[each.lstrip("*")] = (declared[1] + "*" * each.count("*")).replace(" *", " *").strip()
        structs[name] = members
    return structs


def counts(members: dict[str, str], model: Model) -> set[str]:
    """Members that only say how long another one is, and the text that the server sent."""
    lists = {field.names["c"] for field in model.fields if field.is_list and "c" in field.names}
    singular = {name.removesuffix("s") + "_count" for name in lists}
    extra = {"size", "raw"} - model.names("c")
    return {name for name in members if name in extra or (name not in model.names("c") and name in singular)}


@pytest.mark.parametrize("model", models_of("c"), ids=lambda model: model.name)
def test_structs_of_the_c_library(model: Model) -> None:
    members = c_structs()[model.places["c"]]
    complain(model, "c", set(members) - counts(members, model))
    for field in model.fields:
        if "c" in field.names and field.type in C_TYPES:
            kind = members[field.names["c"]]
            assert re.fullmatch(C_TYPES[field.type], kind), f"{field.names['c']} is {kind!r}, not a {field.type}"


# ---- Python ----

PYTHON = ROOT / "sdk/python/src"
PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str, enum.Enum), "time": (datetime.datetime,), "int": (int, datetime.datetime), "number": (float, int),
    "bool": (bool,), "map": (dict,), "any": (object,),
}  # fmt: skip


def python_hints(model: Model) -> dict[str, Any]:
    import cloche

    kind = getattr(cloche, model.places["python"])
    hints = typing.get_type_hints(kind)
    if dataclasses.is_dataclass(kind):
        return {field.name: hints[field.name] for field in dataclasses.fields(kind) if not field.name.startswith("_")}
    return hints


def bare(hint: Any) -> tuple[Any, bool]:
    """A type without Optional, NotRequired and the like, and whether None is one of its values."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Union or str(origin) == "<class 'types.UnionType'>":
        rest = [each for each in args if each is not type(None)]
        return (bare(rest[0])[0] if len(rest) == 1 else object), len(rest) < len(args)
    if origin is not None and str(origin).split(".")[-1] in {"NotRequired", "Required"}:
        return bare(args[0])
    if origin is typing.Literal:
        return str, False
    return (origin or hint), False


@pytest.mark.parametrize("model", models_of("python"), ids=lambda model: model.name)
def test_models_of_the_python_package(model: Model) -> None:
    hints = python_hints(model)
    complain(model, "python", set(hints))
    for field in model.fields:
        wanted = (list, tuple) if field.type.startswith("list<") else PYTHON_TYPES.get(field.type)
        kind, _ = bare(hints[field.names["python"]]) if "python" in field.names else (None, False)
        if wanted and isinstance(kind, type):
            assert kind is object or issubclass(kind, wanted), f"{field.name} is {kind}, not a {field.type}"


# ---- TypeScript ----

TYPESCRIPT = ROOT / "sdk/typescript"
TS_TYPES = {"string": "string", "time": "Date", "int": "number | Date | string", "number": "number", "bool": "boolean",
            "map": "Record<string, string>", "any": "unknown"}  # fmt: skip


def ts_type(field: Field) -> str:
    if field.type.startswith("list<"):
        return "readonly unknown[]"
    if field.type in MODELS:
        return "object"
    return TS_TYPES.get(field.type, " | ".join(f"'{word}'" for word in field.type.split("|")))


def ts_assertions() -> str:
    """A program whose types hold only when the SDK's are as described."""
    lines = [
        "type Data<T> = { [K in keyof T as T[K] extends (...given: any[]) => any ? never : K]: T[K] }",
        "type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : never) : never",
        "type Given<T, K> = K extends keyof T ? Exclude<T[K], undefined | null> : never",
    ]
    for model in models_of("typescript"):
        name = model.places["typescript"]
        lines.insert(0, f"import type {{ {name} as {model.name}_ }} from 'cloche'")
        keys = " | ".join(f"'{key}'" for key in sorted(model.names("typescript")))
        lines.append(f"export const {model.name}Keys: Same<keyof Data<{model.name}_>, {keys}> = true")
        for field in model.fields:
            if key := field.names.get("typescript"):
                wanted = ts_type(field)
                lines.append(
                    f"export const {model.name}_{key} = "
                    f"(given: Given<{model.name}_, '{key}'>): {wanted} => given"
                )
    return "\n".join(lines) + "\n"


def test_types_of_the_typescript_package(tmp_path: Path) -> None:
    (tmp_path / "models.ts").write_text(ts_assertions())
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules/cloche").symlink_to(TYPESCRIPT)
    options = {"noEmit": True, "strict": True, "skipLibCheck": True, "module": "nodenext", "target": "es2022",
               "types": [], "lib": ["es2022", "dom", "dom.iterable", "esnext.disposable"]}  # fmt: skip
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": options, "files": ["models.ts"]}))
    tsc = TYPESCRIPT / "node_modules/.bin/tsc"
    done = subprocess.run([tsc, "-p", "."], cwd=tmp_path, capture_output=True, text=True, check=False)
    lines = (tmp_path / "models.ts").read_text().splitlines()
    wrong = [f"{lines[int(at) - 1]}\n  {said}" for at, said in re.findall(r"models.ts\((\d+),\d+\): (.*)", done.stdout)]
    assert done.returncode == 0, "\n" + ("\n".join(wrong) or done.stdout)


# ---- the schemas ----


def test_the_json_schemas_are_what_the_description_says() -> None:
    done = subprocess.run([ROOT / "sdk/schema/generate", "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
