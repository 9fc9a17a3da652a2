"""Type inference of tile operators that create, move, view or place data."""

from __future__ import annotations

import warnings

import pytest

from pypto import ir
from pypto.ir.op import tile as L
from tests.ir.op.operands import (
    COL,
    NONE,
    NOWHERE,
    ROW,
    Acc,
    Left,
    Mat,
    Right,
    Vec,
    bound,
    extents,
    layout,
    rejects,
    shape,
    symbol,
    tensor,
    tile,
    valid,
    window,
)  # fmt: skip

DN = ir.TensorLayout.DN
M, N, S, n, k, m = (symbol(name) for name in "MNSnkm")
INT32_SCALAR = symbol("i", ir.INT32)


# -- create, load, store, move -------------------------------------------------------------------------------


def test_create_has_the_implicit_layout_of_its_space() -> None:
    assert layout(L.create([32, 1], ir.FP32)) == (COL, NONE)
    assert layout(L.create([1, 32], ir.FP32)) == (ROW, NONE)
    mat = L.create([32, 32], ir.FP32, Mat)
    assert mat.type.tile_view is None and layout(mat) == (COL, ROW)
    assert layout(L.create([32, 32], ir.FP32, Mat, transpose=True)) == (ROW, COL)
    flat = L.create([32, 32], ir.FP32, Mat, flat_layout=True)
    assert layout(flat) == (ROW, NONE) and flat.type.tile_view is not None
    assert L.create([32, 32], ir.FP32, Acc).type.get_effective_tile_view().fractal == 1024
    assert L.create([8], ir.FP32, None).type.memory_space is None
    for scale in (ir.MemorySpace.LeftScale, ir.MemorySpace.RightScale):
        rejects(
            lambda scale=scale: L.create([8, 8], ir.FP32, scale),
            "does not support target_memory=LeftScale/RightScale",
        )
    rejects(lambda: L.create([n, 8], ir.FP32), "compile-time constant")
    rejects(lambda: L.create([], ir.FP32), "non-empty")
    rejects(lambda: L.create([0, 8], ir.FP32), "positive")
    rejects(lambda: L.create([8, 8], ir.FP32, Mat, transpose=True, flat_layout=True), "transpose")


def test_load_of_a_full_window_has_no_view() -> None:
    x = tensor([64, 128])
    for space in (Vec, Mat):
        call = L.load(x, [0, 0], [64, 128], target_memory=space)
        assert call.type.tile_view is None and call.type.memory_space is space and len(call.args) == 4
    assert list(L.load(x, [0, 0], [8, 8]).kwargs) == ["target_memory"]


def test_load_layouts() -> None:
    row = L.load(tensor([64, 32]), [0, 0], [1, 32], target_memory=Mat)
    assert layout(row) == (ROW, NONE)
    transposed = tensor([64, 32], layout=DN)
    assert layout(L.load(transposed, [0, 0], [64, 32], target_memory=Mat)) == (ROW, COL)
    assert layout(L.load(transposed, [0, 0], [64, 1], target_memory=Mat)) == (ROW, NONE)
    assert layout(L.load(tensor([64, 32]), [0, 0], [64, 1])) == (COL, NONE)
    one_column = L.load(tensor([64, 32]), [0, 0], [64, 1], target_memory=Mat)
    assert layout(one_column) == (COL, ROW) and one_column.type.tile_view is None
    for space in ir.MemorySpace:
        if space not in (Vec, Mat):
            rejects(
                lambda space=space: L.load(tensor([8, 8]), [0, 0], [8, 8], target_memory=space), "Vec or Mat"
            )


