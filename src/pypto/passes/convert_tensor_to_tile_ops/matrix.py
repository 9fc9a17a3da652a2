"""Matrix products. Their operands are loaded or moved to matrix memory; a transposed one is a view of it."""

from __future__ import annotations

from pypto import ir
from pypto.core.dtype import DataType
from pypto.ir.op.dtypes import promote
from pypto.passes.convert_tensor_to_tile_ops.kernel import KernelLowering, Mat
from pypto.passes.convert_tensor_to_tile_ops.pieces import (
    in_dtype,
    result_in_dtype,
    result_shape,
    tile_type,
    tuple_of,
)

__all__ = ["matmul", "matmul_acc"]

_MATRIX_SPACES = (ir.MemorySpace.Mat, ir.MemorySpace.Left, ir.MemorySpace.Right)


def matmul(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    """`lhs @ rhs`, accumulated in FP32 or INT32 and converted to the element type of the tensor result."""
    lhs_arg, rhs_arg = call.args_
    lhs_rank, rhs_rank = _rank(lhs_arg), _rank(rhs_arg)
    dtype = _common_dtype(lhs_arg, rhs_arg)
    lhs = _operand(k, lhs_arg, bool(call.kwargs_.get("a_trans")), dtype)
    rhs = _operand(k, rhs_arg, bool(call.kwargs_.get("b_trans")), dtype)
    if lhs_rank == 1:
        lhs = _reshaped(k, lhs, (k.index(1), *tile_type(lhs).shape_))
    if rhs_rank == 1:
        rhs = _reshaped(k, rhs, (*tile_type(rhs).shape_, k.index(1)))
    name = "tile.matmul" if max(lhs_rank, rhs_rank) <= 2 else "tile.batch_matmul"
    product = result_in_dtype(k, call, k.op(name, [lhs, rhs]))
    if 1 not in (lhs_rank, rhs_rank):
        return product
    return k.op("tile.reshape", [k.let("product", product), tuple_of(k, result_shape(call))])


def matmul_acc(k: KernelLowering, call: ir.Call, var: ir.Var | None) -> ir.Expr:
    """`acc + lhs @ rhs`; with a fourth operand that holds, the product alone."""
    acc_arg, lhs_arg, rhs_arg = call.args_[:3]
    acc = k.tile(acc_arg)
    dtype = _common_dtype(lhs_arg, rhs_arg)
    lhs = _operand(k, lhs_arg, bool(call.kwargs_.get("a_trans")), dtype)
    rhs = _operand(k, rhs_arg, bool(call.kwargs_.get("b_trans")), dtype)
    if max(_rank(acc_arg), _rank(lhs_arg), _rank(rhs_arg)) <= 2:
        return k.op("tile.matmul_acc", [acc, lhs, rhs, *call.args_[3:]])
    if len(call.args_) > 3:
        raise ValueError(f"tensor.matmul_acc takes init_cond only for matrices, not for batches [{k.span}]")
    return k.op("tile.batch_matmul_acc", [acc, lhs, rhs])


def _operand(k: KernelLowering, arg: ir.Expr, transposed: bool, dtype: DataType) -> ir.Expr:
    name = arg.name_hint if isinstance(arg, ir.Var) else "operand"
    tile = in_dtype(k, k.tile(arg, Mat), dtype)
    if tile_type(tile).memory_space not in _MATRIX_SPACES:
        tile = k.let(f"{name}_mat", k.op("tile.move", [tile], target_memory=Mat))
    if not transposed:
        return tile
    rank = len(tile_type(tile).shape_)
    if rank == 2:
        return k.let(f"{name}_t", k.op("tile.transpose_view", [tile]))
    # each matrix of a batch: no view has its elements
    return k.let(f"{name}_t", k.op("tile.transpose", [tile, k.index(rank - 2), k.index(rank - 1)]))


def _common_dtype(lhs: ir.Expr, rhs: ir.Expr) -> DataType:
    """The element type in which both operands enter the product; products take equal types only."""
    assert isinstance(lhs.type, ir.ShapedType) and isinstance(rhs.type, ir.ShapedType)
    return promote(lhs.type.dtype, rhs.type.dtype)


def _rank(arg: ir.Expr) -> int:
    assert isinstance(arg.type, ir.ShapedType)
    return len(arg.type.shape_)


def _reshaped(k: KernelLowering, tile: ir.Expr, shape: tuple[ir.Expr, ...]) -> ir.Expr:
    return k.let("as_matrix", k.op("tile.reshape", [tile, tuple_of(k, shape)]))
