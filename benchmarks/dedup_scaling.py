"""How the time of DeduplicateOutlinedKernels grows with the program, and how it bears adversarial input.

    python benchmarks/dedup_scaling.py [MAX_NODES]

Programs of 1,000 to MAX_NODES (default 1,000,000) nodes in kernels, half of the kernels duplicates. Printed
are microseconds and peak bytes per node; both should stay flat. Then inputs made to defeat the pass.
"""

from __future__ import annotations

import gc
import resource
import subprocess
import sys
import time
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from pypto import ir, passes

SPAN = ir.Span.unknown()
TENSOR = ir.TensorType([64, 64], ir.FP32)
STATEMENTS_PER_KERNEL = 25
NODES_PER_STATEMENT = 4  # statement, target, call, two operands of which one is new


def kernel(name: str, variant: int, statements: int = STATEMENTS_PER_KERNEL) -> ir.Function:
    """A kernel of additions; the constant `variant` in its last statement tells it from others."""
    x, out = ir.Var("x", TENSOR, SPAN), ir.Var("out", TENSOR, SPAN)
    body: list[ir.Stmt] = []
    value: ir.Expr = x
    for position in range(statements):
        factor = ir.ConstInt(variant if position == statements - 1 else position, ir.INT32, SPAN)
        result = ir.Var(f"v{position}", TENSOR, SPAN)
        body.append(ir.AssignStmt(result, ir.Call(ir.Op("tensor.adds"), [value, factor], TENSOR, SPAN), SPAN))
        value = result
    stored = ir.Var("stored", TENSOR, SPAN)
    offset = ir.MakeTuple([ir.ConstInt(0, ir.INDEX, SPAN)] * 2, SPAN)
    store = ir.Call(ir.Op("tensor.assemble"), [out, value, offset], TENSOR, SPAN)
    body += [ir.AssignStmt(stored, store, SPAN), ir.ReturnStmt([out], SPAN)]
    params = [(x, ir.ParamDirection.In), (out, ir.ParamDirection.Out)]
    return ir.Function(name, params, [TENSOR], ir.SeqStmts(body, SPAN), SPAN, ir.FunctionType.InCore)


def caller(names: list[str]) -> ir.Function:
    x = ir.Var("x", TENSOR, SPAN)
    body: list[ir.Stmt] = []
    value: ir.Expr = x
    for position, name in enumerate(names):
        buffer = ir.Var(f"b{position}", TENSOR, SPAN)
        create = ir.Call(ir.Op("tensor.create"), [ir.MakeTuple([], SPAN)], TENSOR, SPAN)
        result = ir.Var(f"r{position}", TENSOR, SPAN)
        call = ir.Call(ir.GlobalVar(name), [value, buffer], TENSOR, SPAN)
        body += [ir.AssignStmt(buffer, create, SPAN), ir.AssignStmt(result, call, SPAN)]
        value = result
    body.append(ir.ReturnStmt([value], SPAN))
    return ir.Function("main", [x], [TENSOR], ir.SeqStmts(body, SPAN), SPAN, ir.FunctionType.Orchestration)


