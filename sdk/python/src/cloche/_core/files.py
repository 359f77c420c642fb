# SPDX-License-Identifier: Apache-2.0
"""Files on the wire of the agent: data models, messages, bodies of uploads."""

from __future__ import annotations

import inspect
import re
import secrets
import zlib
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum
from io import IOBase
from typing import (
    IO,
    Any,
    AsyncIterable,
    Dict,
    Iterable,
    Iterator,
    List,
    Optional,
    Sequence,
    Tuple,
    TypedDict,
    Union,
    cast,
)
from urllib.parse import quote, urlencode

from ..exceptions import InvalidArgumentException, SandboxException, parse_time
from .wire import JsonObject

WriteData = Union[str, bytes, IO[Any], Iterable[bytes]]
AsyncWriteData = Union[str, bytes, IO[Any], AsyncIterable[bytes]]

CHUNK = 1 << 18
_TYPES_OF_RPC = {"FILE_TYPE_FILE": "file", "FILE_TYPE_DIRECTORY": "dir", "FILE_TYPE_SYMLINK": "symlink"}
_METADATA_KEY = re.compile(r"[A-Za-z0-9!#$%&'*+\-.^_`|~]+\Z")
_METADATA_VALUE = re.compile(r"[\x20-\x7e]*\Z")


class FileType(Enum):
    FILE = "file"
    DIR = "dir"
    SYMLINK = "symlink"


class FilesystemEventType(Enum):
    CHMOD = "chmod"
    CREATE = "create"
    REMOVE = "remove"
    RENAME = "rename"
    WRITE = "write"


@dataclass(init=False)
class WriteInfo:
    """A file that was written."""

    name: str
    type: Optional[FileType]
    path: str
    metadata: Optional[Dict[str, str]] = None

    def __init__(
        self, name: str, type: Optional[FileType], path: str, *, metadata: Optional[Dict[str, str]] = None
    ) -> None:
        self.name = name
        self.type = type
        self.path = path
        self.metadata = metadata

    @classmethod
    def from_dict(cls, payload: Dict[str, Any]) -> WriteInfo:
        """From an entry of the agent's answer to an upload."""
        kind = payload.get("type")
        type_ = FileType(kind) if kind in ("file", "dir") else None
        return WriteInfo(payload["name"], type_, payload["path"], metadata=payload.get("metadata") or None)


@dataclass(init=False)
class EntryInfo(WriteInfo):
    """A file, directory or link in a sandbox."""

    size: int = field(default=0)
    mode: int = field(default=0)
    permissions: str = field(default="")
    owner: str = field(default="")
    group: str = field(default="")
    modified_time: datetime = field(default=datetime.fromtimestamp(0, timezone.utc))
    symlink_target: Optional[str] = None

    def __init__(
        self,
        name: str,
        type: Optional[FileType],
        path: str,
        size: int,
        mode: int,
        permissions: str,
        owner: str,
        group: str,
        modified_time: datetime,
        symlink_target: Optional[str] = None,
        *,
        metadata: Optional[Dict[str, str]] = None,
    ) -> None:
        super().__init__(name, type, path, metadata=metadata)
        self.size = size
        self.mode = mode
        self.permissions = permissions
        self.owner = owner
        self.group = group
        self.modified_time = modified_time
        self.symlink_target = symlink_target


@dataclass
class FilesystemEvent:
    """Something happened to an entry of a watched directory."""

    name: str
    type: FilesystemEventType
    entry: Optional[EntryInfo] = None


class WriteEntry(TypedDict):
    path: str
    data: Union[str, bytes, IO[Any]]


class SyncWriteEntry(TypedDict):
    path: str
    data: WriteData


class AsyncWriteEntry(TypedDict):
    path: str
    data: AsyncWriteData


def read_entry(data: JsonObject) -> EntryInfo:
    kind = "symlink" if data.get("isSymlink") else _TYPES_OF_RPC.get(data.get("type", ""))
    modified = data.get("modifiedTime")
    return EntryInfo(
        name=data.get("name", ""),
        type=FileType(kind) if kind else None,
        path=data.get("path", ""),
        size=int(data.get("size", 0)),
        mode=data.get("mode", 0),
        permissions=data.get("permissions", ""),
        owner=data.get("owner", ""),
        group=data.get("group", ""),
        modified_time=(parse_time(modified) if modified else None) or datetime.fromtimestamp(0, timezone.utc),
        symlink_target=data.get("symlinkTarget"),
        metadata=dict(data["metadata"]) if data.get("metadata") else None,
    )


