"""Text of types, constants, operators, calls and attribute values."""

from __future__ import annotations

import os

import pytest

from pypto import DataType, InternalError, ir
from pypto.ir import formatter
from tests.ir.nodes import S, assign, const, seq, tensor, var

D = DataType
INDEX, INT32, INT64, FP16, FP32 = ir.INDEX, ir.INT32, ir.INT64, ir.FP16, ir.FP32
Mem = ir.MemorySpace


def text(node, **options):
    return ir.python_print(node, format=False, **options)


def op(name, /, *args, attrs=None, **kwargs):
    return ir.Call(ir.Op(name), list(args), kwargs, attrs, ir.UnknownType(), S)


def tup(*elements):
    return ir.MakeTuple(list(elements), S)


def flt(value, dtype=FP32):
    return ir.ConstFloat(value, dtype, S)


def binary(cls, left, right, dtype=INT64):
    return cls(left, right, dtype, S)


# --- types


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (ir.ScalarType(INT64), "pl.Scalar[pl.INT64]"),
        (ir.TensorType([], FP32), "pl.Tensor[[], pl.FP32]"),
        (ir.TensorType([64, 32], ir.BF16), "pl.Tensor[[64, 32], pl.BF16]"),
        (
            ir.TensorType([64, 32], ir.BF16, None, ir.TensorView([], ir.TensorLayout.NZ)),
            "pl.Tensor[[64, 32], pl.BF16, pl.TensorView(stride=[], layout=pl.TensorLayout.NZ)]",
        ),
        (
            ir.TensorType([8], FP32, None, ir.TensorView([2], ir.TensorLayout.ND, [4], ir.PadValue.max)),
            "pl.Tensor[[8], pl.FP32, pl.TensorView(valid_shape=[4], stride=[2], layout=pl.TensorLayout.ND, "
            "pad=pl.PadValue.max)]",
        ),
        (ir.TileType([128, 128], FP32, None, None, Mem.Acc), "pl.Tile[[128, 128], pl.FP32, pl.Mem.Acc]"),
        (
            ir.TileType([16, 16], FP32, None, ir.TileView([8, 16], [16, 1], 4, pad=ir.PadValue.max), Mem.Vec),
            "pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec, pl.TileView(valid_shape=[8, 16], stride=[16, 1], "
            "start_offset=4, pad=pl.PadValue.max)]",
        ),
        (
            ir.TileType([16, 16], FP32, None, ir.TileView(), Mem.Mat),
            "pl.Tile[[16, 16], pl.FP32, pl.Mem.Mat, pl.TileView(blayout=pl.TileLayout.row_major, "
            "slayout=pl.TileLayout.none_box)]",
        ),
        (ir.ArrayType(INT32, 8), "pl.Array[8, pl.INT32]"),
        (
            ir.TupleType([ir.ScalarType(INT64), ir.ArrayType(INT32, 2)]),
            "pl.Tuple[pl.Scalar[pl.INT64], pl.Array[2, pl.INT32]]",
        ),
        (ir.TupleType([]), "pl.Tuple[()]"),
        (ir.PtrType(), "pl.Ptr"),
        (ir.UnknownType(), "pl.UnknownType"),
        (ir.CommCtxType(), "pld.CommCtxType"),
        (ir.WindowBufferType(), "pld.WindowBufferType"),
        (ir.DistributedTensorType([4], FP32), "pld.DistributedTensor[[4], pl.FP32]"),
        (ir.AsyncEventType(), "pl.AsyncEvent"),
    ],
)
def test_types_print_as_their_annotations(type_, expected):
    assert text(type_) == expected
    assert ir.python_print_type(type_, format=False) == expected


def test_explicit_layout_spells_the_layout_of_every_tile():
    acc = ir.TileType([128, 128], FP32, None, None, Mem.Acc)
    assert text(acc, explicit_layout=True) == (
        "pl.Tile[[128, 128], pl.FP32, pl.Mem.Acc, pl.TileView(blayout=pl.TileLayout.col_major, "
        "slayout=pl.TileLayout.row_major, fractal=1024)]"
    )


def test_extents_print_bare_whatever_their_dtype_and_typed_inside_composites():
    m = var("M", INDEX)
    for dtype in (D.INT8, D.INT16, D.INT32, D.INT64, D.INDEX, D.UINT8, D.UINT16, D.UINT32, D.UINT64):
        assert text(ir.TensorType([const(8, dtype)], FP32)) == "pl.Tensor[[8], pl.FP32]"
    assert text(ir.TensorType([m * 2], FP32)) == "pl.Tensor[[M * pl.const(2, pl.INDEX)], pl.FP32]"
    constants = binary(ir.Add, const(32), const(32), INDEX)
    assert text(ir.TensorType([constants], FP32)) == (
        "pl.Tensor[[pl.const(32, pl.INDEX) + pl.const(32, pl.INDEX)], pl.FP32]"
    )


