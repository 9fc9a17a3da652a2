"""ReturnParamsExplicit: a kernel or wrapper that hands back a parameter returns that very parameter."""

from __future__ import annotations

from collections.abc import Iterator

from pypto import ir
from pypto.ir.walk import walk_stmts
from pypto.passes.diagnostics import Diagnostic, error
from pypto.passes.storage import NO_VIEWS, ProgramStorage

_RULE = "ReturnParamsExplicit"
_WRAPPERS = (ir.FunctionType.Group, ir.FunctionType.Spmd)


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the returned values that are parameters under another name."""
    storage = ProgramStorage(program, views=NO_VIEWS)
    return [
        each
        for function in program.functions_.values()
        if _is_concerned(function)
        for each in _function(function, storage)
    ]


def _is_concerned(function: ir.Function) -> bool:
    hands_back = ir.is_incore_type(function.func_type) or function.func_type in _WRAPPERS
    returns_tensor = any(isinstance(type_, ir.TensorType) for type_ in function.return_types_)
    return hands_back and returns_tensor and "external_source" not in function.attrs_


def _function(function: ir.Function, program: ProgramStorage) -> Iterator[Diagnostic]:
    returns = [stmt for stmt in walk_stmts(function.body) if isinstance(stmt, ir.ReturnStmt)]
    if not returns:
        message = f"Function '{function.name}' returns tensors but has no ReturnStmt"
        yield error(_RULE, 0, message, function.span)
        return
    storage = program.of(function)
    positions = {param: index for index, param in enumerate(function.params_)}
    for stmt in returns:
        for position, value in enumerate(stmt.value_):
            if not isinstance(value, ir.Var) or value in positions:
                continue
            root = storage.only_root(value) if isinstance(value.type, ir.TensorType) else None
            if root is not None and root in positions:
                message = (
                    f"Function '{function.name}' return position {position}: '{value.name_hint}' is "
                    f"parameter {positions[root]} '{root.name_hint}' and must reference the param directly"
                )
                yield error(_RULE, 0, message, stmt.span)
