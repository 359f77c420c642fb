# SPDX-License-Identifier: Apache-2.0
# Made by tools/unasync.py from _async/files.py: change that file.
"""Files of a sandbox: reading, writing, listing."""

from __future__ import annotations

from typing import Any, Iterator, Dict, List, Literal, Optional, Sequence, Union, cast, overload

from .._core.connect import RpcError
from .._core.errors import FILE_RPC_ERRORS, files_error
from .._core.files import (
    WriteData,
    SyncWriteEntry,
    EntryInfo,
    WriteEntry,
    WriteInfo,
    check_data,
    files_url,
    gzip_packer,
    gzip_unpacker,
    in_memory,
    metadata_headers,
    multipart,
    read_entries,
    read_entry,
    read_written,
    to_bytes,
)
from .._core.wire import Body, JsonObject, Request, WireFault, WireTimeout
from ..exceptions import InvalidArgumentException
from .envd import Envd, Events
from .transport import Stream, gather
from .uploads import IS_ASYNC, pieces_of

SERVICE = "filesystem.Filesystem"


class FileStreamReader:
    """A download that is read as it comes. Ends when it is read to its end, closed, or its `with` block is left."""

    def __init__(self, envd: Envd, stream: Stream) -> None:
        self._envd = envd
        self._stream = stream
        self._unpacker = gzip_unpacker() if stream.headers.get("content-encoding") == "gzip" else None
        self._pieces = self._read()

    def _read(self) -> Iterator[bytes]:
        try:
            for chunk in self._stream.chunks():
                piece: bytes = chunk if self._unpacker is None else self._unpacker.decompress(chunk)
                if piece:
                    yield piece
        except (WireTimeout, WireFault) as error:
            raise self._envd.explain(error) from None
        if self._unpacker is not None:
            rest: bytes = self._unpacker.flush()
            if rest:
                yield rest

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return self._pieces.__next__()

    def close(self) -> None:
        """Give the connection back. May be called more than once."""
        self._stream.close()

    def __enter__(self) -> FileStreamReader:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.close()


