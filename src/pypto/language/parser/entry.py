"""What decorators call: parse a Python function or class, and finish errors with their source lines."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from types import FunctionType
from typing import Any

from pypto import ir
from pypto.compile_profiling import get_active_profiler
from pypto.core.garbage import paused_gc
from pypto.language.inline_function import InlineFunction
from pypto.language.parser import calls, control_flow, expressions, scopes, statements, subscripts  # noqa: F401
from pypto.language.parser.closure import Closure
from pypto.language.parser.diagnostics import ParserError, UnsupportedFeatureError
from pypto.language.parser.function_definitions import FunctionOptions, define_function, ordinary_parameters
from pypto.language.parser.program_context import ProgramContext
from pypto.language.parser.program_definitions import (
    MethodValues,
    define_program,
    remember_externals,
    values_of_method,
)
from pypto.language.parser.source import SourceText, find_class, find_function, load_source


def parse_python_function(function: FunctionType, closure: Closure, options: FunctionOptions) -> ir.Function:
    """The IR of a standalone function."""
    with source_lines_attached():
        source, node = _definition(function)
        with source_lines_attached(source.lines):
            return parse_function_definition(source, node, closure, options)


def _definition(function: FunctionType) -> tuple[SourceText, ast.FunctionDef]:
    """The source of a decorated function."""
    code = function.__code__
    if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        line = code.co_firstlineno
        raise UnsupportedFeatureError(
            "Unsupported statement type: AsyncFunctionDef",
            span=ir.Span(code.co_filename, line, 1, line, 1),
            hint=f"Write def {function.__name__}(...): tasks run asynchronously without it",
        )
    return find_function(code.co_filename, function.__name__, code.co_firstlineno, function.__globals__)


def parse_function_definition(
    source: SourceText, node: ast.FunctionDef, closure: Closure, options: FunctionOptions
) -> ir.Function:
    """The IR of the definition of a standalone function."""
    program = ProgramContext(strict_ssa=options.strict_ssa)
    parsed = define_function(source, node, closure, program, options)
    remember_externals(parsed, program.externals)
    return parsed


def parse_python_class(cls: type, closure: Closure, line: int, filename: str, strict_ssa: bool) -> ir.Program:
    """The IR of a class of methods; `line` is where its decorator was applied."""
    own = f"{cls.__qualname__}."  # a class may also hold functions that were defined elsewhere
    members = [member for member in vars(cls).values() if isinstance(member, FunctionType)]
    functions = [member for member in members if member.__qualname__.startswith(own)]
    lines = [function.__code__.co_firstlineno for function in functions]
    if functions:
        filename = functions[0].__code__.co_filename
    values = {member.__name__: values_of_method(member) for member in members}
    with paused_gc(), source_lines_attached():
        source, node = find_class(filename, cls.__name__, lines or [line], closure.namespace)
        with source_lines_attached(source.lines):
            return parse_class_definition(source, node, values, closure, strict_ssa=strict_ssa)


def parse_class_definition(
    source: SourceText,
    node: ast.ClassDef,
    values: Mapping[str, MethodValues],
    closure: Closure,
    *,
    strict_ssa: bool,
) -> ir.Program:
    """The IR of the definition of a class of methods."""
    profiler = get_active_profiler()
    with nullcontext() if profiler is None else profiler.stage("parse"):
        return define_program(source, node, values, closure, strict_ssa)


def capture_inline(function: FunctionType, closure: Mapping[str, Any]) -> InlineFunction:
    """The captured form of an `@pl.inline` helper."""
    with source_lines_attached():
        source, node = _definition(function)
        parameters = ordinary_parameters(source, node)
    return InlineFunction(
        name=function.__name__,
        func_def=node,
        param_names=[parameter.arg for parameter in parameters],
        source_file=source.filename,
        source_lines=source.lines,
        closure_vars=dict(closure),
    )


@contextmanager
def source_lines_attached(fallback: list[str] | None = None, of: str | None = None) -> Iterator[None]:
    """Give errors the lines of the file they point into; `fallback` are those of the file `of`."""
    try:
        yield
    except ParserError as error:
        filename = error.span["filename"] if error.span is not None else None
        if error.source_lines is None and fallback is not None and filename in (None, of):
            error.source_lines = _lines_of(fallback)
        if error.source_lines is None:
            known = load_source(filename) if filename else None
            lines = known.lines if known is not None else linecache.getlines(filename or "")
            error.source_lines = _lines_of([line.rstrip("\n") for line in lines]) or fallback
        raise


def _lines_of(split: list[str]) -> list[str]:
    """The lines of a text that was split at its line ends; the last one starts no line."""
    return split if not split or split[-1] else split[:-1]
