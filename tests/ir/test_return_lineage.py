"""Which parameter a function returns, by way of copies, in-place operators, loops and other functions."""

from __future__ import annotations

import pytest

from pypto import ir, passes
from pypto.ir.return_lineage import ReturnLineage, explicit_returned_params
from tests.passes.dsl import function, program


def lineage(methods: str, name: str = "f") -> tuple[int | None, ...]:
    source = passes.convert_to_ssa()(program(methods))
    return ReturnLineage(source.functions_).returned_params(function(source, name))


def test_a_store_returns_its_destination():
    assert lineage(
        """
        @incore
        def f(self, x: T(64), o: pl.Out[T(64)]) -> T(64):
            t = pl.load(x, [0], [64])
            a = pl.store(t, [0], o)
            b = pl.store(t, [0], a)
            return b
        """
    ) == (1,)


def test_an_assemble_returns_its_first_argument_and_an_add_none():
    assert lineage(
        """
        @incore
        def f(self, x: T(64), o: pl.Out[T(64)]) -> tuple[T(64), T(64)]:
            y = pl.add(x, x)
            o = pl.assemble(o, y, [0])
            return y, o
        """
    ) == (None, 1)


def test_a_view_is_not_the_parameter():
    assert lineage(
        """
        @incore
        def f(self, x: T(64)) -> T(8, 8):
            y = pl.reshape(x, [8, 8])
            return y
        """
    ) == (None,)


def test_a_loop_result_is_its_initial_value():
    assert lineage(
        """
        @incore
        def f(self, x: T(64), o: pl.Out[T(64)], n: I) -> T(64):
            for i in pl.range(n):
                t = pl.load(x, [0], [64])
                o = pl.store(t, [0], o)
            return o
        """
    ) == (1,)


def test_the_result_of_a_branch_is_not_followed():
    assert lineage(
        """
        @incore
        def f(self, x: T(64), o: pl.Out[T(64)], cond: B) -> T(64):
            if cond:
                t = pl.load(x, [0], [64])
                o = pl.store(t, [0], o)
            return o
        """
    ) == (None,)


KERNELS = """
        @incore
        def one(self, a: T(64), b: pl.Out[T(64)]) -> T(64):
            t = pl.load(a, [0], [64])
            b = pl.store(t, [0], b)
            return b
        @incore
        def two(self, a: pl.InOut[T(64)], b: pl.Out[T(64)]) -> tuple[T(64), T(64)]:
            t = pl.load(a, [0], [64])
            b = pl.store(t, [0], b)
            a = pl.store(t, [0], a)
            return b, a
"""


def test_calls_are_followed_into_their_functions():
    assert lineage(
        KERNELS
        + """
        @group
        def f(self, x: T(64), y: T(64), z: T(64)) -> tuple[T(64), T(64), T(64)]:
            z = self.one(x, z)
            p, q = self.two(y, z)
            return p, q, z
        """
    ) == (2, 1, 2)


def test_a_wrapper_without_return_forwards_its_only_fitting_dispatch():
    source = passes.convert_to_ssa()(program(KERNELS))
    span = ir.Span.unknown()
    one = function(source, "one")
    params = [ir.Var(name, one.params_[0].type, span) for name in ("u", "v", "w")]
    call = ir.Call(ir.GlobalVar("one"), [params[2], params[0]], one.return_types_[0], span)
    body = ir.EvalStmt(call, span)
    wrapper = ir.Function("f", params, [one.return_types_[0]], body, span, ir.FunctionType.Spmd)
    assert ReturnLineage(source.functions_).returned_params(wrapper) == (0,)
    twice = wrapper.replace(body=ir.SeqStmts([body, body], span))
    assert ReturnLineage(source.functions_).returned_params(twice) == ()


def test_a_forwarded_tuple_is_expanded():
    source = passes.convert_to_ssa()(program(KERNELS))
    span = ir.Span.unknown()
    two = function(source, "two")
    params = [ir.Var(name, two.params_[0].type, span) for name in ("u", "v")]
    whole = ir.Var("whole", ir.TupleType(two.return_types_), span)
    call = ir.Call(ir.GlobalVar("two"), params, whole.type, span)
    body = ir.SeqStmts([ir.AssignStmt(whole, call, span), ir.ReturnStmt([whole], span)], span)
    wrapper = ir.Function("f", params, two.return_types_, body, span, ir.FunctionType.Group)
    assert ReturnLineage(source.functions_).returned_params(wrapper) == (1, 0)


def _call_chain(length: int, *, cyclic: bool) -> dict[str, ir.Function]:
    """Functions f0, f1, ... of one parameter, each of which returns what the next one returns."""
    span = ir.Span.unknown()
    tensor = ir.TensorType([64], ir.DataType.FP32)
    functions = {}
    for number in range(length):
        param, result = ir.Var("p", tensor, span), ir.Var("r", tensor, span)
        value: ir.Expr = param
        if cyclic or number + 1 < length:
            value = ir.Call(ir.GlobalVar(f"f{(number + 1) % length}"), [param], tensor, span)
        body = ir.SeqStmts([ir.AssignStmt(result, value, span), ir.ReturnStmt([result], span)], span)
        functions[f"f{number}"] = ir.Function(f"f{number}", [param], [tensor], body, span)
    return functions