def test_load_valid_region() -> None:
    x = tensor([100, 128])
    rejects(lambda: L.load(x, [64, 0], [64, 128]), "reads past the end of dimension 0", "clamp=True")
    assert valid(L.load(x, [64, 0], [64, 128], valid_shape=[36, 128])) == [36, 128]
    assert valid(L.load(x, [64, 0], [64, 128], clamp=True)) == [36, 128]
    rejects(lambda: L.load(x, [0, 0], [64, 128], valid_shape=[128, 128]), "exceeds the window extent")
    assert valid(L.load(tensor([64, 128]), [0, 0], [128, 128], valid_shape=[64, 128])) == [64, 128]
    symbolic = L.load(x, [0, 0], [64, 128], valid_shape=[M, N])
    assert symbolic.type.tile_view.valid_shape[0] is M and symbolic.type.tile_view.valid_shape[1] is N
    assert valid(L.load(tensor([4, 16, 16]), [0, 0], [16, 16], valid_shape=[5, 16])) == [5, 16]
    narrow = L.load(tensor([16, 64], valid=[16, S]), [0, 0], [16, 64], valid_shape=[16, N])
    assert narrow.type.tile_view.valid_shape[1] is N
    moving = L.load(x, [n, 0], [64, 128], clamp=True).type.tile_view.valid_shape[0]
    assert isinstance(moving, ir.Min) and isinstance(moving.left, ir.Max)


def test_load_argument_errors() -> None:
    rejects(lambda: L.load(tensor([8]), [0], [8], valid_shapes=[8]), "valid_shapes", error=TypeError)
    rejects(lambda: L.load(tile([8, 8]), [0, 0], [8, 8]), "requires first argument to be a TensorType")
    rejects(lambda: L.load(tensor([8, 8]), [0], [8, 8]), "equal rank")
    assert isinstance(L.load(window([8, 8]), [0, 0], [8, 8]).type, ir.TileType)


def test_load_of_scale_tensors_needs_matrix_memory() -> None:
    scales = tensor([32, 4], ir.FP8E8M0, layout=ir.TensorLayout.MX_A_ZZ)
    loaded = L.load(scales, [0, 0], [32, 4], target_memory=Mat)
    assert layout(loaded) == (ROW, ROW) and loaded.type.get_effective_tile_view().fractal == 32
    rejects(lambda: L.load(scales, [0, 0], [32, 4]), "target_memory=Mat")
    moved = L.move(bound(loaded), ir.MemorySpace.LeftScale)
    assert moved.type.tile_view is None
    rejects(lambda: L.move(bound(loaded), ir.MemorySpace.RightScale), "matching")
    rejects(lambda: L.move(bound(loaded), ir.MemorySpace.LeftScale, ROW), "hardware-fixed layout")


def test_store_grows_the_valid_region_of_its_target() -> None:
    out = tensor([64, 128])
    assert L.store(tile([64, 128]), [0, 0], out).type is out.type
    part = tensor([64, 128], valid=[20, 128])
    assert valid(L.store(tile([16, 128], valid=[12, 128]), [20, 0], part)) == [32, 128]
    assert L.store(tile([64, 128], valid=[8, 128]), [56, 0], out).type is out.type
    rejects(lambda: L.store(tile([32, 128]), [56, 0], out), "writes past the end of dimension 0")
    rejects(lambda: L.store(tile([16, 8]), [0, 0], tensor([8, 16])), "performs no layout conversion")
    rejects(lambda: L.store(tile([8, 8]), [0, 0], tile([8, 8])), "third argument to be a TensorType")
    assert L.store(tile([64, 128]), [56, 0], out, [64, 128]).type is out.type
    assert L.store(tile([8, 8]), [0, 0, 0], tensor([4, 8, 8])).type.shape[0].value == 4
    assert isinstance(L.store(tile([8, 8]), [0, 0], window([8, 8])).type, ir.DistributedTensorType)


def test_atomic_store_dtypes() -> None:
    assert L.store(tile([8, 8]), [0, 0], tensor([8, 8]), atomic=1).kwargs == {"atomic": 1}
    for dtype in (ir.FP32, ir.BF16, ir.FP16, ir.INT32, ir.INT16, ir.INT8):
        L.store(tile([8, 8], dtype), [0, 0], tensor([8, 8], dtype), atomic=1)
    for dtype in (ir.INT64, ir.UINT8, ir.UINT32, ir.BOOL):
        rejects(
            lambda dtype=dtype: L.store(tile([8, 8], dtype), [0, 0], tensor([8, 8], dtype), atomic=1),
            "fp32", "bfloat16", "fp16", "int32", "int16", "int8",
        )  # fmt: skip
    rejects(lambda: L.store(tile([8, 8]), [0, 0], tensor([8, 8]), atomic=2), "atomic")


