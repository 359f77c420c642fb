# SPDX-License-Identifier: Apache-2.0
"""Methods that work on a sandbox and, with an identifier before the other arguments, on its class.

`kill = dual(_cls_kill, _kill)` makes `box.kill()` call `_kill(box)` and `Sandbox.kill("id")` call
`_cls_kill(Sandbox, "id")`. Type checkers see both signatures.
"""

from __future__ import annotations

from types import MethodType
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from typing import Generic, TypeVar, overload

    from typing_extensions import Concatenate, ParamSpec

    ClassArgs = ParamSpec("ClassArgs")
    Args = ParamSpec("Args")
    ClassResult = TypeVar("ClassResult")
    Result = TypeVar("Result")

    class dual(Generic[ClassArgs, ClassResult, Args, Result]):
        def __init__(
            self,
            of_class: Callable[Concatenate[Any, ClassArgs], ClassResult],
            of_instance: Callable[Concatenate[Any, Args], Result],
        ) -> None: ...
        @overload
        def __get__(self, instance: None, owner: type) -> Callable[ClassArgs, ClassResult]: ...
        @overload
        def __get__(self, instance: object, owner: type) -> Callable[Args, Result]: ...
        def __get__(self, instance: Any, owner: type) -> Any: ...

else:

    class dual:
        def __init__(self, of_class, of_instance):
            self.of_class = of_class
            self.of_instance = of_instance
            self.__doc__ = of_instance.__doc__

        def __get__(self, instance, owner):
            if instance is not None:
                return MethodType(self.of_instance, instance)

            def either(first=None, *args, **kwargs):
                # Sandbox.kill(box) means box.kill(), as with any other method.
                if isinstance(first, owner):
                    return self.of_instance(first, *args, **kwargs)
                if first is None:
                    return self.of_class(owner, *args, **kwargs)
                return self.of_class(owner, first, *args, **kwargs)

            either.__wrapped__ = MethodType(self.of_class, owner)
            either.__doc__ = self.__doc__
            either.__name__ = self.of_instance.__name__.lstrip("_")
            return either
