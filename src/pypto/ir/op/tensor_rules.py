"""Type inference of tensor operators that compute: one rule per family.

A rule factory takes the operator's name (for messages) and what distinguishes the members of the family,
and returns the inference function. Operators that only look at data differently are in
``tensor_view_rules``.
"""

from __future__ import annotations

from collections.abc import Sequence

from pypto.core.dtype import DataType
from pypto.ir.expr import ConstInt, Expr
from pypto.ir.op import dtypes as dt
from pypto.ir.op.extents import ONE, all_same, as_int, equal, is_one, is_zero, less_equal, mul, show, show_all
from pypto.ir.op.extents import add as add_extents
from pypto.ir.op.extents import floordiv as floordiv_extents
from pypto.ir.op.results import (
    broadcast_shapes,
    elements,
    fresh_tensor,
    int_elements,
    is_distributed,
    scalar_dtype,
    tensor_like,
    tensor_of,
    tensor_region,
)
from pypto.ir.op_registry import Args, Deduce, Kwargs
from pypto.ir.types import ScalarType, TensorType, TupleType, Type, scalar_type

DtypeRule = dt.DtypeSet | None


# --- elementwise ----------------------------------------------------------------------------------


def _equal_regions(lhs: TensorType, rhs: TensorType, op: str) -> bool:
    return (
        not is_distributed(lhs)
        and not is_distributed(rhs)
        and all_same(lhs.shape_, rhs.shape_)
        and all_same(tensor_region(lhs, op).valid, tensor_region(rhs, op).valid)
    )


def binary(op: str, *, carries: bool = True, allowed: DtypeRule = None, scalar_rhs: bool = True) -> Deduce:
    """Tensor with tensor (broadcasting) or scalar; promoted element type.

    ``carries``: equal valid regions are kept. ``allowed``: element types that both operands must have.
    """

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        lhs, rhs = tensor_of(args[0]), args[1].type
        if allowed is not None:
            dt.require(lhs.dtype, allowed, op, "lhs dtype")
            dt.require(rhs.dtype, allowed, op, "rhs dtype")  # type: ignore[attr-defined]
        if isinstance(rhs, ScalarType):
            dtype = dt.promote(lhs.dtype, rhs.dtype)
            return tensor_like(lhs, dtype) if carries else fresh_tensor(lhs.shape_, dtype)
        assert isinstance(rhs, TensorType)
        dtype = dt.promote(lhs.dtype, rhs.dtype)
        if lhs.tensor_view is None and rhs.tensor_view is None:
            shape = broadcast_shapes(op, lhs.shape_, rhs.shape_)
            if shape is lhs.shape_ and dtype is lhs.dtype and type(lhs) is TensorType and lhs.memref is None:
                return lhs
            return fresh_tensor(shape, dtype)
        shape = broadcast_shapes(op, lhs.shape_, rhs.shape_)
        if carries and _equal_regions(lhs, rhs, op):
            return tensor_like(lhs, dtype)
        return fresh_tensor(shape, dtype)

    return deduce


def div(op: str) -> Deduce:
    """True division of tensors of the few types that have it."""
    plain = binary(op, allowed=dt.INT16_INT32_FP16_FP32)

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        result = plain(args, kwargs)
        assert isinstance(result, TensorType)
        if kwargs.get("high_precision") and result.dtype not in (dt.FP16, dt.FP32):
            raise ValueError(
                f"The operator {op} supports high_precision only for FP16 or FP32, got {result.dtype}"
            )
        return result

    return deduce


