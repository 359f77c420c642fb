# SPDX-License-Identifier: Apache-2.0
"""Volumes: files that outlive sandboxes."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, AsyncIterator, Dict, List, Literal, Optional, Union, overload
from urllib.parse import quote

from .._core.config import ApiParams, ConnectionConfig, HttpVersion, ProxyTypes, VolumeApiParams, VolumeConnectionConfig
from .._core.dual import dual
from .._core.errors import api_error, request_timeout
from .._core.files import in_memory, is_file, to_bytes
from .._core.sandbox import api_request
from .._core.volume import (
    VolumeAndToken,
    VolumeEntryStat,
    VolumeInfo,
    check_content,
    content_request,
    read_stat,
    read_volume,
)
from .._core.wire import Body, JsonObject, WireFault, WireTimeout, dumps, json_list, json_object, without_none
from ..exceptions import NotFoundException, VolumeException, VolumeNotFoundException
from .api import AsyncBound, http_of, open_stream, send
from .transport import AsyncStream
from .uploads import pieces_of

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class AsyncVolume(AsyncBound):
    """A volume. `request_timeout` of all calls is the longest silence in seconds, so files take the time they take."""

    def __init__(
        self,
        volume_id: str,
        name: str,
        token: Optional[str] = None,
        domain: Optional[str] = None,
        debug: Optional[bool] = None,
        proxy: Optional[ProxyTypes] = None,
        *,
        http_version: Optional[HttpVersion] = None,
    ) -> None:
        self._volume_id = volume_id
        self._name = name
        self._token = token
        self._domain = domain
        self._debug = debug
        self._proxy = proxy
        self._http_version: Optional[HttpVersion] = http_version

    @property
    def volume_id(self) -> str:
        return self._volume_id

    @property
    def name(self) -> str:
        return self._name

    @property
    def token(self) -> Optional[str]:
        """What requests about the volume's content need as bearer token."""
        return self._token

    @classmethod
    def _from_info(cls, info: VolumeAndToken, config: ConnectionConfig) -> Self:
        return cls(
            info.volume_id,
            info.name,
            info.token,
            info.domain or config.domain,
            config.debug,
            config.proxy,
            http_version=config.http_version,
        )

    @classmethod
    async def create(cls, name: str, **opts: Unpack[ApiParams]) -> Self:
        """Make a volume."""
        config = cls._config(**opts)
        reply = await send(http_of(config), api_request(config, "POST", "/volumes", {"name": name}))
        if reply.status >= 300:
            raise api_error(reply, VolumeException)
        return cls._from_info(read_volume(json_object(reply.body)), config)

    @classmethod
    async def connect(cls, volume_id: str, **opts: Unpack[ApiParams]) -> Self:
        """A volume that is there."""
        config = cls._config(**opts)
        return cls._from_info(await cls._info(config, volume_id), config)

    @staticmethod
    async def _info(config: ConnectionConfig, volume_id: str) -> VolumeAndToken:
        reply = await send(http_of(config), api_request(config, "GET", f"/volumes/{quote(volume_id, safe='')}"))
        if reply.status == 404:
            raise VolumeNotFoundException(f"Volume {volume_id} not found")
        if reply.status >= 300:
            raise api_error(reply, VolumeException)
        return read_volume(json_object(reply.body))

    @classmethod
    async def destroy(cls, volume_id: str, **opts: Unpack[ApiParams]) -> bool:
        """Delete a volume and all that it holds; False if there is none."""
        config = cls._config(**opts)
        reply = await send(http_of(config), api_request(config, "DELETE", f"/volumes/{quote(volume_id, safe='')}"))
        if reply.status == 404:
            return False
        if reply.status >= 300:
            raise api_error(reply, VolumeException)
        return True

    async def _get_info_by_id(_cls: Any, volume_id: str, **opts: Unpack[ApiParams]) -> VolumeAndToken:
        info: VolumeAndToken = await _cls._info(_cls._config(**opts), volume_id)
        return info

    async def _get_info(self, path: str, **opts: Unpack[VolumeApiParams]) -> VolumeEntryStat:
        """What is known of a file or directory."""
        return read_stat(await self._content("GET", "path", path, {}, **opts))

    get_info = dual(_get_info_by_id, _get_info)

    async def _list_all(_cls: Any, **opts: Unpack[ApiParams]) -> List[VolumeInfo]:
        config: ConnectionConfig = _cls._config(**opts)
        reply = await send(http_of(config), api_request(config, "GET", "/volumes"))
        if reply.status >= 300:
            raise api_error(reply, VolumeException)
        return [VolumeInfo(one["volumeID"], one["name"]) for one in json_list(reply.body)]

    async def _list(
        self, path: str, depth: Optional[int] = None, **opts: Unpack[VolumeApiParams]
    ) -> List[VolumeEntryStat]:
        """The entries of a directory, and of those below it down to `depth`."""
        config = self._volume_config(**opts)
        query = {"path": path, "depth": depth}
        timeout = config.get_request_timeout()
        request = content_request(config, "GET", self._volume_id, "dir", query, timeout=timeout)
        reply = check_content(await send(http_of(config), request), path)
        return [read_stat(one) for one in json_list(reply.body)]

    list = dual(_list_all, _list)

    async def make_dir(
        self,
        path: str,
        uid: Optional[int] = None,
        gid: Optional[int] = None,
        mode: Optional[int] = None,
        force: Optional[bool] = None,
        **opts: Unpack[VolumeApiParams],
    ) -> VolumeEntryStat:
        """Make a directory; with `force` those above it too, and one that is there already is no error."""
        query = {"uid": uid, "gid": gid, "mode": mode, "force": force}
        return read_stat(await self._content("POST", "dir", path, query, **opts))

    async def exists(self, path: str, **opts: Unpack[VolumeApiParams]) -> bool:
        """Whether there is a file or directory."""
        try:
            await self._content("GET", "path", path, {}, **opts)
        except NotFoundException:
            return False
        return True

    async def update_metadata(
        self,
        path: str,
        uid: Optional[int] = None,
        gid: Optional[int] = None,
        mode: Optional[int] = None,
        **opts: Unpack[VolumeApiParams],
    ) -> VolumeEntryStat:
        """Change owner and permissions."""
        body = dumps(without_none(uid=uid, gid=gid, mode=mode))
        return read_stat(await self._content("PATCH", "path", path, {}, body, **opts))

    @overload
    async def read_file(
        self,
        path: str,
        format: Literal["text"] = "text",
        stream_idle_timeout: Optional[float] = None,
        **opts: Unpack[VolumeApiParams],
    ) -> str: ...

    @overload
    async def read_file(
        self,
        path: str,
        format: Literal["bytes"],
        stream_idle_timeout: Optional[float] = None,
        **opts: Unpack[VolumeApiParams],
    ) -> bytes: ...

    @overload
    async def read_file(
        self,
        path: str,
        format: Literal["stream"],
        stream_idle_timeout: Optional[float] = None,
        **opts: Unpack[VolumeApiParams],
    ) -> AsyncIterator[bytes]: ...

    async def read_file(
        self,
        path: str,
        format: Literal["text", "bytes", "stream"] = "text",
        stream_idle_timeout: Optional[float] = None,
        **opts: Unpack[VolumeApiParams],
    ) -> Union[str, bytes, AsyncIterator[bytes]]:
        """Read a file: as text, as bytes, or as a stream of chunks."""
        config = self._volume_config(**opts)
        silence = config.get_request_timeout()
        if stream_idle_timeout is not None:
            silence = stream_idle_timeout or None
        request = content_request(config, "GET", self._volume_id, "file", {"path": path}, timeout=silence)
        stream = await open_stream(http_of(config), request)
        if stream.status >= 300:
            check_content(await stream.reply(), path)
        chunks = self._chunks(stream)
        if format == "stream":
            return chunks
        content = bytearray()
        async for chunk in chunks:
            content += chunk
        return bytes(content) if format == "bytes" else content.decode("utf-8", "replace")

    @staticmethod
    async def _chunks(stream: AsyncStream) -> AsyncIterator[bytes]:
        try:
            async for chunk in stream.chunks():
                yield chunk
        except WireTimeout as error:
            raise request_timeout() from error.original
        except WireFault as error:
            raise error.original from None

    async def write_file(
        self,
        path: str,
        data: Union[str, bytes, IO[Any]],
        uid: Optional[int] = None,
        gid: Optional[int] = None,
        mode: Optional[int] = None,
        force: Optional[bool] = None,
        **opts: Unpack[VolumeApiParams],
    ) -> VolumeEntryStat:
        """Write a file; with `force` over one that is there. Files are sent as they are read."""
        body: Body
        if in_memory(data):
            body = to_bytes(data)
        elif is_file(data):
            body = pieces_of(data, False)
        else:
            raise ValueError(f"Unsupported data type: {type(data)}")
        query = {"uid": uid, "gid": gid, "mode": mode, "force": force}
        return read_stat(await self._content("PUT", "file", path, query, body, "application/octet-stream", **opts))

    async def remove(self, path: str, **opts: Unpack[VolumeApiParams]) -> None:
        """Remove a file, or a directory with all that it holds."""
        await self._content("DELETE", "path", path, {}, **opts)

    def _volume_config(self, **opts: Any) -> VolumeConnectionConfig:
        own: Dict[str, Any] = {
            "domain": self._domain,
            "debug": self._debug,
            "token": self._token,
            "proxy": self._proxy,
            "http_version": self._http_version,
        }
        given = {name: value for name, value in opts.items() if value is not None}
        return VolumeConnectionConfig(**{**own, **given})

    async def _content(
        self,
        method: str,
        kind: str,
        path: str,
        query: JsonObject,
        body: Body = None,
        content_type: str = "application/json",
        **opts: Any,
    ) -> JsonObject:
        config = self._volume_config(**opts)
        all_query = {"path": path, **query}
        timeout = config.get_request_timeout()
        request = content_request(config, method, self._volume_id, kind, all_query, body, content_type, timeout)
        return json_object(check_content(await send(http_of(config), request), path).body)
