from __future__ import annotations

import pytest

from pypto import ir, passes
from tests.passes.dsl import function, program, run

In, Out, InOut = ir.ParamDirection.In, ir.ParamDirection.Out, ir.ParamDirection.InOut


def direction_of_o(body: str, *, options: str = "") -> ir.ParamDirection:
    """The direction of the captured tensor `o` of a scope with the given body."""
    lines = "\n".join(f"                {line}" for line in body.strip().splitlines())
    result = run(
        program(
            f"""
        @orch
        def main(self, x: T(64), o: pl.InOut[T(64)], cond: B, n: I) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP{options}):
{lines}
            return o
        """
        ),
        passes.outline_incore_scopes,
    )
    kernel = function(result, "main_incore_0")
    found = dict(zip(kernel.params_, kernel.param_directions_, strict=True))
    return next(way for param, way in found.items() if param.name_hint.partition("__")[0] == "o")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("t = pl.load(x, [0], [64])\npl.store(t, [0], o)", Out, id="stored only"),
        pytest.param("y = pl.add(x, x)\no = pl.assemble(o, y, [0])", Out, id="assembled into only"),
        pytest.param("t = pl.load(o, [0], [64])\npl.store(t, [0], o)", InOut, id="loaded before"),
        pytest.param(
            "t = pl.load(x, [0], [64])\npl.store(t, [0], o)\ny = pl.add(o, o)", InOut, id="read after"
        ),
        pytest.param(
            "t = pl.load(x, [0], [64])\no = pl.store(t, [0], o)\nu = pl.load(o, [0], [64])",
            InOut,
            id="read through the result of the store",
        ),
        pytest.param("s = pl.slice(o, [8], [0])\no = pl.assemble(o, s, [8])", InOut, id="sliced first"),
        pytest.param(
            "t = pl.load(x, [0], [64])\nif cond:\n    o = pl.store(t, [0], o)",
            InOut,
            id="stored in one branch and merged",
        ),
        pytest.param(
            "t = pl.load(x, [0], [64])\nif cond:\n    pl.store(t, [0], o)",
            Out,
            id="stored in one branch, not merged",
        ),
        pytest.param(
            "for i in pl.range(n):\n    t = pl.load(x, [0], [64])\n    o = pl.store(t, [0], o)",
            In,
            id="initial value of a loop that stores",
        ),
        pytest.param(
            "t = pl.load(x, [0], [64])\no = pl.store(t, [0], o)\n"
            "for i in pl.range(n):\n    u = pl.load(x, [0], [64])\n    o = pl.store(u, [0], o)",
            InOut,
            id="stored, then initial value of a loop",
        ),
        pytest.param(
            "t = pl.load(x, [0], [64])\npl.store(t, [0], o, atomic=pl.AtomicType.Add)",
            InOut,
            id="atomic store",
        ),
        pytest.param(
            "y = pl.add(x, x)\no = pl.assemble(o, y, [0])\nz = pl.add(o, x)",
            InOut,
            id="read through the result of the assemble",
        ),
        pytest.param(
            "y = pl.slice(x, [8], [0])\no = pl.assemble(o, y, [0])\no = pl.assemble(o, y, [8])",
            Out,
            id="chain of assembles",
        ),
        pytest.param(
            "y = pl.add(x, x)\no = pl.assemble(o, y, [0], atomic=pl.AtomicType.Add)",
            InOut,
            id="atomic assemble",
        ),
        pytest.param("pl.write(o, [0], 1.0)", In, id="written by element"),
        pytest.param("y = pl.add(o, x)", In, id="read only"),
    ],
)
def test_direction_of_a_captured_tensor(body: str, expected: ir.ParamDirection):
    assert direction_of_o(body) is expected


@pytest.mark.parametrize(
    "body",
    [
        "t = pl.load(x, [0], [64])\npl.store(t, [0], o)",
        "y = pl.add(x, x)\no = pl.assemble(o, y, [0])",
    ],
    ids=["store", "assemble"],
)
def test_naming_a_tensor_for_a_dump_does_not_read_it(body: str):
    assert direction_of_o(body, options=", dumps=[o]") is Out