def test_memory_references_quote_their_base_unless_the_body_defines_it():
    base = ir.Var("mem_vec_2", ir.PtrType(), S)
    tile = ir.TileType([64, 64], FP32, ir.MemRef(base, 0, 16384), None, Mem.Vec)
    assert text(tile) == (
        'pl.Tile[[64, 64], pl.FP32, pl.MemRef("mem_vec_2", pl.const(0, pl.INT64), 16384), pl.Mem.Vec]'
    )
    alloc = assign(base, op("tile.alloc", const(1, INT64), const(16384)))
    body = seq(alloc, assign(ir.Var("t", tile, S), op("tile.create", tup(const(64), const(64)))))
    assert "pl.MemRef(mem_vec_2, pl.const(0, pl.INT64), 16384)" in text(body)
    assert text(body).startswith("mem_vec_2: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 16384)\n")
    pinned = ir.MemRef("c", slots=2)
    assert text(ir.TileType([16, 16], FP32, pinned[1], None, Mem.Vec)) == (
        'pl.Tile[[16, 16], pl.FP32, pl.MemRef("c", slots=2)[1], pl.Mem.Vec]'
    )


# --- constants and operators


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (const(42), "42"),
        (const(-5), "-5"),
        (const(42, INT32), "pl.const(42, pl.INT32)"),
        (const(42, INT64), "pl.const(42, pl.INT64)"),
        (flt(1.0), "1.0"),
        (flt(0.1), "0.10000000000000001"),
        (flt(1e15), "1000000000000000.0"),
        (flt(1e17), "1e+17"),
        (flt(-0.0), "-0.0"),
        (flt(float("inf")), "inf"),
        (flt(1.0, FP16), "pl.const(1.0, pl.FP16)"),
        (ir.ConstBool(True, S), "True"),
    ],
)
def test_constants(value, expected):
    assert text(value) == expected


x, y, z = var("x"), var("y"), var("z")


def neg(e):
    return ir.Neg(e, INT64, S)


def not_(e):
    return ir.Not(e, ir.BOOL, S)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (binary(ir.Sub, x, binary(ir.Sub, y, z)), "x - (y - z)"),
        (binary(ir.Sub, binary(ir.Sub, x, y), z), "x - y - z"),
        (binary(ir.Pow, x, binary(ir.Pow, y, z)), "x ** y ** z"),
        (binary(ir.Pow, binary(ir.Pow, x, y), z), "(x ** y) ** z"),
        (binary(ir.Pow, neg(x), y), "(-x) ** y"),
        (neg(binary(ir.Pow, x, y)), "-x ** y"),
        (binary(ir.Pow, const(-5), x), "(-5) ** x"),
        (binary(ir.And, binary(ir.Or, x, y), not_(z)), "(x or y) and not z"),
        (not_(binary(ir.Eq, x, y)), "not x == y"),
        (binary(ir.Eq, not_(x), y), "(not x) == y"),
        (binary(ir.BitShiftLeft, x, binary(ir.Add, y, z)), "x << y + z"),
        (binary(ir.BitAnd, binary(ir.BitOr, x, y), z), "(x | y) & z"),
        (binary(ir.Eq, binary(ir.Lt, x, y), z), "(x < y) == z"),
        (binary(ir.Eq, z, binary(ir.Lt, x, y)), "z == (x < y)"),
        (binary(ir.FloorMod, binary(ir.FloorDiv, x, y), z), "x // y % z"),
        (binary(ir.FloatDiv, x, y), "x / y"),
        (binary(ir.Xor, x, y), "x xor y"),
        (binary(ir.Min, x, binary(ir.Add, y, z)), "pl.min(x, y + z)"),
        (binary(ir.Max, x, y), "pl.max(x, y)"),
        (ir.Cast(x, INT32, S), "pl.cast(x, pl.INT32)"),
        (ir.Abs(x, INT64, S), "abs(x)"),
        (ir.BitNot(x, INT64, S), "~x"),
        (binary(ir.Add, const(1), const(2), INDEX), "pl.const(1, pl.INDEX) + pl.const(2, pl.INDEX)"),
        (
            binary(ir.Add, x, binary(ir.Mul, const(1), const(2), INDEX)),
            "x + pl.const(1, pl.INDEX) * pl.const(2, pl.INDEX)",
        ),
        (binary(ir.Add, x, const(2)), "x + 2"),
        (tup(const(0), x), "[0, x]"),
        (ir.TupleGetItemExpr(tup(tup(x)), 0, S), "[[x]][0]"),
    ],
)
def test_operators_carry_only_the_parentheses_that_reading_back_needs(expr, expected):
    assert text(expr) == expected