def test_store_grows_along_one_axis_without_a_gap() -> None:
    part = tensor([64, 128], valid=[20, 128])
    rejects(lambda: L.store(tile([8, 128]), [24, 0], part), "leaves a gap in dimension 0")
    rejects(lambda: L.store(tile([8, 64]), [20, 0], part), "L-shape")
    corner = tensor([64, 128], valid=[8, 8])
    rejects(lambda: L.store(tile([16, 16]), [4, 4], corner), "dimensions 0 and 1 at once")
    rejects(lambda: L.store(tile([8, 8]), [-1, 0], part), "provably negative")
    assert L.store(tile([8, 128], valid=[0, 128]), [40, 0], part).type == part.type
    for shapes in ([8], [8, 128, 1]):
        rejects(lambda shapes=shapes: L.store(tile([8, 128]), [0, 0], part, shapes), "rank")
    assert L.store(tile([8, 128]), [24, 0], part, [8, 128]).type is part.type
    assert L.store(tile([1, 8, 128]), [24, 0], part).type is part.type


@pytest.mark.parametrize("space", [Mat, Left, Right, Acc])
def test_move_takes_the_implicit_layout_of_boxed_spaces(space: ir.MemorySpace) -> None:
    moved = L.move(tile([64, 64]), space)
    assert moved.type.tile_view is None and moved.type.memory_space is space
    implicit = ir.TileType([64, 64], ir.FP32, None, None, space).get_effective_tile_view()
    wanted = (implicit.blayout, implicit.slayout, implicit.fractal)
    partial, padded = tile([64, 64], valid=[40, 64]), tile([64, 64], pad=ir.PadValue.zero)
    for source in (partial, padded, tile([64, 64], valid=[40, 64], pad=ir.PadValue.min, space=Mat)):
        view = L.move(source, space).type.get_effective_tile_view()
        assert (view.blayout, view.slayout, view.fractal) == wanted
        assert extents(view.valid_shape) == valid(source)
        assert view.pad is source.type.tile_view.pad
    for blayout, slayout in ((ROW, ROW), (COL, COL)):
        assert layout(L.move(partial, space, blayout, slayout)) == (blayout, slayout)
    assert L.move(tile([64, 64], space=space), space).type.tile_view is None


def test_move_to_right_is_row_major_and_to_vec_keeps_the_source_layout() -> None:
    assert layout(L.move(tile([64, 1]), Right))[0] is ROW
    for flat in (Vec, ir.MemorySpace.Bias):
        moved = L.move(tile([64, 64], valid=[40, 64], space=Acc), flat)
        assert layout(moved) == (COL, ROW) and moved.type.get_effective_tile_view().fractal == 512
        assert moved.type.memory_space is flat and valid(moved) == [40, 64]
    assert layout(L.move(tile([64, 64]), Mat, ROW, COL)) == (ROW, COL)
    assert L.move(tile([64, 64]), Vec).type.tile_view is None


# -- windows -------------------------------------------------------------------------------------------------


def test_slice_valid_region_and_errors() -> None:
    x = tile([64, 64], valid=[40, 50])
    assert valid(L.slice(x, [32, 32], [24, 32])) == [16, 18]
    narrow = tile([64, 64], valid=[20, 64])
    assert valid(L.slice(narrow, [32, 32], [0, 0], [32, 32])) == [20, 32]
    assert valid(L.slice(narrow, [32, 32], [0, 0], [8, 4])) == [8, 4]
    for axis, offset in ((0, [33, 0]), (1, [0, 33])):
        rejects(
            lambda offset=offset: L.slice(x, [32, 32], offset),
            f"reads past the end of dimension {axis}", "no clamping mechanism",
        )  # fmt: skip
    rejects(lambda: L.slice(x, [32, 32], [-1, 0]), "provably negative")
    rejects(lambda: L.slice(x, [32, 32], [0, -1]), "provably negative")
    rejects(lambda: L.slice(x, [n, 32], [0, 0]), "compile-time constant")
    rejects(lambda: L.slice(x, [32, 32], [INT32_SCALAR, 0]), "offset", "int32")


