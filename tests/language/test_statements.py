"""Assignments, subscripts, loops, branches."""

# ruff: noqa: E501 - lines and returns of DSL programs are what is tested

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto import ir
from pypto.language.parser import (
    InvalidOperationError,
    ParserSyntaxError,
    ParserTypeError,
    SSAViolationError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)
from tests.language.source import function, main_of, statements, stmts_of

X = "x: pl.Tensor[[64], pl.FP32]"
X2 = "x: pl.Tensor[[64, 32], pl.FP32]"
S = "s: pl.Scalar[pl.INDEX]"


def ints(exprs):
    return [e.value for e in exprs]


# -- assignment ----------------------------------------------------------------------------------------------


def test_assigning_a_parameter_again_keeps_its_variable():
    f = function(X, "x = pl.add(x, 1.0)\nx = pl.add(x, 1.0)\nreturn x")
    assert all(stmt.var is f.params[0] for stmt in stmts_of(f.body)[:2])


def test_strict_ssa_rejects_a_second_binding_and_names_the_first():
    with pytest.raises(SSAViolationError, match="Variable 'y' is already defined") as caught:
        statements(X, "y = pl.add(x, 1.0)\ny = pl.add(x, 1.0)\nreturn y", decorator="strict_ssa=True")
    assert caught.value.previous_span["line"] == caught.value.span["line"] - 1
    assert caught.value.hint and caught.value.note


def test_strict_ssa_of_a_program_applies_to_its_methods():
    code = (
        f"@pl.program(strict_ssa=True)\nclass P:\n    @pl.function\n    def f(self, {X}):\n"
        "        y = pl.exp(x)\n        y = pl.exp(x)\n        return y\n"
    )
    with pytest.raises(SSAViolationError):
        pl.parse(code)


def test_assigning_another_type_is_rejected():
    with pytest.raises(ParserTypeError, match=r"Cannot reassign 'y' with a different type: was .* got"):
        statements(f"{X}, a: pl.Tensor[[8], pl.FP32]", "y = pl.exp(x)\ny = pl.exp(a)\nreturn y")


def test_symbolic_extents_are_simplified_before_types_are_compared():
    assignments = statements(
        f"{X}, k: pl.Scalar[pl.INDEX]",
        "y = pl.tensor.slice(x, [(k + 16) - k], [0])\ny = x[0:16]\ny = x[k:k + 16]\nreturn y",
    )[:3]
    assert isinstance(assignments[0].var.type.shape[0], ir.Sub)
    assert len({id(stmt.var) for stmt in assignments}) == 1


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ("a = b = x", ParserSyntaxError, "Unsupported assignment"),
        ("x.attr = 1", ParserSyntaxError, "Unsupported assignment"),
        ("[a, b] = x", ParserSyntaxError, "Unsupported assignment"),
        ("a, *b = x", ParserSyntaxError, "Tuple unpacking target must be a variable name"),
        ("(a, b[0]) = x", ParserSyntaxError, "Tuple unpacking target must be a variable name"),
        ("y: pl.Tensor[[64], pl.FP32]", UnsupportedFeatureError, "with no value"),
        (
            "x.y: pl.Tensor[[64], pl.FP32] = x",
            ParserSyntaxError,
            "Only simple variable assignments supported",
        ),
        ("x += 1", UnsupportedFeatureError, "Unsupported statement type: AugAssign"),
        ("assert x", UnsupportedFeatureError, "Unsupported statement type: Assert"),
        ("import os", UnsupportedFeatureError, "Unsupported statement type: Import"),
        ("del x", UnsupportedFeatureError, "Unsupported statement type: Delete"),
        ("def g(): pass", UnsupportedFeatureError, "Unsupported statement type: FunctionDef"),
        ("class G: pass", UnsupportedFeatureError, "Unsupported statement type: ClassDef"),
        ("raise x", UnsupportedFeatureError, "Unsupported statement type: Raise"),
        ("try:\n    pass\nfinally:\n    pass", UnsupportedFeatureError, "Unsupported statement type: Try"),
        ("match x:\n    case _:\n        pass", UnsupportedFeatureError, "Unsupported statement type: Match"),
    ],
)
def test_unsupported_statements(body, error, message):
    with pytest.raises(error, match=message) as caught:
        statements(X, f"{body}\nreturn x")
    assert caught.value.hint