def tensor_scalar(op: str, *, allowed: DtypeRule = None, keeps_dtype: bool = False) -> Deduce:
    """Tensor with scalar: the tensor's shape and valid region."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        lhs, scalar = tensor_of(args[0]), scalar_dtype(args[1], op, "second argument")
        if allowed is not None:
            dt.require(lhs.dtype, allowed, op, "tensor dtype")
            dt.require(scalar, allowed, op, "scalar dtype")
        return tensor_like(lhs, lhs.dtype if keeps_dtype else dt.promote(lhs.dtype, scalar))

    return deduce


def bitwise(op: str, *, keeps_lhs: bool = False, carries: bool = True) -> Deduce:
    """Integer tensors of exactly one shape."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        lhs, rhs = tensor_of(args[0]), tensor_of(args[1])
        for which, operand in (("lhs", lhs), ("rhs", rhs)):
            if not operand.dtype.is_int():
                raise ValueError(f"The operator {op} requires an integer {which} dtype, got {operand.dtype}")
        if not all_same(lhs.shape_, rhs.shape_):
            raise ValueError(
                f"The operator {op} requires equal shapes, got {show_all(lhs.shape_)} and "
                f"{show_all(rhs.shape_)}"
            )
        dtype = lhs.dtype if keeps_lhs else dt.promote(lhs.dtype, rhs.dtype)
        if carries and _equal_regions(lhs, rhs, op):
            return tensor_like(lhs, dtype)
        return fresh_tensor(lhs.shape_, dtype)

    return deduce


def bitwise_scalar(op: str, *, shift: bool = False, carries: bool = True) -> Deduce:
    """Integer tensor with integer scalar; the tensor's element type."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        lhs, scalar = tensor_of(args[0]), scalar_dtype(args[1], op, "second argument")
        if not lhs.dtype.is_int():
            raise ValueError(f"The operator {op} requires an integer tensor dtype, got {lhs.dtype}")
        if not scalar.is_int():
            raise ValueError(f"The operator {op} requires an integer scalar dtype, got {scalar}")
        amount = as_int(args[1])
        if shift and amount is not None and amount < 0:
            raise ValueError(f"The operator {op} requires a non-negative shift, got {amount}")
        return tensor_like(lhs, lhs.dtype) if carries else fresh_tensor(lhs.shape_, lhs.dtype)

    return deduce


def unary(
    op: str, *, floats: bool = False, allowed: DtypeRule = None, precise: DtypeRule = None, hint: str = ""
) -> Deduce:
    """One tensor. ``floats``: an integer input gives FP32. ``allowed``: accepted element types; ``precise``:
    those for which a high-precision form exists."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        source = tensor_of(args[0])
        dtype = source.dtype
        if allowed is not None and dtype not in allowed:
            wanted = " or ".join(each.member for each in allowed)
            article = "an" if wanted[0] in "AEFIO" else "a"
            raise ValueError(f"The operator {op} requires {article} {wanted} input, got {dtype}{hint}")
        if precise is not None and kwargs.get("high_precision") and dtype not in precise:
            raise ValueError(f"The operator {op} supports high_precision only for FP16 or FP32, got {dtype}")
        return tensor_like(source, dt.FP32 if floats and not dtype.is_float() else dtype)

    return deduce


def cast(op: str) -> Deduce:
    """Element conversion of a tensor."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        source = tensor_of(args[0])
        return tensor_like(source, cast_target(op, source.dtype, kwargs))

    return deduce


def cast_target(op: str, source: DataType, kwargs: Kwargs) -> DataType:
    """The target of a cast; ValueError for missing keywords, an unknown mode, or a cast to the same type."""
    for key in ("target_type", "mode"):
        if key not in kwargs:
            raise ValueError(f"The operator {op} requires a '{key}' kwarg")
    target, mode = kwargs["target_type"], kwargs["mode"]
    if not 0 <= mode <= 6:
        raise ValueError(f"The operator {op}: Invalid rounding mode {mode}, expected 0 to 6")
    if target is source:
        raise ValueError(f"The operator {op}: same-dtype cast is not a valid operation (both are {source})")
    assert isinstance(target, DataType)
    return target


def check_compare_code(op: str, kwargs: Kwargs) -> None:
    """ValueError unless the comparison code is one of the six (both levels)."""
    if "cmp_type" not in kwargs:
        raise ValueError(f"The operator {op} requires a 'cmp_type' kwarg")
    if not 0 <= kwargs["cmp_type"] <= 5:
        raise ValueError(
            f"The operator {op} requires cmp_type 0 to 5 (eq ne lt le gt ge), got {kwargs['cmp_type']}"
        )


def expands(op: str) -> Deduce:
    """A tensor of the target's shape and element type, filled with a scalar."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        target = tensor_of(args[0])
        return fresh_tensor(
            target.shape_, dt.promote(target.dtype, scalar_dtype(args[1], op, "second argument"))
        )

    return deduce


