"""Comparing the type of a value with what the source says about its variable.

Two questions live here: may a variable be assigned again with a value of this type, and does an annotation
agree with the value it annotates (and which of the two types does the variable get)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pypto import ir
from pypto.language.parser.diagnostics import ParserTypeError

if TYPE_CHECKING:
    from pypto.language.parser.function_parser import FunctionParser

_KIND_NAMES: dict[type[ir.Type], str] = {
    ir.TensorType: "Tensor",
    ir.TileType: "Tile",
    ir.ScalarType: "Scalar",
    ir.ArrayType: "Array",
}


def kind_name(value_type: ir.Type) -> str:
    """What people call a type."""
    return _KIND_NAMES.get(type(value_type), type(value_type).__name__)


# -- re-assignment -------------------------------------------------------------------------------------------


def same_value_type(old: ir.Type, new: ir.Type) -> bool:
    """Whether a variable of type `old` may hold a value of type `new`."""
    if old is new or isinstance(old, ir.UnknownType) or isinstance(new, ir.UnknownType):
        return True
    return old == new or _equal_after_simplification(old, new)


def _equal_after_simplification(old: ir.Type, new: ir.Type) -> bool:
    """Whether the types agree once their symbolic extents are simplified: `(k+16)-k` is `16`."""
    if type(old) is not type(new):
        return False
    if isinstance(old, ir.TupleType) and isinstance(new, ir.TupleType):
        return len(old.types_) == len(new.types_) and all(map(same_value_type, old.types_, new.types_))
    if not isinstance(old, (ir.TensorType, ir.TileType)):
        return False
    return _with_simple_extents(old) == _with_simple_extents(new)


def _with_simple_extents(shaped: ir.Type) -> ir.Type:
    from pypto.ir.arith import Analyzer

    analyzer = Analyzer()

    def simplify(extents: tuple[ir.Expr, ...]) -> list[ir.Expr]:
        return [
            extent if isinstance(extent, ir.ConstInt) else analyzer.simplify(extent) for extent in extents
        ]

    if isinstance(shaped, ir.TileType):
        view = shaped.tile_view
        if view is not None:
            view = view.replace(valid_shape=simplify(view.valid_shape_), stride=simplify(view.stride_))
        return ir.TileType(simplify(shaped.shape_), shaped.dtype, None, view, shaped.memory_space)
    assert isinstance(shaped, ir.TensorType)
    tensor_view = shaped.tensor_view
    if tensor_view is not None:
        tensor_view = ir.TensorView(
            simplify(tensor_view.stride_),
            tensor_view.layout,
            simplify(tensor_view.valid_shape_),
            tensor_view.pad,
        )
    return type(shaped)(simplify(shaped.shape_), shaped.dtype, None, tensor_view)


# -- annotations ---------------------------------------------------------------------------------------------


def merge_annotation(
    p: FunctionParser, name: str, annotation: ir.Type, value: ir.Expr, span: ir.Span
) -> tuple[ir.Expr, ir.Type]:
    """Check `name: annotation = value`; returns the value to store and the variable's type."""
    inferred = value.type
    if annotation is inferred:
        return value, inferred
    if isinstance(inferred, ir.UnknownType):
        return retyped(value, annotation), annotation
    check_annotation(name, annotation, value, span)
    if isinstance(annotation, ir.ScalarType) and isinstance(inferred, ir.ScalarType):
        return _merge_scalar(value, inferred, annotation)
    chosen = inferred
    if isinstance(annotation, ir.TileType) and isinstance(inferred, ir.TileType):
        chosen = _merge_tile(annotation, inferred)
    elif isinstance(annotation, ir.TensorType) and (
        annotation.memref is not None or annotation.tensor_view is not None
    ):
        chosen = annotation
    return retyped(value, chosen), chosen