def test_tuple_unpacking_goes_through_a_temporary():
    kernels = """
    @pl.function
    def two(self, x: pl.Tensor[[64], pl.FP32]) -> tuple[pl.Tensor[[64], pl.FP32], pl.Tensor[[64], pl.FP32]]:
        return x, x
    """
    temp, a, b, _ = main_of("a, b = self.two(x)\nreturn a", params=X, kernels=kernels)
    assert temp.var.name_hint == "_tuple_tmp"
    assert [(s.value.tuple is temp.var, s.value.index) for s in (a, b)] == [(True, 0), (True, 1)]


def test_unpacking_twice_with_different_types_uses_separate_temporaries():
    statements(f"{X}, {S}", "a, b = (x, s)\nc, d = (s, x)\nreturn a")


def test_expression_statements_are_kept():
    first, _ = statements(X, "pl.exp(x)\nreturn x")
    assert isinstance(first, ir.EvalStmt)


# -- reads ---------------------------------------------------------------------------------------------------


def test_scalar_indices_of_full_rank_read_an_element():
    value = statements(f"{X2}, {S}", "v = x[s, 0]\nreturn v")[0].value
    assert value.op.name == "tensor.read"


@pytest.mark.parametrize(
    ("index", "sizes", "offsets", "dropped", "shape"),
    [
        ("3", [1, 32], [3, 0], [0], [32]),
        ("0:16", [16, 32], [0, 0], [], [16, 32]),
        ("0:16, 0", [16, 1], [0, 0], [1], [16]),
        (":, 4:8", [64, 4], [0, 4], [], [64, 4]),
    ],
)
def test_tensor_slices(index, sizes, offsets, dropped, shape):
    value = statements(X2, f"v = x[{index}]\nreturn v")[0].value
    assert value.op.name == "tensor.slice"
    assert ints(value.args[1].elements) == sizes
    assert ints(value.args[2].elements) == offsets
    assert ints(value.args[4].elements if len(value.args) > 4 else []) == dropped
    assert ints(value.type.shape) == shape


def test_chained_subscripts_make_two_slices():
    value = statements(X2, "v = x[1:5][0]\nreturn v")[0].value
    assert value.op.name == "tensor.slice" and value.args[0].op.name == "tensor.slice"


def test_window_extents_are_simplified():
    value = statements(f"{X2}, {S}", "v = x[s:s + 16]\nreturn v")[0].value
    assert ints(value.type.shape) == [16, 32]


def test_a_window_extent_keeps_a_bound_on_an_index_that_may_be_negative():
    value = statements(f"{X2}, {S}", "e = s - 4\nv = x[pl.max(e, 0):8, :]\nreturn v")[1].value
    assert str(value.args[1].elements[0]) == "8 - pl.max(e, 0)"


def test_slice_without_lower_bound_starts_at_zero():
    value = statements(f"{X2}, {S}", "v = x[:s]\nreturn v")[0].value
    assert value.args[2].elements[0].value == 0


TILE = "t: pl.Tile[[16, 128], pl.FP32]"


def test_dynamic_upper_bound_of_a_tile_gives_static_extent_and_dynamic_valid_shape():
    value = statements(f"{TILE}, {S}", "v = t[:, :s]\nreturn v")[0].value
    assert ints(value.type.shape) == [16, 128]
    rows, columns = value.type.tile_view.valid_shape
    assert rows.value == 16
    assert isinstance(columns, ir.Min)
    assert (columns.left.name_hint, columns.right.value) == ("s", 128)


def test_tile_upper_bound_is_clamped():
    value = statements(TILE, "v = t[:, :256]\nreturn v")[0].value
    assert ints(value.type.shape) == [16, 128]


def test_tile_scalar_index_promotes_to_two_dimensions_with_a_warning():
    with pytest.warns(UserWarning, match="auto-promoting to 2D"):
        value = statements(TILE, "v = t[1]\nreturn v")[0].value
    assert ints(value.type.shape) == [1, 128]


def test_tile_element_read():
    assert statements(TILE, "v = t[1, 2]\nreturn v")[0].value.op.name == "tile.read"


@pytest.mark.parametrize(
    ("params", "index", "error", "message"),
    [
        (X2, "x[0:16:2, :]", UnsupportedFeatureError, "Slice step is not supported"),
        (X2, "x[0, 0, 0]", ParserTypeError, "Tensor subscript has 3 indices but the tensor is 2D"),
        (TILE, "t[0, 0, 0]", ParserTypeError, "Tile subscript has 3 indices but the tile is 2D"),
        (TILE, "t[:, 10:5]", UnsupportedFeatureError, "must produce a positive static extent"),
        (f"{TILE}, {S}", "t[:, s:]", UnsupportedFeatureError, "Dynamic lower bounds are not supported"),
        (S, "s[0]", ParserTypeError, "Subscript requires Tuple, Tensor, Tile, or Array"),
        (S, "(s, s)['a']", ParserSyntaxError, "Tuple index must be an integer"),
        (S, "(s, s)[s]", UnsupportedFeatureError, "Only constant integer indices"),
        ("a: pl.Array[4, pl.INT32]", "a[0, 1]", ParserTypeError, "requires a single index"),
    ],
)
def test_bad_reads(params, index, error, message):
    with pytest.raises(error, match=message) as caught:
        statements(params, f"v = {index}\nreturn v")
    assert caught.value.hint