# --- reductions and broadcasts along an axis ------------------------------------------------------


def reduction(op: str, axis: int, *, result: DataType | None = None, allowed: DtypeRule = None) -> Deduce:
    """Reduce one axis to extent 1; other axes keep their valid extents."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        source = tensor_of(args[0])
        rank = len(source.shape_)
        if rank == 0 or (axis == -2 and rank < 2):
            wanted = "at least a 2D tensor" if axis == -2 else "at least a 1D tensor"
            raise ValueError(f"The operator {op} requires {wanted}, got rank {rank}")
        if allowed is not None:
            dt.require(source.dtype, allowed, op)
        at = int(kwargs.get("axis", axis))
        if not -rank <= at < rank:
            raise ValueError(f"The operator {op}: axis {at} is out of range for rank {rank}")
        at %= rank
        dtype = result or source.dtype
        region = tensor_region(source, op)
        require_data(op, region.valid)
        if not kwargs.get("keep_dim", True):
            if rank == 1:
                return scalar_type(dtype)
            return fresh_tensor(_without(region.shape, at), dtype, _without(region.valid, at))
        return fresh_tensor(_with_one(region.shape, at), dtype, _with_one(region.valid, at))

    return deduce


def require_data(op: str, valid: Sequence[Expr]) -> None:
    """ValueError if a valid extent is provably zero: there would be nothing to reduce."""
    for axis, extent in enumerate(valid):
        if is_zero(extent):
            raise ValueError(f"The operator {op}: input valid extent on axis {axis} is 0")


def _without(extents: Sequence[Expr], axis: int) -> list[Expr]:
    return [extent for i, extent in enumerate(extents) if i != axis]


def _with_one(extents: Sequence[Expr], axis: int) -> list[Expr]:
    return [ONE if i == axis else extent for i, extent in enumerate(extents)]


def vector_expand(op: str, unit_axis: int, *, same_dtype: DtypeRule = None) -> Deduce:
    """Matrix with one value per row (``unit_axis`` -1) or per column (-2)."""
    other = -3 - unit_axis
    wanted = "[..., M, 1]" if unit_axis == -1 else "[..., 1, N]"

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        matrix, vector = tensor_of(args[0]), tensor_of(args[1])
        if len(matrix.shape_) < 2 or len(vector.shape_) < 2:
            raise ValueError(
                f"The operator {op} requires operands of rank >= 2, got {show_all(matrix.shape_)} and "
                f"{show_all(vector.shape_)}"
            )
        if not is_one(vector.shape_[unit_axis]):
            raise ValueError(
                f"The operator {op} requires its vector to have the shape {wanted} with a constant 1 on axis "
                f"{unit_axis}, got {show_all(vector.shape_)}"
            )
        if equal(matrix.shape_[other], vector.shape_[other]) is False:
            raise ValueError(
                f"The operator {op} requires equal extents on axis {other}, got {show_all(matrix.shape_)} "
                "and "
                f"{show_all(vector.shape_)}"
            )
        if same_dtype is not None:
            if matrix.dtype is not vector.dtype:
                raise ValueError(
                    f"The operator {op} requires the same dtype, got {matrix.dtype} and {vector.dtype}"
                )
            dt.require(matrix.dtype, same_dtype, op)
        dtype = dt.promote(matrix.dtype, vector.dtype)
        if matrix.tensor_view is None and type(matrix) is TensorType:
            return tensor_like(matrix, dtype)
        return fresh_tensor(matrix.shape_, dtype)

    return deduce


def expand_clone(op: str) -> Deduce:
    """A rank-3 tensor stretched along at most one unit axis to the shape of the target."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        source, target = tensor_of(args[0]), tensor_of(args[1])
        if len(source.shape_) != 3 or len(target.shape_) != 3:
            raise ValueError(f"The operator {op} requires rank-3 tensors")
        stretched = [
            i
            for i, (s, t) in enumerate(zip(source.shape_, target.shape_, strict=True))
            if not all_same([s], [t])
        ]
        for axis in stretched:
            if not is_one(source.shape_[axis]):
                raise ValueError(
                    f"The operator {op} requires {show_all(source.shape_)} to broadcast to "
                    f"{show_all(target.shape_)}"
                )
        if len(stretched) > 1:
            raise ValueError(f"The operator {op} stretches at most one axis, got {stretched}")
        return fresh_tensor(target.shape_, dt.promote(source.dtype, target.dtype))

    return deduce


