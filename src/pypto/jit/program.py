"""Building the program of one specialisation: the entry is parsed, and each function it calls when the call
is reached.

A called function gets one version per combination of what its parameters are: extents, element types,
layouts, and the values of scalars that a specialised scalar of the caller was passed for. The versions are
named `f`, `f_1`, ... in the order of their first calls.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pypto import ir
from pypto.core.garbage import paused_gc
from pypto.ir.views import same_extent, same_extents
from pypto.jit.call_graph import CallGraph
from pypto.jit.definition import Kind, Parameter
from pypto.language.parser.diagnostics import ParserTypeError, UnsupportedFeatureError
from pypto.language.parser.entry import source_lines_attached
from pypto.language.parser.function_definitions import FunctionOptions, define_function
from pypto.language.parser.program_context import ProgramContext
from pypto.language.specialisation import GivenArguments, GivenParameter, Specialisation

if TYPE_CHECKING:
    from pypto.jit.function import JITFunction

_OPTIONS: dict[str, dict[str, Any]] = {
    "orchestration": {"func_type": ir.FunctionType.Orchestration},
    "host": {"level": ir.Level.HOST, "role": ir.Role.Orchestrator},
    "incore": {"func_type": ir.FunctionType.InCore},
    "inline": {"func_type": ir.FunctionType.Inline},
    "opaque": {"func_type": ir.FunctionType.Opaque},
}


class JitCallError(ParserTypeError, ValueError):
    """A call of a jit function that no version of it can be made for."""


class JitProgram(ProgramContext):
    """The functions of one specialisation while they are parsed."""

    def __init__(self, entry: JITFunction, graph: CallGraph) -> None:
        super().__init__(is_program=True)
        self._entry = entry
        self._graph = graph
        self._versions: dict[tuple[Any, ...], ir.Function | None] = {}  # None while its body is parsed
        self._taken = {entry.__name__}
        self._finished: list[ir.Function] = []
        self._warned: set[JITFunction] = set()

    def build(self, parameters: Sequence[GivenParameter], *, runnable: bool) -> ir.Program:
        """The program whose entry has these parameters; to be `runnable` a kernel needs a caller."""
        with paused_gc():
            entry = self._define(self._entry, self._entry.__name__, parameters)
        if runnable and self._entry.kind in ("incore", "extern"):
            self._finished.append(_caller_of(entry, _unused(f"{entry.name}_entry", self._taken)))
        return ir.Program(self._finished, f"_jit_{self._entry.__name__}", entry.span)

    def resolve_dyn(self, dyn: Any) -> ir.Var:
        """Symbols of one name are one symbol, in whatever module they were made."""
        return self.symbol(dyn.name)

    # -- called functions ------------------------------------------------------------------------------------

    def version(self, callee: JITFunction, arguments: GivenArguments) -> ir.Function:
        """The version of `callee` for these arguments.

        Raises:
            JitCallError: a tensor parameter is given something else, or functions call in a circle.
        """
        if not callee.is_dep_of(self._entry):
            raise UnsupportedFeatureError(
                f"Unsupported function call: {callee.__name__}()",
                span=arguments.span,
                hint="An entry cannot call another entry; make it @pl.jit.inline or @pl.jit.incore",
            )
        parameters = self._given(callee, arguments)
        key = (callee, *(_key_of(parameter) for parameter in parameters))
        if key not in self._versions:
            self._versions[key] = None
            name = self._new_name(callee.__name__)
            self.global_vars[name] = ir.GlobalVar(name)
            function = self._define(callee, name, parameters)
            self._versions[key] = self.functions[name] = function
        found = self._versions[key]
        if found is None:
            name = callee.__name__
            raise JitCallError(
                f"Cycle detected in FunctionType::Inline call graph: {name} -> {name}",
                span=arguments.span,
                hint="Write the repetition as a loop",
            )
        return found

    def _given(self, callee: JITFunction, arguments: GivenArguments) -> list[GivenParameter]:
        definition = callee.definition
        symbols = self._graph.symbols_of(definition)
        inline = callee.kind == "inline"
        if inline:
            self._warn_of_directions(callee)
        given = []
        for position, (parameter, value) in enumerate(
            zip(definition.parameters, arguments.values, strict=True)
        ):
            direction = ir.ParamDirection.In if inline else parameter.direction
            value_of_caller = arguments.constants.get(position) if parameter.kind is Kind.SCALAR else None
            kind = self._type(parameter, value.type, symbols[parameter.name], arguments.span)
            if callee.kind == "incore" and parameter.direction is ir.ParamDirection.In:
                kind = self._valid_in_part(parameter.name, kind, value.type)
            given.append(GivenParameter(parameter.name, kind, direction, parameter.constant(value_of_caller)))
        return given

    def _type(
        self, parameter: Parameter, argument: ir.Type, symbols: dict[int, str], span: ir.Span
    ) -> ir.Type:
        if not parameter.is_shaped:
            return parameter.unshaped_type
        if not isinstance(argument, ir.TensorType):
            raise JitCallError(
                f"@pl.jit: missing inferred tensor metadata for parameter '{parameter.name}'",
                span=span,
                hint=f"The argument is of type {argument}; pass a tensor",
            )
        extents = [
            self._extent(parameter.name, axis, extent, symbols.get(axis))
            for axis, extent in enumerate(argument.shape_)
        ]
        layout = parameter.layout
        if layout is None and argument.tensor_view is not None:
            layout = argument.tensor_view.layout
        kind = type(argument) if parameter.kind is Kind.WINDOW else ir.TensorType
        return tensor_type(extents, argument.dtype, layout, kind)

    def _valid_in_part(self, name: str, kind: ir.Type, argument: ir.Type) -> ir.Type:
        """The type of a parameter for a window of which the caller knows that it is valid in part."""
        view = argument.tensor_view if isinstance(argument, ir.TensorType) else None
        if not isinstance(kind, ir.TensorType) or view is None or not view.valid_shape_:
            return kind
        assert isinstance(argument, ir.TensorType)
        if same_extents(view.valid_shape_, argument.shape_):
            return kind
        layout = ir.TensorLayout.ND if kind.tensor_view is None else kind.tensor_view.layout
        valid = [
            kind.shape_[axis]
            if same_extent(extent, argument.shape_[axis])
            else self._extent(name, axis, extent, None)
            for axis, extent in enumerate(view.valid_shape_)
        ]
        return type(kind)(kind.shape_, kind.dtype, None, ir.TensorView([], layout, valid))

    def _extent(self, name: str, axis: int, extent: ir.Expr, symbol: str | None) -> Any:
        if symbol is not None:
            return self.symbol(symbol)
        if isinstance(extent, ir.ConstInt):
            return extent.value
        if isinstance(extent, ir.Var) and self.dyn_vars.get(extent.name_hint) is extent:
            return extent
        return self.symbol(_unused(f"{name}_{axis}", self.dyn_vars))

    def _warn_of_directions(self, callee: JITFunction) -> None:
        names = [p.name for p in callee.definition.parameters if p.direction is not ir.ParamDirection.In]
        if names and callee not in self._warned:
            self._warned.add(callee)
            warnings.warn(
                f"inline function '{callee.__name__}': pl.Out / pl.InOut on {', '.join(names)} has no "
                f"effect; an inline function's parameters are its caller's variables. Write pl.Tensor",
                DeprecationWarning,
                stacklevel=2,
            )

    def _new_name(self, name: str) -> str:
        found = _unused(name, self._taken)
        self._taken.add(found)
        return found

    # -- definitions -----------------------------------------------------------------------------------------

    def _define(self, jitted: JITFunction, name: str, parameters: Sequence[GivenParameter]) -> ir.Function:
        definition = jitted.definition
        if jitted.external is not None:
            span = definition.source.head_span(definition.node)
            functions = jitted.external.functions(name, parameters, span)
            self._finished.extend(functions)
            return functions[-1]
        options = FunctionOptions(
            **_OPTIONS[jitted.kind],
            auto_scope=jitted.auto_scope,
            specialisation=Specialisation(name, parameters),
        )
        if jitted.level is not None:
            options.level = jitted.level
        source = definition.source
        with source_lines_attached(source.lines, source.filename):
            function = define_function(source, definition.node, definition.closure(), self, options)
        self._finished.append(function)
        return function


def _caller_of(kernel: ir.Function, name: str) -> ir.Function:
    """An orchestration that dispatches a kernel once and returns what it returns."""
    span = kernel.span
    params = [ir.Var(param.name_hint, param.type, span) for param in kernel.params_]
    results = kernel.return_types
    kind = ir.TupleType(results) if len(results) > 1 else results[0] if results else ir.UnknownType.get()
    call = ir.Call(ir.GlobalVar(kernel.name), params, {}, {}, kind, span)
    result = ir.Var("result", kind, span)
    returned: list[ir.Expr] = [result] if len(results) == 1 else []
    if len(results) > 1:
        returned = [ir.TupleGetItemExpr(result, position, span) for position in range(len(results))]
    first = ir.AssignStmt(result, call, span) if results else ir.EvalStmt(call, span)
    return ir.Function(
        name,
        list(zip(params, kernel.param_directions_, strict=True)),
        results,
        ir.SeqStmts([first, ir.ReturnStmt(returned, span)], span),
        span,
        ir.FunctionType.Orchestration,
    )


def tensor_type(
    extents: Sequence[Any],
    dtype: ir.DataType,
    layout: ir.TensorLayout | None,
    kind: type[ir.TensorType] = ir.TensorType,
) -> ir.TensorType:
    """The type of a tensor parameter; ND is what a type without a view means."""
    if layout is None or layout is ir.TensorLayout.ND:
        return kind(list(extents), dtype)
    return kind(list(extents), dtype, None, ir.TensorView([], layout))


def _key_of(parameter: GivenParameter) -> tuple[Any, ...]:
    constant = parameter.constant
    return (
        str(parameter.type),
        None if constant is None else (type(constant), constant),
    )


def _unused(name: str, taken: Any) -> str:
    found, count = name, 0
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    return found
