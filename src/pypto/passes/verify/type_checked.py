"""TypeCheck: scalar headers, carried values of one type, valid shapes inside their shapes."""

from __future__ import annotations

from collections.abc import Iterator

from pypto import ir
from pypto.ir.walk import walk_stmts
from pypto.passes.diagnostics import Diagnostic, error
from pypto.passes.verify.codes import TypeCheckErrorType
from pypto.passes.verify.type_comparison import compare_types
from pypto.passes.verify.valid_shapes import check_valid_shapes

RULE = "TypeCheck"
_E = TypeCheckErrorType


def verify(program: ir.Program) -> list[Diagnostic]:
    """Return the type errors."""
    found: list[Diagnostic] = []
    for function in program.functions_.values():
        for stmt in walk_stmts(function.body):
            if isinstance(stmt, ir.ForStmt | ir.WhileStmt):
                found += _header(stmt)
                found += _loop(stmt)
            elif isinstance(stmt, ir.IfStmt):
                found += _header(stmt)
                found += _branches(stmt)
        found += check_valid_shapes(function, RULE)
    return found


def _error(kind: TypeCheckErrorType, message: str, span: ir.Span) -> Diagnostic:
    return error(RULE, kind.value, message, span)


def _header(stmt: ir.ForStmt | ir.WhileStmt | ir.IfStmt) -> Iterator[Diagnostic]:
    if isinstance(stmt, ir.ForStmt):
        for name, bound in (("start", stmt.start), ("stop", stmt.stop), ("step", stmt.step)):
            if not isinstance(bound.type, ir.ScalarType):
                got = type(bound.type).__name__
                message = f"ForStmt {name} must be ScalarType, but got {got}"
                yield _error(_E.FOR_RANGE_MUST_BE_SCALAR, message, stmt.span)
        return
    kind = type(stmt).__name__
    type_ = stmt.condition.type
    if not isinstance(type_, ir.ScalarType):
        message = f"{kind} condition must be ScalarType, but got {type(type_).__name__}"
        yield _error(_E.IF_CONDITION_MUST_BE_SCALAR, message, stmt.span)
    elif type_.dtype != ir.DataType.BOOL:
        message = f"{kind} condition dtype must be BOOL, but got {type_.dtype}"
        yield _error(_E.CONDITION_MUST_BE_BOOL, message, stmt.span)


def _loop(loop: ir.ForStmt | ir.WhileStmt) -> Iterator[Diagnostic]:
    last = ir.get_last_yield_stmt(loop.body)
    if last is None:
        return
    kind = type(loop).__name__
    sizes = (len(loop.iter_args_), len(last.value_), len(loop.return_vars_))
    if len(set(sizes)) != 1:
        message = f"{kind} has {sizes[0]} iter_args, {sizes[1]} yielded values and {sizes[2]} return_vars"
        yield _error(_E.SIZE_MISMATCH, message, loop.span)
        return
    slots = zip(loop.iter_args_, last.value_, loop.return_vars_, strict=True)
    for index, (iter_arg, value, result) in enumerate(slots):
        pairs = (
            (f"{kind} initValue[{index}] and iter_arg[{index}]", iter_arg.initValue, iter_arg),
            (f"{kind} iter_arg[{index}] and yield[{index}]", iter_arg, value),
            (f"{kind} yield[{index}] and return_var[{index}]", value, result),
        )
        yield from _compare(pairs, loop.span)


def _branches(stmt: ir.IfStmt) -> Iterator[Diagnostic]:
    if not stmt.return_vars_ or stmt.else_body is None:
        return
    then_yield = ir.get_last_yield_stmt(stmt.then_body)
    else_yield = ir.get_last_yield_stmt(stmt.else_body)
    if then_yield is None or else_yield is None:
        return
    sizes = (len(then_yield.value_), len(else_yield.value_), len(stmt.return_vars_))
    if len(set(sizes)) != 1:
        message = f"IfStmt yields {sizes[0]} and {sizes[1]} values for {sizes[2]} return_vars"
        yield _error(_E.SIZE_MISMATCH, message, stmt.span)
        return
    slots = zip(then_yield.value_, else_yield.value_, stmt.return_vars_, strict=True)
    for index, (then_value, else_value, result) in enumerate(slots):
        pairs = (
            (f"IfStmt then-yield[{index}] and else-yield[{index}]", then_value, else_value),
            (f"IfStmt then-yield[{index}] and return_var[{index}]", then_value, result),
        )
        yield from _compare(pairs, stmt.span)


def _compare(pairs: tuple[tuple[str, ir.Expr, ir.Expr], ...], span: ir.Span) -> Iterator[Diagnostic]:
    for place, left, right in pairs:
        mismatch = compare_types(left.type, right.type, place)
        if mismatch is not None:
            yield _error(mismatch.kind, mismatch.message, span)
