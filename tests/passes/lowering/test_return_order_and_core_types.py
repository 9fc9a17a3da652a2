"""NormalizeReturnOrder and ExpandMixedKernel."""

# ruff: noqa: RET504, SIM117, B007 (the programs are written as users write them)

from __future__ import annotations

import pypto.language as pl
from pypto import ir, passes
from pypto.ir.walk import walk

from .stages import calls, converted, lowered, through

T = pl.Tensor[[16, 32], pl.FP32]


def returned(function: ir.Function | None) -> list[ir.Expr]:
    assert function is not None
    return next(node for node in walk(function.body) if isinstance(node, ir.ReturnStmt)).value


def normalized(program: ir.Program) -> ir.Program:
    return through(
        program, "convert_to_ssa", "normalize_stmt_structure", "flatten_call_expr", "normalize_return_order"
    )


def test_returned_tensor_becomes_the_parameter_that_it_is():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(self, x: T, n: pl.Scalar[pl.INDEX], o: pl.Out[T]) -> T:
            t = pl.load(x, [0, 0], [16, 32])
            for i in pl.range(4):
                o = pl.store(t, [0, 0], o)
            if n > 0:
                o = pl.store(t, [0, 0], o)
            return o

    kernel = normalized(P)["k"]
    assert returned(kernel)[0] is kernel.params[2]


def test_reverse_order_of_returns_is_put_right_and_callers_follow():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(
            self, x: T, lo: pl.Out[T], hi: pl.Out[pl.Tensor[[8, 32], pl.FP32]]
        ) -> tuple[pl.Tensor[[8, 32], pl.FP32], T]:
            lo = pl.store(pl.load(x, [0, 0], [16, 32]), [0, 0], lo)
            hi = pl.store(pl.load(x, [0, 0], [8, 32]), [0, 0], hi)
            return hi, lo

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: T, lo: pl.Out[T], hi: pl.Out[pl.Tensor[[8, 32], pl.FP32]]) -> T:
            hi, lo = self.k(x, lo, hi)
            return lo

    program = normalized(P)
    kernel = program["k"]
    assert [value is param for value, param in zip(returned(kernel), kernel.params[1:], strict=True)] == [
        True,
        True,
    ]
    assert [str(each) for each in kernel.return_types] == [str(param.type) for param in kernel.params[1:]]
    items = [node for node in walk(program["main"].body) if isinstance(node, ir.TupleGetItemExpr)]
    assert [(item.index, str(item.type)) for item in items] == [
        (1, "pl.Tensor[[8, 32], pl.FP32]"),
        (0, "pl.Tensor[[16, 32], pl.FP32]"),
    ]
    assert passes.normalize_return_order()(program) is program


def test_inout_parameter_that_is_not_returned_shifts_nothing():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(self, acc: pl.InOut[T], o: pl.Out[T]) -> T:
            t = pl.load(acc, [0, 0], [16, 32])
            acc = pl.store(pl.add(t, 1.0), [0, 0], acc)
            o = pl.store(t, [0, 0], o)
            return o

    kernel = normalized(P)["k"]
    assert [value is kernel.params[1] for value in returned(kernel)] == [True]


def test_returns_keep_their_order_when_they_are_not_one_for_each_written_parameter():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def fewer(self, a: pl.Out[T], x: T, b: pl.Out[T], c: pl.InOut[T]) -> tuple[T, T]:
            t = pl.load(x, [0, 0], [16, 32])
            b = pl.store(t, [0, 0], b)
            c = pl.store(t, [0, 0], c)
            a = pl.store(t, [0, 0], a)
            return c, a

        @pl.function(type=pl.FunctionType.InCore)
        def twice(self, a: pl.Out[T], x: T) -> tuple[T, T]:
            a = pl.store(pl.load(x, [0, 0], [16, 32]), [0, 0], a)
            return a, a

        @pl.function(type=pl.FunctionType.InCore)
        def view(self, a: pl.Out[T], x: T) -> pl.Tensor[[512], pl.FP32]:
            a = pl.store(pl.load(x, [0, 0], [16, 32]), [0, 0], a)
            flat = pl.tensor.view(a, [512])
            return flat

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, a: pl.Out[T], x: T, b: pl.Out[T], c: pl.InOut[T]) -> T:
            c, a = self.fewer(a, x, b, c)
            return a

    program = normalized(P)
    for name, positions in (("fewer", [3, 0]), ("twice", [0, 0])):
        kernel = program[name]
        wanted = [kernel.params[position] for position in positions]
        assert [value is param for value, param in zip(returned(kernel), wanted, strict=True)] == [True, True]
    assert returned(program["view"])[0].name_hint == "flat__ssa_v0"
    assert [item.index for item in walk(program["main"].body) if isinstance(item, ir.TupleGetItemExpr)] == [
        0,
        1,
    ]


def test_task_id_of_a_submit_stays_last_when_results_are_reordered():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(self, lo: pl.Out[T], x: T, hi: pl.Out[T]) -> tuple[T, T]:
            t = pl.load(x, [0, 0], [16, 32])
            lo = pl.store(t, [0, 0], lo)
            hi = pl.store(t, [0, 0], hi)
            return hi, lo

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, lo: pl.Out[T], x: T, hi: pl.Out[T]) -> T:
            (hi, lo), tid = pl.submit(self.k, lo, x, hi)
            (hi, lo), _last = pl.submit(self.k, lo, x, hi, deps=[tid])
            return lo

    items = [node for node in walk(normalized(P)["main"].body) if isinstance(node, ir.TupleGetItemExpr)]
    assert [item.index for item in items] == [1, 0, 2, 1, 0, 2]