# --- matrix products ------------------------------------------------------------------------------


def _trailing_swapped(shape: tuple[Expr, ...], flag: bool, op: str, name: str, side: str) -> tuple[Expr, ...]:
    if not flag:
        return shape
    if len(shape) < 2:
        raise ValueError(f"The operator {op}: {name} does not apply to a {len(shape)}D {side}")
    return (*shape[:-2], shape[-1], shape[-2])


def _check_inner(op: str, left: Expr, right: Expr) -> None:
    if equal(left, right) is False:
        raise ValueError(
            f"The operator {op} requires matching inner dimensions, got lhs K={show(left)} and rhs "
            f"K={show(right)}"
        )


def matmul(op: str) -> Deduce:
    """``[..., M, K] x [..., K, N]``, also with 1-D operands; batch axes broadcast."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        lhs, rhs = tensor_of(args[0]), tensor_of(args[1])
        if not lhs.shape_ or not rhs.shape_:
            raise ValueError(f"The operator {op} requires operands of rank >= 1")
        a = _trailing_swapped(lhs.shape_, bool(kwargs.get("a_trans")), op, "a_trans", "lhs")
        b = _trailing_swapped(rhs.shape_, bool(kwargs.get("b_trans")), op, "b_trans", "rhs")
        _check_inner(op, a[-1], b[-2] if len(b) > 1 else b[0])
        batch = broadcast_shapes(op, a[:-2], b[:-2])
        shape = (*batch, *a[-2:-1], *b[len(b) - 1 if len(b) > 1 else 1 :])
        out = kwargs.get("out_dtype")
        return fresh_tensor(shape, out if out is not None else dt.promote(lhs.dtype, rhs.dtype))

    return deduce


def matmul_acc(op: str) -> Deduce:
    """Matrix product added to an accumulator of the accumulation type."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        acc, lhs, rhs = tensor_of(args[0]), tensor_of(args[1]), tensor_of(args[2])
        for name, operand in (("acc", acc), ("lhs", lhs), ("rhs", rhs)):
            if len(operand.shape_) < 2:
                raise ValueError(
                    f"The operator {op} requires {name} of rank >= 2, got {show_all(operand.shape_)}"
                )
        if lhs.dtype is not rhs.dtype:
            raise ValueError(
                f"The operator {op} requires identical lhs and rhs dtypes, got {lhs.dtype} and {rhs.dtype}"
            )
        wanted = dt.accumulator(lhs.dtype)
        if acc.dtype is not wanted:
            raise ValueError(
                f"The operator {op} requires accumulator dtype {wanted} for {lhs.dtype}, got {acc.dtype}"
            )
        a = _trailing_swapped(lhs.shape_, bool(kwargs.get("a_trans")), op, "a_trans", "lhs")
        b = _trailing_swapped(rhs.shape_, bool(kwargs.get("b_trans")), op, "b_trans", "rhs")
        _check_inner(op, a[-1], b[-2])
        for name, have, want in (("M", acc.shape_[-2], a[-2]), ("N", acc.shape_[-1], b[-1])):
            if equal(have, want) is False:
                raise ValueError(
                    f"The operator {op} requires acc {name}={show(have)} to equal {name}={show(want)}"
                )
        batch = broadcast_shapes(op, a[:-2], b[:-2])
        if not all_same(acc.shape_[:-2], batch):
            raise ValueError(
                f"The operator {op}: acc batch dim {show_all(acc.shape_[:-2])} must equal the broadcast "
                "batch "
                f"{show_all(batch)}"
            )
        if len(args) == 4:
            check_init_cond(op, args[3])
        return fresh_tensor(acc.shape_, wanted)

    return deduce


def check_init_cond(op: str, cond: Expr) -> None:
    """ValueError unless the condition is a BOOL scalar."""
    dtype = scalar_dtype(cond, op, "init_cond")
    if dtype is not dt.BOOL:
        raise ValueError(
            f"The operator {op} requires init_cond to be a BOOL scalar such as 'k == 0', got {dtype}"
        )


