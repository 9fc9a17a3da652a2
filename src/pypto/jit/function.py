"""A function of the `@pl.jit` family: lowered, compiled and called for the arguments it is given."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

from pypto import ir
from pypto.jit.arguments import Fact, bind, facts_of_samples, facts_of_signature, is_tensor
from pypto.jit.call_graph import CallGraph
from pypto.jit.definition import Definition, Kind
from pypto.jit.extern import External
from pypto.jit.options import compile_options, key_of_config, lower_program
from pypto.jit.program import JitProgram, tensor_type
from pypto.language.specialisation import GivenArguments, GivenParameter, SpecialisedFunction
from pypto.runtime.compile import compile

if TYPE_CHECKING:
    from pypto.language.parser.program_context import ProgramContext
    from pypto.runtime.compiled_program import CompiledProgram
    from pypto.runtime.distributed import DistributedCompiledProgram

_DEP_KINDS = frozenset({"incore", "inline", "opaque", "extern"})


class JITFunction(SpecialisedFunction):
    """A Python function that is compiled for what it is called with. Nothing is parsed before the first use.

    Made by `@pl.jit` and its forms. The in-memory cache holds one compiled program per combination of
    extents, element types, layouts, scalar values, captured constants, source text and compile options.
    """

    def __init__(
        self,
        function: FunctionType,
        kind: str,
        *,
        level: ir.Level | None = None,
        auto_scope: bool = True,
        local_names: Mapping[str, Any] | None = None,
        external: External | None = None,
    ) -> None:
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self._func = function
        self._func_type = kind
        self._level = level
        self._auto_scope = auto_scope
        self._cache: dict[Any, CompiledProgram | DistributedCompiledProgram] = {}
        self._local_names = dict(local_names or {})
        self._signature = inspect.signature(function)
        self._definition: Definition | None = None
        self._known_graph: CallGraph | None = None
        self.external = external

    def __repr__(self) -> str:
        return f"JITFunction({self.__name__!r}, func_type={self._func_type!r})"

    # -- what the program builder asks -----------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """orchestration, host, incore, inline, opaque or extern."""
        return self._func_type

    @property
    def level(self) -> ir.Level | None:
        """The machine level given to the decorator."""
        return self._level

    @property
    def auto_scope(self) -> bool:
        """Whether the compiler places runtime scopes in this function."""
        return self._auto_scope

    @property
    def definition(self) -> Definition:
        """What the source says, found on first use."""
        if self._definition is None:
            self._definition = Definition(self._func, self._local_names)
        return self._definition

    @property
    def parameter_names(self) -> list[str]:
        """Names of the positional parameters."""
        return [parameter.name for parameter in self.definition.parameters]

    def is_dep_of(self, entry: JITFunction) -> bool:
        """Whether a call of this function makes it part of the entry's program."""
        return self.kind in _DEP_KINDS or (self.kind == "orchestration" and entry.kind == "host")

    def specialise(self, program: ProgramContext, arguments: GivenArguments) -> ir.Function:
        """The version of this function for the arguments of one call."""
        if not isinstance(program, JitProgram):
            raise TypeError(
                f"{self!r} can be called from functions of the @pl.jit family alone; "
                f"in a @pl.program write a method"
            )
        return program.version(self, arguments)

    def annotated_program(self) -> ir.Program:
        """The program, before any pass, for the shapes in the annotations and the defaults of scalars.

        Raises `TypeError` when these do not say enough.
        """
        graph = self._graph()
        return self._program(graph, self._facts(graph, (), {}), runnable=True)

    # -- what a user calls -----------------------------------------------------------------------------------

    def lower(self, *args: Any, config: Any = None, **kwargs: Any) -> ir.Program:
        """The program for these arguments after all passes. Nothing is written or cached.

        Without arguments the annotations say the shapes; scalars are then given by keyword, or as
        `pl.RUNTIME`.

        Raises `TypeError` for arguments that do not fit, `ValueError` for an inline entry, and what the
        parser and the passes raise.
        """
        graph = self._graph()
        facts = self._facts(graph, args, kwargs)
        return lower_program(self._program(graph, facts, runnable=False), config)

    def compile(
        self, *args: Any, config: Any = None, **kwargs: Any
    ) -> CompiledProgram | DistributedCompiledProgram:
        """The compiled program for these arguments; the same object for arguments that need no other one."""
        graph = self._graph()
        return self._compiled(graph, self._facts(graph, args, kwargs), config)

    def __call__(self, *args: Any, config: Any = None, **kwargs: Any) -> Any:
        """Compile if needed, then run in place on the given tensors.

        Trailing output parameters may be left out when their annotations say the shapes: then they are made
        and returned.
        """
        graph = self._graph()
        values = self._values(self._signature_of_call(args, kwargs), args, kwargs)
        facts = self._facts_of_values(graph, values)
        compiled = self._compiled(graph, facts, config)
        result = compiled(*values.values(), config=config)
        return result if len(values) < len(facts) else None

    # -- specialisation --------------------------------------------------------------------------------------

    def _graph(self) -> CallGraph:
        if self.kind == "inline":
            raise ValueError(f"{self.__name__}: an inline function cannot be an entry")
        if self._known_graph is None or not self._known_graph.is_current():
            self._known_graph = CallGraph(self)
        return self._known_graph

    def _facts(self, graph: CallGraph, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Fact]:
        """What the program depends on: in sample arguments or, without any, in the annotations."""
        if args or any(is_tensor(value) for value in kwargs.values()):
            return self._facts_of_values(graph, self._values(self._signature, args, kwargs))
        if kwargs.keys() - self._signature.parameters.keys():
            bind(self._signature, self.__name__, args, kwargs)  # says which is unknown
        defaults = {
            name: p.default for name, p in self._signature.parameters.items() if p.default is not p.empty
        }
        symbols = graph.symbols_of(self.definition)
        return facts_of_signature(self.definition.parameters, symbols, {**defaults, **kwargs})

    def _facts_of_values(self, graph: CallGraph, values: Mapping[str, Any]) -> list[Fact]:
        return facts_of_samples(self.definition.parameters, graph.symbols_of(self.definition), values)

    def _values(
        self, signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The arguments by parameter name, in the order of the parameters."""
        names = self.parameter_names
        if not kwargs and len(args) == len(names):
            return dict(zip(names, args, strict=True))
        bound = bind(signature, self.__name__, args, kwargs)
        return {name: bound[name] for name in names if name in bound}

    def _signature_of_call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> inspect.Signature:
        """The signature without the trailing outputs that a call leaves out."""
        left_out = self._left_out(args, kwargs)
        if not left_out:
            return self._signature
        kept = [p for name, p in self._signature.parameters.items() if name not in left_out]
        return self._signature.replace(parameters=kept)

    def _left_out(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> frozenset[str]:
        """Trailing outputs without an argument; all outputs or none can be left out."""
        parameters = self.definition.parameters
        if len(args) == len(parameters):
            return frozenset()
        trailing = []
        for parameter in reversed(parameters):
            if parameter.direction is not ir.ParamDirection.Out or not parameter.is_shaped:
                break
            if parameter.dims is None or parameter.dtype is None:
                return frozenset()  # nothing says what to make; binding names it as missing
            trailing.append(parameter.name)
        given = len(args)
        if given + len(kwargs) == len(parameters) - len(trailing) and not kwargs.keys() & set(trailing):
            return frozenset(trailing)
        return frozenset()

    def _program(self, graph: CallGraph, facts: Sequence[Fact], *, runnable: bool) -> ir.Program:
        program = JitProgram(self, graph)
        symbols = graph.symbols_of(self.definition)
        given = []
        for parameter, fact in zip(self.definition.parameters, facts, strict=True):
            axes = symbols[parameter.name]
            kind: ir.Type
            if fact.extents is not None:
                assert fact.dtype is not None
                extents = [
                    program.symbol(axes[axis]) if extent is None else extent
                    for axis, extent in enumerate(fact.extents)
                ]
                shaped = ir.DistributedTensorType if parameter.kind is Kind.WINDOW else ir.TensorType
                kind = tensor_type(extents, fact.dtype, fact.layout, shaped)
            else:
                kind = parameter.unshaped_type
            constant = parameter.constant(fact.constant)
            given.append(GivenParameter(parameter.name, kind, parameter.direction, constant))
        return program.build(given, runnable=runnable)

    def _compiled(
        self, graph: CallGraph, facts: Sequence[Fact], config: Any
    ) -> CompiledProgram | DistributedCompiledProgram:
        key = (
            graph.source_key,
            graph.external_keys(),
            tuple(fact.key for fact in facts),
            key_of_config(config),
        )
        found = self._cache.get(key)
        if found is None:
            found = compile(self._program(graph, facts, runnable=True), **compile_options(config))
            constants = {
                parameter.name: fact.constant
                for parameter, fact in zip(self.definition.parameters, facts, strict=True)
                if fact.constant is not None
            }
            found.fix_scalars(constants)
            self._cache[key] = found
        return found
