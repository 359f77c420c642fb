# SPDX-License-Identifier: Apache-2.0
"""Sandboxes: making, finding, keeping and ending them."""

from __future__ import annotations

import json
import shlex
import uuid
from typing import TYPE_CHECKING, Any, Dict, List, Literal, Mapping, Optional, Union, overload
from urllib.parse import quote

from .._core.config import CODE_PORT, ENVD_PORT, ApiParams, ConnectionConfig
from .._core.dual import dual
from .._core.errors import api_error, files_error, request_timeout as timed_out, sandbox_not_found
from .._core.execution import execute_body
from .._core.network import (
    SandboxIamOpts,
    SandboxLifecycle,
    SandboxNetworkOpts,
    SandboxNetworkUpdate,
    SandboxOnResume,
    SnapshotMode,
    memory_of,
    network_update_json,
    resume_memory,
)
from .._core.process import CommandExitException
from .._core.sandbox import (
    DEBUG_SANDBOX,
    MCP_TOKEN_FILE,
    Made,
    SandboxInfo,
    SandboxListOrder,
    SandboxMetrics,
    SandboxQuery,
    SnapshotInfo,
    api_request,
    box_path,
    check_fork_count,
    create_json,
    debug_made,
    idempotency_headers,
    read_forks,
    read_info,
    read_made,
    read_metrics,
    read_snapshot,
    signed_url,
)
from .._core.wire import JsonObject, Reply, WireFault, WireTimeout, json_list, json_object, without_none
from ..constants import DEFAULT_TEMPLATE, DEFAULT_TIMEOUT
from ..exceptions import SandboxException
from ..models import Context, Execution, ExecutionError, OutputMessage, Result, RunCodeLanguage
from .api import AsyncBound, http_of, send
from .code import AsyncCallbacks, AsyncCode
from .envd import AsyncEnvd
from .execution_handle import AsyncExecutionHandle
from .git import AsyncGit
from .paginators import AsyncSandboxPaginator, AsyncSnapshotPaginator
from .running import AsyncCommands, AsyncPty, Handler
from .watch_handle import AsyncFilesystem

if TYPE_CHECKING:
    import logging
    from datetime import datetime

    from typing_extensions import Self, Unpack

    from .volume import AsyncVolume


async def _call(
    config: ConnectionConfig, method: str, path: str, body: Optional[JsonObject] = None, **more: Any
) -> Reply:
    return await send(http_of(config), api_request(config, method, path, body, **more))


async def _box_call(
    config: ConnectionConfig, method: str, sandbox_id: str, tail: str, body: Optional[JsonObject] = None, **more: Any
) -> Reply:
    """A call about one sandbox, which must be there."""
    reply = await _call(config, method, box_path(sandbox_id, tail), body, **more)
    if reply.status == 404:
        raise sandbox_not_found(sandbox_id, reply)
    if reply.status >= 300:
        raise api_error(reply)
    return reply


