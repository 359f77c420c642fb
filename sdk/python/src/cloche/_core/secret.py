# SPDX-License-Identifier: Apache-2.0
"""Secrets on the wire."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Dict
from urllib.parse import quote

from ..exceptions import InvalidArgumentException
from .sandbox import time_of
from .wire import JsonObject


@dataclass
class SecretInfo:
    """What the server tells of a secret: never its value."""

    secret_id: str
    name: str
    version: int
    metadata: Dict[str, str]
    created_at: datetime
    updated_at: datetime


def read_secret(data: JsonObject) -> SecretInfo:
    return SecretInfo(
        secret_id=data["secretID"],
        name=data["name"],
        version=data["currentVersion"],
        metadata=dict(data.get("metadata") or {}),
        created_at=time_of(data["createdAt"]),
        updated_at=time_of(data["updatedAt"]),
    )


def secret_path(selector: str) -> str:
    return f"/secrets/{quote(selector, safe='')}"


_BAD_NAME = re.compile(r"[{}\x00-\x1f\x7f-\x9f]")


def placeholder(name: Any) -> str:
    if not isinstance(name, str) or not name or _BAD_NAME.search(name):
        raise InvalidArgumentException(f"secret name {name!r} is empty or holds braces or control characters")
    return f"${{e2b.secrets.{name}}}"
