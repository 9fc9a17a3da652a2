"""DeriveCallDirections: one rule of the table per test."""

# ruff: noqa: RET504, RUF059 (the programs are written as users write them)

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto import ir, passes

from .stages import dispatches, through

A = ir.ArgDirection
T = pl.Tensor[[16, 32], pl.FP32]


def directions(program: ir.Program, entry: str = "main") -> list[list[ir.ArgDirection]]:
    ssa = through(program, "convert_to_ssa", "normalize_stmt_structure", "flatten_call_expr")
    derived = through(ssa, "normalize_return_order", "derive_call_directions")
    return [call.arg_directions for call in dispatches(derived[entry])]


def with_main(body: str, params: str = "o: pl.Out[T]", result: str = "o") -> ir.Program:
    """A program with a given `main`; `fill` writes `o`, `half` half of it, `bump` reads and writes it."""
    lines = "\n".join(f"        {line}" for line in body.strip("\n").split("\n"))
    text = f"""
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def fill(self, x: T, o: pl.Out[T]) -> T:
        o = pl.store(pl.load(x, [0, 0], [16, 32]), [0, 0], o)
        return o

    @pl.function(type=pl.FunctionType.InCore)
    def bump(self, x: T, o: pl.InOut[T]) -> T:
        o = pl.store(pl.add(pl.load(x, [0, 0], [16, 32]), pl.load(o, [0, 0], [16, 32])), [0, 0], o)
        return o

    @pl.function(type=pl.FunctionType.InCore)
    def half(self, x: T, o: pl.Out[pl.Tensor[[8, 32], pl.FP32]]) -> pl.Tensor[[8, 32], pl.FP32]:
        o = pl.store(pl.load(x, [0, 0], [8, 32]), [0, 0], o)
        return o

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: T, {params}) -> T:
{lines}
        return {result}
""".replace("T]", "pl.Tensor[[16, 32], pl.FP32]]").replace(": T", ": pl.Tensor[[16, 32], pl.FP32]")
    return pl.parse_program(text.replace("-> T", "-> pl.Tensor[[16, 32], pl.FP32]"))


def test_input_inout_and_first_output():
    assert directions(with_main("o = self.fill(x, o)")) == [[A.Input, A.OutputExisting]]
    assert directions(with_main("o = self.bump(x, o)")) == [[A.Input, A.InOut]]


def test_second_writer_of_a_buffer_is_ordered_behind_the_first():
    body = """
t = pl.create_tensor([16, 32], dtype=pl.FP32)
t = self.fill(x, t)
t = self.fill(x, t)
o = self.fill(t, o)
"""
    assert [each[1] for each in directions(with_main(body))] == [A.OutputExisting, A.InOut, A.OutputExisting]


def test_scalars_are_scalars():
    program = with_main("o = self.fill(x, o)")
    assert program["main"] is not None

    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(self, x: T, n: pl.Scalar[pl.INDEX], o: pl.Out[T]) -> T:
            o = pl.store(pl.load(x, [n, 0], [8, 32]), [0, 0], o)
            return o

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: T, n: pl.Scalar[pl.INDEX], o: pl.Out[T]) -> T:
            o = self.k(x, n, o)
            o = self.k(x, 3, o)
            return o

    assert directions(P) == [[A.Input, A.Scalar, A.OutputExisting], [A.Input, A.Scalar, A.InOut]]


@pytest.mark.parametrize(
    ("loop", "expected"),
    [("pl.range(4)", A.InOut), ("pl.parallel(4)", A.OutputExisting)],
)
def test_output_in_a_loop(loop: str, expected: ir.ArgDirection):
    body = f"for i in {loop}:\n    o = self.fill(x, o)"
    assert directions(with_main(body)) == [[A.Input, expected]]


def test_output_in_a_parallel_loop_inside_a_sequential_one_is_ordered():
    body = "for i in pl.range(4):\n    for j in pl.parallel(4):\n        o = self.fill(x, o)"
    assert directions(with_main(body)) == [[A.Input, A.InOut]]


