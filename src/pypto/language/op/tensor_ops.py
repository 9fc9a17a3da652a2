"""``pl.tensor``: operators on tensors, as users call them."""

from __future__ import annotations

from typing import Any

from pypto.ir.op import tensor_ops as _ir
from pypto.ir.op.build import public_name as _public_name
from pypto.language.op import lifting as _lifting

_lift = _lifting.lift


def _operands(leaf: str) -> Any:
    """The DSL function of an operator without attributes."""
    name = f"tensor.{leaf}"
    return _lifting.lift_operands(getattr(_ir, _public_name(name)), name)


# creation
create = _lift(_ir.create, "shape, dtype, layout=TensorLayout.ND, manual_dep=False, init_value=None")
create_tensor = create
full = _lift(_ir.full, "shape, dtype, value")
ci = _lift(_ir.ci, "start, shape, dtype=DataType.INT32, descending=False")
arange = ci
random = _lift(
    _ir.random,
    "key0, key1, counter0, counter1, counter2, counter3, shape, dtype=DataType.UINT32, rounds=10",
)
create_l1 = _lift(_ir.create_l1, "shape, dtype, transpose=False")

# elements and extents
read = _lift(_ir.read, "tensor, indices")
write = _lift(_ir.write, "tensor, indices, value")
dim = _lift(_ir.dim, "tensor, axis")

# views and shape changes
slice = _lift(
    _ir.slice, "tensor, shape, offset, valid_shape=None, drop_dims=None, pad_value=None, clamp=False"
)
reshape = _lift(_ir.reshape, "tensor, shape, valid_shape=None")
transpose = _lift(_ir.transpose, "tensor, axis1, axis2, valid_shape=None")
view = _lift(_ir.view, "tensor, shape=None, valid_shape=None, *, layout=None")
reinterpret_view = _lift(_ir.reinterpret_view, "data, dtype, *, shape=None")
set_validshape = _lift(_ir.set_validshape, "tensor, valid_rows, valid_cols")
fillpad = _lift(_ir.fillpad, "tensor, pad_value=PadValue.zero")
fillpad_expand = _lift(_ir.fillpad_expand, "tensor, shape, pad_value=PadValue.zero")
assemble = _lift(_ir.assemble, "target, source, offset, *, atomic=AtomicType.None_")
concat, expand_clone, expands = _operands("concat"), _operands("expand_clone"), _operands("expands")

# elementwise
add, sub, mul, fmod = (_lift(getattr(_ir, leaf), "lhs, rhs") for leaf in ("add", "sub", "mul", "fmod"))
div = _lift(_ir.div, "lhs, rhs, high_precision=False")
maximum, minimum = _lift(_ir.maximum, "lhs, rhs"), _lift(_ir.minimum, "lhs, rhs")
cmp = _lift(_ir.cmp, "lhs, rhs, cmp_type=0")
adds, subs, muls, divs, fmods = map(_operands, ("adds", "subs", "muls", "divs", "fmods"))
part_add, part_mul, part_max, part_min = map(_operands, ("part_add", "part_mul", "part_max", "part_min"))
and_, or_, xor, shl, shr, not_ = map(_operands, ("and", "or", "xor", "shl", "shr", "not"))
ands, ors, xors, shls, shrs = map(_operands, ("ands", "ors", "xors", "shls", "shrs"))
neg, abs, exp, sqrt, sin, cos = map(_operands, ("neg", "abs", "exp", "sqrt", "sin", "cos"))
log = _lift(_ir.log, "input, high_precision=False")
recip = _lift(_ir.recip, "input, high_precision=False")
rsqrt = _lift(_ir.rsqrt, "input, high_precision=False")
cast = _lift(_ir.cast, 'input, target_type, mode="round"')

# along an axis
row_sum, row_max, row_min, row_prod, row_argmax, row_argmin = (
    _lift(getattr(_ir, f"row_{leaf}"), "input") for leaf in ("sum", "max", "min", "prod", "argmax", "argmin")
)
col_sum, col_max, col_min, col_prod, col_argmax, col_argmin = (
    _lift(getattr(_ir, f"col_{leaf}"), "input") for leaf in ("sum", "max", "min", "prod", "argmax", "argmin")
)
(
    row_expand, row_expand_add, row_expand_sub, row_expand_mul, row_expand_div, row_expand_max,
    row_expand_min, row_expand_expdif,
) = (
    _operands(f"row_expand{suffix}")
    for suffix in ("", "_add", "_sub", "_mul", "_div", "_max", "_min", "_expdif")
)  # fmt: skip
(
    col_expand, col_expand_add, col_expand_sub, col_expand_mul, col_expand_div, col_expand_max,
    col_expand_min, col_expand_expdif,
) = (
    _operands(f"col_expand{suffix}")
    for suffix in ("", "_add", "_sub", "_mul", "_div", "_max", "_min", "_expdif")
)  # fmt: skip

# matrix products
matmul = _lift(_ir.matmul, "lhs, rhs, out_dtype=None, a_trans=False, b_trans=False, c_matrix_nz=False")
matmul_acc = _lift(_ir.matmul_acc, "acc, lhs, rhs, a_trans=False, b_trans=False, init_cond=None")

# sort, gather, scatter
sort32 = _operands("sort32")
mrgsort = _lift(_ir.mrgsort, "src0, src1=None, src2=None, src3=None, *, exhausted=False, block_len=None")
gather = _lift(
    _ir.gather,
    "input, dim=None, index=None, *, mask_pattern=None, output_dtype=None, kvalue=None, cmp_mode=None, "
    "out_cols=None, "
    "offset=0, count_dtype=None",
)
gather_row = _lift(
    _ir.gather_row, "acc, src, dst_offset, src_offset, shapes, transpose=False, *, valid_shape=None"
)
paged_gather = _lift(
    _ir.paged_gather,
    "src, indices, block_table, block_size, size, max_indices, *, space=MemorySpace.Mat, col_off=0, "
    "is_trans=False, "
    "is_b_matrix=False",
)
scatter = _lift(_ir.scatter, "input, dim=None, index=None, src=None, *, mask_pattern=None, dst=None")


def scatter_update(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Replace rows: ``(input, dim, index, src)``, ``(input, index, src, dim=d)``, ``(input, d, index=,
    src=)``."""
    unwrap = _lifting.unwrap
    named = {key: unwrap(value) for key, value in kwargs.items()}
    return _lifting.wrap(_ir.scatter_update(unwrap(input), *map(unwrap, args), **named))


# miscellaneous
get_block_idx, get_block_num, get_subblock_idx = map(
    _operands, ("get_block_idx", "get_block_num", "get_subblock_idx")
)
alloc = _lift(_ir.alloc, "memory_space, size")


def aiv_shard(x: Any, **kwargs: Any) -> Any:
    """One lane's half of a tensor; only inside ``for ... in pl.split_aiv(...)``."""
    raise RuntimeError("pl.aiv_shard must be used inside a 'for ... in pl.split_aiv(...)' loop")


def aic_gather(x: Any, **kwargs: Any) -> Any:
    """Both lanes' halves of a tensor; only inside ``for ... in pl.split_aiv(...)``."""
    raise RuntimeError("pl.aic_gather must be used inside a 'for ... in pl.split_aiv(...)' loop")


def no_dep(tensor: Any) -> Any:
    """Mark a kernel argument as free of automatic dependencies; read by the parser."""
    return tensor


def dump_tag(tensor: Any) -> Any:
    """Mark a kernel argument for dumping; read by the parser."""
    return tensor


__all__ = sorted(
    name for name in globals() if not name.startswith("_") and name not in ("Any", "annotations")
)
