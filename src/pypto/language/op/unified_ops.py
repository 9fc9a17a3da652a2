"""``pl.<op>``: one name for the tensor and the tile form; the kinds of the operands decide.

Every function raises TypeError where tensors and tiles are mixed, where no form fits the operands, and
where the chosen level cannot honour an argument.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from pypto import ir
from pypto.ir.enums import AtomicType, PadValue
from pypto.ir.op import dtypes as _dt
from pypto.ir.op.build import at, expr
from pypto.ir.utils import resolve_cast_mode
from pypto.language.op import tensor_ops, tile_ops
from pypto.language.op.lifting import is_scalar_like, plain, unwrap
from pypto.language.typing import Scalar, Tensor, Tile

Unified = Callable[..., Any]


# --- dispatch -------------------------------------------------------------------------------------


def _kind(value: Any) -> str:
    if isinstance(value, Tensor):
        return "Tensor"
    if isinstance(value, Tile):
        return "Tile"
    if isinstance(value, ir.ConstBool):
        return "bool"
    return "Scalar" if is_scalar_like(value) else type(value).__name__


def _level(name: str, *operands: Any) -> ModuleType:
    """The namespace that serves these operands, all of which must be of one level."""
    first = operands[0]
    if isinstance(first, Tensor) and all(isinstance(operand, Tensor) for operand in operands):
        return tensor_ops
    if isinstance(first, Tile) and all(isinstance(operand, Tile) for operand in operands):
        return tile_ops
    raise _mismatch(name, operands)


def _level_with_scalar(name: str, operand: Any, scalar: Any) -> ModuleType:
    """The namespace that serves a tensor or a tile with a scalar."""
    if isinstance(operand, (Tensor, Tile)) and is_scalar_like(scalar):
        return tensor_ops if isinstance(operand, Tensor) else tile_ops
    raise _mismatch(name, (operand, scalar))


def _mismatch(name: str, operands: tuple[Any, ...]) -> TypeError:
    kinds = [_kind(operand) for operand in operands]
    listed = ", ".join(kinds)
    if "Tensor" in kinds and "Tile" in kinds:
        return TypeError(
            f"pl.{name}: cannot mix Tensor and Tile arguments ({listed}); bring the tensor "
            "into a tile first: pl.load(tensor, offsets, shape)"
        )
    if len(kinds) == 1:
        return TypeError(f"pl.{name}: expected Tensor or Tile, got {listed}")
    return TypeError(f"pl.{name}: expected Tensor or Tile operands, got ({listed})")


def _reject(name: str, level: str, keyword: str, remedy: str = "") -> TypeError:
    return TypeError(f"pl.{name}: '{keyword}' is not supported for {level} operands{remedy}")


def _scratch_remedy(name: str, operands: str) -> str:
    return (
        f"; make one of the same shape and dtype, tmp = pl.create_tile(shape, dtype=dtype), and call "
        f"pl.{name}({operands}, tmp)"
    )


def _titled(function: Unified, name: str, doc: str) -> Unified:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


# --- two operands ---------------------------------------------------------------------------------

_SCALAR_EXPRESSIONS = {"add": ir.add, "sub": ir.sub, "mul": ir.mul, "div": ir.truediv}


def _scalar_expression(name: str, lhs: Any, rhs: Any) -> Scalar:
    span = at(None)
    left, right = expr(unwrap(lhs), span), expr(unwrap(rhs), span)
    return Scalar(expr=_SCALAR_EXPRESSIONS[name](left, right, span))


def _arithmetic(name: str) -> Unified:
    of_tensors, of_tiles = getattr(tensor_ops, name), getattr(tile_ops, name)

    def function(lhs: Any, rhs: Any) -> Any:
        if isinstance(lhs, Tensor) and (isinstance(rhs, Tensor) or is_scalar_like(rhs)):
            return of_tensors(lhs, rhs)
        if isinstance(lhs, Tile) and (isinstance(rhs, Tile) or is_scalar_like(rhs)):
            return of_tiles(lhs, rhs)
        if is_scalar_like(lhs) and is_scalar_like(rhs):
            return _scalar_expression(name, lhs, rhs)
        raise _mismatch(name, (lhs, rhs))

    return _titled(
        function, name, f"``{name}`` of two tensors, two tiles, either with a scalar, or two scalars."
    )


add, sub, mul = _arithmetic("add"), _arithmetic("sub"), _arithmetic("mul")


def div(lhs: Any, rhs: Any, high_precision: bool = False) -> Any:
    """``lhs / rhs`` of two tensors, two tiles, either with a scalar, or two scalars."""
    precise = plain(high_precision)
    if isinstance(lhs, Tensor) and (isinstance(rhs, Tensor) or is_scalar_like(rhs)):
        return tensor_ops.div(lhs, rhs, precise)
    if isinstance(lhs, Tile) and (isinstance(rhs, Tile) or is_scalar_like(rhs)):
        return tile_ops.div(lhs, rhs, precise)
    if is_scalar_like(lhs) and is_scalar_like(rhs):
        if precise:
            raise TypeError("pl.div: 'high_precision' is not supported for scalar operands")
        return _scalar_expression("div", lhs, rhs)
    raise _mismatch("div", (lhs, rhs))


def _with_scalar_form(name: str, tensor_scalar: str, tile_scalar: str) -> Unified:
    """Two tensors or tiles, or one with a scalar, where the scalar form has its own operator."""
    forms = {
        (Tensor, False): getattr(tensor_ops, name), (Tensor, True): getattr(tensor_ops, tensor_scalar),
        (Tile, False): getattr(tile_ops, name), (Tile, True): getattr(tile_ops, tile_scalar),
    }  # fmt: skip

    def function(lhs: Any, rhs: Any) -> Any:
        for kind in (Tensor, Tile):
            if isinstance(lhs, kind):
                if isinstance(rhs, kind):
                    return forms[kind, False](lhs, rhs)
                if is_scalar_like(rhs):
                    return forms[kind, True](lhs, rhs)
        raise _mismatch(name, (lhs, rhs))

    return _titled(function, name, f"``{name}`` of two tensors or tiles, or of one and a scalar.")


maximum = _with_scalar_form("maximum", "maximum", "maximums")
minimum = _with_scalar_form("minimum", "minimum", "minimums")
fmod = _with_scalar_form("fmod", "fmods", "fmods")
and_, or_ = _with_scalar_form("and_", "ands", "ands"), _with_scalar_form("or_", "ors", "ors")
shl, shr = _with_scalar_form("shl", "shls", "shls"), _with_scalar_form("shr", "shrs", "shrs")


def cmp(lhs: Any, rhs: Any, cmp_type: Any = 0) -> Any:
    """Compare cell by cell; code 0 eq, 1 ne, 2 lt, 3 le, 4 gt, 5 ge."""
    if isinstance(lhs, Tensor) and (isinstance(rhs, Tensor) or is_scalar_like(rhs)):
        return tensor_ops.cmp(lhs, rhs, cmp_type)
    if isinstance(lhs, Tile) and isinstance(rhs, Tile):
        return tile_ops.cmp(lhs, rhs, cmp_type)
    if isinstance(lhs, Tile) and is_scalar_like(rhs):
        return tile_ops.cmps(lhs, rhs, cmp_type)
    raise _mismatch("cmp", (lhs, rhs))


def _scalar_only(name: str) -> Unified:
    """One tensor or tile with a scalar."""

    def function(lhs: Any, rhs: Any) -> Any:
        return getattr(_level_with_scalar(name, lhs, rhs), name)(lhs, rhs)

    return _titled(function, name, f"``{name}`` of a tensor or tile and a scalar.")


fmods, ands, ors, shls, shrs = map(_scalar_only, ("fmods", "ands", "ors", "shls", "shrs"))


def _with_scratch(name: str, level_of: Callable[..., ModuleType]) -> Unified:
    def function(lhs: Any, rhs: Any, tmp: Any = None) -> Any:
        level = level_of(name, lhs, rhs)
        if level is tensor_ops:
            if tmp is not None:
                raise TypeError(f"pl.{name}: Tensor inputs must not pass tmp")
            return getattr(tensor_ops, name)(lhs, rhs)
        if tmp is None:
            raise TypeError(
                f"pl.{name}: Tile inputs require an explicit scratch tile (tmp)"
                f"{_scratch_remedy(name, 'lhs, rhs')}"
            )
        return getattr(tile_ops, name)(lhs, rhs, tmp)

    return _titled(function, name, f"``{name}``; the tile form needs a scratch tile.")


xor, xors = _with_scratch("xor", _level), _with_scratch("xors", _level_with_scalar)


def _pair(name: str) -> Unified:
    """Two tensors or two tiles."""

    def function(lhs: Any, rhs: Any) -> Any:
        return getattr(_level(name, lhs, rhs), name)(lhs, rhs)

    return _titled(function, name, f"``{name}`` of two tensors or two tiles.")


part_add, part_mul, part_max, part_min = map(_pair, ("part_add", "part_mul", "part_max", "part_min"))
row_expand, row_expand_sub, row_expand_mul, row_expand_div = map(
    _pair, ("row_expand", "row_expand_sub", "row_expand_mul", "row_expand_div")
)
row_expand_max, row_expand_min, row_expand_expdif = map(
    _pair, ("row_expand_max", "row_expand_min", "row_expand_expdif")
)
col_expand, col_expand_add, col_expand_sub, col_expand_mul = map(
    _pair, ("col_expand", "col_expand_add", "col_expand_sub", "col_expand_mul")
)
col_expand_div, col_expand_max, col_expand_min, col_expand_expdif = map(
    _pair, ("col_expand_div", "col_expand_max", "col_expand_min", "col_expand_expdif")
)


def row_expand_add(lhs: Any, rhs: Any, tmp: Any = None) -> Any:
    """``lhs + rhs`` with one value of ``rhs`` per row; ``tmp`` is scratch of the tile form."""
    level = _level("row_expand_add", lhs, rhs)
    if level is tensor_ops:
        if tmp is not None:
            raise TypeError("pl.row_expand_add: Tensor inputs must not pass tmp")
        return tensor_ops.row_expand_add(lhs, rhs)
    return tile_ops.row_expand_add(lhs, rhs, tmp)


def concat(src0: Any, src1: Any) -> Any:
    """Columns side by side."""
    return _level("concat", src0, src1).concat(src0, src1)


def sort32(src: Any, idx: Any) -> Any:
    """Sort blocks of 32 columns into (value, index) pairs."""
    return _level("sort32", src, idx).sort32(src, idx)


# --- one operand ----------------------------------------------------------------------------------


def _unary(name: str) -> Unified:
    def function(input: Any) -> Any:
        return getattr(_level(name, input), name)(input)

    return _titled(function, name, f"``{name}`` of a tensor or tile.")


exp, sin, cos, neg, abs, sqrt, not_ = map(_unary, ("exp", "sin", "cos", "neg", "abs", "sqrt", "not_"))
col_max, col_min, col_prod = map(_unary, ("col_max", "col_min", "col_prod"))


def log(input: Any, high_precision: bool = False) -> Any:
    """Natural logarithm of a tensor or tile."""
    return _level("log", input).log(input, high_precision)


def recip(input: Any, high_precision: bool = False) -> Any:
    """``1 / input`` of a tensor or tile."""
    return _level("recip", input).recip(input, high_precision)


def rsqrt(input: Any, high_precision: bool = False) -> Any:
    """``1 / sqrt(input)`` of a tensor or tile."""
    if _level("rsqrt", input) is tensor_ops:
        return tensor_ops.rsqrt(input, high_precision)
    if plain(high_precision):
        raise _reject("rsqrt", "Tile", "high_precision", "; use pl.tile.rsqrt(tile, tmp)")
    return tile_ops.rsqrt(input)


def cast(input: Any, target_type: Any, mode: Any = "round") -> Any:
    """Convert a tensor, a tile or a scalar."""
    number = resolve_cast_mode(plain(mode))
    if is_scalar_like(input) or (isinstance(input, ir.Expr) and isinstance(input.type, ir.ScalarType)):
        if number != 2:
            raise TypeError("pl.cast: Scalar inputs do not support non-default mode")
        span = at(None)
        return Scalar(expr=ir.cast(expr(unwrap(input), span), target_type, span))
    return _level("cast", input).cast(input, target_type, number)


def _reduction(name: str, *, required: bool) -> Unified:
    def function(input: Any, tmp_tile: Any = None) -> Any:
        if _level(name, input) is tensor_ops:
            if tmp_tile is not None:
                raise TypeError(f"pl.{name}: Tensor inputs must not pass tmp_tile")
            return getattr(tensor_ops, name)(input)
        if tmp_tile is None:
            if required:
                raise TypeError(f"pl.{name}: Tile inputs require tmp_tile{_scratch_remedy(name, 'tile')}")
            return getattr(tile_ops, name)(input)
        return getattr(tile_ops, name)(input, tmp_tile)

    return _titled(function, name, f"``{name}`` of a tensor, or of a tile with scratch ``tmp_tile``.")


row_sum, row_max, row_min, row_prod = (
    _reduction(f"row_{combine}", required=True) for combine in ("sum", "max", "min", "prod")
)
row_argmax, row_argmin, col_argmax, col_argmin = (
    _reduction(name, required=True) for name in ("row_argmax", "row_argmin", "col_argmax", "col_argmin")
)
col_sum = _reduction("col_sum", required=False)


# --- views, shape changes, elements ---------------------------------------------------------------


def reshape(input: Any, shape: Any) -> Any:
    """The same elements, row-major, under another shape."""
    return _level("reshape", input).reshape(input, shape)


def transpose(input: Any, axis1: Any, axis2: Any) -> Any:
    """Two axes exchanged."""
    return _level("transpose", input).transpose(input, axis1, axis2)


def reinterpret_view(data: Any, dtype: Any, *, shape: Any = None) -> Any:
    """The same bytes as another element type."""
    return _level("reinterpret_view", data).reinterpret_view(data, dtype, shape=shape)


def slice(
    input: Any,
    shape: Any,
    offset: Any,
    valid_shape: Any = None,
    drop_dims: Any = None,
    pad_value: Any = None,
    clamp: bool = False,
) -> Any:
    """A window of ``shape`` at ``offset``."""
    if _level("slice", input) is tensor_ops:
        return tensor_ops.slice(input, shape, offset, valid_shape, drop_dims, pad_value, clamp)
    if plain(clamp):
        raise TypeError("pl.slice: clamp=True is not supported for a Tile; clamp the valid_shape instead")
    return tile_ops.slice(input, shape, offset, valid_shape, drop_dims, pad_value)


def fillpad(value: Any, pad_value: Any = PadValue.zero) -> Any:
    """Fill the cells outside the valid region."""
    return _level("fillpad", value).fillpad(value, pad_value)


def fillpad_expand(value: Any, shape: Any, pad_value: Any = PadValue.zero) -> Any:
    """The value at the origin of a larger, padded one."""
    return _level("fillpad_expand", value).fillpad_expand(value, shape, pad_value)


def expands(target: Any, scalar: Any) -> Any:
    """The target's shape filled with a scalar."""
    return _level_with_scalar("expands", target, scalar).expands(target, scalar)


