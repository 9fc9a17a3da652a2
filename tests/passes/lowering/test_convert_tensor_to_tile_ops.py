"""ConvertTensorToTileOps: what kernels and call sites look like afterwards."""

# ruff: noqa: RET504, RUF059 (the programs are written as users write them)

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto import ir, passes
from pypto.ir.walk import walk

from .stages import calls, converted, dispatches, names_of, through

In, Out, InOut = ir.ParamDirection.In, ir.ParamDirection.Out, ir.ParamDirection.InOut


def assert_converts(before: ir.Program, after: ir.Program) -> None:
    """`before` after SSA, outlining and the pass equals `after` in SSA form."""
    expected = through(after, "convert_to_ssa", "normalize_stmt_structure", "flatten_call_expr")
    ir.assert_structural_equal(converted(before), expected, enable_auto_mapping=True)


def test_computed_result_leaves_through_an_added_out_parameter():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def k(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            y = pl.add(x, x)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, a: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            r = self.k(a)
            return r

    @pl.program
    class After:
        @pl.function(type=pl.FunctionType.InCore)
        def k(
            self, x: pl.Tensor[[64], pl.FP32], ret0_out: pl.Out[pl.Tensor[[64], pl.FP32]]
        ) -> pl.Tensor[[64], pl.FP32]:
            x_tile = pl.tile.load(x, [0], [64])
            y_tile = pl.tile.add(x_tile, x_tile)
            ret0_store = pl.tile.store(y_tile, [0], ret0_out)
            return ret0_store

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, a: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            ret0_out = pl.create_tensor([64], dtype=pl.FP32)
            r = self.k(a, ret0_out)
            return r

    assert_converts(Before, After)
    program = converted(Before)
    kernel = program["k"]
    assert kernel is not None
    assert names_of(kernel.params) == ["x", "ret0__out"]
    assert kernel.param_directions == [In, Out]
    assert calls(kernel) == ["tile.load", "tile.add", "tile.store"]
    defined = [var.name_hint for var in ir.collect_def_vars(kernel.body)]
    assert defined == ["x__tile", "y__tile", "ret0__store"]
    main = program["main"]
    assert calls(main) == ["tensor.create", "k"]
    assert dispatches(main)[0].args[1].name_hint == "ret0__out"


def test_results_get_parameters_in_return_order_and_memory_results_get_none():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def two(
            self, x: pl.Tensor[[8, 16], pl.FP32]
        ) -> tuple[pl.Tensor[[8, 16], pl.FP32], pl.Tensor[[8, 1], pl.FP32]]:
            y = pl.exp(x)
            s = pl.row_sum(y)
            return y, s

        @pl.function(type=pl.FunctionType.InCore)
        def mixed(
            self, x: pl.Tensor[[8, 16], pl.FP32], o: pl.Out[pl.Tensor[[8, 16], pl.FP32]]
        ) -> tuple[pl.Tensor[[8, 16], pl.FP32], pl.Tensor[[8, 16], pl.FP32]]:
            y = pl.exp(x)
            o = pl.assemble(o, y, [0, 0])
            z = pl.neg(y)
            return o, z

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, x: pl.Tensor[[8, 16], pl.FP32], o: pl.Out[pl.Tensor[[8, 16], pl.FP32]]
        ) -> pl.Tensor[[8, 16], pl.FP32]:
            y, s = self.two(x)
            o, z = self.mixed(y, o)
            return o

    program = converted(P)
    assert names_of(program["two"].params) == ["x", "ret0__out", "ret1__out"]
    assert [str(p.type) for p in program["two"].params[1:]] == [
        "pl.Tensor[[8, 16], pl.FP32]",
        "pl.Tensor[[8, 1], pl.FP32]",
    ]
    assert names_of(program["mixed"].params) == ["x", "o", "ret0__out"]
    assert [len(call.args) for call in dispatches(program["main"])] == [3, 3]


