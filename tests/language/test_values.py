"""Names, constants, scalar operators and type annotations."""

# ruff: noqa: E501, RET504 - lines and returns of DSL programs are what is tested

from __future__ import annotations

import math

import pytest

import pypto.language as pl
from pypto import ir
from pypto.language.parser import (
    InvalidOperationError,
    ParserSyntaxError,
    ParserTypeError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)

N = 64
F = 2.5
DIMS = [1, 2.0, True]
TEXT = "text"
K = 8


def body_of(params: str, body: str, prelude: str = "") -> list[ir.Stmt]:
    """The statements of a function with these parameters."""
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    function = pl.parse(f"{prelude}\n@pl.function\ndef f({params}):\n{lines}\n")
    return function.body.stmts if isinstance(function.body, ir.SeqStmts) else [function.body]


def value_of(params: str, expression: str, prelude: str = "") -> ir.Expr:
    """The value of `v = expression`."""
    return body_of(params, f"v = {expression}\nreturn v", prelude)[0].value


# -- captured values -----------------------------------------------------------------------------------------


def test_captured_values_become_constants():
    @pl.function
    def f(x: pl.Scalar[pl.INT32]):
        a = N
        b = F
        c = DIMS
        return a, b, c

    a, b, c = (stmt.value for stmt in f.body.stmts[:3])
    assert isinstance(a, ir.ConstInt) and (a.value, a.dtype) == (64, ir.DataType.INDEX)
    assert isinstance(b, ir.ConstFloat) and (b.value, b.dtype) == (2.5, ir.DataType.FP32)
    assert isinstance(c, ir.MakeTuple)
    assert [type(e) for e in c.elements] == [ir.ConstInt, ir.ConstFloat, ir.ConstBool]


def test_captured_string_has_no_ir_form():
    with pytest.raises(ParserTypeError, match="Unsupported closure variable type: str"):

        @pl.function
        def f(x: pl.Scalar[pl.INT32]):
            a = TEXT
            return a


def test_unknown_name_is_undefined_and_suggests_a_close_one():
    with pytest.raises(UndefinedVariableError, match="Undefined variable 'lenght'") as caught:
        body_of("length: pl.Scalar[pl.INT32]", "v = lenght\nreturn v")
    assert "length" in caught.value.hint


def test_captured_scalar_wrapper_is_its_expression():
    M = pl.dynamic("M")
    total = M + 1

    @pl.function
    def f(x: pl.Tensor[[M], pl.FP32]):
        v = total
        return v

    value = f.body.stmts[0].value
    assert isinstance(value, ir.Add)
    assert value.left is f.params[0].type.shape[0]


# -- folding -------------------------------------------------------------------------------------------------


def test_closure_only_arithmetic_folds_to_one_constant():
    value = value_of("x: pl.Scalar[pl.INT32]", "N * 2 + 1", "N = 64")
    assert isinstance(value, ir.ConstInt) and value.value == 129


def test_parameter_shadowing_a_captured_name_prevents_folding():
    value = value_of("N: pl.Scalar[pl.INDEX]", "N * 2 + 1", "N = 64")
    assert isinstance(value, ir.Add) and isinstance(value.left, ir.Mul)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2 ** 10", 1024), ("6 | 1", 7), ("7 & 3", 3), ("+5", 5), ("-5", -5), ("7 // 2", 3)],
)
def test_integer_trees_fold(text, expected):
    value = value_of("x: pl.Scalar[pl.INT32]", text)
    assert isinstance(value, ir.ConstInt) and value.value == expected


def test_true_division_folds_to_float():
    value = value_of("x: pl.Scalar[pl.INT32]", "7 / 2")
    assert isinstance(value, ir.ConstFloat) and value.value == 3.5


def test_long_sums_do_not_overflow_the_stack():
    value = value_of("x: pl.Scalar[pl.INDEX]", " + ".join(["x"] * 900))
    assert isinstance(value, ir.Add)


def test_negative_typed_constant_keeps_its_dtype():
    value = value_of("x: pl.Scalar[pl.INT32]", "-pl.const(1, pl.INT32)")
    assert isinstance(value, ir.ConstInt) and (value.value, value.dtype) == (-1, ir.DataType.INT32)
    value = value_of("x: pl.Scalar[pl.INT32]", "pl.const(-1, pl.INT32)")
    assert (value.value, value.dtype) == (-1, ir.DataType.INT32)


def test_const_rules():
    assert isinstance(value_of("x: pl.Scalar[pl.INT32]", "pl.const(1.5, pl.BF16)"), ir.ConstFloat)
    with pytest.raises(ParserSyntaxError, match="requires exactly 2 arguments"):
        value_of("x: pl.Scalar[pl.INT32]", "pl.const(1)")
    with pytest.raises(ParserSyntaxError, match="must be a numeric literal"):
        value_of("x: pl.Scalar[pl.INT32]", "pl.const(x, pl.INT32)")
    with pytest.raises(ParserTypeError, match="cannot store the float"):
        value_of("x: pl.Scalar[pl.INT32]", "pl.const(1.5, pl.INT32)")


