# SPDX-License-Identifier: Apache-2.0
"""Processes on the wire of the agent: data models, messages, and what gathers a command's output."""

from __future__ import annotations

import base64
import codecs
from dataclasses import dataclass
from typing import Any, Dict, Generic, List, Optional, Tuple, TypeVar, Union, cast

from ..exceptions import SandboxException
from .wire import JsonObject, without_none

Stdout = str
Stderr = str
PtyOutput = bytes
Username = str
OutputT = TypeVar("OutputT")
Piece = Tuple[Optional[Stdout], Optional[Stderr], Optional[PtyOutput]]

PTY_ENVS = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
# Asks the agent to leave the variables out of its list of processes and whatever else shows a process's settings.
PRIVATE_ENV = {"Cloche-Private-Env": "true"}


@dataclass
class PtySize:
    rows: int
    cols: int


@dataclass
class ProcessInfo:
    """A running command or terminal."""

    pid: int
    tag: Optional[str]
    cmd: str
    args: List[str]
    envs: Dict[str, str]
    cwd: Optional[str]


@dataclass
class CommandResult(Generic[OutputT]):
    """What a command left. Output is None where it was not retained."""

    stderr: OutputT
    stdout: OutputT
    exit_code: int
    error: Optional[str]


@dataclass(eq=False)
class CommandExitException(SandboxException, CommandResult[Any]):
    """A command ended with a status other than 0."""

    def __str__(self) -> str:
        return f"Command exited with code {self.exit_code} and error:\n{self.stderr}"


def selector(pid: int) -> JsonObject:
    return {"process": {"pid": pid}}


def start_message(
    args: List[str], envs: Optional[Dict[str, str]], cwd: Optional[str], **rest: Any
) -> JsonObject:
    process = without_none(cmd="/bin/bash", args=args, envs=envs or None, cwd=cwd)
    return {"process": process, **rest}


def size_message(size: PtySize) -> JsonObject:
    return {"size": {"rows": size.rows, "cols": size.cols}}


def input_message(kind: str, data: Union[str, bytes]) -> JsonObject:
    raw = data.encode() if isinstance(data, str) else bytes(data)
    return {"input": {kind: base64.b64encode(raw).decode("ascii")}}


def read_processes(data: JsonObject) -> List[ProcessInfo]:
    infos: List[ProcessInfo] = []
    for one in cast(List[JsonObject], data.get("processes") or []):
        config = cast(JsonObject, one.get("config") or {})
        infos.append(
            ProcessInfo(
                pid=one.get("pid", 0),
                tag=one.get("tag"),
                cmd=config.get("cmd", ""),
                args=list(config.get("args") or []),
                envs=dict(config.get("envs") or {}),
                cwd=config.get("cwd"),
            )
        )
    return infos


def start_pid(message: JsonObject, action: str) -> int:
    event = cast(JsonObject, message.get("event") or {})
    if "start" not in event:
        raise SandboxException(f"failed to {action}: the first event was not its start: {message}")
    return int(event["start"].get("pid", 0))


class Output:
    """Gathers the events of one process. Text is decoded across chunks, so that no character is torn."""

    def __init__(self, retain: bool) -> None:
        self._retain = retain
        self._out: List[str] = []
        self._err: List[str] = []
        self._out_text = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._err_text = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.exit_code: Optional[int] = None
        self.error: Optional[str] = None

    @property
    def stdout(self) -> Any:
        return "".join(self._out) if self._retain else None

    @property
    def stderr(self) -> Any:
        return "".join(self._err) if self._retain else None

    def result(self) -> CommandResult[Any]:
        """The command's result; raises when it failed or its end was never told."""
        if self.exit_code is None:
            raise SandboxException("the command's stream ended without its end event")
        if self.exit_code != 0:
            raise CommandExitException(
                stdout=self.stdout, stderr=self.stderr, exit_code=self.exit_code, error=self.error
            )
        return CommandResult(stdout=self.stdout, stderr=self.stderr, exit_code=self.exit_code, error=self.error)

    def take(self, message: JsonObject) -> List[Piece]:
        """The pieces of output that an event brings."""
        event = cast(JsonObject, message.get("event") or {})
        data = event.get("data")
        if data:
            return self._data(data)
        if "end" in event:
            pieces = self.flush()
            end = cast(JsonObject, event["end"])
            self.exit_code = int(end.get("exitCode", 0))
            self.error = end.get("error")
            return pieces
        return []

    def _data(self, data: JsonObject) -> List[Piece]:
        if "pty" in data:
            return [(None, None, base64.b64decode(data["pty"]))]
        if "stdout" in data:
            return self._keep_out(self._out_text.decode(base64.b64decode(data["stdout"])))
        if "stderr" in data:
            return self._keep_err(self._err_text.decode(base64.b64decode(data["stderr"])))
        return []

    def _keep_out(self, text: str) -> List[Piece]:
        if not text:
            return []
        if self._retain:
            self._out.append(text)
        return [(text, None, None)]

    def _keep_err(self, text: str) -> List[Piece]:
        if not text:
            return []
        if self._retain:
            self._err.append(text)
        return [(None, text, None)]

    def flush(self) -> List[Piece]:
        """What is left of a character that was never finished, as replacement characters."""
        out = self._keep_out(self._out_text.decode(b"", final=True))
        return out + self._keep_err(self._err_text.decode(b"", final=True))