def half_duplicates(nodes: int) -> ir.Program:
    count = max(2, nodes // (STATEMENTS_PER_KERNEL * NODES_PER_STATEMENT))
    names = [f"k{position:07d}" for position in range(count)]
    functions = [kernel(name, position // 2) for position, name in enumerate(names)]
    return ir.Program([*functions, caller(names)], "P", SPAN)


def count_nodes(program: ir.Program) -> int:
    from pypto.ir.walk import walk

    return sum(1 for function in program.functions_.values() for _ in walk(function, once=True))


def many_sites() -> ir.Program:
    return ir.Program([kernel("a", 1), kernel("b", 1), caller(["a", "b"] * 25_000)], "P", SPAN)


def shared_dag() -> ir.Program:
    """Two kernels with a scalar expression whose tree has 2**60 leaves."""

    def build(name: str) -> ir.Function:
        n = ir.Var("n", ir.ScalarType(ir.INT64), SPAN)
        value: ir.Expr = n
        for _ in range(60):
            value = ir.Add(value, value, ir.INT64, SPAN)
        return _scalar_kernel(name, n, value)

    return ir.Program([build("a"), build("b"), _scalar_caller(["a", "b"])], "P", SPAN)


def deep_chain() -> ir.Program:
    def build(name: str) -> ir.Function:
        n = ir.Var("n", ir.ScalarType(ir.INT64), SPAN)
        value: ir.Expr = n
        for _ in range(100_000):
            value = ir.Add(value, n, ir.INT64, SPAN)
        return _scalar_kernel(name, n, value)

    return ir.Program([build("a"), build("b"), _scalar_caller(["a", "b"])], "P", SPAN)


def late_differences() -> ir.Program:
    names = ["k" * 500 + f"{position:05d}" for position in range(1_000)]
    functions = [kernel(name, position) for position, name in enumerate(names)]
    return ir.Program([*functions, caller(names)], "P", SPAN)


def _scalar_kernel(name: str, n: ir.Var, value: ir.Expr) -> ir.Function:
    x, m = ir.Var("x", TENSOR, SPAN), ir.Var("m", n.type, SPAN)
    result = ir.Var("y", TENSOR, SPAN)
    body = [
        ir.AssignStmt(m, value, SPAN),
        ir.AssignStmt(result, ir.Call(ir.Op("tensor.adds"), [x, m], TENSOR, SPAN), SPAN),
        ir.ReturnStmt([result], SPAN),
    ]
    return ir.Function(name, [x, n], [TENSOR], ir.SeqStmts(body, SPAN), SPAN, ir.FunctionType.InCore)


def _scalar_caller(names: list[str]) -> ir.Function:
    x, n = ir.Var("x", TENSOR, SPAN), ir.Var("n", ir.ScalarType(ir.INT64), SPAN)
    body: list[ir.Stmt] = []
    value: ir.Expr = x
    for position, name in enumerate(names):
        result = ir.Var(f"r{position}", TENSOR, SPAN)
        body.append(ir.AssignStmt(result, ir.Call(ir.GlobalVar(name), [value, n], TENSOR, SPAN), SPAN))
        value = result
    body.append(ir.ReturnStmt([value], SPAN))
    return ir.Function("main", [x, n], [TENSOR], ir.SeqStmts(body, SPAN), SPAN, ir.FunctionType.Orchestration)


ADVERSARIES: dict[str, Callable[[], ir.Program]] = {
    "one kernel with 50,000 sites": many_sites,
    "shared expression, tree of 2**60": shared_dag,
    "expression 100,000 deep": deep_chain,
    "1,000 kernels whose names and bodies differ late": late_differences,
}


def measure(program: ir.Program) -> tuple[float, int]:
    """Best of three times in seconds, and the number of functions left."""
    best = float("inf")
    after = program
    for _ in range(3):
        gc.collect()
        started = time.perf_counter()
        after = passes.deduplicate_outlined_kernels()(program)
        best = min(best, time.perf_counter() - started)
    return best, len(after.functions_)


def measure_size(nodes: int) -> None:
    """One size, in a process of its own so that the peak memory is its own."""
    program = half_duplicates(nodes)
    counted = count_nodes(program)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, left = measure(program)
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    print(counted, len(program.functions_), left, seconds, peak)


def main() -> None:
    if len(sys.argv) > 2 and sys.argv[1] == "--size":
        measure_size(int(sys.argv[2]))
        return
    largest = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    table = Table("nodes", "functions", "left", "time", "µs per node", "peak bytes per node")
    size = 1_000
    while size <= largest:
        line = subprocess.run(
            [sys.executable, __file__, "--size", str(size)], capture_output=True, text=True, check=True
        ).stdout
        nodes, functions, left, seconds, peak = (float(field) for field in line.split())
        table.add_row(
            f"{nodes:,.0f}", f"{functions:,.0f}", f"{left:,.0f}", f"{seconds * 1e3:.1f} ms",
            f"{seconds / nodes * 1e6:.2f}", f"{peak / nodes:.0f}",
        )  # fmt: skip
        size *= 10
    Console().print(table)
    adversaries = Table("input", "functions left", "time")
    for name, build in ADVERSARIES.items():
        seconds, functions_left = measure(build())
        adversaries.add_row(name, str(functions_left), f"{seconds * 1e3:.1f} ms")
    Console().print(adversaries)


if __name__ == "__main__":
    main()