def test_get_byte_and_memory_spaces_are_constants():
    assert value_of("x: pl.Scalar[pl.INT32]", "pl.FP32.get_byte()").value == 4
    assert value_of("x: pl.Scalar[pl.INT32]", "pl.Mem.Mat").value == 2
    with pytest.raises(ParserTypeError, match="Unknown DataType"):
        value_of("x: pl.Scalar[pl.INT32]", "pl.FP33.get_byte()")
    with pytest.raises(ParserSyntaxError, match="takes no arguments"):
        value_of("x: pl.Scalar[pl.INT32]", "pl.FP32.get_byte(1)")


# -- operators -----------------------------------------------------------------------------------------------


def test_promotion_casts_the_narrower_operand():
    value = value_of("a: pl.Scalar[pl.INT32], b: pl.Scalar[pl.INT64]", "a + b")
    assert isinstance(value, ir.Add) and isinstance(value.left, ir.Cast)
    assert value.type.dtype == ir.DataType.INT64
    value = value_of("a: pl.Scalar[pl.INDEX], b: pl.Scalar[pl.INT64]", "a + b")
    assert not isinstance(value.left, ir.Cast) and not isinstance(value.right, ir.Cast)


def test_mixed_categories_are_a_syntax_error():
    with pytest.raises(ParserSyntaxError, match="same numeric dtype category"):
        value_of("a: pl.Scalar[pl.INT32], b: pl.Scalar[pl.FP32]", "a + b")


def test_operators_on_tensors_are_a_syntax_error():
    with pytest.raises(ParserSyntaxError, match="must be ScalarExpr or Var with ScalarType"):
        value_of("a: pl.Tensor[[4], pl.FP32]", "a + a")


@pytest.mark.parametrize(
    ("expression", "call"),
    [
        ("pl.dim(a, 0) * 2 + a * 3", "pl.mul(a, 3)"),
        ("pl.dim(a, 0) + a", "pl.add(a, pl.dim(a, 0))"),
        ("-a", "pl.neg(a)"),
        ("a < 3", "pl.add(x, y)"),
    ],
)
def test_operators_on_tensors_are_reported_where_they_are(expression, call):
    with pytest.raises(ParserSyntaxError, match=r"must be ScalarExpr or Var with ScalarType") as caught:
        value_of("a: pl.Tensor[[4], pl.FP32]", expression)
    assert caught.value.message.startswith("Failed to parse function 'f': ")
    assert caught.value.span["line"] == 4
    assert caught.value.note.endswith(call)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("x - y", ir.Sub), ("x / y", ir.FloatDiv), ("x // y", ir.FloorDiv), ("x % y", ir.FloorMod),
        ("x << y", ir.BitShiftLeft), ("x >> y", ir.BitShiftRight), ("x == y", ir.Eq), ("x != y", ir.Ne),
        ("x < y", ir.Lt), ("x <= y", ir.Le), ("x > y", ir.Gt), ("x >= y", ir.Ge), ("-x", ir.Neg), ("~x", ir.BitNot),
        ("not x", ir.Not), ("x < y and x > y", ir.And), ("x < y or x > y", ir.Or), ("pl.min(x, y)", ir.Min),
        ("pl.max(x, y)", ir.Max), ("pl.cast(x, pl.INT64)", ir.Cast), ("pl.add(x, y)", ir.Add),
    ],
)  # fmt: skip
def test_scalar_operators_build_their_node(text, kind):
    assert type(value_of("x: pl.Scalar[pl.INT32], y: pl.Scalar[pl.INT32]", text)) is kind


def test_operators_of_scalars_are_unsupported_on_tensors():
    for symbol, name in (("**", "Pow"), ("&", "BitAnd"), ("|", "BitOr"), ("^", "BitXor"), ("@", "MatMult")):
        with pytest.raises(UnsupportedFeatureError, match=f"Unsupported binary operator: {name}"):
            pl.parse(f"@pl.function\ndef f(x: pl.Tensor[[4], pl.INT32]):\n    y = x {symbol} 2\n")


def test_python_source_may_use_every_operator_that_is_printed():
    @pl.function
    def f(x: pl.Scalar[pl.INT32], y: pl.Scalar[pl.INT32]):
        a = x**y
        b = x & y | x ^ y
        c = abs(x)
        return a, b, c

    assert [type(stmt.value) for stmt in f.body.stmts[:3]] == [ir.Pow, ir.BitOr, ir.Abs]
    assert ir.structural_equal(f, pl.parse(f.as_python()), enable_auto_mapping=True)


