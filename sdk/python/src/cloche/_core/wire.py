# SPDX-License-Identifier: Apache-2.0
"""What passes between the rooms that know the API and the transports that know HTTP.

A transport takes a `Request` and gives a `Reply`, or fails with one of the two exceptions here; nothing outside the
transports imports httpx, which costs four fifths of the package's start-up time and is loaded with the first request.
"""

from __future__ import annotations

import json
import random
from typing import Any, AsyncIterable, Dict, Iterable, List, Mapping, Optional, Union, cast

Body = Union[bytes, Iterable[bytes], AsyncIterable[bytes], None]
JsonObject = Dict[str, Any]

RETRIED_STATUSES = frozenset((429, 502, 503, 504))
BACKOFF_FIRST = 0.1
BACKOFF_MAX = 10.0
RETRY_BUDGET = 60.0  # seconds for all repeats of a call whose timeout is off
RETRY_AFTER_MAX = 2147483647


class Request:
    """One HTTP request. `timeout` is the longest silence in seconds, None for no limit."""

    __slots__ = ("connect_timeout", "content", "headers", "http1", "method", "retries", "timeout", "url")

    def __init__(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        content: Body = None,
        *,
        timeout: Optional[float] = None,
        connect_timeout: Optional[float] = None,
        retries: int = 0,
        http1: bool = False,
    ) -> None:
        self.method = method
        self.url = url
        self.headers = headers
        self.content = content
        self.timeout = timeout
        self.connect_timeout = timeout if connect_timeout is None else connect_timeout
        self.retries = retries
        self.http1 = http1


class Reply:
    """A whole answer. Header names are in lower case."""

    __slots__ = ("body", "headers", "reason", "status")

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes, reason: str = "") -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.reason = reason

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        return json.loads(self.body)


class WireTimeout(Exception):
    """Nothing came, or went, for as long as the request allows; or its deadline was reached."""

    def __init__(self, original: Optional[Exception] = None, *, connecting: bool = False) -> None:
        super().__init__(str(original) if original else "deadline reached")
        self.original = original
        self.connecting = connecting


class WireFault(Exception):
    """The connection could not be made, or broke."""

    def __init__(self, original: Exception) -> None:
        super().__init__(str(original) or type(original).__name__)
        self.original = original


def dumps(message: Any) -> bytes:
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def json_object(body: bytes) -> JsonObject:
    """The body as an object, an empty one where it is anything else: what refuses a request may be no JSON at all."""
    try:
        parsed = json.loads(body)
    except ValueError:
        return {}
    return cast(JsonObject, parsed) if isinstance(parsed, dict) else {}


def json_list(body: bytes) -> List[JsonObject]:
    parsed = json.loads(body)
    if not isinstance(parsed, list):
        raise ValueError(f"expected a JSON array, got {type(parsed).__name__}")
    return cast(List[JsonObject], parsed)


def without_none(**fields: Any) -> JsonObject:
    """What the caller did not set is left out of a request: the defaults are the server's."""
    return {name: value for name, value in fields.items() if value is not None}


def retry_after(value: Optional[str]) -> Optional[float]:
    """Whole seconds, as the clients of this API read them; a date counts as absent."""
    if value is None or not value.isascii() or not value.isdigit() or len(value) > 10:
        return None
    seconds = int(value)
    return float(seconds) if seconds <= RETRY_AFTER_MAX else None


def retry_delay(status: int, headers: Mapping[str, str], attempt: int) -> Optional[float]:
    """How long to wait before the request is sent once more, None where its answer is final."""
    asked = headers.get("should-retry")
    if asked is None:
        if status not in RETRIED_STATUSES:
            return None
    elif asked.strip().lower() != "true":
        return None
    named = retry_after(headers.get("retry-after"))
    if named is not None:
        return named
    backoff: float = min(BACKOFF_FIRST * 2**attempt, BACKOFF_MAX)
    return backoff * (0.5 + random.random() / 2)
