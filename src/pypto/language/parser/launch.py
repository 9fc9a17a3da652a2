"""Arguments that every form of launch shares."""

from __future__ import annotations

import ast
import keyword as python_keywords

from pypto import ir
from pypto.language.parser.diagnostics import ParserSyntaxError
from pypto.language.parser.function_parser import FunctionParser


def bool_literal(p: FunctionParser, node: ast.expr, name: str) -> bool:
    """`True` or `False`, written out."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return node.value
    raise ParserSyntaxError(f"{name} must be a boolean literal", span=p.span(node), hint=f"Write {name}=True")


def name_hint_literal(p: FunctionParser, node: ast.expr) -> str:
    """A string literal that can be (part of) a function name."""
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        raise ParserSyntaxError(
            "'name_hint' argument must be a string literal", span=p.span(node), hint="Write name_hint='name'"
        )
    hint = node.value
    if hint and (not hint.isidentifier() or python_keywords.iskeyword(hint)):
        raise ParserSyntaxError(
            f"'name_hint' must be a valid non-keyword identifier, got {hint!r}",
            span=p.span(node),
            hint="Use letters, digits and underscores",
        )
    return hint


def parse_core_num(p: FunctionParser, node: ast.expr, owner: str) -> ir.Expr:
    """A block count: an integer scalar expression, positive if constant."""
    found = p.expr(node)
    kind = found.type
    if not (isinstance(kind, ir.ScalarType) and kind.dtype.is_int()):
        raise ParserSyntaxError(
            f"{owner}() core_num must be an integer expression, got {kind}",
            span=p.span(node),
            hint="Give the number of blocks as an int or an integer scalar",
        )
    if isinstance(found, ir.ConstInt) and found.value <= 0:
        raise ParserSyntaxError(
            f"{owner}() core_num must be a positive integer, got {found.value}",
            span=p.span(node),
            hint="It is the number of blocks to run",
        )
    return found
