# SPDX-License-Identifier: Apache-2.0
"""A client with options of its own, for programs that talk to more than one server or team."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Type, TypeVar, cast

from ._async.sandbox import AsyncSandbox
from ._async.secret import AsyncSecret
from ._async.template import AsyncTemplate
from ._async.volume import AsyncVolume
from ._core.config import ApiParams
from ._sync.sandbox import Sandbox
from ._sync.secret import Secret
from ._sync.template import Template
from ._sync.volume import Volume

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["E2B", "E2BClientParams"]

T = TypeVar("T")


class E2BClientParams(ApiParams, total=False):
    """Options of a client: those that every call takes."""


def _bind(cls: Type[T], params: Dict[str, Any]) -> Type[T]:
    return cast(Type[T], type(cls.__name__, (cls,), {"_bound_api_params": params, "__doc__": cls.__doc__}))


class E2B:
    """The classes of this package with options bound to them; options of a call come first."""

    def __init__(self, **opts: Unpack[E2BClientParams]) -> None:
        params: Dict[str, Any] = dict(cast(Dict[str, Any], opts))
        for name in ("headers", "api_headers"):
            if params.get(name) is not None:
                params[name] = dict(params[name])
        self.Sandbox = _bind(Sandbox, params)
        self.AsyncSandbox = _bind(AsyncSandbox, params)
        self.Volume = _bind(Volume, params)
        self.AsyncVolume = _bind(AsyncVolume, params)
        self.Template = _bind(Template, params)
        self.AsyncTemplate = _bind(AsyncTemplate, params)
        self.Secret = _bind(Secret, params)
        self.AsyncSecret = _bind(AsyncSecret, params)
