"""Simple statements: return, expression statements, pass, break and continue."""

from __future__ import annotations

import ast
from collections.abc import Callable

from pypto import ir
from pypto.language.inline_function import InlineFunction
from pypto.language.parser.bare_calls import name_outputs
from pypto.language.parser.compile_time import parse_dump_tag, parse_static_assert, parse_static_print
from pypto.language.parser.diagnostics import InvalidOperationError, ParserSyntaxError
from pypto.language.parser.function_parser import LOOP_KINDS, FunctionParser, statement
from pypto.language.parser.inlining import expand_inline
from pypto.language.parser.slots import dotted_name, last_name
from pypto.language.parser.yield_targets import is_yield
from pypto.language.parser.yields import parse_yield_statement

DirectiveHandler = Callable[[FunctionParser, ast.Expr, ast.Call], None]


@statement(ast.Return)
def parse_return(p: FunctionParser, node: ast.Return) -> None:
    """`return`, `return a`, `return a, b`. In an inline helper it records the result."""
    value = node.value
    if p.inline_depth:
        p.inline_return = None if value is None else p.expr(value)
        p.hold_comments(node)
        return
    if value is None:
        results: list[ir.Expr] = []
    elif isinstance(value, ast.Tuple):
        results = [p.expr(element) for element in value.elts]
    else:
        results = [p.expr(value)]
    p.emit_commented(ir.ReturnStmt(results, p.span(node)), node)


@statement(ast.Expr)
def parse_expression_statement(p: FunctionParser, node: ast.Expr) -> None:
    """An expression for its effect, a directive, or a string that is comment text."""
    value = node.value
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        p.hold_docstring(value.value, node)
        return
    if isinstance(value, ast.Call):
        directive = _DIRECTIVES.get(_directive_name(value))
        if directive is not None:
            directive(p, node, value)
            return
        if is_yield(value):
            parse_yield_statement(p, node, value)
            return
        if isinstance(value.func, ast.Name):
            callee = p.closure.lookup(value.func.id)
            if isinstance(callee, InlineFunction):
                _expand_as_statement(p, node, value, callee)
                return
    parsed = p.expr(value)
    if not name_outputs(p, node, parsed):
        p.emit_commented(ir.EvalStmt(parsed, p.span(node)), node)


def _directive_name(call: ast.Call) -> str:
    leaf = last_name(call.func) or ""
    if leaf in _BARE_DIRECTIVES:
        return leaf
    return dotted_name(call.func) or ""


def _expand_as_statement(p: FunctionParser, node: ast.Expr, call: ast.Call, helper: InlineFunction) -> None:
    value = expand_inline(p, helper, call)
    if value is not None:
        p.emit_commented(ir.EvalStmt(value, p.span(node)), node)


def _misplaced_func_attr(p: FunctionParser, node: ast.Expr, call: ast.Call) -> None:
    raise ParserSyntaxError(
        "pl.func_attr() must appear before every other statement",
        span=p.span(node),
        hint="Move it to the start of the function body",
    )


_BARE_DIRECTIVES = frozenset({"static_print", "static_assert"})
_DIRECTIVES: dict[str, DirectiveHandler] = {
    "static_print": parse_static_print,
    "static_assert": parse_static_assert,
    "pl.dump_tag": parse_dump_tag,
    "pl.func_attr": _misplaced_func_attr,
}


@statement(ast.Pass)
def parse_pass(p: FunctionParser, node: ast.Pass) -> None:
    """Nothing."""
    p.hold_comments(node)


@statement(ast.Break)
def parse_break(p: FunctionParser, node: ast.Break) -> None:
    """Leave the innermost loop."""
    _check_leaves_loop(p, node, "break")
    p.emit_commented(ir.BreakStmt(p.span(node)), node)


@statement(ast.Continue)
def parse_continue(p: FunctionParser, node: ast.Continue) -> None:
    """Go on with the next iteration of the innermost loop."""
    _check_leaves_loop(p, node, "continue")
    p.emit_commented(ir.ContinueStmt(p.span(node)), node)


_NO_BREAK = {"parallel": "parallel loops", "unroll": "unrolled loops"}


def _check_leaves_loop(p: FunctionParser, node: ast.stmt, word: str) -> None:
    for frame in reversed(p.frames):
        if frame.kind == "split_aiv":
            raise InvalidOperationError(
                f"'{word}' is not supported inside a 'for ... in pl.split_aiv(...)' body",
                span=p.span(node),
                hint="A pl.split_aiv body runs once per lane; it is no loop",
            )
        if frame.kind in LOOP_KINDS:
            if frame.kind in _NO_BREAK:
                raise InvalidOperationError(
                    f"'{word}' is not supported in {_NO_BREAK[frame.kind]}",
                    span=p.span(node),
                    hint="Use pl.range() for a loop that may end early",
                )
            return
    raise InvalidOperationError(
        f"'{word}' outside loop",
        span=p.span(node),
        hint="It ends or continues the innermost pl.range, pl.pipeline or while loop",
    )
