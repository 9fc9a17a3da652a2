"""Which tile operators each tensor operator of a kernel becomes, with the names of what is added."""

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto import ir

from .stages import calls, converted

X, I32 = "pl.Tensor[[16, 32], pl.FP32]", "pl.Tensor[[16, 32], pl.INT32]"
COLUMN, ROW = "pl.Tensor[[16, 1], pl.FP32]", "pl.Tensor[[1, 32], pl.FP32]"


def lowered_kernel(body: str, params: str, result: str) -> ir.Function:
    lines = "".join(f"        {line}\n" for line in body.split("\n"))
    program = pl.parse_program(
        "import pypto.language as pl\n@pl.program\nclass P:\n"
        "    @pl.function(type=pl.FunctionType.InCore)\n"
        f"    def k(self, {params}) -> {result}:\n{lines}        return y\n"
    )
    kernel = converted(program)["k"]
    assert kernel is not None
    return kernel


SAME_NAME = [
    ("{}(x, 2.0)", f"x: {X}", X, "adds subs muls divs fmods"),
    ("{}(x)", f"x: {X}", X, "neg abs recip exp log sin cos sqrt rsqrt"),
    (
        "{}(x, z)",
        f"x: {X}, z: {X}",
        X,
        "add sub mul div maximum minimum fmod part_add part_mul part_max part_min",
    ),
    ("{}(x, z)", f"x: {I32}, z: {I32}", I32, "and_ or_ shl shr"),
    ("{}(x, 3)", f"x: {I32}", I32, "ands ors shls shrs"),
    (
        "{}(x, z)",
        f"x: {X}, z: {COLUMN}",
        X,
        "row_expand row_expand_mul row_expand_div row_expand_add row_expand_sub row_expand_max "
        "row_expand_min row_expand_expdif",
    ),
    (
        "{}(x, z)",
        f"x: {X}, z: {ROW}",
        X,
        "col_expand col_expand_mul col_expand_add col_expand_sub col_expand_div col_expand_max "
        "col_expand_min col_expand_expdif",
    ),
    ("{}(x)", f"x: {X}", ROW, "col_sum col_max col_min col_prod"),
    ("{}(x, pl.BF16)", f"x: {X}", "pl.Tensor[[16, 32], pl.BF16]", "cast"),
    ("{}(x, [32, 16])", f"x: {X}", "pl.Tensor[[32, 16], pl.FP32]", "reshape"),
    ("{}(x, pl.INT32)", f"x: {X}", I32, "reinterpret_view"),
    ("{}(x, z)", f"x: {X}, z: {X}", "pl.Tensor[[16, 64], pl.FP32]", "concat"),
    ("{}(x, 4, 32)", f"x: {X}", X, "set_validshape"),
    ("{}(x, 1.0)", f"x: {X}", X, "expands"),
]


@pytest.mark.parametrize(
    ("text", "params", "result", "name"),
    [(text, params, result, name) for text, params, result, names in SAME_NAME for name in names.split()],
)
def test_a_tensor_operator_becomes_the_tile_operator_of_its_name(
    text: str, params: str, result: str, name: str
) -> None:
    kernel = lowered_kernel(f"y = pl.tensor.{text.format(name)}", params, result)
    loads = ["tile.load"] * params.count(":")
    assert calls(kernel) == [*loads, f"tile.{name.removesuffix('_')}", "tile.store"]
    defined = [var.name_hint for var in ir.collect_def_vars(kernel.body)]
    assert defined == [*(f"{each}__tile" for each in "xz"[: len(loads)]), "y__tile", "ret0__store"]


