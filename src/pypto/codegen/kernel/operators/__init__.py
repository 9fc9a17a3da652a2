"""Rendering of operator calls, chosen by what an operator means rather than by what it is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pypto import ir
from pypto.codegen.kernel.emitter import Emitter
from pypto.codegen.kernel.operators.context import OpContext
from pypto.codegen.kernel.operators.elementwise import emit_elementwise, emit_partial
from pypto.codegen.kernel.operators.lanes import emit_together
from pypto.codegen.kernel.operators.moves import MOVES
from pypto.codegen.kernel.operators.permutations import PERMUTATIONS
from pypto.codegen.kernel.operators.products import emit_cast, emit_contraction, emit_reduce
from pypto.codegen.kernel.operators.queries import emit_query
from pypto.codegen.kernel.operators.windows import emit_remote
from pypto.core.span import Span
from pypto.ir.meaning import (
    Cast,
    Contraction,
    Elementwise,
    Move,
    Opaque,
    Partial,
    Query,
    Reduce,
    Remote,
    Together,
)
from pypto.ir.op_registry import get_op_def

__all__ = ["emit_operator"]


def _emit_move(context: OpContext, meaning: Move) -> None:
    emit = MOVES.get(meaning.kind) or PERMUTATIONS.get(meaning.kind)
    if emit is None:
        raise ValueError("it is not supported on the CPU yet")
    emit(context)


def _refuse(context: OpContext, meaning: Opaque) -> None:
    raise ValueError(f"it is not supported on the CPU: {meaning.reason}")


_RENDERERS: dict[type, Callable[[OpContext, Any], None]] = {
    Elementwise: emit_elementwise,
    Partial: emit_partial,
    Reduce: emit_reduce,
    Contraction: emit_contraction,
    Cast: emit_cast,
    Move: _emit_move,
    Query: emit_query,
    Together: emit_together,
    Remote: emit_remote,
    Opaque: _refuse,
}


def emit_operator(emitter: Emitter, call: ir.Call, result: ir.Var | None, span: Span) -> None:
    """Render one call; `result` is the variable it is assigned to.

    Raises:
        KernelError: the operator has no meaning on the CPU, or not for these operands.
    """
    name = call.op.name
    where = span if span.is_valid() else call.span
    with emitter.located(where, name):
        if isinstance(call.op, ir.GlobalVar):
            raise ValueError("a kernel cannot call a function")
        definition = get_op_def(name)
        if definition is None:
            raise ValueError("it is not a registered operator")
        context = OpContext(emitter, call, definition, result, where)
        _RENDERERS[type(definition.meaning)](context, definition.meaning)
