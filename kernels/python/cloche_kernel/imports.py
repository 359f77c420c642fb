# SPDX-License-Identifier: Apache-2.0
"""Notices when a module gets imported, so that hooks cost nothing to who never uses the library."""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

Hook = Callable[[ModuleType], None]


class _Watcher(importlib.abc.MetaPathFinder):
    """First on sys.meta_path while somebody waits; finds nothing itself, only wraps the real loader."""

    def __init__(self) -> None:
        self.waiting: dict[str, Hook] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        hook = self.waiting.pop(fullname, None)
        if hook is None:
            return None
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            self.waiting[fullname] = hook  # not installed yet: it may be later
            return None
        spec.loader = _Loader(spec.loader, hook)  # type: ignore[assignment]
        return spec


class _Loader:
    """A loader that calls the hook once the module is complete."""

    def __init__(self, loader: Any, hook: Hook) -> None:
        self._loader = loader
        self._hook = hook

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        try:
            self._hook(module)
        except Exception:
            pass  # a hook is a convenience; the import must go on without it


_watcher = _Watcher()


def when_imported(name: str, hook: Hook) -> None:
    """Calls hook(module) when the module is imported; at once if it is already there."""
    module = sys.modules.get(name)
    if module is not None:
        hook(module)
        return
    if _watcher not in sys.meta_path:
        sys.meta_path.insert(0, _watcher)
    _watcher.waiting[name] = hook
