from __future__ import annotations

import pytest

from pypto import ir

from .nodes import S, const, var


def test_tensor_memory_space_is_ddr_whatever_its_memref_says():
    memref = ir.MemRef(ir.Mem.Vec, const(0), 256, 1)
    assert ir.TensorType([64], ir.FP32, memref).memory_space is ir.Mem.DDR


SHAPED = (ir.TensorType, ir.TileType, ir.DistributedTensorType)


@pytest.mark.parametrize("cls", SHAPED)
def test_shape_constants_keep_their_dtype_and_ints_become_index(cls):
    given = [4, const(5, ir.INT64), const(6, ir.INT32)]
    shape = cls(given, ir.FP32).shape
    assert [dim.dtype for dim in shape] == [ir.INDEX, ir.INT64, ir.INT32]
    assert shape[1] is given[1] and shape[2] is given[2]
    for wrong in ([4.0], ["4"], "4", 4, None, [None]):
        with pytest.raises(TypeError):
            cls(wrong, ir.FP32)


@pytest.mark.parametrize("cls", SHAPED)
def test_int64_and_index_extents_make_equal_types_and_int32_does_not(cls):
    wide, index, narrow = (cls([const(4, d)], ir.FP32) for d in (ir.INT64, ir.INDEX, ir.INT32))
    assert wide == index and hash(wide) == hash(index)
    assert wide != narrow
    assert wide != "a type"


def test_symbolic_extents_compare_by_identity():
    n, m = var("N"), var("N")
    assert ir.TensorType([n], ir.FP32) == ir.TensorType([n], ir.FP32)
    assert ir.TensorType([n], ir.FP32) != ir.TensorType([m], ir.FP32)


N = var("n", ir.INDEX)


@pytest.mark.parametrize(
    ("shape", "valid"), [([4, 4], [4, 4]), ([4, 4], [4, const(4, ir.INT32)]), ([N, N + 1], [N, N + 1])]
)
def test_a_valid_shape_that_is_the_whole_shape_collapses(shape, valid):
    nd = ir.TensorLayout.ND
    for cls in (ir.TensorType, ir.DistributedTensorType):
        assert cls(shape, ir.FP32, None, ir.TensorView([], nd, valid)).tensor_view is None
        padded = cls(shape, ir.FP32, None, ir.TensorView([], nd, valid, ir.PadValue.zero))
        assert padded.tensor_view.valid_shape == []
    assert ir.TileType(shape, ir.FP32, None, ir.TileView(valid)).tile_view is None


def test_partial_and_symbolic_valid_shapes_strides_layouts_and_pads_stay():
    nd, zero = ir.TensorLayout.ND, ir.PadValue.zero
    for valid in ([4, 2], [4, N]):
        of_tensor = ir.TensorType([4, 4], ir.FP32, None, ir.TensorView([], nd, valid)).tensor_view
        of_tile = ir.TileType([4, 4], ir.FP32, None, ir.TileView(valid)).tile_view
        assert ir.TileView(of_tensor.valid_shape) == ir.TileView(of_tile.valid_shape) == ir.TileView(valid)
    for view in (
        ir.TensorView([4, 1], nd),
        ir.TensorView([], ir.TensorLayout.DN),
        ir.TensorView([], nd, [], zero),
    ):
        assert ir.TensorType([4, 4], ir.FP32, None, view).tensor_view is not None
    compact = ir.CompactMode.normal
    for parts in ({"stride": [4, 1]}, {"start_offset": 0}, {"pad": zero}, {"compact": compact}):
        assert ir.TileType([4, 4], ir.FP32, None, ir.TileView(**parts)).tile_view == ir.TileView(**parts)
    assert ir.TensorType([4, 4], ir.FP32, None, ir.TensorView()).tensor_view is None