@pytest.mark.parametrize(
    ("text", "kind"), [("x ** y", ir.Pow), ("x & y", ir.BitAnd), ("x | y", ir.BitOr), ("x ^ y", ir.BitXor)]
)
def test_printed_operators_are_read_back(text, kind):
    assert type(value_of("x: pl.Scalar[pl.INT32], y: pl.Scalar[pl.INT32]", text)) is kind


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("1 if x else 2", UnsupportedFeatureError, "Unsupported expression type: IfExp"),
        ("lambda: 1", UnsupportedFeatureError, "Unsupported expression type: Lambda"),
        ("[i for i in x]", UnsupportedFeatureError, "Unsupported expression type: ListComp"),
        ("{1: 2}", UnsupportedFeatureError, "Unsupported expression type: Dict"),
        ("{1, 2}", UnsupportedFeatureError, "Unsupported expression type: Set"),
        ("f'{x}'", UnsupportedFeatureError, "Unsupported expression type: JoinedStr"),
        ("'text'", ParserTypeError, "Unsupported constant type"),
        ("...", ParserTypeError, "Unsupported constant type"),
        ("1 < x < 3", ParserSyntaxError, "Only simple comparisons supported"),
        ("x is None", UnsupportedFeatureError, "Unsupported comparison"),
        ("x in DIMS", UnsupportedFeatureError, "Unsupported comparison"),
        ("+x", UnsupportedFeatureError, "Unsupported unary operator: UAdd"),
        ("x @ x", UnsupportedFeatureError, "Unsupported binary operator: MatMult"),
        ("x.shape", UnsupportedFeatureError, "Standalone attribute access not supported"),
        ("x.shape[0]", UnsupportedFeatureError, "Standalone attribute access"),
        ("pl.exp(x)", InvalidOperationError, "expected Tensor or Tile"),
        ("pl.nothing(x)", InvalidOperationError, r"Unknown operation 'pl\.nothing'"),
        ("pl.tensor.nothing(x)", InvalidOperationError, r"Unknown pl\.tensor operation: nothing"),
        ("pl.tile.nothing(x)", InvalidOperationError, r"Unknown pl\.tile operation: nothing"),
        ("pl.range(x)", InvalidOperationError, r"Unknown operation 'pl\.range'"),
        ("pl.no_dep(x)", InvalidOperationError, r"Unknown operation 'pl\.no_dep'"),
        ("pld.nothing(x)", InvalidOperationError, r"Unknown distributed operation 'pld\.nothing'"),
        ("pld.c.nothing(x)", InvalidOperationError, r"Unknown distributed category 'pld\.c'"),
        ("np.zeros(x)", UnsupportedFeatureError, "Unsupported operation call"),
        ("x.foo()", UnsupportedFeatureError, "Unsupported operation call"),
        ("foo(x)", UnsupportedFeatureError, "Unsupported function call"),
    ],
)
def test_unsupported_expressions(text, error, message):
    with pytest.raises(error, match=message):
        value_of("x: pl.Scalar[pl.INT32]", text)


def test_none_is_the_invalid_task_id():
    value = value_of("x: pl.Scalar[pl.INT32]", "None")
    assert value.op.name == "system.task_invalid"
    assert value.type == ir.ScalarType(ir.DataType.TASK_ID)


# -- operator calls ------------------------------------------------------------------------------------------


def test_op_errors_carry_operation_span_and_scalar_hint():
    with pytest.raises(InvalidOperationError) as caught:
        value_of("x: pl.Tensor[[4], pl.FP32], s: pl.Scalar[pl.FP32]", "pl.add(s, x)")
    assert caught.value.span["line"] == 4
    assert "s1 + s2" in caught.value.hint


def test_op_kwargs_take_captured_values_and_infinities():
    @pl.function
    def f(x: pl.Tensor[[4, 4], pl.FP32]):
        y = pl.full([4, 4], dtype=pl.FP32, value=-math.inf)
        z = pl.cast(x, target_type=pl.FP16, mode="floor")
        return y, z

    full, cast = (stmt.value for stmt in f.body.stmts[:2])
    assert full.args[1].value == -math.inf
    assert cast.kwargs["mode"] == 3


def test_op_attrs_are_attached_to_the_call():
    value = value_of("x: pl.Tensor[[4], pl.FP32]", 'pl.exp(x, attrs={"pipeline_membership": "0:1"})')
    assert value.attrs == {"pipeline_membership": "0:1"}
    with pytest.raises(ParserSyntaxError, match="is not a writable attr"):
        value_of("x: pl.Tensor[[4], pl.FP32]", 'pl.exp(x, attrs={"dummy_task": True})')


def test_mixing_tensor_and_tile_is_reported():
    with pytest.raises(InvalidOperationError, match="cannot mix Tensor and Tile arguments"):
        value_of("x: pl.Tensor[[4, 4], pl.FP32], t: pl.Tile[[4, 4], pl.FP32]", "pl.add(x, t)")


def test_every_op_node_has_the_span_of_its_call():
    value = value_of("x: pl.Tensor[[4], pl.FP32]", "pl.exp(pl.add(x, 1.0))")
    assert (value.span.begin_line, value.span.begin_column) == (4, 9)
    assert (value.args[0].span.begin_column, value.args[0].span.end_column) == (16, 30)


# -- annotations on assignments ------------------------------------------------------------------------------


def test_scalar_annotation_restamps_index_constants():
    stmts = body_of("x: pl.Scalar[pl.INT32]", "s: pl.Scalar[pl.INT64] = 0\nreturn s")
    assert stmts[0].value.dtype == ir.DataType.INT64
    assert stmts[0].var.type == ir.ScalarType(ir.DataType.INT64)