def test_slice_drops_axes_down_to_two() -> None:
    x = tile([1, 1, 1, 64])
    assert shape(L.slice(x, [1, 1, 1, 64], [0, 0, 0, 0], drop_dims=[0, 1, 2])) == [1, 64]
    rejects(lambda: L.slice(tile([8, 64]), [2, 64], [0, 0], drop_dims=[0]), "static unit dimension")
    for rows in (n, 2):
        partial = tile([8, 64], valid=[rows, 64])
        rejects(
            lambda partial=partial: L.slice(partial, [1, 64], [3, 0], drop_dims=[0]), "not provably 1"
        )  # fmt: skip
    for empty in (None, []):
        assert len(L.slice(x, [1, 1, 1, 64], [0, 0, 0, 0], drop_dims=empty).args) == 3
    call = L.slice(tile([8, 64]), [1, 64], [3, 0], drop_dims=[0])
    assert call.args[3].elements == [] and len(call.args) == 5


def test_slice_layout_space_and_pad() -> None:
    mat = tile([64, 64], space=Mat)
    assert L.slice(mat, [32, 32], [0, 0]).type.tile_view is None
    assert L.slice(mat, [32, 32], [0, 0]).type.memory_space is Mat
    partial = L.slice(mat, [32, 32], [0, 0], [16, 32])
    assert layout(partial) == (ROW, NONE)
    padded = tile([64, 64], valid=[40, 64], pad=ir.PadValue.min)
    assert L.slice(padded, [32, 32], [0, 0]).type.tile_view.pad is ir.PadValue.min
    with pytest.warns(UserWarning, match="pad_value has no effect"):
        L.slice(tile([8, 8]), [4, 4], [0, 0], pad_value=ir.PadValue.zero)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert L.slice(tile([8, 8]), [4, 4], [0, 0], [2, 4], pad_value=0).kwargs == {
            "pad_value": ir.PadValue.zero
        }
    rejects(
        lambda: ir.create_op_call("tile.slice", L.slice(mat, [4, 4], [0, 0]).args, {"pad_value": 0}, NOWHERE),
        "incompatible type", error=TypeError,
    )  # fmt: skip


def test_extract() -> None:
    x = tile([64, 128], valid=[40, 100], space=Mat)
    left = L.extract(x, 16, 64, [32, 32], target_memory=Left)
    assert valid(left) == [24, 32] and layout(left) == (ROW, ROW)
    assert left.type.tile_view.compact is ir.CompactMode.normal
    right = L.extract(x, 0, 0, [32, 32], target_memory=Right)
    assert layout(right) == (ROW, COL) and right.type.tile_view is None
    vec = L.extract(x, 16, 64, [32, 32], target_memory=Vec)
    assert vec.type.tile_view.compact is ir.CompactMode.null
    for space in (Left, Right, Vec, Mat):
        part = L.extract(x, 16, 64, [32, 32], target_memory=space)
        assert valid(part) == [24, 32] and part.type.memory_space is space
        normal = space in (Left, Right)
        assert part.type.tile_view.compact is (ir.CompactMode.normal if normal else ir.CompactMode.null)
    rejects(lambda: L.extract(x, 0, 0, [65, 8], target_memory=Vec), "exceeds src")
    rejects(lambda: L.extract(x, 0, 0, [8, 129], target_memory=Vec), "exceeds src")
    rejects(lambda: L.extract(x, 48, 0, [32, 8], target_memory=Vec), "exceeds src row")
    rejects(lambda: L.extract(x, 0, 120, [32, 16], target_memory=Vec), "exceeds src col")
    rejects(lambda: L.extract(x, -1, 0, [8, 8], target_memory=Vec), "must be >= 0")
    rejects(lambda: L.extract(x, 0, -1, [8, 8], target_memory=Vec), "must be >= 0")
    for dtype in (ir.FP32, ir.INT32):
        rejects(
            lambda dtype=dtype: L.extract(x, symbol("f", dtype), 0, [8, 8], target_memory=Vec), "index_row"
        )
        rejects(
            lambda dtype=dtype: L.extract(x, 0, symbol("f", dtype), [8, 8], target_memory=Vec), "index_col"
        )
    rejects(lambda: L.extract(tile([2, 8, 8]), 0, 0, [8, 8], target_memory=Vec), "rank-2")
    rejects(lambda: L.extract(x, 0, 0, [n, 8], target_memory=Vec), "compile-time constant")
    rejects(lambda: L.extract(x, 0, 0, [1, 8, 8], target_memory=Vec), "rank-2")