def set_validshape(input: Any, valid_rows: Any, valid_cols: Any) -> Any:
    """The same 2-D buffer with another valid region."""
    return _level("set_validshape", input).set_validshape(input, valid_rows, valid_cols)


def read(src: Any, offset: Any) -> Any:
    """One element as a scalar."""
    return _level("read", src).read(src, offset)


def write(dst: Any, offset: Any, value: Any) -> Any:
    """Set one element in place; the value must have exactly the element type."""
    return _level("write", dst).write(dst, offset, value)


def assemble(target: Any, source: Any, offset: Any, *, atomic: Any = AtomicType.None_) -> Any:
    """Write ``source`` into ``target`` at ``offset`` in place."""
    if _level("assemble", target, source) is tensor_ops:
        return tensor_ops.assemble(target, source, offset, atomic=atomic)
    if plain(atomic):
        raise _reject("assemble", "Tile", "atomic")
    return tile_ops.assemble(target, source, offset)


# --- matrix products ------------------------------------------------------------------------------

_TRANSPOSE_HINT = "; pass pl.tile.transpose_view(operand) instead"


def matmul(
    lhs: Any,
    rhs: Any,
    out_dtype: Any = None,
    a_trans: bool = False,
    b_trans: bool = False,
    c_matrix_nz: bool = False,
) -> Any:
    """``lhs @ rhs``."""
    if _level("matmul", lhs, rhs) is tensor_ops:
        return tensor_ops.matmul(lhs, rhs, out_dtype, a_trans, b_trans, c_matrix_nz)
    for keyword, flag in (("a_trans", a_trans), ("b_trans", b_trans), ("c_matrix_nz", c_matrix_nz)):
        if plain(flag):
            raise _reject("matmul", "Tile", keyword, "" if keyword == "c_matrix_nz" else _TRANSPOSE_HINT)
    if out_dtype is not None:
        _check_tile_out_dtype(lhs, plain(out_dtype))
    return tile_ops.matmul(lhs, rhs)


