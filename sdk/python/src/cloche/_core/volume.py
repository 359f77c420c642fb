# SPDX-License-Identifier: Apache-2.0
"""Volumes on the wire: data models, requests about their content."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Dict, Mapping, Optional
from urllib.parse import quote, urlencode

from ..exceptions import VolumeException, VolumePathNotFoundException
from .config import VolumeConnectionConfig
from .errors import api_error
from .sandbox import time_of
from .wire import Body, JsonObject, Reply, Request


class VolumeFileType(str, Enum):
    DIRECTORY = "directory"
    FILE = "file"
    SYMLINK = "symlink"
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return str(self.value)


@dataclass
class VolumeInfo:
    volume_id: str
    name: str


@dataclass
class VolumeAndToken(VolumeInfo):
    token: str
    domain: Optional[str] = None


@dataclass
class VolumeEntryStat:
    """A file, directory or link in a volume."""

    name: str
    type: VolumeFileType
    path: str
    size: int
    mode: int
    uid: int
    gid: int
    atime: datetime
    mtime: datetime
    ctime: datetime
    target: Optional[str] = None


def read_stat(data: JsonObject) -> VolumeEntryStat:
    return VolumeEntryStat(
        name=data["name"],
        type=VolumeFileType(data["type"]),
        path=data["path"],
        size=data["size"],
        mode=data["mode"],
        uid=data["uid"],
        gid=data["gid"],
        atime=time_of(data["atime"]),
        mtime=time_of(data["mtime"]),
        ctime=time_of(data["ctime"]),
        target=data.get("target"),
    )


def read_volume(data: JsonObject) -> VolumeAndToken:
    return VolumeAndToken(data["volumeID"], data["name"], data["token"], data.get("domain") or None)


def content_request(
    config: VolumeConnectionConfig,
    method: str,
    volume_id: str,
    kind: str,
    query: Mapping[str, Any],
    body: Body = None,
    content_type: str = "application/json",
    timeout: Optional[float] = None,
) -> Request:
    """A request about what is in a volume; None in `query` is left out."""
    headers: Dict[str, str] = {**config.headers, "Authorization": f"Bearer {config.access_token or ''}"}
    if body is not None:
        headers["Content-Type"] = content_type
    pairs = [(name, str(value).lower() if isinstance(value, bool) else value) for name, value in query.items()]
    words = urlencode([(name, value) for name, value in pairs if value is not None])
    url = f"{config.api_url.rstrip('/')}/volumecontent/{quote(volume_id, safe='')}/{kind}?{words}"
    return Request(method, url, headers, body, timeout=timeout)


def check_content(reply: Reply, path: str) -> Reply:
    if reply.status == 404:
        raise VolumePathNotFoundException(f"Path {path} not found")
    if reply.status >= 300:
        raise api_error(reply, VolumeException)
    return reply