# -- writes --------------------------------------------------------------------------------------------------

OUT = "out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]"


def test_window_write_assembles_and_rebinds_the_target():
    f = function(
        f"{OUT}, src: pl.Tensor[[16, 32], pl.FP32], i: pl.Scalar[pl.INDEX], j: pl.Scalar[pl.INDEX]",
        "out[i:i + 16, j:j + 32] = src\nreturn out",
    )
    write = stmts_of(f.body)[0]
    assert write.var is f.params[0]
    assert write.value.op.name == "tensor.assemble"
    assert write.value.args[1] is f.params[1]
    assert all(offset is p for offset, p in zip(write.value.args[2].elements, f.params[2:], strict=True))


def test_whole_write():
    write = statements(f"{OUT}, y: pl.Tensor[[64, 64], pl.FP32]", "out[:] = y\nreturn out")[0]
    assert ints(write.value.args[2].elements) == [0, 0]


def test_rank_reducing_write_reshapes_the_source():
    write = statements(f"{OUT}, y: pl.Tensor[[64], pl.FP32]", "out[3] = y\nreturn out")[0]
    lifted = write.value.args[1]
    assert lifted.op.name == "tensor.reshape"
    assert ints(lifted.type.shape) == [1, 64]


def test_narrowed_source_passes_its_lifted_valid_shape():
    y = "y: pl.Tensor[[64], pl.FP32, pl.TensorView(stride=[], layout=pl.TensorLayout.ND, valid_shape=[8])]"
    write = statements(f"{OUT}, {y}", "out[3, 0:8] = y\nreturn out")[0]
    lifted = write.value.args[1]
    assert ints(lifted.type.tensor_view.valid_shape) == [1, 8]


def test_array_write_restamps_a_literal():
    f = function("a: pl.Array[4, pl.INT32]", "a[1] = 7\nv = a[1]\nreturn v")
    write = stmts_of(f.body)[0]
    assert write.value.op.name == "array.update_element"
    assert write.value.args[2].dtype == ir.DataType.INT32
    assert write.var is f.params[0]


@pytest.mark.parametrize(
    ("params", "body", "error", "message"),
    [
        (f"{OUT}, y: pl.Tensor[[16, 64], pl.FP32], i: pl.Scalar[pl.INDEX]", "out[i:i + 8] = y", ParserTypeError,
         "window expects 8 elements, source has 16"),
        (f"{OUT}, s: pl.Scalar[pl.FP32]", "out[0, 0] = s", UnsupportedFeatureError, "Element-write"),
        (f"{OUT}, y: pl.Tensor[[64], pl.FP32]", "out[0, 0, 0] = y", ParserTypeError,
         "Tensor subscript-write has 3 indices but the tensor is 2D"),
        (f"{OUT}, y: pl.Tensor[[64, 64], pl.FP32]", "out[::2] = y", UnsupportedFeatureError, "Slice step is not"),
        (f"{OUT}, y: pl.Tile[[64, 64], pl.FP32]", "out[:] = y", ParserTypeError, "source must also be a tensor"),
        (f"{OUT}, y: pl.Tensor[[64], pl.FP32]", "out[0:8] = y", ParserTypeError,
         "source must be 2D to match the rank-reduced"),
        (f"{OUT}, y: pl.Tensor[[64, 64], pl.FP32]", "(out, y)[0] = y", ParserSyntaxError,
         "Subscript-write target must be a variable name"),
        (S, "s[0] = s", ParserTypeError, "requires a Tensor, Tile, or Array target"),
    ],
)  # fmt: skip
def test_bad_writes(params, body, error, message):
    with pytest.raises(error, match=message) as caught:
        statements(params, f"{body}\nreturn")
    assert caught.value.hint


def test_subscript_writes_need_non_ssa_source():
    with pytest.raises(UnsupportedFeatureError, match="only supported before SSA conversion"):
        statements(
            f"{OUT}, y: pl.Tensor[[64, 64], pl.FP32]", "out[:] = y\nreturn out", decorator="strict_ssa=True"
        )