@pytest.mark.parametrize(
    ("body", "params", "result", "operators", "added"),
    [
        ("y = T.full([16, 32], dtype=pl.FP32, value=1.0)", "", X, "full", ""),
        ("y = T.ci(0, [1, 32], dtype=pl.INT32)", "", "pl.Tensor[[1, 32], pl.INT32]", "ci", ""),
        ("y = T.create([16, 32], dtype=pl.FP32)", "", X, "create", ""),
        ("y = T.add(x, c)", f"x: {X}, c: {COLUMN}", X, "load load row_expand_add", ""),
        ("y = T.sub(x, c)", f"x: {X}, c: {COLUMN}", X, "load load row_expand_sub", ""),
        ("y = T.mul(c, x)", f"x: {X}, c: {COLUMN}", X, "load load row_expand_mul", ""),
        ("y = T.div(x, c)", f"x: {X}, c: {COLUMN}", X, "load load row_expand_div", ""),
        (
            "y = T.div(h, x)",
            f"h: pl.Tensor[[16, 32], pl.FP16], x: {X}",
            X,
            "load load cast div",
            "div_lhs_cast",
        ),
        (
            "y = T.div(x, h)",
            f"h: pl.Tensor[[16, 32], pl.FP16], x: {X}",
            X,
            "load load cast div",
            "div_rhs_cast",
        ),
        ("y = T.maximum(x, 1.0)", f"x: {X}", X, "load maximums", ""),
        ("y = T.minimum(x, 1.0)", f"x: {X}", X, "load minimums", ""),
        ("y = T.xor(x, z)", f"x: {I32}, z: {I32}", I32, "load load create xor", "xor_tmp"),
        ("y = T.xors(x, 3)", f"x: {I32}", I32, "load create xors", "xor_tmp"),
        ("y = T.rsqrt(x, high_precision=True)", f"x: {X}", X, "load create rsqrt", "rsqrt_tmp"),
        ("y = T.row_sum(x)", f"x: {X}", COLUMN, "load create row_sum", "tmp_tile [16, 128]"),
        (
            "y = T.row_max(x)",
            "x: pl.Tensor[[16, 256], pl.FP32]",
            COLUMN,
            "load create row_max",
            "tmp_tile [16, 256]",
        ),
        (
            "y = T.row_argmin(x)",
            f"x: {X}",
            "pl.Tensor[[16, 1], pl.INT32]",
            "load create row_argmin",
            "tmp_tile [16, 32]",
        ),
        (
            "y = T.col_argmax(x)",
            f"x: {X}",
            "pl.Tensor[[1, 32], pl.INT32]",
            "load create col_argmax",
            "tmp_tile [16, 32]",
        ),
        ("y = T.slice(x, [4, 32], [2, 0])", f"x: {X}", "pl.Tensor[[4, 32], pl.FP32]", "load", ""),
        (
            "q = pl.exp(x)\ny = T.slice(q, [4, 32], [2, 0])",
            f"x: {X}",
            "pl.Tensor[[4, 32], pl.FP32]",
            "load exp slice",
            "",
        ),
        ("y = pl.exp(x[3])", f"x: {X}", "pl.Tensor[[32], pl.FP32]", "load reshape exp", ""),
        (
            "q = pl.exp(x)\nw = pl.neg(x)\ny = T.assemble(w, q, [0, 0])",
            f"x: {X}",
            X,
            "load exp neg assemble",
            "",
        ),
        ("y = T.transpose(x, 0, 1)", f"x: {X}", "pl.Tensor[[32, 16], pl.FP32]", "load transpose", ""),
        ("y = T.fillpad(x, pad_value=pl.PadValue.zero)", f"x: {X}", X, "load fillpad", "fillpad_src"),
        ("y = T.cmp(x, z, cmp_type=0)", f"x: {X}, z: {X}", X, "load load cmp full full create sel", ""),
        ("y = T.cmp(x, 1.0, cmp_type=0)", f"x: {X}", X, "load cmps full full create sel", ""),
        (
            "y = T.matmul(x, w)",
            "x: pl.Tensor[[2, 16, 32], pl.FP32], w: pl.Tensor[[2, 32, 16], pl.FP32]",
            "pl.Tensor[[2, 16, 16], pl.FP32]",
            "load load batch_matmul",
            "",
        ),
        (
            "q = pl.exp(w)\ny = T.matmul(x, q, b_trans=True)",
            f"x: {X}, w: {X}",
            "pl.Tensor[[16, 16], pl.FP32]",
            "load exp load move transpose_view matmul",
            "q__ssa_v0_mat",
        ),
        (
            "y = T.mrgsort(x, z)",
            "x: pl.Tensor[[1, 128], pl.FP32], z: pl.Tensor[[1, 128], pl.FP32]",
            "pl.Tensor[[1, 256], pl.FP32]",
            "load load create mrgsort_format2",
            "mrgsort2_tmp [1, 256]",
        ),
    ],
)
def test_other_operators_become_dedicated_forms(
    body: str, params: str, result: str, operators: str, added: str
) -> None:
    kernel = lowered_kernel(body.replace("T.", "pl.tensor."), params, result)
    assert calls(kernel) == [*(f"tile.{each}" for each in operators.split()), "tile.store"]
    name, _, shape = added.partition(" ")
    found = {var.name_hint: var for var in ir.collect_def_vars(kernel.body)}
    assert not name or name in found
    assert not shape or str(ir.MakeTuple(found[name].type.shape, ir.Span.unknown())) == shape


def test_elements_of_memory_are_read_and_written_in_place_and_those_of_a_value_in_its_tile() -> None:
    memory = "s = pl.tensor.read(x, [0, 0])\npl.tensor.write(o, [0, 0], s)\ny = pl.tensor.exp(x)"
    kernel = lowered_kernel(memory, f"x: {X}, o: {X}", X)
    assert calls(kernel) == ["tile.load", "tensor.read", "tensor.write", "tile.exp", "tile.store"]
    value = "y = pl.tensor.exp(x)\ns = pl.tensor.read(y, [0, 0])\npl.tensor.write(y, [0, 1], s)"
    kernel = lowered_kernel(value, f"x: {X}", X)
    assert calls(kernel) == ["tile.load", "tile.exp", "tile.read", "tile.write", "tile.store"]