def read_entries(data: JsonObject) -> List[EntryInfo]:
    """Entries of a listing, without those whose type is unknown: broken links, sockets."""
    entries = cast(List[JsonObject], data.get("entries") or [])
    return [read_entry(one) for one in entries if one.get("type") in _TYPES_OF_RPC]


def read_event(data: JsonObject) -> Optional[FilesystemEvent]:
    word = str(data.get("type", "")).replace("EVENT_TYPE_", "").lower()
    if word not in FilesystemEventType._value2member_map_:
        return None
    entry = data.get("entry")
    return FilesystemEvent(data.get("name", ""), FilesystemEventType(word), read_entry(entry) if entry else None)


def read_written(data: Any) -> List[WriteInfo]:
    if not isinstance(data, list) or not data:
        raise SandboxException("the server did not say what it wrote")
    return [WriteInfo.from_dict(one) for one in cast(List[JsonObject], data)]


def files_url(base: str, path: Optional[str], user: Optional[str]) -> str:
    query: List[Tuple[str, str]] = [("path", path)] if path is not None else []
    if user:
        query.append(("username", user))
    return f"{base.rstrip('/')}/files" + (f"?{urlencode(query, quote_via=quote)}" if query else "")


def metadata_headers(metadata: Optional[Dict[str, str]]) -> Dict[str, str]:
    headers: Dict[str, str] = {}
    for key, value in (metadata or {}).items():
        if not _METADATA_KEY.match(key):
            raise InvalidArgumentException(
                f"Invalid metadata key {key!r}: letters, digits and !#$%&'*+-.^_`|~ are allowed, at least one"
            )
        if not _METADATA_VALUE.match(value):
            raise InvalidArgumentException(f"Invalid metadata value for key {key!r}: only printable ASCII is allowed")
        headers[f"X-Metadata-{key}"] = value
    return headers


def is_file(data: Any) -> bool:
    """Whether it is read by `read`. Files of asynchronous libraries are not: they are iterated."""
    if isinstance(data, IOBase):
        return True
    read = getattr(data, "read", None)
    return callable(read) and not inspect.iscoroutinefunction(read)


def in_memory(data: Any) -> bool:
    return isinstance(data, (str, bytes, bytearray, memoryview))


def to_bytes(data: Any) -> bytes:
    return data.encode("utf-8") if isinstance(data, str) else bytes(data)


def check_data(path: str, data: Any, asynchronous: bool) -> None:
    if in_memory(data) or is_file(data):
        return
    if isinstance(data, AsyncIterable):
        if not asynchronous:
            raise InvalidArgumentException(f"async iterable data for file {path} needs AsyncSandbox")
    elif isinstance(data, Iterable):
        if asynchronous:
            raise InvalidArgumentException(
                f"sync iterable data for file {path} would block the event loop; pass an async iterable, a file or "
                "bytes, or use Sandbox"
            )
    else:
        raise InvalidArgumentException(f"Unsupported data type for file {path}: {type(cast(object, data))}")


def file_pieces(file: Any) -> Iterator[bytes]:
    while True:
        piece: Union[str, bytes] = file.read(CHUNK)
        if not piece:
            return
        yield to_bytes(piece)


def check_piece(piece: Any) -> bytes:
    if isinstance(piece, bytes):
        return piece
    if isinstance(piece, (bytearray, memoryview)):
        return bytes(cast(Any, piece))
    kind = type(cast(object, piece)).__name__
    raise InvalidArgumentException(f"Iterable upload data must yield bytes chunks, got {kind}")


def gzip_packer() -> Any:
    return zlib.compressobj(6, zlib.DEFLATED, 31)


def gzip_unpacker() -> Any:
    return zlib.decompressobj(47)


def multipart(files: Sequence[Tuple[str, bytes]]) -> Tuple[bytes, str]:
    """Small files in one request. Returns body and content type."""
    boundary = secrets.token_hex(16)
    parts: List[bytes] = []
    for path, data in files:
        name = path.replace("\\", "\\\\").replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
        parts += [head.encode(), b"Content-Type: application/octet-stream\r\n\r\n", data, b"\r\n"]
    parts.append(f"--{boundary}--\r\n".encode())
    return b"".join(parts), f"multipart/form-data; boundary={boundary}"
