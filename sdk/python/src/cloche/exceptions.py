# SPDX-License-Identifier: Apache-2.0
"""Every exception this package raises.

The names and the tree are those of the stock SDKs. All of them carry two things more: `status_code`, the HTTP status
of the answer that was refused, where there was one, and `cause`, why the sandbox ended, where the server said so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Optional

__all__ = [
    "AuthenticationException",
    "BuildException",
    "ClocheException",
    "DockerfileSyntaxError",
    "EndCause",
    "FileNotFoundException",
    "FileUploadException",
    "GitAuthException",
    "GitUpstreamException",
    "GuestUnresponsiveException",
    "InvalidArgumentException",
    "NotEnoughSpaceException",
    "NotFoundException",
    "RateLimitException",
    "SandboxException",
    "SandboxNotFoundException",
    "SandboxNotRunningException",
    "SandboxUnreachableException",
    "SecretException",
    "SecretNotFoundException",
    "ServiceBusyException",
    "TemplateException",
    "TimeoutException",
    "VolumeException",
    "VolumeNotFoundException",
    "VolumePathNotFoundException",
]

_ENDED = re.compile(r"it ended at (\S+), ([^:,.;]+)(?:: *([^\n]*))?")
_FRACTION = re.compile(r"\.(\d+)")


@dataclass(frozen=True)
class EndCause:
    """Why and when a sandbox ended, as the server recorded it."""

    kind: str
    """One or two words: `timeout`, `killed`, `out of memory`, `crashed`, `lost`."""
    detail: str
    """The rest of the server's sentence, empty where there is none."""
    ended_at: Optional[datetime]

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}" if self.detail else self.kind

    @classmethod
    def find(cls, message: str) -> Optional[EndCause]:
        """The cause inside a message of the server, None where it names none."""
        found = _ENDED.search(message)
        if found is None:
            return None
        return cls(found.group(2).strip(), (found.group(3) or "").strip(), parse_time(found.group(1)))


def parse_time(text: str) -> Optional[datetime]:
    """An RFC 3339 time with any number of fraction digits, None where the text is none."""
    plain = _FRACTION.sub(lambda found: "." + found.group(1)[:6].ljust(6, "0"), text.rstrip(",;"))
    if plain.endswith(("Z", "z")):
        plain = plain[:-1] + "+00:00"
    try:
        return datetime.fromisoformat(plain)
    except ValueError:
        return None


class ClocheException(Exception):
    """The root of all exceptions of this package."""

    status_code: Optional[int] = None
    """The HTTP status of the answer behind this exception, None where there was none."""
    cause: Optional[EndCause] = None
    """Why the sandbox ended, None where it did not or where the server did not say."""


class SandboxException(ClocheException):
    """Something about a sandbox failed; the base of most others."""

    def __init__(self, *args: Any, status_code: Optional[int] = None) -> None:
        super().__init__(*args)
        self.status_code = status_code


class TimeoutException(SandboxException):
    """A limit of time was reached: the call's, the command's or the sandbox's own."""


class InvalidArgumentException(SandboxException):
    """An argument was refused, by this package or by the server."""


class NotEnoughSpaceException(SandboxException):
    """The sandbox's disk is full."""


class NotFoundException(SandboxException):
    """What was asked for is not there."""


class FileNotFoundException(NotFoundException):
    """There is no such file or directory in the sandbox."""


class SandboxNotFoundException(NotFoundException):
    """The server has no such sandbox, or no longer; `cause` says why it ended."""


class SandboxNotRunningException(TimeoutException):
    """The sandbox is not running any more: it was killed, paused or its time was over. Repeating does not help."""


class SandboxUnreachableException(TimeoutException):
    """The sandbox does not answer and is not known to have ended."""


class AuthenticationException(ClocheException):
    """The API key or an access token was refused."""


class GitAuthException(AuthenticationException):
    """A git remote refused the credentials."""


class GitUpstreamException(SandboxException):
    """The branch has no upstream to push to or pull from."""


class TemplateException(SandboxException):
    """The template can't do what was asked for."""


class RateLimitException(SandboxException):
    """Too many requests, or a limit of the team was reached."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args, status_code=429)


class GuestUnresponsiveException(SandboxException):
    """The pause was taken while the sandbox did not answer; connect with `on_resume="reboot"`."""

    code = "sandbox_snapshot_guest_agent_unresponsive"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args, status_code=409)


class ServiceBusyException(ClocheException):
    """The server refused for the moment (503) and changed nothing: the same call may be repeated."""

    status_code = 503


class BuildException(ClocheException):
    """A template could not be built."""


class FileUploadException(BuildException):
    """A file of a template could not be sent."""


class VolumeException(ClocheException):
    """Something about a volume failed."""


class VolumeNotFoundException(NotFoundException):
    """There is no such volume."""


class VolumePathNotFoundException(NotFoundException):
    """There is no such file or directory in the volume."""


class SecretException(ClocheException):
    """Something about a secret failed."""


class SecretNotFoundException(SecretException):
    """There is no such secret."""


class DockerfileSyntaxError(ValueError):
    """A Dockerfile can't be read; `line` is where, if that is known."""

    def __init__(self, message: str, line: Optional[int] = None) -> None:
        super().__init__(message if line is None else f"{message} (line {line})")
        self.line = line