def check_annotation(name: str, annotation: ir.Type, value: ir.Expr, span: ir.Span) -> None:
    """Raise `ParserTypeError` when an annotation contradicts the value's type."""
    inferred = value.type

    def mismatch(text: str) -> ParserTypeError:
        return ParserTypeError(
            f"Type annotation for '{name}' {text}", span=span, hint=f"Change annotation to: {inferred}"
        )

    if type(annotation) is not type(inferred):
        raise mismatch(f"is {kind_name(annotation)} but expression has type {kind_name(inferred)}")
    if isinstance(annotation, (ir.ScalarType, ir.ShapedType)):
        assert isinstance(inferred, (ir.ScalarType, ir.ShapedType))
        if not _compatible_dtypes(annotation.dtype, inferred.dtype):
            raise mismatch(f"has dtype {annotation.dtype} but expression has dtype {inferred.dtype}")
    if isinstance(annotation, (ir.TensorType, ir.TileType, ir.ArrayType)):
        assert isinstance(inferred, ir.ShapedType)
        if _is_flattened_load(annotation, value):
            return
        ours, theirs = annotation.shape_, inferred.shape_
        if len(ours) != len(theirs):
            raise mismatch(f"has rank {len(ours)} but expression has rank {len(theirs)}")
        for axis, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            if isinstance(a, ir.ConstInt) and isinstance(b, ir.ConstInt) and a.value != b.value:
                raise mismatch(
                    f"has shape dimension {axis} = {a.value} "
                    f"but expression has shape dimension {axis} = {b.value}"
                )


def _compatible_dtypes(a: ir.DataType, b: ir.DataType) -> bool:
    if a == b:
        return True
    index = ir.DataType.INDEX
    return (a == index and b.is_int()) or (b == index and a.is_int())


def _is_flattened_load(annotation: ir.ShapedType, value: ir.Expr) -> bool:
    """Whether the annotation is the flattened printed form of a tile of more than two dimensions."""
    return (
        isinstance(value, ir.Call)
        and value.op.name in ("tile.load", "tile.create")
        and isinstance(value.type, ir.ShapedType)
        and len(annotation.shape_) <= 2 < len(value.type.shape_)
    )


def _merge_scalar(
    value: ir.Expr, inferred: ir.ScalarType, annotation: ir.ScalarType
) -> tuple[ir.Expr, ir.Type]:
    if inferred.dtype == annotation.dtype or inferred.dtype != ir.DataType.INDEX:
        return value, inferred
    if isinstance(value, ir.ConstInt):
        value = ir.ConstInt(value.value, annotation.dtype, value.span)
    return retyped(value, annotation), annotation


def with_declared_integer(value: ir.Expr, declared: ir.Type) -> ir.Expr:
    """A bare index yielded for a result of another integer dtype, in that dtype."""
    inferred = value.type
    if not isinstance(declared, ir.ScalarType) or not isinstance(inferred, ir.ScalarType):
        return value
    if inferred.dtype != ir.DataType.INDEX or inferred.dtype == declared.dtype or not declared.dtype.is_int():
        return value
    if isinstance(value, ir.ConstInt):
        return ir.ConstInt(value.value, declared.dtype, value.span)
    return ir.Cast(value, declared.dtype, value.span)


def _merge_tile(annotation: ir.TileType, inferred: ir.TileType) -> ir.Type:
    if annotation == inferred and annotation.memref is None:
        return inferred
    space = annotation.memory_space or inferred.memory_space
    view = annotation.tile_view
    if view is None and len(annotation.shape_) == len(inferred.shape_):
        view = inferred.tile_view if annotation.memory_space in (None, inferred.memory_space) else None
    return ir.TileType(annotation.shape_, annotation.dtype, annotation.memref or inferred.memref, view, space)


def retyped(value: ir.Expr, chosen: ir.Type) -> ir.Expr:
    """A call with the chosen result type; its arguments, keywords and attributes stay."""
    if not isinstance(value, (ir.Call, ir.Submit)) or value.type is chosen:
        return value
    if (
        not isinstance(value.type, ir.UnknownType)
        and value.type == chosen
        and _memref(value.type) is _memref(chosen)
    ):
        return value
    return value.replace(type=chosen)


def _memref(shaped: ir.Type) -> ir.MemRef | None:
    return shaped.memref if isinstance(shaped, ir.ShapedType) else None
