"""`pl.jit` and its forms."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType, FunctionType
from typing import Any

from pypto.jit.extern import make_external
from pypto.jit.function import JITFunction

_UNSET: Any = object()
_WITHOUT_AUTO_SCOPE = ("incore", "opaque", "extern")


class _Form:
    """One decorator of the family, used bare or with options."""

    def __init__(self, name: str, kind: str) -> None:
        self._name = name
        self._kind = kind

    def __call__(
        self, function: Callable[..., Any] | None = None, *, level: Any = _UNSET, auto_scope: Any = _UNSET
    ) -> Any:
        """Make a function of this kind.

        Args:
            function: the function, when used without parentheses.
            level: the machine level of a kernel (`incore` only).
            auto_scope: whether the compiler places runtime scopes (`jit`, `host` and `inline`).

        Raises:
            TypeError: an option that this form does not have.
        """
        if level is not _UNSET and self._kind != "incore":
            raise TypeError(f"@pl.{self._name} does not accept a level= argument")
        if auto_scope is not _UNSET and self._kind in _WITHOUT_AUTO_SCOPE:
            raise TypeError(f"@pl.{self._name} does not accept an auto_scope= argument")
        frame = sys._getframe(1)

        def decorate(target: Any) -> JITFunction:
            return JITFunction(
                _checked(target, self._name),
                self._kind,
                level=None if level is _UNSET else level,
                auto_scope=True if auto_scope is _UNSET else bool(auto_scope),
                local_names=_locals(frame),
            )

        return decorate if function is None else decorate(function)


class _Jit(_Form):
    """`@pl.jit`: an entry point; its forms are attributes."""

    def __init__(self) -> None:
        super().__init__("jit", "orchestration")
        self.host = _Form("jit.host", "host")
        self.incore = _Form("jit.incore", "incore")
        self.inline = _Form("jit.inline", "inline")
        self.opaque = _Form("jit.opaque", "opaque")

    def extern(
        self,
        function: Callable[..., Any] | None = None,
        *,
        core_type: str = "aiv",
        source: Any = None,
        aic_source: Any = None,
        aiv_source: Any = None,
        dual_aiv_dispatch: bool = False,
        include_dirs: Sequence[Any] | None = None,
    ) -> Any:
        """A hand-written kernel; the function is only its signature.

        Args:
            function: the stub, when used without parentheses.
            core_type: "aic", "aiv", or "mixed" for a pair of kernels that runs as a group.
            source: the C++ file of a single kernel; relative paths start at the file of the stub.
            aic_source: the matrix kernel of a pair.
            aiv_source: the vector kernel of a pair.
            dual_aiv_dispatch: whether two vector lanes run beside one matrix lane.
            include_dirs: directories for `#include`.

        Raises:
            ValueError: the options do not fit together, or a file does not exist.
            TypeError: `include_dirs` is one path.
        """
        frame = sys._getframe(1)

        def decorate(target: Any) -> JITFunction:
            stub = _checked(target, "jit.extern")
            external = make_external(
                stub.__code__.co_filename,
                core_type,
                source,
                aic_source,
                aiv_source,
                dual_aiv_dispatch,
                include_dirs,
            )
            return JITFunction(stub, "extern", local_names=_locals(frame), external=external)

        return decorate if function is None else decorate(function)


def _checked(target: Any, name: str) -> FunctionType:
    if not isinstance(target, FunctionType):
        raise TypeError(f"@pl.{name} decorates functions, got {type(target).__name__}")
    return target


def _locals(frame: FrameType) -> dict[str, Any]:
    """The names of the function in which a decorator stands; those of a module stay looked up by name."""
    return {} if frame.f_locals is frame.f_globals else dict(frame.f_locals)


jit = _Jit()