def test_output_in_a_parallel_loop_after_a_writer_is_ordered():
    body = "o = self.fill(x, o)\nfor i in pl.parallel(4):\n    o = self.fill(x, o)"
    assert [each[1] for each in directions(with_main(body))] == [A.OutputExisting, A.InOut]


def test_output_after_a_loop_that_wrote_it_is_ordered():
    body = "for i in pl.parallel(4):\n    o = self.fill(x, o)\no = self.fill(x, o)"
    assert [each[1] for each in directions(with_main(body))] == [A.OutputExisting, A.InOut]


def test_output_in_a_while_loop_is_ordered():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def fill(self, x: T, o: pl.Out[T]) -> T:
            o = pl.store(pl.load(x, [0, 0], [16, 32]), [0, 0], o)
            return o

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: T, n: pl.Scalar[pl.INDEX], o: pl.Out[T]) -> T:
            i = n
            while i > 0:
                i = i - 1
                o = self.fill(x, o)
            return o

    assert directions(P) == [[A.Input, A.InOut]]


def test_branches_do_not_see_each_other_but_what_follows_sees_both():
    body = """
if n > 0:
    o = self.fill(x, o)
else:
    o = self.fill(x, o)
o = self.fill(x, o)
"""
    found = directions(with_main(body, "n: pl.Scalar[pl.INDEX], o: pl.Out[T]"))
    assert [each[1] for each in found] == [A.OutputExisting, A.OutputExisting, A.InOut]


def test_enclosing_inout_parameter_is_ordered_and_an_out_parameter_is_not():
    assert directions(with_main("o = self.fill(x, o)", "o: pl.InOut[T]")) == [[A.Input, A.InOut]]
    assert directions(with_main("o = self.fill(x, o)", "o: pl.Out[T]")) == [[A.Input, A.OutputExisting]]


def test_no_dep_wins_over_what_the_callee_declares():
    assert directions(with_main("o = self.fill(pl.no_dep(x), o)")) == [[A.NoDep, A.OutputExisting]]
    assert directions(with_main("o = self.fill(x, pl.no_dep(o))")) == [[A.Input, A.NoDep]]
    assert directions(with_main("o = self.bump(x, pl.no_dep(o))")) == [[A.Input, A.NoDep]]


def slices(first: str, second: str) -> list[ir.ArgDirection]:
    @pl.program
    class Kernels:
        @pl.function(type=pl.FunctionType.InCore)
        def half(self, x: T, o: pl.Out[pl.Tensor[[8, 32], pl.FP32]]) -> pl.Tensor[[8, 32], pl.FP32]:
            o = pl.store(pl.load(x, [0, 0], [8, 32]), [0, 0], o)
            return o

    text = f"""
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: {T_TEXT}, n: pl.Scalar[pl.INDEX], o: pl.Out[{T_TEXT}]) -> {T_TEXT}:
        a = {first}
        a = self.half(x, a)
        b = {second}
        b = self.half(x, b)
        return o

    @pl.function(type=pl.FunctionType.InCore)
    def half(self, x: {T_TEXT}, o: pl.Out[pl.Tensor[[8, 32], pl.FP32]]) -> pl.Tensor[[8, 32], pl.FP32]:
        o = pl.store(pl.load(x, [0, 0], [8, 32]), [0, 0], o)
        return o
"""
    return [each[1] for each in directions(pl.parse_program(text))]


T_TEXT = "pl.Tensor[[16, 32], pl.FP32]"


def looped(main: str) -> list[ir.ArgDirection]:
    """Directions of the second argument at the dispatches of `row`."""
    body = "\n".join(f"        {line}" for line in main.strip("\n").split("\n"))
    text = f"""import pypto.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: {T_TEXT}, n: pl.Scalar[pl.INDEX], o: pl.Out[{T_TEXT}]) -> {T_TEXT}:
{body}
        return o

    @pl.function(type=pl.FunctionType.InCore)
    def row(self, x: {T_TEXT}, o: pl.Out[pl.Tensor[[1, 32], pl.FP32]]) -> pl.Tensor[[1, 32], pl.FP32]:
        o = pl.store(pl.load(x, [0, 0], [1, 32]), [0, 0], o)
        return o
"""
    return [each[1] for each in directions(pl.parse_program(text))]


