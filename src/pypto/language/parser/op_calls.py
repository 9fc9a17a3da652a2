"""Operator calls: finding the operator, preparing arguments, calling its DSL function, unwrapping the
result."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pypto import ir
from pypto.core.errors import InternalError
from pypto.ir.op_registry import create_op_call, get_op_def, is_op_registered
from pypto.ir.utils import _normalize_expr, _to_make_tuple, use_parser_span
from pypto.language.parser.attr_values import call_attrs
from pypto.language.parser.closure import NOT_FOUND
from pypto.language.parser.diagnostics import (
    InvalidOperationError,
    ParserError,
    ParserTypeError,
    UnsupportedFeatureError,
    concise_error_message,
)
from pypto.language.parser.function_parser import EXPRESSIONS, FunctionParser
from pypto.language.parser.instead import instead_of_construct, instead_of_foreign
from pypto.language.parser.slots import DTYPES, resolve_dtype
from pypto.language.typing import (
    Array,
    AsyncEvent,
    AsyncSession,
    CommCtx,
    DistributedTensor,
    DynVar,
    ExprHandle,
    PrefetchAsyncContext,
    Ptr,
    Scalar,
    Tensor,
    Tile,
    Tuple,
)

SLOT_ENUMS = (
    ir.DataType,
    ir.MemorySpace,
    ir.TensorLayout,
    ir.TileLayout,
    ir.PadValue,
    ir.ArgDirection,
)
_CALLABLES = "Bodies call pl.* and pld.* operations, self.<method>(...) and functions by bare name"
_LISTS = frozenset({"shape", "shapes", "offset", "offsets", "valid_shape"})
_SCALAR_HINT = "For scalar values use Python operators: s1 + s2, s1 - s2, s1 * s2, s1 / s2"

_WRAPPERS: dict[type[ir.Type], Callable[..., Any]] = {
    ir.TensorType: Tensor,
    ir.DistributedTensorType: DistributedTensor,
    ir.TileType: Tile,
    ir.ScalarType: Scalar,
    ir.ArrayType: Array,
    ir.TupleType: Tuple,
    ir.PtrType: Ptr,
    ir.CommCtxType: CommCtx,
    ir.PrefetchAsyncContextType: PrefetchAsyncContext,
    ir.AsyncEventType: AsyncEvent,
    ir.AsyncSessionType: AsyncSession,
}


# -- lookup --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpFunction:
    """An operator as the source names it: `module` is `pl`, `pl.tile`, `pld.tensor`, ..."""

    module: str
    name: str
    call: Callable[..., Any]


_CATEGORIES = frozenset({"tensor", "tile", "system", "array", "prefetch"})
_FALLBACK_CATEGORIES = frozenset({"tensor", "tile", "system"})
_PLD_CATEGORIES = frozenset({"system", "tensor", "tile"})


def find_op(p: FunctionParser, node: ast.Call, name: str | None) -> OpFunction:
    """The operator called by a dotted name.

    Raises:
        InvalidOperationError: there is no such operator.
        UnsupportedFeatureError: the name does not start with `pl.` or `pld.`.
    """
    found = _find_op(name) if name is not None else None
    if isinstance(found, OpFunction):
        return found
    if found is None:
        raise UnsupportedFeatureError(
            f"Unsupported operation call: {ast.unparse(node.func)}",
            span=p.span(node),
            hint=_instead_of_call(p, node),
        )
    message, suggestions = found
    raise InvalidOperationError(message, span=p.span(node), hint=_suggest(name or "", suggestions))


def _instead_of_call(p: FunctionParser, node: ast.Call) -> str:
    """What to write instead of a function of another module, or a method of a value."""
    func = node.func
    if not isinstance(func, ast.Attribute):
        return _CALLABLES
    foreign = instead_of_foreign(func.attr)
    if foreign is not None:
        return foreign
    if not isinstance(_find_op(f"pl.{func.attr}"), OpFunction):
        return _CALLABLES
    is_method = any(isinstance(part, ast.Name) and part.id in p.names for part in ast.walk(func.value))
    operands = [func.value, *node.args] if is_method else node.args
    call = ast.Call(ast.parse(f"pl.{func.attr}", mode="eval").body, operands, node.keywords)
    return f"Write {ast.unparse(call)}"


def _suggest(name: str, known: tuple[str, ...]) -> str:
    import difflib

    leaf = name.rsplit(".", 1)[-1]
    construct = instead_of_construct(leaf)
    if construct is None:
        construct = instead_of_foreign(leaf)
    if construct is not None:
        return construct
    close = difflib.get_close_matches(leaf, [other for other in known if other not in _MARKERS], n=1)
    if close:
        return f"Did you mean '{name[: -len(leaf)]}{close[0]}'?"
    return "Check the operation name and its namespace (pl, pl.tensor, pl.tile, pl.system, pl.array)"


@lru_cache(maxsize=4096)
def _find_op(name: str) -> OpFunction | tuple[str, tuple[str, ...]] | None:
    """The operator; or the error message with candidate names; or None when this is not an operator name."""
    parts = name.split(".")
    if parts[0] == "pl" and len(parts) == 2:
        return _unified_op(parts[1])
    if parts[0] == "pl" and len(parts) == 3 and parts[1] in _CATEGORIES:
        return _category_op(parts[1], parts[2])
    if parts[0] == "pld" and len(parts) == 2:
        return _distributed_op(parts[1])
    if parts[0] == "pld" and len(parts) == 3:
        return _distributed_category_op(parts[1], parts[2])
    if parts[0] == "pl":
        return f"Unknown operation '{name}'", ()
    return None


def _unified_op(name: str) -> OpFunction | tuple[str, tuple[str, ...]]:
    package = importlib.import_module("pypto.language.op")
    call = getattr(package, name, None) if name in package.__all__ else None
    if name not in _MARKERS and callable(call):
        return OpFunction("pl", name, call)
    return f"Unknown operation 'pl.{name}'", tuple(package.__all__)


_MARKERS = frozenset({"no_dep", "dump_tag"})


def _category_op(category: str, name: str) -> OpFunction | tuple[str, tuple[str, ...]]:
    module = importlib.import_module(f"pypto.language.op.{category}_ops")
    call = getattr(module, name, None) if name in module.__all__ and name not in _MARKERS else None
    if callable(call) and not isinstance(call, type):
        return OpFunction(f"pl.{category}", name, call)
    if category in _FALLBACK_CATEGORIES and is_op_registered(f"{category}.{name.rstrip('_')}"):
        builders = importlib.import_module(f"pypto.ir.op.{category}_ops")
        builder = getattr(builders, name, None)
        if builder is not None:
            return OpFunction(f"pl.{category}", name, _unwrapping(builder))
    return f"Unknown pl.{category} operation: {name}", tuple(module.__all__)


def _unwrapping(builder: Callable[..., ir.Expr]) -> Callable[..., ir.Expr]:
    """A raw IR builder that takes the wrappers a DSL function takes."""

    def call(*args: Any, **kwargs: Any) -> ir.Expr:
        return builder(*map(_unwrapped, args), **{key: _unwrapped(value) for key, value in kwargs.items()})

    return call


def _unwrapped(value: Any) -> Any:
    if isinstance(value, ExprHandle):
        return value.unwrap()
    return [_unwrapped(item) for item in value] if isinstance(value, list) else value


def _distributed_op(name: str) -> OpFunction | tuple[str, tuple[str, ...]]:
    package = importlib.import_module("pypto.language.distributed")
    if name not in package.OPERATIONS:
        return f"Unknown distributed operation 'pld.{name}'", tuple(package.OPERATIONS)
    try:
        return OpFunction("pld", name, getattr(package, name))
    except AttributeError as error:
        return str(error), ()


def _distributed_category_op(category: str, name: str) -> OpFunction | tuple[str, tuple[str, ...]]:
    if category not in _PLD_CATEGORIES:
        return f"Unknown distributed category 'pld.{category}'", ()
    package = importlib.import_module("pypto.language.distributed")
    try:
        module = getattr(package, category)
    except AttributeError as error:
        return f"{error}.{name}", ()
    if name in module.__all__ or name in getattr(module, "LOWERED_ONLY", ()):
        return OpFunction(f"pld.{category}", name, getattr(module, name))
    return f"Unknown distributed operation 'pld.{category}.{name}'", tuple(module.__all__)


# -- arguments -----------------------------------------------------------------------------------------------


def wrap(value: ir.Expr) -> Any:
    """An expression in the form in which operators take it."""
    kind = type(value)
    if kind is ir.ConstInt or kind is ir.ConstFloat or kind is ir.ConstBool:
        return value
    if kind is ir.MakeTuple:
        return [wrap(element) for element in value.elements_]  # type: ignore[attr-defined]
    wrapper = _WRAPPERS.get(type(value.type))
    return value if wrapper is None else wrapper(expr=value)


def positional_argument(p: FunctionParser, node: ast.expr) -> Any:
    """One positional argument, wrapped; enum and dtype slots as the Python value."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return [positional_argument(p, element) for element in node.elts]
    if isinstance(node, ast.Attribute):
        value = _attribute_value(p, node)
        if value is not NOT_FOUND:
            return value
    elif isinstance(node, ast.Name):
        bound = p.names.lookup(node.id)
        if bound is not None:
            return wrap(bound)
        value = p.closure.lookup(node.id)
        if isinstance(value, SLOT_ENUMS):
            return value
    elif (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Attribute)
    ):
        value = _attribute_value(p, node.operand)
        if _is_number(value):
            return -value
    elif isinstance(node, ast.Call):
        return wrap(EXPRESSIONS[ast.Call](p, node))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value  # the name of a mode
    return wrap(p.expr(node))