def test_slice_of_a_parameter_is_loaded_where_it_stands():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(
            self,
            x: pl.Tensor[[64, 32], pl.FP32],
            i: pl.Scalar[pl.INDEX],
            o: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
        ) -> pl.Tensor[[64, 32], pl.FP32]:
            t = pl.slice(x, [16, 32], [i * 16, 0])
            o = pl.assemble(o, t, [i * 16, 0])
            return o

    kernel = converted(P)["k"]
    assert calls(kernel) == ["tile.load", "tile.store"]
    load = next(node for node in walk(kernel.body) if isinstance(node, ir.Call))
    assert str(load.args[1].elements[0]) == "i__ssa_v0 * 16"


def test_slice_that_feeds_only_a_matrix_product_is_loaded_to_matrix_memory():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(
            self, x: pl.Tensor[[64, 32], pl.FP32], w: pl.Tensor[[16, 32], pl.FP32]
        ) -> pl.Tensor[[16, 16], pl.FP32]:
            t = pl.slice(x, [16, 32], [0, 0])
            y = pl.matmul(t, w, b_trans=True)
            return y

    kernel = converted(P)["k"]
    assert calls(kernel) == ["tile.load", "tile.load", "tile.transpose_view", "tile.matmul", "tile.store"]
    names = [var.name_hint for var in ir.collect_def_vars(kernel.body)]
    assert names == ["t__tile", "w__ssa_v0_mat", "w__ssa_v0_t", "y__tile", "ret0__store"]
    spaces = [v.type.memory_space for v in ir.collect_def_vars(kernel.body)[:2]]
    assert spaces == [ir.MemorySpace.Mat, ir.MemorySpace.Mat]


def test_product_in_a_narrow_type_is_converted_to_it():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(
            self, x: pl.Tensor[[16, 32], pl.BF16], w: pl.Tensor[[32, 16], pl.BF16]
        ) -> pl.Tensor[[16, 16], pl.BF16]:
            y = pl.matmul(x, w)
            return y

    assert calls(converted(P)["k"])[-3:] == ["tile.matmul", "tile.cast", "tile.store"]


def test_scalar_operand_of_another_type_converts_the_tile_first():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(self, x: pl.Tensor[[16, 32], pl.BF16]) -> pl.Tensor[[16, 32], pl.FP32]:
            y = pl.mul(x, 2.5)
            return y

    kernel = converted(P)["k"]
    assert calls(kernel) == ["tile.load", "tile.cast", "tile.muls", "tile.store"]


def test_parameter_only_stored_to_becomes_out_and_one_also_read_becomes_inout():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def fill(
            self, x: pl.Tensor[[8, 16], pl.FP32], o: pl.Tensor[[8, 16], pl.FP32]
        ) -> pl.Tensor[[8, 16], pl.FP32]:
            o = pl.assemble(o, pl.exp(x), [0, 0])
            return o

        @pl.function(type=pl.FunctionType.InCore)
        def bump(
            self, x: pl.Tensor[[8, 16], pl.FP32], o: pl.Tensor[[8, 16], pl.FP32]
        ) -> pl.Tensor[[8, 16], pl.FP32]:
            o = pl.assemble(o, pl.add(o, x), [0, 0])
            return o

        @pl.function(type=pl.FunctionType.InCore)
        def poke(self, o: pl.Tensor[[8, 16], pl.FP32]):
            pl.write(o, [0, 0], 1.0)

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self,
            x: pl.Tensor[[8, 16], pl.FP32],
            a: pl.Tensor[[8, 16], pl.FP32],
            b: pl.Tensor[[8, 16], pl.FP32],
            c: pl.Out[pl.Tensor[[8, 16], pl.FP32]],
            d: pl.Tensor[[8, 16], pl.FP32],
        ) -> pl.Tensor[[8, 16], pl.FP32]:
            a = self.fill(x, a)
            b = self.bump(a, b)
            c = self.bump(b, c)
            self.poke(d)
            return c

    program = converted(P)
    assert program["fill"].param_directions == [In, Out]
    assert program["bump"].param_directions == [In, InOut]
    assert program["poke"].param_directions == [Out]
    # a declared direction of an orchestration stays
    assert program["main"].param_directions == [In, Out, InOut, Out, Out]


