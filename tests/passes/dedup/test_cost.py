"""Budgets, and inputs made to defeat the pass: deep, shared, colliding, with many calls."""

from __future__ import annotations

import pytest

from pypto import ir, passes
from pypto.passes.dedup import call_shape_proof, sharing
from pypto.passes.dedup.call_shape_proof import CallShapeProver
from pypto.passes.dedup.numbering import Numbering, StructureTable
from pypto.passes.dedup.projection import Projector
from pypto.passes.dedup.reference_index import index_references
from pypto.passes.dedup.sharing import ProjectedUnit, Sharing, find_sharing
from pypto.passes.dedup.units import find_units
from tests.passes.dedup.programs import dedup, kernels, reason, records
from tests.passes.dedup.test_dynamic_shapes import call, const, kernel, program_of, symbol, tensor
from tests.work import lines_run

SPAN = ir.Span.unknown()
FP32, INDEX = ir.DataType.FP32, ir.DataType.INDEX
TENSOR = ir.TensorType([64], FP32)


def constant_kernel(name: str, value: int, statements: int = 1) -> ir.Function:
    x = ir.Var("x", TENSOR, SPAN)
    body: list[ir.Stmt] = []
    current: ir.Var = x
    for _ in range(statements):
        fresh = ir.Var("y", TENSOR, SPAN)
        body.append(
            ir.AssignStmt(fresh, ir.Call(ir.Op("tensor.adds"), [current, const(value)], TENSOR, SPAN), SPAN)
        )
        current = fresh
    body.append(ir.ReturnStmt([current], SPAN))
    return ir.Function(name, [x], [TENSOR], ir.SeqStmts(body, SPAN), SPAN, ir.FunctionType.InCore)


def called_once(functions: list[ir.Function]) -> ir.Program:
    return program_of(functions, [call(function.name, [TENSOR], TENSOR) for function in functions])


def share(source: ir.Program, *, digest: object = None, budget: int | None = None) -> Sharing:
    index = index_references(source)
    table = StructureTable()
    projector = Projector(table, source.functions_)
    units = [ProjectedUnit(unit, projector.project(unit)) for unit in find_units(source, index).candidates]
    prover = CallShapeProver(
        Numbering(table, source.functions_, is_open=True), index.weight if budget is None else budget
    )
    if digest is None:
        return find_sharing(units, index, prover)
    return find_sharing(units, index, prover, digest)  # type: ignore[arg-type]


def lines_of_dedup(source: ir.Program, left: list[str]) -> int:
    """The work of the pass on a program of which it leaves these kernels."""
    results: list[ir.Program] = []
    count = lines_run(lambda: results.append(passes.deduplicate_outlined_kernels()(source)))
    assert kernels(results[0]) == left
    return count


# ---- collisions


def test_units_whose_hashes_collide_are_compared_exactly():
    source = called_once([constant_kernel(f"k{n}", n % 3) for n in range(6)])
    result = share(source, digest=lambda projection: 0)
    assert {name: unit.name for name, unit in result.canonical.items()} == {
        "k3": "k0",
        "k4": "k1",
        "k5": "k2",
    }


def test_a_bucket_keeps_at_most_eight_representatives():
    units = [constant_kernel(f"k{n}", n) for n in range(9)]
    result = share(called_once([*units, constant_kernel("z", 8)]), digest=lambda projection: 0)
    assert result.kept["k7"].reason.value == "budget"
    assert result.kept["k8"].reason.value == "bucket_full"
    assert result.kept["z"].reason.value == "bucket_full", "its twin is no representative"


def test_comparisons_of_one_unit_are_charged_to_its_budget():
    """A comparison of equal weights costs two of eight weights: the fifth is out of reach."""
    units = [constant_kernel(f"k{n}", n) for n in range(5)]
    twin = constant_kernel("z", 4)
    result = share(called_once([*units, twin]), digest=lambda projection: 0)
    assert result.kept["z"].reason.value == "budget"
    assert "z" not in result.canonical


