# SPDX-License-Identifier: Apache-2.0
"""What both transports share: settings of connection pools, and from `Request` to httpcore and back.

Requests go to the connection pools of httpcore, the lower half of httpx. httpx's clients look at cookies, redirects and
authentication for each request, which this API has none of and which costs more than the request itself. What callers
see of a broken connection is httpx's exception all the same.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Tuple
from urllib.parse import urlsplit

from .wire import Body, Request, WireFault, WireTimeout

if TYPE_CHECKING:
    import httpcore

BODY_METHODS = frozenset(("POST", "PUT", "PATCH"))


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


def environment_proxy(scheme: str, url: str) -> Optional[str]:
    """HTTP_PROXY and its like, without those that NO_PROXY excepts."""
    if not any(name.lower().endswith("_proxy") for name in os.environ) and sys.platform not in ("darwin", "win32"):
        return None
    # Loads half of the standard library, so only where there is something to find.
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    found = proxies.get(scheme) or proxies.get("all")
    if not found or proxy_bypass(urlsplit(url).hostname or ""):
        return None
    return found if "://" in found else f"http://{found}"


@lru_cache(maxsize=1)
def have_http2() -> bool:
    from importlib.util import find_spec

    return find_spec("h2") is not None


def pool_options(key: PoolKey) -> Dict[str, Any]:
    """Arguments of a pool but its backend; with a proxy those of the proxy's pool."""
    options: Dict[str, Any] = {
        "max_connections": _number("E2B_MAX_CONNECTIONS", 0) or None,
        "max_keepalive_connections": _number("E2B_MAX_KEEPALIVE_CONNECTIONS", 20),
        "keepalive_expiry": float(_number("E2B_KEEPALIVE_EXPIRY", 300)),
        "http1": True,
        "http2": key.http2,
        "retries": _number("E2B_CONNECTION_RETRIES", 3),
    }
    if key.tls:
        # A plain connection needs no certificates, and reading them takes 20 ms.
        import httpx

        options["ssl_context"] = httpx.create_ssl_context()
    return options


def proxy_options(proxy: Any) -> Tuple[bool, Dict[str, Any]]:
    """Whether a proxy speaks SOCKS, and arguments of its pool."""
    import httpcore
    import httpx

    made = proxy if isinstance(proxy, httpx.Proxy) else httpx.Proxy(proxy)
    url = httpcore.URL(
        scheme=made.url.raw_scheme, host=made.url.raw_host, port=made.url.port, target=made.url.raw_path
    )
    options: Dict[str, Any] = {"proxy_url": url, "proxy_auth": made.raw_auth}
    if made.url.scheme.startswith("socks"):
        return True, options
    return False, {**options, "proxy_headers": made.headers.raw, "proxy_ssl_context": made.ssl_context}


@lru_cache(maxsize=512)
def parse_url(url: str) -> Tuple[httpcore.URL, bytes]:
    """For httpcore, and the value of the Host header."""
    import httpcore

    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    scheme, host = parts.scheme.encode("ascii"), (parts.hostname or "").encode("idna")
    made = httpcore.URL(scheme=scheme, host=host, port=parts.port, target=target.encode("ascii"))
    return made, parts.netloc.rpartition("@")[2].encode("idna")


def to_core(request: Request, content: Body) -> httpcore.Request:
    import httpcore

    url, host = parse_url(request.url)
    headers: List[Tuple[bytes, bytes]] = [(b"Host", host), (b"Accept", b"*/*")]
    sized = False
    for name, value in request.headers.items():
        sized = sized or name == "Content-Length"
        headers.append((name.encode("ascii"), value.encode("utf-8")))
    if isinstance(content, bytes):
        headers.append((b"Content-Length", b"%d" % len(content)))
    elif content is not None and not sized:
        headers.append((b"Transfer-Encoding", b"chunked"))
    elif content is None and request.method in BODY_METHODS:
        headers.append((b"Content-Length", b"0"))
    silence, connecting = request.timeout, request.connect_timeout
    timeout = {"connect": connecting, "pool": connecting, "read": silence, "write": silence}
    return httpcore.Request(request.method, url, headers=headers, content=content, extensions={"timeout": timeout})


def head_of(response: httpcore.Response) -> Tuple[int, Dict[str, str], str]:
    headers = {name.lower().decode("latin-1"): value.decode("latin-1") for name, value in response.headers}
    reason: bytes = _extensions(response).get("reason_phrase", b"")
    return response.status, headers, reason.decode("ascii", "replace")


def _extensions(response: Any) -> Dict[str, Any]:
    found: Dict[str, Any] = response.extensions
    return found


def is_head(buffer: bytes) -> bool:
    """Whether these bytes are the head of a request, which the next ones may travel with."""
    return buffer[-4:] == b"\r\n\r\n" and b" HTTP/1.1\r\n" in buffer


def wire_error(error: Exception) -> Exception:
    """An exception of httpcore as one of ours, with httpx's of the same name inside; others pass."""
    import httpcore

    known = (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError)
    if not isinstance(error, (*known, httpcore.UnsupportedProtocol)):
        return error
    import httpx

    shown: Exception = getattr(httpx, type(error).__name__, httpx.TransportError)(str(error))
    shown.__cause__ = error
    if isinstance(error, httpcore.TimeoutException):
        return WireTimeout(shown, connecting=isinstance(error, (httpcore.ConnectTimeout, httpcore.PoolTimeout)))
    return WireFault(shown)


def socket_of(response: httpcore.Response) -> Any:
    stream: Any = _extensions(response).get("network_stream")
    return None if stream is None else stream.get_extra_info("socket")
