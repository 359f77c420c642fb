# SPDX-License-Identifier: Apache-2.0
"""Sandboxes on the wire of the control plane: data models, bodies of requests, readers of answers."""

from __future__ import annotations

import base64
import hashlib
import re
import time
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Dict, List, Literal, Mapping, Optional, Tuple, TypedDict, Union, cast
from urllib.parse import quote, urlencode

from ..exceptions import InvalidArgumentException, NotFoundException, SandboxException, parse_time
from .config import ConnectionConfig
from .errors import coded_error
from .network import (
    SandboxIamOpts,
    SandboxInfoLifecycle,
    SandboxLifecycle,
    SandboxNetworkInfo,
    SandboxNetworkOpts,
    iam_json,
    lifecycle_info,
    lifecycle_json,
    network_info,
    network_json,
)
from .wire import JsonObject, Request, dumps, without_none

FORK_MAX = 20
DEBUG_SANDBOX = "debug_sandbox_id"
MCP_TOKEN_FILE = "/etc/mcp-gateway/.token"

SandboxListOrder = Literal["asc", "desc"]
GitHubMcpServer = Dict[str, Any]
McpServer = Dict[str, Any]


class _RunCmd(TypedDict):
    run_cmd: str


class GitHubMcpServerConfig(_RunCmd, total=False):
    install_cmd: str
    envs: Dict[str, str]


class SandboxState(str, Enum):
    PAUSED = "paused"
    RUNNING = "running"

    def __str__(self) -> str:
        return str(self.value)


@dataclass
class SandboxInfo:
    """What the server knows of a sandbox."""

    sandbox_id: str
    sandbox_domain: Optional[str]
    template_id: str
    name: Optional[str]
    metadata: Dict[str, str]
    started_at: datetime
    end_at: datetime
    state: SandboxState
    cpu_count: int
    memory_mb: int
    envd_version: str
    allow_internet_access: Optional[bool] = None
    network: Optional[SandboxNetworkInfo] = None
    lifecycle: Optional[SandboxInfoLifecycle] = None
    volume_mounts: List[Dict[str, str]] = field(default_factory=lambda: [])
    envd_unresponsive_at_pause: Optional[bool] = None


@dataclass
class SandboxQuery:
    """Which sandboxes to list."""

    metadata: Optional[Dict[str, str]] = None
    state: Optional[List[SandboxState]] = None
    started_after: Optional[datetime] = None
    template: Optional[str] = None


@dataclass
class SandboxMetrics:
    """Use of a sandbox's resources at one moment; sizes in bytes."""

    cpu_count: int
    cpu_used_pct: float
    disk_total: int
    disk_used: int
    mem_total: int
    mem_used: int
    mem_cache: int
    timestamp: datetime


@dataclass
class SnapshotInfo:
    snapshot_id: str
    names: List[str] = field(default_factory=lambda: [])


@dataclass
class Made:
    """What a create, connect or fork answers: a sandbox and how to talk to it."""

    sandbox_id: str
    sandbox_domain: Optional[str]
    envd_version: str
    envd_access_token: Optional[str]
    traffic_access_token: Optional[str]


class Signature(TypedDict):
    signature: str
    expiration: Optional[int]


def time_of(text: Any) -> datetime:
    parsed = parse_time(text) if isinstance(text, str) else None
    if parsed is None:
        raise SandboxException(f"the server sent {text!r} where a time belongs")
    return parsed


def api_request(
    config: ConnectionConfig,
    method: str,
    path: str,
    body: Optional[JsonObject] = None,
    *,
    query: Optional[Mapping[str, Any]] = None,
    headers: Optional[Mapping[str, str]] = None,
) -> Request:
    """A request of the control plane with the team's key; None in `query` is left out, lists are repeated."""
    all_headers = {**config.headers, "X-API-KEY": config.require_key(), **(headers or {})}
    content = None
    if body is not None:
        all_headers["Content-Type"] = "application/json"
        content = dumps(body)
    url = config.api_url.rstrip("/") + path
    pairs = [(name, value) for name, value in (query or {}).items() if value is not None]
    if pairs:
        url += "?" + urlencode(pairs, doseq=True)
    return Request(
        method, url, all_headers, content, timeout=config.get_request_timeout(), retries=config.retries
    )


def box_path(sandbox_id: str, tail: str = "", version: str = "") -> str:
    return f"{version}/sandboxes/{quote(sandbox_id, safe='')}{tail}"


_IDEMPOTENCY_KEY = re.compile(r"[a-z0-9-]{1,255}\Z")


def idempotency_headers(key: Optional[str]) -> Dict[str, str]:
    if key is None:
        return {}
    if not isinstance(cast(Any, key), str) or not _IDEMPOTENCY_KEY.match(key):
        raise InvalidArgumentException(f"idempotency_key must be 1 to 255 of a-z, 0-9 and '-' (got {key!r})")
    return {"Idempotency-Key": key}


def create_json(
    template: str,
    timeout: Optional[int],
    metadata: Optional[Dict[str, str]],
    envs: Optional[Dict[str, str]],
    allow_internet_access: Optional[bool],
    mcp: Optional[Mapping[str, Any]],
    network: Optional[SandboxNetworkOpts],
    iam: Optional[SandboxIamOpts],
    lifecycle: Optional[SandboxLifecycle],
    volume_mounts: Optional[List[Dict[str, str]]],
) -> JsonObject:
    iam_body = iam_json(iam)
    return {
        "templateID": template,
        "metadata": metadata or {},
        "envVars": envs or {},
        **lifecycle_json(lifecycle),
        **without_none(
            timeout=timeout,
            mcp=mcp or None,
            allow_internet_access=allow_internet_access,
            network=network_json(network, iam_body) or None,
            iam=iam_body,
            volumeMounts=volume_mounts or None,
        ),
    }