def _attribute_value(p: FunctionParser, node: ast.Attribute) -> Any:
    """The dtype, enum member or number a dotted name stands for, or `NOT_FOUND`."""
    base = node.value
    if isinstance(base, ast.Name):
        if base.id == "pl" or base.id == "DataType":
            dtype = DTYPES.get(node.attr)
            if dtype is not None:
                return dtype
        if base.id in p.names:
            return NOT_FOUND
    value = p.closure.lookup_attribute(node)
    if value is NOT_FOUND:
        value = _language_attribute(node)
    if isinstance(value, SLOT_ENUMS) or _is_number(value):
        return value
    return NOT_FOUND


def _language_attribute(node: ast.Attribute) -> Any:
    """A member of the language module when the source says `pl.` without importing it under that name."""
    parts: list[str] = []
    current: ast.expr = node
    while isinstance(current, ast.Attribute):
        parts.append(current.attr)
        current = current.value
    if not isinstance(current, ast.Name) or current.id not in ("pl", "pld"):
        return NOT_FOUND
    value: Any = importlib.import_module(
        "pypto.language" if current.id == "pl" else "pypto.language.distributed"
    )
    for part in reversed(parts):
        value = getattr(value, part, NOT_FOUND)
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def keyword_argument(p: FunctionParser, keyword: ast.keyword) -> Any:
    """One keyword argument: literals and captured values as Python values, DSL values wrapped."""
    node = keyword.value
    if keyword.arg == "dtype":
        return resolve_dtype(p, node)
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        operand = node.operand
        if isinstance(operand, ast.Constant):
            return -operand.value  # type: ignore[operator]
        if isinstance(operand, ast.Attribute) and _is_number(value := _attribute_value(p, operand)):
            return -value
    if isinstance(node, ast.Name):
        bound = p.names.lookup(node.id)
        return wrap(bound) if bound is not None else _captured(p, node)
    if isinstance(node, ast.Attribute):
        return _keyword_attribute(p, node)
    if isinstance(node, (ast.List, ast.Tuple)):
        return _keyword_list(p, node)
    return wrap(p.expr(node))