# -- for -----------------------------------------------------------------------------------------------------


def test_plain_range():
    f = function(X, "for i in pl.range(10):\n    y = pl.add(x, 1.0)\nreturn y")
    loop = stmts_of(f.body)[0]
    assert (loop.start.value, loop.stop.value, loop.step.value) == (0, 10, 1)
    assert loop.start.dtype == ir.DataType.INDEX
    assert loop.loop_var.type.dtype == ir.DataType.INDEX
    assert loop.kind is ir.ForKind.Sequential
    assert loop.iter_args == [] and loop.return_vars == []
    assert stmts_of(f.body)[1].value[0] is loop.body.var


@pytest.mark.parametrize(
    ("bounds", "dtype"),
    [
        ("pl.const(0, pl.INT64), pl.const(8, pl.INT64), pl.const(1, pl.INT64)", "INT64"),
        ("pl.const(8, pl.INT64)", "INT64"),
        ("pl.const(0, pl.INT64), 8", "INDEX"),
        ("0, pl.const(8, pl.INT32)", "INT32"),
        ("n", "INDEX"),
    ],
)
def test_loop_variable_dtype_comes_from_written_constants(bounds, dtype):
    loop = statements("n: pl.Scalar[pl.INT64]", f"for i in pl.range({bounds}):\n    pass\nreturn n")[0]
    assert loop.loop_var.type.dtype == getattr(ir.DataType, dtype)


CARRIED = """
for i, (acc,) in pl.range(4, init_values=(x,)):
    acc2 = pl.add(acc, y)
    {yielded}
return {result}
"""
XY = f"{X}, y: pl.Tensor[[64], pl.FP32]"


def test_carried_value_gets_the_yield_target_as_result():
    f = function(XY, CARRIED.format(yielded="r = pl.yield_(acc2)", result="r"))
    loop, returned = stmts_of(f.body)
    assert [arg.name_hint for arg in loop.iter_args] == ["acc"]
    assert loop.iter_args[0].initValue is f.params[0]
    assert loop.return_vars[0].name_hint == "r"
    assert returned.value[0] is loop.return_vars[0]
    with pytest.raises(UndefinedVariableError):
        function(XY, CARRIED.format(yielded="r = pl.yield_(acc2)", result="acc2"))


def test_carried_value_without_yield_gets_an_out_variable():
    loop = statements(XY, CARRIED.format(yielded="pass", result="x"))[0]
    assert [var.name_hint for var in loop.return_vars] == ["acc_out"]
    for unbound in ("acc_out", "acc", "acc2"):
        with pytest.raises(UndefinedVariableError):
            function(XY, CARRIED.format(yielded="pass", result=unbound))


def test_bare_yield_in_a_carrying_loop_is_rejected():
    for yielded in ("pl.yield_(acc2)", "if i > 2:\n        pl.yield_(acc2)"):
        with pytest.raises(ParserSyntaxError, match=r"requires an assignment-form pl\.yield_\(\.\.\.\)"):
            function(XY, CARRIED.format(yielded=yielded, result="x"))


def test_yield_count_must_match_the_carried_values():
    with pytest.raises(ParserSyntaxError, match="For loop has 1 iteration arguments but 2 return variables"):
        function(XY, CARRIED.format(yielded="r, q = pl.yield_(acc2, acc2)", result="r"))


def test_errors_in_a_carrying_loop_are_not_hidden_by_the_count_check():
    with pytest.raises(UndefinedVariableError):
        function(XY, CARRIED.format(yielded="r = pl.yield_(nothing)", result="r"))