class FilesBase:
    """Everything about files but watching, which blocking and asynchronous programs do in different ways."""

    def __init__(self, envd: Envd) -> None:
        self._envd = envd

    @overload
    def read(
        self,
        path: str,
        format: Literal["text"] = "text",
        user: Optional[str] = None,
        request_timeout: Optional[float] = None,
        gzip: bool = False,
        stream_idle_timeout: Optional[float] = None,
    ) -> str: ...

    @overload
    def read(
        self,
        path: str,
        format: Literal["bytes"],
        user: Optional[str] = None,
        request_timeout: Optional[float] = None,
        gzip: bool = False,
        stream_idle_timeout: Optional[float] = None,
    ) -> bytearray: ...

    @overload
    def read(
        self,
        path: str,
        format: Literal["stream"],
        user: Optional[str] = None,
        request_timeout: Optional[float] = None,
        gzip: bool = False,
        stream_idle_timeout: Optional[float] = None,
    ) -> FileStreamReader: ...

    def read(
        self,
        path: str,
        format: Literal["text", "bytes", "stream"] = "text",
        user: Optional[str] = None,
        request_timeout: Optional[float] = None,
        gzip: bool = False,
        stream_idle_timeout: Optional[float] = None,
    ) -> Any:
        """Read a file: as text, as bytes, or as a stream of chunks.

        `request_timeout` is the longest silence in seconds, so a large file takes as long as it takes;
        `stream_idle_timeout` is the same for the chunks of a stream.
        """
        if format not in ("text", "bytes", "stream"):
            raise InvalidArgumentException(f"format must be one of: text, bytes, stream (got {format!r})")
        silence = self._envd.config.get_request_timeout(request_timeout)
        if format == "stream" and stream_idle_timeout is not None:
            silence = stream_idle_timeout or None
        headers = {**self._envd.headers, "Accept-Encoding": "gzip" if gzip else "identity"}
        request = Request("GET", files_url(self._envd.base_url, path, user), headers, timeout=silence, http1=True)
        try:
            stream = self._envd.http.open(request)
            if stream.status >= 300:
                raise files_error(stream.reply())
        except (WireTimeout, WireFault) as error:
            raise self._envd.explain(error) from None
        reader = FileStreamReader(self._envd, stream)
        if format == "stream":
            return reader
        content = bytearray()
        for piece in reader:
            content += piece
        return content if format == "bytes" else content.decode("utf-8", "replace")

    def write(
        self,
        path: str,
        data: WriteData,
        user: Optional[str] = None,
        request_timeout: Optional[float] = None,
        gzip: bool = False,
        use_octet_stream: Optional[bool] = None,
        metadata: Optional[Dict[str, str]] = None,
    ) -> WriteInfo:
        """Write a file and the directories above it.

        Files and iterables are sent as they are read, in whatever time that takes: `request_timeout` is the longest
        silence in seconds.
        """
        entry: SyncWriteEntry = {"path": path, "data": data}
        written = self.write_files([entry], user, request_timeout, gzip, use_octet_stream, metadata)
        return written[0]

    def write_files(
        self,
        files: Sequence[Union[WriteEntry, SyncWriteEntry]],
        user: Optional[str] = None,
        request_timeout: Optional[float] = None,
        gzip: bool = False,
        use_octet_stream: Optional[bool] = None,
        metadata: Optional[Dict[str, str]] = None,
    ) -> List[WriteInfo]:
        """Write several files. `metadata` is put on each of them."""
        headers = metadata_headers(metadata)
        entries = [cast(Dict[str, Any], one) for one in files]
        for one in entries:
            check_data(one["path"], one["data"], IS_ASYNC)
        if not entries:
            return []
        if gzip and use_octet_stream is False:
            raise InvalidArgumentException("gzip can't be combined with use_octet_stream=False")
        memory = all(in_memory(one["data"]) for one in entries)
        if use_octet_stream is False and not memory:
            raise InvalidArgumentException("files and iterables can't be sent with use_octet_stream=False")
        silence = self._envd.config.get_request_timeout(request_timeout)
        if not memory or gzip or use_octet_stream or len(entries) == 1:
            calls = {
                at: self._upload_later(one["path"], one["data"], user, silence, gzip, headers)
                for at, one in enumerate(entries)
            }
            done = gather(calls)
            return [info for at in range(len(entries)) for info in done[at]]
        body, content_type = multipart([(one["path"], to_bytes(one["data"])) for one in entries])
        url = files_url(self._envd.base_url, None, user)
        return self._post(url, body, {**headers, "Content-Type": content_type}, silence)

    def _upload_later(
        self,
        path: str,
        data: Any,
        user: Optional[str],
        silence: Optional[float],
        gzip: bool,
        headers: Dict[str, str],
    ) -> Any:
        def upload() -> List[WriteInfo]:
            sent = {**headers, "Content-Type": "application/octet-stream"}
            body: Body
            if in_memory(data):
                body = to_bytes(data)
                if gzip:
                    packer = gzip_packer()
                    body = packer.compress(body) + packer.flush()
            else:
                body = pieces_of(data, gzip)
            if gzip:
                sent["Content-Encoding"] = "gzip"
            return self._post(files_url(self._envd.base_url, path, user), body, sent, silence)

        return upload

    def _post(
        self, url: str, body: Body, headers: Dict[str, str], silence: Optional[float]
    ) -> List[WriteInfo]:
        request = Request("POST", url, {**self._envd.headers, **headers}, body, timeout=silence, http1=True)
        return read_written((self._envd.send(request)).json())

    def list(
        self,
        path: str,
        depth: Optional[int] = 1,
        user: Optional[str] = None,
        request_timeout: Optional[float] = None,
    ) -> List[EntryInfo]:
        """The entries of a directory, and of those below it down to `depth`."""
        if depth is not None and depth < 1:
            raise InvalidArgumentException("depth should be at least 1")
        message = {"path": path, "depth": depth or 0}
        return read_entries(self._call("ListDir", message, user, request_timeout))

    def exists(self, path: str, user: Optional[str] = None, request_timeout: Optional[float] = None) -> bool:
        """Whether there is a file or directory."""
        try:
            self._envd.raw_call(f"{SERVICE}/Stat", {"path": path}, request_timeout, user=user)
        except RpcError as error:
            if error.code == "not_found":
                return False
            raise self._envd.explain(error, FILE_RPC_ERRORS) from None
        return True

    def get_info(
        self, path: str, user: Optional[str] = None, request_timeout: Optional[float] = None
    ) -> EntryInfo:
        """What is known of a file or directory."""
        return read_entry((self._call("Stat", {"path": path}, user, request_timeout)).get("entry") or {})

    def remove(self, path: str, user: Optional[str] = None, request_timeout: Optional[float] = None) -> None:
        """Remove a file, or a directory with all that it holds."""
        self._call("Remove", {"path": path}, user, request_timeout)

    def rename(
        self, old_path: str, new_path: str, user: Optional[str] = None, request_timeout: Optional[float] = None
    ) -> EntryInfo:
        """Move a file or directory."""
        message = {"source": old_path, "destination": new_path}
        return read_entry((self._call("Move", message, user, request_timeout)).get("entry") or {})

    def make_dir(self, path: str, user: Optional[str] = None, request_timeout: Optional[float] = None) -> bool:
        """Make a directory and those above it; False if it is there already."""
        try:
            self._envd.raw_call(f"{SERVICE}/MakeDir", {"path": path}, request_timeout, user=user)
        except RpcError as error:
            if error.code == "already_exists":
                return False
            raise self._envd.explain(error, FILE_RPC_ERRORS) from None
        return True

    def _call(
        self, method: str, message: JsonObject, user: Optional[str], request_timeout: Optional[float]
    ) -> JsonObject:
        return self._envd.call(
            f"{SERVICE}/{method}", message, request_timeout, user=user, errors=FILE_RPC_ERRORS
        )

    def _first(self, events: Events) -> JsonObject:
        return events.first()

    @staticmethod
    def _watch_message(path: str, recursive: bool, include_entry: bool, network: bool) -> JsonObject:
        flags = {"recursive": recursive, "includeEntry": include_entry, "allowNetworkMounts": network}
        return {"path": path, **{name: True for name, on in flags.items() if on}}