def _captured(p: FunctionParser, node: ast.expr) -> Any:
    return _with_symbols(p, p.closure.evaluate(node, p.span(node)))


def _with_symbols(p: FunctionParser, value: Any) -> Any:
    """A captured value in which symbolic dimensions are the variables of this parse."""
    if isinstance(value, DynVar):
        return wrap(p.resolve_dyn(value))
    if isinstance(value, (list, tuple)):
        return [_with_symbols(p, item) for item in value]
    return value


def _keyword_attribute(p: FunctionParser, node: ast.Attribute) -> Any:
    if node.attr in DTYPES and isinstance(node.value, ast.Name) and node.value.id in ("pl", "DataType"):
        return DTYPES[node.attr]
    if isinstance(node.value, ast.Name):
        owner = p.names.lookup(node.value.id)
        if owner is not None:
            metadata = p.buffer_metadata.get(owner, {})  # type: ignore[call-overload]
            if node.attr in metadata:
                return metadata[node.attr]
            return wrap(p.expr(node))
    value = p.closure.lookup_attribute(node)
    if value is NOT_FOUND:
        value = _language_attribute(node)
    return value if value is not NOT_FOUND else p.closure.evaluate(node, p.span(node))


def _keyword_list(p: FunctionParser, node: ast.List | ast.Tuple) -> Any:
    if not any(isinstance(inner, ast.Name) and inner.id in p.names for inner in ast.walk(node)):
        try:
            return list(_captured(p, node))
        except ParserTypeError:
            pass  # some element needs the DSL: parse them all
    return [wrap(p.expr(element)) for element in node.elts]