def read_made(data: JsonObject) -> Made:
    return Made(
        data["sandboxID"],
        data.get("domain") or None,
        str(data.get("envdVersion", "")),
        data.get("envdAccessToken") or None,
        data.get("trafficAccessToken") or None,
    )


def debug_made(sandbox_id: str) -> Made:
    return Made(sandbox_id, None, "99.99.99", None, None)


def read_forks(data: List[JsonObject]) -> List[Union[Made, Exception]]:
    forks: List[Union[Made, Exception]] = []
    for one in data:
        error: Any = one.get("error")
        if isinstance(error, dict):
            fields = cast(JsonObject, error)
            code, message = int(fields.get("code", 500)), str(fields.get("message", ""))
            forks.append(coded_error(code, message, NotFoundException if code == 404 else SandboxException))
        elif isinstance(one.get("sandbox"), dict):
            forks.append(read_made(one["sandbox"]))
        else:
            forks.append(SandboxException("Failed to start forked sandbox"))
    return forks


def check_fork_count(count: Any) -> None:
    if count is None:
        return
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= FORK_MAX:
        raise InvalidArgumentException(f"count must be an integer between 1 and {FORK_MAX}")


def read_info(data: JsonObject, detailed: bool = True) -> SandboxInfo:
    internet = data.get("allowInternetAccess")
    mounts: List[JsonObject] = data.get("volumeMounts") or []
    return SandboxInfo(
        sandbox_id=data["sandboxID"],
        sandbox_domain=(data.get("domain") or None) if detailed else None,
        template_id=data["templateID"],
        name=data.get("alias") or None,
        metadata=data.get("metadata") or {},
        started_at=time_of(data["startedAt"]),
        end_at=time_of(data["endAt"]),
        state=SandboxState(data["state"]),
        cpu_count=data["cpuCount"],
        memory_mb=data["memoryMB"],
        envd_version=data["envdVersion"],
        allow_internet_access=internet if detailed and isinstance(internet, bool) else None,
        network=network_info(data.get("network")) if detailed else None,
        lifecycle=lifecycle_info(data.get("lifecycle")) if detailed else None,
        volume_mounts=[{"name": one["name"], "path": one["path"]} for one in mounts],
        envd_unresponsive_at_pause=data.get("envdUnresponsiveAtPause"),
    )


def read_metrics(data: List[JsonObject]) -> List[SandboxMetrics]:
    return [
        SandboxMetrics(
            cpu_count=one["cpuCount"],
            cpu_used_pct=one["cpuUsedPct"],
            disk_total=one["diskTotal"],
            disk_used=one["diskUsed"],
            mem_total=one["memTotal"],
            mem_used=one["memUsed"],
            mem_cache=one["memCache"],
            timestamp=time_of(one["timestamp"]),
        )
        for one in data
    ]


def read_snapshot(data: JsonObject) -> SnapshotInfo:
    return SnapshotInfo(data["snapshotID"], list(data.get("names") or []))


def list_query(
    query: Optional[SandboxQuery], order: Optional[str], limit: Optional[int], next_token: Optional[str]
) -> JsonObject:
    if order not in (None, "asc", "desc"):
        raise InvalidArgumentException(f"Invalid order {order!r}, expected 'asc' or 'desc'")
    asked = query or SandboxQuery()
    metadata = None
    if asked.metadata:
        metadata = urlencode({quote(key): quote(value) for key, value in asked.metadata.items()})
    states = [str(SandboxState(state).value) for state in asked.state or []]
    return {
        "metadata": metadata,
        "state": ",".join(states) or None,
        "startedAfter": asked.started_after.astimezone().isoformat() if asked.started_after else None,
        "template": asked.template or None,
        "order": order,
        "limit": limit or None,
        "nextToken": next_token or None,
    }


def get_signature(
    path: str,
    operation: Literal["read", "write"],
    user: Optional[str],
    envd_access_token: Optional[str],
    expiration_in_seconds: Optional[int] = None,
) -> Signature:
    """The signature of a file's URL, which lets whoever has it read or write that file."""
    if not envd_access_token:
        raise ValueError("a URL can be signed only with the sandbox's access token")
    parts = [path, operation, user or "", envd_access_token]
    expiration = None
    if expiration_in_seconds is not None:
        expiration = int(time.time()) + expiration_in_seconds
        parts.append(str(expiration))
    digest = base64.b64encode(hashlib.sha256(":".join(parts).encode()).digest()).rstrip(b"=")
    return {"signature": f"v1_{digest.decode()}", "expiration": expiration}


def signed_url(
    base: str,
    path: str,
    operation: Literal["read", "write"],
    user: Optional[str],
    token: Optional[str],
    expiration: Optional[int],
) -> str:
    query: List[Tuple[str, str]] = [("path", path)] if path else []
    if user:
        query.append(("username", user))
    if token is not None:
        signature = get_signature(path, operation, user, token, expiration)
        query.append(("signature", signature["signature"]))
        if signature["expiration"]:
            query.append(("signature_expiration", str(signature["expiration"])))
    elif expiration is not None:
        raise InvalidArgumentException("only URLs of secured sandboxes can expire")
    return f"{base.rstrip('/')}/files?{urlencode(query, quote_via=quote)}"