class AsyncSandbox(AsyncBound):
    """A sandbox with a code interpreter, files, commands and terminals.

    `create` makes one, `connect` takes one that is there. Leaving its `async with` block ends it.
    """

    mcp_port = 50005
    default_sandbox_timeout = 300
    default_template = DEFAULT_TEMPLATE
    default_mcp_template = "mcp-gateway"

    def __init__(
        self,
        sandbox_id: str,
        envd_version: Any,
        envd_access_token: Optional[str],
        sandbox_domain: Optional[str],
        connection_config: ConnectionConfig,
        traffic_access_token: Optional[str] = None,
    ) -> None:
        self._config_used = connection_config
        self._sandbox_id = sandbox_id
        self._sandbox_domain = sandbox_domain or connection_config.domain
        self._envd_version = str(envd_version)
        self._envd_access_token = envd_access_token
        self._traffic_access_token = traffic_access_token
        self._mcp_token: Optional[str] = None
        self._envd_api_url = connection_config.get_sandbox_url(sandbox_id, self._sandbox_domain)
        self._envd_direct_url = connection_config.get_sandbox_direct_url(sandbox_id, self._sandbox_domain)
        envd = AsyncEnvd(connection_config, self._envd_api_url, self._headers(ENVD_PORT))
        self._envd = envd
        self._files = AsyncFilesystem(envd)
        self._commands = AsyncCommands(envd)
        self._pty = AsyncPty(envd)
        self._git = AsyncGit(self._commands)
        code_url = connection_config.get_sandbox_url(sandbox_id, self._sandbox_domain, CODE_PORT)
        self._code = AsyncCode(envd, code_url, self._headers(CODE_PORT))

    def _headers(self, port: int) -> Dict[str, str]:
        headers = self._config_used.sandbox_headers
        headers["E2b-Sandbox-Id"] = self._sandbox_id
        headers["E2b-Sandbox-Port"] = str(port)
        if self._envd_access_token:
            headers["X-Access-Token"] = self._envd_access_token
        if self._traffic_access_token:
            headers["E2B-Traffic-Access-Token"] = self._traffic_access_token
        return headers

    @classmethod
    def _from_made(cls, made: Made, config: ConnectionConfig) -> Self:
        return cls(
            sandbox_id=made.sandbox_id,
            sandbox_domain=made.sandbox_domain,
            envd_version=made.envd_version,
            envd_access_token=made.envd_access_token,
            traffic_access_token=made.traffic_access_token,
            connection_config=config,
        )

    @property
    def files(self) -> AsyncFilesystem:
        """Files of the sandbox."""
        return self._files

    @property
    def commands(self) -> AsyncCommands:
        """Commands of the sandbox."""
        return self._commands

    @property
    def pty(self) -> AsyncPty:
        """Terminals of the sandbox."""
        return self._pty

    @property
    def git(self) -> AsyncGit:
        """git in the sandbox."""
        return self._git

    @property
    def sandbox_id(self) -> str:
        return self._sandbox_id

    @property
    def sandbox_domain(self) -> str:
        return self._sandbox_domain

    @property
    def connection_config(self) -> ConnectionConfig:
        return self._config_used

    @property
    def envd_api_url(self) -> str:
        return self._envd_api_url

    @property
    def envd_direct_url(self) -> str:
        return self._envd_direct_url

    @property
    def traffic_access_token(self) -> Optional[str]:
        """What requests to the sandbox's ports need in `E2B-Traffic-Access-Token` when they are not public."""
        return self._traffic_access_token

    def __repr__(self) -> str:
        return f"{type(self).__name__}(sandbox_id={self._sandbox_id!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        await self.kill()

    # Making and finding

    @classmethod
    async def create(
        cls,
        template: Optional[str] = None,
        timeout: Optional[int] = None,
        metadata: Optional[Dict[str, str]] = None,
        envs: Optional[Dict[str, str]] = None,
        secure: Optional[bool] = None,
        allow_internet_access: Optional[bool] = None,
        mcp: Optional[Mapping[str, Any]] = None,
        network: Optional[SandboxNetworkOpts] = None,
        iam: Optional[SandboxIamOpts] = None,
        lifecycle: Optional[SandboxLifecycle] = None,
        volume_mounts: Optional[Mapping[str, Union[AsyncVolume, str]]] = None,
        logger: Optional[logging.Logger] = None,
        idempotency_key: Optional[str] = None,
        **opts: Unpack[ApiParams],
    ) -> Self:
        """Make a sandbox.

        `timeout` is its lifetime in seconds; `lifecycle` says what happens at its end: `{"on_timeout": "pause"}` keeps
        it instead of killing it. With an `idempotency_key` a repeated call gives the same sandbox.
        """
        if not template:
            template = cls.default_template if mcp is None else cls.default_mcp_template
        config = ConnectionConfig(logger=logger, **cls._params(**opts))
        mounts = [
            {"name": volume if isinstance(volume, str) else volume.name, "path": path}
            for path, volume in (volume_mounts or {}).items()
        ]
        if config.debug:
            return cls._from_made(debug_made(DEBUG_SANDBOX), config)
        body = create_json(
            template, timeout, metadata, envs, allow_internet_access, mcp, network, iam, lifecycle, mounts
        )
        reply = await _call(config, "POST", "/v2/sandboxes", body, headers=idempotency_headers(idempotency_key))
        if reply.status >= 300:
            raise api_error(reply)
        box = cls._from_made(read_made(json_object(reply.body)), config)
        if mcp is not None:
            await box._start_mcp(mcp)
        return box

    async def _start_mcp(self, mcp: Mapping[str, Any]) -> None:
        self._mcp_token = str(uuid.uuid4())
        command = f"mcp-gateway --config {shlex.quote(json.dumps(mcp))}"
        try:
            await self.commands.run(command, user="root", envs={"GATEWAY_ACCESS_TOKEN": self._mcp_token})
        except BaseException as error:
            try:
                await self.kill()
            except Exception:
                # The reason why the gateway did not start is worth more than why its sandbox is left.
                pass
            if isinstance(error, CommandExitException):
                raise SandboxException(f"Failed to start MCP gateway: {error.stderr}") from error
            raise

    async def _connect_by_id(
        _cls: Any,
        sandbox_id: str,
        timeout: Optional[int] = None,
        logger: Optional[logging.Logger] = None,
        *,
        on_resume: SandboxOnResume = "restore",
        **opts: Unpack[ApiParams],
    ) -> AsyncSandbox:
        config = ConnectionConfig(logger=logger, **_cls._params(**opts))
        made = await AsyncSandbox._connected(config, sandbox_id, timeout, on_resume)
        box: AsyncSandbox = _cls._from_made(made, config)
        return box

    @staticmethod
    async def _connected(
        config: ConnectionConfig, sandbox_id: str, timeout: Optional[int], on_resume: Optional[str]
    ) -> Made:
        if config.debug:
            return debug_made(sandbox_id)
        body = without_none(timeout=timeout, memory=resume_memory(on_resume))
        reply = await _call(config, "POST", box_path(sandbox_id, "/connect", "/v2"), body)
        if reply.status == 404:
            raise sandbox_not_found(sandbox_id, reply, paused=True)
        if reply.status >= 300:
            raise api_error(reply)
        return read_made(json_object(reply.body))

    async def _connect(
        self, timeout: Optional[int] = None, *, on_resume: SandboxOnResume = "restore", **opts: Unpack[ApiParams]
    ) -> Self:
        """Connect to the sandbox and resume it if it is paused; `timeout` is its lifetime from now on."""
        config = self._own_config(**opts)
        await self._connected(config, self._sandbox_id, timeout, on_resume)
        return self

    connect = dual(_connect_by_id, _connect)
    resume = connect

    @classmethod
    def list(
        cls,
        query: Optional[SandboxQuery] = None,
        limit: Optional[int] = None,
        next_token: Optional[str] = None,
        order: Optional[SandboxListOrder] = None,
        **opts: Unpack[ApiParams],
    ) -> AsyncSandboxPaginator:
        """The team's sandboxes, page by page."""
        return AsyncSandboxPaginator(query, limit, next_token, order, **cls._params(**opts))

    def _own_config(self, **opts: Any) -> ConnectionConfig:
        return ConnectionConfig(logger=self._config_used.logger, **self._config_used.get_api_params(**opts))

    # Keeping and ending

    async def _get_info_by_id(_cls: Any, sandbox_id: str, **opts: Unpack[ApiParams]) -> SandboxInfo:
        return await AsyncSandbox._info(_cls._config(**opts), sandbox_id)

    @staticmethod
    async def _info(config: ConnectionConfig, sandbox_id: str) -> SandboxInfo:
        return read_info(json_object((await _box_call(config, "GET", sandbox_id, "")).body))

    async def _get_info(self, **opts: Unpack[ApiParams]) -> SandboxInfo:
        """What the server knows of the sandbox."""
        return await self._info(self._own_config(**opts), self._sandbox_id)

    get_info = dual(_get_info_by_id, _get_info)

    async def _kill_by_id(_cls: Any, sandbox_id: str, **opts: Unpack[ApiParams]) -> bool:
        return await AsyncSandbox._killed(_cls._config(**opts), sandbox_id)

    @staticmethod
    async def _killed(config: ConnectionConfig, sandbox_id: str) -> bool:
        if config.debug:
            return True
        reply = await _call(config, "DELETE", box_path(sandbox_id))
        if reply.status == 404:
            return False
        if reply.status >= 300:
            raise api_error(reply)
        return True

    async def _kill(self, **opts: Unpack[ApiParams]) -> bool:
        """End the sandbox; False if it has ended already."""
        return await self._killed(self._own_config(**opts), self._sandbox_id)

    kill = dual(_kill_by_id, _kill)

    async def _set_timeout_by_id(_cls: Any, sandbox_id: str, timeout: int, **opts: Unpack[ApiParams]) -> None:
        await AsyncSandbox._timeout_set(_cls._config(**opts), sandbox_id, timeout)

    @staticmethod
    async def _timeout_set(config: ConnectionConfig, sandbox_id: str, timeout: int) -> None:
        if not config.debug:
            await _box_call(config, "POST", sandbox_id, "/timeout", {"timeout": timeout})

    async def _set_timeout(self, timeout: int, **opts: Unpack[ApiParams]) -> None:
        """Let the sandbox live for so many seconds from now on."""
        await self._timeout_set(self._own_config(**opts), self._sandbox_id, timeout)

    set_timeout = dual(_set_timeout_by_id, _set_timeout)

    async def _get_metrics_by_id(
        _cls: Any,
        sandbox_id: str,
        start: Optional[datetime] = None,
        end: Optional[datetime] = None,
        **opts: Unpack[ApiParams],
    ) -> List[SandboxMetrics]:
        return await AsyncSandbox._metrics(_cls._config(**opts), sandbox_id, start, end)

    @staticmethod
    async def _metrics(
        config: ConnectionConfig, sandbox_id: str, start: Optional[datetime], end: Optional[datetime]
    ) -> List[SandboxMetrics]:
        if config.debug:
            return []
        query = {"start": int(start.timestamp()) if start else None, "end": int(end.timestamp()) if end else None}
        reply = await _box_call(config, "GET", sandbox_id, "/metrics", query=query)
        return read_metrics(json_list(reply.body))

    async def _get_metrics(
        self, start: Optional[datetime] = None, end: Optional[datetime] = None, **opts: Unpack[ApiParams]
    ) -> List[SandboxMetrics]:
        """Use of processor, memory and disk over time."""
        return await self._metrics(self._own_config(**opts), self._sandbox_id, start, end)

    get_metrics = dual(_get_metrics_by_id, _get_metrics)

    async def _pause_by_id(
        _cls: Any,
        sandbox_id: str,
        keep_memory: Optional[bool] = None,
        *,
        mode: Optional[SnapshotMode] = None,
        strict: bool = False,
        **opts: Unpack[ApiParams],
    ) -> bool:
        memory = memory_of("mode", mode, keep_memory)
        return await AsyncSandbox._paused(_cls._config(**opts), sandbox_id, memory, strict)

    @staticmethod
    async def _paused(config: ConnectionConfig, sandbox_id: str, memory: Optional[bool], strict: bool) -> bool:
        body = without_none(memory=memory, requireHealthyGuest=True if strict else None)
        reply = await _call(config, "POST", box_path(sandbox_id, "/pause"), body)
        if reply.status == 404:
            raise sandbox_not_found(sandbox_id, reply)
        if reply.status == 409:
            return False
        if reply.status >= 300:
            raise api_error(reply)
        return True

    async def _pause(
        self,
        keep_memory: Optional[bool] = None,
        *,
        mode: Optional[SnapshotMode] = None,
        strict: bool = False,
        **opts: Unpack[ApiParams],
    ) -> bool:
        """Pause the sandbox until it is connected to; False if it is paused already.

        Mode `filesystem` keeps its files only. `strict` refuses to pause a sandbox that does not answer.
        """
        memory = memory_of("mode", mode, keep_memory)
        return await self._paused(self._own_config(**opts), self._sandbox_id, memory, strict)

    pause = dual(_pause_by_id, _pause)

    async def _beta_pause(
        self,
        keep_memory: Optional[bool] = None,
        *,
        mode: Optional[SnapshotMode] = None,
        **opts: Unpack[ApiParams],
    ) -> bool:
        """The former name of `pause`."""
        return await self._pause(keep_memory, mode=mode, **opts)

    beta_pause = dual(_pause_by_id, _beta_pause)

    async def _fork_by_id(
        _cls: Any,
        sandbox_id: str,
        timeout: Optional[int] = None,
        count: Optional[int] = None,
        logger: Optional[logging.Logger] = None,
        **opts: Unpack[ApiParams],
    ) -> List[Union[AsyncSandbox, Exception]]:
        config = ConnectionConfig(logger=logger, **_cls._params(**opts))
        forks = await AsyncSandbox._forks(config, sandbox_id, timeout, count)
        return [one if isinstance(one, Exception) else _cls._from_made(one, config) for one in forks]

    @staticmethod
    async def _forks(
        config: ConnectionConfig, sandbox_id: str, timeout: Optional[int], count: Optional[int]
    ) -> List[Union[Made, Exception]]:
        check_fork_count(count)
        reply = await _box_call(config, "POST", sandbox_id, "/fork", without_none(timeout=timeout, count=count))
        return read_forks(json_list(reply.body))

    async def _fork(
        self, timeout: Optional[int] = None, count: Optional[int] = None, **opts: Unpack[ApiParams]
    ) -> List[Union[Self, Exception]]:
        """Copies of the running sandbox, with its memory; those that failed are exceptions in the list."""
        config = self._own_config(**opts)
        forks = await self._forks(config, self._sandbox_id, timeout, count)
        return [one if isinstance(one, Exception) else self._from_made(one, config) for one in forks]

    fork = dual(_fork_by_id, _fork)

    async def _create_snapshot_by_id(
        _cls: Any,
        sandbox_id: str,
        name: Optional[str] = None,
        *,
        mode: Optional[SnapshotMode] = None,
        **opts: Unpack[ApiParams],
    ) -> SnapshotInfo:
        return await AsyncSandbox._snapshot(_cls._config(**opts), sandbox_id, name, mode)

    @staticmethod
    async def _snapshot(
        config: ConnectionConfig, sandbox_id: str, name: Optional[str], mode: Optional[str]
    ) -> SnapshotInfo:
        body = without_none(name=name or None, memory=memory_of("mode", mode))
        return read_snapshot(json_object((await _box_call(config, "POST", sandbox_id, "/snapshots", body)).body))

    async def _create_snapshot(
        self, name: Optional[str] = None, *, mode: Optional[SnapshotMode] = None, **opts: Unpack[ApiParams]
    ) -> SnapshotInfo:
        """Keep a copy from which others can be made; the sandbox goes on."""
        return await self._snapshot(self._own_config(**opts), self._sandbox_id, name, mode)

    create_snapshot = dual(_create_snapshot_by_id, _create_snapshot)

    def _list_snapshots_by_id(
        _cls: Any,
        sandbox_id: Optional[str] = None,
        limit: Optional[int] = None,
        next_token: Optional[str] = None,
        name: Optional[str] = None,
        **opts: Unpack[ApiParams],
    ) -> AsyncSnapshotPaginator:
        return AsyncSnapshotPaginator(sandbox_id, limit, next_token, name, **_cls._params(**opts))

    def _list_snapshots(
        self,
        limit: Optional[int] = None,
        next_token: Optional[str] = None,
        name: Optional[str] = None,
        **opts: Unpack[ApiParams],
    ) -> AsyncSnapshotPaginator:
        """Snapshots of the sandbox, page by page."""
        params: Any = self._config_used.get_api_params(**opts)
        return AsyncSnapshotPaginator(self._sandbox_id, limit, next_token, name, **params)

    list_snapshots = dual(_list_snapshots_by_id, _list_snapshots)

    @classmethod
    async def delete_snapshot(cls, snapshot_id: str, **opts: Unpack[ApiParams]) -> bool:
        """Delete a snapshot; False if there is none."""
        reply = await _call(cls._config(**opts), "DELETE", f"/templates/{quote(snapshot_id, safe='')}")
        if reply.status == 404:
            return False
        if reply.status >= 300:
            raise api_error(reply)
        return True

    async def _update_network_by_id(
        _cls: Any, sandbox_id: str, network: SandboxNetworkUpdate, **opts: Unpack[ApiParams]
    ) -> None:
        await _box_call(_cls._config(**opts), "PUT", sandbox_id, "/network", network_update_json(network))

    async def _update_network(self, network: SandboxNetworkUpdate, **opts: Unpack[ApiParams]) -> None:
        """Change which addresses the running sandbox reaches; what is left out goes back to the default."""
        body = network_update_json(network)
        await _box_call(self._own_config(**opts), "PUT", self._sandbox_id, "/network", body)

    update_network = dual(_update_network_by_id, _update_network)

    async def is_running(self, request_timeout: Optional[float] = None) -> bool:
        """Whether the sandbox answers."""
        try:
            reply = await self._envd.health(self._config_used.get_request_timeout(request_timeout))
        except WireTimeout as error:
            raise timed_out() from error.original
        except WireFault as error:
            raise error.original from None
        if reply.status == 502:
            return False
        if reply.status >= 300:
            raise files_error(reply)
        return True

    # Addresses

    def get_host(self, port: int) -> str:
        """The host name under which a port of the sandbox is reached."""
        return self._config_used.get_host(self._sandbox_id, self._sandbox_domain, port)

    def download_url(
        self, path: str, user: Optional[str] = None, use_signature_expiration: Optional[int] = None
    ) -> str:
        """A URL from which whoever has it can read a file."""
        token = self._envd_access_token
        return signed_url(self._envd_direct_url, path, "read", user, token, use_signature_expiration)

    def upload_url(
        self, path: str, user: Optional[str] = None, use_signature_expiration: Optional[int] = None
    ) -> str:
        """A URL to which whoever has it can write a file, as multipart form data."""
        token = self._envd_access_token
        return signed_url(self._envd_direct_url, path, "write", user, token, use_signature_expiration)

    def get_mcp_url(self) -> str:
        """Where the MCP gateway of a sandbox that was made with `mcp` listens."""
        return f"https://{self.get_host(self.mcp_port)}/mcp"

    async def get_mcp_token(self) -> Optional[str]:
        """What requests to the MCP gateway need as bearer token."""
        if not self._mcp_token:
            self._mcp_token = await self.files.read(MCP_TOKEN_FILE, user="root")
        return self._mcp_token

    # Code

    @overload
    async def run_code(
        self,
        code: str,
        language: Optional[RunCodeLanguage] = None,
        context: Optional[Context] = None,
        on_stdout: Optional[Handler[OutputMessage]] = None,
        on_stderr: Optional[Handler[OutputMessage]] = None,
        on_result: Optional[Handler[Result]] = None,
        on_error: Optional[Handler[ExecutionError]] = None,
        envs: Optional[Dict[str, str]] = None,
        timeout: Optional[float] = None,
        request_timeout: Optional[float] = None,
        *,
        background: Literal[False] = False,
    ) -> Execution: ...

    @overload
    async def run_code(
        self,
        code: str,
        language: Optional[RunCodeLanguage] = None,
        context: Optional[Context] = None,
        on_stdout: Optional[Handler[OutputMessage]] = None,
        on_stderr: Optional[Handler[OutputMessage]] = None,
        on_result: Optional[Handler[Result]] = None,
        on_error: Optional[Handler[ExecutionError]] = None,
        envs: Optional[Dict[str, str]] = None,
        timeout: Optional[float] = None,
        request_timeout: Optional[float] = None,
        *,
        background: Literal[True],
    ) -> AsyncExecutionHandle: ...

    async def run_code(
        self,
        code: str,
        language: Optional[RunCodeLanguage] = None,
        context: Optional[Context] = None,
        on_stdout: Optional[Handler[OutputMessage]] = None,
        on_stderr: Optional[Handler[OutputMessage]] = None,
        on_result: Optional[Handler[Result]] = None,
        on_error: Optional[Handler[ExecutionError]] = None,
        envs: Optional[Dict[str, str]] = None,
        timeout: Optional[float] = None,
        request_timeout: Optional[float] = None,
        *,
        background: bool = False,
    ) -> Union[Execution, AsyncExecutionHandle]:
        """Run code in a context, the language's default one unless another is named.

        Gives the execution when it has ended; with `background` a handle at once, which can be waited for, iterated
        over and interrupted. `timeout` is the whole time of the execution in seconds (300, 0 for no limit),
        `request_timeout` the time for connecting.
        """
        body = execute_body(code, language, context, envs)
        limit = None if timeout == 0 else (timeout or DEFAULT_TIMEOUT)
        run = await self._code.start(body, limit, request_timeout)
        callbacks = AsyncCallbacks(on_stdout, on_stderr, on_result, on_error)
        return AsyncExecutionHandle(self._code, run, callbacks) if background else await run.finish(callbacks)

    async def interrupt(
        self,
        context: Union[Context, str, None] = None,
        language: Optional[RunCodeLanguage] = None,
        request_timeout: Optional[float] = None,
    ) -> bool:
        """Stop what runs in a context as Ctrl-C does; its variables stay. False if nothing runs."""
        return await self._code.interrupt(context, language, None, request_timeout)

    async def create_code_context(
        self,
        cwd: Optional[str] = None,
        language: Optional[RunCodeLanguage] = None,
        request_timeout: Optional[float] = None,
    ) -> Context:
        """Make a context with variables of its own."""
        return await self._code.create_context(cwd, language, request_timeout)

    async def list_code_contexts(self) -> List[Context]:
        """All contexts."""
        return await self._code.list_contexts()

    async def remove_code_context(self, context: Union[Context, str]) -> None:
        """End a context and all that it holds."""
        await self._code.remove_context(context)

    async def restart_code_context(self, context: Union[Context, str]) -> None:
        """Empty a context: its variables are gone, its name stays."""
        await self._code.restart_context(context)
