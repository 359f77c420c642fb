# SPDX-License-Identifier: Apache-2.0
"""Templates by the routes of before 2.1, with the client that PyPI e2b 1.0.0 generated from the API of its time.

The CLI of that time, which made the same three calls, is not driven: it builds and pushes an image with docker.
"""

from __future__ import annotations

import time
import uuid

from e2b import Sandbox
from e2b.api import ApiClient
from e2b.api.client.api.templates import (
    delete_templates_template_id,
    get_templates,
    get_templates_template_id_builds_build_id_status,
    post_templates,
    post_templates_template_id,
    post_templates_template_id_builds_build_id,
)
from e2b.api.client.models import Template, TemplateBuild, TemplateBuildRequest, TemplateBuildStatus
from e2b.connection_config import ConnectionConfig

DOCKERFILE = """
FROM e2bdev/base
ENV WORD="two words"
RUN echo "$WORD, {}" > /said
"""


def status(client: ApiClient, template: Template) -> TemplateBuild:
    told = get_templates_template_id_builds_build_id_status.sync(
        template.template_id, template.build_id, client=client
    )
    assert isinstance(told, TemplateBuild), told
    assert (told.template_id, told.build_id) == (template.template_id, template.build_id)
    return told


def build(client: ApiClient, template: Template) -> None:
    """Starts it and polls as the CLI did."""
    started = post_templates_template_id_builds_build_id.sync_detailed(
        template.template_id, template.build_id, client=client
    )
    assert started.status_code == 202, started
    for _ in range(600):
        told = status(client, template)
        if told.status != TemplateBuildStatus.BUILDING:
            break
        time.sleep(0.2)  # as the CLI polled
    assert told.status == TemplateBuildStatus.READY, told


def said(template: Template) -> str:
    box = Sandbox(template.template_id)
    try:
        return box.commands.run("cat /said; ls /tmp/started").stdout
    finally:
        box.kill()


def drive(client: ApiClient) -> None:
    alias = f"old-{uuid.uuid4().hex[:8]}"
    request = {"start_cmd": "touch /tmp/started; sleep infinity", "cpu_count": 1, "memory_mb": 512}
    first = post_templates.sync(
        client=client, body=TemplateBuildRequest(DOCKERFILE.format("first"), alias=alias, **request)
    )
    assert isinstance(first, Template), first
    assert (first.aliases, first.public, first.cpu_count, first.memory_mb) == ([alias], False, 1, 512), first
    build(client, first)
    assert said(first) == "two words, first\n/tmp/started\n"

    again = post_templates_template_id.sync(
        first.template_id, client=client, body=TemplateBuildRequest(DOCKERFILE.format("again"), **request)
    )
    assert isinstance(again, Template), again
    assert again.template_id == first.template_id
    assert again.build_id != first.build_id
    assert said(first) == "two words, first\n/tmp/started\n", "until the new build is ready"
    build(client, again)
    assert said(again) == "two words, again\n/tmp/started\n"

    listed = get_templates.sync(client=client)
    assert first.template_id in [each.template_id for each in listed], listed
    gone = delete_templates_template_id.sync_detailed(first.template_id, client=client)
    assert gone.status_code in (200, 204), gone


with ApiClient(ConnectionConfig()) as api:
    drive(api)
