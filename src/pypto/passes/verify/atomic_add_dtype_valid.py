"""AtomicAddDtypeValid: the target adds atomically to elements of this type."""

from __future__ import annotations

from pypto import ir
from pypto.ir.walk import exprs_of, walk_stmts
from pypto.passes.diagnostics import Diagnostic, error
from pypto.passes.target import current_target

# Position of the destination of each operator that can add atomically.
_DESTINATIONS = {
    "tile.store": 2,
    "tensor.assemble": 0,
    "pld.tensor.put": 0,
    "pld.tile.put": 0,
    "pld.tile.remote_store": 1,
    "pld.tensor.remote_store": 1,
}
_ADD = int(ir.AtomicType.Add)


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the atomic additions to element types that the target cannot add; none without a target."""
    target = current_target()
    if target is None:
        return []
    found: list[Diagnostic] = []
    for name, function in program.functions_.items():
        for stmt in walk_stmts(function.body):
            for call in exprs_of(stmt):
                dtype = _atomic_add_dtype(call)
                if dtype is not None and dtype not in target.atomic_add_dtypes:
                    allowed = ", ".join(sorted(str(each) for each in target.atomic_add_dtypes))
                    message = (
                        f"atomic add to {dtype} in function '{name}' is not supported by backend "
                        f"{target.arch}, which adds {allowed}"
                    )
                    found.append(error("AtomicAddDtypeValid", 1, message, call.span))
    return found


def _atomic_add_dtype(expr: ir.Expr) -> ir.DataType | None:
    if not isinstance(expr, ir.Call) or expr.kwargs_.get("atomic") != _ADD:
        return None
    position = _DESTINATIONS.get(expr.op.name)
    if position is None or position >= len(expr.args_):
        return None
    destination = expr.args_[position].type
    return destination.dtype if isinstance(destination, ir.ShapedType) else None