# -- the call ------------------------------------------------------------------------------------------------


def parse_op_call(p: FunctionParser, node: ast.Call, op: OpFunction) -> ir.Expr:
    """Call an operator's DSL function on parsed arguments; the result carries the span of the call."""
    args = []  # filled in a loop: a comprehension would be one more frame per level of nested calls
    for argument in node.args:
        if isinstance(argument, ast.Constant) and argument.value is None and _may_be_none(op, len(args)):
            args.append(None)
        else:
            args.append(positional_argument(p, argument))
    kwargs: dict[str, Any] = {}
    attrs: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise UnsupportedFeatureError(
                "Unsupported **kwargs in an operation call", span=p.span(node), hint="Write the arguments out"
            )
        if keyword.arg == "attrs":
            attrs = call_attrs(p, keyword.value)
        else:
            kwargs[keyword.arg] = keyword_argument(p, keyword)
    result = invoke(op, args, kwargs, p.span(node))
    if attrs:
        if not isinstance(result, ir.Call):
            raise InvalidOperationError(
                f"{op.module}.{op.name} does not take attrs=", span=p.span(node), hint="Leave attrs out"
            )
        result = ir.set_call_attrs(result, attrs)
    return result


def _may_be_none(op: OpFunction, position: int) -> bool:
    """Whether a literal `None` leaves out the parameter at `position`; elsewhere it is a task id."""
    parameters = list(inspect.signature(op.call).parameters.values())
    return position < len(parameters) and parameters[position].default is None


def invoke(op: OpFunction, args: list[Any], kwargs: dict[str, Any], span: ir.Span) -> ir.Expr:
    """Run an operator's DSL function.

    Raises:
        InvalidOperationError: the operator rejects its arguments.
    """
    try:
        with use_parser_span(span):
            return unwrap_result(_called(op, args, kwargs, span), span)
    except (ParserError, InternalError, AssertionError):
        raise
    except (TypeError, ValueError) as error:
        raise InvalidOperationError(
            _op_message(op, concise_error_message(error)),
            span=span,
            hint=_op_hint(op, args),
            note=_signature(op) if isinstance(error, TypeError) or "argument" in str(error) else None,
        ) from error
    except Exception as error:
        raise InvalidOperationError(
            f"Error in {op.module} operation '{op.name}': {concise_error_message(error)}", span=span
        ) from error


def _called(op: OpFunction, args: list[Any], kwargs: dict[str, Any], span: ir.Span) -> Any:
    """The DSL function's result; where the arguments do not even reach it, that of the printed form."""
    try:
        return op.call(*args, **kwargs)
    except TypeError as error:
        reached = error.__traceback__ is not None and error.__traceback__.tb_next is not None
        printed = None if reached else _printed_form(op, args, kwargs, span)
        if printed is None:
            raise
        return printed