def test_scalar_annotation_accepts_other_integers_for_index_only():
    text = "for i in pl.range(4):\n    n: pl.Scalar[{0}] = i\nreturn x"
    body_of("x: pl.Scalar[pl.INT32]", text.format("pl.INT32"))
    with pytest.raises(ParserTypeError, match="has dtype"):
        body_of("x: pl.Scalar[pl.INT32]", text.format("pl.FP32"))


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        ("pl.Tile[[64], pl.FP32]", "is Tile but expression has type Tensor"),
        ("pl.Tensor[[64], pl.FP16]", "has dtype fp16 but expression has dtype fp32"),
        ("pl.Tensor[[8, 8], pl.FP32]", "has rank 2 but expression has rank 1"),
        ("pl.Tensor[[32], pl.FP32]", "has shape dimension 0 = 32 but expression has shape dimension 0 = 64"),
    ],
)
def test_annotation_contradicting_the_value(annotation, message):
    with pytest.raises(ParserTypeError, match=message) as caught:
        body_of("x: pl.Tensor[[64], pl.FP32]", f"t: {annotation} = pl.exp(x)\nreturn t")
    assert caught.value.hint.startswith("Change annotation to: pl.Tensor[[64], pl.FP32]")


def test_extent_of_an_array_annotation_is_compared():
    with pytest.raises(ParserTypeError, match="has shape dimension 0 = 5 but expression has") as caught:
        body_of("a: pl.Array[4, pl.INT32]", "b: pl.Array[5, pl.INT32] = a\nreturn b")
    assert caught.value.hint == "Change annotation to: pl.Array[4, pl.INT32]"


def test_annotations_that_say_nothing_are_skipped():
    for annotation in ("'anything'", "pl.UnknownType", "pl.Ptr", "pld.CommCtxType"):
        stmts = body_of("x: pl.Tensor[[64], pl.FP32]", f"t: {annotation} = pl.exp(x)\nreturn t")
        assert stmts[0].var.type == ir.TensorType([64], ir.DataType.FP32)


# -- parameter annotations -----------------------------------------------------------------------------------


def types_of(*annotations: str, prelude: str = "") -> list[ir.Type]:
    params = ", ".join(f"p{i}: {a}" for i, a in enumerate(annotations))
    function = pl.parse(
        f"from __future__ import annotations\n{prelude}\n@pl.function\ndef f({params}):\n    return\n"
    )
    return [param.type for param in function.params]


def test_basic_types():
    tensor, tile, scalar, array, tid = types_of(
        "pl.Tensor[[4, 8], pl.FP32]", "pl.Tile[[4, 8], pl.BF16, pl.Mem.Mat]", "pl.Scalar[pl.BOOL]",
        "pl.Array[4, pl.INT32]", "pl.TaskId",
    )  # fmt: skip
    assert tensor == ir.TensorType([4, 8], ir.DataType.FP32)
    assert tile == ir.TileType([4, 8], ir.DataType.BF16, memory_space=ir.MemorySpace.Mat)
    assert scalar == ir.ScalarType(ir.DataType.BOOL)
    assert array == ir.ArrayType(ir.DataType.INT32, 4)
    assert tid == ir.ScalarType(ir.DataType.TASK_ID)


def test_legacy_call_forms():
    tensor, tile, scalar = types_of(
        "pl.Tensor((4, 8), pl.FP32)", "pl.Tile((4, 8), pl.FP32)", "pl.Scalar(pl.INT8)"
    )
    assert tensor == ir.TensorType([4, 8], ir.DataType.FP32)
    assert tile == ir.TileType([4, 8], ir.DataType.FP32)
    assert scalar == ir.ScalarType(ir.DataType.INT8)


def test_directions():
    function = pl.parse(
        "@pl.function\ndef f(a: pl.Tensor[[4], pl.FP32], b: pl.Out[pl.Tensor[[4], pl.FP32]], "
        "c: pl.InOut[pl.Tensor[[4], pl.FP32]], d: pl.Out[pl.Scalar[pl.INT32]]):\n    return a\n"
    )
    directions = [ir.ParamDirection.In, ir.ParamDirection.Out, ir.ParamDirection.InOut, ir.ParamDirection.Out]
    assert function.param_directions == directions


