"""What decorators call: parse a Python function or class, and finish errors with their source lines."""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from types import FunctionType
from typing import Any

from pypto import ir
from pypto.compile_profiling import get_active_profiler
from pypto.language.inline_function import InlineFunction
from pypto.language.parser import calls, control_flow, expressions, scopes, statements, subscripts  # noqa: F401
from pypto.language.parser.closure import Closure
from pypto.language.parser.diagnostics import ParserError
from pypto.language.parser.function_definitions import FunctionOptions, define_function
from pypto.core.garbage import paused_gc
from pypto.language.parser.program_context import ProgramContext
from pypto.language.parser.program_definitions import define_program, remember_externals
from pypto.language.parser.source import find_class, find_function, load_source


def parse_python_function(function: FunctionType, closure: Closure, options: FunctionOptions) -> ir.Function:
    """The IR of a standalone function."""
    code = function.__code__
    with source_lines_attached():
        source, node = find_function(
            code.co_filename, function.__name__, code.co_firstlineno, function.__globals__
        )
        program = ProgramContext(strict_ssa=options.strict_ssa)
        with source_lines_attached(source.lines):
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
    profiler = get_active_profiler()
    stage = nullcontext() if profiler is None else profiler.stage("parse")
    with stage, paused_gc(), source_lines_attached():
        source, node = find_class(filename, cls.__name__, lines or [line], closure.namespace)
        with source_lines_attached(source.lines):
            return define_program(source, node, vars(cls), closure, strict_ssa)


def capture_inline(function: FunctionType, closure: Mapping[str, Any]) -> InlineFunction:
    """The captured form of an `@pl.inline` helper."""
    code = function.__code__
    with source_lines_attached():
        source, node = find_function(
            code.co_filename, function.__name__, code.co_firstlineno, function.__globals__
        )
    return InlineFunction(
        name=function.__name__,
        func_def=node,
        param_names=[argument.arg for argument in node.args.args],
        source_file=source.filename,
        source_lines=source.lines,
        closure_vars=dict(closure),
    )


@contextmanager
def source_lines_attached(fallback: list[str] | None = None) -> Iterator[None]:
    """Give errors the lines of the file they point into."""
    try:
        yield
    except ParserError as error:
        if error.source_lines is None:
            filename = error.span["filename"] if error.span is not None else None
            known = load_source(filename) if filename else None
            lines = known.lines if known is not None else linecache.getlines(filename or "")
            error.source_lines = [line.rstrip("\n") for line in lines] or fallback
        raise
