"""Further facts that messages of type inference must hold, one line per rule."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pypto import ir
from pypto.ir import op_registry
from pypto.ir.op import attributes, system
from pypto.ir.op import tensor as T
from pypto.ir.op import tile as L
from pypto.ir.op.distributed import tensor_ops as pld_tensor
from tests.ir.op.operands import NOWHERE, Acc, Mat, rejects, symbol, tensor, tile, window

n = symbol("n")
INT32 = ir.INT32
X, V = tensor([8, 16]), tile([8, 16])
F8, E8 = ir.FP8E4M3FN, ir.FP8E8M0


def raw(name: str, *args: ir.Expr, **kwargs: object) -> ir.Call:
    return ir.create_op_call(name, list(args), kwargs, NOWHERE)


def numbers(*values: int) -> ir.MakeTuple:
    return ir.MakeTuple([ir.ConstInt(value, ir.INDEX, NOWHERE) for value in values], NOWHERE)


CASES: list[tuple[Callable[[], object], str]] = [
    # tensor level
    (lambda: T.row_sum(tensor([])), "at least a 1D tensor"),
    (lambda: T.row_sum(X, axis=5), "out of range"),
    (lambda: T.row_expand_mul(tensor([8]), tensor([8])), "rank >= 2"),
    (lambda: T.row_expand_add(tensor([8, 8], ir.INT64), tensor([8, 1], ir.INT64)), "row_expand_add"),
    (lambda: T.expand_clone(X, X), "rank-3"),
    (lambda: T.expand_clone(tensor([1, 1, 4]), tensor([2, 2, 4])), "at most one axis"),
    (lambda: T.expand_clone(tensor([3, 1, 4]), tensor([2, 1, 4])), "broadcast"),
    (lambda: T.matmul(tensor([]), X), "rank >= 1"),
    (lambda: T.matmul(tensor([2, 4, 8]), tensor([3, 8, 4])), "[2]"),
    (lambda: T.matmul_acc(tensor([8]), X, X), "acc of rank >= 2"),
    (lambda: T.matmul_acc(X, X, tensor([16, 16], ir.FP16)), "identical"),
    (lambda: T.matmul_acc(tensor([8, 9]), X, tensor([16, 16])), "N=9"),
    (lambda: raw("tensor.cmp", X, X), "cmp_type"),
    (lambda: T.random(0, 0, 0, 0, 0, 0, [8]), "2D shape"),
    (lambda: T.random(0, 0, 0, 0, 0, 0.5, [8, 8]), "INT32 scalars"),
    (lambda: T.ci(0, []), "non-empty"),
    (lambda: raw("tensor.create", numbers(4)), "'dtype'"),
    (lambda: T.create([1.5], ir.FP32), "integer"),
    (lambda: T.create_l1([0], ir.FP32), "positive"),
    (lambda: raw("tensor.slice", X, X, X), "TupleType"),
    (lambda: T.slice(X, [1, 16], [0, 0], drop_dims=[2]), "out of range"),
    (lambda: T.slice(X, [1, 16], [0, 0], drop_dims=[0, 0]), "twice"),
    (lambda: T.slice(X, [1, 16], [0, 0], drop_dims=[-1]), "non-negative"),
    (lambda: T.slice(X, [8, 16], [0, 0], valid_shape=[-1, 16]), "non-negative"),
    (lambda: T.assemble(X, X, [0]), "one offset per target dimension"),
    (lambda: T.transpose(tensor([8, 8], layout=ir.TensorLayout.NZ), 0, 1), "NZ"),
    (lambda: T.transpose(X, 0, 1, [8]), "valid_shape rank"),
    (lambda: T.reshape(X, [128], [1, 2]), "valid_shape rank"),
    (lambda: T.view(X, [0, 128]), "positive"),
    (lambda: T.view(tensor([8, 16], stride=[32, 1]), [128]), "packed source"),
    (lambda: T.view(tensor([8]), [8], layout=ir.TensorLayout.DN), "DN layout requires rank >= 2"),
    (lambda: T.view(tensor([8]), layout=ir.TensorLayout.DN), "rank >= 2"),
    (lambda: T.view(X, [8, 16], [9, 16]), "exceeds target shape"),
    (lambda: T.view(X, [8, 16], [0, 16]), "positive"),
    (lambda: T.view(X, [8, 16], [8]), "valid_shape rank"),
    (lambda: T.view(X, [16, 8], [16, 8], layout=ir.TensorLayout.DN), "requires ND layout"),
    (lambda: T.view(X, None, [8, 16]), "valid_shape requires shape"),
    (lambda: T.view(tensor([8, 16], stride=[8, 1]), layout=ir.TensorLayout.DN), "not canonical"),
    (lambda: T.reinterpret_view(window([8]), ir.INT16), "distributed tensors"),
    (lambda: T.reinterpret_view(tensor([8], ir.BOOL), ir.INT16), "source dtype"),
    (lambda: T.reinterpret_view(tensor([8], valid=[4]), ir.INT16, shape=[16]), "explicit shape"),
    (lambda: T.set_validshape(tensor([8]), 1, 1), "2D tensor"),
    (lambda: T.fillpad_expand(X, [8]), "rank 2"),
    (lambda: T.concat(tensor([8]), tensor([8])), "2D operands"),
    (lambda: T.gather(X, 5, tensor([8, 4], INT32)), "out of range"),
    (lambda: T.gather(tensor([8]), 0, tensor([8], INT32)), "rank >= 2"),
    (lambda: T.gather(X, 0, None), "both dim and index"),
    (lambda: T.gather(X, kvalue=1.0), "compare form needs"),
    (lambda: T.gather(X, -1, tensor([8, 4], INT32), offset=3), "offset"),
    (lambda: T.gather(tensor([8]), mask_pattern=1), "2D tensor"),
    (lambda: T.gather(X, mask_pattern=1, output_dtype=ir.FP16), "same bit width"),
    (lambda: T.gather(X, kvalue=1.0, cmp_mode="eq", out_cols=0), "positive out_cols"),
    (lambda: T.gather(X, kvalue=1.0, cmp_mode="eq", out_cols=4, count_dtype=ir.INT8), "count_dtype"),
    (lambda: T.gather(tensor([8]), kvalue=1.0, cmp_mode="eq", out_cols=4), "rank-2 src"),
    (lambda: T.gather_row(X, X, [0, 0], [0, 0], [4, 16], valid_shape=[4]), "same rank"),
    (lambda: T.scatter(tensor([8]), -1, tensor([8], INT32), tensor([8])), "2D tensors"),
    (lambda: T.scatter(X, 0, tensor([8, 16], INT32), X), "last dim"),
    (lambda: T.scatter(X, -1, tensor([8, 8], INT32), X), "equal src shape"),
    (lambda: T.scatter(X, -1, tensor([9, 16], INT32), tensor([9, 16])), "exceeds input extent"),
    (lambda: T.scatter(X, mask_pattern=1), "both mask_pattern and dst"),
    (lambda: T.scatter(X, -1), "dim, index and src"),
    (lambda: T.scatter_update(tensor([8]), -2, tensor([1, 2], INT32), tensor([2])), "2D or 4D"),
    (lambda: T.scatter_update(X, -2, tensor([2], INT32), X), "2D integer index"),
    (lambda: T.paged_gather(X, tensor([4], INT32), tensor([4], INT32), 0, 16, 4), "positive block_size"),
    (lambda: T.mrgsort(tensor([1, 64]), tensor([2, 64])), "equal leading dimensions"),
    (lambda: T.mrgsort(tensor([1, 64]), tensor([1, 64], ir.FP16)), "same dtype"),
    # tile level
    (lambda: L.create([8, 8], ir.FP32, transpose=True), "rank-2 tile in Mat"),
    (lambda: L.create([8, 8], ir.FP32, flat_layout=True), "requires Mat"),
    (lambda: raw("tile.move", V), "target_memory"),
    (lambda: raw("tile.extract", V, n, n, numbers(4, 4)), "target_memory"),
    (lambda: L.move(V, ir.MemorySpace.LeftScale), "rank-2 source in Mat"),
    (lambda: L.store(V, [0, 0], tensor([8, 16]), []), "non-empty"),
    (lambda: L.slice(V, [4, 4], [0, 0, 0]), "same rank"),
    (lambda: L.transpose(V, 0, 1, tile([8, 16], ir.FP16)), "dtype and rank"),
    (lambda: L.reinterpret_view(tile([8, 16], stride=[32, 1]), ir.INT16), "packed tiles"),
    (lambda: L.reinterpret_view(tile([8, 16], valid=[4, 16]), ir.INT16, shape=[16, 16]), "automatic shape"),
    (lambda: L.tri(0, [8]), "rank-2 shape"),
    (lambda: L.tri(0, [8, 8], [8]), "valid_shape rank"),
    (lambda: L.random(0, 0, 0, 0, 0, 0, [8]), "rank-2 shape"),
    (lambda: L.rsqrt(V, tile([8, 16], ir.FP16)), "tmp dtype"),
    (lambda: L.prelu(tile([8]), tile([8]), V), "rank-2 src"),
    (lambda: L.row_sum(tile([8]), tile([8])), "rank >= 2"),
    (lambda: L.row_sum(V, tile([8])), "tmp_tile of rank 2"),
    (lambda: L.row_expand_add(V, tile([8, 1]), tmp=X), "tmp to be a TileType"),
    (lambda: L.row_expand_mul(tile([8]), tile([8])), "rank >= 2"),
    (lambda: L.col_expand_mul(V, tile([1, 8])), "matching columns"),
    (lambda: L.sels(tile([8]), V, V, 0.0), "rank-2 mask"),
    (lambda: L.sels(tile([8, 16], ir.UINT8), V, tile([8]), 0.0), "rank-2 tmp"),
    (lambda: L.matmul(tile([8]), tile([8])), "rank-2 lhs"),
    (lambda: L.matmul_bias(V, tile([16, 4]), tile([2, 4])), "bias shape"),
    (lambda: raw("tile.gemv", tile([1, 16]), tile([16, 4]), acc_phase="late"), "acc_phase"),
    (lambda: L.gemv(tile([1, 16], ir.INT16), tile([16, 4], ir.INT16)), "INT8, FP16, BF16, FP32"),
    (lambda: L.gemv_acc(tile([16, 4], INT32, space=Acc), tile([1, 16]), tile([16, 4])), "accumulator dtype"),
    (lambda: L.gemv_acc(tile([8, 4], space=Acc), tile([1, 16]), tile([16, 4])), "accumulator shape"),
    (lambda: L.batch_matmul(tile([8]), V), "lhs of rank >= 2"),
    (lambda: L.batch_matmul(V, tile([16, 4], ir.FP16)), "identical"),
    (lambda: L.batch_matmul(V, tile([8, 4])), "inner dimensions"),
    (lambda: L.batch_matmul_acc(tile([8, 4], ir.FP16), V, tile([16, 4])), "accumulator dtype"),
    (lambda: L.batch_matmul_acc(tile([8, 5]), V, tile([16, 4])), "acc of shape"),
    (
        lambda: L.matmul_mx(tile([16, 64], F8), tile([16, 2]), tile([64, 32], F8), tile([2, 32], E8)),
        "lhs_scale",
    ),
    (
        lambda: L.matmul_mx(tile([16, 64], F8), tile([16, 3], E8), tile([64, 32], F8), tile([2, 32], E8)),
        "shape",
    ),
    (
        lambda: L.matmul_mx(tile([16, 64], F8), tile([16, 2], E8), tile([32, 32], F8), tile([2, 32], E8)),
        "physical K",
    ),
    (lambda: L.gatherb(V, tile([8, 8], INT32)), "UINT32"),
    (lambda: L.gatherb(tile([8, 16], ir.BOOL), tile([8, 8], ir.UINT32)), "numeric src"),
    (lambda: L.scatter(V, tile([2, 2]), tile([4], INT32)), "src's rank"),
    (lambda: L.mscatter(V, tile([8, 8], INT32), tensor([64])), "src's shape"),
    (lambda: L.mscatter(V, tile([8, 16], INT32), tensor([64], ir.FP16)), "tensor dtype"),
    (lambda: L.sort32(V, tile([8, 16], INT32)), "UINT32"),
    (lambda: L.mrgsort(V, tile([8, 16], ir.FP16), tmp=V), "same dtype"),
    (lambda: raw("tile.mrgsort_format2", V, V), "2 to 4 sources"),
    (lambda: raw("tile.mrgsort_format1", V, symbol("b", INT32)), "constant block_len"),
    (lambda: L.sort32(tile([]), tile([], ir.UINT32)), "rank >= 1"),
    (lambda: L.mgather(X, tile([8], INT32)), "rank-2 tile"),
    (lambda: L.mgather(X, tile([2, 8], INT32)), "[1, R] or [R, 1]"),
    (lambda: L.mgather(tensor([8]), tile([1, 8], INT32)), "rank >= 2"),
    (lambda: L.mgather(X, tile([1, 8], INT32), target_memory=Mat), "global memory"),
    (lambda: L.mgather(X, tile([1, 8], INT32), target_memory=Acc), "Vec or Mat"),
    (lambda: L.mgather(tensor([8, 16], ir.BOOL), tile([1, 8], INT32)), "mem dtype"),
    (lambda: L.mrgsort(V, V, None, V, V), "src3"),
    (lambda: L.mrgsort(V, V, block_len=64), "mutually exclusive"),
    # attribute values and system
    (lambda: attributes.resolve_compare_mode("near"), "cmp_mode"),
    (lambda: raw("system.sync_set", pipe=1), "operand or as kwarg"),
    (lambda: raw("system.sync_src", set_pipe=1), "wait_pipe"),
    (lambda: raw("system.sync_src", set_pipe=9, wait_pipe=1, event_id=0), "set_pipe to be a PipeType, got 9"),
    (lambda: raw("system.sync_dst", set_pipe=1, wait_pipe=-1, event_id=0), "wait_pipe to be a PipeType"),
    (lambda: raw("system.sync_set", pipe=8, event_id=0), "pipe to be a PipeType"),
    (lambda: raw("system.syncall", X), "takes no arguments"),
    (lambda: raw("system.syncall", X, mode="soft"), "INT32 tensor"),
    (lambda: raw("system.cacheinvalid", X), "shapes and offsets"),
    (lambda: raw("system.task_is_valid", n), "TASK_ID"),
    (lambda: system.syncall(gm_workspace=X), "mode='soft'"),
    (lambda: system.cacheinvalid(X, [8, 16]), "both shapes and offsets"),
]


@pytest.mark.parametrize("position", range(len(CASES)))
def test_message_holds_the_fact(position: int) -> None:
    build, fact = CASES[position]
    rejects(build, fact)


def test_static_integers_are_type_errors_when_they_are_not() -> None:
    rejects(lambda: T.cmp(X, 0, cmp_type=1.5), "compile-time int", error=TypeError)
    rejects(lambda: T.full([4], ir.FP32, True), "must be a number", error=TypeError)


@pytest.mark.parametrize(
    "build", [L.muls, L.cmps, L.expands, L.subs, L.shls, L.maximums, T.adds, T.ands, T.expands]
)
def test_an_operand_that_is_no_expression_is_named_by_a_type_error(build: Callable[..., object]) -> None:
    for operand in (5, "x", [1], None, ir.FP32):
        rejects(lambda operand=operand: build(operand, 1), "requires first argument", error=TypeError)


def test_a_window_buffer_has_a_positive_number_of_bytes() -> None:
    alloc = pld_tensor.alloc_window_buffer
    for size in (0, -4):
        rejects(lambda size=size: alloc(size, name="b"), "positive size")
    for extent in (1.5, symbol("f", ir.FP32), tile([4])):
        rejects(lambda extent=extent: alloc([extent, 2], dtype=ir.FP32, name="b"), "shape")
    rejects(lambda: alloc([4], dtype=4, name="b"), "must be a DataType", error=TypeError)


def test_every_operator_rejects_one_argument_too_many() -> None:
    for name in op_registry.registered_names():
        definition = op_registry.get_op_def(name)
        assert definition is not None
        if not definition.internal and definition.max_args < 100:
            with pytest.raises(ValueError, match="argument"):
                ir.create_op_call(name, [n] * (definition.max_args + 1), NOWHERE)
