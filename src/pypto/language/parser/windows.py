"""Rules about where distributed window buffers may be created."""

from __future__ import annotations

import ast
from typing import NoReturn

from pypto import ir
from pypto.language.parser.diagnostics import ParserSyntaxError
from pypto.language.parser.function_parser import FunctionParser
from pypto.language.parser.op_calls import OpFunction, find_op, parse_op_call
from pypto.language.parser.slots import dotted_name, last_name

_SPELLINGS = ("pld.alloc_window_buffer", "pld.tensor.alloc_window_buffer")


def is_window_buffer_call(node: ast.expr | None) -> bool:
    """Whether an expression allocates a window buffer."""
    return (
        isinstance(node, ast.Call)
        and last_name(node.func) == "alloc_window_buffer"
        and dotted_name(node.func) in _SPELLINGS
    )


def reject_misplaced_window_buffer(p: FunctionParser, node: ast.Call) -> NoReturn:
    """A window buffer takes its name from the variable it is assigned to."""
    raise ParserSyntaxError(
        "pld.alloc_window_buffer(...) must appear as the RHS of a simple assignment",
        span=p.span(node),
        hint="Write: buf = pld.alloc_window_buffer(size)",
    )


def check_host_only(p: FunctionParser, node: ast.Call, name: str) -> None:
    """Raise `ParserSyntaxError` unless the call stands in host orchestration code."""
    on_device = any(frame.incore or frame.kind == "spmd" for frame in p.frames)
    if p.level is not ir.Level.HOST or on_device:
        place = ", not inside an InCore or Spmd scope" if on_device else ""
        raise ParserSyntaxError(
            f"pld.{name}(...) can only be called in HOST orchestration context{place}",
            span=p.span(node),
            hint="Use it in a function with level=pl.Level.HOST, outside kernels",
        )


def parse_window_buffer(p: FunctionParser, node: ast.Call, name: str) -> ir.Expr:
    """The allocation of the buffer called `name`."""
    check_host_only(p, node, "alloc_window_buffer")
    if any(keyword.arg == "name" for keyword in node.keywords):
        raise ParserSyntaxError(
            "pld.alloc_window_buffer: the 'name' kwarg cannot be passed explicitly",
            span=p.span(node),
            hint="The buffer takes the name of the variable it is assigned to",
        )
    if name in p.program.window_buffers:
        raise ParserSyntaxError(
            f"Window buffer '{name}' is already declared in this program",
            span=p.span(node),
            hint="Choose another name",
        )
    p.program.window_buffers.add(name)
    op = find_op(p, node, dotted_name(node.func))
    named = OpFunction(op.module, op.name, lambda *args, **kwargs: op.call(*args, name=name, **kwargs))
    return parse_op_call(p, node, named)
