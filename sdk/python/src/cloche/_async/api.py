# SPDX-License-Identifier: Apache-2.0
"""Calls of the control plane."""

from __future__ import annotations

from typing import Any, Dict, Union

from .._core.config import ConnectionConfig, VolumeConnectionConfig, merge_params
from .._core.errors import request_timeout
from .._core.wire import Reply, Request, WireFault, WireTimeout
from .transport import AsyncHttp, AsyncStream


def http_of(config: Union[ConnectionConfig, VolumeConnectionConfig]) -> AsyncHttp:
    return AsyncHttp(config.proxy, config.http_version == "2", config.logger)


async def send(http: AsyncHttp, request: Request) -> Reply:
    """Send, with faults of the connection as the exceptions that callers of the API see."""
    try:
        return await http.send(request)
    except WireTimeout as error:
        raise request_timeout() from error.original
    except WireFault as error:
        raise error.original from None


async def open_stream(http: AsyncHttp, request: Request) -> AsyncStream:
    try:
        return await http.open(request)
    except WireTimeout as error:
        raise request_timeout() from error.original
    except WireFault as error:
        raise error.original from None


class AsyncBound:
    """Base of what an `E2B` client makes copies of: classes whose calls take the client's options."""

    _bound_api_params: Dict[str, Any] = {}

    @classmethod
    def _params(cls, **opts: Any) -> Dict[str, Any]:
        return dict(merge_params(cls._bound_api_params, opts))

    @classmethod
    def _config(cls, **opts: Any) -> ConnectionConfig:
        return ConnectionConfig(**cls._params(**opts))
