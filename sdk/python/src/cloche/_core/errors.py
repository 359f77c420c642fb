# SPDX-License-Identifier: Apache-2.0
"""From answers to exceptions: one function per kind of traffic (API, agent files, agent calls, code interpreter).

The server tells why a sandbox ended inside its message; whatever the exception's class, `cause` holds it.
"""

from __future__ import annotations

from typing import Callable, Dict, Mapping, Optional, Type

from ..exceptions import (
    AuthenticationException,
    ClocheException,
    EndCause,
    FileNotFoundException,
    GuestUnresponsiveException,
    InvalidArgumentException,
    NotEnoughSpaceException,
    NotFoundException,
    RateLimitException,
    SandboxException,
    SandboxNotFoundException,
    SandboxNotRunningException,
    SandboxUnreachableException,
    ServiceBusyException,
    TimeoutException,
)
from .connect import RpcError
from .wire import Reply, json_object

Maker = Callable[[str], Exception]

GONE = "was not found"
PORT_CLOSED = "port is not open"


def with_cause(error: Exception, message: str, status: Optional[int] = None) -> Exception:
    if isinstance(error, ClocheException):
        error.cause = EndCause.find(message)
        if status is not None and error.status_code is None:
            error.status_code = status
    return error


def request_timeout() -> TimeoutException:
    return TimeoutException(
        "the request timed out: nothing was sent or received for `request_timeout` seconds, an option of every call"
    )


def api_error(reply: Reply, default: Type[Exception] = SandboxException) -> Exception:
    """For an answer of the control plane that is not a success."""
    body = json_object(reply.body)
    said = body.get("message")
    message = said if isinstance(said, str) else reply.text
    if body.get("error_code") == GuestUnresponsiveException.code:
        return with_cause(GuestUnresponsiveException(f'{message}. Connect with on_resume="reboot".'), message)
    return coded_error(reply.status, message, default)


def coded_error(status: int, message: str, default: Type[Exception] = SandboxException) -> Exception:
    made: Exception
    if status == 401:
        made = AuthenticationException(f"401: Unauthorized, please check your credentials. - {message}")
    elif status == 429:
        made = RateLimitException(f"429: Rate limit exceeded, please try again later. - {message}")
    elif status == 503:
        made = ServiceBusyException(f"503: Service temporarily unavailable, please retry. - {message}")
    else:
        made = default(f"{status}: {message}")
    return with_cause(made, message, status)


def sandbox_not_found(sandbox_id: str, reply: Reply, paused: bool = False) -> Exception:
    message = str(json_object(reply.body).get("message") or "")
    what = "Paused sandbox" if paused else "Sandbox"
    text = f"{what} {sandbox_id} not found"
    cause = EndCause.find(message)
    return with_cause(SandboxNotFoundException(f"{text}: {message}" if cause else text), message, 404)


def unavailable(message: str) -> Exception:
    """For a 502 of the edge, or `unavailable` of a call: by its words gone for good, closed, or unknown."""
    made: Exception
    if GONE in message:
        made = SandboxNotRunningException(
            f"{message}: The sandbox was killed or reached its timeout. `timeout` of create and `set_timeout` set its "
            "lifetime."
        )
    elif PORT_CLOSED in message:
        made = SandboxUnreachableException(
            f"{message}: The sandbox is running but its agent can't be reached. `get_info` tells its state."
        )
    else:
        made = SandboxUnreachableException(
            f"{message}: The sandbox can't be reached and its state is unknown. `get_info` tells its state."
        )
    return with_cause(made, message)


def is_ambiguous(error: RpcError) -> bool:
    return error.code == "unavailable" and GONE not in error.message and PORT_CLOSED not in error.message


def rpc_error(error: RpcError, overrides: Optional[Mapping[str, Maker]] = None) -> Exception:
    """For a call of the agent that was answered with an error."""
    message = error.message
    if overrides and error.code in overrides:
        return with_cause(overrides[error.code](message), message)
    maker = _RPC_ERRORS.get(error.code)
    made = maker(message) if maker else SandboxException(f"{error.code}: {message}")
    return with_cause(made, message)


def files_error(reply: Reply) -> Exception:
    """For an answer of the agent's `/files` or `/health` that is not a success."""
    said = json_object(reply.body).get("message")
    message = said if isinstance(said, str) else reply.text
    maker = _FILES_ERRORS.get(reply.status)
    made = maker(message) if maker else SandboxException(f"{reply.status}: {message}", status_code=reply.status)
    return with_cause(made, message, reply.status)


def code_error(reply: Reply) -> Exception:
    """For an answer of the code interpreter that is not a success."""
    text = reply.text.strip()
    made: Exception
    if reply.status == 404:
        made = NotFoundException(text)
    elif reply.status == 502:
        made = SandboxNotRunningException(
            f"{text}: The sandbox was killed or reached its timeout. `timeout` of create and `set_timeout` set its "
            "lifetime."
        )
        if PORT_CLOSED in text:
            made = SandboxUnreachableException(f"{text}: The sandbox is running but has no code interpreter.")
    else:
        made = SandboxException(f"{reply.status} {reply.reason}{f': {text}' if text else ''}")
    return with_cause(made, str(json_object(reply.body).get("message") or text), reply.status)


def ended_while(error: Exception, message: str) -> Exception:
    """For a request that was cut when the health probe says that the sandbox is gone."""
    made = SandboxNotRunningException(f"{error}: The sandbox ended while the request was under way: {message}")
    made.__cause__ = error
    return with_cause(made, message)


def unreachable(error: Exception, probe: str) -> Exception:
    made = SandboxUnreachableException(
        f"{error}: The sandbox can't be reached, its health probe failed too ({probe}). `get_info` tells its state."
    )
    made.__cause__ = error
    return made


def execution_timeout() -> TimeoutException:
    return TimeoutException("the execution timed out: `timeout` of run_code sets its limit in seconds, 0 for none")


def _deadline(message: str) -> Exception:
    return TimeoutException(
        f"{message}: `timeout` is the time that a command or a watch may last, `request_timeout` the longest silence "
        "of a request; 0 means no limit"
    )


_RPC_ERRORS: Dict[str, Maker] = {
    "invalid_argument": InvalidArgumentException,
    "unauthenticated": AuthenticationException,
    "not_found": NotFoundException,
    "unavailable": unavailable,
    "resource_exhausted": lambda message: RateLimitException(f"{message}: Rate limit exceeded, try again later."),
    "canceled": lambda message: TimeoutException(f"{message}: The request was cancelled on its way."),
    "deadline_exceeded": _deadline,
}
_FILES_ERRORS: Dict[int, Maker] = {
    400: InvalidArgumentException,
    401: AuthenticationException,
    404: FileNotFoundException,
    429: lambda message: RateLimitException(f"{message}: The requests are being rate limited."),
    502: unavailable,
    507: NotEnoughSpaceException,
}
FILE_RPC_ERRORS: Dict[str, Maker] = {"not_found": FileNotFoundException}