def test_loop_kinds_and_attrs():
    body = """
    for i in pl.parallel(4, attrs={"k": 1}):
        a = pl.exp(x)
    for j in pl.unroll(0, 8, 2):
        b = pl.exp(x)
    for k in pl.pipeline(8, stage=2, attrs={"z": "t"}):
        c = pl.exp(x)
    return x
    """
    parallel, unroll, pipeline, _ = statements(X, body)
    assert (parallel.kind, parallel.attrs) == (ir.ForKind.Parallel, {"k": 1})
    assert (unroll.kind, unroll.step.value) == (ir.ForKind.Unroll, 2)
    assert (pipeline.kind, pipeline.attrs) == (ir.ForKind.Pipeline, {"pipeline_stages": 2, "z": "t"})


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("i in range(4)", r"For loop must use pl\.range\(\)"),
        ("i in x", r"For loop must use pl\.range\(\)"),
        ("i in pl.other(4)", r"For loop must use pl\.range\(\)"),
        ("x[0] in pl.range(4)", "For loop target must be a simple name or"),
        ("(x[0], (a,)) in pl.range(4, init_values=(x,))", "Loop variable must be a simple name"),
        ("i, a in pl.range(4, init_values=(x,))", "Iter args must be a tuple"),
        ("i, (a[0],) in pl.range(4, init_values=(x,))", "Iter arg must be a simple name"),
        ("i, (a, b, c) in pl.range(4, init_values=(x, x))", "Mismatch: 3 iter_args but 2 init_values"),
        (
            "i in pl.range(4, init_values=(x,))",
            "For loop target must be a tuple when init_values is provided",
        ),
        ("i in pl.range()", "requires at least 1 argument"),
        ("i in pl.range(1, 2, 3, 4)", "at most 3 positional arguments"),
        ("i in pl.range(4, init_values=x)", "init_values must be a list or tuple"),
        ("i, (a,) in pl.unroll(4, init_values=(x,))", "cannot be combined with init_values"),
        ("i in pl.pipeline(4)", "requires stage="),
        ("i in pl.pipeline(4, stage=s)", "stage must be a compile-time constant integer"),
        ("i in pl.pipeline(4, stage=0)", "stage must be >= 1, got 0"),
        ("i in pl.range(4, stage=2)", r"stage= is only supported on pl\.pipeline\(\), not pl\.range\(\)"),
        ("i in pl.range(4, attrs=3)", "attrs must be a dict literal"),
        ("i in pl.range(4, attrs={s: 3})", "attrs keys must be string literals"),
        ("i in pl.range(4, attrs={'k': s})", "Unsupported value type for attrs key"),
        ("i in pl.range(4, chunk=2)", r"Unknown keyword argument 'chunk' in pl\.range\(\)"),
        ("i in pl.unroll(s)", "requires compile-time constant integer bounds"),
        ("i in pl.unroll(0, 4, 0)", "step cannot be zero"),
    ],
)
def test_bad_loop_headers(header, message):
    with pytest.raises(ParserSyntaxError, match=message) as caught:
        statements(f"{X}, {S}", f"for {header}:\n    pass\nreturn x")
    assert caught.value.hint


def test_else_on_a_loop_is_rejected():
    with pytest.raises(ParserSyntaxError, match="'else' on a loop"):
        statements(X, "for i in pl.range(4):\n    pass\nelse:\n    pass\nreturn x")


# -- while ---------------------------------------------------------------------------------------------------


def test_natural_while_has_no_carried_values():
    loop = statements(S, "while s < 10:\n    s = s + 1\nreturn s")[0]
    assert isinstance(loop, ir.WhileStmt) and loop.iter_args == []


def test_while_iterator_carries_values():
    body = """
    for (a,) in pl.while_(init_values=(s,)):
        pl.cond(a < 10)
        b = a + 1
        r = pl.yield_(b)
    return r
    """
    loop, returned = statements(S, body)
    assert loop.condition.left is loop.iter_args[0]
    assert returned.value[0] is loop.return_vars[0]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("for (a,) in pl.while_(s):\n    pl.cond(s < 1)", "takes no positional arguments"),
        ("for (a,) in pl.while_():\n    pl.cond(s < 1)", r"pl\.while_\(\) requires init_values"),
        ("for (a,) in pl.while_(init_values=s):\n    pl.cond(s < 1)", "init_values must be a tuple or list"),
        ("for (a,) in pl.while_(init_values=(s,), max=3):\n    pl.cond(s < 1)", "Unknown keyword argument 'max'"),
        ("for (a,) in pl.while_(init_values=(s,)):\n    b = a", r"First statement in pl\.while_\(\) body must be"),
        ("for (a,) in pl.while_(init_values=(s,)):\n    pl.cond(a < 1)\n    pl.cond(a < 2)",
         r"pl\.cond\(\) can only be the first statement"),
        ("for (a,) in pl.while_(init_values=(s,)):\n    pl.cond(a < 1, 2)", "requires exactly 1 argument"),
        ("for a in pl.while_(init_values=(s,)):\n    pl.cond(s < 1)", "While loop target must be a tuple"),
        ("for (a, b) in pl.while_(init_values=(s,)):\n    pl.cond(s < 1)", "Mismatch: 2 iter_args but 1 init_values"),
    ],
)  # fmt: skip
def test_bad_while_loops(code, message):
    with pytest.raises(ParserSyntaxError, match=message) as caught:
        statements(S, f"{code}\nreturn s")
    assert caught.value.hint


