"""``pl.tile``: operators on tiles, as users call them."""

from __future__ import annotations

from typing import Any

from pypto import ir as _nodes
from pypto.ir.op import tile_ops as _ir
from pypto.ir.op.build import at as _at
from pypto.ir.op.build import expr as _expr
from pypto.ir.op.build import public_name as _public_name
from pypto.ir.op.tile_permute_ops import MaskPattern
from pypto.language.op import lifting as _lifting
from pypto.language.typing import Scalar as _Scalar

_lift = _lifting.lift


def _operands(leaf: str) -> Any:
    """The DSL function of an operator without attributes."""
    name = f"tile.{leaf}"
    return _lifting.lift_operands(getattr(_ir, _public_name(name)), name)


# allocation and transfer
create = _lift(_ir.create, "shape, dtype, target_memory=MemorySpace.Vec, transpose=None, *, flat_layout=None")
create_tile = create
load = _lift(
    _ir.load, "tensor, offsets, shapes, valid_shape=None, target_memory=MemorySpace.Vec, clamp=False"
)
store = _lift(_ir.store, "tile, offsets, output_tensor, shapes=None, *, atomic=AtomicType.None_")
move = _lift(_ir.move, "tile, target_memory, blayout=None, slayout=None")
alloc = _lift(_ir.alloc, "memory_space, size, *, pinned=False")

# windows, views, shape changes
slice = _lift(_ir.slice, "tile, shape, offset, valid_shape=None, drop_dims=None, pad_value=None")
extract = _lift(_ir.extract, "src, index_row, index_col, shape, *, target_memory")
assemble = _lift(_ir.assemble, "target, source, offset")
reshape = _lift(_ir.reshape, "tile, shape")
reinterpret_view = _lift(_ir.reinterpret_view, "data, dtype, *, shape=None")
set_validshape = _lift(_ir.set_validshape, "tile, valid_rows, valid_cols")
transpose_view, concat = _operands("transpose_view"), _operands("concat")
fillpad = _lift(_ir.fillpad, "tile, pad_value=PadValue.zero")
fillpad_inplace = _lift(_ir.fillpad_inplace, "tile, pad_value=PadValue.zero")
fillpad_expand = _lift(_ir.fillpad_expand, "tile, shape, pad_value=PadValue.zero")


def transpose(tile: Any, axis1: Any, axis2: Any, tmp_tile: Any = None) -> Any:
    """Two axes exchanged, as a copy; ``tmp_tile`` is scratch."""
    unwrap = _lifting.unwrap
    return _lifting.wrap(_ir.transpose(unwrap(tile), unwrap(axis1), unwrap(axis2), unwrap(tmp_tile)))


# elementwise
add, sub, mul = (_lift(getattr(_ir, leaf), "lhs, rhs") for leaf in ("add", "sub", "mul"))
div = _lift(_ir.div, "lhs, rhs, high_precision=False")
cmp = _lift(_ir.cmp, "lhs, rhs, cmp_type=0")
cmps = _lift(_ir.cmps, "lhs, scalar, cmp_type=0")
adds, subs, muls, divs, fmods = map(_operands, ("adds", "subs", "muls", "divs", "fmods"))
maximum, minimum, fmod, rem = map(_operands, ("maximum", "minimum", "fmod", "rem"))
maximums, minimums, rems = map(_operands, ("maximums", "minimums", "rems"))
part_add, part_mul, part_max, part_min = map(_operands, ("part_add", "part_mul", "part_max", "part_min"))
addc, subc, addsc, subsc = map(_operands, ("addc", "subc", "addsc", "subsc"))
and_, or_, xor, shl, shr, not_ = map(_operands, ("and", "or", "xor", "shl", "shr", "not"))
ands, ors, xors, shls, shrs = map(_operands, ("ands", "ors", "xors", "shls", "shrs"))
prelu, lrelu, sel, sels, expands = map(_operands, ("prelu", "lrelu", "sel", "sels", "expands"))
neg, abs, exp, sqrt, relu = map(_operands, ("neg", "abs", "exp", "sqrt", "relu"))
sin, cos, rsqrt = map(_operands, ("sin", "cos", "rsqrt"))
log = _lift(_ir.log, "tile, high_precision=False")
recip = _lift(_ir.recip, "tile, high_precision=False")
cast = _lift(_ir.cast, 'tile, target_type, mode="round"')

# along an axis
row_sum, row_max, row_min, row_prod, row_argmax, row_argmin = (
    _operands(f"row_{combine}") for combine in ("sum", "max", "min", "prod", "argmax", "argmin")
)
col_sum, col_max, col_min, col_prod, col_argmax, col_argmin = (
    _operands(f"col_{combine}") for combine in ("sum", "max", "min", "prod", "argmax", "argmin")
)
(
    row_expand,
    row_expand_sub,
    row_expand_mul,
    row_expand_div,
    row_expand_max,
    row_expand_min,
    row_expand_expdif,
) = (_operands(f"row_expand{suffix}") for suffix in ("", "_sub", "_mul", "_div", "_max", "_min", "_expdif"))
row_expand_add = _lift(_ir.row_expand_add, "tile, row_vec, tmp=None")
(
    col_expand, col_expand_add, col_expand_sub, col_expand_mul, col_expand_div, col_expand_max,
    col_expand_min, col_expand_expdif,
) = (
    _operands(f"col_expand{suffix}")
    for suffix in ("", "_add", "_sub", "_mul", "_div", "_max", "_min", "_expdif")
)  # fmt: skip