def test_a_deep_expression_costs_no_recursion_and_linear_time():
    chain = x
    for _ in range(50_000):
        chain = binary(ir.Add, chain, const(1))
    assert text(chain).count("+ 1") == 50_000
    nested = x
    for _ in range(50_000):
        nested = binary(ir.Add, const(1), nested)
    assert text(nested).endswith("x" + ")" * 49_999)


# --- calls


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            op("tile.load", x, tup(const(0)), tup(const(64)), target_memory=Mem.Vec),
            "pl.tile.load(x, [0], [64], target_memory=pl.Mem.Vec)",
        ),
        (
            op("tensor.cast", x, target_type=FP32, mode=2),
            "pl.tensor.cast(x, target_type=pl.FP32, mode='round')",
        ),
        (op("tile.store", x, y, z, atomic=1), "pl.tile.store(x, y, z, atomic=pl.AtomicType.Add)"),
        (
            op("system.sync_src", set_pipe=ir.PipeType.MTE2, wait_pipe=ir.PipeType.V, event_id=0),
            "pl.system.sync_src(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=0)",
        ),
        (op("system.sync_set", pipe=2), "pl.system.sync_set(pipe=pl.PipeType.MTE3)"),
        (op("tile.and", x, y), "pl.tile.and_(x, y)"),
        (op("tensor.or", x, y), "pl.tensor.or_(x, y)"),
        (op("tile.not", x), "pl.tile.not_(x)"),
        (op("pld.system.wait", x), "pld.system.wait(x)"),
        (op("my_op", x, name="it's"), "my_op(x, name='it\\'s')"),
        (op("tensor.add", x, flt(2.0)), "pl.tensor.adds(x, 2.0)"),
        (op("tensor.add", x, y), "pl.tensor.add(x, y)"),
        (
            op("tile.full", tup(const(8), const(16)), flt(1.0, FP16), dtype=FP16),
            "pl.tile.full([8, 16], dtype=pl.FP16, value=1.0)",
        ),
        (
            op("tile.reinterpret_view", x, tup(const(4)), dtype=ir.INT16),
            "pl.tile.reinterpret_view(x, dtype=pl.INT16, shape=[4])",
        ),
        (
            op("system.syncall", x, y, mode="soft", core_type="mix"),
            'pl.system.syncall(mode="soft", core_type="mix", gm_workspace=x, used_cores=y)',
        ),
        (op("tile.mgather", x, y, z, coalesce=1), "pl.tile.mgather(x, y, scratch=z, coalesce=1)"),
        (op("tile.mgather", x, y, z, coalesce=0), "pl.tile.mgather(x, y, valid_shape=z, coalesce=0)"),
        (
            op("system.syncall", x, ir.ConstInt(4, ir.INT32, S), mode="soft", core_type="aiv_only"),
            'pl.system.syncall(mode="soft", core_type="aiv_only", gm_workspace=x, used_cores=4)',
        ),
        (op("tile.tri", x, x, y, upper=True), "pl.tile.tri(x, x, valid_shape=y, upper=True)"),
        (op("tile.random", x, x, x, x, x, x, x, y), "pl.tile.random(x, x, x, x, x, x, x, valid_shape=y)"),
        (
            op("tile.gather_row", x, x, x, x, x, y),
            "pl.tile.gather_row(x, x, x, x, x, valid_shape=y)",
        ),
        (op("pld.tensor.alloc_window_buffer", x, name="w"), "pld.tensor.alloc_window_buffer(x)"),
        (op("system.task_dummy", attrs={"dummy_task": True}), "pl.system.task_dummy(deps=[])"),
    ],
)
def test_operator_calls_and_their_special_forms(call, expected):
    assert text(call) == expected


