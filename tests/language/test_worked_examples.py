"""The worked examples of the language: a few lines of source and the IR that stands for them."""

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto import ir
from pypto.ir.walk import walk
from tests.language.source import main_of, statements

PARAMS = (
    "x: pl.Tensor[[64, 32], pl.FP32], y: pl.Tensor[[64, 32], pl.FP32], n: pl.Scalar[pl.INDEX], "
    "out: pl.Out[pl.Tensor[[64, 32], pl.FP32]]"
)
T = "pl.Tensor[[64, 32], pl.FP32]"
KERNELS = f"""
@pl.function(type=pl.FunctionType.InCore)
def k(self, a: {T}, o: pl.Out[{T}]) -> {T}:
    return o
@pl.function(type=pl.FunctionType.InCore)
def two(self, a: {T}) -> tuple[{T}, {T}]:
    return a, a
"""


def value(body: str) -> ir.Expr:
    stmt = statements(PARAMS, body, prelude="K = 8")[0]
    if isinstance(stmt, ir.ForStmt):
        stmt = stmt.body
    assert isinstance(stmt, (ir.AssignStmt, ir.EvalStmt))
    return stmt.value if isinstance(stmt, ir.AssignStmt) else stmt.expr


@pytest.mark.parametrize(
    ("source", "expected", "constants"),
    [
        ("v = pl.add(x, 1.0)", "pl.tensor.adds(x, 1.0)", "1.0:fp32"),
        ("m = 2 * K", "16", "16:index"),
        ("for i in pl.range(4):\n    m = i * 2 + 1", "i * 2 + 1", "2:index 1:index"),
        ("v = x[n, 0]", "pl.tensor.read(x, [n, 0])", "0:index"),
        ("v = x[n:n + 16]", "pl.tensor.slice(x, [16, 32], [n, 0])", "16:index 32:index 0:index"),
        ("out[n:n + 64, :] = x", "pl.tensor.assemble(out, x, [n, 0])", "0:index"),
        ("v = None", "pl.system.task_invalid()", ""),
    ],
)
def test_one_line(source: str, expected: str, constants: str) -> None:
    found = value(source)
    assert str(found) == expected
    literals = [each for each in walk(found) if isinstance(each, (ir.ConstInt, ir.ConstFloat))]
    assert [f"{each.value}:{each.dtype}" for each in literals] == constants.split()


def test_load_takes_tuples_of_offsets_and_extents() -> None:
    call = value("for i in pl.range(4):\n    t = pl.load(x, [i * 16, 0], [16, 32])")
    assert isinstance(call, ir.Call) and call.op.name == "tile.load"
    assert [str(operand) for operand in call.args[1:3]] == ["[i * 16, 0]", "[16, 32]"]
    assert all(isinstance(operand, ir.MakeTuple) for operand in call.args[1:3])


def test_store_as_a_statement_is_evaluated_for_its_effect() -> None:
    load, stmt = statements(PARAMS, "t = pl.load(x, [0, 0], [64, 32])\npl.store(t, [0, 0], out)")
    assert isinstance(stmt, ir.EvalStmt) and str(stmt.expr) == "pl.tile.store(t, [0, 0], out)"
    assert stmt.expr.args[0] is load.var


def test_call_with_two_results_unpacks_through_a_temporary() -> None:
    call, a, b = main_of("a, b = self.two(x)", params=PARAMS, kernels=KERNELS)
    assert [stmt.var.name_hint for stmt in (call, a, b)] == ["_tuple_tmp", "a", "b"]
    assert a.value.tuple is call.var and (a.value.index, b.value.index) == (0, 1)


def test_branches_assign_one_variable_that_is_visible_afterwards() -> None:
    branch, end = statements(PARAMS, "if n > 4:\n    z = pl.add(x, x)\nelse:\n    z = pl.mul(x, x)\nreturn z")
    assert isinstance(branch, ir.IfStmt) and isinstance(branch.condition, ir.Gt) and not branch.return_vars
    assert branch.then_body.var is branch.else_body.var is end.value[0]


