"""Calls of specialised functions as statements: `f(x, y)` where `f` writes `y`.

After the call only the result of `f` may be read as `y`. Where the body reads the name again, the statement
is therefore taken as `y = f(x, y)`; for that `f` has to return each output, and nothing else.
"""

from __future__ import annotations

import ast

from pypto import ir
from pypto.ir.return_lineage import ReturnLineage
from pypto.language.parser.assignments import let, let_each
from pypto.language.parser.function_parser import LOOP_KINDS, FunctionParser
from pypto.language.parser.type_checks import same_value_type


def name_outputs(p: FunctionParser, node: ast.Expr, value: ir.Expr) -> bool:
    """Emit a call with its results bound to the names of its outputs; False if it is not such a call."""
    if p.specialised is None or not isinstance(value, ir.Call) or not isinstance(value.op, ir.GlobalVar):
        return False
    callee = p.program.functions.get(value.op.name)
    outputs = None if callee is None else _output_names(p, callee, value)
    if not outputs or not any(_is_read_later(p, name, node) for name in outputs):
        return False
    span = p.span(node)
    if len(outputs) == 1:
        let(p, outputs[0], value, span, node)
    else:
        let_each(p, outputs, value, span, node)
    return True


def _output_names(p: FunctionParser, callee: ir.Function, call: ir.Call) -> list[str] | None:
    """The names of the arguments that the results are; None if a result is something else."""
    names = []
    kinds = call.type.types_ if isinstance(call.type, ir.TupleType) else (call.type,)
    returned = ReturnLineage(p.program.functions).returned_params(callee)
    if len(returned) != len(kinds):
        return None
    for index, kind in zip(returned, kinds, strict=True):
        if index is None or callee.param_directions_[index] is ir.ParamDirection.In:
            return None
        argument = call.args_[index]
        if not isinstance(argument, ir.Var) or p.names.lookup(argument.name_hint) is not argument:
            return None
        if not same_value_type(argument.type, kind):
            return None
        names.append(argument.name_hint)
    return names


def _is_read_later(p: FunctionParser, name: str, node: ast.Expr) -> bool:
    assert p.specialised is not None
    in_loop = any(frame.kind in LOOP_KINDS for frame in p.frames)
    return in_loop or p.specialised.reads_after(name, node)
