"""Operators that orchestration code executes itself: views, element access, arrays, task ids, queries.

A table from operator name to the function that writes its text. Everything else is misplaced here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pypto.codegen.orchestration.buffers import shape_elements, uint_text
from pypto.codegen.orchestration.carries import slot_fill
from pypto.codegen.orchestration.cpp_types import cpp_type
from pypto.codegen.orchestration.dependencies import submit_barrier
from pypto.codegen.orchestration.emission import Binding, Emission, SliceView
from pypto.codegen.orchestration.scalars import scalar_dtype, scalar_text
from pypto.core.dtype import DataType
from pypto.core.errors import InternalError, UsageError, located
from pypto.ir.enums import TensorLayout
from pypto.ir.expr import Call, ConstInt, Expr, Var
from pypto.ir.structural import structural_equal
from pypto.ir.types import ArrayType, CommCtxType, TensorType

__all__ = ["emit_op", "inline_query"]

INCORE_HINT = "move it into an InCore scope"
_QUERIES = {
    "system.available_cluster_count": "rt_available_cluster_count()",
    "system.available_aiv_count": "rt_available_aiv_count()",
}


def emit_op(emission: Emission, call: Call, result: Var | None) -> None:
    """Write the text of one operator call; `result` is the variable it is assigned to."""
    emitter = _EMITTERS.get(call.op.name)
    if emitter is not None:
        emitter(emission, call, result)
        return
    kind = "tensor" if call.op.name.startswith("tensor.") else "builtin"
    raise UsageError(
        located(
            f"Misplaced {kind} op '{call.op.name}' in Orchestration function (should be inside InCore "
            "block): "
            f"'{emission.function.name}' can only create, read, write and view tensors. Compute it inside "
            "`with pl.at(level=pl.Level.CORE_GROUP):`, or in a function of type pl.FunctionType.InCore",
            call.span,
        )
    )


def inline_query(emission: Emission, call: Call) -> str:
    """The text of a call that stands inside a scalar expression."""
    name = call.op.name
    if name in _QUERIES:
        return _QUERIES[name]
    if name == "tensor.dim":
        return _dim_text(emission, call)
    if name == "array.get_element":
        return _element_text(emission, call)
    if name == "system.task_is_valid":
        return f"{_text(emission, call.args_[0])}.is_valid()"
    raise UsageError(
        located(
            f"Misplaced op '{name}' inside an expression of an orchestration; assign its result to a name "
            "first",
            call.span,
        )
    )


# --- element access


def _read(emission: Emission, call: Call, result: Var | None) -> None:
    if result is None:
        return
    source = _text(emission, call.args_[0])
    element = cpp_type(scalar_dtype(call))
    place = _indices(emission, call.args_[1], result)
    emission.declare(result, element, f"get_tensor_data<{element}>({source}, {place})")


def _indices(emission: Emission, indices: Expr, result: Var) -> str:
    """Declare the index array of a read and return the arguments that name it."""
    elements = shape_elements(indices)
    if not elements:
        return "0, nullptr"
    name = emission.names.derived(f"indices_{result.name_hint.partition('__')[0]}")
    texts = ", ".join(uint_text(emission, each) for each in elements)
    emission.line(f"uint32_t {name}[{len(elements)}] = {{{texts}}};")
    return f"{len(elements)}, {name}"


def _write(emission: Emission, call: Call, result: Var | None) -> None:
    target, indices, value = call.args_
    text = _text(emission, target)
    element = cpp_type(scalar_dtype(value))
    elements = shape_elements(indices)
    written = scalar_text(emission, value)
    if not elements:
        emission.line(f"set_tensor_data<{element}>({text}, 0, nullptr, {written});")
    else:
        name = emission.names.derived(f"indices_{text.removeprefix('ext_')}")
        texts = ", ".join(uint_text(emission, each) for each in elements)
        emission.line("{")
        emission.line(f"    uint32_t {name}[{len(elements)}] = {{{texts}}};")
        emission.line(f"    set_tensor_data<{element}>({text}, {len(elements)}, {name}, {written});")
        emission.line("}")
    if result is not None:
        _alias(emission, result, target)


# --- views


def _slice(emission: Emission, call: Call, result: Var | None) -> None:
    if result is None:
        return
    source = _text(emission, call.args_[0])
    shape = shape_elements(call.args_[1])
    offsets = shape_elements(call.args_[2])
    dropped = [_constant(each, call) for each in shape_elements(call.args_[4])] if len(call.args_) > 4 else []
    dtype = _tensor_type(call.args_[0]).dtype
    name = emission.names.of_variable(result)
    offset_texts = [uint_text(emission, each) for each in offsets]
    shape_texts = [uint_text(emission, each) for each in shape]
    if dtype is DataType.FP4 and shape:
        offset_texts[-1] = _carrier_offset(emission, offsets[-1], call)
        shape_texts[-1] = _halved(emission, shape[-1])
    rank = len(shape)
    emission.line(f"uint32_t {name}_offsets[{rank}] = {{{', '.join(offset_texts)}}};")
    clamped = ", ".join(
        f"({name}_offsets[{k}] >= {source}.shapes[{k}] ? 0u : "
        f"std::min<uint32_t>({text}, {source}.shapes[{k}] - {name}_offsets[{k}]))"
        for k, text in enumerate(shape_texts)
    )
    emission.line(f"uint32_t {name}_shapes[{rank}] = {{{clamped}}};")
    view = f"{source}.view({name}_shapes, {name}_offsets)"
    if dropped:
        binding = _drop_dims(emission, result, name, view, rank, set(dropped))
    else:
        binding = emission.declare(result, "ChipTensor", view, name=name)
    emission.bind(result, replace(binding, view=SliceView(source, offsets)))


def _drop_dims(
    emission: Emission, result: Var, name: str, view: str, rank: int, dropped: set[int]
) -> Binding:
    kept = [k for k in range(rank) if k not in dropped]
    emission.line(f"ChipTensor {name}_view = {view};")
    empty = " || ".join(f"{name}_view.shapes[{k}] == 0" for k in range(rank))
    emission.line(f"bool {name}_empty = {empty};")
    binding = emission.declare(result, "ChipTensor", f"{name}_view", name=name)
    emission.line(f"{name}.ndims = {len(kept)};")
    for position, k in enumerate(kept):
        extent = f"{name}_view.shapes[{k}]"
        if position == 0:
            extent = f"{name}_empty ? 0u : {extent}"
        emission.line(f"{name}.shapes[{position}] = {extent};")
        emission.line(f"{name}.strides[{position}] = {name}_view.strides[{k}];")
    emission.line(f"{name}.is_contiguous = {name}.compute_contiguous();")
    return binding


def _halved(emission: Emission, extent: Expr) -> str:
    if isinstance(extent, ConstInt):
        return str(extent.value // 2)
    return f"static_cast<uint32_t>(({scalar_text(emission, extent)}) / 2)"


def _carrier_offset(emission: Emission, offset: Expr, call: Call) -> str:
    """Two FP4 elements share a byte, so a view can only start at an even one."""
    if isinstance(offset, ConstInt):
        if offset.value % 2:
            raise ValueError(
                located(f"the last-axis offset {offset.value} of an FP4 tensor must be even", call.span)
            )
        return str(offset.value // 2)
    text = scalar_text(emission, offset)
    emission.line(f'if (({text}) % 2 != 0) rt_report_fatal(1, "%s", "an FP4 view starts at an odd element");')
    return f"static_cast<uint32_t>(({text}) / 2)"


def _reshape(emission: Emission, call: Call, result: Var | None) -> None:
    if result is None:
        return
    source = _text(emission, call.args_[0])
    _reshaped(emission, source, call.args_[1], result)


def _reshaped(emission: Emission, source: str, shape: Expr, result: Var) -> None:
    extents = shape_elements(shape)
    name = emission.names.of_variable(result)
    texts = ", ".join(uint_text(emission, each) for each in extents)
    emission.line(f"uint32_t {name}_shapes[{max(len(extents), 1)}] = {{{texts}}};")
    emission.declare(result, "ChipTensor", f"{source}.reshape({name}_shapes, {len(extents)})", name=name)


def _transpose(emission: Emission, call: Call, result: Var | None) -> None:
    if result is None:
        return
    rank = len(_tensor_type(call.args_[0]).shape_)
    axes = []
    for operand in call.args_[1:3]:
        axis = _constant(operand, call)
        normal = axis + rank if axis < 0 else axis
        if not 0 <= normal < rank:
            raise ValueError(located(f"transpose axis {axis} is out of range for rank {rank}", call.span))
        axes.append(normal)
    if axes[0] == axes[1]:
        raise ValueError(located(f"transpose needs two different axes, got {axes[0]} twice", call.span))
    source = _text(emission, call.args_[0])
    emission.declare(result, "ChipTensor", f"{source}.transpose({axes[0]}, {axes[1]})")


def _view(emission: Emission, call: Call, result: Var | None) -> None:
    if result is None:
        return
    source_type = _tensor_type(call.args_[0])
    present = source_type.tensor_view.layout if source_type.tensor_view is not None else TensorLayout.ND
    wanted = call.kwargs_.get("layout")
    has_shape = len(call.args_) > 1
    if any(layout not in (TensorLayout.ND, TensorLayout.DN) for layout in (present, wanted or present)):
        raise ValueError(located("tensor.view in an Orchestration needs the layouts ND or DN", call.span))
    source = _text(emission, call.args_[0])
    if has_shape:
        if present is not TensorLayout.ND or wanted not in (None, TensorLayout.ND):
            raise ValueError(
                located(
                    "tensor.view in an Orchestration cannot change shape and layout at once, only ND",
                    call.span,
                )
            )
        _reshaped(emission, source, call.args_[1], result)
    elif wanted in (None, present):
        emission.declare(result, "ChipTensor", source)
    else:
        emission.declare(result, "ChipTensor", f"{source}.transpose({source}.ndims - 2, {source}.ndims - 1)")


def _assemble(emission: Emission, call: Call, result: Var | None) -> None:
    target, source, offset = call.args_[:3]
    if call.kwargs_.get("atomic", 0):
        raise ValueError(
            located(
                f"an atomic tensor.assemble is not possible in an Orchestration; {INCORE_HINT}", call.span
            )
        )
    if not _is_slice_of(emission, source, target, shape_elements(offset)):
        name = source.name_hint if isinstance(source, Var) else type(source).__name__
        raise ValueError(
            located(
                f"tensor.assemble of '{name}' would need a copy, because '{name}' is a buffer of its own "
                "(it is "
                f"assembled more than once, or not made by a kernel in this function); {INCORE_HINT}, or "
                "let the "
                "kernel write into a slice of the target",
                call.span,
            )
        )
    if result is not None:
        _alias(emission, result, target)


def _is_slice_of(emission: Emission, source: Expr, target: Expr, offset: tuple[Expr, ...]) -> bool:
    """Whether `source` is the part of `target` at `offset`, so that the data is in place already."""
    if not isinstance(source, Var) or not isinstance(target, Var):
        return False
    view = emission.binding(source).view
    return (
        view is not None
        and view.root == emission.binding(target).text
        and len(view.offsets) == len(offset)
        and all(structural_equal(a, b) for a, b in zip(view.offsets, offset, strict=True))
    )


def _reinterpret(emission: Emission, call: Call, result: Var | None) -> None:
    raise ValueError(
        located(f"tensor.reinterpret_view is not possible in an Orchestration; {INCORE_HINT}", call.span)
    )


def _dim(emission: Emission, call: Call, result: Var | None) -> None:
    if result is not None:
        emission.declare(result, "int64_t", _dim_text(emission, call), non_negative=True)


def _dim_text(emission: Emission, call: Call) -> str:
    tensor = call.args_[0]
    type_ = _tensor_type(tensor)
    axis = _constant(call.args_[1], call)
    axis += len(type_.shape_) if axis < 0 else 0
    extent = type_.shape_[axis]
    if isinstance(extent, ConstInt):
        return str(extent.value)
    position = emission.tensor_positions.get(id(tensor))
    if position is not None:
        return f"(int64_t)orch_args.tensor({position}).ref().shapes[{axis}]"
    return f"(int64_t){_text(emission, tensor)}.shapes[{axis}]"


# --- arrays


def _array_create(emission: Emission, call: Call, result: Var | None) -> None:
    if result is None:
        return
    assert isinstance(result.type, ArrayType)
    extent = _constant(result.type.extent, call)
    dtype = result.type.dtype
    name = emission.names.of_variable(result)
    element = cpp_type(dtype)
    if dtype is DataType.TASK_ID:
        fill = slot_fill("__init_i", extent, name, f"{element}::invalid()")
        emission.line(f"{element} {name}[{extent}]; {fill}")
    else:
        emission.line(f"{element} {name}[{extent}] = {{0}};")
    emission.bind(result, Binding(name, emission.block, slots=extent))


def _get_element(emission: Emission, call: Call, result: Var | None) -> None:
    if result is not None:
        emission.declare(result, cpp_type(scalar_dtype(call)), _element_text(emission, call))


def _element_text(emission: Emission, call: Call) -> str:
    return f"{_text(emission, call.args_[0])}[{scalar_text(emission, call.args_[1])}]"


def _update_element(emission: Emission, call: Call, result: Var | None) -> None:
    array, index, value = call.args_
    emission.line(
        f"{_text(emission, array)}[{scalar_text(emission, index)}] = {scalar_text(emission, value)};"
    )
    if result is not None:
        _alias(emission, result, array)


# --- tasks
# and queries


def _task_invalid(emission: Emission, call: Call, result: Var | None) -> None:
    if result is not None:
        name = emission.names.of_variable(result)
        emission.line(f"PTO2TaskId {name} = PTO2TaskId::invalid();")
        emission.bind(result, Binding(name, emission.block))


def _task_is_valid(emission: Emission, call: Call, result: Var | None) -> None:
    if result is not None:
        emission.declare(result, "bool", f"{_text(emission, call.args_[0])}.is_valid()")


def _count(emission: Emission, call: Call, result: Var | None) -> None:
    if result is not None:
        emission.declare(result, "int32_t", _QUERIES[call.op.name], non_negative=True)


def _task_dummy(emission: Emission, call: Call, result: Var | None) -> None:
    submit_barrier(emission, call, result)


def _comm_ctx(emission: Emission, call: Call, result: Var | None) -> None:
    contexts = [param for param in emission.function.params_ if isinstance(param.type, CommCtxType)]
    if len(contexts) != 1:
        raise ValueError(
            located(
                f"pld.system.get_comm_ctx needs exactly one communication context among the parameters of "
                f"'{emission.function.name}', found {len(contexts)}",
                call.span,
            )
        )
    if result is not None:
        emission.declare(result, "uint64_t", emission.binding(contexts[0]).text)


# --- helpers


def _text(emission: Emission, expr: Expr) -> str:
    if not isinstance(expr, Var):
        raise InternalError(located(f"expected a variable, got {type(expr).__name__}", expr.span))
    return emission.binding(expr, expr.span).text


def _alias(emission: Emission, result: Var, source: Expr) -> None:
    assert isinstance(source, Var)
    emission.bind(result, emission.binding(source))


def _constant(expr: Expr, call: Call) -> int:
    if not isinstance(expr, ConstInt):
        raise InternalError(located(f"{call.op.name} needs a constant, got {type(expr).__name__}", call.span))
    return expr.value


def _tensor_type(expr: Expr) -> TensorType:
    if not isinstance(expr.type, TensorType):
        raise InternalError(located(f"expected a tensor, got {type(expr.type).__name__}", expr.span))
    return expr.type


_EMITTERS: dict[str, Callable[[Emission, Call, Var | None], None]] = {
    "tensor.read": _read,
    "tensor.write": _write,
    "tensor.slice": _slice,
    "tensor.reshape": _reshape,
    "tensor.transpose": _transpose,
    "tensor.view": _view,
    "tensor.dim": _dim,
    "tensor.assemble": _assemble,
    "tensor.reinterpret_view": _reinterpret,
    "array.create": _array_create,
    "array.get_element": _get_element,
    "array.update_element": _update_element,
    "system.task_invalid": _task_invalid,
    "system.task_is_valid": _task_is_valid,
    "system.available_cluster_count": _count,
    "system.available_aiv_count": _count,
    "system.task_dummy": _task_dummy,
    "pld.system.get_comm_ctx": _comm_ctx,
}
