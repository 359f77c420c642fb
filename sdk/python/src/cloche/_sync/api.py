# SPDX-License-Identifier: Apache-2.0
# Made by tools/unasync.py from _async/api.py: change that file.
"""Calls of the control plane."""

from __future__ import annotations

from typing import Any, Dict, Union

from .._core.config import ConnectionConfig, VolumeConnectionConfig, merge_params
from .._core.errors import request_timeout
from .._core.wire import Reply, Request, WireFault, WireTimeout
from .transport import Http, Stream


def http_of(config: Union[ConnectionConfig, VolumeConnectionConfig]) -> Http:
    return Http(config.proxy, config.http_version == "2", config.logger)


def send(http: Http, request: Request) -> Reply:
    """Send, with faults of the connection as the exceptions that callers of the API see."""
    try:
        return http.send(request)
    except WireTimeout as error:
        raise request_timeout() from error.original
    except WireFault as error:
        raise error.original from None


def open_stream(http: Http, request: Request) -> Stream:
    try:
        return http.open(request)
    except WireTimeout as error:
        raise request_timeout() from error.original
    except WireFault as error:
        raise error.original from None


class Bound:
    """Base of what an `E2B` client makes copies of: classes whose calls take the client's options."""

    _bound_api_params: Dict[str, Any] = {}

    @classmethod
    def _params(cls, **opts: Any) -> Dict[str, Any]:
        return dict(merge_params(cls._bound_api_params, opts))

    @classmethod
    def _config(cls, **opts: Any) -> ConnectionConfig:
        return ConnectionConfig(**cls._params(**opts))