# -- if ------------------------------------------------------------------------------------------------------


def test_if_without_yields_leaks_one_variable_of_both_branches():
    f = function(f"{X}, {S}", "if s > 4:\n    y = pl.add(x, x)\nelse:\n    y = pl.mul(x, x)\nreturn y")
    branch, returned = stmts_of(f.body)
    assert branch.return_vars == []
    assert branch.then_body.var is branch.else_body.var is returned.value[0]


def test_branches_with_differing_types_cannot_share_a_name():
    with pytest.raises(ParserTypeError, match="Cannot reassign"):
        function(f"{X}, {S}", "if s > 4:\n    y = pl.add(x, x)\nelse:\n    y = s\nreturn y")


def test_if_with_yields_types_its_results_from_the_values():
    body = "if s > 4:\n    r = pl.yield_(x)\nelse:\n    r = pl.yield_(pl.add(x, x))\nreturn r"
    branch, returned = statements(f"{X}, {S}", body)
    assert branch.return_vars[0].type == ir.TensorType([64], ir.DataType.FP32)
    assert returned.value[0] is branch.return_vars[0]


def test_elif_nests():
    body = "if s > 4:\n    y = s\nelif s > 2:\n    y = s + 1\nelse:\n    y = s + 2\nreturn y"
    branch = statements(S, body)[0]
    assert isinstance(branch.else_body, ir.IfStmt)


@pytest.mark.parametrize("word", ["if", "while"])
def test_conditions_must_be_bool(word):
    with pytest.raises(
        ParserTypeError, match=f"{word} condition must be a Bool-typed scalar expression, got"
    ):
        statements(S, f"{word} s:\n    s = s + 1\nreturn s")


# -- break and continue --------------------------------------------------------------------------------------


def test_break_inside_if_inside_range_is_fine():
    loop = statements(
        S, "for i in pl.range(8):\n    if i > s:\n        break\n    else:\n        continue\nreturn s"
    )[0]
    assert isinstance(loop.body.then_body, ir.BreakStmt)
    assert isinstance(loop.body.else_body, ir.ContinueStmt)


@pytest.mark.parametrize("word", ["break", "continue"])
@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("pl.parallel(8)", "not supported in parallel loops"),
        ("pl.unroll(8)", "not supported in unrolled loops"),
        ("pl.spmd(8)", "outside loop"),
        ("pl.split_aiv(2, mode=pl.SplitMode.NONE)", r"not supported inside a 'for \.\.\. in pl\.split_aiv"),
    ],
)
def test_break_where_it_is_not_allowed(header, message, word):
    for body in (word, f"if s > 1:\n        {word}"):
        with pytest.raises(InvalidOperationError, match=f"'{word}'.* {message}"):
            statements(S, f"for i in {header}:\n    {body}\nreturn s")


@pytest.mark.parametrize(
    "header", ["pl.range(8)", "pl.pipeline(8, stage=2)", "pl.range(3):\n  for j in pl.spmd(8)"]
)
def test_break_refers_to_the_enclosing_dsl_loop(header):
    statements(S, f"for i in {header}:\n    break\nreturn s")
    statements(S, f"for o in pl.parallel(2):\n for i in {header}:\n    continue\nreturn s")


# -- tensor.dim ----------------------------------------------------------------------------------------------

DIM = "M = pl.dynamic('M')"
XM = "x: pl.Tensor[[M, 64], pl.FP32]"
ORCHESTRATION = "type=pl.FunctionType.Orchestration"


def test_dim_of_a_declared_extent_is_the_symbol_in_orchestration():
    f = function(
        XM,
        "n = pl.tensor.dim(x, 0)\nb = n // 16\ny = pl.create_tensor([n, 64], dtype=pl.FP32)\nn = n + 1\nreturn b",
        prelude=DIM,
        decorator=ORCHESTRATION,
    )
    symbol = f.params[0].type.shape[0]
    blocks, created, again, _ = stmts_of(f.body)
    assert blocks.value.left is created.var.type.shape[0] is again.value.left is symbol
    assert again.var is not symbol and again.var.name_hint == "n"


def test_dim_stays_an_operation_elsewhere():
    value = statements(
        XM, "n = pl.tensor.dim(x, 0)\nreturn n", prelude=DIM, decorator="type=pl.FunctionType.InCore"
    )
    assert value[0].value.op.name == "tensor.dim"
    value = statements(XM, "n = pl.tensor.dim(x, 1)\nreturn n", prelude=DIM, decorator=ORCHESTRATION)
    assert value[0].value.op.name == "tensor.dim"