def _printed_form(op: OpFunction, args: list[Any], kwargs: dict[str, Any], span: ir.Span) -> ir.Call | None:
    """The call as the printer writes it: all operands by position, then the keywords of the IR.

    A DSL function may order its parameters otherwise, or leave out keywords that only the compiler sets.
    None when the arguments are not those of the operator either.
    """
    leaf = op.name.rstrip("_")
    definition = get_op_def(f"{op.module}.{leaf}".removeprefix("pl."))
    if definition is None or definition.internal or not kwargs.keys() <= definition.kwargs.keys():
        return None
    if not definition.min_args <= len(args) <= definition.max_args:
        return None
    parameters = inspect.signature(op.call).parameters.values()
    required = {each.name for each in parameters if each.default is each.empty}
    if required & definition.kwargs.keys() - kwargs.keys():
        return None
    operands = [_to_operand(arg, span) for arg in args]
    return create_op_call(definition.name, operands, {k: _unwrapped(v) for k, v in kwargs.items()}, span)


def _to_operand(value: Any, span: ir.Span) -> ir.Expr:
    plain = _unwrapped(value)
    return _to_make_tuple(plain, span) if isinstance(plain, list) else _normalize_expr(plain, span)


def _op_message(op: OpFunction, message: str) -> str:
    if message.startswith((f"pl.{op.name}", f"{op.module}.{op.name}")):
        return message
    return f"{op.module} operation '{op.name}': {message}"


def _signature(op: OpFunction) -> str:
    """How the operator is called."""
    written, last = [], inspect.Parameter.POSITIONAL_ONLY
    for parameter in inspect.signature(op.call).parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and last < inspect.Parameter.VAR_POSITIONAL:
            written.append("*")
        last = parameter.kind
        default = parameter.default
        if default is not inspect.Parameter.empty:
            written.append(f"{parameter.name}={getattr(default, 'name', default)}")
        else:
            written.append(str(parameter.replace(annotation=inspect.Parameter.empty)))
    return f"{op.module}.{op.name}({', '.join(written)})"


def _op_hint(op: OpFunction, args: list[Any]) -> str | None:
    scalars = [_is_scalar(arg) for arg in args]
    names = inspect.signature(op.call).parameters
    unlisted = [name for name, is_scalar in zip(names, scalars, strict=False) if is_scalar and name in _LISTS]
    if unlisted:
        return f"{' and '.join(unlisted)}: write a list with one entry per dimension, as in [0, 0]"
    if scalars[:2] == [True, False] and isinstance(args[1], (Tensor, Tile)):
        return f"The tensor or tile comes first, as in {op.module}.{op.name}(x, 2.0). {_SCALAR_HINT}"
    return _SCALAR_HINT if any(scalars) else None


def _is_scalar(arg: Any) -> bool:
    return isinstance(arg, Scalar) or (isinstance(arg, ir.Expr) and isinstance(arg.type, ir.ScalarType))


def unwrap_result(result: Any, span: ir.Span) -> ir.Expr:
    """The expression in what a DSL function returns."""
    if isinstance(result, ExprHandle):
        return result.unwrap()
    if isinstance(result, ir.Expr):
        return result
    if isinstance(result, (tuple, list)):
        return _joined_results([unwrap_result(item, span) for item in result], span)
    raise TypeError(f"an operation returned {type(result).__name__} instead of a DSL value")


def _joined_results(items: list[ir.Expr], span: ir.Span) -> ir.Expr:
    """The call whose results these are, in order and complete; otherwise a tuple of the items."""
    first = items[0] if items else None
    if isinstance(first, ir.TupleGetItemExpr):
        call = first.tuple
        in_order = all(
            isinstance(item, ir.TupleGetItemExpr) and item.tuple is call and item.index == position
            for position, item in enumerate(items)
        )
        if in_order and isinstance(call.type, ir.TupleType) and len(call.type.types_) == len(items):
            return call
    return ir.MakeTuple(items, span)
