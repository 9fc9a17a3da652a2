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
from pypto.ir.enums import ParamDirection
from pypto.ir.expr import ConstInt, Expr, Var
from pypto.ir.program import Function, Program
from pypto.ir.stmt import InlineStmt, ReturnStmt
from pypto.ir.types import ScalarType, ShapedType, TensorType, TileType, TupleType, Type, UnknownType
from pypto.ir.walk import exprs_of, walk, walk_stmts

__all__ = ["check_signatures"]


def check_signatures(program: Program) -> None:
    """Raise `ValueError` for the first result that contradicts its annotation; warn of outputs that no
    statement uses."""
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