def test_direction_reaches_a_parameter_through_a_loop_and_a_submit():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def fill(
            self, x: pl.Tensor[[8, 16], pl.FP32], o: pl.Tensor[[8, 16], pl.FP32]
        ) -> pl.Tensor[[8, 16], pl.FP32]:
            o = pl.assemble(o, pl.exp(x), [0, 0])
            return o

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, x: pl.Tensor[[8, 16], pl.FP32], a: pl.Tensor[[8, 16], pl.FP32]
        ) -> pl.Tensor[[8, 16], pl.FP32]:
            for _i in pl.range(4):
                a, _tid = pl.submit(self.fill, x, a)
            return a

    assert converted(P)["main"].param_directions == [In, Out]


def test_tensor_carried_by_a_loop_of_the_caller_gets_its_direction_in_the_kernel():
    @pl.program
    class P:
        @pl.function
        def main(
            self, x: pl.Tensor[[64, 32], pl.FP32], o: pl.Out[pl.Tensor[[64, 32], pl.FP32]]
        ) -> pl.Tensor[[64, 32], pl.FP32]:
            for r in pl.range(4):
                with pl.at(level=pl.Level.CORE_GROUP):
                    t = pl.load(x, [r * 16, 0], [16, 32])
                    o = pl.store(t, [r * 16, 0], o)
            return o

    assert converted(P)["main_incore_0"].param_directions == [In, In, Out]


def test_wrapper_takes_the_output_and_its_caller_allocates_it():
    @pl.program
    class P:
        @pl.function
        def main(self, x: pl.Tensor[[64, 32], pl.FP32]) -> pl.Tensor[[64, 32], pl.FP32]:
            with pl.cluster():
                with pl.at(level=pl.Level.CORE_GROUP):
                    y = pl.exp(x)
                with pl.at(level=pl.Level.CORE_GROUP):
                    z = pl.neg(y)
            return z

    program = converted(P)
    group = program["main_cluster_0"]
    assert names_of(group.params) == ["x", "ret0__out", "ret1__out"]
    assert group.param_directions == [In, Out, Out]
    assert calls(group) == ["main_incore_0", "main_incore_1"]
    assert calls(program["main"]) == ["tensor.create", "tensor.create", "main_cluster_0"]


def test_launch_wrapper_over_a_computed_result_takes_the_output_too():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            y = pl.add(x, x)
            return y

        @pl.function(type=pl.FunctionType.Spmd)
        def launch(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            y = self.k(x)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, a: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            r = self.launch(a)
            return r

    program = converted(P)
    assert names_of(program["launch"].params) == ["x", "ret0__out"]
    assert program["launch"].param_directions == [In, Out]
    made = ir.collect_def_vars(program["main"].body)[0]
    assert dispatches(program["main"])[0].args[1] is made and made.name_hint == "ret0__out"
    assert calls(program["launch"]) == ["k"] and calls(program["main"]) == ["tensor.create", "launch"]


def test_submit_keeps_its_type_fields_and_gains_the_argument():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            y = pl.add(x, x)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, a: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            r, first = pl.submit(self.k, a)
            s, second = pl.submit(self.k, r, deps=[first])
            return s

    before = dispatches(through(P, "convert_to_ssa")["main"])
    after = dispatches(converted(P)["main"])
    assert all(isinstance(each, ir.Submit) and len(each.args) == 2 for each in after)
    assert [str(each.type) for each in after] == [str(each.type) for each in before]
    assert len(after[1].deps) == 1


def test_submit_that_omits_an_output_leaves_the_added_one_to_the_runtime():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(
            self, x: pl.Tensor[[64], pl.FP32], o: pl.Out[pl.Tensor[[64], pl.FP32]]
        ) -> tuple[pl.Tensor[[64], pl.FP32], pl.Tensor[[64], pl.FP32]]:
            y = pl.add(x, x)
            o = pl.assemble(o, y, [0])
            z = pl.neg(y)
            return o, z

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, a: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            (o, z), _tid = pl.submit(self.k, a)
            return z

    assert len(dispatches(converted(P)["main"])[0].args) == 1


def test_created_output_has_the_callers_extents():
    m = pl.dynamic("M")
    n = pl.dynamic("N")

    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(
            self, x: pl.Tensor[[16, 32], pl.FP32], y: pl.Tensor[[m, 32], pl.FP32]
        ) -> pl.Tensor[[m, 32], pl.FP32]:
            out = pl.create_tensor([16, 32], dtype=pl.FP32)
            out = pl.add(x, x)
            y = pl.assemble(y, out, [0, 0])
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, a: pl.Tensor[[16, 32], pl.FP32], b: pl.Tensor[[n, 32], pl.FP32]
        ) -> pl.Tensor[[n, 32], pl.FP32]:
            b = self.k(a, b)
            return b

    program = converted(P)
    assert program["k"].param_directions == [In, Out]
    assert str(dispatches(program["main"])[0].type) == str(program["main"].params[1].type)