def test_assemble() -> None:
    full, part = tile([64, 128]), tile([64, 128], valid=[20, 128])
    assert L.assemble(full, tile([16, 128]), [0, 0]).type.tile_view is None
    assert valid(L.assemble(part, tile([12, 128]), [20, 0])) == [32, 128]
    assert valid(L.assemble(part, tile([16, 128], valid=[8, 128]), [20, 0])) == [28, 128]
    rejects(lambda: L.assemble(part, tile([8, 128]), [24, 0]), "leaves a gap in dimension 0")
    rejects(lambda: L.assemble(part, tile([8, 64]), [20, 0]), "L-shape")
    assert valid(L.assemble(part, tile([8, 128], valid=[0, 128]), [40, 0])) == [20, 128]
    assert valid(L.assemble(tile([64, 128], valid=[0, 128]), tile([8, 128]), [0, 0])) == [8, 128]
    rejects(
        lambda: L.assemble(full, tile([48, 128], valid=[8, 128]), [56, 0]), "copies the whole source subview"
    )
    rejects(lambda: L.assemble(full, tile([8, 128], ir.FP16), [0, 0]), "same dtype")
    for dtype in (ir.BF16, ir.FP16):
        assert L.assemble(tile([8, 8], dtype), tile([8, 8]), [0, 0]).type.dtype is dtype
    empty, corner = tile([64, 128], valid=[0, 128]), tile([64, 128], valid=[8, 8])
    rejects(lambda: L.assemble(empty, tile([8, 128]), [8, 0]), "tile.assemble")
    rejects(lambda: L.assemble(corner, tile([16, 16]), [4, 4]), "dimensions 0 and 1 at once")
    rejects(lambda: L.assemble(full, tile([8, 128]), [-8, 0]), "provably negative")


# -- shape changes -------------------------------------------------------------------------------------------


def test_reshape() -> None:
    assert valid(L.reshape(tile([8, 16], valid=[5, 16]), [16, 8])) == [10, 8]
    assert valid(L.reshape(tile([1, 8, 16], valid=[1, 8, 5]), [8, 16])) == [8, 5]
    column = L.reshape(tile([1, 32]), [32, 1])
    assert layout(column) == (COL, NONE) and column.type.memory_space is Vec
    rejects(lambda: L.reshape(tile([2, 3], valid=[1, 3], blayout=COL), [1, 6]), "not stored row-major")
    assert shape(L.reshape(tile([2, 3], blayout=COL), [1, 6])) == [1, 6]
    compact = tile([8, 16], compact=ir.CompactMode.normal)
    assert L.reshape(compact, [16, 8]).type.tile_view.compact is ir.CompactMode.normal
    unsigned = ir.ConstInt(8, ir.UINT64, NOWHERE)
    assert L.reshape(tile([8, 16], valid=[unsigned, 16]), [16, 8]).type.tile_view is None
    rejects(lambda: L.reshape(tile([8, 16]), [8, 8]), "cannot reshape tensor of size")


def test_transpose_is_a_full_copy_and_transpose_view_flips_layouts() -> None:
    assert len(L.transpose(tile([8, 16]), 0, 1).args) == 3
    assert len(L.transpose(tile([8, 16]), 0, 1, tile([8, 16])).args) == 4
    assert valid(L.transpose(tile([8, 16], valid=[5, 16]), -1, -2)) == [16, 8]
    pairs = [((COL, ROW), (ROW, COL)), ((COL, COL), (ROW, ROW)), ((ROW, NONE), (COL, NONE))]
    for (blayout, slayout), flipped in pairs + [(after, before) for before, after in pairs]:
        call = L.transpose_view(tile([8, 16], valid=[5, 16], space=Mat, blayout=blayout, slayout=slayout))
        assert layout(call) == flipped and shape(call) == [16, 8] and valid(call) == [16, 5]
    rejects(lambda: L.transpose_view(tile([8])), "at least 2 dimensions")
    rejects(lambda: L.transpose(tile([8, 8]), 1, 1), "distinct")


