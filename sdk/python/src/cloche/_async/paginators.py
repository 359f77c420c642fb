# SPDX-License-Identifier: Apache-2.0
"""Lists that come page by page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, AsyncIterator, Dict, Generic, List, Mapping, Optional, TypeVar

from .._core.config import ApiParams, ConnectionConfig, merge_params
from .._core.errors import api_error
from .._core.sandbox import (
    SandboxInfo,
    SandboxListOrder,
    SandboxQuery,
    SnapshotInfo,
    api_request,
    list_query,
    read_info,
    read_snapshot,
)
from .._core.secret import SecretInfo, read_secret
from .._core.wire import JsonObject, json_list
from ..exceptions import SandboxException, SecretException
from .api import http_of, send

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")


class AsyncPaginator(Generic[T]):
    """Pages of a list. Iterating goes through the items of all pages."""

    _path: str
    _error = SandboxException

    def __init__(self, limit: Optional[int] = None, next_token: Optional[str] = None, **opts: Any) -> None:
        self.limit = limit
        self._opts: Dict[str, Any] = dict(opts)
        self._next_token = next_token
        self._has_next = True

    @property
    def has_next(self) -> bool:
        """Whether there may be another page."""
        return self._has_next

    @property
    def next_token(self) -> Optional[str]:
        """Where the next page begins, to go on in another paginator."""
        return self._next_token

    def _query(self) -> Mapping[str, Any]:
        return {"limit": self.limit or None, "nextToken": self._next_token or None}

    def _read(self, data: JsonObject) -> T:
        raise NotImplementedError

    async def next_items(self, **opts: Unpack[ApiParams]) -> List[T]:
        """The next page."""
        if not self._has_next:
            raise Exception("No more items to fetch")
        config = ConnectionConfig(**merge_params(self._opts, opts))
        reply = await send(http_of(config), api_request(config, "GET", self._path, query=self._query()))
        if reply.status >= 300:
            raise api_error(reply, self._error)
        self._next_token = reply.headers.get("x-next-token")
        self._has_next = bool(self._next_token)
        return [self._read(one) for one in json_list(reply.body)]

    async def __aiter__(self) -> AsyncIterator[T]:
        while self._has_next:
            for item in await self.next_items():
                yield item


class AsyncSandboxPaginator(AsyncPaginator[SandboxInfo]):
    """Pages of sandboxes."""

    _path = "/v2/sandboxes"

    def __init__(
        self,
        query: Optional[SandboxQuery] = None,
        limit: Optional[int] = None,
        next_token: Optional[str] = None,
        order: Optional[SandboxListOrder] = None,
        **opts: Unpack[ApiParams],
    ) -> None:
        super().__init__(limit, next_token, **opts)
        self.query = query
        self.order = order

    def _query(self) -> Mapping[str, Any]:
        return list_query(self.query, self.order, self.limit, self._next_token)

    def _read(self, data: JsonObject) -> SandboxInfo:
        return read_info(data, detailed=False)


class AsyncSnapshotPaginator(AsyncPaginator[SnapshotInfo]):
    """Pages of snapshots."""

    _path = "/snapshots"

    def __init__(
        self,
        sandbox_id: Optional[str] = None,
        limit: Optional[int] = None,
        next_token: Optional[str] = None,
        name: Optional[str] = None,
        **opts: Unpack[ApiParams],
    ) -> None:
        super().__init__(limit, next_token, **opts)
        self.sandbox_id = sandbox_id
        self.name = name

    def _query(self) -> Mapping[str, Any]:
        return {"sandboxID": self.sandbox_id or None, "name": self.name or None, **super()._query()}

    def _read(self, data: JsonObject) -> SnapshotInfo:
        return read_snapshot(data)


class AsyncSecretPaginator(AsyncPaginator[SecretInfo]):
    """Pages of secrets."""

    _path = "/secrets"
    _error = SecretException  # type: ignore[assignment]

    def _read(self, data: JsonObject) -> SecretInfo:
        return read_secret(data)
