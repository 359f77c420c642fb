# SPDX-License-Identifier: Apache-2.0
"""Where the server is and how to talk to it: options of a call, then of the client, then environment variables."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, ClassVar, Dict, Literal, Mapping, Optional, TypedDict, Union, cast

from .._version import __version__
from ..exceptions import AuthenticationException, InvalidArgumentException

if TYPE_CHECKING:
    import logging

    import httpx
    from typing_extensions import Unpack

    ProxyTypes = Union[str, httpx.URL, httpx.Proxy]
else:
    ProxyTypes = Any

HttpVersion = Literal["1.1", "2"]

REQUEST_TIMEOUT = 60.0
DEFAULT_RETRIES = 3
RETRIES_MAX = 100
KEEPALIVE_SECONDS = 50
STREAM_SILENCE = 3.0 * KEEPALIVE_SECONDS  # a stream is lost when three keepalives in a row are missing
ENVD_PORT = 49983
CODE_PORT = 49999
SHARED_HOST_DOMAINS = frozenset((
    "e2b.app", "e2b.dev", "e2b.pro", "e2b-staging.dev", "e2b-tango.dev", "e2b-juliett.dev", "foxtrot-2.e2b.dev",
))  # fmt: skip


class ApiParams(TypedDict, total=False):
    """Options that every call of the API takes. Those of `create` and `connect` hold for all of the sandbox's calls."""

    request_timeout: Optional[float]
    retries: Optional[int]
    headers: Optional[Dict[str, str]]
    api_headers: Optional[Dict[str, str]]
    api_key: Optional[str]
    validate_api_key: Optional[bool]
    domain: Optional[str]
    api_url: Optional[str]
    debug: Optional[bool]
    proxy: Optional[ProxyTypes]
    sandbox_url: Optional[str]
    http_version: Optional[HttpVersion]


class VolumeApiParams(TypedDict, total=False):
    """Options that every call about a volume's content takes."""

    domain: Optional[str]
    debug: Optional[bool]
    request_timeout: Optional[float]
    headers: Optional[Dict[str, str]]
    token: Optional[str]
    api_url: Optional[str]
    proxy: Optional[ProxyTypes]
    http_version: Optional[HttpVersion]
    logger: Optional[logging.Logger]


def pick_timeout(default: Optional[float], asked: Optional[float]) -> Optional[float]:
    """0 means no limit, None the default."""
    if asked is None:
        return default
    return None if asked == 0 else asked


def pick_http_version(asked: Optional[str]) -> HttpVersion:
    name, value = "http_version", asked
    if value is None:
        name, value = "E2B_HTTP_VERSION", os.environ.get("E2B_HTTP_VERSION") or "2"
    if value == "1.1":
        return "1.1"
    if value == "2":
        return "2"
    raise InvalidArgumentException(f"{name} must be '1.1' or '2', got {value!r}")


def pick_retries(asked: Optional[int]) -> int:
    retries: Any = DEFAULT_RETRIES if asked is None else asked
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise InvalidArgumentException(f"retries must be a whole number of 0 or more, got {retries!r}")
    return min(retries, RETRIES_MAX)


def merge_params(bound: Mapping[str, Any], given: Mapping[str, Any]) -> ApiParams:
    """Options of a call over those bound to a client; None means that the call does not say."""
    if not bound:
        return cast(ApiParams, dict(given))
    return cast(ApiParams, {**bound, **{name: value for name, value in given.items() if value is not None}})


