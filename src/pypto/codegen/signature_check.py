"""What a function says about its results, compared with what it does.

The parser takes a return annotation as it is: callers that are parsed before the function need it. So whether
the returned values agree is looked at before a program is built to be run, and with it whether each output is
used at all: a kernel that only returns a tile leaves the memory that its caller reads as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pypto.core.dtype import DataType
from pypto.core.errors import located
from pypto.core.logging import log_warn
from pypto.ir.enums import FunctionType, ParamDirection
from pypto.ir.expr import Call, ConstInt, Expr, GlobalVar, Submit, Var
from pypto.ir.program import Function, Program
from pypto.ir.stmt import InlineStmt, ReturnStmt, SeqStmts, Stmt
from pypto.ir.types import ScalarType, ShapedType, TensorType, TileType, TupleType, Type, UnknownType
from pypto.ir.walk import exprs_of, walk, walk_stmts

__all__ = ["check_signatures"]


def check_signatures(program: Program) -> None:
    """Raise `ValueError` for the first result that contradicts its annotation; warn of outputs that no
    statement uses, and of results that no caller gets."""
    for function in program.functions_.values():
        if isinstance(function.body, InlineStmt) or "external_source" in function.attrs_:
            continue
        _check_returns(function)
        for output in _unused_outputs(function):
            log_warn(
                located(
                    f"Output parameter '{output}' of function '{function.name}' is never written. Store into "
                    f"it, as in {output} = pl.store(tile, offsets, {output}) or {output}[:, :] = tensor",
                    function.span,
                )
            )
    for function, name in _lost_results(program):
        log_warn(
            located(
                f"'{function.name}' returns '{name}', which is no output parameter, so a call returns None. "
                f"Add a parameter out: pl.Out[pl.Tensor[...]], write out[:] = {name} in the scope that "
                "computes it, and return out",
                function.span,
            )
        )


# --- results


def _check_returns(function: Function) -> None:
    declared = _flat([*function.return_types])
    for stmt in walk_stmts(function.body) if declared else ():
        if not isinstance(stmt, ReturnStmt):
            continue
        returned = _flat([value.type for value in stmt.value_])
        _check_count(function, declared, returned, stmt)
        for number, (want, have) in enumerate(zip(declared, returned, strict=False), start=1):
            if not _agree(want, have):
                which = f"result {number}" if len(declared) > 1 else "the result"
                raise ValueError(
                    located(
                        f"The annotation says that {which} of '{function.name}' is {want}, but it is {have}; "
                        "change the annotation, or return another value",
                        stmt.span,
                    )
                )


def _check_count(
    function: Function, declared: Sequence[Type], returned: Sequence[Type], stmt: ReturnStmt
) -> None:
    if len(declared) == len(returned) or any(isinstance(kind, UnknownType) for kind in returned):
        return
    raise ValueError(
        located(
            f"'{function.name}' is annotated to return {len(declared)} value(s), but returns "
            f"{len(returned)}; return one value per annotated type",
            stmt.span,
        )
    )


def _flat(types: Sequence[Type]) -> list[Type]:
    """`tuple[A, B]`, `pl.Tuple[A, B]` and a returned tuple all mean several results."""
    if len(types) == 1 and isinstance(types[0], TupleType):
        return list(types[0].types_)
    return list(types)


def _agree(want: Type, have: Type) -> bool:
    if isinstance(want, ScalarType) and isinstance(have, ScalarType):
        return _same_dtype(want.dtype, have.dtype)
    if not isinstance(want, ShapedType) or not isinstance(have, ShapedType):
        return True
    if isinstance(want, TensorType) and isinstance(have, TileType):
        return True  # the kernel is given an output of the annotated type, and the tile is stored there
    return want.dtype is have.dtype and _same_extents(want.shape_, have.shape_)


def _same_dtype(a: DataType, b: DataType) -> bool:
    return a is b or (DataType.INDEX in (a, b) and a.is_int() and b.is_int())


def _same_extents(want: Sequence[Expr], have: Sequence[Expr]) -> bool:
    """Whether the extents can be equal; symbolic ones are taken on trust."""
    return len(want) == len(have) and not any(
        isinstance(a, ConstInt) and isinstance(b, ConstInt) and a.value != b.value
        for a, b in zip(want, have, strict=True)
    )


# --- outputs


def _unused_outputs(function: Function) -> Iterator[str]:
    """The outputs that no statement mentions, other than to return them."""
    outputs = {
        param
        for param, direction in zip(function.params_, function.param_directions_, strict=True)
        if direction is ParamDirection.Out and isinstance(param.type, TensorType)
    }
    for stmt in walk_stmts(function.body) if outputs else ():
        for expr in exprs_of(stmt):
            if not (isinstance(stmt, ReturnStmt) and isinstance(expr, Var)):
                outputs.difference_update(node for node in walk(expr, once=True) if isinstance(node, Var))
    yield from (param.name_hint for param in function.params_ if param in outputs)


def _lost_results(program: Program) -> Iterator[tuple[Function, str]]:
    """The entry functions without outputs that return a tensor of their own, with its name."""
    candidates = [
        (function, value.name_hint)
        for function in program.functions_.values()
        if function.func_type in (FunctionType.Orchestration, FunctionType.Opaque)
        and all(direction is ParamDirection.In for direction in function.param_directions_)
        for stmt in _tail(function.body)
        if isinstance(stmt, ReturnStmt)
        for value in stmt.value_
        if isinstance(value, Var)
        and isinstance(value.type, TensorType)
        and value.name_hint not in {param.name_hint for param in function.params_}
    ]
    called = _called(program) if candidates else frozenset()
    yield from ((function, name) for function, name in candidates if function.name not in called)


def _tail(body: Stmt) -> Sequence[Stmt]:
    return body.stmts_[-1:] if isinstance(body, SeqStmts) else (body,)


def _called(program: Program) -> frozenset[str]:
    return frozenset(
        node.op.name
        for function in program.functions_.values()
        for stmt in walk_stmts(function.body)
        for expr in exprs_of(stmt)
        for node in walk(expr, once=True)
        if isinstance(node, (Call, Submit)) and isinstance(node.op, GlobalVar)
    )
