# SPDX-License-Identifier: Apache-2.0
"""Building templates on the server."""

from __future__ import annotations

import os
from datetime import datetime
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Type, Union
from urllib.parse import quote

from .._core.config import ApiParams, ConnectionConfig
from .._core.errors import api_error
from .._core.sandbox import api_request
from .._core.template.base import TemplateBase, TemplateClass, build_name
from .._core.template.context import archive
from .._core.template.logs import LogEntry, LogEntryEnd, LogEntryStart
from .._core.template.types import (
    BuildInfo,
    Step,
    TemplateBuildStatus,
    TemplateBuildStatusResponse,
    TemplateTag,
    TemplateTagInfo,
    read_status,
    read_tag,
)
from .._core.wire import JsonObject, Reply, Request, WireFault, WireTimeout, json_list, json_object, without_none
from ..exceptions import BuildException, FileUploadException, TemplateException
from .api import AsyncBound, http_of, send
from .transport import sleep
from .uploads import pieces_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

OnLog = Callable[[LogEntry], None]
LOG_INTERVAL = 0.2


async def _call(
    config: ConnectionConfig,
    method: str,
    path: str,
    body: Optional[JsonObject] = None,
    *,
    error: Type[Exception] = BuildException,
    query: Optional[Dict[str, Any]] = None,
) -> Reply:
    reply = await send(http_of(config), api_request(config, method, path, body, query=query))
    if reply.status >= 300:
        raise api_error(reply, error)
    return reply


def _one(template_id: str, tail: str) -> str:
    return f"/templates/{quote(template_id, safe='')}{tail}"


def _info(log: Optional[OnLog], message: str) -> None:
    if log is not None:
        log(LogEntry(datetime.now(), "info", message))