def test_disjoint_slices_are_unordered():
    assert slices("o[0:8, :]", "o[8:16, :]") == [A.OutputExisting, A.OutputExisting]
    assert slices("pl.slice(o, [8, 32], [n, 0])", "pl.slice(o, [8, 32], [n + 8, 0])") == [
        A.OutputExisting,
        A.OutputExisting,
    ]


def test_an_index_that_may_be_negative_does_not_keep_slices_apart():
    after = "pl.slice(o, [8, 32], [n + 8, 0])"
    assert slices("o[0:8, :]", after) == [A.OutputExisting, A.InOut]
    assert slices(after, "o[0:8, :]") == [A.OutputExisting, A.InOut]
    assert slices("o[0:8, :]", "pl.slice(o, [8, 32], [pl.max(n, 0) + 8, 0])") == [
        A.OutputExisting,
        A.OutputExisting,
    ]


def test_a_loop_that_counts_up_from_zero_keeps_its_slices_behind_the_first_rows():
    loop = """
for i in pl.parallel({bounds}):
    first = pl.slice(o, [1, 32], [0, 0])
    first = self.row(x, first)
    later = pl.slice(o, [1, 32], [i + 1, 0])
    later = self.row(x, later)
"""
    assert looped(loop.format(bounds="n")) == [A.OutputExisting, A.OutputExisting]
    assert looped(loop.format(bounds="-1, n")) == [A.OutputExisting, A.InOut]


def test_overlapping_slices_are_ordered():
    assert slices("o[0:8, :]", "o[4:12, :]") == [A.OutputExisting, A.InOut]
    assert slices("pl.slice(o[4:16, :], [8, 32], [0, 0])", "o[0:8, :]") == [A.OutputExisting, A.InOut]
    assert slices("pl.slice(o[4:16, :], [8, 32], [4, 0])", "o[0:8, :]") == [
        A.OutputExisting,
        A.OutputExisting,
    ]


def test_slices_that_may_overlap_are_ordered():
    moving = "pl.slice(o, [8, 32], [n, 0])"
    assert slices("o[0:8, :]", moving) == [A.OutputExisting, A.InOut]
    assert slices(moving, "o[0:8, :]") == [A.OutputExisting, A.InOut]
    assert slices(moving, moving) == [A.OutputExisting, A.InOut]
    assert slices(moving, "pl.slice(o, [8, 32], [n * 2, 0])") == [A.OutputExisting, A.InOut]


def test_parts_written_in_parallel_are_ordered_after_earlier_writers_only():
    program = with_main("""
for i in pl.parallel(2):
    a = pl.slice(o, [8, 32], [i * 8, 0])
    a = self.half(x, a)
for j in pl.parallel(2):
    b = pl.slice(o, [8, 32], [j * 8, 0])
    b = self.half(x, b)
""")
    assert [each[1] for each in directions(program)] == [A.OutputExisting, A.InOut]


def test_slice_that_covers_its_buffer_is_the_buffer():
    program = with_main("""
a = pl.slice(o, [16, 32], [0, 0])
a = self.fill(x, a)
for j in pl.parallel(2):
    b = pl.slice(o, [8, 32], [j * 8, 0])
    b = self.half(x, b)
""")
    assert [each[1] for each in directions(program)] == [A.OutputExisting, A.InOut]


def test_slice_of_a_buffer_that_was_written_whole_is_ordered():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def fill(self, x: T, o: pl.Out[T]) -> T:
            o = pl.store(pl.load(x, [0, 0], [16, 32]), [0, 0], o)
            return o

        @pl.function(type=pl.FunctionType.InCore)
        def row(self, x: T, o: pl.Out[pl.Tensor[[1, 32], pl.FP32]]) -> pl.Tensor[[1, 32], pl.FP32]:
            o = pl.store(pl.load(x, [0, 0], [1, 32]), [0, 0], o)
            return o

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: T, o: pl.Out[T]) -> T:
            o = self.fill(x, o)
            for i in pl.parallel(16):
                r = pl.slice(o, [1, 32], [i, 0])
                r = self.row(x, r)
            return o

    assert [each[1] for each in directions(P)] == [A.OutputExisting, A.InOut]


