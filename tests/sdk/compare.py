# SPDX-License-Identifier: Apache-2.0
"""What two SDKs made of the same steps, compared field by field.

What differs between any two runs (IDs, times, tokens, process IDs, measured numbers, pictures) is replaced by the name
of what it is. Ours may tell more than the stock SDK, never less and nothing else: every field of the stock result must
be in ours with the same value; an error must be of the stock error's class or of one below it, and may fill what that
leaves open.
"""

from __future__ import annotations

import re
from typing import Any

Path = tuple[str, ...]

MASKS = [
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<uuid>"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?", "<time>"),
    (r"signature=[^&\"]*", "signature=<signature>"),
    (r"signature_expiration=\d+", "signature_expiration=<time>"),
    (r"\bcvol_[^\s\"]+", "<volume token>"),
    (r"\bsec_[a-z0-9]{20,26}\b", "<secret>"),
    (r"\bi[a-z0-9]{20}\b", "<sandbox>"),
    (r"\b[0-9a-f]{64}\b", "<token>"),
    (r"\b[a-z0-9]{20}(?=:|\b)", "<template>"),
    (r"(?<=root-commit\) )[0-9a-f]{7,}|(?<=\(was )[0-9a-f]{7,}", "<commit>"),
    (r"\bpid \d+\b", "pid <pid>"),
]
NUMBERS = {"pid", "cpu_used_pct", "mem_used", "mem_cache", "disk_used", "timestamp", "timestamp_unix"}
# A player that stumbles says nothing about an SDK.
STUMBLES = {"AttributeError", "TypeError", "KeyError", "NameError", "IndexError", "ReferenceError", "SyntaxError",
            "ModuleNotFoundError", "NotImplementedError", "Error"}  # fmt: skip


def joined(told: list[Any]) -> list[Any]:
    """Where a pipe's bytes are cut is chance: neighbours of one stream are one text."""
    out: list[Any] = []
    for which, what in told:
        if out and out[-1][0] == which and isinstance(what, str) and isinstance(out[-1][1], str):
            out[-1][1] += what
        else:
            out.append([which, what])
    return out


def masked(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: masked(joined(each) if name == "told" else each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [masked(each, key) for each in value]
    if key in NUMBERS and isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"<{key}>"
    if not isinstance(value, str):
        return value
    if key in {"png", "jpeg"} and len(value) > 100:
        return f"<{key}>"
    for pattern, name in MASKS:
        value = re.sub(pattern, name, value)
    return value


def error_differences(stock: dict[str, Any], ours: dict[str, Any], at: Path) -> list[str]:
    found = []
    if stock["is"] not in ours["bases"]:
        found.append(f"{'.'.join(at)}: stock raises {stock['is']}, ours {ours['is']} ({ours['message']!r})")
    said = {name: value for name, value in stock["fields"].items() if value is not None or name not in ours["fields"]}
    return found + differences(said, ours["fields"], (*at, "error"))


def differences(stock: Any, ours: Any, at: Path) -> list[str]:
    """In what ours differs, one line each."""
    where = ".".join(at)
    if isinstance(stock, dict) and isinstance(ours, dict):
        if {"is", "bases", "fields"} <= set(stock) and {"is", "bases", "fields"} <= set(ours):
            return error_differences(stock, ours, at)
        found = [f"{where}.{name} is missing (stock: {stock[name]!r})" for name in stock if name not in ours]
        for name in stock:
            if name in ours:
                found += differences(stock[name], ours[name], (*at, name))
        return found
    if isinstance(stock, list) and isinstance(ours, list):
        if len(stock) != len(ours):
            return [f"{where}: {len(stock)} of stock, {len(ours)} of ours: {stock!r} and {ours!r}"[:600]]
        each = enumerate(zip(stock, ours, strict=True))
        return [line for i, both in each for line in differences(*both, (*at, str(i)))]
    return [] if stock == ours and type(stock) is type(ours) else [f"{where}: stock {stock!r}, ours {ours!r}"[:600]]


def step_differences(step: str, stock: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    if "raised" in stock and "raised" in ours:
        return error_differences(masked(stock["raised"]), masked(ours["raised"]), (step,))
    if "raised" in stock:
        raised = stock["raised"]
        return [f"{step}: stock raises {raised['is']} ({raised['message']!r}), ours gives {ours!r}"[:600]]
    if "raised" in ours:
        raised = ours["raised"]
        return [f"{step}: ours raises {raised['is']} ({raised['message']!r}), stock gives {stock['value']!r}"[:600]]
    return differences(masked(stock["value"]), masked(ours["value"]), (step,))


def stumbled(results: list[dict[str, Any]]) -> list[str]:
    raised = [result["raised"] for result in results if "raised" in result]
    return [f"{one['is']}: {one['message']}" for one in raised if one["is"] in STUMBLES]
