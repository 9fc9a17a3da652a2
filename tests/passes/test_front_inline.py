"""InlineFunctions: where calls are replaced, by what, and what is rejected."""

from __future__ import annotations

import re

import pytest

import pypto
from pypto import ir, passes
from pypto.ir.walk import walk
from pypto.passes.verify.inline_functions_eliminated import verify
from pypto.testing.interpreter import run
from tests.passes.dsl import assert_same, function, program, statements


def inlined(source: ir.Program) -> ir.Program:
    return passes.inline_functions()(source)


def names(result: ir.Program, name: str = "main") -> list[str]:
    return [s.var.name_hint for s in statements(function(result, name)) if isinstance(s, ir.AssignStmt)]


HELPER = """
    @pl.inline
    def helper(self, a: T(4, 4)) -> T(4, 4):
        t = pl.add(a, a)
        return t
"""


def with_main(main: str, helpers: str = HELPER) -> ir.Program:
    return program(helpers.replace("@pl.inline", "@pl.function(type=pl.FunctionType.Inline)") + main)


def test_program_without_inline_functions_is_returned_itself() -> None:
    source = program(
        """
    @opaque
    def main(self, x: T(4, 4)) -> T(4, 4):
        y = pl.add(x, x)
        return y
    """
    )
    assert inlined(source) is source


def test_a_call_becomes_the_body_and_an_assignment_of_the_value() -> None:
    result = inlined(
        with_main(
            """
    @opaque
    def main(self, x: T(4, 4)) -> T(4, 4):
        y = self.helper(x)
        return y
    """
        )
    )
    expected = program(
        """
    @opaque
    def main(self, x: T(4, 4)) -> T(4, 4):
        t = pl.add(x, x)
        y = t
        return y
    """
    )
    assert_same(passes.convert_to_ssa()(result), expected)
    assert list(result.functions_) == ["main"]
    assert verify(result) == []


def test_two_calls_get_disjoint_locals() -> None:
    result = inlined(
        with_main(
            """
    @opaque
    def main(self, x: T(4, 4)) -> T(4, 4):
        y = self.helper(x)
        z = self.helper(y)
        return z
    """
        )
    )
    first, _, second, _ = names(result)
    assert first != second
    assert all(re.fullmatch(r"t_inline\d+", name) for name in (first, second))


def test_return_of_a_call_returns_the_values() -> None:
    result = inlined(
        with_main(
            """
    @opaque
    def main(self, x: T(4, 4)) -> T(4, 4):
        return self.helper(x)
    """
        )
    )
    last = statements(function(result, "main"))[-1]
    assert isinstance(last, ir.ReturnStmt)
    assert isinstance(last.value_[0], ir.Var) and last.value_[0].name_hint.startswith("t_inline")


def test_nested_inline_functions_are_expanded_fully() -> None:
    helpers = (
        HELPER
        + """
    @pl.inline
    def twice(self, b: T(4, 4)) -> T(4, 4):
        u = self.helper(b)
        v = self.helper(u)
        return v
"""
    )
    result = inlined(
        with_main(
            """
    @opaque
    def main(self, x: T(4, 4)) -> T(4, 4):
        y = self.twice(x)
        return y
    """,
            helpers,
        )
    )
    assert verify(result) == []
    assert len(names(result)) == 5


def test_a_tuple_result_is_never_materialised() -> None:
    helpers = """
    @pl.inline
    def pair(self, a: T(4, 4)) -> tuple[T(4, 4), T(4, 4)]:
        p = pl.add(a, a)
        q = pl.mul(a, a)
        return p, q
"""
    result = inlined(
        with_main(
            """
    @opaque
    def main(self, x: T(4, 4)) -> T(4, 4):
        u, v = self.pair(x)
        w = pl.add(u, v)
        return w
    """,
            helpers,
        )
    )
    expected = program(
        """
    @opaque
    def main(self, x: T(4, 4)) -> T(4, 4):
        p = pl.add(x, x)
        q = pl.mul(x, x)
        u = p
        v = q
        w = pl.add(u, v)
        return w
    """
    )
    assert_same(passes.convert_to_ssa()(result), expected)


def test_a_swap_through_an_inline_function_keeps_both_values() -> None:
    helpers = """
    @pl.inline
    def swap(self, a: I, b: I) -> tuple[I, I]:
        return b, a
"""
    source = with_main(
        """
    @opaque
    def main(self, m: I, n: I) -> tuple[I, I]:
        m, n = self.swap(m, n)
        return m, n
    """,
        helpers,
    )
    assert run(inlined(source), "main", 1, 2) == [2, 1]


