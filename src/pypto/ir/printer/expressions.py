"""Canonical text of expressions: constants, operators with as few parentheses as reading back needs, calls,
submits.

An expression is laid out by an explicit stack of pieces (text, or expressions still to be laid out), so that
depth costs no recursion and the text is built once, left to right.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable

from pypto.core.dtype import DataType
from pypto.core.errors import InternalError
from pypto.ir import expr as ir
from pypto.ir.expr import Expr
from pypto.ir.printer.literals import float_literal
from pypto.ir.printer.state import State

__all__ = ["Piece", "call_head", "expr_text", "op_name_text", "short_text"]

Piece = str | Expr  # what the layout stack holds
Layout = Callable[[State, "ir.Expr"], "list[Piece]"]

ATOM = 14

BINARY: dict[type[Expr], tuple[str, int]] = {
    ir.Or: ("or", 1),
    ir.Xor: ("xor", 2),
    ir.And: ("and", 3),
    ir.Eq: ("==", 5),
    ir.Ne: ("!=", 5),
    ir.Lt: ("<", 5),
    ir.Le: ("<=", 5),
    ir.Gt: (">", 5),
    ir.Ge: (">=", 5),
    ir.BitOr: ("|", 6),
    ir.BitXor: ("^", 7),
    ir.BitAnd: ("&", 8),
    ir.BitShiftLeft: ("<<", 9),
    ir.BitShiftRight: (">>", 9),
    ir.Add: ("+", 10),
    ir.Sub: ("-", 10),
    ir.Mul: ("*", 11),
    ir.FloatDiv: ("/", 11),
    ir.FloorDiv: ("//", 11),
    ir.FloorMod: ("%", 11),
    ir.Pow: ("**", 13),
}
UNARY: dict[type[Expr], tuple[str, int]] = {ir.Not: ("not ", 4), ir.Neg: ("-", 12), ir.BitNot: ("~", 12)}
COMPARISON = 5

PRECEDENCE: dict[type[Expr], int] = {
    **{cls: level for cls, (_, level) in BINARY.items()},
    **{cls: level for cls, (_, level) in UNARY.items()},
}


def expr_text(state: State, expr: Expr, typed: bool = False) -> str:
    """The text of `expr`; with `typed`, every number names its dtype."""
    text = short_text(state, expr, typed)
    if text is not None:
        return text
    out: list[str] = []
    stack: list[Piece] = [expr]
    while stack:
        piece = stack.pop()
        if isinstance(piece, str):
            out.append(piece)
            continue
        text = short_text(state, piece, typed)
        if text is not None:
            out.append(text)
            continue
        layout = LAYOUTS.get(type(piece))
        if layout is None:
            raise InternalError(f"expression {type(piece).__name__} has no text")
        pieces = layout(state, piece)
        pieces.reverse()
        stack += pieces
    return "".join(out)


def short_text(state: State, expr: Expr, typed: bool = False) -> str | None:
    """The text of a leaf, None for anything with operands."""
    cls = type(expr)
    if cls is ir.Var or cls is ir.IterArg:
        return state.names.get(id(expr)) or expr.name_hint  # type: ignore[attr-defined]
    leaf = LEAVES.get(cls)
    return leaf(state, expr, typed) if leaf is not None else None


def _const_int(state: State, const: ir.ConstInt, typed: bool) -> str:
    dtype = const.dtype
    if dtype is DataType.INDEX and not typed:
        return str(const.value)
    return f"{state.prefix}.const({const.value}, {state.dtypes[dtype]})"


def _const_float(state: State, const: ir.ConstFloat, typed: bool) -> str:
    text = float_literal(const.value)
    dtype = const.dtype
    if dtype is DataType.FP32 and not typed:
        return text
    return f"{state.prefix}.const({text}, {state.dtypes[dtype]})"


def _const_bool(_state: State, const: ir.ConstBool, _typed: bool) -> str:
    return "True" if const.value else "False"


def _variable(state: State, var: ir.Var, _typed: bool) -> str:
    return state.name(var)


LEAVES: dict[type[Expr], Callable[..., str]] = {
    ir.ConstInt: _const_int,
    ir.ConstFloat: _const_float,
    ir.ConstBool: _const_bool,
    ir.Var: _variable,
    ir.IterArg: _variable,
    ir.MemRef: _variable,
    ir.WindowBuffer: _variable,
}


def _binary(state: State, expr: ir.BinaryExpr) -> list[Piece]:
    symbol, level = BINARY[type(expr)]
    left, right = expr.left, expr.right
    right_assoc = isinstance(expr, ir.Pow)
    left_level, right_level = _level(left), _level(right)
    # A comparison beside a comparison would read as one of Python's chains,
    # a negative literal under ** as the negation of a power.
    wrap_left = (
        left_level < level
        or (left_level == level and (right_assoc or level == COMPARISON))
        or (right_assoc and _is_negative_literal(left))
    )
    wrap_right = right_level < level or (right_level == level and not right_assoc)
    left_piece, right_piece = _typed_operands(state, expr)
    pieces: list[Piece] = ["(", left_piece, ")"] if wrap_left else [left_piece]
    pieces.append(f" {symbol} ")
    pieces += ["(", right_piece, ")"] if wrap_right else [right_piece]
    return pieces


def _min_max(state: State, expr: ir.BinaryExpr) -> list[Piece]:
    name = "min" if isinstance(expr, ir.Min) else "max"
    left, right = _typed_operands(state, expr)
    return [f"{state.prefix}.{name}(", left, ", ", right, ")"]


def _unary(_state: State, expr: ir.UnaryExpr) -> list[Piece]:
    symbol, level = UNARY[type(expr)]
    operand = expr.operand
    if _level(operand) < level:
        return [symbol, "(", operand, ")"]
    return [symbol, operand]


def _abs(_state: State, expr: ir.Abs) -> list[Piece]:
    return ["abs(", expr.operand, ")"]


def _cast(state: State, expr: ir.Cast) -> list[Piece]:
    return [f"{state.prefix}.cast(", expr.operand, f", {state.dtype(expr.type.dtype)})"]  # type: ignore[attr-defined]


def _make_tuple(_state: State, expr: ir.MakeTuple) -> list[Piece]:
    pieces: list[Piece] = ["["]
    for element in expr.elements_:
        pieces += [element, ", "]
    if len(pieces) > 1:
        pieces.pop()
    pieces.append("]")
    return pieces


def _tuple_item(_state: State, expr: ir.TupleGetItemExpr) -> list[Piece]:
    if _level(expr.tuple) < ATOM:
        return ["(", expr.tuple, f")[{expr.index}]"]
    return [expr.tuple, f"[{expr.index}]"]


def _level(expr: Expr) -> int:
    return PRECEDENCE.get(type(expr), ATOM)


def _is_negative_literal(expr: Expr) -> bool:
    if isinstance(expr, ir.ConstInt):
        return expr.value < 0 and expr.dtype is DataType.INDEX
    if isinstance(expr, ir.ConstFloat):
        return float_literal(expr.value).startswith("-") and expr.dtype is DataType.FP32
    return False


def _typed_operands(state: State, expr: ir.BinaryExpr) -> tuple[Piece, Piece]:
    """The operands, with the dtype spelled on constants where bare ones would be folded when read back."""
    left, right = expr.left, expr.right
    if not _is_const_tree(state, expr):
        return left, right
    return (
        _const_int(state, left, True) if isinstance(left, ir.ConstInt) else left,
        _const_int(state, right, True) if isinstance(right, ir.ConstInt) else right,
    )


def _is_const_tree(state: State, root: ir.BinaryExpr) -> bool:
    """Whether every leaf of the tree of binary operations at `root` is an integer constant."""
    known = state.const_trees
    stack: list[Expr] = [root]
    while stack:
        node = stack[-1]
        if not isinstance(node, ir.BinaryExpr) or id(node) in known:
            stack.pop()
            continue
        operands = (node.left, node.right)
        pending = [o for o in operands if isinstance(o, ir.BinaryExpr) and id(o) not in known]
        if pending:
            stack += pending
            continue
        stack.pop()
        known[id(node)] = all(isinstance(o, ir.ConstInt) or known.get(id(o), False) for o in operands)
    return known[id(root)]


def op_name_text(state: State, name: str) -> str:
    """`pl.tile.add`; a last component that is a Python keyword gets an underscore."""
    last = name.rpartition(".")[2]
    if keyword.iskeyword(last):
        name += "_"
    return f"{state.prefix}.{name}" if "." in name and not name.startswith("pld.") else name


def call_head(state: State, op: ir.Op) -> str:
    """What stands before the parenthesis of a call outside special forms."""
    if isinstance(op, ir.GlobalVar):
        return f"self.{op.name}" if state.in_program else op.name
    return op_name_text(state, op.name)


LAYOUTS: dict[type[Expr], Callable[..., list[Piece]]] = {
    **dict.fromkeys(BINARY, _binary),
    **dict.fromkeys(UNARY, _unary),
    ir.Min: _min_max,
    ir.Max: _min_max,
    ir.Abs: _abs,
    ir.Cast: _cast,
    ir.MakeTuple: _make_tuple,
    ir.TupleGetItemExpr: _tuple_item,
}