def test_loop_that_fills_the_result_stores_the_pieces():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(self, x: pl.Tensor[[64, 32], pl.FP32]) -> pl.Tensor[[64, 32], pl.FP32]:
            out = pl.create_tensor([64, 32], dtype=pl.FP32)
            for i in pl.range(4):
                out = pl.assemble(out, pl.exp(x[i * 16 : (i + 1) * 16, :]), [i * 16, 0])
            return out

    kernel = converted(P)["k"]
    assert calls(kernel) == ["tile.load", "tile.exp", "tile.store"]
    loop = next(node for node in walk(kernel.body) if isinstance(node, ir.ForStmt))
    assert loop.iter_args[0].initValue is kernel.params[1]


def test_tile_that_is_read_between_is_not_stored_piece_by_piece():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(self, x: pl.Tensor[[64, 32], pl.FP32]) -> pl.Tensor[[64, 32], pl.FP32]:
            out = pl.create_tensor([64, 32], dtype=pl.FP32)
            for i in pl.range(4):
                out = pl.assemble(out, pl.exp(x[i * 16 : (i + 1) * 16, :]), [i * 16, 0])
            y = pl.add(out, 1.0)
            return y

    assert "tile.assemble" in calls(converted(P)["k"])


def test_load_after_a_barrier_is_not_taken_from_before_it():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(
            self, x: pl.Tensor[[16, 32], pl.FP32], o: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
        ) -> pl.Tensor[[16, 32], pl.FP32]:
            a = pl.exp(x)
            pl.system.syncall(core_type="aiv_only")
            b = pl.exp(x)
            o = pl.assemble(o, pl.add(a, b), [0, 0])
            return o

    assert calls(converted(P)["k"]) == [
        "tile.load",
        "tile.exp",
        "system.syncall",
        "tile.load",
        "tile.exp",
        "tile.add",
        "tile.store",
    ]


def test_kernel_in_tile_form_is_left_alone():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(
            self, x: pl.Tensor[[16, 32], pl.FP32], o: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
        ) -> pl.Tensor[[16, 32], pl.FP32]:
            t = pl.load(x, [0, 0], [16, 32])
            o = pl.store(pl.add(t, 1.0), [0, 0], o)
            return o

    before = through(P, "convert_to_ssa", "normalize_stmt_structure", "flatten_call_expr")
    assert passes.convert_tensor_to_tile_ops()(before) is before


@pytest.mark.parametrize("operand", ["pl.matmul(a, a)", "pl.neg(pl.matmul(a, a))", "c"])
def test_row_minimum_of_what_does_not_lie_in_plain_rows_moves_it_first(operand: str):
    program = converted(
        pl.parse_program(
            f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self, a: pl.Tensor[[16, 16], pl.FP32], c: pl.Tensor[[16, 1], pl.FP32]
    ) -> pl.Tensor[[16, 1], pl.FP32]:
        y = pl.row_min({operand})
        return y
"""
        )
    )
    (kernel,) = program.functions.values()
    (move,) = (
        node for node in walk(kernel.body) if isinstance(node, ir.Call) and node.op.name == "tile.move"
    )
    assert isinstance(move.type, ir.TileType)
    view = move.type.get_effective_tile_view()
    assert (view.blayout, view.slayout) == (ir.TileLayout.row_major, ir.TileLayout.none_box)


def test_second_run_changes_nothing():
    @pl.program
    class P:
        @pl.function
        def main(
            self, x: pl.Tensor[[16, 32], pl.FP32], o: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
        ) -> pl.Tensor[[16, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.exp(x)
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.assemble(o, pl.add(y, x), [0, 0])
            return o

    once = converted(P)
    assert passes.convert_tensor_to_tile_ops()(once) is once


def test_result_prints_and_parses_back():
    @pl.program
    class P:
        @pl.function
        def main(
            self, x: pl.Tensor[[16, 32], pl.FP32], o: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
        ) -> pl.Tensor[[16, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.row_expand_mul(x, pl.row_max(x))
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.assemble(o, pl.matmul(y, x, b_trans=True)[:, 0:16], [0, 0])
            return o

    program = converted(P)
    ir.assert_structural_equal(pl.parse_program(program.as_python()), program, enable_auto_mapping=True)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "y = pl.concat(pl.exp(x), x)\n    z = pl.tensor.view(y, [1024])\n    return z",
            "requires a GM Tensor input",
        ),
        (
            "y = pl.exp(x)\n    y = pl.assemble(y, x, [0, 0], atomic=pl.AtomicType.Add)\n    return y",
            "atomic assemble needs a target in memory",
        ),
        (
            "x = pl.assemble(x, pl.exp(x), [0, 0])\n    pl.write(x, [0, 0], 1.0)\n    return x",
            "'x' mixes MTE3 and scalar stores in one InCore function",
        ),
    ],
)
def test_misuse_is_reported_with_its_line(body: str, message: str):
    text = f"""
import pypto.language as pl

@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[[16, 32], pl.FP32]) -> pl.Tensor[[16, 32], pl.FP32]:
    {body}
