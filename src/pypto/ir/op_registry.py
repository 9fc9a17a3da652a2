"""The operator registry: one declaration of an operator says everything the compiler knows about it.

A declaration (:class:`OpDef`) gives the operands, the keyword schema, the type inference, which arguments
are written and through which channel, the memory spaces, the core the operator runs on, aliasing, and the
numeric meaning. The declarations themselves live in ``pypto.ir.op`` and are loaded on the first look-up.
Everything else - builders, DSL wrappers, passes, code generators - asks here.

Type inference functions take ``(args, kwargs)`` and are called only after the number and kinds of the
arguments have been checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from pypto.core.dtype import DataType, dtype_from_code
from pypto.core.errors import InternalError
from pypto.core.span import Span
from pypto.ir.enums import (
    ArgEffect,
    MemorySpace,
    PadValue,
    TensorLayout,
    TileLayout,
    WriteChannel,
)
from pypto.ir.expr import Call, Expr, Op
from pypto.ir.meaning import Meaning, Opaque
from pypto.ir.node import expect_all, show_value
from pypto.ir.types import (
    ArrayType,
    DistributedTensorType,
    PtrType,
    ScalarType,
    TensorType,
    TileType,
    TupleType,
    Type,
)

__all__ = [
    "OpDef",
    "Operand",
    "EffectWhen",
    "MemorySpec",
    "WRITE_UNLESS_ATOMIC",
    "create_op_call",
    "create_call",
    "declared_core_affinity",
    "execution_memory_access",
    "get_op",
    "get_op_arg_effect",
    "get_op_def",
    "get_op_memory_spec",
    "get_op_write_channel",
    "is_no_duplicate_op",
    "is_op_registered",
    "op_has_declared_arg_effect",
    "op_has_declared_arg_effects",
    "register",
    "registered_names",
]

Args = Sequence[Expr]
Kwargs = Mapping[str, Any]
Deduce = Callable[[Args, Kwargs], Type]

INHERIT = "inherit_from_input"
DEFERRED = "deferred"

# --- operands -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Operand:
    """One positional operand; ``kind`` is a key of the operand kind table, ``variadic`` repeats it."""

    name: str
    kind: str
    optional: bool = False
    variadic: bool = False


#: operand kind -> (accepted type classes, class named in the error message)
_OPERAND_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "tensor": ((TensorType,), "TensorType"),
    "plain": ((TensorType,), "TensorType"),
    "window": ((DistributedTensorType,), "DistributedTensorType"),
    "tile": ((TileType,), "TileType"),
    "scalar": ((ScalarType,), "ScalarType"),
    "tile|scalar": ((TileType, ScalarType), "TileType or ScalarType"),
    "tensor|scalar": ((TensorType, ScalarType), "TensorType or ScalarType"),
    "tensor|tile": ((TensorType, TileType), "TensorType or TileType"),
    "tuple": ((TupleType,), "TupleType"),
    "array": ((ArrayType,), "ArrayType"),
    "ptr": ((PtrType,), "PtrType"),
    "any": ((Type,), "Type"),
}

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")


@cache
def parse_signature(signature: str) -> tuple[Operand, ...]:
    """Operands of a signature such as ``"tile: tile, row_vec: tile, tmp?: tile"``; ``*name`` repeats."""
    operands = []
    for part in filter(None, (piece.strip() for piece in signature.split(","))):
        name, _, kind = part.partition(":")
        operands.append(
            Operand(
                name.strip("?* "), kind.strip(), optional=name.endswith("?"), variadic=name.startswith("*")
            )
        )
    return tuple(operands)


# --- keyword schema -------------------------------------------------------------------------------


def _value_types() -> dict[str, type]:
    """Value type of each keyword; every operator that uses a keyword agrees (``mode`` alone is given per
    operator)."""
    by_type: dict[type, str] = {
        bool: "a_trans b_trans c_matrix_nz keep_dim clamp descending exhausted flat_layout high_precision"
        " is_b_matrix is_trans manual_dep pinned pipeline transpose upper"
        " allow_physical_tail_padding bool_attr",
        int: "atomic axis base block_size chunk_rows chunk_cols cmp cmp_mode cmp_type coalesce col_off"
        " core_num dim dir_mask event_id ffts_mode gather_oob id int_attr lane_stride local_slot_num"
        " mask_pattern max_indices offset op out_cols pipe root rounds set_pipe wait_pipe size slot_num"
        " slot_size split",
        str: "acc_phase core_type name peer_func string_attr",
        float: "init_value",
        DataType: "dtype out_dtype output_dtype count_dtype target_type",
        MemorySpace: "target_memory space",
        TensorLayout: "layout",
        TileLayout: "blayout slayout",
        PadValue: "pad_value",
    }
    return {key: kind for kind, keys in by_type.items() for key in keys.split()}


_VALUE_TYPES = _value_types()


@cache
def parse_schema(keys: str) -> Mapping[str, type]:
    """Keyword schema of a key list such as ``"target_memory dtype"``; ``mode:str`` overrides the common
    type."""
    schema: dict[str, type] = {}
    for key in keys.split():
        name, _, kind = key.partition(":")
        schema[name] = {"int": int, "str": str}[kind] if kind else _VALUE_TYPES[name]
    return schema


# --- effects, memory ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EffectWhen:
    """An effect that keywords steer: ``then`` if every key of ``when`` has its value, else ``base``.

    A keyword that is not given counts as 0.
    """

    base: ArgEffect
    when: tuple[tuple[str, Any], ...]
    then: ArgEffect

    def of(self, kwargs: Kwargs) -> ArgEffect:
        return self.then if all(kwargs.get(key, 0) == value for key, value in self.when) else self.base


@dataclass(frozen=True, slots=True)
class MemorySpec:
    """Memory spaces accepted per argument (empty tuple: any) and of the result."""

    inputs: tuple[tuple[MemorySpace, ...], ...]
    output: MemorySpace | str | None


Effect = ArgEffect | EffectWhen


# --- declarations ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class OpDef:
    """Declaration of one operator.

    Attributes:
        name: IR name, ``<namespace>.<leaf>``.
        category: ``"TensorOp"``, ``"TileOp"``, ...
        params: operands in order.
        kwargs: keyword schema, key -> value type.
        deduce: result type of a call with checked arguments.
        effects: declared effect per argument; empty with ``writes_nothing`` for an explicit "writes nothing".
        reuses: argument whose buffer the result is.
        views: True if the result is a zero-copy view of argument 0.
        no_alias: arguments whose buffer the result must not share; ``()``: the operator may run in place.
        affinity: ``"vector"``, ``"cube"``, ``"shared"`` or None (classified from the operands' spaces).
        metadata_only: True if executing the operator touches no memory.
    """

    name: str
    category: str
    params: tuple[Operand, ...]
    kwargs: Mapping[str, type]
    deduce: Deduce
    effects: Mapping[int, Effect]
    writes_nothing: bool
    write_channel: WriteChannel | None
    memory_spec: MemorySpec | None
    affinity: str | None
    meaning: Meaning
    reuses: int | None
    views: bool
    no_alias: tuple[int, ...]
    metadata_only: bool
    no_duplicate: bool
    internal: bool
    op: Op
    accepts: tuple[tuple[tuple[type, ...], bool], ...]
    min_args: int
    max_args: int

    @property
    def leaf(self) -> str:
        """Name without the namespace."""
        return self.name.rpartition(".")[2]

    def effect(self, index: int, kwargs: Kwargs) -> ArgEffect:
        """Effect of a call with ``kwargs`` on argument ``index``."""
        declared = self.effects.get(index, ArgEffect.Read)
        return declared.of(kwargs) if isinstance(declared, EffectWhen) else declared


_REGISTRY: dict[str, OpDef] = {}
_UNLIMITED = 1 << 30
_NO_EFFECTS: Mapping[int, Effect] = {}
_NO_KWARGS: dict[str, Any] = {}
_NO_ATTRS: dict[str, Any] = {}
_INT32 = range(-(1 << 31), 1 << 31)
WRITE_UNLESS_ATOMIC = EffectWhen(ArgEffect.ReadWrite, (("atomic", 0),), ArgEffect.Write)
_UNDECLARED = Opaque("it has no declared meaning")
_CATEGORIES = {"tensor": "TensorOp", "tile": "TileOp", "array": "ArrayOp", "system": "SystemOp"}
_ALL = tuple(range(8))


def register(
    name: str,
    signature: str,
    deduce: Deduce,
    *,
    kwargs: str = "",
    effects: Mapping[int, Effect] = _NO_EFFECTS,
    writes_nothing: bool = False,
    channel: WriteChannel | None = None,
    memory: MemorySpec | None = None,
    affinity: str | None = None,
    meaning: Meaning = _UNDECLARED,
    reuses: int | None = None,
    views: bool = False,
    no_alias: tuple[int, ...] | str = (),
    metadata_only: bool = False,
    no_duplicate: bool = False,
    internal: bool = False,
) -> OpDef:
    """Declare one operator; see :class:`OpDef`.

    Raises:
        InternalError: the name is taken, an operator whose result reuses an argument declares no effect on
            it, or an operator with a write channel writes nothing.
    """
    if name in _REGISTRY:
        raise InternalError(f"Operator '{name}' is registered twice")
    if reuses is not None and reuses not in effects and not writes_nothing:
        raise InternalError(f"Operator '{name}' reuses argument {reuses} but declares no effect on it")
    if channel is not None and not effects:
        raise InternalError(f"Operator '{name}' has a write channel but writes nothing")
    params = parse_signature(signature)
    schema = parse_schema(kwargs)
    variadic = bool(params) and params[-1].variadic
    definition = OpDef(
        name=name,
        category=_CATEGORIES.get(name.partition(".")[0], "Op"),
        params=params,
        kwargs=schema,
        deduce=deduce,
        effects=effects,
        writes_nothing=writes_nothing,
        write_channel=channel,
        memory_spec=memory,
        affinity=affinity,
        meaning=meaning,
        reuses=reuses,
        views=views,
        no_alias=_ALL if no_alias == "all" else tuple(no_alias),  # type: ignore[arg-type]
        metadata_only=metadata_only,
        no_duplicate=no_duplicate,
        internal=internal,
        op=Op(name),
        accepts=tuple((_OPERAND_KINDS[p.kind][0], p.kind == "plain") for p in params),
        min_args=sum(not p.optional and not p.variadic for p in params),
        max_args=_UNLIMITED if variadic else len(params),
    )
    _REGISTRY[name] = definition
    return definition


_loaded = False


def _load_declarations() -> None:
    global _loaded
    if not _loaded:
        _loaded = True
        import_module("pypto.ir.op.declarations")


# --- queries --------------------------------------------------------------------------------------


def get_op_def(name: str) -> OpDef | None:
    """The declaration of ``name``, or None if no such operator exists."""
    definition = _REGISTRY.get(name)
    if definition is None and not _loaded:
        _load_declarations()
        definition = _REGISTRY.get(name)
    return definition


def _require(name: str) -> OpDef:
    definition = get_op_def(name)
    if definition is None:
        hint = "" if "." in name else " (a name without a dot looks like a function name, not an operator)"
        raise ValueError(f"Operator '{name}' not found in registry{hint}")
    return definition


def registered_names() -> list[str]:
    """All registered operator names, in order of declaration."""
    _load_declarations()
    return list(_REGISTRY)


def is_op_registered(name: str) -> bool:
    """Whether an operator of this name exists."""
    return get_op_def(name) is not None


def get_op(name: str) -> Op:
    """The one shared Op object of a registered operator; ValueError for an unknown name."""
    return _require(name).op


def get_op_memory_spec(name: str) -> dict[str, Any] | None:
    """Memory spaces of an operator's operands and result, or None where it declares none."""
    definition = get_op_def(name)
    if definition is None or definition.memory_spec is None:
        return None
    spec = definition.memory_spec
    return {"input_constraints": [list(spaces) for spaces in spec.inputs], "output_memory": spec.output}


def get_op_arg_effect(name: str, index: int, **kwargs: Any) -> ArgEffect:
    """What a call with these keywords does to argument ``index``; Read where nothing is declared."""
    definition = _require(name)
    return definition.effect(index, check_kwargs(definition, kwargs) if kwargs else kwargs)


def op_has_declared_arg_effects(name: str) -> bool:
    """Whether the operator declares any effect, or that it writes nothing."""
    definition = _require(name)
    return bool(definition.effects) or definition.writes_nothing


def op_has_declared_arg_effect(name: str, index: int) -> bool:
    """Whether argument ``index`` is named in the effects; "writes nothing" names every argument."""
    definition = _require(name)
    return definition.writes_nothing or index in definition.effects


def get_op_write_channel(name: str) -> WriteChannel | None:
    """The channel through which the operator writes memory."""
    return _require(name).write_channel


def declared_core_affinity(name: str) -> str | None:
    """``"vector"``, ``"cube"``, ``"shared"``, or None where the operands decide."""
    return _require(name).affinity


def execution_memory_access(name: str) -> str | None:
    """``"none"`` if executing the operator touches no memory, ``"access"`` if its effects or channel tell
    that it does, None where the declaration tells neither."""
    definition = _require(name)
    if definition.metadata_only:
        return "none"
    return "access" if definition.effects or definition.write_channel is not None else None


def is_no_duplicate_op(name: str) -> bool:
    """Whether executing the operator on two lanes instead of one would change the program."""
    return _require(name).no_duplicate


# --- creating calls -------------------------------------------------------------------------------


def create_op_call(op_name: str, args: Args, kwargs: Any = None, span: Span | None = None) -> Call:
    """A Call with deduced type: ``create_op_call(name, args, span)`` or ``(name, args, kwargs, span)``.

    Raises:
        ValueError: unknown or internal operator, unknown keyword, wrong arguments.
        TypeError: a keyword value of the wrong type.
    """
    if span is None and isinstance(kwargs, Span):
        kwargs, span = None, kwargs
    definition = _require(op_name)
    if definition.internal:
        raise ValueError(f"Operator '{op_name}' is internal-only; programs cannot call it")
    return create_call(
        definition,
        expect_all(args, Expr, "create_op_call args"),
        _NO_KWARGS if kwargs is None else kwargs,
        Span.unknown() if span is None else span,
    )


def create_call(definition: OpDef, args: Args, kwargs: Kwargs, span: Span) -> Call:
    """As :func:`create_op_call`, for code that already holds the declaration (builders, passes)."""
    stored = check_kwargs(definition, kwargs) if kwargs else _NO_KWARGS
    try:
        _check_args(definition, args)
        result = definition.deduce(args, stored)
    except (ValueError, TypeError, InternalError) as error:
        if not span.is_valid():
            raise
        raise type(error)(f"{error} at {span}") from error
    spec = definition.memory_spec
    if spec is not None and spec.output is not None:
        result = _complete_memory_space(spec.output, result, args, stored)
    return Call.make(result, definition.op, tuple(args), _NO_ATTRS, stored, span)


def check_kwargs(definition: OpDef, kwargs: Kwargs) -> dict[str, Any]:
    """The keywords in the form in which a Call stores them.

    Raises:
        ValueError: unknown keyword.
        TypeError: value of the wrong type. Types are strict: a bool is no int, an int no bool.
    """
    checked: dict[str, Any] = {}
    schema = definition.kwargs
    for key, value in kwargs.items():
        expected = schema.get(key)
        if expected is None:
            none = "" if schema else ", which takes no kwargs"
            raise ValueError(f"Unknown kwarg '{key}' for operator '{definition.name}'{none}")
        if type(value) is expected and expected is not int:
            checked[key] = value
        else:
            checked[key] = _convert_kwarg(definition.name, key, value, expected)
    return checked


def _convert_kwarg(op_name: str, key: str, value: Any, expected: type) -> Any:
    if expected is int and isinstance(value, int) and not isinstance(value, bool):
        value = int(value)  # membership in a range is only fast for exact ints
        if value not in _INT32:
            raise ValueError(
                f"The value {value} of kwarg '{key}' for operator '{op_name}' does not fit into 32 bits"
            )
        return value
    if expected is int and hasattr(value, "name") and isinstance(getattr(value, "value", None), int):
        return value.value  # plain enums such as SplitMode stand for their number
    if expected is float and isinstance(value, float):
        return float(value)
    if expected is DataType and isinstance(value, int) and not isinstance(value, bool):
        return dtype_from_code(value)
    if isinstance(value, expected) and not isinstance(value, bool):
        return value
    raise TypeError(
        f"Kwarg '{key}' for operator '{op_name}' has incompatible type: "
        f"expected {expected.__name__}, got {type(value).__name__} {show_value(value)}"
    )


def _check_args(definition: OpDef, args: Args) -> None:
    count = len(args)
    if not definition.min_args <= count <= definition.max_args:
        raise ValueError(_arity_message(definition, count))
    accepts = definition.accepts
    if count > len(accepts):
        accepts += accepts[-1:] * (count - len(accepts))
    for index, arg in enumerate(args):
        accepted, plain = accepts[index]
        if not isinstance(arg, Expr):
            raise TypeError(_kind_message(definition, index, arg))
        kind = arg.type
        if not isinstance(kind, accepted) or (plain and isinstance(kind, DistributedTensorType)):
            raise ValueError(_kind_message(definition, index, kind))


def _arity_message(definition: OpDef, count: int) -> str:
    low, high = definition.min_args, definition.max_args
    if low == high:
        wanted = f"exactly {low}"
    elif high == _UNLIMITED:
        wanted = f"at least {low}"
    else:
        wanted = f"{low} to {high}"
    plural = "argument" if low == high == 1 else "arguments"
    return f"The operator {definition.name} requires {wanted} {plural}, but got {count}"


def _kind_message(definition: OpDef, index: int, got: object) -> str:
    operand = definition.params[min(index, len(definition.params) - 1)]
    _, wanted = _OPERAND_KINDS[operand.kind]
    ordinal = _ORDINALS[index] if index < len(_ORDINALS) else f"{index + 1}th"
    article = "an" if wanted[0] in "AEIOU" else "a"
    return (
        f"The operator {definition.name} requires {ordinal} argument to be {article} {wanted} "
        f"('{operand.name}'), but got {type(got).__name__}"
    )


def _complete_memory_space(output: MemorySpace | str, result: Type, args: Args, kwargs: Kwargs) -> Type:
    """Stamp the output memory space on tiles of the result that have none."""
    if isinstance(result, TileType):
        if result.memory_space is not None:
            return result
        space = _output_space(output, args, kwargs)
        return result if space is None else stamp_memory_space(result, space)
    if isinstance(result, TupleType):
        elements: Iterable[Type] = result.types_
        return TupleType([_complete_memory_space(output, element, args, kwargs) for element in elements])
    return result


def _output_space(output: MemorySpace | str, args: Args, kwargs: Kwargs) -> MemorySpace | None:
    requested = kwargs.get("target_memory")
    if requested is not None:
        return requested  # type: ignore[no-any-return]
    if isinstance(output, MemorySpace):
        return output
    if output == DEFERRED:
        return None
    for arg in args:
        if isinstance(arg.type, TileType) and arg.type.memory_space is not None:
            return arg.type.memory_space
    return None


def stamp_memory_space(tile: TileType, space: MemorySpace) -> TileType:
    """The same tile type in ``space``; the view is stored sparsely again, against the layout of that
    space."""
    return TileType(tile.shape_, tile.dtype, tile.memref, tile.tile_view, space)
