"""Expressions: variables, constants, arithmetic, calls, tuples.

A variable *is* its object: the name is only a hint for people. `==` between expressions builds a comparison
node, so compiler code compares expressions with `is` or with `structural_equal`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

from pypto.core.dtype import DataType
from pypto.core.span import UNKNOWN_SPAN, Span
from pypto.ir.attrs import AttrDict, check_direction_count, normalise_attrs, normalise_kwargs, read_back
from pypto.ir.enums import ArgDirection, MemorySpace
from pypto.ir.node import (
    ATTRS,
    NODES,
    OPERATOR,
    OPTIONAL_NODE,
    REQUIRED,
    TYPE,
    VALUE,
    Field,
    IRNode,
    expect,
    expect_all,
    ignore,
    show_value,
    use,
)  # fmt: skip
from pypto.ir.types import (
    MemRefType,
    PtrType,
    ScalarType,
    TupleType,
    Type,
    UnknownType,
    WindowBufferType,
    scalar_type,
)  # fmt: skip

_next_unique_id = itertools.count(1).__next__
_INT64 = range(-(2**63), 2**63)
_V = TypeVar("_V", bound="Var")


class Expr(IRNode):
    """Anything that has a value. Arithmetic and comparison operators on scalar expressions build nodes."""

    __slots__ = ("type",)
    ABSTRACT = True

    type: Type

    __hash__ = object.__hash__

    if TYPE_CHECKING:  # installed by `pypto.ir.scalar_ops`, which knows the promotion rules

        def __add__(self, other: Any) -> Expr: ...
        def __sub__(self, other: Any) -> Expr: ...
        def __mul__(self, other: Any) -> Expr: ...
        def __floordiv__(self, other: Any) -> Expr: ...
        def __mod__(self, other: Any) -> Expr: ...
        def __lt__(self, other: Any) -> Expr: ...
        def __le__(self, other: Any) -> Expr: ...
        def __gt__(self, other: Any) -> Expr: ...
        def __ge__(self, other: Any) -> Expr: ...


class Op:
    """The name of an operator. Compiler code compares operators by name."""

    __slots__ = ("__weakref__", "name")
    name: str

    def __init__(self, name: str) -> None:
        expect(name, str, f"{type(self).__name__}.name")
        object.__setattr__(self, "name", name)

    def has_attr(self, key: str) -> bool:
        """Whether the registered operator of this name declares the keyword `key`."""
        return key in self.get_attr_keys()

    def get_attr_keys(self) -> list[str]:
        """The keywords that the registered operator of this name declares."""
        from pypto.ir.op_registry import get_op_def

        definition = get_op_def(self.name)
        return [] if definition is None else list(definition.kwargs)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; cannot assign '{name}'")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"{type(self).__name__} objects cannot be copied or pickled")


class GlobalVar(Op):
    """The name of a function of the same program."""

    __slots__ = ()

    def get_attr_keys(self) -> list[str]:
        """A function declares no keywords."""
        return []


class Var(Expr):
    """A named value. Two variables with the same name are still two variables."""

    __slots__ = ("name_hint", "unique_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (use("type", TYPE), ignore("name_hint"))

    name_hint: str
    unique_id: int

    def __init__(self, name_hint: str, type: Type, span: Span) -> None:
        expect(name_hint, str, "Var.name_hint")
        expect(type, Type, "Var.type")
        expect(span, Span, "Var.span")
        self._fill(type, name_hint, span)
        _set_unique_id(self, _next_unique_id())

    @classmethod
    def make(cls: type[_V], *values: Any) -> _V:
        var = object.__new__(cls)
        var._fill(*values)
        _set_unique_id(var, _next_unique_id())
        return var


_set_unique_id = Var.__dict__["unique_id"].__set__


class IterArg(Var):
    """A value carried around a loop, starting at `initValue`. Visible only inside the loop."""

    __slots__ = ("initValue",)
    FIELDS = (use("type", TYPE), ignore("name_hint"), use("initValue"))

    initValue: Expr

    def __init__(self, name_hint: str, type: Type, initValue: Expr, span: Span) -> None:
        expect(name_hint, str, "IterArg.name_hint")
        expect(type, Type, "IterArg.type")
        expect(initValue, Expr, "IterArg.initValue")
        expect(span, Span, "IterArg.span")
        self._fill(type, name_hint, initValue, span)
        _set_unique_id(self, _next_unique_id())

    def _children(self) -> Sequence[Any]:
        """Nothing: the initial value belongs to the loop, not to each use of the carried value."""
        return ()


class MemRef(Var):
    """A piece of an allocation: base, offset and size in bytes.

    `base_`, `byte_offset_` and `size_` may be assigned: buffer planning fills them in.
    """

    __slots__ = ("base_", "byte_offset_", "is_pinned_", "size_", "slot_count_", "slot_index_")
    FIELDS = (
        use("type", TYPE), ignore("name_hint"), use("base_"), use("byte_offset_"), use("size_", VALUE),
        use("is_pinned_", VALUE), use("slot_count_", VALUE), use("slot_index_", OPTIONAL_NODE),
    )  # fmt: skip

    base_: Var
    byte_offset_: Expr
    size_: int
    is_pinned_: bool
    slot_count_: int
    slot_index_: Expr | None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        base, offset, size, span, pinned, slots, slot = _memref_parts(args, kwargs)
        expect(span, Span, "MemRef.span")
        expect(pinned, bool, "MemRef.is_pinned")
        expect(slots, int, "MemRef.slots")
        if slot is not None:
            expect(slot, Expr, "MemRef.slot")
        _expect_size(size)
        if slots < 1:
            raise ValueError(f"MemRef slots must be >= 1, got {slots}")
        self._fill(MemRefType.get(), base.name_hint, base, offset, size, pinned, int(slots), slot, span)
        _set_unique_id(self, _next_unique_id())

    def _rebuilt(self, values: Sequence[Any]) -> MemRef:
        type_, _, base, *rest = values
        return MemRef.make(type_, base.name_hint, base, *rest)

    def __setattr__(self, name: str, value: object) -> None:
        if name == "base_":
            expect(value, Var, "MemRef.base_")
        elif name == "byte_offset_":
            expect(value, Expr, "MemRef.byte_offset_")
        elif name == "size_":
            _expect_size(value)
        else:
            raise AttributeError(f"MemRef.{name} cannot be assigned")
        object.__setattr__(self, name, value)

    def __getitem__(self, slot: int) -> MemRef:
        """Slot `slot` of a pinned allocation."""
        if not isinstance(slot, int) or slot < 0:
            raise TypeError(f"A MemRef slot must be a non-negative int, got {slot!r}")
        if not self.is_pinned_:
            raise ValueError("Only a pinned MemRef has slots; declare it with slots=")
        if slot >= self.slot_count_:
            raise ValueError(
                f"Slot {slot} is out of range: the MemRef has {self.slot_count_} slot(s); "
                f"declare slots={slot + 1}"
            )
        index = ConstInt(slot, DataType.INDEX, self.span)
        return self.replace(slot_index_=index)

    @staticmethod
    def same_allocation(a: MemRef, b: MemRef) -> bool:
        """Whether both lie in one allocation."""
        return a.base_ is b.base_

    @staticmethod
    def may_alias(a: MemRef, b: MemRef) -> bool:
        """Whether both may share a byte; certain only for constant offsets."""
        if a.base_ is not b.base_:
            return False
        start_a, start_b = a.byte_offset_, b.byte_offset_
        if not (isinstance(start_a, ConstInt) and isinstance(start_b, ConstInt)):
            return True
        return start_a.value < start_b.value + b.size_ and start_b.value < start_a.value + a.size_


def _expect_size(size: object) -> None:
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise TypeError(f"MemRef.size must be a non-negative int, got {size!r}")


_MemRefParts = tuple[Var, Expr, int, Span, bool, int, "Expr | None"]


def _memref_parts(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _MemRefParts:
    """The seven stored parts, from whichever of the accepted argument forms was used."""
    leading = [kwargs[key] for key in ("space", "base", "addr") if key in kwargs]
    first = args[0] if args else leading[0] if leading else None
    if isinstance(first, MemorySpace):
        form: Callable[..., _MemRefParts] = _memref_in_space
    elif isinstance(first, Var):
        offset = args[1] if len(args) > 1 else kwargs.get("byte_offset")
        form = _memref_at_expression if isinstance(offset, Expr) else _memref_at_number
    elif isinstance(first, int) and not isinstance(first, bool):
        form = _memref_by_number
    elif isinstance(first, str):
        has_offset = "byte_offset" in kwargs or (len(args) > 1 and isinstance(args[1], int))
        form = _memref_named if has_offset else _memref_declared
    elif (first is None and not args) or isinstance(first, Span):
        form, args = _memref_declared, ("", *args)
    else:
        raise TypeError(f"MemRef cannot be made from {_article_of(first)}")
    return form(*args, **kwargs)


def _article_of(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _memref_at_number(
    base: Var,
    byte_offset: int,
    size: int,
    span: Span = UNKNOWN_SPAN,
    is_pinned: bool = False,
    slots: int = 1,
    slot: Expr | None = None,
) -> _MemRefParts:
    return base, ConstInt(byte_offset, DataType.INT64, span), size, span, is_pinned, slots, slot


def _memref_at_expression(
    base: Var,
    byte_offset: Expr,
    size: int,
    span: Span = UNKNOWN_SPAN,
    slots: int = 1,
    slot: Expr | None = None,
) -> _MemRefParts:
    return base, byte_offset, size, span, False, slots, slot


def _memref_named(name: str, byte_offset: int, size: int, span: Span = UNKNOWN_SPAN) -> _MemRefParts:
    return _base(name, span), ConstInt(byte_offset, DataType.INT64, span), size, span, False, 1, None


def _memref_declared(name: str, span: Span = UNKNOWN_SPAN, slots: int = 1) -> _MemRefParts:
    return _base(name, span), ConstInt(0, DataType.INT64, span), 0, span, True, slots, None


def _memref_by_number(addr: int, size: int, id: int, span: Span = UNKNOWN_SPAN) -> _MemRefParts:
    expect(id, int, "MemRef.id")
    return _base(f"mem_{id}", span), ConstInt(addr, DataType.INDEX, span), size, span, False, 1, None


def _memref_in_space(
    space: MemorySpace, addr: Any, size: int, id: int, span: Span = UNKNOWN_SPAN
) -> _MemRefParts:
    expect(id, int, "MemRef.id")
    base = _base(f"mem_{space.name.lower()}_{id}", span)
    offset = addr if isinstance(addr, Expr) else ConstInt(addr, DataType.INDEX, span)
    return base, offset, size, span, False, 1, None


for _form in (
    _memref_at_number, _memref_at_expression, _memref_named, _memref_declared, _memref_by_number,
    _memref_in_space,
):  # fmt: skip
    _form.__qualname__ = "MemRef"  # what Python's own messages about wrong arguments call it


def _base(name: str, span: Span) -> Var:
    return Var(name, PtrType.get(), span)


class WindowBuffer(Var):
    """A communication buffer of `size` bytes on each rank."""

    __slots__ = ("base", "load_from_host", "size", "store_to_host")
    FIELDS = (
        use("type", TYPE), ignore("name_hint"), use("base"), use("size"), use("load_from_host", VALUE),
        use("store_to_host", VALUE),
    )  # fmt: skip

    base: Var
    size: Expr
    load_from_host: bool
    store_to_host: bool

    def __init__(
        self,
        base: Var,
        size: Expr,
        load_from_host: bool = False,
        store_to_host: bool = False,
        span: Span = UNKNOWN_SPAN,
    ) -> None:
        expect(base, Var, "WindowBuffer.base")
        expect(size, Expr, "WindowBuffer.size")
        expect(load_from_host, bool, "WindowBuffer.load_from_host")
        expect(store_to_host, bool, "WindowBuffer.store_to_host")
        expect(span, Span, "WindowBuffer.span")
        self._fill(WindowBufferType.get(), base.name_hint, base, size, load_from_host, store_to_host, span)
        _set_unique_id(self, _next_unique_id())

    def _rebuilt(self, values: Sequence[Any]) -> WindowBuffer:
        type_, _, base, *rest = values
        return WindowBuffer.make(type_, base.name_hint, base, *rest)


class _Constant(Expr):
    __slots__ = ()
    ABSTRACT = True

    @property
    def dtype(self) -> DataType:
        assert isinstance(self.type, ScalarType)
        return self.type.dtype


class ConstInt(_Constant):
    """An integer constant of any element type; the value fits into 64 signed bits."""

    __slots__ = ("value",)
    FIELDS = (use("type", TYPE), use("value", VALUE))

    value: int

    def __init__(self, value: int, dtype: DataType, span: Span) -> None:
        if not isinstance(value, int) or int(value) not in _INT64:
            shown = show_value(value)
            raise TypeError(f"ConstInt.value must be an int in the signed 64-bit range, got {shown}")
        expect(dtype, DataType, "ConstInt.dtype")
        expect(span, Span, "ConstInt.span")
        self._fill(scalar_type(dtype), int(value), span)


class ConstFloat(_Constant):
    """A floating-point constant; the value is kept in double precision whatever the element type."""

    __slots__ = ("value",)
    FIELDS = (use("type", TYPE), use("value", VALUE))

    value: float

    def __init__(self, value: float, dtype: DataType, span: Span) -> None:
        expect(value, (int, float), "ConstFloat.value")
        expect(dtype, DataType, "ConstFloat.dtype")
        expect(span, Span, "ConstFloat.span")
        self._fill(scalar_type(dtype), float(value), span)


class ConstBool(_Constant):
    """A truth value."""

    __slots__ = ("value",)
    FIELDS = (use("type", TYPE), use("value", VALUE))

    value: bool

    def __init__(self, value: bool, span: Span) -> None:
        expect(value, bool, "ConstBool.value")
        expect(span, Span, "ConstBool.span")
        self._fill(scalar_type(DataType.BOOL), value, span)


class BinaryExpr(Expr):
    """A scalar operation on two operands. The result type is the one given; operands are not inspected."""

    __slots__ = ("left", "right")
    FIELDS = (use("type", TYPE), use("left"), use("right"))
    ABSTRACT = True

    left: Expr
    right: Expr

    def __init__(self, left: Expr, right: Expr, dtype: DataType, span: Span) -> None:
        if type(self).ABSTRACT:
            super().__init__()
        name = type(self).__name__
        expect(left, Expr, f"{name}.left")
        expect(right, Expr, f"{name}.right")
        expect(dtype, DataType, f"{name}.dtype")
        expect(span, Span, f"{name}.span")
        self._fill(scalar_type(dtype), left, right, span)

    @property
    def dtype(self) -> DataType:
        assert isinstance(self.type, ScalarType)
        return self.type.dtype


class UnaryExpr(Expr):
    """A scalar operation on one operand. The result type is the one given."""

    __slots__ = ("operand",)
    FIELDS = (use("type", TYPE), use("operand"))
    ABSTRACT = True

    operand: Expr

    def __init__(self, operand: Expr, dtype: DataType, span: Span) -> None:
        if type(self).ABSTRACT:
            super().__init__()
        name = type(self).__name__
        expect(operand, Expr, f"{name}.operand")
        expect(dtype, DataType, f"{name}.dtype")
        expect(span, Span, f"{name}.span")
        self._fill(scalar_type(dtype), operand, span)

    @property
    def dtype(self) -> DataType:
        assert isinstance(self.type, ScalarType)
        return self.type.dtype


# fmt: off
class Add(BinaryExpr): __slots__ = ()
class Sub(BinaryExpr): __slots__ = ()
class Mul(BinaryExpr): __slots__ = ()
class FloorDiv(BinaryExpr): __slots__ = ()
class FloorMod(BinaryExpr): __slots__ = ()
class FloatDiv(BinaryExpr): __slots__ = ()
class Min(BinaryExpr): __slots__ = ()
class Max(BinaryExpr): __slots__ = ()
class Pow(BinaryExpr): __slots__ = ()
class Eq(BinaryExpr): __slots__ = ()
class Ne(BinaryExpr): __slots__ = ()
class Lt(BinaryExpr): __slots__ = ()
class Le(BinaryExpr): __slots__ = ()
class Gt(BinaryExpr): __slots__ = ()
class Ge(BinaryExpr): __slots__ = ()
class And(BinaryExpr): __slots__ = ()
class Or(BinaryExpr): __slots__ = ()
class Xor(BinaryExpr): __slots__ = ()
class BitAnd(BinaryExpr): __slots__ = ()
class BitOr(BinaryExpr): __slots__ = ()
class BitXor(BinaryExpr): __slots__ = ()
class BitShiftLeft(BinaryExpr): __slots__ = ()
class BitShiftRight(BinaryExpr): __slots__ = ()
class Abs(UnaryExpr): __slots__ = ()
class Neg(UnaryExpr): __slots__ = ()
class Not(UnaryExpr): __slots__ = ()
class BitNot(UnaryExpr): __slots__ = ()
class Cast(UnaryExpr): __slots__ = ()
# fmt: on

BINARY_CLASSES: tuple[type[BinaryExpr], ...] = tuple(BinaryExpr.__subclasses__())
UNARY_CLASSES: tuple[type[UnaryExpr], ...] = tuple(UnaryExpr.__subclasses__())


class _Dispatch(Expr):
    """What Call and Submit share: an operator or function applied to arguments."""

    __slots__ = ("args_", "attrs_", "kwargs_", "op")
    ABSTRACT = True

    op: Op
    args_: tuple[Expr, ...]
    attrs_: AttrDict
    kwargs_: AttrDict

    @property
    def args(self) -> list[Expr]:
        return list(self.args_)

    @property
    def attrs(self) -> AttrDict:
        return read_back(self.attrs_)

    @property
    def kwargs(self) -> AttrDict:
        return read_back(self.kwargs_)

    @property
    def arg_directions(self) -> list[ArgDirection]:
        """How each argument is used, once that has been derived; empty before."""
        return list(self.attrs_.get("arg_directions", ()))


class Call(_Dispatch):
    """An operator or a function of the program applied to arguments.

    Accepted positional forms: `(op, args, span)`, `(op, args, type, span)`, `(op, args, kwargs, span)`,
    `(op, args, kwargs, type, span)` and `(op, args, kwargs, attrs, type, span)`.
    """

    __slots__ = ()
    FIELDS = (
        use("type", TYPE), use("op", OPERATOR), use("args", NODES), use("attrs", ATTRS), use("kwargs", ATTRS),
    )  # fmt: skip
    VISIT_ORDER = ("args", "kwargs", "attrs")
    REWRITE_ORDER = ("args", "type", "kwargs", "attrs")

    def __init__(self, op: Op, args: Sequence[Expr], *rest: Any, **named: Any) -> None:
        expect(op, Op, "Call.op")
        kwargs, attrs, result_type, span = _call_parts(rest, named)
        expect(result_type, Type, "Call.type")
        expect(span, Span, "Call.span")
        arguments = expect_all(args, Expr, "Call.args")
        stored = normalise_attrs("Call", attrs)
        check_direction_count(stored, len(arguments))
        self._fill(result_type, op, arguments, stored, normalise_kwargs("Call", kwargs), span)

    def replace(self, **changes: Any) -> Call:
        new = super().replace(**changes)
        check_direction_count(new.attrs_, len(new.args_))
        return new


_CALL_FORMS: dict[int, tuple[str, ...]] = {
    0: (), 1: ("span",), 3: ("kwargs", "type", "span"), 4: ("kwargs", "attrs", "type", "span"),
}  # fmt: skip


def _call_parts(rest: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any, Any, Any]:
    names = _CALL_FORMS.get(len(rest))
    if len(rest) == 2:
        names = ("type", "span") if isinstance(rest[0], Type) else ("kwargs", "span")
        if isinstance(rest[1], Type):
            names = ("kwargs", "type")
    if len(rest) == 1 and not isinstance(rest[0], Span):
        names = ("type",) if isinstance(rest[0], Type) else ("kwargs",)
    if len(rest) == 3 and isinstance(rest[2], Type):
        names = ("kwargs", "attrs", "type")
    if names is None:
        raise TypeError(f"Call takes at most six positional arguments, got {len(rest) + 2}")
    given = _joined_arguments("Call", names, rest, named)
    return (
        given.get("kwargs"), given.get("attrs"), given.get("type", UnknownType.get()),
        given.get("span", REQUIRED),
    )  # fmt: skip


def _joined_arguments(
    owner: str, names: tuple[str, ...], positional: tuple[Any, ...], named: dict[str, Any]
) -> dict[str, Any]:
    """Arguments by name. Raises `TypeError` for an unknown name and for one also given by position."""
    given = dict(zip(names, positional, strict=True))
    for key, value in named.items():
        if key in given or key not in ("kwargs", "attrs", "type", "span"):
            raise TypeError(f"{owner} got an unexpected or repeated argument '{key}'")
        given[key] = value
    return given


class Submit(_Dispatch):
    """A function call that becomes an asynchronous task with an id. Not a `Call`.

    `deps` are task ids to wait for; `core_num` blocks are launched (None means one), together when
    `sync_start`; the task runs only if `predicate` holds when it is ready.
    """

    __slots__ = ("allow_early_resolve", "core_num", "deps_", "predicate", "sync_start")
    FIELDS = (
        use("type", TYPE), use("op", OPERATOR), use("args", NODES), use("deps", NODES), use("core_num",
        OPTIONAL_NODE), use("sync_start", VALUE), use("allow_early_resolve", VALUE), use("predicate",
        OPTIONAL_NODE),
        use("attrs", ATTRS), use("kwargs", ATTRS),
    )  # fmt: skip
    VISIT_ORDER = ("args", "deps", "core_num", "predicate", "kwargs", "attrs")
    REWRITE_ORDER = ("args", "deps", "core_num", "predicate", "type", "kwargs", "attrs")

    deps_: tuple[Expr, ...]
    core_num: Expr | None
    sync_start: bool
    allow_early_resolve: bool
    predicate: Expr | None

    def __init__(
        self,
        op: Op,
        args: Sequence[Expr],
        deps: Sequence[Expr],
        *rest: Any,
        core_num: Expr | None = None,
        sync_start: bool = False,
        allow_early_resolve: bool = False,
        predicate: Expr | None = None,
        **named: Any,
    ) -> None:
        if len(rest) > 4:
            given = (core_num, sync_start, allow_early_resolve, predicate)
            core_num, sync_start, allow_early_resolve, predicate = _launch_parts(rest[4:], given)
        kwargs, attrs, result_type, span = _submit_parts(rest[:4], named)
        expect(op, Op, "Submit.op")
        expect(result_type, Type, "Submit.type")
        expect(span, Span, "Submit.span")
        arguments = expect_all(args, Expr, "Submit.args")
        stored = normalise_attrs("Submit", attrs)
        check_direction_count(stored, len(arguments))
        expect(sync_start, bool, "Submit.sync_start")
        expect(allow_early_resolve, bool, "Submit.allow_early_resolve")
        _check_launch(core_num, sync_start)
        if predicate is not None:
            expect(predicate, Expr, "Submit.predicate")
        self._fill(
            result_type, op, arguments, expect_all(deps, Expr, "Submit.deps"), core_num, sync_start,
            allow_early_resolve, predicate, stored, normalise_kwargs("Submit", kwargs), span,
        )  # fmt: skip

    @property
    def deps(self) -> list[Expr]:
        return list(self.deps_)

    def replace(self, **changes: Any) -> Submit:
        new = super().replace(**changes)
        check_direction_count(new.attrs_, len(new.args_))
        _check_launch(new.core_num, new.sync_start)
        return new


_LAUNCH_DEFAULTS = (None, False, False, None)


def _launch_parts(positional: tuple[Any, ...], named: tuple[Any, ...]) -> tuple[Any, ...]:
    """The four launch fields of a Submit, the first of them given by position.

    Raises `TypeError` for more than four, or for one given twice.
    """
    count = len(positional)
    if count > len(_LAUNCH_DEFAULTS):
        raise TypeError(f"Submit takes at most 11 positional arguments, got {count + 7}")
    if any(value is not default for value, default in zip(named[:count], _LAUNCH_DEFAULTS, strict=False)):
        raise TypeError("Submit got a launch field both by position and by name")
    return (*positional, *named[count:])


_SUBMIT_FORMS: dict[int, tuple[str, ...]] = {
    0: (), 1: ("type",), 2: ("type", "span"), 3: ("kwargs", "attrs", "type"),
    4: ("kwargs", "attrs", "type", "span"),
}  # fmt: skip


def _submit_parts(rest: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any, Any, Any]:
    """(kwargs, attrs, type, span) of a Submit; unlike a Call, its type has to be given."""
    names = _SUBMIT_FORMS[len(rest)]
    if rest and not isinstance(rest[0], Type):
        names = _SUBMIT_FORMS[4][: len(rest)]
    given = _joined_arguments("Submit", names, rest, named)
    return (
        given.get("kwargs"), given.get("attrs"), given.get("type", REQUIRED), given.get("span", REQUIRED)
    )  # fmt: skip


def _check_launch(core_num: Expr | None, sync_start: bool) -> None:
    if core_num is None:
        if sync_start:
            raise ValueError("Submit with sync_start=True needs core_num")
        return
    expect(core_num, Expr, "Submit.core_num")
    if isinstance(core_num.type, ScalarType) and not core_num.type.dtype.is_int():
        raise TypeError(f"Submit.core_num must be an integer scalar, got {core_num.type.dtype}")


class MakeTuple(Expr):
    """Several values as one."""

    __slots__ = ("elements_",)
    FIELDS = (use("type", TYPE), use("elements", NODES))

    elements_: tuple[Expr, ...]

    def __init__(self, elements: Sequence[Expr], span: Span) -> None:
        expect(span, Span, "MakeTuple.span")
        stored = expect_all(elements, Expr, "MakeTuple.elements")
        self._fill(TupleType.make(tuple([element.type for element in stored])), stored, span)

    @property
    def elements(self) -> list[Expr]:
        return list(self.elements_)

    def _rebuilt(self, values: Sequence[Any]) -> MakeTuple:
        _, elements, span = values
        return MakeTuple(elements, span)


class TupleGetItemExpr(Expr):
    """One element of a tuple value."""

    __slots__ = ("index", "tuple")
    FIELDS = (use("type", TYPE), use("tuple"), use("index", VALUE))

    tuple: Expr
    index: int

    def __init__(self, tuple: Expr, index: int, span: Span) -> None:
        expect(tuple, Expr, "TupleGetItemExpr.tuple")
        expect(index, int, "TupleGetItemExpr.index")
        expect(span, Span, "TupleGetItemExpr.span")
        if not isinstance(tuple.type, TupleType):
            raise ValueError(f"TupleGetItemExpr needs a tuple value, got {type(tuple.type).__name__}")
        elements = tuple.type.types_
        if not 0 <= index < len(elements):
            raise ValueError(f"TupleGetItemExpr index {index} is out of bounds of {len(elements)} elements")
        self._fill(elements[index], tuple, int(index), span)

    def _rebuilt(self, values: Sequence[Any]) -> TupleGetItemExpr:
        _, source, index, span = values
        return TupleGetItemExpr(source, index, span)


__all__ = [
    "Abs", "Add", "And", "BitAnd", "BitNot", "BitOr", "BitShiftLeft", "BitShiftRight", "BitXor", "Cast", "Eq",
    "FloatDiv", "FloorDiv", "FloorMod", "Ge", "Gt", "Le", "Lt", "Max", "Min", "Mul", "Ne", "Neg", "Not", "Or",
    "Pow", "Sub", "Xor",
    "BINARY_CLASSES", "UNARY_CLASSES", "BinaryExpr", "Call", "ConstBool", "ConstFloat", "ConstInt", "Expr",
    "GlobalVar", "IterArg", "MakeTuple", "MemRef", "Op", "Submit", "TupleGetItemExpr", "UnaryExpr", "Var",
    "WindowBuffer",
]  # fmt: skip
