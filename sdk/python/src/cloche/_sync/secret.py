# SPDX-License-Identifier: Apache-2.0
# Made by tools/unasync.py from _async/secret.py: change that file.
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
from .api import Bound, http_of, send
from .paginators import SecretPaginator

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Secret(Bound):
    """Secrets of the team. Their values can be set and used, never read."""

    @classmethod
    def _call(cls, method: str, path: str, body: Optional[JsonObject], **opts: Unpack[ApiParams]) -> Reply:
        config = cls._config(**opts)
        return send(http_of(config), api_request(config, method, path, body))

    @staticmethod
    def _check(reply: Reply, secret: str) -> SecretInfo:
        if reply.status == 404:
            raise SecretNotFoundException(f"Secret {secret} not found")
        if reply.status >= 300:
            raise api_error(reply, SecretException)
        return read_secret(json_object(reply.body))

    @classmethod
    def create(
        cls, name: str, value: str, metadata: Optional[Dict[str, str]] = None, **opts: Unpack[ApiParams]
    ) -> SecretInfo:
        """Make a secret."""
        reply = cls._call("POST", "/secrets", without_none(name=name, value=value, metadata=metadata), **opts)
        if reply.status >= 300:
            raise api_error(reply, SecretException)
        return read_secret(json_object(reply.body))

    @classmethod
    def update(
        cls, secret: str, value: str, metadata: Optional[Dict[str, str]] = None, **opts: Unpack[ApiParams]
    ) -> SecretInfo:
        """Give a secret, by its name or id, another value; metadata that is not given stays."""
        body = without_none(value=value, metadata=metadata)
        return cls._check(cls._call("POST", secret_path(secret), body, **opts), secret)

    @classmethod
    def get_info(cls, secret: str, **opts: Unpack[ApiParams]) -> SecretInfo:
        """What is known of a secret but its value."""
        return cls._check(cls._call("GET", secret_path(secret), None, **opts), secret)

    @classmethod
    def list(
        cls, limit: Optional[int] = None, next_token: Optional[str] = None, **opts: Unpack[ApiParams]
    ) -> SecretPaginator:
        """The team's secrets, page by page."""
        return SecretPaginator(limit, next_token, **cls._params(**opts))

    @classmethod
    def exists(cls, secret: str, **opts: Unpack[ApiParams]) -> bool:
        """Whether there is a secret of this name or id."""
        try:
            cls.get_info(secret, **opts)
        except SecretNotFoundException:
            return False
        return True

    @classmethod
    def destroy(cls, secret: str, **opts: Unpack[ApiParams]) -> bool:
        """Delete a secret; False if there is none."""
        reply = cls._call("DELETE", secret_path(secret), None, **opts)
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