def test_return_annotations():
    code = "@pl.function\ndef f(a: pl.Scalar[pl.INT32]){}:\n    return a\n"
    scalar = ir.ScalarType(ir.DataType.INT32)
    assert pl.parse(code.format("")).return_types == []
    assert pl.parse(code.format(" -> pl.Scalar[pl.INT32]")).return_types == [scalar]
    assert (
        pl.parse(code.format(" -> tuple[pl.Scalar[pl.INT32], pl.Scalar[pl.INT32]]")).return_types
        == [scalar] * 2
    )
    assert pl.parse(code.format(" -> pl.Tuple[pl.Scalar[pl.INT32]]")).return_types == [ir.TupleType([scalar])]
    assert pl.parse(code.format(" -> pl.Tuple[()]")).return_types == [ir.TupleType([])]


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        ("pl.Tensor", "Incomplete type annotation"),
        ("int", "Unsupported type annotation"),
        ("'T'", "Unsupported type annotation"),
        ("Foo[[4], pl.FP32]", "Unknown type in subscript"),
        ("Foo([4], pl.FP32)", "Unknown type constructor"),
        ("pl.Tensor[[4]]", r"Tensor subscript requires \[shape, dtype\]"),
        ("pl.Tile[[4, 4]]", r"Tile subscript requires \[shape, dtype\]"),
        ("pl.Tensor[[4], pl.FP33]", "Unknown dtype: FP33"),
        ("pl.Tensor[[4], pl.DataType.FP33]", "Unknown DataType: FP33"),
        ("pl.Tensor[[4], NUMBER]", "Dtype variable 'NUMBER' must be a DataType"),
        ("pl.Tensor[[4], 1 + 1]", "Cannot resolve dtype"),
        ("pl.Tensor[nothing, pl.FP32]", "Unknown shape variable"),
        ("pl.Tensor[NUMBER, pl.FP32]", "Shape 'NUMBER' must be a list or tuple"),
        ("pl.Tensor[WORDS, pl.FP32]", r"element 1 must be int or pl\.dynamic\(\)"),
        ("pl.Tensor['ab', pl.FP32]", "Shape must be a list, tuple, or variable"),
        ("pl.Tensor[[nothing], pl.FP32]", "Unknown shape variable: nothing"),
        ("pl.Tensor[[TEXT], pl.FP32]", r"Shape variable 'TEXT' must be int or pl\.dynamic\(\)"),
        ("pl.Tensor[[4], pl.FP32, pl.DN]", r"pl\.DN\] is not supported"),
        ("pl.Tensor[[4], pl.FP32, LAYOUT]", r"LAYOUT\] is not supported"),
        ("pl.Tensor[[4], pl.FP32, pl.WRONG]", "Unknown layout: WRONG"),
        ("pl.Tensor[[4], pl.FP32, NUMBER]", "Layout variable 'NUMBER' must be a TensorLayout"),
        ("pl.Tensor[[4], pl.FP32, pl.NZ, pl.NZ]", r"4th argument must be pl\.MemRef"),
        ("pl.Tensor[[4], pl.FP32, pl.TensorView([1])]", "does not accept positional arguments"),
        ("pl.Tensor[[4], pl.FP32, pl.TensorView(strides=[1])]", "Unknown TensorView keyword argument"),
        ("pl.Tile[[4, 4], pl.FP32, pl.NZ]", "Tile does not accept layouts"),
        ("pl.Tile[[4, 4], pl.FP32, pl.Mem.Vec, pl.Mem.Mat]", "at most one memory-space argument"),
        ("pl.Tile[[4, 4], pl.FP32, pl.TileView(), pl.TileView()]", r"at most one pl\.TileView"),
        ("pl.Tile[[4, 4], pl.FP32, pl.MemRef('a', 0, 64)]", "must also specify explicit memory space"),
        ("pl.Tile[[4, 4], pl.FP32, 7]", "Unsupported Tile annotation argument"),
        ("pl.Tile[[4, 4], pl.FP32, pl.TileView(blayout=pl.TileLayout.diagonal)]", "Unknown TileLayout value"),
        ("pl.Tile[[4, 4], pl.FP32, pl.TileView(pad=pl.PadValue.nine)]", "Unknown PadValue value"),
        ("pl.Tile[[4, 4], pl.FP32, pl.TileView(compact=pl.CompactMode.x)]", "Unknown CompactMode value"),
        ("pl.Tile[[4, 4], pl.FP32, pl.TileView(fractal='x')]", "TileView fractal must be an integer"),
        ("pl.Tile[[4, 4], pl.FP32, pl.TileView(stride=4)]", "Expected a list"),
        (
            "pl.Tile[[4, 4], pl.FP32, pl.TileView(start_offset=pl.yield_(1))]",
            r"cannot contain pl\.yield_\(\)",
        ),
        ("pl.InOut[pl.Scalar[pl.INT32]]", "Scalar parameters cannot have InOut direction"),
        ("tuple[pl.Scalar[pl.INT32], pl.Scalar[pl.INT32]]", "Parameter type cannot be a tuple"),
        ("pl.Tuple[pl.Tuple[()]]", "Nested tuple types are not supported"),
        ("pl.Tensor[[4], pl.FP32, pl.MemRef('a', 0)]", r"pl\.MemRef requires 3 arguments"),
    ],
)
def test_bad_annotations(annotation, message):
    prelude = "NUMBER = 3\nWORDS = [1, 'a']\nTEXT = 'x'\nLAYOUT = pl.DN\n"
    with pytest.raises(ParserTypeError, match=message) as caught:
        types_of(annotation, prelude=prelude)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("pl.Tensor[64, pl.FP32]", "not iterable"),
        ("pl.Tensor[['a'], pl.FP32]", "must hold ints and expressions, got str"),
        ("pl.Tensor[[64], 3]", "dtype must be a DataType, got int"),
        ("pl.Tensor[[64, 4], pl.FP32, pl.DN]", r"KIND\] is not supported"),
    ],
)
def test_captured_annotations_are_checked_where_they_are_used(kind, message):
    with pytest.raises(ParserTypeError, match=message) as caught:
        types_of("KIND", prelude=f"KIND = {kind}")
    line = caught.value.source_lines[caught.value.span["line"] - 1]
    assert line[caught.value.span["column"] - 1 :].startswith("KIND")


