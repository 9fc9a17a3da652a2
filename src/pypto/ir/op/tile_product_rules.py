"""Type inference of tile operators on the cube core, and of sorting, gathering and scattering."""

from __future__ import annotations

from pypto.core.dtype import DataType
from pypto.ir.enums import CompactMode, MemorySpace
from pypto.ir.expr import ConstInt, Expr
from pypto.ir.op import dtypes as dt
from pypto.ir.op.extents import (
    ONE,
    all_same,
    as_int,
    const,
    equal,
    floordiv,
    is_zero,
    less_equal,
    mul,
    show,
    show_all,
)
from pypto.ir.op.regions import Extents
from pypto.ir.op.results import (
    Acc,
    Mat,
    Vec,
    broadcast_shapes,
    implicit_tile,
    int_elements,
    tensor_of,
    tile_of,
    tile_region,
)
from pypto.ir.op.tensor_rules import (
    check_block_len,
    check_gather_dtypes,
    check_init_cond,
    check_scatter_dtypes,
    check_scatter_mask,
    check_scatter_update,
    compare_types,
    masked_extent,
    same_width,
)
from pypto.ir.op.tensor_view_rules import is_packed, layout_of
from pypto.ir.op_registry import Args, Deduce, Kwargs
from pypto.ir.types import TensorType, TileType, TupleType, Type

# --- matrix products ------------------------------------------------------------------------------


def _require_rank2(op: str, **tiles: TileType) -> None:
    for name, tile in tiles.items():
        if len(tile.shape_) != 2:
            raise ValueError(f"The operator {op} requires a rank-2 {name}, got {show_all(tile.shape_)}")


def _product(op: str, lhs: TileType, rhs: TileType) -> tuple[list[Expr], list[Expr], DataType]:
    """Shape, valid extents and element type of ``lhs @ rhs``."""
    _require_rank2(op, lhs=lhs, rhs=rhs)
    if lhs.dtype is not rhs.dtype:
        raise ValueError(
            f"The operator {op} requires identical lhs and rhs dtypes, got {lhs.dtype} and {rhs.dtype}"
        )
    if equal(lhs.shape_[1], rhs.shape_[0]) is False:
        raise ValueError(
            f"The operator {op} requires matching physical inner dimensions, got lhs physical "
            f"K={show(lhs.shape_[1])} "
            f"and rhs physical K={show(rhs.shape_[0])}"
        )
    left, right = tile_region(lhs, op).valid, tile_region(rhs, op).valid
    if less_equal(left[1], right[0]) is False:
        raise ValueError(
            f"The operator {op} requires rhs valid K to cover lhs valid K, got {show(right[0])} and "
            f"{show(left[1])}"
        )
    return [lhs.shape_[0], rhs.shape_[1]], [left[0], right[1]], dt.accumulator(lhs.dtype)


def _accumulator_tile(shape: Extents, valid: Extents, dtype: DataType) -> TileType:
    compact = CompactMode.null if less_equal(shape[0], valid[0]) is True else CompactMode.normal
    full = compact is CompactMode.null and all_same(valid, shape)
    return implicit_tile(shape, dtype, None if full else valid, Acc, compact)


def matmul(args: Args, kwargs: Kwargs) -> Type:
    """``tile.matmul``."""
    return _accumulator_tile(*_product("tile.matmul", tile_of(args[0]), tile_of(args[1])))


def _check_accumulator(op: str, acc: TileType, shape: Extents, valid: Extents, dtype: DataType) -> None:
    _require_rank2(op, acc=acc)
    if acc.dtype is not dtype:
        raise ValueError(f"The operator {op} requires accumulator dtype {dtype}, got {acc.dtype}")
    for axis, letter in enumerate("MN"):
        if equal(acc.shape_[axis], shape[axis]) is False:
            raise ValueError(
                f"The operator {op} requires acc physical {letter}={show(acc.shape_[axis])} to equal the "
                "product's "
                f"physical {letter}={show(shape[axis])}"
            )
        have = tile_region(acc, op).valid[axis]
        if less_equal(valid[axis], have) is False:
            raise ValueError(
                f"The operator {op} requires acc valid {letter}={show(have)} to contain the product's valid "
                f"{letter}={show(valid[axis])}"
            )


def matmul_acc(args: Args, kwargs: Kwargs) -> Type:
    """``tile.matmul_acc``."""
    op = "tile.matmul_acc"
    acc = tile_of(args[0])
    shape, valid, dtype = _product(op, tile_of(args[1]), tile_of(args[2]))
    _check_accumulator(op, acc, shape, valid, dtype)
    if len(args) > 3:
        check_init_cond(op, args[3])
    return acc_result(acc)


