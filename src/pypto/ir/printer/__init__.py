"""IR as program text: the canonical form of every construct.

The text of a program reads back, through the language's parser, as a structurally equal program. One file per
kind of thing: types, expressions, calls, attributes, statements, programs; names.py decides what each
variable is called. Time is linear in the length of the text, and depth of expressions costs no recursion.
"""

from __future__ import annotations

from typing import Any

import pypto.ir.printer.calls  # completes the table of expressions  # noqa: F401
from pypto.ir.expr import Expr
from pypto.ir.formatter import formatted, register_format_callback
from pypto.ir.printer.expressions import expr_text
from pypto.ir.printer.names import TypeSymbols, assign_names, body_vars
from pypto.ir.printer.program import print_function, print_program
from pypto.ir.printer.state import State
from pypto.ir.printer.statements import body_list, print_statements, print_stmt
from pypto.ir.printer.types import type_text
from pypto.ir.program import Function, Program
from pypto.ir.stmt import SeqStmts, Stmt
from pypto.ir.types import Type

__all__ = ["python_print", "python_print_type", "register_format_callback"]


def python_print(
    node: Any, prefix: str = "pl", concise: bool = False, format: bool = True, explicit_layout: bool = False
) -> str:
    """The text of a program, function, statement, expression or type.

    `prefix` names the language module, `concise` leaves out the types of assigned variables, `format` applies
    the registered formatter, `explicit_layout` spells the layout of every tile.
    """
    state = State(prefix, concise, explicit_layout)
    if isinstance(node, Type):
        text = type_text(state, node)
    elif isinstance(node, Expr):
        text = expr_text(state, node)
    elif isinstance(node, Program):
        print_program(state, node)
        text = "\n".join(state.lines)
    elif isinstance(node, Function):
        print_function(state, node)
        text = "\n".join(state.lines)
    elif isinstance(node, Stmt):
        _print_statement_root(state, node)
        text = "\n".join(state.lines)
    else:
        text = "<unsupported IRNode type>"
    return formatted(text) if format else text


def python_print_type(
    type: Type, prefix: str = "pl", format: bool = True, explicit_layout: bool = False
) -> str:
    """The text of a type. Raises `TypeError` for anything else."""
    if not isinstance(type, Type):
        raise TypeError(f"python_print_type expects a Type, got {type.__class__.__name__}")
    return python_print(type, prefix=prefix, format=format, explicit_layout=explicit_layout)


def _print_statement_root(state: State, stmt: Stmt) -> None:
    body = body_vars(stmt)
    symbols = TypeSymbols().of_variables((*body.defined, *body.used))
    names = assign_names((*body.defined, *body.used, *symbols.values()))
    state.enter_function(names, frozenset(id(var) for var in body.defined))
    if isinstance(stmt, SeqStmts):
        print_statements(state, body_list(stmt), "")
    else:
        print_stmt(state, stmt, "")