"""
    function = pl.parse(text)
    program = ir.Program([function], "P", ir.Span.unknown())
    with pytest.raises(ValueError, match=message):
        through(program, "convert_to_ssa", "flatten_call_expr", "convert_tensor_to_tile_ops")


def test_tensor_computed_inside_an_operand_is_converted_like_one_with_a_name():
    @pl.program
    class Nested:
        @pl.function(type=pl.FunctionType.InCore)
        def k(
            self, x: pl.Tensor[[64], pl.FP32], out: pl.Out[pl.Tensor[[64], pl.FP32]]
        ) -> pl.Tensor[[64], pl.FP32]:
            out = pl.assemble(out, pl.exp(pl.add(x, x)), [0])
            return out

    alone = passes.convert_tensor_to_tile_ops()(passes.convert_to_ssa()(Nested))
    flat = through(Nested, "convert_to_ssa", "flatten_call_expr", "convert_tensor_to_tile_ops")
    ir.assert_structural_equal(alone, flat)
    kernel = alone["k"]
    assert kernel is not None
    assert calls(kernel) == ["tile.load", "tile.add", "tile.exp", "tile.store"]


def test_extent_that_a_kernel_computes_for_a_tensor_that_leaves_it_is_named():
    @pl.program
    class P:
        @pl.function
        def main(
            self, x: pl.Tensor[[64, 32], pl.FP32], k: pl.Scalar[pl.INDEX]
        ) -> pl.Tensor[[64, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                n = k * 2
                part = pl.add(pl.slice(x, [n, 32], [0, 0]), 1.0)
            with pl.at(level=pl.Level.CORE_GROUP):
                x = pl.assemble(x, part, [0, 0])
            return x

    with pytest.raises(ValueError, match=r"extent 'n', which is computed in it.*before the scope"):
        converted(P)


def test_operator_without_a_tile_form_is_named_with_its_line():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(self, x: pl.Tensor[[16, 32], pl.FP32]) -> pl.Tensor[[16, 32], pl.FP32]:
            m = pl.tensor.alloc(pl.Mem.Vec, 64)
            y = pl.neg(x)
            return y

    with pytest.raises(
        ValueError, match=r"tensor\.alloc has no registered tile conversion.*test_convert.*:\d+"
    ):
        converted(P)


def test_kernel_that_declares_a_result_but_returns_nothing_is_an_internal_error():
    span = ir.Span.unknown()
    type = ir.TensorType([8], pl.FP32)
    x = ir.Var("x", type, span)
    y = ir.Var("y", type, span)
    body = ir.AssignStmt(y, ir.op.tensor.add(x, x), span)
    kernel = ir.Function("k", [x], [type], body, span, ir.FunctionType.InCore)
    with pytest.raises(RuntimeError, match="declares results but returns nothing"):
        passes.convert_tensor_to_tile_ops()(ir.Program([kernel], "P", span))
