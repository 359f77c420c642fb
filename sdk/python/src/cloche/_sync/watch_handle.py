# SPDX-License-Identifier: Apache-2.0
"""Watching directories, blocking: the sandbox keeps the events until they are asked for."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, cast

from .._core.errors import FILE_RPC_ERRORS
from .._core.files import FilesystemEvent, read_event
from ..exceptions import SandboxException
from .envd import Envd
from .files import FilesBase


class WatchHandle:
    """A watched directory."""

    def __init__(self, envd: Envd, watcher_id: str, user: Optional[str] = None) -> None:
        self._envd = envd
        self._watcher_id = watcher_id
        self._user = user
        self._closed = False

    def stop(self, request_timeout: Optional[float] = None) -> None:
        """End the watching."""
        self._call("RemoveWatcher", request_timeout)
        self._closed = True

    def get_new_events(self, request_timeout: Optional[float] = None) -> List[FilesystemEvent]:
        """What happened since the last call."""
        if self._closed:
            raise SandboxException("The watcher is already stopped")
        found = self._call("GetWatcherEvents", request_timeout)
        events = [read_event(one) for one in cast(List[Dict[str, Any]], found.get("events") or [])]
        return [event for event in events if event is not None]

    def _call(self, method: str, request_timeout: Optional[float]) -> Dict[str, Any]:
        message = {"watcherId": self._watcher_id}
        return self._envd.call(f"filesystem.Filesystem/{method}", message, request_timeout, user=self._user)


class Filesystem(FilesBase):
    """Files of a sandbox."""

    def watch_dir(
        self,
        path: str,
        user: Optional[str] = None,
        request_timeout: Optional[float] = None,
        recursive: bool = False,
        include_entry: bool = False,
        allow_network_mounts: bool = False,
    ) -> WatchHandle:
        """Watch a directory; `get_new_events` of the handle gives what happened."""
        message = self._watch_message(path, recursive, include_entry, allow_network_mounts)
        made = self._envd.call(
            "filesystem.Filesystem/CreateWatcher", message, request_timeout, user=user, errors=FILE_RPC_ERRORS
        )
        return WatchHandle(self._envd, made["watcherId"], user)
