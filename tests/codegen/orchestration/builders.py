"""Small lowered programs, written with constructors, and the compiler that checks their text."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pypto
from pypto import DataType, ir
from pypto.codegen import OrchestrationResult, generate_orchestration

SPAN = ir.Span.unknown()
INDEX, INT32, INT64, FP32 = DataType.INDEX, DataType.INT32, DataType.INT64, DataType.FP32
TASK_ID = ir.ScalarType(DataType.TASK_ID)
Dir = ir.ArgDirection
PDir = ir.ParamDirection

D = {
    "i": Dir.Input,
    "o": Dir.OutputExisting,
    "O": Dir.Output,
    "x": Dir.InOut,
    "n": Dir.NoDep,
    "s": Dir.Scalar,
}
"""One letter per direction, so that a dispatch reads `"iio"`."""

INCLUDE = [
    Path(pypto.__file__).parent / "runtime" / "native" / "include",
    Path(pypto.__file__).parent / "backend" / "cpu" / "include",
]


def tensor(shape: Sequence[object] = (32, 32), dtype: DataType = FP32) -> ir.TensorType:
    return ir.TensorType(list(shape), dtype)


def var(name: str, type_: ir.Type | None = None) -> ir.Var:
    return ir.Var(name, type_ if type_ is not None else tensor(), SPAN)


def scalar(name: str, dtype: DataType = INT64) -> ir.Var:
    return ir.Var(name, ir.ScalarType(dtype), SPAN)


def const(value: int, dtype: DataType = INDEX) -> ir.ConstInt:
    return ir.ConstInt(value, dtype, SPAN)


def seq(*stmts: ir.Stmt) -> ir.Stmt:
    return ir.SeqStmts(list(stmts), SPAN)


def assign(target: ir.Var, value: ir.Expr) -> ir.AssignStmt:
    return ir.AssignStmt(target, value, SPAN)


def op(name: str, args: Sequence[ir.Expr], type_: ir.Type, **kwargs: object) -> ir.Call:
    return ir.Call(ir.Op(name), list(args), dict(kwargs), type_, SPAN)


def indices(*values: ir.Expr) -> ir.MakeTuple:
    return ir.MakeTuple(list(values), SPAN)


def create(name: str, shape: Sequence[ir.Expr], dtype: DataType = FP32, **kwargs: object) -> ir.AssignStmt:
    target = var(name, ir.TensorType(list(shape), dtype))
    return assign(target, op("tensor.create", [indices(*shape)], target.type, dtype=dtype, **kwargs))


def kernel(
    name: str,
    params: Sequence[tuple[ir.Var, PDir]],
    returns: Sequence[ir.Var] | None = None,
    kind: ir.FunctionType = ir.FunctionType.AIV,
    attrs: dict[str, object] | None = None,
) -> ir.Function:
    """A kernel without a body of interest; it returns its written parameters unless told otherwise."""
    if returns is None:
        returns = [p for p, d in params if d is not PDir.In]
    body = ir.ReturnStmt(list(returns), SPAN)
    return ir.Function(name, list(params), [r.type for r in returns], body, SPAN, kind, attrs=attrs)


def unary(name: str, kind: ir.FunctionType = ir.FunctionType.AIV, attrs: dict[str, object] | None = None):
    """A kernel `(x, out)`."""
    return kernel(name, [(var("x"), PDir.In), (var("out"), PDir.Out)], kind=kind, attrs=attrs)


def call(
    callee: ir.Function, args: Sequence[ir.Expr], directions: str, attrs: dict[str, object] | None = None
) -> ir.Call:
    types = callee.return_types
    result = types[0] if len(types) == 1 else ir.TupleType(types)
    marks = {"arg_directions": [D[c] for c in directions], **(attrs or {})}
    return ir.Call(ir.GlobalVar(callee.name), list(args), {}, marks, result, SPAN)


def submit(
    callee: ir.Function,
    args: Sequence[ir.Expr],
    directions: str,
    deps: Sequence[ir.Expr] = (),
    attrs: dict[str, object] | None = None,
    **fields: object,
) -> ir.Submit:
    result = ir.TupleType([*callee.return_types, TASK_ID])
    marks = {"arg_directions": [D[c] for c in directions], **(attrs or {})}
    return ir.Submit(ir.GlobalVar(callee.name), list(args), list(deps), {}, marks, result, SPAN, **fields)


def unpack(name: str, value: ir.Submit) -> tuple[list[ir.Stmt], list[ir.Var]]:
    """`tmp = submit; a = tmp[0]; ...`; the statements and the variables of the elements."""
    assert isinstance(value.type, ir.TupleType)
    whole = var(name, value.type)
    parts = [var(f"{name}_{k}", t) for k, t in enumerate(value.type.types)]
    items = [assign(part, ir.TupleGetItemExpr(whole, k, SPAN)) for k, part in enumerate(parts)]
    return [assign(whole, value), *items], parts


def auto(*stmts: ir.Stmt) -> ir.RuntimeScopeStmt:
    return ir.RuntimeScopeStmt(manual=False, body=seq(*stmts), span=SPAN)


def manual(*stmts: ir.Stmt) -> ir.RuntimeScopeStmt:
    return ir.RuntimeScopeStmt(manual=True, body=seq(*stmts), span=SPAN)


def loop(
    counter: ir.Var,
    bounds: Sequence[ir.Expr],
    carried: Sequence[tuple[ir.IterArg, ir.Var]],
    body: ir.Stmt,
    kind: ir.ForKind = ir.ForKind.Sequential,
    **attrs: object,
) -> ir.ForStmt:
    """A loop whose carries are new values unless `iter_arg_rebind_<k>` says otherwise."""
    start, stop, step = bounds
    marks = {f"iter_arg_rebind_{k}": True for k in range(len(carried))} | attrs
    args, results = [a for a, _ in carried], [r for _, r in carried]
    return ir.ForStmt(counter, start, stop, step, args, body, results, SPAN, kind, marks)


def upto(stop: int | ir.Expr) -> tuple[ir.Expr, ir.Expr, ir.Expr]:
    return const(0), const(stop) if isinstance(stop, int) else stop, const(1)


def yields(*values: ir.Expr) -> ir.YieldStmt:
    return ir.YieldStmt(list(values), SPAN)


def generate(
    params: Sequence[ir.Var | tuple[ir.Var, PDir]], body: ir.Stmt, *callees: ir.Function
) -> OrchestrationResult:
    """The text of an orchestration with these parameters and this body."""
    func = ir.Function(
        "orch", list(params), [], body, SPAN, ir.FunctionType.Orchestration, attrs={"auto_scope": False}
    )
    return generate_orchestration(ir.Program([func, *callees], "P", SPAN), func)


def body_of(result: OrchestrationResult) -> str:
    """The lines between the entry's braces, without the indentation of the function."""
    text = result.code.split("aicpu_orchestration_entry(const ChipTaskArgs& orch_args) {\n")[1]
    lines = text.split('\n}\n\n}  // extern "C"')[0].split("\n")
    return "\n".join(line.removeprefix("    ") for line in lines)


PENDING: list[tuple[str, str]] = []
"""Texts that wait to be compiled, each with the name of its test."""


def compile_text(code: str, place: Path) -> None:
    """Have `code` compiled with warnings as errors when the tests of this module are done; `place` names the
    test.
    """
    PENDING.append((place.name, code))


def compile_pending(directory: Path) -> None:
    """Compile all waiting texts at once, unused variables aside. An error names the test and the line of its
    text.
    """
    pieces = [
        "#include <stddef.h>",
        "#include <stdint.h>",
        "#include <stdio.h>",
        '#include "pto_orchestration_api.h"',
    ]
    for number, (name, code) in enumerate(PENDING):
        own = code.replace("aicpu_orchestration_entry", f"entry_{number}")
        own = own.replace("aicpu_orchestration_config", f"config_{number}")
        pieces += [f"namespace test_{number} {{", f'#line 1 "{name}"', own, "}"]
    PENDING.clear()
    source = directory / "orchestrations.cpp"
    source.write_text("\n".join(pieces) + "\n")
    compiler = shutil.which("g++") or shutil.which("clang++")
    assert compiler is not None
    flags = ["-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused"]
    command = [compiler, *flags, *(f"-I{path}" for path in INCLUDE), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
