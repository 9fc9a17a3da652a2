"""`@pl.function`, `@pl.program` and `@pl.inline`.

The decorators only collect what is around a definition; the parser is imported when the first one is applied.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, FunctionType
from typing import Any

from pypto import ir
from pypto.language.inline_function import InlineFunction


def function(
    func: Callable[..., Any] | None = None,
    *,
    type: ir.FunctionType = ir.FunctionType.Opaque,
    level: ir.Level | None = None,
    role: ir.Role | None = None,
    attrs: dict[str, Any] | None = None,
    auto_scope: bool = True,
    strict_ssa: bool = False,
    external_source: str | os.PathLike[str] | None = None,
) -> Any:
    """Parse a function into an `ir.Function`; in a class body, mark it as a method for `@pl.program`.

    Args:
        func: the function, when used without parentheses.
        type: where the function runs.
        level: the machine level, when `type` does not imply it.
        role: the role at that level, when `type` does not imply it.
        attrs: deprecated; write `pl.func_attr({...})` in the body.
        auto_scope: whether the compiler places runtime scopes.
        strict_ssa: whether binding a name twice in a block is an error.
        external_source: path of a hand-written kernel; relative paths start at the calling file.

    Raises:
        ParserError: the definition is not a valid DSL function.
        ValueError: the external source does not exist.
    """
    from pypto.language.parser.function_attrs import external_source_path, normalise_decorator_attrs

    frame = sys._getframe(1)
    namespaces = _namespaces(frame)
    with _reported_at(frame):
        stored_attrs = normalise_decorator_attrs(attrs)
    source_path = (
        None if external_source is None else external_source_path(external_source, frame.f_code.co_filename)
    )

    def decorate(target: Callable[..., Any]) -> Any:
        if not isinstance(target, FunctionType):
            raise TypeError(f"@pl.function decorates functions, got {target.__class__.__name__}")
        if _is_method(target):
            return _mark_method(target, stored_attrs, source_path)
        from pypto.language.parser.closure import Closure
        from pypto.language.parser.entry import parse_python_function
        from pypto.language.parser.function_definitions import FunctionOptions

        options = FunctionOptions(type, level, role, stored_attrs, auto_scope, strict_ssa, source_path)
        return parse_python_function(target, Closure(*namespaces), options)

    return decorate if func is None else decorate(func)


def program(cls: Any = None, *, strict_ssa: bool = False) -> Any:
    """Parse a class of `@pl.function` methods into an `ir.Program`.

    Raises:
        ParserError: some method is not a valid DSL function, or there is none.
    """
    frame = sys._getframe(1)
    namespaces = _namespaces(frame)
    line, filename = frame.f_lineno, frame.f_code.co_filename

    def decorate(target: Any) -> Any:
        if not isinstance(target, type):
            raise TypeError(f"@pl.program decorates classes, got {type(target).__name__}")
        from pypto.language.parser.closure import Closure
        from pypto.language.parser.entry import parse_python_class

        return parse_python_class(target, Closure(*namespaces), line, filename, strict_ssa)

    return decorate if cls is None else decorate(cls)


def inline(func: Callable[..., Any]) -> InlineFunction:
    """Capture a helper whose body is expanded wherever it is called by name."""
    from pypto.language.parser.entry import capture_inline

    if not isinstance(func, FunctionType):
        raise TypeError(f"@pl.inline decorates functions, got {type(func).__name__}")
    frame = sys._getframe(1)
    return capture_inline(func, {**frame.f_globals, **frame.f_locals})


def _namespaces(frame: FrameType) -> tuple[dict[str, Any], ...]:
    """The names visible where a decorator stands, as they are now."""
    if frame.f_locals is frame.f_globals:
        return (frame.f_globals,)
    return (frame.f_globals, dict(frame.f_locals))


@contextmanager
def _reported_at(frame: FrameType) -> Iterator[None]:
    """Give errors about a decorator's arguments the line where the decorator stands."""
    from pypto.language.parser.diagnostics import ParserError, span_to_dict

    try:
        yield
    except ParserError as error:
        filename, line = frame.f_code.co_filename, frame.f_lineno
        error.span = span_to_dict(ir.Span(filename, line, 1, line, 1))
        error.source_lines = [text.rstrip("\n") for text in linecache.getlines(filename, frame.f_globals)]
        raise


def _is_method(target: FunctionType) -> bool:
    parent, _, _ = target.__qualname__.rpartition(".")
    return bool(parent) and not parent.endswith("<locals>")


def _mark_method(target: FunctionType, attrs: dict[str, Any], external_source: str | None) -> FunctionType:
    from pypto.language.parser.program_definitions import ATTRS_ATTRIBUTE, EXTERNAL_SOURCE_ATTRIBUTE

    if attrs:
        setattr(target, ATTRS_ATTRIBUTE, attrs)
    if external_source is not None:
        setattr(target, EXTERNAL_SOURCE_ATTRIBUTE, external_source)
    return target