# -- compile-time helpers ------------------------------------------------------------------------------------


def test_static_print_shows_ir_and_emits_nothing(capsys):
    stmts = statements(S, "pl.static_print('s is', s, 42, f'<{s}>')\nreturn s")
    assert len(stmts) == 1
    printed = capsys.readouterr().out
    assert printed.startswith(
        "static_print [<string>:4]: s is s: pl.Scalar[pl.INDEX] 42: pl.Scalar[pl.INDEX] <s"
    )


def test_static_assert():
    from pypto.language.parser import ParserError

    statements(S, "pl.static_assert(N == 64)\nreturn s", prelude="N = 64")
    with pytest.raises(ParserError, match="static_assert failed: wrong N") as caught:
        statements(S, "pl.static_assert(N == 65, 'wrong N')\nreturn s", prelude="N = 64")
    assert type(caught.value) is ParserError and "N == 65" in caught.value.hint
    with pytest.raises(ParserError, match="must be compile-time evaluable"):
        statements(S, "pl.static_assert(s > 0)\nreturn s")
    with pytest.raises(ParserSyntaxError, match="requires 1 or 2 arguments"):
        statements(S, "pl.static_assert()\nreturn s")
    with pytest.raises(ParserSyntaxError, match="message must be a string literal"):
        statements(S, "pl.static_assert(True, s)\nreturn s")
    with pytest.raises(ParserSyntaxError, match="requires at least 1 argument"):
        statements(S, "pl.static_print()\nreturn s")


def test_window_of_a_floored_tile_is_compared_in_full():
    params = "t: pl.Tile[[16, 128], pl.FP32], u: pl.Tile[[1, 64], pl.FP32]"
    with pytest.raises(ParserTypeError, match="window expects 128 elements, source has 64"):
        statements(params, "t[3] = u\nreturn t")
    write = statements(params, "t[3, 0:64] = u\nreturn t")[0]
    assert write.value.op.name == "tile.assemble"


def test_yields_need_carried_values():
    with pytest.raises(
        ParserSyntaxError, match="While loop has 0 iteration arguments but 1 return variables"
    ):
        statements(S, "while s < 3:\n    r = pl.yield_(s)\nreturn s")


def test_annotation_of_a_yield_target_gives_the_type_of_the_result():
    body = "if s > 4:\n    r: pl.Scalar[pl.INT32] = pl.yield_(s)\nelse:\n    r: pl.Scalar[pl.INT32] = pl.yield_(s)\nreturn r"
    assert statements(S, body)[0].return_vars[0].type == ir.ScalarType(ir.DataType.INT32)


def test_a_yielded_name_without_a_value_in_any_branch_is_an_error():
    body = "if s > 4:\n    r, q = pl.yield_(s)\nelse:\n    r, q = pl.yield_({})\nreturn r"
    with pytest.raises(ParserTypeError, match="The type of yielded name 'q' is unknown"):
        statements(S, body.format("s"))
    typed = statements(S, body.format("s, s + 1"))[0].return_vars[1]
    assert typed.type == ir.ScalarType(ir.DataType.INDEX)


def test_index_yielded_for_another_integer_result_of_a_branch_gets_its_dtype():
    body = "if s > 4:\n    r: pl.Scalar[pl.INT64] = pl.yield_(1)\nelse:\n    r = pl.yield_(s)\nreturn r"
    branch = statements(S, body)[0]
    assert branch.return_vars[0].type == ir.ScalarType(ir.DataType.INT64)
    one, converted = branch.then_body.value[0], branch.else_body.value[0]
    assert isinstance(one, ir.ConstInt) and isinstance(converted, ir.Cast)
    assert one.dtype == converted.type.dtype == ir.DataType.INT64


def test_loop_bounds_are_integer_scalars():
    for bound in ("x", "1.5"):
        with pytest.raises(ParserTypeError, match="must be integer scalars"):
            statements(X, f"for i in pl.range({bound}):\n    pass\nreturn x")


def test_assigning_a_carried_name_in_a_branch_keeps_the_carried_value_otherwise():
    body = """
    for i, (acc,) in pl.range(4, init_values=(x,)):
        if i > 2:
            acc = pl.add(acc, x)
        r = pl.yield_(acc)
    return r
    """
    loop = statements(X, body)[0]
    seed, branch, yielded = stmts_of(loop.body)
    assert seed.value is loop.iter_args[0]
    assert branch.then_body.var is seed.var is yielded.value[0]