class AsyncTemplate(AsyncBound, TemplateBase):
    """A template: what sandboxes are made from."""

    @classmethod
    async def build(
        cls,
        template: TemplateClass,
        name: Optional[str] = None,
        *,
        alias: Optional[str] = None,
        tags: Optional[List[str]] = None,
        cpu_count: Optional[int] = None,
        memory_mb: Optional[int] = None,
        min_free_disk_mb: Optional[int] = None,
        skip_cache: bool = False,
        on_build_logs: Optional[OnLog] = None,
        **opts: Unpack[ApiParams],
    ) -> BuildInfo:
        """Build a template and wait until it is ready; raises BuildException at the line of the step that failed."""
        named, config = build_name(name, alias), cls._config(**opts)
        sizes = without_none(cpuCount=cpu_count, memoryMB=memory_mb, minFreeDiskMb=min_free_disk_mb)
        if on_build_logs is not None:
            on_build_logs(LogEntryStart(datetime.now(), "Build started"))
        try:
            info = await cls._begin(config, template, named, tags, sizes, skip_cache, on_build_logs)
            _info(on_build_logs, "Waiting for logs...")
            await cls._wait(config, template, info, on_build_logs)
            return info
        finally:
            if on_build_logs is not None:
                on_build_logs(LogEntryEnd(datetime.now(), "Build finished"))

    @classmethod
    async def build_in_background(
        cls,
        template: TemplateClass,
        name: Optional[str] = None,
        *,
        alias: Optional[str] = None,
        tags: Optional[List[str]] = None,
        cpu_count: Optional[int] = None,
        memory_mb: Optional[int] = None,
        min_free_disk_mb: Optional[int] = None,
        skip_cache: bool = False,
        on_build_logs: Optional[OnLog] = None,
        **opts: Unpack[ApiParams],
    ) -> BuildInfo:
        """Begin a build; `get_build_status` tells how it goes."""
        named, config = build_name(name, alias), cls._config(**opts)
        sizes = without_none(cpuCount=cpu_count, memoryMB=memory_mb, minFreeDiskMb=min_free_disk_mb)
        return await cls._begin(config, template, named, tags, sizes, skip_cache, on_build_logs)

    @classmethod
    async def _begin(
        cls,
        config: ConnectionConfig,
        template: TemplateClass,
        name: str,
        tags: Optional[List[str]],
        sizes: JsonObject,
        skip_cache: bool,
        log: Optional[OnLog],
    ) -> BuildInfo:
        recipe = template.recipe
        recipe.force = recipe.force or skip_cache
        recipe.hash_files()
        _info(log, f"Requesting build for template: {name}{' with tags: ' + ', '.join(tags) if tags else ''}")
        body = {"name": name, **without_none(tags=tags or None), **sizes}
        made = json_object((await _call(config, "POST", "/v3/templates", body)).body)
        template_id, build_id = str(made["templateID"]), str(made["buildID"])
        _info(log, f"Template created with ID: {template_id}, Build ID: {build_id}")
        for at, step in enumerate(recipe.steps):
            if step.type == "COPY":
                try:
                    await cls._upload(config, template, template_id, step, log)
                except FileUploadException as error:
                    raise error.with_traceback(recipe.trace_of(at)) from error.__cause__
        _info(log, "All file uploads completed")
        _info(log, "Starting building...")
        await _call(config, "POST", "/v2" + _one(template_id, f"/builds/{build_id}"), recipe.to_json())
        return BuildInfo(template_id, build_id, name, name, list(made.get("tags") or []))

    @staticmethod
    async def _upload(
        config: ConnectionConfig, template: TemplateClass, template_id: str, step: Step, log: Optional[OnLog]
    ) -> None:
        path = _one(template_id, f"/files/{step.files_hash}")
        link = json_object((await _call(config, "GET", path, error=FileUploadException)).body)
        src, url = step.args[0], link.get("url")
        if not url or (link.get("present") and not step.force_upload):
            _info(log, f"Skipping upload of '{src}', already cached")
            return
        recipe = template.recipe
        file = archive(src, recipe.context, recipe.patterns(), step.resolve_symlinks, step.gzip)
        try:
            given: Dict[str, str] = link.get("headers") or {}
            headers = {name: value for name, value in given.items() if name.lower() != "content-length"}
            headers["Content-Length"] = str(os.fstat(file.fileno()).st_size)
            timeout = config.get_request_timeout()
            request = Request("PUT", str(url), headers, pieces_of(file, False), timeout=timeout, http1=True)
            reply = await http_of(config).send(request)
        except (WireTimeout, WireFault) as error:
            raise FileUploadException(f"Failed to upload '{src}': {error}") from error.original
        finally:
            file.close()
        if reply.status >= 300:
            raise FileUploadException(f"Failed to upload '{src}': {reply.status} {reply.text}")
        _info(log, f"Uploaded '{src}'")

    @classmethod
    async def _wait(
        cls, config: ConnectionConfig, template: TemplateClass, info: BuildInfo, log: Optional[OnLog]
    ) -> None:
        offset = 0
        while True:
            status = await cls._status(config, info, offset)
            offset += len(status.log_entries)
            for entry in status.log_entries:
                if log is not None:
                    log(entry)
            ended = status.status in (TemplateBuildStatus.READY, TemplateBuildStatus.ERROR)
            if ended and not status.log_entries:
                break
            if not ended:
                await sleep(LOG_INTERVAL)
        if status.status == TemplateBuildStatus.ERROR:
            message = status.reason.message if status.reason else "Build failed"
            step = status.reason.step if status.reason else None
            raise BuildException(message).with_traceback(template.recipe.trace_of_word(step))

    @staticmethod
    async def _status(
        config: ConnectionConfig, info: BuildInfo, logs_offset: Optional[int]
    ) -> TemplateBuildStatusResponse:
        path = _one(info.template_id, f"/builds/{info.build_id}/status")
        reply = await _call(config, "GET", path, query={"logsOffset": logs_offset})
        return read_status(json_object(reply.body))

    @classmethod
    async def get_build_status(
        cls, build_info: BuildInfo, logs_offset: Optional[int] = None, **opts: Unpack[ApiParams]
    ) -> TemplateBuildStatusResponse:
        """How a build goes, with its log from `logs_offset` on."""
        return await cls._status(cls._config(**opts), build_info, logs_offset)

    @classmethod
    async def exists(cls, name: str, **opts: Unpack[ApiParams]) -> bool:
        """Whether a template of this name is there, also another team's."""
        config = cls._config(**opts)
        path = f"/templates/aliases/{quote(name, safe='')}"
        reply = await send(http_of(config), api_request(config, "GET", path))
        if reply.status == 404:
            return False
        if reply.status >= 300 and reply.status != 403:
            raise api_error(reply, TemplateException)
        return True

    @classmethod
    async def alias_exists(cls, alias: str, **opts: Unpack[ApiParams]) -> bool:
        """The former name of `exists`."""
        return await cls.exists(alias, **opts)

    @classmethod
    async def assign_tags(
        cls, target_name: str, tags: Union[str, List[str]], **opts: Unpack[ApiParams]
    ) -> TemplateTagInfo:
        """Put tags on a build, which is named `template:tag`."""
        body = {"target": target_name, "tags": [tags] if isinstance(tags, str) else tags}
        reply = await _call(cls._config(**opts), "POST", "/templates/tags", body, error=TemplateException)
        made = json_object(reply.body)
        return TemplateTagInfo(str(made["buildID"]), list(made["tags"]))

    @classmethod
    async def remove_tags(cls, name: str, tags: Union[str, List[str]], **opts: Unpack[ApiParams]) -> None:
        """Take tags off a template's builds."""
        body = {"name": name, "tags": [tags] if isinstance(tags, str) else tags}
        await _call(cls._config(**opts), "DELETE", "/templates/tags", body, error=TemplateException)

    @classmethod
    async def get_tags(cls, template_id: str, **opts: Unpack[ApiParams]) -> List[TemplateTag]:
        """The tags of a template."""
        reply = await _call(cls._config(**opts), "GET", _one(template_id, "/tags"), error=TemplateException)
        return [read_tag(one) for one in json_list(reply.body)]