def test_tensor_type_keeps_a_copy_of_its_view():
    view = ir.TensorView([], ir.TensorLayout.NZ)
    kept = ir.TensorType([4, 4], ir.FP32, None, view)
    view.layout = ir.TensorLayout.DN
    assert kept.tensor_view.layout is ir.TensorLayout.NZ


def test_tensor_view_needs_a_layout_beside_other_fields():
    with pytest.raises(ValueError, match="layout"):
        ir.TensorView(stride=[1])
    assert ir.TensorView().layout is ir.TensorLayout.ND


@pytest.mark.parametrize(
    ("spaces", "blayout", "slayout", "fractal"),
    [
        ("DDR Vec Bias ScalarLocal", "row_major", "none_box", 512),
        ("Mat Left", "col_major", "row_major", 512),
        ("Right", "row_major", "col_major", 512),
        ("Acc", "col_major", "row_major", 1024),
        ("LeftScale", "row_major", "row_major", 32),
        ("RightScale", "col_major", "col_major", 32),
    ],
)
def test_implicit_tile_layout_collapses_and_explicit_row_major_on_mat_stays(
    spaces, blayout, slayout, fractal
):
    layout = {"blayout": ir.TileLayout[blayout], "slayout": ir.TileLayout[slayout], "fractal": fractal}
    for space in spaces.split():
        plain, explicit = (
            ir.TileType([16, 16], ir.FP16, None, view, ir.Mem[space])
            for view in (ir.TileView(), ir.TileView(**layout))
        )
        assert explicit.tile_view is None
        assert (plain.tile_view is None) is (fractal == 512 and slayout == "none_box")
        assert explicit.get_effective_tile_view() == ir.TileView([16, 16], **layout)


@pytest.mark.parametrize(
    ("shape", "layout"),
    [([16, 1], "col_major"), ([1, 1], "row_major"), ([16, 16], "row_major"), ([2, 16, 1], "row_major")],
)
def test_implicit_layout_of_a_column_is_column_major(shape, layout):
    assert ir.TileType(shape, ir.FP32).get_effective_tile_view().blayout.name == layout
    assert ir.TileType([var("n"), 1], ir.FP32).get_effective_tile_view().blayout.name == "row_major"


def test_tile_view_equality_is_by_value():
    n = var("n")
    assert ir.TileView([4, n]) == ir.TileView([const(4, ir.INT32), n])
    assert hash(ir.TileView([4, n])) == hash(ir.TileView([const(4, ir.INT32), n]))
    assert ir.TileView([n]) != ir.TileView([var("n")])
    assert ir.TileView([n + 1]) == ir.TileView([ir.Add(n, const(1), ir.INT32, S)])
    assert ir.TileView([n + 1]) != ir.TileView([n - 1])
    assert ir.TileView([-n]) != ir.TileView([-n])
    called, other = (ir.Call(ir.Op("f"), [n], {"k": k}, S) for k in (1, 2))
    assert ir.TileView([called]) == ir.TileView([other]) != ir.TileView([ir.Call(ir.Op("f"), [], S)])


@pytest.mark.parametrize(
    "parts",
    [
        {"compact": ir.CompactMode.normal},
        {"pad": ir.PadValue.min},
        {"fractal": 32},
        {"blayout": ir.TileLayout.col_major},
        {"slayout": ir.TileLayout.col_major},
        {"stride": [1]},
        {"start_offset": 0},
        {"valid_shape": [1]},
    ],
)
def test_each_field_of_a_tile_view_counts_for_it_and_for_its_type(parts):
    changed = ir.TileView(**parts)
    assert changed != ir.TileView() and changed == ir.TileView(**parts)
    tiles = [ir.TileType([16, 16], ir.FP16, None, view) for view in (ir.TileView(), changed, changed)]
    assert tiles[0] != tiles[1] == tiles[2] and hash(tiles[1]) == hash(tiles[2])


