# SPDX-License-Identifier: Apache-2.0
"""Lists and dicts as JSON, for the `json` field of a result.

Most structures pass through the C encoder as they are. The slow way, element by element, is for numpy values, dates,
odd keys and NaN. What cannot be JSON (arbitrary objects, integers beyond 64 bits, cycles) makes the
whole structure have no JSON form; nothing here ever fails the user's cell.
"""

import dataclasses
import datetime
import enum
import json
import math
import re
import sys
import uuid
from typing import Any

from .publisher import Encoded

LONG_NUMBER = re.compile(r"\d{19}")
SMALLEST, LARGEST = -(2**63), 2**64 - 1
DEEPEST = 200


class NotPlain(Exception):
    """The structure has no JSON form."""


def structure(value: Any) -> Any:
    """JSON text of a list or dict, else what its own _repr_json_ says, else None."""
    text = encode(value)
    if text is not None:
        return Encoded(text)
    method = getattr(value, "_repr_json_", None)
    return method() if callable(method) else None


def encode(value: Any) -> str | None:
    try:
        text = json.dumps(value, allow_nan=False)
        if not LONG_NUMBER.search(text):
            return text
    except Exception:
        pass
    try:
        return json.dumps(convert(value), allow_nan=False)
    except Exception:
        return None


def convert(value: Any, depth: int = 0) -> Any:
    """The value made of what JSON has. Raises NotPlain."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, enum.Enum):
        return convert(value.value, depth + 1)
    if isinstance(value, int):
        if not SMALLEST <= value <= LARGEST:
            raise NotPlain("an integer beyond 64 bits")
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if depth > DEEPEST:
        raise NotPlain("too deep")
    if isinstance(value, dict):
        return {key_text(key): convert(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [convert(item, depth + 1) for item in value]
    return _convert_rare(value, depth)


def _convert_rare(value: Any, depth: int) -> Any:
    text = moment_text(value)
    if text is not None:
        return text
    if isinstance(value, uuid.UUID):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {field.name: convert(getattr(value, field.name), depth + 1) for field in fields}
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.datetime64):
        return None if numpy.isnat(value) else str(value)
    if numpy is not None and isinstance(value, numpy.ndarray) and value.dtype.kind == "M":
        return [convert(item, depth + 1) for item in value]
    if numpy is not None and isinstance(value, numpy.ndarray):
        return convert(value.tolist(), depth + 1)
    if numpy is not None and isinstance(value, (numpy.bool_, numpy.number)):
        return convert(value.item(), depth + 1)
    raise NotPlain(type(value).__name__)


def key_text(key: Any) -> str:
    """A dict key as JSON has it: always text."""
    if isinstance(key, str):
        return key
    if isinstance(key, enum.Enum):
        return key_text(key.value)
    plain_key = convert(key)
    if isinstance(plain_key, (dict, list)):
        raise NotPlain("a key that is no single value")
    return plain_key if isinstance(plain_key, str) else json.dumps(plain_key)


def moment_text(value: Any) -> str | None:
    """ISO text of a date or time; None for anything else."""
    if isinstance(value, (datetime.date, datetime.time)):
        text = value.isoformat()
        return None if text == "NaT" else text
    return None