def test_missing_parameter_annotation():
    with pytest.raises(ParserTypeError, match="Parameter 'x' missing type annotation"):
        pl.parse("@pl.function\ndef f(x):\n    return x\n")


def test_shapes_from_captured_values():
    prelude = "M = pl.dynamic('M')\nSHAPE = [4, 8]\nDIMS = (2, 3, 4)\n"
    named, bare, sliced, mixed = types_of(
        "pl.Tensor[SHAPE, pl.FP32]", "pl.Tensor[[M, 2], pl.FP32]", "pl.Tensor[DIMS[0:2], pl.FP32]",
        "pl.Tensor[[M * 2, SHAPE[0] + 1], pl.FP32]", prelude=prelude,
    )  # fmt: skip
    assert named == ir.TensorType([4, 8], ir.DataType.FP32)
    assert [d.value for d in sliced.shape] == [2, 3]
    m = bare.shape[0]
    assert isinstance(m, ir.Var)
    assert isinstance(mixed.shape[0], ir.Mul) and mixed.shape[0].left is m
    assert mixed.shape[1].value == 5


def test_shape_may_be_computed_by_a_python_function():
    M = pl.dynamic("M")

    def get_shape():
        return [M, 2]

    @pl.function
    def f(x: pl.Tensor[get_shape(), pl.FP32]):
        return x

    assert [str(d) for d in f.params[0].type.shape] == ["M", "2"]


def test_const_dims_are_rebuilt_and_not_folded():
    (shape,) = types_of("pl.Tensor[[pl.const(32, pl.INDEX) + pl.const(32, pl.INDEX)], pl.FP32]")
    assert isinstance(shape.shape[0], ir.Add)


def test_dynamic_symbol_is_shared_by_the_methods_of_a_program():
    M = pl.dynamic("M")

    @pl.program
    class P:
        @pl.function
        def a(self, x: pl.Tensor[[M, 64], pl.FP32]):
            return x

        @pl.function
        def b(self, x: pl.Tensor[[M, 64], pl.FP32]):
            return x

    a, b = (f.params[0].type.shape[0] for f in P.functions.values())
    assert a is b


def test_two_dynamic_objects_of_one_name_are_one_symbol():
    M, other = pl.dynamic("M"), pl.dynamic("M")

    @pl.function
    def f(x: pl.Tensor[[M], pl.FP32], y: pl.Tensor[[other], pl.FP32]):
        return x

    assert f.params[0].type.shape[0] is f.params[1].type.shape[0]


def test_index_parameter_named_like_a_symbol_is_the_symbol():
    M = pl.dynamic("M")

    @pl.function
    def f(M: pl.Scalar[pl.INDEX], x: pl.Tensor[[M, 4], pl.FP32]):
        return x

    @pl.function
    def g(x: pl.Tensor[[M, 4], pl.FP32]):
        return x

    assert f.params[1].type.shape[0] is f.params[0]
    assert g.params[0].type.shape[0] is not f.params[0]


def test_symbol_parameter_after_its_use_is_rejected():
    code = "M = pl.dynamic('M')\n@pl.function\ndef f(x: pl.Tensor[[M], pl.FP32], M: pl.Scalar[pl.INDEX]):\n    return x\n"
    with pytest.raises(ParserTypeError, match="shadows the dynamic symbol"):
        pl.parse(code)


def test_a_scalar_parameter_of_a_method_may_shape_a_tensor_before_it():
    code = (
        "import pypto.language as pl\n@pl.program\nclass P:\n    @pl.function\n"
        "    def f(self, x: pl.Tensor[[rows, 4], pl.FP32], rows: pl.Scalar[pl.INDEX]):\n        return x\n"
    )
    function = pl.parse_program(code).get_function("f")
    assert function.params[0].type.shape[0] is function.params[1]
    assert [param.name_hint for param in function.params] == ["x", "rows"]


def test_layouts_and_views():
    nz, view, variable = types_of(
        "pl.Tensor[[64, 32], pl.FP32, pl.NZ]",
        "pl.Tensor[[64, 32], pl.FP32, pl.TensorView(stride=[1, 64], layout=pl.TensorLayout.DN)]",
        "pl.Tensor[[64, 32], pl.FP32, VIEW]",
        prelude="VIEW = pl.TensorView(stride=[32, 1], layout=pl.TensorLayout.ND, valid_shape=[8, 32])",
    )
    assert nz.tensor_view.layout is ir.TensorLayout.NZ and nz.tensor_view.stride == []
    assert view.tensor_view.layout is ir.TensorLayout.DN
    assert [d.value for d in variable.tensor_view.valid_shape] == [8, 32]


def test_tile_extras_in_any_order_give_equal_types():
    a, b = types_of(
        "pl.Tile[[16, 16], pl.FP32, pl.MemRef('m', 0, 1024), pl.Mem.Vec, pl.TileView(valid_shape=[8, 16])]",
        "pl.Tile[[16, 16], pl.FP32, pl.TileView(valid_shape=[8, 16]), pl.MemRef('m', 0, 1024), pl.Mem.Vec]",
    )
    assert a == b
    assert a.memref.base_ is b.memref.base_