def test_array_type_accepts_integers_bool_and_task_ids_with_a_positive_constant_extent():
    for dtype in (ir.DataType.TASK_ID, ir.BOOL, ir.INT4, ir.INDEX, ir.UINT64):
        array = ir.ArrayType(dtype, 4)
        assert (array.extent.value, array.extent.dtype, array.memref) == (4, ir.INDEX, None)
        assert array.shape[0] is array.extent and array.memory_space is ir.Mem.ScalarLocal
    for dtype, extent, message in (
        (ir.FP32, 4, "ArrayType element dtype must be .*fp32"),
        (ir.INT32, 0, "extent must be positive"),
        (ir.INT32, var("n"), "extent must be a compile-time ConstInt"),
        (ir.INT32, const(4) + 1, "extent must be a compile-time ConstInt"),
    ):
        with pytest.raises(ValueError, match=message):
            ir.ArrayType(dtype, extent)


def test_distributed_tensor_is_a_tensor_but_never_equal_to_a_plain_one():
    distributed = ir.DistributedTensorType([4], ir.FP32)
    assert isinstance(distributed, ir.TensorType)
    assert distributed != ir.TensorType([4], ir.FP32)


def test_distributed_tensor_takes_its_window_buffer_in_third_place():
    buffer = ir.WindowBuffer(ir.Var("w", ir.PtrType(), S), const(16))
    assert ir.DistributedTensorType([4], ir.FP32, buffer).window_buffer is buffer


@pytest.mark.parametrize("cls", SHAPED)
def test_packed_pairs_need_an_even_last_extent(cls):
    for shape, message in (([], "rank >= 1"), ([3], "3"), ([4, 0], "0"), ([4, -2], "-2")):
        with pytest.raises(ValueError, match=message):
            cls(shape, ir.FP4)
    cls([4, var("n")], ir.FP4)
    cls([3, 4], ir.FP4)


def test_tile_with_memref_needs_a_memory_space_or_a_telling_name():
    with pytest.raises(ValueError, match="memory_space"):
        ir.TileType([4], ir.FP32, ir.MemRef("buffer", 0, 16))
    assert ir.TileType([4], ir.FP32, ir.MemRef("mem_vec_2", 0, 16)).memory_space is ir.Mem.Vec


def test_later_variables_of_every_kind_have_larger_ids():
    base = ir.Var("b", ir.PtrType(), S)
    made = [
        base, ir.Var("b", base.type, S), ir.IterArg("i", base.type, base, S), ir.MemRef(base, 0, 4),
        ir.WindowBuffer(base, const(4)), ir.Var("b", base.type, S),
    ]  # fmt: skip
    ids = [var.unique_id for var in made]
    assert ids == sorted(set(ids))


def test_memref_forms():
    offset = var("o")
    placed = ir.MemRef(ir.Mem.LeftScale, offset, 4096, 3)
    assert placed.name_hint == placed.base_.name_hint == "mem_leftscale_3" and placed.byte_offset_ is offset
    assert ir.MemRef(ir.Mem.Vec, offset, 4096, 2).name_hint == "mem_vec_2"
    assert not hasattr(placed, "memory_space_")
    declared = ir.MemRef()
    assert declared.is_pinned_ and declared.size_ == 0 and declared.name_hint == ""
    assert ir.MemRef(16, 64, 7).base_.name_hint == "mem_7"
    assert ir.MemRef("m", 16, 64).byte_offset_.dtype is ir.INT64
    placed.size_ = 1
    with pytest.raises(AttributeError):
        placed.is_pinned_ = True


def test_memref_slots_share_the_allocation():
    ring = ir.MemRef("ring", slots=3)
    first, second = ring[0], ring[2]
    assert ir.MemRef.same_allocation(first, second)
    assert second.slot_index_.value == 2 and second.is_pinned_ and second.slot_count_ == 3
    assert second.base_ is ring.base_ and second.byte_offset_ is ring.byte_offset_
    with pytest.raises(ValueError, match="pinned"):
        ir.MemRef("m", 0, 4)[0]
    with pytest.raises(ValueError, match="slots=4"):
        ring[3]
    with pytest.raises(TypeError):
        ring[-1]
    with pytest.raises(ValueError):
        ir.MemRef(slots=0)