def _check_tile_out_dtype(lhs: Tile, out_dtype: Any) -> None:
    deduced = _dt.accumulator(lhs.dtype)
    if not isinstance(out_dtype, ir.DataType):
        raise TypeError(f"pl.matmul: out_dtype must be a DataType, got {type(out_dtype).__name__}")
    if out_dtype is not deduced:
        raise TypeError(
            f"pl.matmul: out_dtype={out_dtype} is not supported for Tile operands, whose product has dtype "
            f"{deduced}; "
            "convert the result with pl.cast"
        )


def matmul_acc(
    acc: Any, lhs: Any, rhs: Any, a_trans: bool = False, b_trans: bool = False, init_cond: Any = None
) -> Any:
    """``acc + lhs @ rhs``, or the product alone where ``init_cond`` is true."""
    if _level("matmul_acc", acc, lhs, rhs) is tensor_ops:
        return tensor_ops.matmul_acc(acc, lhs, rhs, a_trans, b_trans, init_cond)
    for keyword, flag in (("a_trans", a_trans), ("b_trans", b_trans)):
        if plain(flag):
            raise _reject("matmul_acc", "Tile", keyword, _TRANSPOSE_HINT)
    return tile_ops.matmul_acc(acc, lhs, rhs, init_cond)


def batch_matmul(lhs: Any, rhs: Any) -> Any:
    """``lhs @ rhs`` of tiles with leading batch axes."""
    if isinstance(lhs, Tile) and isinstance(rhs, Tile):
        return tile_ops.batch_matmul(lhs, rhs)
    raise TypeError(f"pl.batch_matmul: expected Tile operands, got ({_kind(lhs)}, {_kind(rhs)})")