def test_colliding_units_stay_linear():
    def work(count: int) -> int:
        source = called_once([constant_kernel(f"k{n:05}", n) for n in range(count)])
        return lines_run(lambda: share(source, digest=lambda projection: 0))

    assert work(400) < 4 * 1.1 * work(100)


# ---- budgets of the proof


def two_symbols(sites: int) -> ir.Program:
    functions = [kernel("a", [tensor(symbol("M"))]), kernel("b", [tensor(symbol("N"))])]
    calls = [call("a", [tensor(64)], tensor(64))]
    calls += [call("b", [tensor(64)], tensor(64)) for _ in range(sites)]
    return program_of(functions, calls)


def test_the_budget_of_all_proofs_is_the_weight_of_the_program():
    source = two_symbols(50)
    assert share(source).canonical["b"].name == "a"
    assert share(source, budget=40).kept["b"].reason.value == "budget"


def test_one_call_takes_a_bounded_number_of_steps(monkeypatch: pytest.MonkeyPatch):
    assert call_shape_proof.MAX_STEPS_PER_SITE == 65_536
    source = two_symbols(1)
    monkeypatch.setattr(call_shape_proof, "MAX_STEPS_PER_SITE", 1)
    assert reason(source, "b") == "budget"


def test_limits_are_those_of_the_contract():
    assert (call_shape_proof.MAX_SIGNATURE_ENTRIES, call_shape_proof.MAX_EXTENT_NODES) == (256, 256)
    assert (sharing.MAX_REPRESENTATIVES, sharing.BUDGET_FACTOR) == (8, 8)


def test_fifty_thousand_calls_are_proved():
    source = two_symbols(50_000)
    assert kernels(passes.deduplicate_outlined_kernels()(source)) == ["a"]


def test_a_large_expression_at_many_calls_is_numbered_once():
    """Calls pass an extent of many nodes; the two symbols of the signature must agree on it."""

    def work(nodes: int, sites: int) -> int:
        rows: ir.Expr = symbol("rows")
        for _ in range(nodes):
            rows = ir.Add(rows, const(1), INDEX, SPAN)
        square = tensor(rows, rows)
        functions = [
            kernel(name, [tensor(free, free)]) for name, free in (("a", symbol("M")), ("b", symbol("N")))
        ]
        source = program_of(functions, [call(name, [square], square) for name in ("a", *["b"] * sites)])
        return lines_of_dedup(source, left=["a"])

    assert work(2_000, 2_000) < 1.1 * (work(2_000, 1) + work(1, 2_000))


# ---- depth and sharing


def deep_kernel(name: str, depth: int) -> ir.Function:
    n = ir.Var("n", ir.ScalarType(INDEX), SPAN)
    expr: ir.Expr = n
    for _ in range(depth):
        expr = ir.Add(expr, const(1), INDEX, SPAN)
    return ir.Function(name, [n], [n.type], ir.ReturnStmt([expr], SPAN), SPAN, ir.FunctionType.InCore)


def test_expressions_a_hundred_thousand_deep():
    source = program_of(
        [deep_kernel("a", 100_000), deep_kernel("b", 100_000), deep_kernel("c", 99_999)],
        [call(name, [symbol("n")], ir.ScalarType(INDEX)) for name in "abc"],
    )
    assert kernels(passes.deduplicate_outlined_kernels()(source)) == ["a", "c"]


def test_a_dispatch_at_the_bottom_of_a_deep_expression_is_redirected():
    n = symbol("n")
    expr: ir.Expr = call("b", [n], ir.ScalarType(INDEX))
    for _ in range(100_000):
        expr = ir.Add(expr, const(1), INDEX, SPAN)
    source = program_of(
        [deep_kernel("a", 1), deep_kernel("b", 1)], [call("a", [n], ir.ScalarType(INDEX)), expr]
    )
    result = passes.deduplicate_outlined_kernels()(source)
    assert kernels(result) == ["a"]
    assert set(index_references(result).sites) == {"a"}


