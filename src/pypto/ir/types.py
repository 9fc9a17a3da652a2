"""Types of expressions.

Equality and hash of types are structural: symbolic extents compare by variable identity, the memory
reference of a tensor or tile does not take part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pypto.core.dtype import DataType
from pypto.ir.enums import MemorySpace
from pypto.ir.node import (
    NODE,
    NODES,
    OPTIONAL_NODE,
    TYPES,
    VALUE,
    VIEW,
    Field,
    Structure,
    expect,
    expect_all,
    ignore,
    use,
)  # fmt: skip
from pypto.ir.views import TensorView, TileView, implicit_tile_layout, normalise_extents, same_extents

if TYPE_CHECKING:
    from pypto.ir.expr import Expr, MemRef, Var, WindowBuffer

_S = TypeVar("_S", bound="_SingletonType")


class Type(Structure):
    """What an expression is."""

    __slots__ = ("__weakref__", "vars_cache")
    ABSTRACT = True

    vars_cache: tuple[Var, ...]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Type):
            return NotImplemented
        from pypto.ir.structural.equal import structural_equal

        return structural_equal(self, other)

    def __hash__(self) -> int:
        from pypto.ir.structural.hash import structural_hash

        return structural_hash(self)

    def __str__(self) -> str:
        from pypto.ir.printer import python_print_type

        return python_print_type(self)


class _SingletonType(Type):
    """A type without parts."""

    __slots__ = ()
    ABSTRACT = True
    _instance: ClassVar[Any]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._instance = cls.make()

    def __init__(self) -> None:
        if type(self).ABSTRACT:
            super().__init__()

    @classmethod
    def get(cls: type[_S]) -> _S:
        """The shared object of this type."""
        instance: _S = cls._instance
        return instance


class UnknownType(_SingletonType):
    """Nothing is known; the type of a call whose result was not deduced."""

    __slots__ = ()
    FIELDS = ()


class MemRefType(_SingletonType):
    """The type of a memory reference itself."""

    __slots__ = ()
    FIELDS = ()


class PtrType(_SingletonType):
    """A raw allocation."""

    __slots__ = ()
    FIELDS = ()


class WindowBufferType(_SingletonType):
    """A buffer that peers can reach."""

    __slots__ = ()
    FIELDS = ()


class CommCtxType(_SingletonType):
    """A communication context."""

    __slots__ = ()
    FIELDS = ()


class PrefetchAsyncContextType(_SingletonType):
    """The owner of asynchronous prefetches."""

    __slots__ = ()
    FIELDS = ()


class AsyncEventType(_SingletonType):
    """The completion of one asynchronous prefetch."""

    __slots__ = ()
    FIELDS = ()


class AsyncSessionType(_SingletonType):
    """A session of asynchronous prefetches."""

    __slots__ = ()
    FIELDS = ()


class ScalarType(Type):
    """One number, truth value or task id."""

    __slots__ = ("dtype",)
    FIELDS = (use("dtype", VALUE),)

    dtype: DataType

    def __init__(self, dtype: DataType) -> None:
        expect(dtype, DataType, "ScalarType.dtype")
        self._fill(dtype)


_SCALAR_TYPES: dict[DataType, ScalarType] = {}


def scalar_type(dtype: DataType) -> ScalarType:
    """The shared `ScalarType` of an element type."""
    found = _SCALAR_TYPES.get(dtype)
    if found is None:
        found = _SCALAR_TYPES[dtype] = ScalarType(dtype)
    return found


class ShapedType(Type):
    """A type with element type and extents."""

    __slots__ = ()
    ABSTRACT = True

    dtype: DataType
    shape_: tuple[Expr, ...]
    memref: MemRef | None

    @property
    def shape(self) -> list[Expr]:
        return list(self.shape_)

    def shares_memref_with(self, other: ShapedType) -> bool:
        """Whether both types name the very same memory reference."""
        return self.memref is not None and self.memref is other.memref


def _check_packed_pairs(dtype: DataType, shape: tuple[Expr, ...]) -> None:
    """Two FP4 elements share a byte, so the last extent must be even."""
    from pypto.ir.expr import ConstInt

    if dtype is not DataType.FP4:
        return
    if not shape:
        raise ValueError("A shaped type of FP4 needs rank >= 1")
    last = shape[-1]
    if isinstance(last, ConstInt) and (last.value <= 0 or last.value % 2):
        raise ValueError(f"The last extent of an FP4 shape must be positive and even, got {last.value}")


class TensorType(ShapedType):
    """An array in global memory. `shape` holds extents in elements."""

    __slots__ = ("dtype", "memref", "shape_", "tensor_view")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        use("dtype", VALUE), use("shape", NODES), ignore("memref", OPTIONAL_NODE), use("tensor_view", VIEW),
    )  # fmt: skip

    tensor_view: TensorView | None

    def __init__(
        self,
        shape: Sequence[Any],
        dtype: DataType,
        memref: MemRef | None = None,
        tensor_view: TensorView | None = None,
    ) -> None:
        self._fill(*_tensor_parts(type(self).__name__, shape, dtype, memref, tensor_view))

    @property
    def memory_space(self) -> MemorySpace:
        return MemorySpace.DDR

    def _rebuilt(self, values: Sequence[Any]) -> TensorType:
        dtype, shape, memref, view = values
        return TensorType(shape, dtype, memref, view)


def _tensor_parts(
    owner: str, shape: Sequence[Any], dtype: DataType, memref: MemRef | None, view: TensorView | None
) -> tuple[DataType, tuple[Expr, ...], MemRef | None, TensorView | None]:
    from pypto.ir.expr import MemRef

    extents = normalise_extents(shape, f"{owner}.shape")
    expect(dtype, DataType, f"{owner}.dtype")
    if memref is not None:
        expect(memref, MemRef, f"{owner}.memref")
    if view is not None:
        expect(view, TensorView, f"{owner}.tensor_view")
        view = view.copy(() if same_extents(view.valid_shape_, extents) else view.valid_shape_)
        if view.is_trivial():
            view = None
    _check_packed_pairs(dtype, extents)
    return dtype, extents, memref, view


class DistributedTensorType(TensorType):
    """A tensor that peers can reach, optionally backed by a window buffer."""

    __slots__ = ("window_buffer",)
    FIELDS = (
        use("dtype", VALUE), use("shape", NODES), ignore("memref", OPTIONAL_NODE), use("tensor_view", VIEW),
        use("window_buffer", OPTIONAL_NODE),
    )  # fmt: skip

    window_buffer: WindowBuffer | None

    def __init__(
        self,
        shape: Sequence[Any],
        dtype: DataType,
        memref: MemRef | WindowBuffer | None = None,
        tensor_view: TensorView | None = None,
        *,
        window_buffer: WindowBuffer | None = None,
    ) -> None:
        from pypto.ir.expr import WindowBuffer

        if isinstance(memref, WindowBuffer):
            memref, window_buffer = None, memref
        if window_buffer is not None:
            expect(window_buffer, WindowBuffer, "DistributedTensorType.window_buffer")
        parts = _tensor_parts("DistributedTensorType", shape, dtype, memref, tensor_view)
        self._fill(*parts, window_buffer)

    def _rebuilt(self, values: Sequence[Any]) -> DistributedTensorType:
        dtype, shape, memref, view, window_buffer = values
        return DistributedTensorType(shape, dtype, memref, view, window_buffer=window_buffer)


class TileType(ShapedType):
    """An array in the local memory of a core. `shape` holds extents in elements."""

    __slots__ = ("dtype", "memory_space", "memref", "shape_", "tile_view")
    FIELDS = (
        use("dtype", VALUE), use("shape", NODES), ignore("memref", OPTIONAL_NODE), use("tile_view", VIEW),
        use("memory_space", VALUE),
    )  # fmt: skip

    tile_view: TileView | None
    memory_space: MemorySpace | None

    def __init__(
        self,
        shape: Sequence[Any],
        dtype: DataType,
        memref: MemRef | None = None,
        tile_view: TileView | None = None,
        memory_space: MemorySpace | None = None,
    ) -> None:
        from pypto.ir.expr import MemRef

        extents = normalise_extents(shape, "TileType.shape")
        expect(dtype, DataType, "TileType.dtype")
        if memory_space is not None:
            expect(memory_space, MemorySpace, "TileType.memory_space")
        if memref is not None:
            expect(memref, MemRef, "TileType.memref")
            memory_space = memory_space or _space_from_name(memref.name_hint)
            if memory_space is None:
                raise ValueError("A TileType with a memref must have explicit memory_space")
        _check_packed_pairs(dtype, extents)
        self._fill(dtype, extents, memref, _sparse_tile_view(tile_view, extents, memory_space), memory_space)

    def get_effective_tile_view(self) -> TileView:
        """The stored view with the valid shape filled in, or the implicit view of the shape and memory
        space."""
        if self.tile_view is not None:
            view = self.tile_view
            return view if view.valid_shape_ else view.replace(valid_shape=self.shape_)
        blayout, slayout, fractal = implicit_tile_layout(self.shape_, self.memory_space)
        return TileView(self.shape_, None, None, blayout, slayout, fractal)

    def _rebuilt(self, values: Sequence[Any]) -> TileType:
        dtype, shape, memref, view, memory_space = values
        return TileType(shape, dtype, memref, view, memory_space)


_SPACE_PREFIXES = tuple(
    (f"mem_{space.name.lower()}_", space) for space in MemorySpace if space is not MemorySpace.ScalarLocal
)


def _space_from_name(name: str) -> MemorySpace | None:
    return next((space for prefix, space in _SPACE_PREFIXES if name.startswith(prefix)), None)


def _sparse_tile_view(
    view: TileView | None, shape: tuple[Expr, ...], memory_space: MemorySpace | None
) -> TileView | None:
    if view is None:
        return None
    expect(view, TileView, "TileType.tile_view")
    if view.valid_shape_ and same_extents(view.valid_shape_, shape):
        view = view.replace(valid_shape=())
    if view.valid_shape_ or view.stride_ or view.start_offset is not None:
        return view
    implicit = TileView(None, None, None, *implicit_tile_layout(shape, memory_space))
    return None if view.layout_key() == implicit.layout_key() else view


class ArrayType(ShapedType):
    """A small array of scalars with a constant extent, local to the control program."""

    __slots__ = ("dtype", "extent")
    FIELDS = (use("dtype", VALUE), use("extent", NODE))

    extent: Expr

    def __init__(self, dtype: DataType, extent: Any) -> None:
        from pypto.ir.expr import ConstInt

        expect(dtype, DataType, "ArrayType.dtype")
        if not (dtype.is_int() or dtype in (DataType.BOOL, DataType.TASK_ID)):
            raise ValueError(f"ArrayType element dtype must be an integer, BOOL or TASK_ID, got {dtype}")
        (extent,) = normalise_extents([extent], "ArrayType.extent")
        if not isinstance(extent, ConstInt):
            raise ValueError("ArrayType extent must be a compile-time ConstInt")
        if extent.value <= 0:
            raise ValueError(f"ArrayType extent must be positive, got {extent.value}")
        self._fill(dtype, extent)

    @property
    def shape_(self) -> tuple[Expr, ...]:  # type: ignore[override]
        return (self.extent,)

    @property
    def memref(self) -> None:  # type: ignore[override]
        return None

    @property
    def memory_space(self) -> MemorySpace:
        return MemorySpace.ScalarLocal

    def _rebuilt(self, values: Sequence[Any]) -> ArrayType:
        return ArrayType(*values)


class TupleType(Type):
    """Several values in order."""

    __slots__ = ("types_",)
    FIELDS = (use("types", TYPES),)

    types_: tuple[Type, ...]

    def __init__(self, types: Sequence[Type]) -> None:
        self._fill(expect_all(types, Type, "TupleType.types"))

    @property
    def types(self) -> list[Type]:
        return list(self.types_)

    def _children(self) -> Sequence[Any]:
        return [child for element in self.types_ for child in element._children()]