# --- creation, elements ---------------------------------------------------------------------------


def ci(op: str, args: Args, kwargs: Kwargs) -> tuple[tuple[Expr, ...], DataType]:
    """Checked shape and element type of an arithmetic sequence (both levels)."""
    dtype = kwargs.get("dtype", dt.INT32)
    dt.require(dtype, (dt.INT16, dt.INT32, dt.UINT16, dt.UINT32), op)
    start = scalar_dtype(args[0], op, "start")
    if start is not dtype:
        raise ValueError(f"The operator {op} requires start dtype {dtype}, got {start}")
    shape = int_elements(args[1], op, "shape")
    if not shape:
        raise ValueError(f"The operator {op} requires a non-empty shape")
    for extent in shape[:-1]:
        if isinstance(extent, ConstInt) and extent.value != 1:
            raise ValueError(f"The operator {op}: leading dimensions must be 1, got {show_all(shape)}")
    if is_one(shape[-1]):
        raise ValueError(f"The operator {op}: the innermost dimension must not be 1, got {show_all(shape)}")
    return shape, dtype


def check_random(op: str, args: Args, kwargs: Kwargs) -> DataType:
    """Element type of a counter-based random operator after its checks (both levels)."""
    dtype: DataType = kwargs.get("dtype", dt.UINT32)
    dt.require(dtype, (dt.INT32, dt.UINT32), op)
    if kwargs.get("rounds", 10) not in (7, 10):
        raise ValueError(f"The operator {op} requires rounds to be 7 or 10, got {kwargs['rounds']}")
    for i in range(6):
        if scalar_dtype(args[i], op, f"argument {i}") not in (dt.INT32, dt.UINT32):
            raise ValueError(f"The operator {op} requires key and counter words to be INT32 scalars")
    return dtype


def check_indices(op: str, indices: Expr, rank: int, level: str) -> None:
    """ValueError unless there is one integer index per dimension, and no constant one below zero."""
    found = int_elements(indices, op, "indices")
    if len(found) != rank:
        raise ValueError(
            f"The operator {op}: indices count {len(found)} must match {level} rank {rank} (one index per "
            "dimension)"
        )
    for axis, index in enumerate(found):
        check_not_negative(op, index, axis)


def check_not_negative(op: str, index: Expr, axis: int) -> None:
    """ValueError for a constant index below zero."""
    if isinstance(index, ConstInt) and index.value < 0:
        raise ValueError(
            f"The operator {op}: index {index.value} of dimension {axis} is provably negative; negative "
            "indices do not count from the end: write the extent minus the distance"
        )


def check_value(op: str, value: Expr, dtype: DataType, level: str) -> None:
    """ValueError unless the written scalar has exactly the element type."""
    found = scalar_dtype(value, op, "value")
    if found is not dtype:
        raise ValueError(
            f"The operator {op} requires value dtype to match {level} dtype {dtype}, got {found}; "
            f"use pl.const or pl.cast(<value>, pl.{dtype.member})"
        )


# --- sort, gather, scatter ------------------------------------------------------------------------

#: columns that a mask pattern selects: pattern -> (stride, phase)
MASK_PATTERNS = {1: (2, 0), 2: (2, 1), 3: (4, 0), 4: (4, 1), 5: (4, 2), 6: (4, 3), 7: (1, 0)}


def mask_stride(op: str, kwargs: Kwargs) -> int:
    """How many source columns one selected column stands for."""
    pattern = kwargs.get("mask_pattern")
    if pattern not in MASK_PATTERNS:
        raise ValueError(f"The operator {op} requires mask_pattern in the range [1, 7], got {pattern}")
    return MASK_PATTERNS[pattern][0]


def masked_extent(op: str, columns: Expr, kwargs: Kwargs) -> Expr:
    """Number of columns that the mask selects; ValueError if a constant count does not divide."""
    stride = mask_stride(op, kwargs)
    count = as_int(columns)
    if count is not None and count % stride:
        raise ValueError(
            f"The operator {op}: {count} columns are not divisible by {stride} for this mask_pattern"
        )
    return floordiv_extents(columns, stride)


