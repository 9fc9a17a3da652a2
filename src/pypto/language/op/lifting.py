"""From IR builders to DSL functions: unwrap the handles, call the builder, wrap the result.

A DSL function is described by its builder and its signature as users see it (no span; the parser pins the
place). A parameter whose default is True or False is a compile-time flag: a constant of the program text is
accepted for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from pypto import ir
from pypto.ir.enums import AtomicType, MemorySpace, PadValue, TensorLayout
from pypto.ir.op.build import definition_of, public_name
from pypto.ir.types import ScalarType
from pypto.language.typing import (
    Array,
    AsyncEvent,
    AsyncSession,
    CommCtx,
    DistributedTensor,
    ExprHandle,
    PrefetchAsyncContext,
    Ptr,
    Scalar,
    Tensor,
    Tile,
)

DslFunction = Callable[..., Any]

_WRAPPERS: dict[type, Callable[..., Any]] = {
    ir.TensorType: Tensor,
    ir.DistributedTensorType: DistributedTensor,
    ir.TileType: Tile,
    ir.ScalarType: Scalar,
    ir.ArrayType: Array,
    ir.PtrType: Ptr,
    ir.CommCtxType: CommCtx,
    ir.PrefetchAsyncContextType: PrefetchAsyncContext,
    ir.AsyncEventType: AsyncEvent,
    ir.AsyncSessionType: AsyncSession,
}
_CONSTANTS = (ir.ConstInt, ir.ConstFloat, ir.ConstBool)


def unwrap(value: Any) -> Any:
    """The expression of a handle, element-wise for sequences; anything else as it is."""
    if isinstance(value, ExprHandle):
        return value.unwrap()
    if isinstance(value, (list, tuple)):
        return [unwrap(item) for item in value]
    return value


def plain(value: Any) -> Any:
    """As :func:`unwrap`, with constants as Python values."""
    found = unwrap(value)
    return found.value if isinstance(found, _CONSTANTS) else found


def wrap(call: ir.Expr) -> Any:
    """The handle of a result: a tuple gives a tuple of handles, an unknown type the bare call."""
    kind = call.type
    wrapper = _WRAPPERS.get(type(kind))
    if wrapper is not None:
        return wrapper(expr=call)
    if isinstance(kind, ir.TupleType):
        return tuple(wrap(ir.TupleGetItemExpr(call, i, call.span)) for i in range(len(kind.types_)))
    return call


def is_scalar_like(value: Any) -> bool:
    """Whether the value can be the scalar operand of an operator: a number, a Scalar, or a scalar
    expression. A task id (which `None` in DSL source is) takes part in no arithmetic."""
    if isinstance(value, (bool, ir.ConstBool)):
        return False
    if isinstance(value, (int, float)):
        return True
    if isinstance(value, Scalar):
        return bool(value.dtype != ir.DataType.TASK_ID)
    return (
        isinstance(value, ir.Expr)
        and isinstance(value.type, ScalarType)
        and value.type.dtype != ir.DataType.TASK_ID
    )


# --- making functions -----------------------------------------------------------------------------


def lift(builder: Callable[..., ir.Expr], signature: str, name: str | None = None) -> DslFunction:
    """The DSL function ``name(signature)`` of a builder that takes the same parameters by name."""
    function = _factory(signature)(builder, unwrap, plain, wrap)
    function.__name__ = function.__qualname__ = name or builder.__name__
    function.__doc__ = builder.__doc__
    return function


def lift_operands(builder: Callable[..., ir.Expr], op_name: str) -> DslFunction:
    """The DSL function of an operator whose parameters are exactly its declared operands."""
    params = definition_of(op_name).params
    signature = ", ".join(p.name + "=None" * p.optional for p in params)
    return lift(builder, signature, public_name(op_name))


_PARAMETER = re.compile(r"^(\w+)(?:=(.+))?$")
_DEFAULTS = {
    "DataType": ir.DataType, "MemorySpace": MemorySpace, "PadValue": PadValue, "TensorLayout": TensorLayout,
    "AtomicType": AtomicType,
}  # fmt: skip


@cache
def _factory(signature: str) -> Callable[..., DslFunction]:
    passed = []
    for part in filter(None, (piece.strip() for piece in signature.split(","))):
        if part in ("*", "/"):
            continue
        match = _PARAMETER.match(part)
        if match is None:
            raise ValueError(f"cannot read parameter {part!r}")
        name, default = match.groups()
        passed.append(f"{name}={'plain' if default in ('True', 'False') else 'unwrap'}({name})")
    source = (
        "def factory(builder, unwrap, plain, wrap):\n"
        f"    def function({signature}):\n"
        f"        return wrap(builder({', '.join(passed)}))\n"
        "    return function"
    )
    namespace: dict[str, Any] = dict(_DEFAULTS)
    exec(source, namespace)
    factory: Callable[..., DslFunction] = namespace["factory"]
    return factory
