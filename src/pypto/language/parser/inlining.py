"""Expanding `@pl.inline` helpers: the helper's statements are parsed in the place of the call."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from pypto import ir
from pypto.ir.walk import vars_in
from pypto.language.inline_function import InlineFunction
from pypto.language.parser.comments import comments_between
from pypto.language.parser.diagnostics import ParserSyntaxError, ParserTypeError
from pypto.language.parser.function_parser import FunctionParser
from pypto.language.parser.inner_blocks import assigned_names, filled_names, rebound_in_inner_blocks
from pypto.language.parser.names import Alias
from pypto.language.parser.source import SourceText

_DEEPEST = 64


def expand_inline(p: FunctionParser, helper: InlineFunction, node: ast.Call) -> ir.Expr | None:
    """Parse the helper's body with its parameters standing for the arguments; returns what it returns.

    Names of the body are names of the caller. Where a variable that still has a reader would be assigned
    again, the body gets a variable of its own: for the results of other inline calls in the same statement,
    and for the arguments.
    """
    held, results = p.held, p.inline_results
    args = _arguments(p, helper, node)
    if p.inline_depth >= _DEEPEST:
        raise ParserSyntaxError(
            f"Inline function '{helper.name}' is nested too deeply",
            span=p.span(node),
            hint="An inline function must not call itself",
        )
    p.held = held | results
    try:
        with _reading(p, helper):
            _bind_parameters(p, helper, args)
            p.parse_statements(_without_docstring(helper.func_def.body))
            returned = p.inline_return
    finally:
        p.held = held
    p.inline_results = results if returned is None else results.union(vars_in(returned))
    return returned


@contextmanager
def _reading(p: FunctionParser, helper: InlineFunction) -> Iterator[None]:
    """Parse what the helper's source says; afterwards its names, without the parameters, are the caller's."""
    outer = (p.source, p.closure, p.comments, p.inline_return)
    p.source = SourceText(
        helper.source_file,
        "\n".join(helper.source_lines),
        ast.Module([helper.func_def], []),
        is_text=p.source.is_text,
    )
    p.closure = p.closure.derived(helper.closure_vars, p.closure.namespace)
    p.comments = comments_between(p.source, helper.func_def.lineno, helper.func_def.end_lineno or 0)
    p.inline_return = None
    p.inline_depth += 1
    p.names.push()
    try:
        yield
    finally:
        p.inline_depth -= 1
        p.source, p.closure, p.comments, p.inline_return = outer
        for name, bound in p.names.pop().items():
            if name not in helper.param_names:
                p.names.bind(name, bound)


def _bind_parameters(p: FunctionParser, helper: InlineFunction, args: list[ir.Expr]) -> None:
    """Let the parameters stand for the arguments, or for variables that start as them."""
    starting = _starting(p, helper, args)
    filled: set[str] = set()
    if not p.strict_ssa and any(isinstance(value, ir.IterArg) for value in args):
        filled = filled_names(helper.func_def.body, p.closure.lookup)
    span = p.span(helper.func_def)
    for name, value in zip(helper.param_names, args, strict=True):
        if name in starting:
            _start_variable(p, name, value, span)
        elif isinstance(value, ir.IterArg) and name in filled:
            p.names.bind(name, Alias(p.seed(value, span)))
        else:
            p.names.bind(name, Alias(value))


def _starting(p: FunctionParser, helper: InlineFunction, args: list[ir.Expr]) -> set[str]:
    """The parameters that are variables of their own, starting as their arguments."""
    if p.strict_ssa:
        return set()
    assigned, rebound = _assigned_and_rebound(helper.func_def)
    found = set(rebound)
    own = {name: p.names.binding(name) for name in assigned if name not in helper.param_names}
    for name, value in zip(helper.param_names, args, strict=True):
        if name in found or not own:
            continue
        variables = frozenset(vars_in(value))
        changing = {other for other, bound in own.items() if isinstance(bound, ir.Var) and bound in variables}
        if changing and _is_read_after_assignment(helper.func_def.body, name, changing):
            found.add(name)
    return found


@lru_cache(maxsize=1024)
def _assigned_and_rebound(helper: ast.FunctionDef) -> tuple[frozenset[str], frozenset[str]]:
    """The names that the body of a helper assigns, and those that its loops and branches rebind."""
    return frozenset(assigned_names(helper.body)), frozenset(rebound_in_inner_blocks(helper.body))


def _is_read_after_assignment(body: list[ast.stmt], name: str, assigned: set[str]) -> bool:
    """Whether the body reads `name` after it has assigned one of the other names."""
    is_assigned = False
    for statement in body:
        reads = any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(statement))
        assigns = not assigned.isdisjoint(assigned_names([statement]))
        if reads and (is_assigned or (assigns and isinstance(statement, ast.With))):
            return True
        is_assigned = is_assigned or assigns
    return False


def _start_variable(p: FunctionParser, name: str, value: ir.Expr, span: ir.Span) -> None:
    """Give a parameter a variable that starts as its argument.

    An assignment in a branch or a loop of the body happens or does not, or again and again, and one of a
    variable that the argument reads changes the argument; reading the name means the right value either way.
    """
    variable = p.program.variable(p.function_name, name, value.type, span)
    p.names.bind(name, variable)
    p.emit(ir.AssignStmt(variable, value, span))


def _arguments(p: FunctionParser, helper: InlineFunction, node: ast.Call) -> list[ir.Expr]:
    if node.keywords:
        raise ParserTypeError(
            f"Inline function '{helper.name}' does not accept keyword argument '{node.keywords[0].arg}'",
            span=p.span(node),
            hint="Pass all arguments by position",
        )
    expected = len(helper.param_names)
    if len(node.args) != expected:
        raise ParserTypeError(
            f"Inline function '{helper.name}' expects {expected} argument(s), got {len(node.args)}",
            span=p.span(node),
            hint=f"Call it as {helper.name}({', '.join(helper.param_names)})",
        )
    return [p.expr(argument) for argument in node.args]


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0]
    is_docstring = (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
    return body[1:] if is_docstring else body
