"""What is known of a jit function from its source alone.

Found once per function: its syntax tree, its parameters, the names it takes from around it, and its calls of
other jit functions. Values behind the names are looked up anew whenever they matter, so a constant that was
changed after decoration is seen.
"""

from __future__ import annotations

import ast
import enum
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import CellType, FunctionType, ModuleType
from typing import Any

from pypto import ir
from pypto.language.parser.closure import NOT_FOUND, Closure
from pypto.language.parser.diagnostics import ParserTypeError
from pypto.language.parser.slots import DTYPES, dotted_name, last_name
from pypto.language.parser.source import SourceText, find_function
from pypto.language.parser.specialised_body import declared_dynamic, is_bind_dynamic, parsed_at
from pypto.language.specialisation import Constant
from pypto.language.typing import DynVar

_DIRECTIONS = {"Out": ir.ParamDirection.Out, "InOut": ir.ParamDirection.InOut}


class Kind(enum.Enum):
    """What a parameter takes."""

    TENSOR = "tensor"
    WINDOW = "window"  # a tensor of a window buffer, shared between ranks
    SCALAR = "scalar"
    ARRAY = "array"


_SHAPED = {"Tensor": Kind.TENSOR, "DistributedTensor": Kind.WINDOW}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter as its annotation describes it. `dims` is None for a bare `pl.Tensor`."""

    name: str
    kind: Kind
    direction: ir.ParamDirection
    dtype: ir.DataType | None = None
    dims: tuple[int | DynVar, ...] | None = None
    layout: ir.TensorLayout | None = None
    extent: int = 0  # of an array

    @property
    def is_shaped(self) -> bool:
        """Whether the argument is a tensor."""
        return self.kind in (Kind.TENSOR, Kind.WINDOW)

    @property
    def unshaped_type(self) -> ir.Type:
        """The type of a parameter that is no tensor: its annotation says all of it."""
        assert self.dtype is not None
        return ir.ArrayType(self.dtype, self.extent) if self.kind is Kind.ARRAY else ir.ScalarType(self.dtype)

    def constant(self, value: Constant | None) -> Constant | None:
        """A number as a value of the scalar's type, as at a dispatch: `True` for an integer means 1."""
        if value is None or self.dtype is None:
            return None
        if self.dtype.is_float():
            return float(value)
        return bool(value) if self.dtype == ir.DataType.BOOL else int(value)


@dataclass(frozen=True, slots=True)
class DepCall:
    """A call of a captured name: what is called, and the arguments that are plain names."""

    callee: str
    positional: tuple[str | None, ...]
    keywords: Mapping[str, str] = field(default_factory=dict)


