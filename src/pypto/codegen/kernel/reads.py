"""Which arguments an operator really reads: scratch tiles that only a device needs are none of them."""

from __future__ import annotations

from collections.abc import Iterable

from pypto import ir
from pypto.ir.meaning import Elementwise, Move, Reduce, operands_used
from pypto.ir.op_registry import get_op_def

#: kind of move -> number of leading arguments that are read
_READ_BY_MOVE = {"transpose": 3, "gather_flat": 2, "gather_compare": 2}


def read_arguments(call: ir.Call) -> Iterable[ir.Expr]:
    """The arguments whose contents have an influence on the result."""
    definition = get_op_def(call.op.name)
    meaning = None if definition is None else definition.meaning
    if isinstance(meaning, Elementwise):
        used = operands_used(meaning.formula)
        first = next((i for i, arg in enumerate(call.args_) if isinstance(arg.type, ir.TileType)), 0)
        return [arg for i, arg in enumerate(call.args_) if i in used or i == first]
    if isinstance(meaning, Reduce):
        return call.args_[:1]
    if isinstance(meaning, Move):
        if meaning.kind == "mrgsort_lists":
            return call.args_[:-1]
        return call.args_[: _READ_BY_MOVE.get(meaning.kind, len(call.args_))]
    return call.args_


def read_expressions(value: ir.Expr) -> Iterable[ir.Expr]:
    """The expressions that evaluating the right side of a statement reads."""
    return read_arguments(value) if isinstance(value, ir.Call) else (value,)