def test_a_tuple_read_after_its_block_keeps_its_values() -> None:
    helpers = """
    @pl.inline
    def swap(self, a: I, b: I) -> tuple[I, I]:
        return b, a
"""
    source = with_main(
        """
    @opaque
    def main(self, m: I, n: I) -> tuple[I, I]:
        for i in pl.range(1):
            t = self.swap(m, n)
        m = t[0]
        n = t[1]
        return m, n
    """,
        helpers,
    )
    assert run(inlined(source), "main", 1, 2) == [2, 1]


def test_an_assigned_parameter_rebinds_the_variable_of_the_caller() -> None:
    helpers = """
    @pl.inline
    def fill(self, a: T(4, 4)):
        a = pl.add(a, a)
"""
    result = inlined(
        with_main(
            """
    @opaque
    def main(self, x: T(4, 4)) -> T(4, 4):
        y = pl.mul(x, x)
        self.fill(y)
        return y
    """,
            helpers,
        )
    )
    expected = program(
        """
    @opaque
    def main(self, x: T(4, 4)) -> T(4, 4):
        y = pl.mul(x, x)
        y = pl.add(y, y)
        return y
    """
    )
    assert_same(passes.convert_to_ssa()(result), expected)


@pytest.mark.parametrize("annotation", ["I", "pl.Out[T(4, 4)]", "pl.InOut[T(4, 4)]"])
def test_the_caller_reads_what_the_body_made_of_its_argument(annotation: str) -> None:
    """Whatever the direction of the parameter is, its assignment is one of the caller's variable."""
    is_scalar = annotation == "I"
    type_ = "I" if is_scalar else "T(4, 4)"
    step = "a * 2" if is_scalar else "pl.add(a, a)"
    helpers = f"""
    @pl.inline
    def double(self, a: {annotation}) -> {type_}:
        a = {step}
        return a
"""
    main = f"""
    @opaque
    def main(self, x: {annotation}) -> tuple[{type_}, {type_}]:
        q = self.double(x)
        return q, x
    """
    doubled = "x * 2" if is_scalar else "pl.add(x, x)"
    expected = main.replace("q = self.double(x)", f"x = {doubled}\n        q = x")
    assert_same(passes.convert_to_ssa()(inlined(with_main(main, helpers))), program(expected))


def test_an_argument_expression_is_evaluated_before_the_body_changes_its_variable() -> None:
    helpers = """
    @pl.inline
    def bump(self, a: I, b: I) -> I:
        a = a + 1
        return b
"""
    source = with_main(
        """
    @opaque
    def main(self, n: I) -> I:
        r = self.bump(n, n * 2)
        return r
    """,
        helpers,
    )
    assert run(inlined(source), "main", 5) == [10]


def test_a_parameter_keeps_its_value_when_another_one_of_the_same_variable_is_assigned() -> None:
    helpers = """
    @pl.inline
    def bump(self, a: I, b: I) -> I:
        a = a + b
        a = a + b
        return a
"""
    source = with_main(
        """
    @opaque
    def main(self, n: I) -> I:
        r = self.bump(n, n)
        return r
    """,
        helpers,
    )
    assert run(inlined(source), "main", 5) == [15]


def test_a_returned_expression_keeps_the_values_it_was_computed_from() -> None:
    helpers = """
    @pl.inline
    def both(self, a: I, b: I) -> tuple[I, I]:
        return a + b, a - b
"""
    source = with_main(
        """
    @opaque
    def main(self, m: I, n: I) -> tuple[I, I]:
        m, n = self.both(m, n)
        return m, n
    """,
        helpers,
    )
    assert run(inlined(source), "main", 7, 2) == [9, 5]


def test_assigning_a_parameter_that_is_an_expression_is_an_error_that_names_it() -> None:
    helpers = """
    @pl.inline
    def bump(self, a: I) -> I:
        a = a + 1
        return a
"""
    source = with_main(
        """
    @opaque
    def main(self, n: I) -> I:
        r = self.bump(n * 2)
        return r
    """,
        helpers,
    )
    with pytest.raises(ValueError, match=r"'bump' assigns its parameter 'a'"):
        inlined(source)


def call(name: str, *args: ir.Expr, type_: ir.Type) -> ir.Call:
    return ir.Call(ir.GlobalVar(name), list(args), type_, S)


S = ir.Span.unknown()
SCALAR = ir.ScalarType(ir.DataType.INDEX)


def inline_function(name: str, body: ir.Stmt, params: list[ir.Var]) -> ir.Function:
    return ir.Function(name, params, [SCALAR], body, S, type=ir.FunctionType.Inline)


def test_a_cycle_is_rejected_before_anything_changes() -> None:
    a, b = ir.Var("a", SCALAR, S), ir.Var("b", SCALAR, S)
    first = inline_function("f", ir.ReturnStmt([call("g", a, type_=SCALAR)], S), [a])
    second = inline_function("g", ir.ReturnStmt([call("f", b, type_=SCALAR)], S), [b])
    with pytest.raises(ValueError, match="Cycle detected in FunctionType::Inline call graph: f -> g -> f"):
        inlined(ir.Program([first, second], "P", S))


