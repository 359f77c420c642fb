# SPDX-License-Identifier: Apache-2.0
"""What both transports share: settings of connection pools, and from `Request` to httpx and back.

Requests go to httpx's transports directly. A client of httpx would look at cookies, redirects and authentication for
each of them, which this API has none of and which costs more than the request itself.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Tuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from .wire import Body, Request, WireFault, WireTimeout

if TYPE_CHECKING:
    import httpx

READ_CHUNK = 65536


class PoolKey(NamedTuple):
    """Requests of the same key share connections."""

    tls: bool
    http2: bool
    proxy: Any


def _number(name: str, default: int) -> int:
    return int(os.environ.get(name) or default)


def pool_key(url: str, http2: bool, proxy: Any) -> PoolKey:
    scheme = url[: url.index(":")]
    if proxy is None:
        proxy = environment_proxy(scheme, url)
    return PoolKey(scheme == "https", http2 and scheme == "https" and have_http2(), proxy)


@lru_cache(maxsize=256)
def _bypassed(netloc: str) -> bool:
    return bool(proxy_bypass(netloc))


def environment_proxy(scheme: str, url: str) -> Optional[str]:
    """HTTP_PROXY and its like, without those that NO_PROXY excepts."""
    proxies = getproxies()
    if not proxies:
        return None
    found = proxies.get(scheme) or proxies.get("all")
    if not found:
        return None
    return None if _bypassed(urlsplit(url).netloc) else found


@lru_cache(maxsize=1)
def have_http2() -> bool:
    from importlib.util import find_spec

    return find_spec("h2") is not None


def transport_options(key: PoolKey) -> Dict[str, Any]:
    import httpx

    limits = httpx.Limits(
        max_connections=_number("E2B_MAX_CONNECTIONS", 0) or None,
        max_keepalive_connections=_number("E2B_MAX_KEEPALIVE_CONNECTIONS", 20),
        keepalive_expiry=float(_number("E2B_KEEPALIVE_EXPIRY", 300)),
    )
    return {
        # A plain connection needs no certificates, and reading them takes 20 ms.
        "verify": key.tls,
        "http2": key.http2,
        "limits": limits,
        "proxy": key.proxy,
        "retries": _number("E2B_CONNECTION_RETRIES", 3),
    }


@lru_cache(maxsize=512)
def parse_url(url: str) -> httpx.URL:
    import httpx

    return httpx.URL(url)


def to_httpx(request: Request, content: Body) -> httpx.Request:
    import httpx

    url = parse_url(request.url)
    headers: List[Tuple[str, str]] = [("Host", url.netloc.decode("ascii"))]
    headers.extend(request.headers.items())
    headers.append(("Accept", "*/*"))
    timeout = {
        "connect": request.connect_timeout,
        "pool": request.connect_timeout,
        "read": request.timeout,
        "write": request.timeout,
    }
    return httpx.Request(request.method, url, headers=headers, content=content, extensions={"timeout": timeout})


def head_of(response: httpx.Response) -> Tuple[int, Dict[str, str], str]:
    headers = {name.lower().decode("latin-1"): value.decode("latin-1") for name, value in response.headers.raw}
    reason: Any = response.extensions.get("reason_phrase", b"")
    return response.status_code, headers, reason.decode("ascii", "replace")


def wire_error(error: Exception) -> Exception:
    """An exception of httpx as one of ours; others pass."""
    import httpx

    if isinstance(error, httpx.TimeoutException):
        return WireTimeout(error, connecting=isinstance(error, (httpx.ConnectTimeout, httpx.PoolTimeout)))
    if isinstance(error, httpx.TransportError):
        return WireFault(error)
    return error


def socket_of(response: httpx.Response) -> Any:
    stream: Any = response.extensions.get("network_stream")
    return None if stream is None else stream.get_extra_info("socket")
