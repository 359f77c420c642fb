# SPDX-License-Identifier: Apache-2.0
"""The Connect protocol with its JSON codec, without I/O: frames of streams and the errors of both kinds of call.

A frame is one byte of flags, four of length (big endian) and JSON. The last frame of a stream has flag 2 and holds
`{}` or `{"error": ...}`; a stream that ends without it was cut.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Optional, cast

from .wire import JsonObject, dumps, json_object

FRAME_MAX = 64 << 20
CODES = frozenset((
    "canceled", "unknown", "invalid_argument", "deadline_exceeded", "not_found", "already_exists", "permission_denied",
    "resource_exhausted", "failed_precondition", "aborted", "out_of_range", "unimplemented", "internal", "unavailable",
    "data_loss", "unauthenticated",
))  # fmt: skip
PLAIN_CODES = {
    400: "invalid_argument", 401: "unauthenticated", 403: "permission_denied", 404: "not_found", 409: "already_exists",
    413: "resource_exhausted", 429: "resource_exhausted", 499: "canceled", 500: "internal", 501: "unimplemented",
    502: "unavailable", 503: "unavailable", 504: "deadline_exceeded", 505: "unimplemented",
}  # fmt: skip


class RpcError(Exception):
    """A call that was answered with an error; `code` is one of the protocol's words."""

    def __init__(self, code: str, message: str, status: Optional[int] = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status


def frame(message: Any) -> bytes:
    payload = dumps(message)
    return b"\x00" + len(payload).to_bytes(4, "big") + payload


def error_of(status: int, body: bytes) -> RpcError:
    """The error of an answer that is not 200: the agent's own, or of whoever answered in its place."""
    parsed = json_object(body)
    code, message = parsed.get("code"), parsed.get("message")
    if not isinstance(message, str) or not message:
        message = body.decode("utf-8", "replace") or f"HTTP {status}"
    if isinstance(code, str) and code in CODES:
        return RpcError(code, message, status)
    if isinstance(code, int) and not isinstance(code, bool):
        status = code
    return RpcError(PLAIN_CODES.get(status, "unknown"), message, status)


def decode(body: bytes, what: str) -> JsonObject:
    try:
        parsed = json.loads(body)
    except ValueError as error:
        raise RpcError("internal", f"the answer to {what} is not JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise RpcError("internal", f"the answer to {what} is not a JSON object")
    return cast(JsonObject, parsed)


class Frames:
    """Takes bytes as they come and gives the messages they hold; `ended` says that the last frame was among them."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._last: JsonObject = {}
        self.ended = False

    def feed(self, data: bytes) -> List[JsonObject]:
        self._buffer += data
        messages: List[JsonObject] = []
        while len(self._buffer) >= 5:
            length = int.from_bytes(self._buffer[1:5], "big")
            if length > FRAME_MAX:
                raise RpcError("internal", f"a frame of {length} bytes is over the limit of {FRAME_MAX}")
            if len(self._buffer) < 5 + length:
                break
            flags, payload = self._buffer[0], bytes(self._buffer[5 : 5 + length])
            del self._buffer[: 5 + length]
            if flags & 1:
                raise RpcError("internal", "a compressed frame, which nobody asked for")
            message = decode(payload, "a stream")
            if flags & 2:
                self.ended = True
                self._last = message
                break
            messages.append(message)
        return messages

    def finish(self) -> None:
        """To be called when the messages of the last chunk were handed out: raises what the last frame said."""
        error = self._last.get("error")
        if not isinstance(error, dict):
            return
        fields = cast(Dict[str, Any], error)
        raise RpcError(str(fields.get("code", "unknown")), str(fields.get("message", "")))


def unary_headers(base: Mapping[str, str], timeout: Optional[float]) -> Dict[str, str]:
    headers = dict(base)
    headers["Content-Type"] = "application/json"
    headers["Connect-Protocol-Version"] = "1"
    return with_timeout(headers, timeout)


def stream_headers(base: Mapping[str, str], timeout: Optional[float]) -> Dict[str, str]:
    headers = dict(base)
    headers["Content-Type"] = "application/connect+json"
    headers["Connect-Protocol-Version"] = "1"
    return with_timeout(headers, timeout)


def with_timeout(headers: Dict[str, str], timeout: Optional[float]) -> Dict[str, str]:
    if timeout:
        headers["Connect-Timeout-Ms"] = str(max(1, round(timeout * 1000)))
    return headers