def shared_kernel(name: str, levels: int) -> ir.Function:
    n = ir.Var("n", ir.ScalarType(INDEX), SPAN)
    expr: ir.Expr = n
    for _ in range(levels):
        expr = ir.Add(expr, expr, INDEX, SPAN)
    return ir.Function(name, [n], [n.type], ir.ReturnStmt([expr], SPAN), SPAN, ir.FunctionType.InCore)


def test_shared_expressions_whose_tree_is_astronomic():
    source = program_of(
        [shared_kernel("a", 60), shared_kernel("b", 60), shared_kernel("c", 61)],
        [call(name, [symbol("n")], ir.ScalarType(INDEX)) for name in "abc"],
    )
    assert kernels(dedup(source)) == ["a", "c"]
    assert records(source)["c"].reason == "unique"


def test_a_shared_expression_inside_many_loops_is_numbered_once():
    """The expression mentions the parameter only, so its number outlives each loop."""

    def loops(name: str, count: int) -> ir.Function:
        n = ir.Var("n", ir.ScalarType(INDEX), SPAN)
        expr: ir.Expr = n
        for _ in range(count):
            expr = ir.Add(expr, const(1), INDEX, SPAN)
        body = []
        for _ in range(count):
            i, y = ir.Var("i", ir.ScalarType(INDEX), SPAN), ir.Var("y", ir.ScalarType(INDEX), SPAN)
            inner = ir.AssignStmt(y, expr, SPAN)
            body.append(ir.ForStmt(i, const(0), n, const(1), [], inner, [], SPAN))
        return ir.Function(name, [n], [], ir.SeqStmts(body, SPAN), SPAN, ir.FunctionType.InCore)

    def work(count: int) -> int:
        functions = [loops("a", count), loops("b", count)]
        return lines_of_dedup(
            program_of(functions, [call(name, [symbol("n")], None) for name in "ab"]), ["a"]
        )

    assert work(1_000) < 4 * 1.1 * work(250)


def test_deeply_nested_statements():
    def nested(name: str) -> ir.Function:
        n = ir.Var("n", ir.ScalarType(ir.DataType.BOOL), SPAN)
        body: ir.Stmt = ir.SeqStmts([], SPAN)
        for _ in range(5_000):
            body = ir.IfStmt(n, body, None, [], SPAN)
        return ir.Function(name, [n], [], body, SPAN, ir.FunctionType.InCore)

    flag = ir.Var("flag", ir.ScalarType(ir.DataType.BOOL), SPAN)
    source = program_of([nested("a"), nested("b")], [call(name, [flag], None) for name in "ab"])
    assert kernels(passes.deduplicate_outlined_kernels()(source)) == ["a"]


def test_work_is_proportional_to_the_program():
    def work(count: int) -> int:
        half = count // 2
        functions = [constant_kernel(f"k{n:06}", n % half, statements=8) for n in range(count)]
        return lines_of_dedup(called_once(functions), left=[f"k{n:06}" for n in range(half)])

    assert work(400) < 4 * 1.1 * work(100)


def test_weights_count_nodes_leaves_and_text_once():
    n = ir.Var("n", ir.ScalarType(INDEX), SPAN)
    shared = ir.Add(n, n, INDEX, SPAN)

    def weight(value: ir.Expr, attrs: dict[str, object] | None = None) -> int:
        body = ir.ReturnStmt([value], SPAN)
        made = ir.Function("f", [n], [n.type], body, SPAN, ir.FunctionType.InCore, attrs=attrs)
        return index_references(ir.Program([made], "P", SPAN)).weight

    once = weight(shared)
    assert weight(ir.Add(shared, shared, INDEX, SPAN)) == once + 1
    assert weight(ir.Add(shared, ir.Add(n, n, INDEX, SPAN), INDEX, SPAN)) == once + 2
    assert weight(shared, {"note": "x" * 100}) == once + 101