def test_assigning_a_carried_name_in_the_body_itself_makes_one_new_variable():
    loop = statements(
        X,
        "for i, (acc,) in pl.range(4, init_values=(x,)):\n    acc = pl.exp(acc)\n    acc = pl.exp(acc)\nreturn x",
    )[0]
    first, second = stmts_of(loop.body)
    assert first.var is second.var
    assert first.value.args[0] is loop.iter_args[0]


def test_a_yield_inside_an_expression_stands_for_its_value():
    branch = statements(f"{X}, {S}", "if s > 1:\n    y = pl.exp(pl.yield_(x))\nreturn x")[0]
    yielded, assigned = stmts_of(branch.then_body)
    assert isinstance(yielded, ir.YieldStmt)
    assert assigned.value.args[0] is yielded.value[0]
    with pytest.raises(ParserSyntaxError, match="Multiple yields should use tuple unpacking"):
        statements(X, "y = pl.exp(pl.yield_(x, x))\nreturn x")
    with pytest.raises(ParserSyntaxError, match="takes no keyword arguments"):
        statements(X, "y = pl.yield_(x, k=1)\nreturn x")


def test_bare_yield_outside_carrying_loops_is_kept():
    branch = statements(f"{X}, {S}", "if s > 1:\n    pl.yield_(x)\nreturn x")[0]
    assert isinstance(branch.then_body, ir.YieldStmt)


def test_annotated_tuple_yield_targets_of_nested_scopes():
    body = """
    if s > 1:
        with pl.manual_scope():
            a, b = pl.yield_(x, s)
    else:
        a, b = pl.yield_(pl.exp(x), s + 1)
    return a, b
    """
    branch, returned = statements(f"{X}, {S}", body)
    assert [v.name_hint for v in branch.return_vars] == ["a", "b"]
    assert returned.value[1] is branch.return_vars[1]


def test_unroll_bounds_of_any_other_kind_are_rejected_alike():
    for bound in ("n", "1.5", "True"):
        with pytest.raises(ParserSyntaxError, match="requires compile-time constant integer bounds"):
            statements("n: pl.Scalar[pl.INDEX]", f"for i in pl.unroll({bound}):\n    pass")


def test_unpacking_fewer_names_than_values_warns_of_the_dropped_ones():
    with pytest.warns(UserWarning, match="Unpacking 3 values into 2 names drops the last 1"):
        found = statements(S, "a, b = (s, s, s)\nreturn a, b")
    assert len(found) == 4


def test_a_fractal_that_is_no_constant_is_rejected():
    with pytest.raises(ParserTypeError, match="TileView fractal must be an integer"):
        statements(
            f"t: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec], {S}",
            "u: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec, pl.TileView(fractal=s)] = t\nreturn u",
        )


@pytest.mark.parametrize(
    ("read", "message"),
    [
        ("x[:-16]", "negative extent -16 in dimension 0"),
        ("x[:, -8:-12]", "negative extent -4 in dimension 1"),
    ],
)
def test_negative_bounds_of_a_tensor_slice_do_not_count_from_the_end(read, message):
    with pytest.raises(UnsupportedFeatureError, match=message) as caught:
        statements(X2, f"y = {read}\nreturn y")
    assert "do not count from the end" in caught.value.hint


def test_bounds_in_the_wrong_order_are_explained():
    with pytest.raises(UnsupportedFeatureError, match="negative extent -3 in dimension 1") as caught:
        statements(X2, "y = x[:, 8:5]\nreturn y")
    assert caught.value.hint == "[lo:hi] takes the elements from lo to hi - 1, so hi must not be below lo"


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("y = {0}[0, -1]", ParserSyntaxError),
        ("y = pl.read({0}, [0, -1])", InvalidOperationError),
        ("pl.write({0}, [0, -1], s)", InvalidOperationError),
    ],
)
@pytest.mark.parametrize("operand", ["x", "t"])
def test_element_indices_do_not_count_from_the_end(statement, error, operand):
    params = f"{X2}, t: pl.Tile[[16, 128], pl.FP32], s: pl.Scalar[pl.FP32]"
    message = "index -1 of dimension 1 is provably negative; negative indices do not count from the end"
    with pytest.raises(error, match=message):
        statements(params, f"{statement.format(operand)}\nreturn")


@pytest.mark.parametrize("statement", ["v = a[-1]", "a[-1] = 3"])
def test_array_indices_do_not_count_from_the_end(statement):
    with pytest.raises(ParserSyntaxError, match="index -1 of dimension 0 is provably negative"):
        statements("a: pl.Array[4, pl.INT32]", f"{statement}\nreturn")
