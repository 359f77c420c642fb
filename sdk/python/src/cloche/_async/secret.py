# SPDX-License-Identifier: Apache-2.0
"""Secrets: values that sandboxes use in requests and never see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, Optional

from .._core.config import ApiParams
from .._core.errors import api_error
from .._core.network import SandboxIamToken, SandboxIamTokenType
from .._core.sandbox import api_request
from .._core.secret import SecretInfo, placeholder, read_secret, secret_path
from .._core.wire import JsonObject, Reply, json_object, without_none
from ..exceptions import SecretException, SecretNotFoundException
from .api import AsyncBound, http_of, send
from .paginators import AsyncSecretPaginator

if TYPE_CHECKING:
    from typing_extensions import Unpack


class AsyncSecret(AsyncBound):
    """Secrets of the team. Their values can be set and used, never read."""

    @classmethod
    async def _call(cls, method: str, path: str, body: Optional[JsonObject], **opts: Unpack[ApiParams]) -> Reply:
        config = cls._config(**opts)
        return await send(http_of(config), api_request(config, method, path, body))

    @staticmethod
    def _check(reply: Reply, secret: str) -> SecretInfo:
        if reply.status == 404:
            raise SecretNotFoundException(f"Secret {secret} not found")
        if reply.status >= 300:
            raise api_error(reply, SecretException)
        return read_secret(json_object(reply.body))

    @classmethod
    async def create(
        cls, name: str, value: str, metadata: Optional[Dict[str, str]] = None, **opts: Unpack[ApiParams]
    ) -> SecretInfo:
        """Make a secret."""
        reply = await cls._call("POST", "/secrets", without_none(name=name, value=value, metadata=metadata), **opts)
        if reply.status >= 300:
            raise api_error(reply, SecretException)
        return read_secret(json_object(reply.body))

    @classmethod
    async def update(
        cls, secret: str, value: str, metadata: Optional[Dict[str, str]] = None, **opts: Unpack[ApiParams]
    ) -> SecretInfo:
        """Give a secret, by its name or id, another value; metadata that is not given stays."""
        body = without_none(value=value, metadata=metadata)
        return cls._check(await cls._call("POST", secret_path(secret), body, **opts), secret)

    @classmethod
    async def get_info(cls, secret: str, **opts: Unpack[ApiParams]) -> SecretInfo:
        """What is known of a secret but its value."""
        return cls._check(await cls._call("GET", secret_path(secret), None, **opts), secret)

    @classmethod
    def list(
        cls, limit: Optional[int] = None, next_token: Optional[str] = None, **opts: Unpack[ApiParams]
    ) -> AsyncSecretPaginator:
        """The team's secrets, page by page."""
        return AsyncSecretPaginator(limit, next_token, **cls._params(**opts))

    @classmethod
    async def exists(cls, secret: str, **opts: Unpack[ApiParams]) -> bool:
        """Whether there is a secret of this name or id."""
        try:
            await cls.get_info(secret, **opts)
        except SecretNotFoundException:
            return False
        return True

    @classmethod
    async def destroy(cls, secret: str, **opts: Unpack[ApiParams]) -> bool:
        """Delete a secret; False if there is none."""
        reply = await cls._call("DELETE", secret_path(secret), None, **opts)
        if reply.status == 404:
            return False
        if reply.status >= 300:
            raise api_error(reply, SecretException)
        return True

    @staticmethod
    def fill(secret: str) -> str:
        """The text that stands for a secret's value in header values of network rules."""
        return placeholder(secret)

    @staticmethod
    def iam_token(*, audience: str, token_type: SandboxIamTokenType) -> SandboxIamToken:
        """A token of identity for `iam={"tokens": {...}}` of `Sandbox.create`."""
        return {"audience": audience, "token_type": token_type}