def test_declared_directions_of_the_caller_never_change():
    source = program(
        """
        @orch
        def main(self, x: T(64), o: pl.Out[T(64)]) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(o, [0], [64])
                pl.store(t, [0], o)
            return o
        """
    )
    result = run(source, passes.outline_incore_scopes)
    assert function(result, "main").param_directions_ == (In, Out)
    assert function(result, "main_incore_0").param_directions_ == (InOut,)


def test_a_formal_that_is_only_a_destination_inside_an_spmd_is_out_in_the_kernel():
    source = program(
        """
        @orch
        def main(self, x: T(128, 32), o: pl.Out[T(128, 32)]) -> T(128, 32):
            for b in pl.spmd(4):
                t = pl.load(x, [b * 32, 0], [32, 32])
                o = pl.store(t, [b * 32, 0], o)
            return o
        """
    )
    result = run(source, passes.outline_incore_scopes, passes.outline_cluster_scopes)
    assert function(result, "main_incore_0").param_directions_ == (In, Out)
    assert function(result, "main_spmd_0").param_directions_ == (In, Out)


def group_directions(body: str, kernels: str = "") -> dict[str, ir.ParamDirection]:
    lines = "\n".join(f"                {line}" for line in body.strip().splitlines())
    result = run(
        program(
            f"""
        @incore
        def read_write(self, a: T(64), b: pl.Out[T(64)]) -> T(64):
            t = pl.load(a, [0], [64])
            b = pl.store(t, [0], b)
            return b
        @incore
        def update(self, a: T(64), b: pl.InOut[T(64)]) -> T(64):
            t = pl.load(b, [0], [64])
            b = pl.store(t, [0], b)
            return b
        @orch
        def main(self, x: T(64), o: pl.InOut[T(64)]) -> T(64):
            with pl.cluster():
{lines}
            return o
        """
        ),
        passes.outline_cluster_scopes,
    )
    group = function(result, "main_cluster_0")
    names = (param.name_hint.partition("__")[0] for param in group.params_)
    return dict(zip(names, group.param_directions_, strict=True))


def test_a_wrapper_takes_the_directions_of_the_functions_it_calls():
    assert group_directions("o = self.read_write(x, o)") == {"x": In, "o": Out}
    assert group_directions("o = self.update(x, o)") == {"x": In, "o": InOut}


def test_the_same_tensor_in_an_in_and_an_out_slot_merges_to_out():
    assert group_directions("o = self.read_write(o, o)") == {"o": Out}


def test_a_tensor_that_is_loaded_stored_and_passed_to_an_out_slot_is_inout():
    body = "t = pl.load(o, [0], [64])\npl.store(t, [0], o)\nself.read_write(x, o)"
    assert group_directions(body)["o"] is InOut


def test_arguments_of_a_submit_count_like_those_of_a_call():
    source = program(
        """
        @incore
        def read_write(self, a: T(64), b: pl.Out[T(64)]) -> T(64):
            t = pl.load(a, [0], [64])
            b = pl.store(t, [0], b)
            return b
        @orch
        def main(self, x: T(64), o: pl.InOut[T(64)]) -> T(64):
            with pl.spmd(2):
                o = self.read_write(x, o)
            return o
        """
    )
    ssa = run(source)
    main = function(ssa, "main")
    scope = ir.flatten_to_stmts(main.body)[0]
    (assign,) = ir.flatten_to_stmts(scope.body)
    call = assign.value
    submit = ir.Submit(
        call.op, call.args_, [], ir.TupleType([call.type, ir.ScalarType(ir.DataType.TASK_ID)]), call.span
    )
    whole = ir.Var("ret", submit.type, call.span)
    unpacked = [
        ir.AssignStmt(whole, submit, call.span),
        ir.AssignStmt(assign.var, ir.TupleGetItemExpr(whole, 0, call.span), call.span),
    ]
    body = ir.flatten_stmts(
        [scope.replace(body=ir.SeqStmts(unpacked, call.span)), *ir.flatten_to_stmts(main.body)[1:]], call.span
    )
    changed = ir.Program([main.replace(body=body), function(ssa, "read_write")], "P", ssa.span)
    result = passes.outline_cluster_scopes()(changed)
    assert function(result, "main_spmd_0").param_directions_ == (In, Out)