def test_set_validshape_keeps_everything_else() -> None:
    call = L.set_validshape(tile([16, 64], space=Acc), n, 64)
    view = call.type.tile_view
    assert (view.blayout, view.slayout, view.fractal) == (COL, ROW, 1024) and view.valid_shape[0] is n
    assert call.type.memory_space is Acc
    rejects(lambda: L.set_validshape(tile([16, 64]), -1, 64), "must be >= 0")
    rejects(lambda: L.set_validshape(tile([16, 64]), 32, 64), "exceeds tile bound")
    rejects(lambda: L.set_validshape(tile([16, 64]), 16, 65), "exceeds tile bound")
    rejects(lambda: L.set_validshape(tile([16, 64]), INT32_SCALAR, 64), "int32")
    boxed = tile([16, 64], valid=[4, 4], compact=ir.CompactMode.normal, pad=ir.PadValue.max)
    grown = L.set_validshape(boxed, 16, 64)
    assert valid(grown) == [16, 64] and grown.type.tile_view.compact is ir.CompactMode.normal
    assert grown.type.tile_view.pad is ir.PadValue.max


def test_reinterpret_view() -> None:
    assert shape(L.reinterpret_view(tile([8, 16]), ir.INT16)) == [8, 32]
    assert shape(L.reinterpret_view(tile([8, 16], blayout=COL), ir.INT16)) == [16, 16]
    assert valid(L.reinterpret_view(tile([8, 16], valid=[4, 12]), ir.INT16)) == [4, 24]
    rejects(lambda: L.reinterpret_view(tile([8, 15], ir.INT16), ir.FP32), "not divisible by 2")
    rejects(lambda: L.reinterpret_view(tile([8, 16]), ir.INT16, shape=[8, 16]), "512", "256")
    rejects(lambda: L.reinterpret_view(tile([8, 16], space=Mat), ir.INT16), "only supports flat tiles")
    rejects(lambda: L.reinterpret_view(tile([8, 16]), ir.FP32), "dtypes to differ")
    kept = {ir.PadValue.zero: ir.PadValue.zero, ir.PadValue.max: ir.PadValue.null,
            ir.PadValue.min: ir.PadValue.null}  # fmt: skip
    for pad, after in kept.items():
        padded = tile([8, 16], valid=[4, 16], pad=pad)
        assert L.reinterpret_view(padded, ir.INT16).type.tile_view.pad is after


def test_fillpad_is_fully_valid_and_marks_the_pad() -> None:
    x = tile([64, 64], valid=[48, 64])
    Pad, inf = ir.PadValue, float("inf")
    spellings = {
        Pad.zero: (Pad.zero, 0, 0.0), Pad.max: (Pad.max, inf), Pad.min: (Pad.min, -inf),
    }  # fmt: skip
    builders = (L.fillpad, L.fillpad_inplace, lambda x, pad: L.fillpad_expand(x, [64, 64], pad))
    for build in builders:
        for pad, values in spellings.items():
            for value in values:
                call = build(x, value)
                assert valid(call) == [64, 64] and call.type.tile_view.pad is pad
                assert call.kwargs == {"pad_value": pad}
        for value in (Pad.null, 1, -2.5, float("nan")):
            rejects(lambda build=build, value=value: build(x, value), "fillpad pad_value")
        for value in (True, "zero", None):
            rejects(lambda build=build, value=value: build(x, value), "fillpad pad_value", error=TypeError)
    assert shape(L.fillpad_expand(x, [128, 64])) == [128, 64]
    rejects(lambda: L.fillpad_expand(x, [32, 64]), "must be >= source dimension")
    through = L.add(bound(L.fillpad(x)), 1)
    assert through.type.tile_view.pad is ir.PadValue.zero