def acc_result(acc: TileType) -> TileType:
    """The accumulator's own type; one without a space gets the layout that it has in the accumulator
    buffer."""
    if acc.memory_space is not None:
        return acc
    return implicit_tile(acc.shape_, acc.dtype, tile_region(acc).valid, Acc)


def matmul_bias(args: Args, kwargs: Kwargs) -> Type:
    """``tile.matmul_bias``."""
    op = "tile.matmul_bias"
    shape, valid, dtype = _product(op, tile_of(args[0]), tile_of(args[1]))
    _check_bias(op, tile_of(args[2]), shape, valid, dtype)
    return _accumulator_tile(shape, valid, dtype)


def _check_bias(op: str, bias: TileType, shape: Extents, valid: Extents, dtype: DataType) -> None:
    _require_rank2(op, bias=bias)
    if bias.dtype is not dtype:
        raise ValueError(f"The operator {op} requires bias dtype {dtype}, got {bias.dtype}")
    if equal(bias.shape_[0], ONE) is False or equal(bias.shape_[1], shape[1]) is False:
        raise ValueError(
            f"The operator {op} requires bias shape [1, {show(shape[1])}], got {show_all(bias.shape_)}"
        )
    rows, columns = tile_region(bias, op).valid
    if is_zero(rows):
        raise ValueError(f"The operator {op} requires bias to cover one broadcast row, got 0 valid rows")
    if less_equal(valid[1], columns) is False:
        raise ValueError(
            f"The operator {op} requires bias valid N={show(columns)} to cover output valid "
            f"N={show(valid[1])}"
        )


_GEMV_DTYPES = (dt.INT8, dt.FP16, dt.BF16, dt.FP32)


def _gemv(op: str, lhs: TileType, rhs: TileType, kwargs: Kwargs) -> TileType:
    shape, valid, dtype = _product(op, lhs, rhs)
    dt.require(lhs.dtype, _GEMV_DTYPES, op)
    for kind, rows in (("physical", shape[0]), ("logical", valid[0])):
        if equal(rows, ONE) is not True:
            raise ValueError(
                f"The operator {op} requires the {kind} row extent to be exactly 1, got {show(rows)}"
            )
    phase = kwargs.get("acc_phase", "unspecified")
    if phase not in ("unspecified", "partial", "final"):
        raise ValueError(f"The operator {op} requires acc_phase unspecified, partial or final, got {phase!r}")
    return _accumulator_tile([const(16), shape[1]], [ONE, valid[1]], dtype)


def gemv(args: Args, kwargs: Kwargs) -> Type:
    """``tile.gemv``: one row times a matrix."""
    return _gemv("tile.gemv", tile_of(args[0]), tile_of(args[1]), kwargs)


def gemv_acc(args: Args, kwargs: Kwargs) -> Type:
    """``tile.gemv_acc``."""
    op = "tile.gemv_acc"
    acc = tile_of(args[0])
    result = _gemv(op, tile_of(args[1]), tile_of(args[2]), kwargs)
    if acc.dtype is not result.dtype:
        raise ValueError(f"The operator {op} requires accumulator dtype {result.dtype}, got {acc.dtype}")
    if not all_same(acc.shape_, result.shape_):
        raise ValueError(f"The operator {op} requires accumulator shape {show_all(result.shape_)}")
    if not all_same(tile_region(acc, op).valid, tile_region(result, op).valid):
        raise ValueError(
            f"The operator {op} requires accumulator valid_shape {show_all(tile_region(result, op).valid)}, "
            "got "
            f"{show_all(tile_region(acc, op).valid)}"
        )
    return acc_result(acc)


def gemv_bias(args: Args, kwargs: Kwargs) -> Type:
    """``tile.gemv_bias``."""
    op = "tile.gemv_bias"
    result = _gemv(op, tile_of(args[0]), tile_of(args[1]), kwargs)
    _check_bias(op, tile_of(args[2]), result.shape_, tile_region(result, op).valid, result.dtype)
    return result


