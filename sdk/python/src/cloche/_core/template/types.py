# SPDX-License-Identifier: Apache-2.0
"""Data models of builds."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any, Dict, List, Literal, Optional, TypedDict, Union, cast

from ..sandbox import time_of
from ..wire import JsonObject
from .logs import LogEntry

AnyPath = Union[str, Path]
GZIP = True


class TemplateBuildStatus(str, Enum):
    BUILDING = "building"
    WAITING = "waiting"
    READY = "ready"
    ERROR = "error"


@dataclass
class BuildStatusReason:
    """Why a build failed, and at which step."""

    message: str
    step: Optional[str] = None
    log_entries: List[LogEntry] = field(default_factory=lambda: [])


@dataclass
class TemplateBuildStatusResponse:
    build_id: str
    template_id: str
    status: TemplateBuildStatus
    log_entries: List[LogEntry]
    logs: List[str]
    reason: Optional[BuildStatusReason] = None


@dataclass
class TemplateTagInfo:
    build_id: str
    tags: List[str]


@dataclass
class TemplateTag:
    tag: str
    build_id: str
    created_at: datetime


@dataclass
class BuildInfo:
    """A build that was begun."""

    template_id: str
    build_id: str
    name: str
    alias: str
    tags: List[str] = field(default_factory=lambda: [])


class _CopyPaths(TypedDict):
    src: Union[AnyPath, List[AnyPath]]
    dest: AnyPath


class CopyItem(_CopyPaths, total=False):
    """What `copy_items` copies."""

    forceUpload: Optional[Literal[True]]
    user: Optional[str]
    mode: Optional[int]
    resolveSymlinks: Optional[bool]
    gzip: Optional[bool]


@dataclass
class Step:
    """One instruction of a template."""

    type: str
    args: List[str]
    force: bool
    force_upload: Optional[Literal[True]] = None
    resolve_symlinks: bool = False
    gzip: bool = GZIP
    files_hash: Optional[str] = None

    def to_json(self) -> JsonObject:
        body: JsonObject = {"type": self.type, "args": self.args, "force": self.force}
        if self.files_hash is not None:
            body["filesHash"] = self.files_hash
        if self.force_upload is not None:
            body["forceUpload"] = self.force_upload
        return body


def _read_logs(data: Any) -> List[LogEntry]:
    entries = cast(List[JsonObject], data or [])
    return [LogEntry(time_of(one["timestamp"]), one["level"], one["message"]) for one in entries]


def read_status(data: JsonObject) -> TemplateBuildStatusResponse:
    reason: Any = data.get("reason")
    why = None
    if isinstance(reason, dict):
        fields = cast(Dict[str, Any], reason)
        entries = _read_logs(fields.get("logEntries"))
        why = BuildStatusReason(str(fields.get("message", "")), fields.get("step"), entries)
    return TemplateBuildStatusResponse(
        build_id=data["buildID"],
        template_id=data["templateID"],
        status=TemplateBuildStatus(data["status"]),
        log_entries=_read_logs(data.get("logEntries")),
        logs=list(data.get("logs") or []),
        reason=why,
    )


def read_tag(data: JsonObject) -> TemplateTag:
    return TemplateTag(data["tag"], str(data["buildID"]), time_of(data["createdAt"]))
