# SPDX-License-Identifier: Apache-2.0
"""models.toml read, and what follows from it: JSON schemas, and the names that each SDK must have."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
LANGUAGES = ("json", "python", "typescript", "c")
SIMPLE = {"string", "int", "number", "bool", "time", "any", "map"}
BASE = "https://cloche.invalid/schema/json/"  # of the schemas' names; nothing is fetched
TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$"


@dataclass(frozen=True)
class Field:
    name: str
    type: str
    optional: bool
    names: dict[str, str]  # by language; only those that have it

    @property
    def is_list(self) -> bool:
        return self.type == "map" or self.type.startswith("list<")


@dataclass(frozen=True)
class Model:
    name: str
    doc: str
    places: dict[str, Any]  # language -> its name there (json: True)
    fields: list[Field]
    is_open: bool
    ref: str | None

    def names(self, language: str) -> set[str]:
        return {field.names[language] for field in self.fields if language in field.names}


def camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def field_of(name: str, text: str, places: dict[str, Any]) -> Field:
    kind, *words = text.split()
    options = dict(word.split("=", 1) for word in words)
    where = options.pop("in", ",".join(places)).split(",")
    if unknown := set(options) - set(LANGUAGES) or set(where) - set(LANGUAGES):
        raise ValueError(f"{name} = {text!r}: unknown words {sorted(unknown)}")
    usual = {"json": camel(name), "typescript": camel(name), "python": name, "c": name}
    names = {language: options.get(language, usual[language]) for language in where if language in places}
    return Field(name, kind.removesuffix("?"), kind.endswith("?"), names)


def model_of(name: str, table: dict[str, Any]) -> Model:
    about = dict(table["_"])
    places = {language: about[language] for language in LANGUAGES if about.get(language)}
    fields = [field_of(each, text, places) for each, text in table.items() if each != "_"]
    return Model(name, about["doc"], places, fields, bool(about.get("open")), about.get("ref"))


def load(path: Path = HERE / "models.toml") -> dict[str, Model]:
    """Every model by its name."""
    return {name: model_of(name, table) for name, table in tomllib.loads(path.read_text()).items()}


# ---- JSON schema ----


def type_schema(kind: str, models: dict[str, Model]) -> dict[str, Any]:
    if kind.startswith("list<"):
        return {"type": "array", "items": type_schema(kind[5:-1], models)}
    if kind in models:
        return {"$ref": f"{kind}.json"}
    if kind not in SIMPLE:
        return {"enum": kind.split("|")}
    simple: dict[str, dict[str, Any]] = {
        "string": {"type": "string"},
        "int": {"type": "integer"},
        "number": {"type": "number"},
        "bool": {"type": "boolean"},
        "time": {"type": "string", "pattern": TIME},
        "any": {},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
    }
    return simple[kind]


def field_schema(field: Field, models: dict[str, Model]) -> dict[str, Any]:
    schema = type_schema(field.type, models)
    return {"anyOf": [schema, {"type": "null"}]} if field.optional and schema else schema


def schema(model: Model, models: dict[str, Model]) -> dict[str, Any]:
    """The JSON schema of what the server sends; unknown fields are refused, so that none is added here alone."""
    top = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"{BASE}{model.name}.json",
           "title": model.name, "description": model.doc}  # fmt: skip
    if model.ref:
        return top | {"$ref": model.ref}
    fields = [field for field in model.fields if "json" in field.names]
    return top | {
        "type": "object",
        "properties": {field.names["json"]: field_schema(field, models) for field in fields},
        "required": [field.names["json"] for field in fields if not field.optional],
        "additionalProperties": model.is_open,
    }
