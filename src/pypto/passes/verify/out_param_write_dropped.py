"""OutParamWriteDropped: `out = value` rebinds the name of an output parameter and writes nothing.

A value that derives from the parameter (a store into it, a call that takes it) is a write.
"""

from __future__ import annotations

from pypto import ir
from pypto.ir.walk import vars_in, walk_stmts
from pypto.passes.diagnostics import Diagnostic, warning
from pypto.passes.verify.codes import OUT_PARAM_WRITE_DROPPED


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return a warning per assignment that drops what it computes."""
    return [each for function in program.functions_.values() for each in _function(function)]


def _function(function: ir.Function) -> list[Diagnostic]:
    outputs = {
        param
        for param, direction in zip(function.params_, function.param_directions_, strict=True)
        if direction is not ir.ParamDirection.In and isinstance(param.type, ir.TensorType)
    }
    found: list[Diagnostic] = []
    # For each variable, the output parameters that its value derives from.
    derived: dict[ir.Var, set[ir.Var]] = {param: {param} for param in outputs}
    for stmt in walk_stmts(function.body) if outputs else ():
        if isinstance(stmt, ir.ForStmt | ir.WhileStmt):
            for iter_arg, result in zip(stmt.iter_args_, stmt.return_vars_, strict=False):
                sources = _sources(iter_arg.initValue, derived)
                derived[iter_arg] = sources
                derived[result] = sources
        if not isinstance(stmt, ir.AssignStmt):
            continue
        sources = _sources(stmt.value, derived)
        if stmt.var in outputs and stmt.var not in sources:
            name = stmt.var.name_hint
            message = (
                f"Assignment to output parameter '{name}' in function '{function.name}' only rebinds "
                f"the name; the value is not written. Use {name}[:] = <expr>"
            )
            found.append(warning("OutParamWriteDropped", OUT_PARAM_WRITE_DROPPED, message, stmt.span))
        elif sources and stmt.var not in outputs:
            derived.setdefault(stmt.var, set()).update(sources)
    return found


def _sources(value: ir.Expr, derived: dict[ir.Var, set[ir.Var]]) -> set[ir.Var]:
    sources: set[ir.Var] = set()
    for var in vars_in(value):
        sources |= derived.get(var, set())
    return sources