def test_wrapper_that_forwards_all_results_returns_them_one_by_one():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(self, x: T, lo: pl.Out[T], hi: pl.Out[T]) -> tuple[T, T]:
            t = pl.load(x, [0, 0], [16, 32])
            lo = pl.store(t, [0, 0], lo)
            hi = pl.store(t, [0, 0], hi)
            return hi, lo

        @pl.function(type=pl.FunctionType.Spmd)
        def wrapper(self, x: T, a: pl.Out[T], b: pl.Out[T]) -> tuple[T, T]:
            return self.k(x, b, a)

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: T, a: pl.Out[T], b: pl.Out[T]) -> T:
            a, b = self.wrapper(x, a, b)
            return b

    program = normalized(P)
    wrapper = program["wrapper"]
    assert [value is param for value, param in zip(returned(wrapper), wrapper.params[1:], strict=True)] == [
        True,
        True,
    ]
    assert [item.index for item in walk(program["main"].body) if isinstance(item, ir.TupleGetItemExpr)] == [
        0,
        1,
    ]


def test_forwarded_results_of_a_reordered_kernel_keep_their_order():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(
            self, x: T, lo: pl.Out[T], hi: pl.Out[pl.Tensor[[8, 32], pl.FP32]]
        ) -> tuple[pl.Tensor[[8, 32], pl.FP32], T]:
            lo = pl.store(pl.load(x, [0, 0], [16, 32]), [0, 0], lo)
            hi = pl.store(pl.load(x, [0, 0], [8, 32]), [0, 0], hi)
            return hi, lo

        @pl.function(type=pl.FunctionType.Orchestration)
        def inner(
            self, x: T, lo: pl.Out[T], hi: pl.Out[pl.Tensor[[8, 32], pl.FP32]]
        ) -> tuple[pl.Tensor[[8, 32], pl.FP32], T]:
            both = self.k(x, lo, hi)
            again = both
            return again

    program = normalized(P)
    values = returned(program["inner"])
    assert [str(value.type) for value in values] == [
        "pl.Tensor[[8, 32], pl.FP32]",
        "pl.Tensor[[16, 32], pl.FP32]",
    ]
    items = [node for node in walk(program["inner"].body) if isinstance(node, ir.TupleGetItemExpr)]
    assert [item.index for item in items] == [1, 0]


def test_placement_hint_puts_a_matrix_kernel_on_a_vector_core_and_is_used_up():
    @pl.program
    class P:
        @pl.function
        def main(self, x: T, w: pl.Tensor[[32, 32], pl.FP32]) -> T:
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="product"):
                y = pl.matmul(x, w)
            return y

    program = converted(P)
    kernel = program["product"]

    def hint(stmt: ir.Stmt) -> ir.Stmt:
        from pypto.ir.walk import map_substatements

        if isinstance(stmt, ir.AssignStmt) and stmt.value.op.name == "tile.store":
            return stmt.replace(value=stmt.value.replace(attrs={"core_placement": "aiv"}))
        return map_substatements(stmt, hint)

    functions = [f for f in program.functions.values() if f is not kernel]
    hinted = program.replace(functions=[*functions, kernel.replace(body=hint(kernel.body))])
    placed = passes.expand_mixed_kernel()(hinted)["product"]
    assert placed.func_type is ir.FunctionType.AIV
    assert not any("core_placement" in node.attrs for node in walk(placed.body) if isinstance(node, ir.Call))


def test_wrapper_returns_its_own_parameters():
    @pl.program
    class P:
        @pl.function
        def main(self, x: T, o: pl.Out[T]) -> T:
            for i in pl.spmd(4):
                o = pl.store(pl.load(x, [i * 4, 0], [4, 32]), [i * 4, 0], o)
            with pl.cluster():
                with pl.at(level=pl.Level.CORE_GROUP):
                    y = pl.exp(o)
            return y

    program = lowered(P, "normalize_return_order")
    wrapper, group = program["main_spmd_0"], program["main_cluster_0"]
    assert any(returned(wrapper)[0] is param for param in wrapper.params)
    assert returned(group)[0] is group.params[-1]


def test_kernels_get_the_core_type_of_their_work():
    @pl.program
    class P:
        @pl.function
        def main(self, x: T, w: pl.Tensor[[32, 32], pl.FP32], o: pl.Out[T]) -> T:
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="product"):
                y = pl.matmul(x, w)
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="vector"):
                z = pl.exp(y)
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="both"):
                o = pl.assemble(o, pl.exp(pl.matmul(z, w)), [0, 0])
            return o

    program = lowered(P, "expand_mixed_kernel")
    kinds = {name: program[name].func_type for name in ("product", "vector", "both")}
    assert kinds == {
        "product": ir.FunctionType.AIC,
        "vector": ir.FunctionType.AIV,
        "both": ir.FunctionType.AIV,
    }
    assert calls(program["main"]) == calls(converted(P)["main"])
    assert program["product"].level is ir.Level.AIC


def test_matrix_kernel_alone_in_a_group_runs_on_a_vector_lane():
    @pl.program
    class P:
        @pl.function
        def main(self, x: T, w: pl.Tensor[[32, 32], pl.FP32]) -> T:
            with pl.cluster():
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="product"):
                    y = pl.matmul(x, w)
            return y

    assert lowered(P, "expand_mixed_kernel")["product"].func_type is ir.FunctionType.AIV