class ConnectionConfig:
    """Resolved options of a connection."""

    envd_port = ENVD_PORT
    _integration: ClassVar[Optional[str]] = None

    def __init__(
        self,
        domain: Optional[str] = None,
        debug: Optional[bool] = None,
        api_key: Optional[str] = None,
        validate_api_key: Optional[bool] = None,
        api_url: Optional[str] = None,
        sandbox_url: Optional[str] = None,
        request_timeout: Optional[float] = None,
        headers: Optional[Dict[str, str]] = None,
        api_headers: Optional[Dict[str, str]] = None,
        extra_sandbox_headers: Optional[Dict[str, str]] = None,
        proxy: Optional[ProxyTypes] = None,
        logger: Optional[logging.Logger] = None,
        *,
        retries: Optional[int] = None,
        http_version: Optional[HttpVersion] = None,
    ) -> None:
        env = os.environ
        self.logger = logger
        self.domain = domain or env.get("E2B_DOMAIN") or "e2b.app"
        self.debug = debug if debug is not None else env.get("E2B_DEBUG", "false").lower() == "true"
        self.api_key = api_key or env.get("E2B_API_KEY")
        self.validate_api_key = validate_api_key
        self.headers: Dict[str, str] = {**(headers or {}), **(api_headers or {})}
        self._own_agent = "User-Agent" not in self.headers
        if self._own_agent:
            self.headers["User-Agent"] = user_agent()
        self._extra_sandbox_headers = dict(extra_sandbox_headers or {})
        self.proxy = proxy
        self.retries = pick_retries(retries)
        self.request_timeout = pick_timeout(REQUEST_TIMEOUT, request_timeout)
        self.api_url: str = (
            api_url
            or env.get("E2B_API_URL")
            or ("http://localhost:3000" if self.debug else f"https://api.{self.domain}")
        )
        self._sandbox_url = sandbox_url or env.get("E2B_SANDBOX_URL")
        self.http_version: HttpVersion = pick_http_version(http_version)

    @classmethod
    def set_integration(cls, integration: Optional[str]) -> None:
        """Name a program that is built on this package in the `User-Agent` header; None takes it back."""
        ConnectionConfig._integration = integration

    @property
    def sandbox_headers(self) -> Dict[str, str]:
        """Headers of requests into the sandbox."""
        return {"User-Agent": self.headers["User-Agent"], **self._extra_sandbox_headers}

    def get_request_timeout(self, request_timeout: Optional[float] = None) -> Optional[float]:
        return pick_timeout(self.request_timeout, request_timeout)

    def get_host(self, sandbox_id: str, sandbox_domain: str, port: int) -> str:
        """The host name of a port of a sandbox."""
        return f"localhost:{port}" if self.debug else f"{port}-{sandbox_id}.{sandbox_domain}"

    def get_sandbox_url(self, sandbox_id: str, sandbox_domain: str, port: Optional[int] = None) -> str:
        """Where requests with routing headers go."""
        domain = sandbox_domain or self.domain
        if not self._sandbox_url and not self.debug and domain in SHARED_HOST_DOMAINS:
            return f"https://sandbox.{domain}"
        return self.get_sandbox_direct_url(sandbox_id, sandbox_domain, port)

    def get_sandbox_direct_url(self, sandbox_id: str, sandbox_domain: str, port: Optional[int] = None) -> str:
        """Where requests without routing headers go, as those of signed URLs."""
        if self._sandbox_url:
            return self._sandbox_url
        host = self.get_host(sandbox_id, sandbox_domain, self.envd_port if port is None else port)
        return f"http://{host}" if self.debug else f"https://{host}"

    def get_api_params(self, **opts: Unpack[ApiParams]) -> Dict[str, Any]:
        """This configuration as options of another call, `opts` first."""
        headers = {**self.headers, **(opts.get("headers") or {}), **(opts.get("api_headers") or {})}
        if self._own_agent and headers.get("User-Agent") == self.headers["User-Agent"]:
            headers["User-Agent"] = user_agent()
        own: Dict[str, Any] = {
            "api_key": self.api_key,
            "validate_api_key": self.validate_api_key,
            "domain": self.domain,
            "debug": self.debug,
            "proxy": self.proxy,
            "retries": self.retries,
            "http_version": self.http_version,
            "api_url": self.api_url,
            "sandbox_url": self._sandbox_url,
        }
        given = {name: value for name, value in opts.items() if value is not None}
        timeout = self.get_request_timeout(opts.get("request_timeout"))
        return {**own, **given, "headers": headers, "request_timeout": 0 if timeout is None else timeout}

    def require_key(self) -> str:
        if not self.api_key:
            raise AuthenticationException(
                "API key is required: set the environment variable E2B_API_KEY or pass api_key=..."
            )
        return self.api_key


class VolumeConnectionConfig:
    """Resolved options of a connection to a volume's content."""

    def __init__(
        self,
        domain: Optional[str] = None,
        debug: Optional[bool] = None,
        token: Optional[str] = None,
        api_url: Optional[str] = None,
        request_timeout: Optional[float] = None,
        headers: Optional[Dict[str, str]] = None,
        proxy: Optional[ProxyTypes] = None,
        logger: Optional[logging.Logger] = None,
        *,
        http_version: Optional[HttpVersion] = None,
    ) -> None:
        env = os.environ
        self.domain = domain or env.get("E2B_DOMAIN") or "e2b.app"
        self.debug = debug if debug is not None else env.get("E2B_DEBUG", "false").lower() == "true"
        self.access_token = token
        self.api_url: str = (
            api_url
            or env.get("E2B_VOLUME_API_URL")
            or ("http://localhost:8080" if self.debug else f"https://api.{self.domain}")
        )
        self.request_timeout = pick_timeout(REQUEST_TIMEOUT, request_timeout)
        self.headers: Dict[str, str] = {"User-Agent": user_agent(), **(headers or {})}
        self.proxy = proxy
        self.logger = logger
        self.http_version: HttpVersion = pick_http_version(http_version)

    def get_request_timeout(self, request_timeout: Optional[float] = None) -> Optional[float]:
        return pick_timeout(self.request_timeout, request_timeout)

    def get_api_params(self, **opts: Unpack[VolumeApiParams]) -> Dict[str, Any]:
        """This configuration as options of another call, `opts` first."""
        timeout = self.get_request_timeout(opts.get("request_timeout"))
        own: Dict[str, Any] = {
            "domain": self.domain,
            "debug": self.debug,
            "token": self.access_token,
            "api_url": self.api_url,
            "proxy": self.proxy,
            "logger": self.logger,
            "http_version": self.http_version,
        }
        given = {name: value for name, value in opts.items() if value is not None}
        headers = {**self.headers, **(opts.get("headers") or {})}
        return {**own, **given, "headers": headers, "request_timeout": 0 if timeout is None else timeout}


def user_agent() -> str:
    own = f"cloche-python/{__version__}"
    named = ConnectionConfig._integration  # pyright: ignore[reportPrivateUsage]
    return f"{own} {named}" if named else own
