"""Each operator of the registry: calls print as text that reads back as an equal call and prints alike.

A call may lack keywords that the language always gives. So a random call is printed and read first, which
makes it a call of the language; that one must then survive printing and reading unchanged.
"""

from __future__ import annotations

import random
import warnings
import zlib

import pytest

import pypto.language as pl
from pypto import ir

from .operator_calls import S, callable_operators, calls_of

REGION_ONLY = {"tile.aiv_shard", "tile.aic_gather", "tensor.aiv_shard", "tensor.aic_gather"}
HOST_ONLY = {"pld.tensor.alloc_window_buffer", "pld.system.world_size"}

#: calls whose operands are too particular to be met by chance
PARTICULAR = {
    "pld.system.nranks": ("c: pld.CommCtx", "pld.system.nranks(c)"),
    "pld.tensor.put": (
        "d: pld.DistributedTensor[[16, 16], pl.FP32], s: pl.Tensor[[16, 16], pl.FP32]",
        "pld.tensor.put(d, 1, s, atomic=pl.AtomicType.Add, chunk_rows=8, chunk_cols=16)",
    ),
    "pld.tile.get": (
        "d: pld.DistributedTensor[[16, 16], pl.FP32], t: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec]",
        "pld.tile.get(d, 1, d, t)",
    ),
    "pld.tile.put": (
        "d: pld.DistributedTensor[[16, 16], pl.FP32], t: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec]",
        "pld.tile.put(d, 1, d, t, atomic=pl.AtomicType.Add)",
    ),
    "tensor.random": ("x: pl.Tensor[[1], pl.FP32]", "pl.tensor.random(1, 2, 3, 4, 5, 6, [8, 256])"),
    "tile.random": ("x: pl.Tensor[[1], pl.FP32]", "pl.tile.random(1, 2, 3, 4, 5, 6, [8, 256])"),
    "tile.gemv_acc": (
        "a: pl.Tile[[16, 16], pl.FP32, pl.Mem.Acc, pl.TileView(valid_shape=[1, 16])], "
        "v: pl.Tile[[1, 16], pl.FP32, pl.Mem.Left], m: pl.Tile[[16, 16], pl.FP32, pl.Mem.Right]",
        "pl.tile.gemv_acc(a, v, m)",
    ),
    "tensor.scatter_update": (
        "t: pl.Tensor[[16, 16], pl.FP32], i: pl.Tensor[[2, 4], pl.INT32], s: pl.Tensor[[8, 16], pl.FP32]",
        "pl.tensor.scatter_update(t, i, s, dim=-2)",
    ),
    "tile.scatter_update": (
        "t: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec], i: pl.Tile[[2, 8], pl.INT32, pl.Mem.Vec], "
        "s: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec]",
        "pl.tile.scatter_update(t, i, s, dim=-2)",
    ),
    "tile.mrgsort_format1": (
        "t: pl.Tile[[1, 256], pl.FP32, pl.Mem.Vec]", "pl.tile.mrgsort_format1(t, 64)",
    ),
}  # fmt: skip
_SCALED = (
    "l: pl.Tile[[16, 64], pl.FP8E4M3FN, pl.Mem.Left], ls: pl.Tile[[16, 2], pl.FP8E8M0, pl.Mem.LeftScale], "
    "r: pl.Tile[[64, 32], pl.FP8E4M3FN, pl.Mem.Right], rs: pl.Tile[[2, 32], pl.FP8E8M0, pl.Mem.RightScale], "
    "a: pl.Tile[[16, 32], pl.FP32, pl.Mem.Acc], b: pl.Tile[[1, 32], pl.FP32, pl.Mem.Bias]"
)
PARTICULAR |= {
    "tile.matmul_mx": (_SCALED, "pl.tile.matmul_mx(l, ls, r, rs)"),
    "tile.matmul_mx_acc": (_SCALED, "pl.tile.matmul_mx_acc(a, l, ls, r, rs)"),
    "tile.matmul_mx_bias": (_SCALED, "pl.tile.matmul_mx_bias(l, ls, r, rs, b)"),
}