# matrix products
matmul, matmul_bias, batch_matmul, batch_matmul_acc = map(
    _operands, ("matmul", "matmul_bias", "batch_matmul", "batch_matmul_acc")
)
matmul_acc = _lift(_ir.matmul_acc, "acc, lhs, rhs, init_cond=None")
gemv = _lift(_ir.gemv, 'lhs, rhs, acc_phase="unspecified"')
gemv_acc = _lift(_ir.gemv_acc, 'acc, lhs, rhs, acc_phase="unspecified"')
gemv_bias = _lift(_ir.gemv_bias, 'lhs, rhs, bias, acc_phase="unspecified"')
matmul_mx, matmul_mx_acc, matmul_mx_bias = map(_operands, ("matmul_mx", "matmul_mx_acc", "matmul_mx_bias"))

# sort, gather, scatter
gather, scatter, sort32, mscatter = map(_operands, ("gather", "scatter", "sort32", "mscatter"))
gatherb = _lift(_ir.gatherb, "src, offset, *, output_dtype=None")
gather_mask = _lift(_ir.gather_mask, "src, mask_pattern, *, output_dtype=None")
gather_compare = _lift(
    _ir.gather_compare, 'src, kvalue, tmp, *, cmp_mode="eq", offset=0, out_cols, count_dtype=None'
)
gather_row = _lift(
    _ir.gather_row, "dst, src, dst_offset, src_offset, shapes, transpose=False, *, valid_shape=None"
)
scatter_mask = _lift(_ir.scatter_mask, "dst, src, mask_pattern")
mgather = _lift(
    _ir.mgather,
    'mem, idx, coalesce="row", *, gather_oob="undefined", target_memory=MemorySpace.Vec, scratch=None, '
    "valid_shape=None",
)
mrgsort = _lift(
    _ir.mrgsort, "src0, src1=None, src2=None, src3=None, tmp=None, exhausted=False, *, block_len=None"
)


def scatter_update(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Replace rows: ``(input, dim, index, src)``, ``(input, index, src, dim=d)``, ``(input, d, index=,
    src=)``."""
    unwrap = _lifting.unwrap
    named = {key: unwrap(value) for key, value in kwargs.items()}
    return _lifting.wrap(_ir.scatter_update(unwrap(input), *map(unwrap, args), **named))


# elements, generators, queries
def read(tile: Any, indices: Any) -> Any:
    """One cell as a scalar; a single index stands for a list of one."""
    return _lifting.wrap(_ir.read(_lifting.unwrap(tile), _index_list(indices)))


def write(tile: Any, indices: Any, value: Any) -> Any:
    """Set one cell in place; the value must have exactly the element type."""
    return _lifting.wrap(_ir.write(_lifting.unwrap(tile), _index_list(indices), _lifting.unwrap(value)))


def _index_list(indices: Any) -> Any:
    return _lifting.unwrap(indices if isinstance(indices, (list, tuple, _nodes.MakeTuple)) else [indices])


full = _lift(_ir.full, "shape, dtype, value")
ci = _lift(_ir.ci, "start, shape, dtype=DataType.INT32, descending=False")
arange = ci
tri = _lift(_ir.tri, "diagonal, shape, valid_shape=None, dtype=DataType.INT32, upper=False")
random = _lift(
    _ir.random,
    "key0, key1, counter0, counter1, counter2, counter3, shape, valid_shape=None, dtype=DataType.UINT32, "
    "rounds=10",
)
get_block_idx, get_block_num, get_subblock_idx = map(
    _operands, ("get_block_idx", "get_block_num", "get_subblock_idx")
)


# scalars
def max(lhs: Any, rhs: Any) -> Any:
    """The larger of two scalars."""
    return _extreme("max", _nodes.max_, lhs, rhs)


def min(lhs: Any, rhs: Any) -> Any:
    """The smaller of two scalars."""
    return _extreme("min", _nodes.min_, lhs, rhs)


def _extreme(name: str, build: Any, lhs: Any, rhs: Any) -> Any:
    for operand in (lhs, rhs):
        if not _lifting.is_scalar_like(operand):
            raise TypeError(f"pl.{name}: expected scalars, got {type(operand).__name__}")
    span = _at(None)
    left, right = (_expr(_lifting.unwrap(operand), span) for operand in (lhs, rhs))
    return _Scalar(expr=build(left, right, span))


# lanes
def aiv_shard(x: Any, *, split: Any = None, lane_stride: Any = None) -> Any:
    """One vector lane's half of a tile; inside ``for ... in pl.split_aiv(...)``, or with an explicit
    split."""
    if split is None:
        raise RuntimeError("pl.aiv_shard must be used inside a 'for ... in pl.split_aiv(...)' loop")
    return _lifting.wrap(_ir.aiv_shard(_lifting.unwrap(x), split=split, lane_stride=lane_stride))


def aic_gather(x: Any, *, split: Any = None) -> Any:
    """Both lanes' halves of a tile; inside ``for ... in pl.split_aiv(...)``, or with an explicit split."""
    if split is None:
        raise RuntimeError("pl.aic_gather must be used inside a 'for ... in pl.split_aiv(...)' loop")
    return _lifting.wrap(_ir.aic_gather(_lifting.unwrap(x), split=split))


tpush_to_aiv = _lift(_ir.tpush_to_aiv, "tile, *, split, lane_stride=None, id=None, span=None")
tpush_to_aic = _lift(_ir.tpush_to_aic, "tile, *, split, id=None, span=None")
tpop_from_aic = _lift(
    _ir.tpop_from_aic, "*, shape=None, dtype=None, split=0, lane_stride=None, id=None, span=None"
)
tpop_from_aiv = _lift(_ir.tpop_from_aiv, "*, shape=None, dtype=None, split=0, id=None, span=None")

__all__ = ["MaskPattern"]
__all__ += sorted(
    name
    for name in globals()
    if not name.startswith("_") and name not in ("Any", "MaskPattern", "annotations")
)