def test_loop_with_a_carried_value() -> None:
    loop, end = statements(
        PARAMS,
        "for i, (acc,) in pl.range(0, 4, init_values=(x,)):\n    nxt = pl.add(acc, y)\n"
        "    res = pl.yield_(nxt)\nreturn res",
    )
    assert [str(e) for e in (loop.start, loop.stop, loop.step)] == ["0", "4", "1"]
    assert [arg.name_hint for arg in loop.iter_args] == ["acc"]
    assert loop.loop_var.type == ir.ScalarType(ir.DataType.INDEX)
    assert loop.iter_args[0].initValue.name_hint == "x"
    added, handed_on = loop.body.stmts
    assert added.var.name_hint == "nxt" and str(added.value) == "pl.tensor.add(acc, y)"
    assert added.value.args[0] is loop.iter_args[0] and handed_on.value[0] is added.var
    assert end.value[0] is loop.return_vars[0] and loop.return_vars[0].name_hint == "res"


def test_plain_loop_assigns_the_outer_variable() -> None:
    start, loop, end = statements(
        PARAMS,
        "acc = pl.create_tensor([64, 32], dtype=pl.FP32)\nfor i in pl.range(4):\n    acc = pl.add(acc, y)\n"
        "return acc",
    )
    assert loop.body.var is start.var is loop.body.value.args[0] is end.value[0]
    assert not loop.iter_args and not loop.return_vars


def test_task_capture_with_every_argument() -> None:
    *_, t0, placeholder, scope = main_of(
        "d, t0 = pl.submit(self.k, x, out)\n"
        "with pl.at(level=pl.Level.CORE_GROUP, deps=[t0], name_hint='stage2',\n"
        "           optimizations=[pl.split(pl.SplitMode.UP_DOWN), pl.cross_core_slot(slot_num=4)]) as t1:\n"
        "    out[0:64, :] = pl.exp(x)",
        params=PARAMS,
        kernels=KERNELS,
    )
    assert placeholder.value.op.name == "system.task_invalid" and placeholder.var.name_hint == "t1"
    assert isinstance(scope, ir.InCoreScopeStmt) and scope.body.var.name_hint == "out"
    assert [var is t0.var for var in scope.attrs["manual_dep_edges"]] == [True]
    assert (scope.split, scope.name_hint) == (ir.SplitMode.UP_DOWN, "stage2")
    assert list(scope.attrs) == ["manual_dep_edges", "task_id_var", "slot_num"]
    assert scope.attrs["task_id_var"] is placeholder.var and scope.attrs["slot_num"] == 4
    assert str(scope.body.value) == "pl.tensor.assemble(out, pl.tensor.exp(x), [0, 0])"


def test_spmd_loop_is_a_launch_around_a_kernel() -> None:
    launch, end = main_of(
        "for b in pl.spmd(8, name_hint='row'):\n    t = pl.load(x, [b * 8, 0], [8, 32])\n"
        "    out = pl.store(pl.exp(t), [b * 8, 0], out)\nreturn out",
        params=PARAMS,
    )
    assert isinstance(launch, ir.SpmdScopeStmt) and launch.name_hint == "row_spmd"
    assert launch.core_num.value == 8 and not launch.sync_start and not launch.attrs
    kernel = launch.body
    assert isinstance(kernel, ir.InCoreScopeStmt) and kernel.name_hint == "row"
    index, load, store = kernel.body.stmts
    assert index.value.op.name == "tile.get_block_idx" and index.var.name_hint == "b"
    assert load.value.args[1].elements[0].left is index.var
    assert str(store.value) == "pl.tile.store(pl.tile.exp(t), [b * 8, 0], out)"  # calls stay nested
    assert end.value[0] is store.var


# -- examples that need more than one place ------------------------------------------------------------------


def test_explicit_carrier_prints_and_parses_to_the_same_text() -> None:
    code = (
        "@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.Orchestration)\n"
        f"    def main(self, x: {T}):\n        with pl.spmd(2):\n"
        "            with pl.at(level=pl.Level.CORE_GROUP):\n                y = pl.exp(x)\n"
        "        return x\n"
    )
    first = pl.parse_program(code)
    assert first.as_python().count("CORE_GROUP") == 1
    assert pl.parse_program(first.as_python()).as_python() == first.as_python()


def test_plain_call_inside_a_cluster_is_fine() -> None:
    (scope,) = main_of("with pl.cluster():\n    z = self.k(x, out)", params=PARAMS, kernels=KERNELS)
    assert isinstance(scope, ir.ClusterScopeStmt)