def function_of(call: ir.Call) -> ir.Function:
    """A function that evaluates the call on its parameters."""
    params = list(dict.fromkeys(arg for arg in call.args if isinstance(arg, ir.Var)))
    if isinstance(call.type, ir.UnknownType):
        body: ir.Stmt = ir.EvalStmt(call, S)
    else:
        body = ir.AssignStmt(ir.Var("result", call.type, S), call, S)
    if call.op.name in REGION_ONLY:
        body = ir.SplitAivScopeStmt(ir.SplitMode(call.kwargs.get("split", 1)), 2, "", body, S)
    place = (ir.Level.HOST, ir.Role.Orchestrator) if call.op.name in HOST_ONLY else (None, None)
    on_core = call.op.name in REGION_ONLY or not call.op.name.startswith(("tensor.", "pld."))
    kind = ir.FunctionType.InCore if on_core else ir.FunctionType.Opaque
    return ir.Function("f", params, [], body, S, kind, *place)


def assert_survives(function: ir.Function) -> None:
    text = function.as_python(format=False)
    again = pl.parse(text)
    ir.assert_structural_equal(function, again)
    assert again.as_python(format=False) == text


def read(text: str) -> ir.Function | None:
    """The function; None where the language refuses the call, for want of a keyword for example."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            parsed = pl.parse(text)
        except pl.parser.ParserError:
            return None
    assert isinstance(parsed, ir.Function)
    return parsed


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", callable_operators())
def test_calls_of_each_operator_print_and_read_back(name: str) -> None:
    if name in PARTICULAR:
        params, call = PARTICULAR[name]
        decorator = "" if name.startswith("tensor.") else "(type=pl.FunctionType.InCore)"
        assert_survives(pl.parse(f"@pl.function{decorator}\ndef f({params}):\n    result = {call}\n"))
        return
    rng = random.Random(zlib.crc32(name.encode()))
    survived = 0
    for call in calls_of(name, rng, attempts=3000):
        function = read(function_of(call).as_python(format=False))
        if function is not None:
            assert_survives(function)
            survived += 1
        if survived == 4:
            break
    assert survived


TENSORS = "x: pl.Tensor[[8, 16], pl.FP32], v: pl.Tensor[[16], pl.FP32], i: pl.Tensor[[8, 16], pl.INT32]"


@pytest.mark.parametrize(
    "call",
    [
        "pl.tensor.gather(x, i, dim=-1)",
        "pl.tensor.scatter(x, i, x, dim=-1)",
        "pl.tensor.row_max(v, axis=-1, keep_dim=False)",
        "pl.tensor.matmul_acc(x, x, x, True, a_trans=True, b_trans=False)",
    ],
)
def test_the_printed_form_reads_back_where_the_language_orders_its_parameters_otherwise(call: str) -> None:
    params = TENSORS.replace("[8, 16], pl.FP32", "[16, 16], pl.FP32") if "matmul" in call else TENSORS
    function = pl.parse(f"@pl.function\ndef f({params}):\n    result = {call}\n")
    assert f"= {call}" in function.as_python(format=False)
    assert_survives(function)


def test_a_keyword_of_neither_form_is_refused() -> None:
    with pytest.raises(pl.parser.InvalidOperationError, match="unexpected keyword argument 'keep'"):
        pl.parse(f"@pl.function\ndef f({TENSORS}):\n    result = pl.tensor.row_max(v, keep=False)\n")


@pytest.mark.parametrize(
    "call, missing",
    [
        ("pl.tensor.cast(x)", "target_type"),
        ("pl.tensor.create([8, 16])", "dtype"),
        ("pl.tensor.reinterpret_view(x)", "dtype"),
        ("pl.system.sync_src()", "set_pipe"),
        ("pl.array.create(4)", "dtype"),
    ],
)
def test_a_keyword_that_the_language_requires_is_not_optional_in_the_printed_form(
    call: str, missing: str
) -> None:
    with pytest.raises(pl.parser.InvalidOperationError, match=f"missing .* required .*'{missing}'"):
        pl.parse(f"@pl.function\ndef f({TENSORS}):\n    result = {call}\n")


def test_a_remote_load_with_tail_padding_reads_back() -> None:
    target = "d: pld.DistributedTensor[[16, 16], pl.FP32]"
    call = "pld.tile._remote_load_with_physical_tail_padding(d, pl.const(1, pl.INT32), [8, 0], [16, 16])"
    function = pl.parse(f"@pl.function\ndef f({target}):\n    result = {call}\n")
    assert function.body.value.kwargs == {"allow_physical_tail_padding": True}
    assert call in function.as_python(format=False)
    assert_survives(function)