def test_a_return_inside_a_branch_is_an_internal_error() -> None:
    a = ir.Var("a", SCALAR, S)
    branch = ir.IfStmt(ir.gt(a, a), ir.ReturnStmt([a], S), None, [], S)
    helper = inline_function("f", ir.SeqStmts([branch, ir.ReturnStmt([a], S)], S), [a])
    with pytest.raises(pypto.InternalError, match="non-trailing ReturnStmt"):
        inlined(ir.Program([helper], "P", S))


def test_a_wrong_number_of_arguments_is_an_internal_error() -> None:
    a, x, y = (ir.Var(name, SCALAR, S) for name in "axy")
    helper = inline_function("f", ir.ReturnStmt([a], S), [a])
    body = ir.SeqStmts([ir.AssignStmt(y, call("f", type_=SCALAR), S), ir.ReturnStmt([y], S)], S)
    main = ir.Function("main", [x], [SCALAR], body, S)
    with pytest.raises(pypto.InternalError, match=r"'f' takes 1 arguments, but the call passes 0"):
        inlined(ir.Program([helper, main], "P", S))


def test_an_uncalled_inline_function_is_dropped() -> None:
    a, x = ir.Var("a", SCALAR, S), ir.Var("x", SCALAR, S)
    helper = inline_function("f", ir.ReturnStmt([a], S), [a])
    main = ir.Function("main", [x], [SCALAR], ir.ReturnStmt([x], S), S)
    result = inlined(ir.Program([helper, main], "P", S))
    assert list(result.functions_) == ["main"] and result.functions_["main"] is main


def test_a_call_nested_in_an_expression_stays_and_is_reported() -> None:
    a, x, y = (ir.Var(name, SCALAR, S) for name in "axy")
    helper = inline_function("f", ir.ReturnStmt([a], S), [a])
    nested = ir.add(call("f", x, type_=SCALAR), x)
    body = ir.SeqStmts([ir.AssignStmt(y, nested, S), ir.ReturnStmt([y], S)], S)
    result = inlined(ir.Program([helper, ir.Function("main", [x], [SCALAR], body, S)], "P", S))
    found = verify(result)
    assert [each.error_code for each in found] == [2]
    assert found[0].message.startswith("Dangling Call to function")


def test_a_local_that_is_named_as_in_ssa_form_is_renamed_from_its_base() -> None:
    a, x, y = (ir.Var(name, SCALAR, S) for name in "axy")
    local = ir.Var("t__ssa_v0", SCALAR, S)
    body = ir.SeqStmts([ir.AssignStmt(local, ir.add(a, a), S), ir.ReturnStmt([local], S)], S)
    main = ir.Function(
        "main",
        [x],
        [SCALAR],
        ir.SeqStmts([ir.AssignStmt(y, call("f", x, type_=SCALAR), S), ir.ReturnStmt([y], S)], S),
        S,
    )
    result = inlined(ir.Program([inline_function("f", body, [a]), main], "P", S))
    assert re.fullmatch(r"t_inline\d+", names(result)[0])
    passes.convert_to_ssa()(result)


def test_dump_tags_move_to_the_scopes_and_calls_that_use_the_variable() -> None:
    tensor = ir.TensorType([4, 4], ir.DataType.FP32)
    a, x, t, u = (ir.Var(name, tensor, S) for name in "axtu")
    scoped = ir.InCoreScopeStmt(
        body=ir.AssignStmt(t, ir.Call(ir.Op("tensor.add"), [a, a], tensor, S), S), span=S
    )
    body = ir.SeqStmts([scoped, ir.AssignStmt(u, call("k", a, type_=tensor), S)], S)
    helper = ir.Function("f", [a], [], body, S, type=ir.FunctionType.Inline)
    tagged = ir.Call(ir.GlobalVar("f"), [x], {}, {"dump_vars": [x]}, ir.TupleType([]), S)
    kernel = ir.Function("k", [ir.Var("p", tensor, S)], [tensor], ir.ReturnStmt([], S), S)
    main = ir.Function("main", [x], [], ir.EvalStmt(tagged, S), S)
    scope, assign = statements(function(inlined(ir.Program([helper, kernel, main], "P", S)), "main"))
    assert scope.attrs["dump_vars"][0] is x
    assert assign.value.attrs["dump_vars"][0] is x
    assert "dump_vars" not in scope.body.value.attrs


