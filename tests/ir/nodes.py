"""Short ways to make nodes for the tests of this room."""

from __future__ import annotations

from pypto import ir

S = ir.Span.unknown()


def var(name: str = "x", dtype: ir.DataType = ir.INT64) -> ir.Var:
    return ir.Var(name, ir.ScalarType(dtype), S)


def tensor(*shape: object, dtype: ir.DataType = ir.FP32, name: str = "t") -> ir.Var:
    return ir.Var(name, ir.TensorType(list(shape), dtype), S)


def const(value: int, dtype: ir.DataType = ir.INDEX) -> ir.ConstInt:
    return ir.ConstInt(value, dtype, S)


def call(name: str, *args: ir.Expr, type: ir.Type | None = None, **attrs: object) -> ir.Call:
    return ir.Call(ir.Op(name), list(args), {}, attrs, type or ir.UnknownType(), S)


def seq(*stmts: ir.Stmt) -> ir.SeqStmts:
    return ir.SeqStmts(list(stmts), S)


def assign(target: ir.Var, value: ir.Expr) -> ir.AssignStmt:
    return ir.AssignStmt(target, value, S)


def function(params: list, *stmts: ir.Stmt, name: str = "f", **options: object) -> ir.Function:
    return ir.Function(name, params, [], seq(*stmts), S, **options)


def loop(body: ir.Stmt, index: ir.Var | None = None, **options: object) -> ir.ForStmt:
    return ir.ForStmt(index or var("i", ir.INDEX), const(0), const(4), const(1), [], body, [], S, **options)