def _batch_product(op: str, lhs: TileType, rhs: TileType) -> tuple[list[Expr], DataType]:
    for name, tile in (("lhs", lhs), ("rhs", rhs)):
        if len(tile.shape_) < 2:
            raise ValueError(f"The operator {op} requires {name} of rank >= 2, got {show_all(tile.shape_)}")
    if lhs.dtype is not rhs.dtype:
        raise ValueError(
            f"The operator {op} requires identical lhs and rhs dtypes, got {lhs.dtype} and {rhs.dtype}"
        )
    if equal(lhs.shape_[-1], rhs.shape_[-2]) is False:
        raise ValueError(
            f"The operator {op} requires matching inner dimensions, got {show(lhs.shape_[-1])} and "
            f"{show(rhs.shape_[-2])}"
        )
    batch = broadcast_shapes(op, lhs.shape_[:-2], rhs.shape_[:-2])
    return [*batch, lhs.shape_[-2], rhs.shape_[-1]], dt.accumulator(lhs.dtype)


def batch_matmul(args: Args, kwargs: Kwargs) -> Type:
    """``tile.batch_matmul``: leading axes broadcast; physical extents count."""
    shape, dtype = _batch_product("tile.batch_matmul", tile_of(args[0]), tile_of(args[1]))
    return implicit_tile(shape, dtype, None, Acc)


def batch_matmul_acc(args: Args, kwargs: Kwargs) -> Type:
    """``tile.batch_matmul_acc``."""
    op = "tile.batch_matmul_acc"
    acc = tile_of(args[0])
    shape, dtype = _batch_product(op, tile_of(args[1]), tile_of(args[2]))
    if acc.dtype is not dtype:
        raise ValueError(f"The operator {op} requires accumulator dtype {dtype}, got {acc.dtype}")
    if not all_same(acc.shape_[:-2], shape[:-2]):
        raise ValueError(
            f"The operator {op}: acc batch dim {show_all(acc.shape_[:-2])} must equal the broadcast batch "
            f"{show_all(shape[:-2])}"
        )
    if not all_same(acc.shape_[-2:], shape[-2:]):
        raise ValueError(
            f"The operator {op} requires acc of shape {show_all(shape)}, got {show_all(acc.shape_)}"
        )
    return acc_result(acc)


# --- block-scaled products ------------------------------------------------------------------------


def _mx_product(
    op: str, lhs: TileType, lhs_scale: TileType, rhs: TileType, rhs_scale: TileType
) -> tuple[list[Expr], list[Expr]]:
    _require_rank2(op, lhs=lhs, lhs_scale=lhs_scale, rhs=rhs, rhs_scale=rhs_scale)
    for name, data in (("lhs", lhs), ("rhs", rhs)):
        if data.dtype is not dt.FP8E4M3FN:
            raise ValueError(
                f"The operator {op} requires {name} dtype FP8E4M3FN, got {data.dtype}; convert with "
                "pl.cast(<value>, pl.FP8E4M3FN)"
            )
    for name, scale in (("lhs_scale", lhs_scale), ("rhs_scale", rhs_scale)):
        if scale.dtype is not dt.FP8E8M0:
            raise ValueError(f"The operator {op} requires {name} dtype FP8E8M0, got {scale.dtype}")
    m, k, n = lhs.shape_[0], lhs.shape_[1], rhs.shape_[1]
    if equal(k, rhs.shape_[0]) is False:
        raise ValueError(
            f"The operator {op} requires matching physical K, got {show(k)} and {show(rhs.shape_[0])}"
        )
    for letter, extent, step in (("M", m, 16), ("K", k, 64), ("N", n, 32)):
        value = as_int(extent)
        if value is not None and value % step:
            raise ValueError(f"The operator {op} requires {letter}={value} to be divisible by {step}")
    blocks = floordiv(k, 32)
    for name, scale, wanted in (("lhs_scale", lhs_scale, [m, blocks]), ("rhs_scale", rhs_scale, [blocks, n])):
        if any(equal(a, b) is False for a, b in zip(scale.shape_, wanted, strict=True)):
            raise ValueError(
                f"The operator {op} requires {name} shape {show_all(wanted)}, got {show_all(scale.shape_)}"
            )
    left, right = tile_region(lhs, op).valid, tile_region(rhs, op).valid
    if equal(left[1], right[0]) is not True or is_zero(left[1]):
        raise ValueError(
            f"The operator {op} requires equal positive valid K, got {show(left[1])} and {show(right[0])}"
        )
    return [m, n], [left[0], right[1]]


def matmul_mx(args: Args, kwargs: Kwargs) -> Type:
    """``tile.matmul_mx``."""
    shape, valid = _mx_product("tile.matmul_mx", *(tile_of(arg) for arg in args))
    return _accumulator_tile(shape, valid, dt.FP32)