def test_a_call_as_a_statement_drops_the_values() -> None:
    helpers = """
    @pl.inline
    def pair(self, a: T(4, 4)) -> tuple[T(4, 4), T(4, 4)]:
        t = pl.add(a, a)
        u = pl.mul(a, a)
        return t, u
"""
    result = inlined(
        with_main(
            """
    @opaque
    def main(self, x: T(4, 4)) -> T(4, 4):
        self.pair(x)
        return x
    """,
            helpers,
        )
    )
    stems = [re.sub(r"_inline\d+$", "", name) for name in names(result)]
    assert stems == ["t", "u"] and verify(result) == []
    assert len(statements(function(result, "main"))) == 3


def test_a_value_of_a_function_without_a_return_is_an_internal_error_that_names_it() -> None:
    span, tensor = ir.Span.unknown(), ir.TensorType([4, 4], ir.DataType.FP32)
    x, y = ir.Var("x", tensor, span), ir.Var("y", tensor, span)
    nothing = ir.Function("nothing", [], [], ir.SeqStmts([], span), span, ir.FunctionType.Inline)
    call = ir.Call(ir.GlobalVar("nothing"), [], tensor, span)
    body = ir.SeqStmts([ir.AssignStmt(y, call, span), ir.ReturnStmt([y], span)], span)
    main = ir.Function("main", [x], [tensor], body, span)
    with pytest.raises(pypto.InternalError, match="nothing"):
        inlined(ir.Program([nothing, main], "P", span))


def test_an_inline_function_that_calls_itself_is_a_cycle() -> None:
    span = ir.Span.unknown()
    call = ir.EvalStmt(ir.Call(ir.GlobalVar("again"), [], span), span)
    again = ir.Function("again", [], [], call, span, ir.FunctionType.Inline)
    message = "Cycle detected in FunctionType::Inline call graph: again -> again"
    with pytest.raises(ValueError, match=message):
        inlined(ir.Program([again], "P", span))


STORE = """
    @pl.inline
    def put(self, a: T(4, 4), o: pl.Out[T(4, 4)]) -> T(4, 4):
        t = pl.load(a, [0, 0], [4, 4])
        return pl.store(t, [0, 0], o)
"""


def operators(result: ir.Program) -> list[str]:
    """The operators of the statements of `main`, nested ones first."""
    nodes = [node for stmt in statements(function(result, "main")) for node in walk(stmt)]
    return [node.op.name.removeprefix("tensor.") for node in nodes if isinstance(node, ir.Call)]


def test_a_returned_store_is_made_although_its_value_is_dropped() -> None:
    result = inlined(
        with_main(
            """
    @incore
    def main(self, x: T(4, 4), out: pl.Out[T(4, 4)]) -> T(4, 4):
        self.put(x, out)
        return out
    """,
            STORE,
        )
    )
    assert operators(result) == ["tile.load", "tile.store"]


def test_an_argument_is_read_before_the_body_writes_its_memory() -> None:
    helpers = """
    @pl.inline
    def h(self, s: pl.Scalar[pl.FP32], o: T(4, 4)):
        pl.write(o, [0, 0], 5.0)
        pl.write(o, [0, 1], s)
"""
    result = inlined(
        with_main(
            """
    @incore
    def main(self, x: pl.InOut[T(4, 4)]) -> T(4, 4):
        self.h(pl.read(x, [0, 0]), x)
        return x
    """,
            helpers,
        )
    )
    assert operators(result) == ["read", "write", "write"]


def test_a_call_in_an_argument_that_writes_or_allocates_is_made_once() -> None:
    helpers = """
    @pl.inline
    def both(self, a: T(4, 4), o: T(4, 4)) -> T(4, 4):
        pl.write(o, [0, 0], pl.read(a, [0, 0]))
        pl.write(o, [0, 1], pl.read(a, [0, 1]))
        return o
"""
    result = inlined(
        with_main(
            """
    @orch
    def main(self, x: T(4, 4)) -> T(4, 4):
        y = self.both(x, pl.create_tensor([4, 4], dtype=pl.FP32))
        return y
    """,
            helpers,
        )
    )
    assert operators(result) == ["create", "write", "read", "write", "read"]


def test_an_element_of_a_tuple_is_read_before_the_caller_writes_its_memory() -> None:
    helpers = """
    @pl.inline
    def first(self, o: T(4, 4)) -> tuple[pl.Scalar[pl.FP32], T(4, 4)]:
        return pl.read(o, [0, 0]), o
"""
    result = inlined(
        with_main(
            """
    @incore
    def main(self, x: pl.InOut[T(4, 4)]) -> T(4, 4):
        t = self.first(x)
        pl.write(x, [0, 0], 9.0)
        pl.write(x, [0, 1], t[0])
        return x
    """,
            helpers,
        )
    )
    assert operators(result) == ["read", "write", "write"]