def test_omitted_tile_view_fields_follow_shape_and_memory_space():
    column, acc, narrow = types_of(
        "pl.Tile[[32, 1], pl.FP32, pl.Mem.Vec, pl.TileView(valid_shape=[8, 1])]",
        "pl.Tile[[32, 32], pl.FP32, pl.Mem.Acc, pl.TileView(valid_shape=[8, 32])]",
        "pl.Tile[[16, 8], pl.FP32, pl.Mem.Vec, pl.TileView(valid_shape=[16, 1])]",
    )
    assert column.tile_view.blayout is ir.TileLayout.col_major
    view = acc.tile_view
    assert (view.blayout, view.slayout, view.fractal) == (
        ir.TileLayout.col_major,
        ir.TileLayout.row_major,
        1024,
    )
    assert narrow.tile_view.blayout is ir.TileLayout.row_major


# -- declared allocations ------------------------------------------------------------------------------------


def test_declared_memref_is_one_pinned_allocation():
    scratch = pl.MemRef()

    @pl.function(type=pl.FunctionType.InCore)
    def f(x: pl.Tensor[[16, 16], pl.FP32]):
        a: pl.Tile[[16, 16], pl.FP32, scratch, pl.Mem.Vec] = pl.load(x, [0, 0], [16, 16])
        b: pl.Tile[[16, 16], pl.FP32, scratch, pl.Mem.Vec] = pl.add(a, a)
        return b

    a, b = (stmt.var.type.memref for stmt in f.body.stmts[:2])
    assert a.base_ is b.base_
    assert a.base_.name_hint == "scratch"
    assert a.is_pinned_


def test_declared_memref_under_two_names_is_rejected():
    one = pl.MemRef()
    two = one
    with pytest.raises(ParserTypeError, match="is also referenced as"):

        @pl.function(type=pl.FunctionType.InCore)
        def f(x: pl.Tensor[[16, 16], pl.FP32]):
            a: pl.Tile[[16, 16], pl.FP32, one, pl.Mem.Vec] = pl.load(x, [0, 0], [16, 16])
            b: pl.Tile[[16, 16], pl.FP32, two, pl.Mem.Vec] = pl.add(a, a)
            return b


def test_memref_slots():
    ring = pl.MemRef("ring", slots=2)

    @pl.function(type=pl.FunctionType.InCore)
    def f(x: pl.Tensor[[16, 16], pl.FP32]):
        a: pl.Tile[[16, 16], pl.FP32, ring[1], pl.Mem.Vec] = pl.load(x, [0, 0], [16, 16])
        return a

    assert f.body.stmts[0].var.type.memref.slot_index_.value == 1
    with pytest.raises(ParserTypeError, match="Slot index 2 is out of range"):

        @pl.function(type=pl.FunctionType.InCore)
        def g(x: pl.Tensor[[16, 16], pl.FP32]):
            a: pl.Tile[[16, 16], pl.FP32, ring[2], pl.Mem.Vec] = pl.load(x, [0, 0], [16, 16])
            return a


@pytest.mark.parametrize(
    ("memref", "message"),
    [
        ("pl.MemRef('a')[0]", "was declared with a single slot"),
        ("pl.MemRef('a', 0, 64)[0]", "holds a single slot"),
        ("pl.MemRef('')", "must be a non-empty string literal"),
        ("pl.MemRef('a', slots=0)", "slots must be a positive integer literal"),
    ],
)
def test_memref_misuse(memref, message):
    with pytest.raises(ParserTypeError, match=message) as caught:
        types_of(f"pl.Tile[[4, 4], pl.FP32, {memref}, pl.Mem.Vec]")
    assert caught.value.hint


def test_later_allocation_adopts_the_pointer_of_the_signature():
    function = pl.parse(
        "@pl.function(type=pl.FunctionType.InCore)\n"
        "def f(x: pl.Tile[[16, 16], pl.FP32, pl.MemRef('mem_vec_0', 0, 1024), pl.Mem.Vec]):\n"
        "    mem_vec_0: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 1024)\n"
        "    return x\n"
    )
    assert function.body.stmts[0].var is function.params[0].type.memref.base_


def test_mixed_chains_fold_their_captured_part_only():
    value = value_of("x: pl.Scalar[pl.INDEX]", "N * 2 + 1 + x + N * 3", "N = 64")
    assert isinstance(value, ir.Add) and isinstance(value.left, ir.Add)
    assert (value.left.left.value, value.right.value) == (129, 192)


def test_very_long_chains_are_linear_and_calls_nest_deeply():
    value_of("x: pl.Scalar[pl.INDEX]", "x" + " + 1" * 2500)
    value_of("x: pl.Tensor[[4], pl.FP32]", "pl.exp(" * 150 + "x" + ")" * 150)


def test_captured_lists_in_keywords_share_the_symbols_of_the_signature():
    M, other = pl.dynamic("M"), pl.dynamic("M")

    @pl.function
    def f(x: pl.Tensor[[M, 4], pl.FP32]):
        y = pl.full(shape=[other, 4], dtype=pl.FP32, value=0.0)
        return y

    assert f.body.stmts[0].var.type.shape[0] is f.params[0].type.shape[0]