def same_width(op: str, source: DataType, kwargs: Kwargs) -> DataType:
    """``output_dtype``, which must have the bit width of the source; the source's type if it is not given."""
    out: DataType = kwargs.get("output_dtype") or source
    if out.get_bit() != source.get_bit():
        raise ValueError(
            f"The operator {op} requires output_dtype of the same bit width as {source}, got {out}"
        )
    return out


def sort32(op: str) -> Deduce:
    """Sort blocks of 32 columns into interleaved (value, index) pairs."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        source, index = tensor_of(args[0]), tensor_of(args[1])
        dt.require(source.dtype, (dt.FP16, dt.FP32), op, "src dtype")
        if index.dtype is not dt.UINT32:
            raise ValueError(f"The operator {op} requires idx dtype UINT32, got {index.dtype}")
        if not source.shape_ or not all_same(source.shape_, index.shape_):
            raise ValueError(
                f"The operator {op} requires src and idx of the same shape, got {show_all(source.shape_)} "
                "and "
                f"{show_all(index.shape_)}"
            )
        columns = as_int(source.shape_[-1])
        if columns is not None and columns % 32:
            raise ValueError(
                f"The operator {op} requires the last dimension to be a multiple of 32, got {columns}"
            )
        return fresh_tensor(
            (*source.shape_[:-1], mul(source.shape_[-1], ConstInt(2, dt.INDEX, args[0].span))), source.dtype
        )

    return deduce


def check_block_len(op: str, block_len: Expr) -> None:
    """ValueError unless a constant block length is a positive multiple of 64."""
    value = as_int(block_len)
    if value is not None and (value <= 0 or value % 64):
        raise ValueError(f"The operator {op} requires block_len to be a positive multiple of 64, got {value}")
    if not scalar_dtype(block_len, op, "block_len").is_int():
        raise ValueError(f"The operator {op} requires an integer block_len")


def merge_blocks(op: str) -> Deduce:
    """Merge groups of four sorted runs; same type."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        source = tensor_of(args[0])
        dt.require(source.dtype, (dt.FP16, dt.FP32), op, "src dtype")
        check_block_len(op, args[1])
        return fresh_tensor(source.shape_, source.dtype)

    return deduce


def merge_lists(op: str) -> Deduce:
    """Merge two to four sorted lists; the last extents add up."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        sources = [tensor_of(arg) for arg in args]
        first = sources[0]
        dt.require(first.dtype, (dt.FP16, dt.FP32), op, "src dtype")
        total = first.shape_[-1]
        for other in sources[1:]:
            if other.dtype is not first.dtype:
                raise ValueError(
                    f"The operator {op} requires the same dtype, got {first.dtype} and {other.dtype}"
                )
            if len(other.shape_) != len(first.shape_) or not all_same(other.shape_[:-1], first.shape_[:-1]):
                raise ValueError(
                    f"The operator {op} requires equal leading dimensions, got {show_all(first.shape_)} and "
                    f"{show_all(other.shape_)}"
                )
            total = add_extents(total, other.shape_[-1])
        return fresh_tensor((*first.shape_[:-1], total), first.dtype)

    return deduce


def check_gather_dtypes(op: str, source: DataType, index: DataType, what: str) -> None:
    """Element types of an indexed gather (both levels)."""
    dt.require(source, (dt.FP16, dt.FP32, dt.INT16, dt.INT32), op, "src dtype")
    if index is not dt.INT32 and index is not dt.INT16:
        raise ValueError(f"The operator {op} requires {what} dtype INT32 (or INT16), got {index}")
    if index is dt.INT16 and source.get_bit() != 16:
        raise ValueError(f"The operator {op} accepts {what} dtype INT16 only with a 16-bit src, got {source}")


def gather(op: str) -> Deduce:
    """Pick along one axis by index; the index shape, the input's element type."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        source, index = tensor_of(args[0]), tensor_of(args[1])
        check_gather_dtypes(op, source.dtype, index.dtype, "index")
        rank = len(source.shape_)
        if rank != len(index.shape_) or rank < 2:
            raise ValueError(
                f"The operator {op} requires input and index of one rank >= 2, got "
                f"{show_all(source.shape_)} and "
                f"{show_all(index.shape_)}"
            )
        dim = int(kwargs.get("dim", -1))
        if not -rank <= dim < rank:
            raise ValueError(f"The operator {op}: dim {dim} is out of range for rank {rank}")
        for axis in range(rank):
            if axis != dim % rank and less_equal(index.shape_[axis], source.shape_[axis]) is False:
                raise ValueError(
                    f"The operator {op}: index extent {show(index.shape_[axis])} exceeds input extent "
                    f"{show(source.shape_[axis])} on axis {axis}"
                )
        return fresh_tensor(index.shape_, source.dtype)

    return deduce