def test_buffer_that_depends_on_control_flow_is_ordered():
    body = """
t = pl.create_tensor([16, 32], dtype=pl.FP32)
u = pl.create_tensor([16, 32], dtype=pl.FP32)
if n > 0:
    v = t
else:
    v = u
v = self.fill(x, v)
o = self.fill(v, o)
"""
    found = directions(with_main(body, "n: pl.Scalar[pl.INDEX], o: pl.Out[T]"))
    assert [each[1] for each in found] == [A.InOut, A.OutputExisting]


def test_same_buffer_twice_in_one_call_is_two_first_writers():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(self, x: T, o: pl.Out[T], p: pl.Out[T]) -> tuple[T, T]:
            t = pl.load(x, [0, 0], [16, 32])
            o = pl.store(t, [0, 0], o)
            p = pl.store(t, [0, 0], p)
            return o, p

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: T, o: pl.Out[T]) -> T:
            a, b = self.k(x, o, o)
            return b

    assert directions(P) == [[A.Input, A.OutputExisting, A.OutputExisting]]


def test_explicit_directions_stay_and_a_second_run_changes_nothing():
    program = with_main("o = self.fill(x, o)\no = self.fill(x, o)")
    ssa = through(program, "convert_to_ssa", "flatten_call_expr")
    once = passes.derive_call_directions()(ssa)
    assert passes.derive_call_directions()(once) is once
    main = once["main"]
    first = dispatches(main)[0]
    kept = [A.NoDep, A.NoDep]
    explicit = first.replace(attrs={"arg_directions": kept})

    def swap(stmt: ir.Stmt) -> ir.Stmt:
        from pypto.ir.walk import map_substatements

        if isinstance(stmt, ir.AssignStmt) and stmt.value is first:
            return stmt.replace(value=explicit)
        return map_substatements(stmt, swap)

    changed = once.replace(
        functions=[*(f for f in once.functions.values() if f is not main), main.replace(body=swap(main.body))]
    )
    again = passes.derive_call_directions()(changed)
    assert dispatches(again["main"])[0].arg_directions == kept


def test_submit_keeps_its_fields_and_covers_only_what_it_carries():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def fill(self, x: T, o: pl.Out[T]) -> T:
            o = pl.store(pl.load(x, [0, 0], [16, 32]), [0, 0], o)
            return o

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: T, flags: pl.Tensor[[4], pl.INT32], o: pl.Out[T]) -> T:
            t, first = pl.submit(self.fill, x)
            o, _second = pl.spmd_submit(
                self.fill,
                t,
                o,
                deps=[first],
                core_num=4,
                sync_start=True,
                allow_early_resolve=True,
                predicate=(flags[1] > 2),
            )
            return o

    assert directions(P) == [[A.Input], [A.Input, A.OutputExisting]]
    ssa = through(P, "convert_to_ssa", "flatten_call_expr")
    derived = passes.derive_call_directions()(ssa)
    for before, after in zip(dispatches(ssa["main"]), dispatches(derived["main"]), strict=True):
        assert isinstance(after, ir.Submit)
        assert str(after.type) == str(before.type) and str(after.type).endswith("pl.Scalar[pl.TASK_ID]]")
        for field in ("core_num", "sync_start", "allow_early_resolve", "predicate"):
            assert getattr(after, field) is getattr(before, field)
        assert [dep is kept for dep, kept in zip(before.deps, after.deps, strict=True)] == [True] * len(
            before.deps
        )
    assert len(dispatches(derived["main"])[1].deps) == 1
    again = passes.derive_call_directions()(derived)
    ir.assert_structural_equal(again, derived)