class Definition:
    """The source of one function and what surrounds it."""

    def __init__(self, function: FunctionType, local_names: Mapping[str, Any]) -> None:
        self.function = function
        self._locals = local_names
        code = function.__code__
        self._cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        self.source: SourceText
        self.node: ast.FunctionDef
        self.source, self.node = find_function(
            code.co_filename, function.__name__, code.co_firstlineno, function.__globals__
        )
        self.captured = self._captured_from_outside()
        self.calls = list(_calls(self.node))
        self.parameters = self._parameters()
        self.own_symbols = self._own_symbols()

    def closure(self) -> Closure:
        """The values that are visible to the body now."""
        cells = {name: _contents(cell) for name, cell in self._cells.items()}
        filled = {name: value for name, value in cells.items() if value is not NOT_FOUND}
        return Closure(self.function.__globals__, self._locals, filled)

    def value_of(self, path: str) -> Any:
        """The present value of a captured (dotted) name, or `NOT_FOUND`."""
        root, *attributes = path.split(".")
        value: Any = NOT_FOUND
        cell = self._cells.get(root)
        if cell is not None:
            value = _contents(cell)
        elif root in self._locals:
            value = self._locals[root]
        else:
            value = self.function.__globals__.get(root, NOT_FOUND)
        for attribute in attributes:
            value = getattr(value, attribute, NOT_FOUND)
        return value

    def _captured_from_outside(self) -> list[str]:
        """The captured names that can mean something else tomorrow: not those of the language itself."""
        paths = sorted(set(_captured_names(self.node, _bound_names(self.node))))
        roots = {path: self.value_of(path.partition(".")[0]) for path in paths}
        return [path for path, root in roots.items() if not _is_own_module(root)]

    def text_hash(self) -> str:
        """Digest of the source text of the function."""
        return hashlib.sha256(self.source.segment(self.node).encode()).hexdigest()

    # -- parameters ------------------------------------------------------------------------------------------

    def _parameters(self) -> list[Parameter]:
        closure = self.closure()
        arguments = [*self.node.args.posonlyargs, *self.node.args.args]
        return [self._parameter(argument, closure) for argument in arguments if argument.arg != "self"]

    def _parameter(self, argument: ast.arg, closure: Closure) -> Parameter:
        name, annotation = argument.arg, _unquoted(argument.annotation)
        direction = ir.ParamDirection.In
        if isinstance(annotation, ast.Subscript) and last_name(annotation.value) in _DIRECTIONS:
            direction = _DIRECTIONS[last_name(annotation.value) or ""]
            annotation = _unquoted(annotation.slice)
        head = annotation.value if isinstance(annotation, ast.Subscript) else annotation
        leaf = last_name(head) if head is not None else None
        inside = annotation.slice if isinstance(annotation, ast.Subscript) else None
        parts = list(inside.elts) if isinstance(inside, ast.Tuple) else [inside] if inside is not None else []
        if leaf in _SHAPED:
            return self._shaped(name, _SHAPED[leaf], direction, parts, closure, argument)
        if leaf == "Array" and len(parts) == 2:
            extent = self._evaluate(parts[0], closure)
            return Parameter(name, Kind.ARRAY, direction, self._dtype(parts[1], closure), extent=extent)
        dtype_node = parts[0] if leaf == "Scalar" and len(parts) == 1 else annotation
        if leaf is None or dtype_node is None or (leaf == "Scalar" and not parts):
            raise self._missing(argument)
        dtype = self._dtype(dtype_node, closure, argument)
        return Parameter(name, Kind.SCALAR, direction, dtype)

    def _shaped(
        self,
        name: str,
        kind: Kind,
        direction: ir.ParamDirection,
        parts: list[ast.expr],
        closure: Closure,
        argument: ast.arg,
    ) -> Parameter:
        if not parts:
            return Parameter(name, kind, direction)
        shape = self._evaluate(parts[0], closure)
        if len(parts) < 2 or not isinstance(shape, (list, tuple)):
            raise ParserTypeError(
                f"Parameter '{name}': Tensor subscript requires [shape, dtype]",
                span=self.source.span(argument),
                hint="For example pl.Tensor[[64, 128], pl.FP32]",
            )
        dtype = self._dtype(parts[1], closure)
        layout = self._layout(parts[2], closure) if len(parts) > 2 else None
        return Parameter(name, kind, direction, dtype, tuple(shape), layout)

    def _layout(self, node: ast.expr, closure: Closure) -> ir.TensorLayout:
        value = ir.TensorLayout.__members__.get(last_name(node) or "")
        if value is None:
            value = self._evaluate(node, closure)
        if isinstance(value, ir.TensorView):
            raise TypeError("a jit parameter does not yet support a TensorView; write its layout alone")
        if not isinstance(value, ir.TensorLayout):
            raise ParserTypeError(
                f"'{ast.unparse(node)}' is not a tensor layout", span=self.source.span(node)
            )
        if value is ir.TensorLayout.DN:
            raise ParserTypeError(
                "pl.Tensor[..., pl.DN] is not supported as a jit parameter",
                span=self.source.span(node),
                hint="Pass the tensor as it is stored and use pl.transpose_view",
            )
        return value

    def _dtype(self, node: ast.expr, closure: Closure, argument: ast.arg | None = None) -> ir.DataType:
        found = DTYPES.get(last_name(node) or "")
        if found is None:
            try:
                found = self._evaluate(node, closure)
            except ParserTypeError:
                found = None
        if isinstance(found, ir.DataType):
            return found
        if argument is not None:
            raise self._missing(argument)
        raise ParserTypeError(f"'{ast.unparse(node)}' is not a data type", span=self.source.span(node))

    def _evaluate(self, node: ast.expr, closure: Closure) -> Any:
        return closure.evaluate(node, self.source.span(node))

    def _missing(self, argument: ast.arg) -> ParserTypeError:
        return ParserTypeError(
            f"Parameter '{argument.arg}' missing type annotation",
            span=self.source.span(argument),
            hint="Write pl.Tensor, pl.Tensor[[...], dtype], pl.Scalar[dtype] or a data type such as pl.INT32",
        )

    # -- symbolic dimensions ---------------------------------------------------------------------------------

    def _own_symbols(self) -> dict[str, dict[int, str]]:
        """Symbol names by parameter and axis, from annotations and `bind_dynamic`."""
        found: dict[str, dict[int, str]] = {p.name: {} for p in self.parameters}
        for parameter in self.parameters:
            for axis, extent in enumerate(parameter.dims or ()):
                if isinstance(extent, DynVar):
                    found[parameter.name][axis] = extent.name
        local: dict[str, DynVar] = {}
        for statement in ast.walk(self.node):
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                declared = declared_dynamic(statement.value)
                if declared is not None:
                    local[statement.targets[0].id] = declared
        for call in ast.walk(self.node):
            if isinstance(call, ast.Call) and is_bind_dynamic(call):
                self._bind_dynamic(call, local, found)
        return found

    def _bind_dynamic(
        self, call: ast.Call, local: dict[str, DynVar], found: dict[str, dict[int, str]]
    ) -> None:
        assert isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)
        owner = call.func.value.id
        axis = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
        path = dotted_name(call.args[1]) if len(call.args) == 2 else None
        symbol = local[path] if path in local else self.value_of(path) if path else None
        if owner not in found or not isinstance(axis, int) or not isinstance(symbol, DynVar):
            raise ParserTypeError(
                "bind_dynamic takes an axis and a pl.dynamic() symbol, on a parameter",
                span=self.source.span(call),
                hint='For example a.bind_dynamic(0, M) with M = pl.dynamic("M")',
            )
        found[owner][axis] = symbol.name