def test_a_long_chain_of_calls_needs_no_recursion():
    functions = _call_chain(20_000, cyclic=False)
    assert ReturnLineage(functions).returned_params(functions["f0"]) == (0,)


@pytest.mark.parametrize("length", [1, 2, 5])
def test_recursive_functions_say_nothing(length: int):
    functions = _call_chain(length, cyclic=True)
    shared = ReturnLineage(functions)
    for function_ in functions.values():
        assert shared.returned_params(function_) == (None,)
        assert ReturnLineage(functions).returned_params(function_) == (None,)


def test_many_results_of_one_long_chain_follow_it_once():
    span = ir.Span.unknown()
    tensor = ir.TensorType([64], ir.DataType.FP32)
    param = ir.Var("p", tensor, span)
    chain = [param]
    body: list[ir.Stmt] = []
    for number in range(5_000):
        chain.append(ir.Var(f"v{number}", tensor, span))
        body.append(ir.AssignStmt(chain[-1], chain[-2], span))
    body.append(ir.ReturnStmt(chain, span))
    found = ir.Function("f", [param], [tensor] * len(chain), ir.SeqStmts(body, span), span)
    assert set(ReturnLineage({}).returned_params(found)) == {0}


def test_a_submit_that_omits_an_output_shifts_nothing_before_it():
    source = passes.convert_to_ssa()(program(KERNELS))
    span = ir.Span.unknown()
    two = function(source, "two")
    tensor = two.params_[0].type
    param = ir.Var("u", tensor, span)
    kind = ir.TupleType([tensor, tensor, ir.ScalarType(ir.DataType.TASK_ID)])
    whole, first, second = (ir.Var(name, t, span) for name, t in (("w", kind), ("a", tensor), ("b", tensor)))
    submit = ir.Submit(ir.GlobalVar("two"), [param], [], kind, span)
    body = ir.SeqStmts(
        [
            ir.AssignStmt(whole, submit, span),
            ir.AssignStmt(first, ir.TupleGetItemExpr(whole, 0, span), span),
            ir.AssignStmt(second, ir.TupleGetItemExpr(whole, 1, span), span),
            ir.ReturnStmt([first, second], span),
        ],
        span,
    )
    wrapper = ir.Function("f", [param], [tensor, tensor], body, span, ir.FunctionType.Group)
    assert ReturnLineage(source.functions_).returned_params(wrapper) == (None, 0)


def test_the_explicit_map_looks_at_returned_parameters_only():
    source = passes.convert_to_ssa()(program(KERNELS))
    assert explicit_returned_params(function(source, "one")) == (None,)
    span = ir.Span.unknown()
    one = function(source, "one")
    explicit = one.replace(body=ir.ReturnStmt([one.params_[1]], span))
    assert explicit_returned_params(explicit) == (1,)


def test_a_loop_that_goes_on_with_another_tensor_does_not_return_what_it_started_from():
    import pypto.language as pl
    from pypto import passes

    program = passes.convert_to_ssa()(
        pl.parse_program("""
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def other(self, x: pl.Tensor[[8], pl.FP32], y: pl.Tensor[[8], pl.FP32]) -> pl.Tensor[[8], pl.FP32]:
        for i in pl.range(2):
            x = y
        return x

    @pl.function(type=pl.FunctionType.InCore)
    def updated(
        self, x: pl.Tensor[[8], pl.FP32], y: pl.InOut[pl.Tensor[[8], pl.FP32]], n: pl.Scalar[pl.INDEX]
    ) -> pl.Tensor[[8], pl.FP32]:
        for i in pl.range(2):
            if n > i:
                y = pl.assemble(y, x, [0])
        return y
""")
    )
    lineage = ReturnLineage(program.functions_)
    assert lineage.returned_params(program.functions_["other"]) == (None,)
    assert lineage.returned_params(program.functions_["updated"]) == (1,)


@pytest.mark.parametrize(
    ("results", "written", "returned"),
    [
        ([64], [64], (1,)),
        ([64], [64, 64], (1,)),
        ([8], [64, 8], (2,)),
        ([64, 8], [64, 8], (1, 2)),
        ([64, 8], [64], ()),
        ([], [64], ()),
    ],
)
def test_results_of_a_hand_written_kernel_are_what_it_writes(results, written, returned):
    span = ir.Span.unknown()
    params = [(ir.Var("x", ir.TensorType([64], ir.DataType.FP32), span), ir.ParamDirection.In)]
    params += [
        (ir.Var(f"o{i}", ir.TensorType([extent], ir.DataType.FP32), span), ir.ParamDirection.Out)
        for i, extent in enumerate(written)
    ]
    kernel = ir.Function(
        "k",
        params,
        [ir.TensorType([extent], ir.DataType.FP32) for extent in results],
        ir.SeqStmts([], span),
        span,
        ir.FunctionType.AIV,
        attrs={"external_source": "/somewhere/k.cpp"},
    )
    assert ReturnLineage({"k": kernel}).returned_params(kernel) == returned
    assert explicit_returned_params(kernel) == returned