def test_memrefs_alias_where_their_constant_ranges_meet():
    base = ir.Var("b", ir.PtrType(), S)
    low, high = ir.MemRef(base, 0, 16), ir.MemRef(base, 16, 16)
    assert not ir.MemRef.may_alias(low, high)
    assert ir.MemRef.may_alias(low, ir.MemRef(base, var("o"), 4))


def test_singleton_types():
    assert ir.UnknownType.get() is ir.UnknownType.get()
    assert ir.UnknownType() == ir.UnknownType.get()
    assert ir.PtrType() != ir.UnknownType()


def test_strides_of_layouts():
    from pypto.ir import tensor_view_semantics as views

    shape = [const(2), const(3), const(4)]
    strides = lambda layout: [s.value for s in views.build_logical_strides_from_layout(shape, layout)]  # noqa: E731
    assert strides(ir.TensorLayout.ND) == [12, 4, 1]
    assert strides(ir.TensorLayout.DN) == [12, 1, 3]
    with pytest.raises(ValueError, match="NZ"):
        views.build_logical_strides_from_layout(shape, ir.TensorLayout.NZ)
    with pytest.raises(ValueError, match="rank >= 2"):
        views.build_logical_strides_from_layout(shape[:1], ir.TensorLayout.DN)
    assert views.derive_layout_from_strides(shape, [const(12), const(1), const(3)]) is ir.TensorLayout.DN


@pytest.mark.parametrize(
    ("stride", "layout", "reason"),
    [
        ([], "ND", "stride is empty"), ([1], "ND", "rank"), ([4, 2], "ND", "innermost"),
        ([3, 1], "ND", "smaller than packed"), ([4, 1], "NZ", "NZ"), ([8, 1], "ND", ""), ([1, 3], "DN", ""),
        ([1, 2], "DN", "smaller than packed"),
    ],
)  # fmt: skip
def test_canonical_view_check_names_the_reason(stride, layout, reason):
    from pypto.ir import tensor_view_semantics as views

    ok, why = views.check_canonical_view(
        [const(3), const(4)], [const(s) for s in stride], ir.TensorLayout[layout]
    )
    assert ok is (reason == "") and reason in why


def test_call_result_types_are_deduced_in_caller_coordinates():
    n, k = var("N"), var("K")
    param = ir.Var("p", ir.TensorType([n, 4], ir.FP32), S)
    arg = ir.Var("a", ir.TensorType([k, 4], ir.FP32), S)
    plain = ir.TensorType([4], ir.FP32)
    deduced = ir.deduce_call_return_type([param], [arg], [ir.TensorType([n], ir.FP32), plain])
    assert deduced[0].shape[0] is k and deduced[1] is plain
    other = ir.Var("q", ir.TensorType([n], ir.FP32), S)
    with pytest.raises(ValueError, match="'N' stands for"):
        ir.deduce_call_return_type(
            [param, other], [arg, ir.Var("b", ir.TensorType([7], ir.FP32), S)], [plain]
        )


@pytest.mark.parametrize(
    ("make", "pinned", "slots", "slot"),
    [
        (lambda base: ir.MemRef(base, 0, 64, S, True, 3), True, 3, None),
        (lambda base: ir.MemRef(base, const(0), 64, S, 4), False, 4, None),
        (lambda base: ir.MemRef(base, const(0), 64, S, 4, const(2)), False, 4, 2),
        (lambda base: ir.MemRef("named", S, 2), True, 2, None),
        (lambda base: ir.MemRef(S, 5), True, 5, None),
        (lambda base: ir.MemRef(space=ir.Mem.Vec, addr=const(0), size=64, id=2), False, 1, None),
    ],
)
def test_memref_arguments_are_read_by_position_in_each_form(make, pinned, slots, slot):
    memref = make(ir.Var("base", ir.PtrType(), S))
    assert (memref.is_pinned_, memref.slot_count_) == (pinned, slots)
    assert (memref.slot_index_ and memref.slot_index_.value) == slot