def test_wrappers_take_the_directions_of_what_they_dispatch_whatever_the_order():
    span = ir.Span.unknown()
    type = ir.TensorType([16, 32], pl.FP32)

    def function(
        name: str, callees: list[str], declared: ir.ParamDirection, kind: ir.FunctionType
    ) -> ir.Function:
        param = ir.Var("o", type, span)
        body = ir.flatten_stmts(
            [
                *(
                    ir.EvalStmt(ir.Call(ir.GlobalVar(callee), [param], type, span), span)
                    for callee in callees
                ),
                ir.ReturnStmt([param], span),
            ],
            span,
        )
        return ir.Function(name, [(param, declared)], [type], body, span, kind)

    Group, Spmd, AIV = ir.FunctionType.Group, ir.FunctionType.Spmd, ir.FunctionType.AIV
    In, Out, InOut = ir.ParamDirection.In, ir.ParamDirection.Out, ir.ParamDirection.InOut
    for names in (("a", "b"), ("b", "a")):
        outer, inner = names
        program = ir.Program(
            [
                function("kernel", [], InOut, AIV),
                function(inner, ["kernel", outer], In, Spmd),
                function(outer, [inner], In, Group),
                function("declared", [], InOut, Group),
                function("chained", [outer], Out, Group),
            ],
            "P",
            span,
        )
        derived = passes.derive_call_directions()(program)
        for name in (inner, outer, "declared", "chained"):
            assert derived[name].param_directions == [InOut]


def test_results_of_an_external_kernel_are_its_outputs_in_order():
    span = ir.Span.unknown()
    wide, narrow = ir.TensorType([16, 32], pl.FP32), ir.TensorType([8, 32], pl.FP32)

    def kernel(name: str, results: list[ir.Type], outputs: list[ir.Type]) -> ir.Function:
        params = [(ir.Var("x", wide, span), ir.ParamDirection.In)]
        params += [(ir.Var(f"o{i}", each, span), ir.ParamDirection.Out) for i, each in enumerate(outputs)]
        attrs = {"external_source": "/somewhere/k.cpp"}
        return ir.Function(
            name, params, results, ir.SeqStmts([], span), span, ir.FunctionType.AIV, attrs=attrs
        )

    x, a, b = (ir.Var(name, type, span) for name, type in (("x", wide), ("a", wide), ("b", narrow)))
    pair = ir.Var("pair", ir.TupleType([wide, narrow]), span)
    first, second, third = (
        ir.Var("first", wide, span),
        ir.Var("second", narrow, span),
        ir.Var("third", narrow, span),
    )
    body = ir.SeqStmts(
        [
            ir.AssignStmt(pair, ir.Call(ir.GlobalVar("two"), [x, a, b], pair.type, span), span),
            ir.AssignStmt(first, ir.TupleGetItemExpr(pair, 0, span), span),
            ir.AssignStmt(second, ir.TupleGetItemExpr(pair, 1, span), span),
            ir.AssignStmt(third, ir.Call(ir.GlobalVar("one"), [x, first, second], narrow, span), span),
            ir.EvalStmt(ir.Call(ir.GlobalVar("two"), [x, first, third], pair.type, span), span),
            ir.ReturnStmt([first], span),
        ],
        span,
    )
    main = ir.Function(
        "main",
        [(x, ir.ParamDirection.In), (a, ir.ParamDirection.Out), (b, ir.ParamDirection.Out)],
        [wide],
        body,
        span,
        ir.FunctionType.Orchestration,
    )
    kernels = [kernel("two", [wide, narrow], [wide, narrow]), kernel("one", [narrow], [wide, narrow])]
    derived = passes.derive_call_directions()(ir.Program([*kernels, main], "P", span))
    assert [call.arg_directions[1:] for call in dispatches(derived["main"])] == [
        [A.OutputExisting, A.OutputExisting],
        [A.InOut, A.InOut],
        [A.InOut, A.InOut],
    ]


def test_call_with_a_wrong_number_of_arguments_gets_no_directions():
    span = ir.Span.unknown()
    type = ir.TensorType([16, 32], pl.FP32)
    x = ir.Var("x", type, span)
    params = [ir.Var("a", type, span), ir.Var("b", type, span)]
    kernel = ir.Function("k", params, [], ir.SeqStmts([], span), span, ir.FunctionType.AIV)
    call = ir.Call(ir.GlobalVar("k"), [x], span)
    main = ir.Function("main", [x], [], ir.EvalStmt(call, span), span, ir.FunctionType.Orchestration)
    program = ir.Program([kernel, main], "P", span)
    assert passes.derive_call_directions()(program) is program