def _contents(cell: CellType) -> Any:
    """The value of a variable of an enclosing function; `NOT_FOUND` before it is assigned."""
    try:
        return cell.cell_contents
    except ValueError:
        return NOT_FOUND


def _is_own_module(value: Any) -> bool:
    return isinstance(value, ModuleType) and value.__name__.partition(".")[0] == "pypto"


def _unquoted(annotation: ast.expr | None) -> ast.expr | None:
    """An annotation that is written as a string, as the expression it quotes."""
    if not (isinstance(annotation, ast.Constant) and isinstance(annotation.value, str)):
        return annotation
    return parsed_at(annotation, annotation.value)


def _bound_names(node: ast.FunctionDef) -> set[str]:
    names = {argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    names.update(
        inner.id
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
    )
    return names


def _captured_names(node: ast.FunctionDef, own: set[str]) -> Iterator[str]:
    """The longest dotted names whose root the function does not bind."""
    pending: list[ast.AST] = [*node.body, *(a.annotation for a in node.args.args if a.annotation is not None)]
    if node.returns is not None:
        pending.append(node.returns)
    while pending:
        inner = pending.pop()
        path = dotted_name(inner) if isinstance(inner, (ast.Attribute, ast.Name)) else None
        if path is None:
            pending.extend(ast.iter_child_nodes(inner))
        elif path.partition(".")[0] not in own:
            yield path


def _calls(node: ast.FunctionDef) -> Iterator[DepCall]:
    for call in ast.walk(node):
        if not isinstance(call, ast.Call):
            continue
        path = dotted_name(call.func)
        arguments = call.args
        if path in ("pl.submit", "pl.spmd_submit") and arguments:
            path, arguments = dotted_name(arguments[0]), arguments[1:]
        if path is not None:
            yield DepCall(
                path,
                tuple(_plain_name(argument) for argument in arguments),
                {k.arg: name for k in call.keywords if k.arg and (name := _plain_name(k.value)) is not None},
            )


def _plain_name(node: ast.expr) -> str | None:
    return node.id if isinstance(node, ast.Name) else None


def constant_key(value: Any) -> Any:
    """What identifies a captured constant, or None for values that are no constants of a program."""
    if isinstance(value, DynVar):
        return ("symbol", value.name)
    if isinstance(value, (bool, int, float, str)):
        return (type(value).__name__, value)
    if isinstance(value, ir.DataType):
        return ("dtype", str(value))
    if isinstance(value, enum.Enum):
        return (type(value).__name__, value.name)
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, *(constant_key(item) for item in value))
    if isinstance(value, dict):
        return ("dict", *((constant_key(name), constant_key(item)) for name, item in value.items()))
    return None