# --- sort, gather, scatter ------------------------------------------------------------------------


def gather_row(
    dst: Any,
    src: Any,
    dst_offset: Any,
    src_offset: Any,
    shapes: Any,
    transpose: bool = False,
    *,
    valid_shape: Any = None,
) -> Any:
    """Copy a window of ``src`` into a window of ``dst``."""
    level = _level("gather_row", dst)
    return level.gather_row(dst, src, dst_offset, src_offset, shapes, transpose, valid_shape=valid_shape)


def scatter_update(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Replace rows: ``(input, dim, index, src)``, ``(input, index, src, dim=d)``, ``(input, d, index=,
    src=)``."""
    return _level("scatter_update", input).scatter_update(input, *args, **kwargs)


def mrgsort(
    src0: Any,
    src1: Any = None,
    src2: Any = None,
    src3: Any = None,
    tmp: Any = None,
    *,
    exhausted: bool = False,
    block_len: Any = None,
) -> Any:
    """Merge runs of one value (``block_len``) or several sorted values."""
    sources = [source for source in (src0, src1, src2, src3) if source is not None]
    if _level("mrgsort", *sources) is tensor_ops:
        if tmp is not None:
            raise TypeError("pl.mrgsort: Tensor inputs must not pass tmp")
        return tensor_ops.mrgsort(src0, src1, src2, src3, exhausted=exhausted, block_len=block_len)
    return tile_ops.mrgsort(src0, src1, src2, src3, tmp, exhausted, block_len=block_len)


__all__ = [
    "abs", "add", "and_", "ands", "assemble", "batch_matmul", "cast", "cmp", "col_argmax", "col_argmin",
    "col_expand", "col_expand_add", "col_expand_div", "col_expand_expdif", "col_expand_max",
    "col_expand_min", "col_expand_mul", "col_expand_sub", "col_max", "col_min", "col_prod", "col_sum",
    "concat", "cos", "div", "exp", "expands", "fillpad", "fillpad_expand", "fmod", "fmods", "gather_row",
    "log", "matmul", "matmul_acc", "maximum", "minimum", "mrgsort", "mul", "neg", "not_", "or_", "ors",
    "part_add", "part_max", "part_min", "part_mul", "read", "recip", "reinterpret_view", "reshape",
    "row_argmax", "row_argmin", "row_expand", "row_expand_add", "row_expand_div", "row_expand_expdif",
    "row_expand_max", "row_expand_min", "row_expand_mul", "row_expand_sub", "row_max", "row_min",
    "row_prod", "row_sum", "rsqrt", "scatter_update", "set_validshape", "shl", "shls", "shr", "shrs", "sin",
    "slice", "sort32", "sqrt", "sub", "transpose", "write", "xor", "xors",
]  # fmt: skip
