# SPDX-License-Identifier: Apache-2.0
"""httpx clients with the API's address and key, for calls that this package has no method for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Optional, Union

from .config import ConnectionConfig

if TYPE_CHECKING:
    import httpx


class ApiClient:
    """Makes a blocking and an asynchronous httpx client when they are asked for."""

    token: str
    prefix: str
    auth_header_name: str
    raise_on_unexpected_status: bool

    def __init__(
        self,
        config: ConnectionConfig,
        transport: Optional[Union[httpx.BaseTransport, httpx.AsyncBaseTransport]] = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        self.token = config.require_key()
        self.prefix = ""
        self.auth_header_name = "X-API-KEY"
        self.raise_on_unexpected_status = False
        self._config = config
        self._options: Dict[str, Any] = {"base_url": config.api_url, "timeout": config.request_timeout, **kwargs}
        self._options["headers"] = {**config.headers, self.auth_header_name: self.token, **kwargs.get("headers", {})}
        if transport is not None:
            self._options["transport"] = transport
        elif config.proxy is not None:
            self._options["proxy"] = config.proxy
        self._client: Optional[httpx.Client] = None
        self._async_client: Optional[httpx.AsyncClient] = None

    def _with(self, **changes: Any) -> ApiClient:
        other = ApiClient(self._config)
        other._options = {**self._options, **changes}
        return other

    def with_headers(self, headers: Dict[str, str]) -> ApiClient:
        return self._with(headers={**self._options["headers"], **headers})

    def with_cookies(self, cookies: Dict[str, str]) -> ApiClient:
        return self._with(cookies={**self._options.get("cookies", {}), **cookies})

    def with_timeout(self, timeout: httpx.Timeout) -> ApiClient:
        return self._with(timeout=timeout)

    def set_httpx_client(self, client: httpx.Client) -> ApiClient:
        self._client = client
        return self

    def get_httpx_client(self) -> httpx.Client:
        if self._client is None:
            import httpx

            self._client = httpx.Client(**self._options)
        return self._client

    def set_async_httpx_client(self, async_client: httpx.AsyncClient) -> ApiClient:
        self._async_client = async_client
        return self

    def get_async_httpx_client(self) -> httpx.AsyncClient:
        if self._async_client is None:
            import httpx

            self._async_client = httpx.AsyncClient(**self._options)
        return self._async_client

    def __enter__(self) -> ApiClient:
        self.get_httpx_client().__enter__()
        return self

    def __exit__(self, *args: Any, **kwargs: Any) -> None:
        self.get_httpx_client().__exit__(*args, **kwargs)

    async def __aenter__(self) -> ApiClient:
        await self.get_async_httpx_client().__aenter__()
        return self

    async def __aexit__(self, *args: Any, **kwargs: Any) -> None:
        await self.get_async_httpx_client().__aexit__(*args, **kwargs)