def test_concat_read_write() -> None:
    assert shape(L.concat(tile([4, 8]), tile([4, 8]))) == [4, 16]
    x = tile([8, 8], ir.BF16)
    assert L.read(x, [n, 0]).type.dtype is ir.BF16
    rejects(lambda: L.read(x, [0]), "indices count 1 must match tile rank 2")
    rejects(lambda: L.read(x, 0), "bare int", error=TypeError)
    rejects(lambda: L.write(x, [0, 0], 2), "value dtype to match tile dtype bfloat16")
    assert L.write(tile([8, 8]), [0, 0], 1.0).op.name == "tile.write"


# -- generators ----------------------------------------------------------------------------------------------


def test_generators() -> None:
    assert isinstance(L.full([8, 8], ir.FP32, 0).args[1], ir.ConstInt)
    rejects(lambda: L.full([8, 8], ir.FP32, symbol("s", ir.FP32)), "expands")
    assert shape(L.ci(0, [1, 64])) == [1, 64]
    rejects(lambda: L.ci(0, [2, 64]), "leading dimensions must be 1")
    rejects(lambda: L.ci(0, [64, 1]), "leading dimensions must be 1")
    rejects(lambda: L.ci(0, [1, 1]), "innermost dimension")
    rejects(lambda: L.ci(symbol("s", ir.INT64), [1, 64]), "start dtype")
    upper = L.tri(0, [8, 8], [4, 8], upper=True)
    assert valid(upper) == [4, 8] and list(upper.kwargs) == ["dtype", "upper"]
    rejects(lambda: L.tri(symbol("d", ir.INT64), [8, 8]), "INT32 scalar")
    rejects(lambda: L.tri(0, [8, 8], dtype=ir.BOOL), "tile.tri")
    words = (0, 0, 0, 0, 0, 0)
    assert L.random(*words, [8, 64]).type.dtype is ir.UINT32
    rejects(lambda: L.random(*words, [8, 64], [9, 64]), "valid_shape element")
    rejects(lambda: L.random(*words, [8, 64], rounds=5), "rounds to be 7 or 10")
    rejects(lambda: L.random(*words, [8, 64], dtype=ir.FP32), "INT32, UINT32")


def test_queries_are_index_scalars() -> None:
    for call in (L.get_block_idx(), L.get_block_num(), L.get_subblock_idx()):
        assert call.type == ir.ScalarType(ir.INDEX) and call.args == []


# -- lanes ---------------------------------------------------------------------------------------------------


def test_split_region_types() -> None:
    assert shape(L.aiv_shard(tile([15, 64], space=Acc), split=1)) == [8, 64]
    gathered = L.aic_gather(tile([16, 64]), split=2)
    assert shape(gathered) == [16, 128] and gathered.type.memory_space is Mat
    assert valid(L.aiv_shard(tile([16, 64], valid=[13, 64]), split=1)) == [7, 64]
    assert shape(L.aiv_shard(tile([2, 3, 4]), split=0)) == [2, 3, 4]
    rejects(lambda: L.aiv_shard(tile([2, 3, 4]), split=1), "2D tile")
    rejects(lambda: L.aiv_shard(tile([16, 64], valid=[16, 32]), split=2), "LEFT_RIGHT splits the column axis")
    rejects(lambda: L.aiv_shard(tile([16, 64], valid=[8, 32]), split=1), "per-lane row extent")
    rejects(lambda: L.aiv_shard(tile([16, 64], valid=[16, n]), split=1), "runtime value narrower")
    assert valid(L.aiv_shard(tile([16, 64], valid=[16, 32]), split=1)) == [8, 32]


def test_push_and_pop_types() -> None:
    assert isinstance(L.tpush_to_aic(tile([8, 8]), split=0).type, ir.UnknownType)
    popped = L.tpop_from_aic(shape=[8, 8], dtype=ir.FP32)
    assert popped.type.memory_space is Vec and extents(popped.type.shape) == [8, 8]
    assert L.tpop_from_aiv(shape=[8, 8], dtype=ir.FP32).type.memory_space is Mat
    assert isinstance(L.tpop_from_aiv().type, ir.UnknownType)
    rejects(lambda: L.tpop_from_aic(shape=[8, 8]), "must both be provided or both omitted")