@pytest.mark.parametrize(
    "make",
    [
        lambda base: ir.MemRef(None, 0, 64),
        lambda base: ir.MemRef(base, 0, None),
        lambda base: ir.MemRef(base, 0, -4),
        lambda base: ir.MemRef(base, 0, var()),
        lambda base: ir.MemRef(base, "0", 4),
        lambda base: ir.MemRef(base, 0, 4, "span"),
        lambda base: ir.MemRef(base, 0, 4, S, True, 2, 1),
        lambda base: ir.MemRef(base, 0, 4, S, True, 2, None, "more"),
        lambda base: ir.MemRef(slots=1.5),
        lambda base: ir.MemRef(0, 4, "2"),
        lambda base: ir.MemRef(ir.Mem.Vec, 0, 4, None),
        lambda base: ir.MemRef(unknown=1),
        lambda base: ir.WindowBuffer(base, 4),
        lambda base: ir.WindowBuffer(base, const(4), "yes"),
    ],
)
def test_wrong_parts_of_memory_references_are_type_errors(make):
    with pytest.raises(TypeError):
        make(ir.Var("base", ir.PtrType(), S))


def test_memref_placement_may_be_assigned_and_nothing_else():
    memref, base = ir.MemRef("m", 0, 4), var()
    memref.base_, memref.byte_offset_, memref.size_ = base, const(8), 16
    assert (memref.base_, memref.byte_offset_.value, memref.size_) == (base, 8, 16)
    for name in ("is_pinned_", "slot_count_", "slot_index_", "name_hint", "type", "other"):
        with pytest.raises(AttributeError):
            setattr(memref, name, None)
    with pytest.raises(TypeError):
        memref.size_ = None


def test_tensor_view_fields_may_be_assigned_but_only_with_their_kind():
    view = ir.TensorView()
    view.stride, view.layout, view.pad = [const(1)], ir.TensorLayout.DN, ir.PadValue.zero
    assert view.stride[0].value == 1 and view.layout is ir.TensorLayout.DN
    for name, value in (("layout", 1), ("pad", 1), ("stride", 3)):
        with pytest.raises(TypeError):
            setattr(view, name, value)
    with pytest.raises(AttributeError):
        view.other = 1


def test_types_share_a_memref_when_it_is_the_same_object():
    placed = ir.MemRef(ir.Mem.Vec, 0, 64, 1)
    first, second = (ir.TileType([4], ir.FP32, placed, None, ir.Mem.Vec) for _ in range(2))
    assert first.shares_memref_with(second)
    assert not first.shares_memref_with(ir.TileType([4], ir.FP32))


def test_packed_views_and_products_of_constant_extents():
    two, three, n = const(2), const(3), var("n", ir.INDEX)
    semantics = ir.tensor_view_semantics
    view = semantics.canonicalize_view([two, three], ir.TensorLayout.ND)
    assert ([stride.value for stride in view.stride], view.valid_shape) == ([3, 1], [])
    shapes = ([two, three], [], [two, n])
    assert [semantics.compute_shape_product(shape) for shape in shapes] == [6, 1, -1]


def test_offsets_of_the_communication_context_are_those_of_the_runtime():
    layout = ir.comm_layout
    assert (layout.RANK_ID_OFFSET, layout.RANK_NUM_OFFSET, layout.WINDOW_SLOT_STRIDE) == (16, 20, 8)
    assert (layout.WINDOWS_IN_OFFSET, layout.WINDOWS_OUT_OFFSET, layout.COMM_CTX_SIZE) == (32, 544, 1056)


def test_the_number_of_slots_is_an_int_also_when_given_as_a_flag():
    assert type(ir.MemRef("m", slots=True).slot_count_) is int