def gather_mask(op: str) -> Deduce:
    """Keep the columns that a pattern selects."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        source = tensor_of(args[0])
        if len(source.shape_) != 2:
            raise ValueError(f"The operator {op} requires a 2D tensor, got {show_all(source.shape_)}")
        columns = masked_extent(op, source.shape_[1], kwargs)
        return fresh_tensor((source.shape_[0], columns), same_width(op, source.dtype, kwargs))

    return deduce


def compare_types(op: str, source: DataType, rank: int, kvalue: Expr, kwargs: Kwargs) -> tuple[int, DataType]:
    """Checked ``out_cols`` and count element type of a compare-gather (both levels)."""
    dt.require(source, (dt.FP16, dt.FP32, dt.INT16, dt.INT32), op, "src dtype")
    if rank != 2:
        raise ValueError(f"The operator {op} requires a rank-2 src, got rank {rank}")
    found = scalar_dtype(kvalue, op, "kvalue")
    if found is not source:
        raise ValueError(f"The operator {op} requires kvalue dtype {source}, got {found}")
    if not 0 <= kwargs.get("cmp_mode", 0) <= 5:
        raise ValueError(f"The operator {op} requires cmp_mode 0 to 5, got {kwargs['cmp_mode']}")
    count: DataType = kwargs.get("count_dtype") or dt.INT32
    dt.require(count, (dt.INT32, dt.UINT32), op, "count_dtype")
    columns = kwargs.get("out_cols", 0)
    if columns <= 0:
        raise ValueError(f"The operator {op} requires a positive out_cols, got {columns}")
    return columns, count


def gather_compare(op: str) -> Deduce:
    """Column numbers of the matches of each row, and their count."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        source = tensor_of(args[0])
        columns, count = compare_types(op, source.dtype, len(source.shape_), args[1], kwargs)
        rows = source.shape_[0]
        return TupleType(
            [
                fresh_tensor((rows, ConstInt(columns, dt.INDEX, args[0].span)), dt.INT32),
                fresh_tensor((ONE, rows), count),
            ]
        )

    return deduce


def check_gather_row(op: str, acc: DataType, source: DataType, args: Args, kwargs: Kwargs) -> None:
    """The window operands of a row gather (both levels)."""
    if acc is not source:
        raise ValueError(f"The operator {op} requires dst and src to share dtype, got {acc} and {source}")
    int_elements(args[2], op, "dst_offset")
    int_elements(args[3], op, "src_offset")
    shapes = elements(args[4], op, "shapes")
    for i, extent in enumerate(shapes):
        if not isinstance(extent, ConstInt):
            raise ValueError(
                f"The operator {op} requires shapes[{i}] to be a compile-time constant; "
                "pass a dynamic count as valid_shape"
            )
    if len(args) < 6:
        return
    valid = int_elements(args[5], op, "valid_shape")
    if len(valid) != len(shapes):
        raise ValueError(f"The operator {op} requires valid_shape of the same rank as shapes")
    for i, (extent, physical) in enumerate(zip(valid, shapes, strict=True)):
        if less_equal(extent, physical) is False:
            raise ValueError(
                f"The operator {op}: valid_shape[{i}] {show(extent)} provably exceeds physical shape extent "
                f"{show(physical)}"
            )
        if kwargs.get("transpose") and not isinstance(extent, ConstInt):
            raise ValueError(f"The operator {op} requires a static valid_shape together with transpose=True")