def matmul_mx_acc(args: Args, kwargs: Kwargs) -> Type:
    """``tile.matmul_mx_acc``."""
    op = "tile.matmul_mx_acc"
    acc, *operands = (tile_of(arg) for arg in args)
    shape, valid = _mx_product(op, *operands)
    _check_accumulator(op, acc, shape, valid, dt.FP32)
    return acc_result(acc)


def matmul_mx_bias(args: Args, kwargs: Kwargs) -> Type:
    """``tile.matmul_mx_bias``."""
    op = "tile.matmul_mx_bias"
    *operands, bias = (tile_of(arg) for arg in args)
    shape, valid = _mx_product(op, *operands)
    _check_bias(op, bias, shape, valid, dt.FP32)
    return _accumulator_tile(shape, valid, dt.FP32)


# --- gather ---------------------------------------------------------------------------------------


def gather(args: Args, kwargs: Kwargs) -> Type:
    """``tile.gather``: by flat index."""
    source, indices = tile_of(args[0]), tile_of(args[1])
    check_gather_dtypes("tile.gather", source.dtype, indices.dtype, "indices")
    return implicit_tile(indices.shape_, source.dtype)


def gatherb(args: Args, kwargs: Kwargs) -> Type:
    """``tile.gatherb``: 32-byte blocks by byte offset."""
    op = "tile.gatherb"
    source, offset = tile_of(args[0]), tile_of(args[1])
    _require_rank2(op, src=source, offset=offset)
    if not (source.dtype.is_int() or source.dtype.is_float()):
        raise ValueError(f"The operator {op} requires a numeric src dtype, got {source.dtype}")
    if offset.dtype is not dt.UINT32:
        raise ValueError(f"The operator {op} requires offset dtype UINT32, got {offset.dtype}")
    columns = as_int(offset.shape_[1])
    if columns is None or columns <= 0 or columns % 8:
        raise ValueError(
            f"The operator {op} requires the static offset columns to be a positive multiple of 8, got "
            f"{show(offset.shape_[1])}"
        )
    out = kwargs.get("output_dtype") or source.dtype
    per_block = const(32 // out.get_byte())
    rows, valid_columns = tile_region(offset, op).valid
    shape = [offset.shape_[0], mul(offset.shape_[1], per_block)]
    return implicit_tile(shape, out, [rows, mul(valid_columns, per_block)])


def gather_mask(args: Args, kwargs: Kwargs) -> Type:
    """``tile.gather_mask``: the columns that a pattern selects."""
    op = "tile.gather_mask"
    source = tile_of(args[0])
    _require_rank2(op, src=source)
    columns = masked_extent(op, source.shape_[1], kwargs)
    return implicit_tile([source.shape_[0], columns], same_width(op, source.dtype, kwargs))


def gather_compare(args: Args, kwargs: Kwargs) -> Type:
    """``tile.gather_compare``: column numbers of matches and their count."""
    source = tile_of(args[0])
    columns, count = compare_types("tile.gather_compare", source.dtype, len(source.shape_), args[1], kwargs)
    rows = source.shape_[0]
    return TupleType([implicit_tile([rows, const(columns)], dt.INT32), implicit_tile([ONE, rows], count)])


_MGATHER_DTYPES = (
    dt.INT8, dt.INT16, dt.INT32, dt.UINT8, dt.UINT16, dt.UINT32, dt.FP16, dt.BF16, dt.FP32, dt.FP8E4M3FN,
    dt.FP8E5M2, dt.HF8,
)  # fmt: skip


def mgather(args: Args, kwargs: Kwargs) -> Type:
    """``tile.mgather``: rows or elements of global memory by index."""
    op = "tile.mgather"
    memory = tensor_of(args[0])
    dt.require(memory.dtype, _MGATHER_DTYPES, op, "mem dtype")
    coalesce, oob = kwargs.get("coalesce", 0), kwargs.get("gather_oob", 0)
    if coalesce not in (0, 1):
        raise ValueError(f"The operator {op} requires coalesce 0 (row) or 1 (elem), got {coalesce}")
    if not 0 <= oob <= 3:
        raise ValueError(f"The operator {op} requires gather_oob 0 to 3, got {oob}")
    index = args[1].type
    if not isinstance(index, (TensorType, TileType)) or index.dtype is not dt.INT32:
        raise ValueError(f"The operator {op} requires idx dtype INT32, got {getattr(index, 'dtype', index)}")
    if kwargs.get("target_memory", Vec) is Vec:
        return _mgather_vector(op, memory, index, coalesce, len(args))
    if kwargs["target_memory"] is not Mat:
        raise ValueError(f"The operator {op} requires target_memory Vec or Mat")
    return _mgather_matrix(op, memory, index, coalesce, args)


def _mgather_vector(op: str, memory: TensorType, index: Type, coalesce: int, count: int) -> Type:
    if not isinstance(index, TileType) or len(index.shape_) != 2:
        raise ValueError(f"The operator {op} into Vec requires idx to be a rank-2 tile")
    if count > 2:
        raise ValueError(f"The operator {op} into Vec takes no scratch or valid_shape")
    region = tile_region(index, op)
    if coalesce == 1:
        return implicit_tile(index.shape_, memory.dtype, region.valid)
    if len(memory.shape_) < 2:
        raise ValueError(f"The operator {op} by row requires mem of rank >= 2, got {show_all(memory.shape_)}")
    axis = _index_axis(op, index.shape_)
    columns = memory.shape_[-1]
    return implicit_tile([index.shape_[axis], columns], memory.dtype, [region.valid[axis], columns])


def _index_axis(op: str, shape: tuple[Expr, ...]) -> int:
    rows, columns = as_int(shape[0]), as_int(shape[1])
    if rows is None or columns is None or 1 not in (rows, columns):
        raise ValueError(
            f"The operator {op} by row requires a static idx shape [1, R] or [R, 1], got {show_all(shape)}"
        )
    return 1 if rows == 1 else 0


def _mgather_matrix(op: str, memory: TensorType, index: Type, coalesce: int, args: Args) -> Type:
    if not isinstance(index, TensorType):
        raise ValueError(f"The operator {op} into Mat requires idx in global memory (a TensorType)")
    for name, tensor in (("mem", memory), ("idx", index)):
        if layout_of(tensor).name != "ND" or not is_packed(tensor):
            raise ValueError(f"The operator {op} into Mat requires a contiguous ND {name}")
    extra = list(args[2:])
    scratch = extra.pop(0) if extra and isinstance(extra[0].type, TensorType) else None
    if coalesce == 0:
        if scratch is not None:
            raise ValueError(f"The operator {op} by row takes no scratch")
        if len(index.shape_) != 2 or as_int(index.shape_[0]) != 1:
            raise ValueError(
                f"The operator {op} by row into Mat requires idx shape [1, R], got {show_all(index.shape_)}"
            )
        shape: Extents = [index.shape_[1], memory.shape_[-1]]
    else:
        _check_scratch(op, args, memory, index, scratch)
        shape = index.shape_
    rows, columns = as_int(shape[0]), as_int(shape[-1])
    per_block = 32 // memory.dtype.get_byte()
    if rows is None or columns is None or rows % 16 or columns % per_block:
        raise ValueError(
            f"The operator {op} into Mat requires rows divisible by 16 and columns divisible by "
            f"{per_block}, got "
            f"{show_all(shape)}"
        )
    valid = None
    if extra:
        valid = int_elements(extra[0], op, "valid_shape")
        for extent, limit in zip(valid, shape, strict=True):
            value = as_int(extent)
            if value is None or value <= 0 or less_equal(extent, limit) is False:
                raise ValueError(f"The operator {op} requires a static valid_shape within {show_all(shape)}")
    return implicit_tile(shape, memory.dtype, valid, MemorySpace.Mat)


def _check_scratch(op: str, args: Args, memory: TensorType, index: TensorType, scratch: Expr | None) -> None:
    if scratch is None:
        raise ValueError(f"The operator {op} by element into Mat requires scratch in global memory")
    if scratch is args[0] or scratch is args[1]:
        raise ValueError(f"The operator {op} requires scratch that is neither mem nor idx")
    kind = tensor_of(scratch)
    if kind.dtype is not memory.dtype:
        raise ValueError(f"The operator {op} requires scratch dtype {memory.dtype}, got {kind.dtype}")
    have, want = _volume(kind.shape_), _volume(index.shape_)
    if have is None or want is None or have < want or not is_packed(kind):
        raise ValueError(
            f"The operator {op} requires static contiguous scratch of at least idx's element count"
        )


def _volume(shape: Extents) -> int | None:
    total = 1
    for extent in shape:
        if not isinstance(extent, ConstInt):
            return None
        total *= extent.value
    return total


# --- scatter --------------------------------------------------------------------------------------


def scatter(args: Args, kwargs: Kwargs) -> Type:
    """``tile.scatter``: by flat index, in place."""
    op = "tile.scatter"
    target, source, indexes = (tile_of(arg) for arg in args)
    check_scatter_dtypes(op, target.dtype, source.dtype, indexes.dtype)
    if len(indexes.shape_) != len(source.shape_):
        raise ValueError(f"The operator {op} requires indexes of src's rank {len(source.shape_)}")
    for i, (a, b) in enumerate(zip(indexes.shape_, source.shape_, strict=True)):
        if equal(a, b) is False:
            raise ValueError(
                f"The operator {op} requires indexes.shape[{i}] == src.shape[{i}], got {show(a)} and "
                f"{show(b)}"
            )
    return target


def scatter_mask(args: Args, kwargs: Kwargs) -> Type:
    """``tile.scatter_mask``: into the columns that a pattern selects, in place."""
    check_scatter_mask("tile.scatter_mask", args[1], args[0], kwargs)
    return args[0].type


def scatter_update(args: Args, kwargs: Kwargs) -> Type:
    """``tile.scatter_update``: rows by index, in place."""
    check_scatter_update("tile.scatter_update", args[0].type, args[1].type, args[2].type, kwargs)
    return args[0].type


def mscatter(args: Args, kwargs: Kwargs) -> Type:
    """``tile.mscatter``: elements of global memory by flat index."""
    op = "tile.mscatter"
    source, index, target = tile_of(args[0]), tile_of(args[1]), tensor_of(args[2])
    dt.require(source.dtype, (dt.FP16, dt.FP32, dt.INT16, dt.INT32), op, "src dtype")
    if index.dtype is not dt.INT32:
        raise ValueError(f"The operator {op} requires idx dtype INT32, got {index.dtype}")
    if not all_same(index.shape_, source.shape_):
        raise ValueError(f"The operator {op} requires idx of src's shape {show_all(source.shape_)}")
    if target.dtype is not source.dtype:
        raise ValueError(f"The operator {op} requires tensor dtype {source.dtype}, got {target.dtype}")
    if not target.shape_:
        raise ValueError(f"The operator {op} requires a tensor of rank >= 1")
    return target


# --- sort -----------------------------------------------------------------------------------------


def sort32(args: Args, kwargs: Kwargs) -> Type:
    """``tile.sort32``: blocks of 32 columns, descending, as (value, index) pairs."""
    op = "tile.sort32"
    source, index = tile_of(args[0]), tile_of(args[1])
    dt.require(source.dtype, (dt.FP16, dt.FP32), op, "src dtype")
    if index.dtype is not dt.UINT32:
        raise ValueError(f"The operator {op} requires idx dtype UINT32, got {index.dtype}")
    if not source.shape_:
        raise ValueError(f"The operator {op} requires rank >= 1")
    return implicit_tile([*source.shape_[:-1], mul(source.shape_[-1], const(2))], source.dtype)


def mrgsort_format1(args: Args, kwargs: Kwargs) -> Type:
    """``tile.mrgsort_format1``: merge groups of four sorted runs."""
    op = "tile.mrgsort_format1"
    source = tile_of(args[0])
    dt.require(source.dtype, (dt.FP16, dt.FP32), op, "src dtype")
    check_block_len(op, args[1])
    if as_int(args[1]) is None:
        raise ValueError(f"The operator {op} requires a constant block_len that is a positive multiple of 64")
    return implicit_tile(source.shape_, source.dtype)


def mrgsort_format2(args: Args, kwargs: Kwargs) -> Type:
    """``tile.mrgsort_format2``: merge two to four sorted lists; the last argument is scratch of the
    result's shape."""
    op = "tile.mrgsort_format2"
    if not 3 <= len(args) <= 5:
        raise ValueError(f"The operator {op} requires 2 to 4 sources and tmp, got {len(args)} arguments")
    *sources, tmp = (tile_of(arg) for arg in args)
    dt.require(sources[0].dtype, (dt.FP16, dt.FP32), op, "src dtype")
    for other in sources[1:]:
        if other.dtype is not sources[0].dtype:
            raise ValueError(
                f"The operator {op} requires the same dtype, got {sources[0].dtype} and {other.dtype}"
            )
    return implicit_tile(tmp.shape_, sources[0].dtype)


def unchanged(index: int) -> Deduce:
    """The type of one argument."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        return args[index].type

    return deduce