def test_printed_infinities_are_read_back():
    value = value_of("x: pl.Scalar[pl.FP32]", "pl.max(x, -inf)")
    assert value.right.value == -math.inf
    with pytest.raises(UndefinedVariableError):

        @pl.function
        def f(x: pl.Scalar[pl.FP32]):
            y = inf  # noqa: F821
            return y


def test_a_mode_may_be_given_by_position():
    value = value_of("x: pl.Tensor[[4], pl.FP32]", 'pl.cast(x, pl.FP16, "floor")')
    assert value.kwargs["mode"] == 3


def test_keyword_lists_prefer_variables_of_the_body_over_captured_values():
    n = 32

    @pl.function
    def f(x: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INDEX]):
        y = pl.tensor.slice(x, [32, 64], [0, 0], valid_shape=[n // 2, 64])
        return y

    valid = f.body.stmts[0].var.type.tensor_view.valid_shape
    assert isinstance(valid[0], ir.FloorDiv)


def test_placed_allocations_with_slots_stand_in_signatures():
    code = (
        "@pl.function\ndef f(t: pl.Tile[[4, 4], pl.FP32, pl.MemRef('ring', pl.const(0, pl.INT64), 128, slots=2)[1], "
        "pl.Mem.Vec]):\n    return t\n"
    )
    memref = pl.parse(code).params[0].type.memref
    assert (memref.slot_count_, memref.slot_index_.value, memref.is_pinned_) == (2, 1, False)


def test_captured_placed_memref_is_plain_ir():
    place = pl.MemRef("pool", 64, 128)

    @pl.function(type=pl.FunctionType.InCore)
    def f(x: pl.Tensor[[4, 4], pl.FP32]):
        t: pl.Tile[[4, 4], pl.FP32, place, pl.Mem.Vec] = pl.load(x, [0, 0], [4, 4])
        return t

    memref = f.body.stmts[0].var.type.memref
    assert type(memref) is ir.MemRef
    assert (memref.base_.name_hint, memref.byte_offset_.value, memref.size_) == ("pool", 64, 128)


def test_constants_too_large_for_64_bits_are_reported():
    for text in ("2**70", "9**9**9", "1 << 100", "2**63"):
        with pytest.raises(ParserTypeError, match="does not fit into 64 bits"):
            value_of("x: pl.Scalar[pl.INT32]", text)


def test_typed_constant_as_extent_is_a_static_extent():
    (found,) = types_of("pl.Tensor[[pl.const(4, pl.INT32), 8], pl.FP32]")
    assert found == ir.TensorType([4, 8], ir.DataType.FP32)


def test_yield_has_no_place_in_a_shape():
    with pytest.raises(ParserTypeError, match=r"cannot contain pl\.yield_\(\)"):
        types_of("pl.Tensor[[pl.yield_(1), 8], pl.FP32]")


def test_annotations_of_scalars_compare_by_dtype():
    assert pl.TaskId == pl.Scalar[pl.TASK_ID] and pl.TaskId != pl.Scalar[pl.INT32]


@pytest.mark.parametrize(
    ("written", "value"), [("inf", math.inf), ("-inf", -math.inf), ("Infinity", math.inf)]
)
def test_float_of_infinity_is_a_constant(written: str, value: float) -> None:
    constant = value_of("x: pl.Tensor[[8, 8], pl.FP32]", f"pl.maximum(x, float('{written}'))").args[1]
    assert isinstance(constant, ir.ConstFloat) and constant.value == value


def test_float_of_nan_is_a_constant() -> None:
    constant = value_of("x: pl.Tensor[[8, 8], pl.FP32]", "pl.maximum(x, float('nan'))").args[1]
    assert isinstance(constant, ir.ConstFloat) and math.isnan(constant.value)


@pytest.mark.parametrize("written", ["float('1.5')", "float('x')", "float(n)", "float(1)"])
def test_float_of_anything_else_is_refused(written: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"Unsupported function call: float\(\)"):
        value_of("n: pl.Scalar[pl.INT32]", written)


def test_unpacking_a_tile_or_too_many_values_says_so() -> None:
    params = "x: pl.Tile[[8, 8], pl.FP32]"
    with pytest.raises(
        ParserSyntaxError, match="Cannot unpack a Tile into 2 names: only a tuple is unpacked"
    ):
        body_of(params, "a, b = pl.exp(x)\nreturn a")
    with pytest.raises(ParserSyntaxError, match="Cannot unpack 2 values into 3 names"):
        body_of(params, "t = (x, x)\na, b, c = t\nreturn a")


@pytest.mark.parametrize("operand", ["True", "rhs=True"])
def test_a_bool_is_no_scalar_operand(operand: str) -> None:
    with pytest.raises(
        InvalidOperationError, match=r"expected Tensor or Tile operands, got \(Tensor, bool\)"
    ):
        value_of("x: pl.Tensor[[8, 8], pl.FP32]", f"pl.add(x, {operand})")


def test_a_scalar_before_the_tensor_is_told_to_come_second() -> None:
    with pytest.raises(InvalidOperationError, match="expected Tensor or Tile operands") as caught:
        value_of("x: pl.Tensor[[8, 8], pl.FP32]", "pl.sub(1.0, x)")
    assert caught.value.hint.startswith("The tensor or tile comes first, as in pl.sub(x, 2.0).")