def test_attributes_of_every_kind_have_a_spelling():
    call = op(
        "tile.abs",
        x,
        attrs={
            "i": 3,
            "b": True,
            "s": 'a"b\\c\n',
            "f": 0.5,
            "dt": FP16,
            "m": Mem.Vec,
            "l": ir.TensorLayout.ND,
            "tl": ir.TileLayout.row_major,
            "p": ir.PadValue.zero,
            "d": ir.ArgDirection.NoDep,
            "arg_directions": [ir.ArgDirection.Input],
            "arg_direction_overrides": [0, 1],
            "vars": [x, y],
            "v": x,
            "e": binary(ir.Add, x, const(1)),
        },
    )
    assert text(call) == (
        'pl.tile.abs(x, attrs={"i": 3, "b": True, "s": "a\\"b\\\\c\\n", "f": 0.5, "dt": pl.FP16, '
        '"m": pl.Mem.Vec, '
        '"l": pl.TensorLayout.ND, "tl": pl.TileLayout.row_major, "p": pl.PadValue.zero, "d": pl.adir.no_dep, '
        '"arg_directions": [pl.adir.input], "arg_direction_overrides": [0, 1], "vars": [x, y], "v": x, '
        '"e": x + 1})'
    )


def test_constant_expressions_in_attributes_are_told_from_plain_numbers():
    values = {
        "a": 3,
        "b": const(3),
        "c": const(3, INT64),
        "d": 1.5,
        "e": flt(1.5),
        "f": flt(-0.0),
        "core_num": 4,
    }
    assert text(op("tile.abs", x, attrs=values)) == (
        'pl.tile.abs(x, attrs={"a": 3, "b": pl.const(3, pl.INDEX), "c": pl.const(3, pl.INT64), "d": 1.5, '
        '"e": pl.const(1.5, pl.FP32), "f": pl.const(-0.0, pl.FP32), "core_num": 4})'
    )
    with pytest.raises(InternalError, match="'k' holds a constant expression True"):
        text(op("tile.abs", x, attrs={"k": ir.ConstBool(True, S)}))


def test_what_has_no_spelling_is_an_error_not_a_loss():
    for key in ("manual_dep_edges", "dummy_task"):
        value = [x] if key == "manual_dep_edges" else True
        with pytest.raises(InternalError, match=r"system\.task_dummy"):
            text(op("tile.abs", x, attrs={key: value}))
    with pytest.raises(ValueError, match="mode 9"):
        text(op("tensor.cast", x, mode=9))
    with pytest.raises(InternalError, match="without a dtype"):
        text(op("tile.reinterpret_view", x))


# --- entry points


def test_str_is_the_default_text_and_prefixes_replace_the_module_name():
    node = op("tile.abs", x, attrs={"m": Mem.Vec})
    ir.register_format_callback(None)
    assert str(node) == node.as_python() == text(node)
    assert ir.python_print(node, "ir") == node.as_python("ir") == 'ir.tile.abs(x, attrs={"m": ir.Mem.Vec})'
    assert str(ir.ScalarType(DataType.INT64)) == "pl.Scalar[pl.INT64]"
    assert ir.python_print(object()) == "<unsupported IRNode type>"


def test_the_format_callback_sees_the_text_and_its_failures_cost_nothing():
    try:
        ir.register_format_callback(str.upper)
        assert str(x) == "X"
        assert x.as_python(format=False) == "x"

        def broken(text: str) -> str:
            raise OSError("gone")

        ir.register_format_callback(broken)
        assert str(x) == "x"
        ir.register_format_callback(lambda text: None)
        assert str(x) == x.as_python() == "x"
    finally:
        ir.register_format_callback(None)
    with pytest.raises(TypeError):
        ir.register_format_callback(3)


def test_text_goes_through_ruff_where_it_is_installed_and_stays_as_it_is_where_that_fails(
    tmp_path, monkeypatch
):
    body = seq(assign(var("a"), x), ir.EvalStmt(op("tile.abs", x, k="s"), S))
    ruff = tmp_path / "ruff"
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    for script, expected in (("tr a-z A-Z", text(body).upper()), ("cat; exit 1", text(body))):
        ruff.write_text(f'#!/bin/sh\ntest "$*" = "format --line-length 200 -" && {script}\n')
        ruff.chmod(0o755)
        monkeypatch.setattr(formatter, "_registration", formatter._Registration())
        assert str(body) == body.as_python() == expected
    assert text(body) == body.as_python(format=False)
    ruff.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(formatter, "_registration", formatter._Registration())
    assert str(body) == text(body)


def test_printing_a_statement_keeps_raw_names_where_they_are_unique():
    body = seq(assign(var("a"), x), assign(var("a"), x), assign(var("a_1"), x), assign(var("a"), x))
    assert text(body, concise=True).split("\n") == ["a = x", "a_2 = x", "a_1 = x", "a_3 = x"]
    assert text(tensor(4)) == "t"
