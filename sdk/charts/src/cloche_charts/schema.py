# SPDX-License-Identifier: Apache-2.0
"""The JSON schema of every chart type, written from the classes: `python -m cloche_charts.schema` prints it."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from . import models

PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    float: {"type": "number"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Any: {},
}


def schema() -> dict[str, Any]:
    definitions: dict[str, Any] = {}
    chart = of(models.Chart, definitions)
    definitions["Detail"] = of(models.Detail, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Chart",
        "description": "The `chart` of a result. `{}` is the chart of a figure that has none.",
        "anyOf": [*chart["anyOf"], {"type": "object", "maxProperties": 0}],
        "$defs": {name: definitions[name] for name in sorted(definitions)},
    }


def of(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of one type; classes go into the definitions."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Union:
        return _union([of(arg, definitions) for arg in args])
    if origin is list:
        return {"type": "array", "items": of(args[0], definitions)}
    if origin is tuple:
        items = [of(arg, definitions) for arg in args]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if origin is dict:
        return {"type": "object", "additionalProperties": of(args[1], definitions)}
    if origin is Literal:
        return {"const": args[0]} if len(args) == 1 else {"enum": list(args)}
    if dataclasses.is_dataclass(hint):
        name = str(getattr(hint, "__name__", ""))
        if name not in definitions:
            definitions[name] = {}
            definitions[name] = _class(hint, definitions)
        return {"$ref": f"#/$defs/{name}"}
    return dict(PLAIN[hint])


def _union(choices: list[dict[str, Any]]) -> dict[str, Any]:
    """Several plain types are a list of types; anything else is any of them."""
    if all(set(choice) == {"type"} for choice in choices):
        return {"type": [choice["type"] for choice in choices]}
    return {"anyOf": choices}


def _class(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    fields = dataclasses.fields(kind)
    described = "".join((kind.__doc__ or "").split("\n\n")[:1]).strip()
    schema: dict[str, Any] = {"type": "object"}
    if described and not described.startswith(f"{kind.__name__}("):
        schema["description"] = " ".join(described.split())
    schema["properties"] = {models.WIRE.get(f.name, f.name): _field(f, hints[f.name], definitions) for f in fields}
    schema["required"] = [models.WIRE.get(f.name, f.name) for f in fields if f.default is not None]
    return schema


def _field(one: Any, hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """A field that is left out where there is nothing is never null."""
    if one.name == "detail":
        return {"$ref": "#/$defs/Detail"}
    found = of(hint, definitions)
    if one.default is None and "anyOf" in found:
        choices = [choice for choice in found["anyOf"] if choice != PLAIN[type(None)]]
        return choices[0] if len(choices) == 1 else {"anyOf": choices}
    return found


def text() -> str:
    return json.dumps(schema(), indent=1) + "\n"


if __name__ == "__main__":
    print(text(), end="")