def scatter(op: str) -> Deduce:
    """Put elements along the last axis by index."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        target, index, source = (tensor_of(arg) for arg in args)
        rank = len(target.shape_)
        if rank != 2 or len(index.shape_) != 2 or len(source.shape_) != 2:
            raise ValueError(f"The operator {op} requires 2D tensors")
        if int(kwargs.get("dim", -1)) not in (-1, rank - 1):
            raise ValueError(f"The operator {op} supports only the last dim, got dim={kwargs.get('dim')}")
        check_scatter_dtypes(op, target.dtype, source.dtype, index.dtype)
        if not all_same(index.shape_, source.shape_):
            raise ValueError(
                f"The operator {op} requires index shape {show_all(index.shape_)} to equal src shape "
                f"{show_all(source.shape_)}"
            )
        for axis in range(rank):
            if less_equal(source.shape_[axis], target.shape_[axis]) is False:
                raise ValueError(
                    f"The operator {op}: src extent {show(source.shape_[axis])} exceeds input extent "
                    f"{show(target.shape_[axis])} on axis {axis}"
                )
        return fresh_tensor(target.shape_, target.dtype)

    return deduce


def check_scatter_dtypes(op: str, target: DataType, source: DataType, index: DataType) -> None:
    """Element types of an indexed scatter (both levels)."""
    dt.require(target, dt.SUBTRACTABLE, op, "dst dtype")
    if source is not target:
        raise ValueError(f"The operator {op} requires src dtype to equal dst dtype {target}, got {source}")
    wanted = dt.INT32 if target.get_byte() == 4 else dt.INT16
    if index is not wanted:
        raise ValueError(f"The operator {op} requires indexes dtype {wanted} for {target} data, got {index}")


def check_scatter_mask(op: str, source: Expr, target: Expr, kwargs: Kwargs) -> None:
    """Element types and columns of a mask scatter (both levels); ``source`` columns spread over
    ``target``."""
    s, d = source.type, target.type
    if s.dtype is not d.dtype:  # type: ignore[attr-defined]
        raise ValueError(f"The operator {op} requires the same dtype, got {s.dtype} and {d.dtype}")  # type: ignore[attr-defined]
    if len(s.shape_) != 2 or len(d.shape_) != 2:  # type: ignore[attr-defined]
        raise ValueError(f"The operator {op} requires 2D operands")
    stride = mask_stride(op, kwargs)
    have, want = as_int(d.shape_[1]), as_int(s.shape_[1])  # type: ignore[attr-defined]
    if have is not None and want is not None and have != want * stride:
        raise ValueError(
            f"The operator {op} with mask_pattern={kwargs['mask_pattern']} requires {want * stride} dst "
            "columns for "
            f"{want} src columns, got {have}"
        )


def check_scatter_update(op: str, target: Type, index: Type, source: Type, kwargs: Kwargs) -> None:
    """Operands of a row update (both levels)."""
    if int(kwargs.get("dim", -2)) != -2:
        raise ValueError(f"The operator {op} supports only dim=-2, got {kwargs['dim']}")
    rank = len(target.shape_)  # type: ignore[attr-defined]
    if rank not in (2, 4):
        raise ValueError(f"The operator {op} requires a 2D or 4D input, got rank {rank}")
    if len(source.shape_) != rank:  # type: ignore[attr-defined]
        raise ValueError(f"The operator {op} requires src rank {rank}, got {len(source.shape_)}")  # type: ignore[attr-defined]
    if source.dtype is not target.dtype:  # type: ignore[attr-defined]
        raise ValueError(
            f"The operator {op} requires src dtype {target.dtype}, got {source.dtype}"  # type: ignore[attr-defined]
        )
    if len(index.shape_) != 2 or not index.dtype.is_int():  # type: ignore[attr-defined]
        raise ValueError(f"The operator {op} requires a 2D integer index")


def paged_gather(op: str) -> Deduce:
    """Rows of a paged pool by logical index."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        source = tensor_of(args[0])
        dt.require(source.dtype, (dt.FP16, dt.BF16, dt.FP32, dt.INT8), op, "src dtype")
        for key in ("block_size", "size", "max_indices"):
            if kwargs.get(key, 0) <= 0:
                raise ValueError(f"The operator {op} requires a positive {key}")
        rows = ConstInt(kwargs["max_indices"], dt.INDEX, args[0].span)
        columns = ConstInt(kwargs["size"], dt.INDEX, args[0].span)
        return fresh_tensor((columns, rows) if kwargs.get("is_trans") else (rows, columns), source.dtype)

    return deduce
