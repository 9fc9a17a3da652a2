"""What the methods of one program share while they are parsed."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from pypto import ir
from pypto.language.parser.diagnostics import ParserSyntaxError
from pypto.language.typing import DynVar


@dataclass(frozen=True, slots=True)
class _Names:
    """What a method binds, and the methods that it mentions."""

    bound: frozenset[str]
    methods: frozenset[str]


@dataclass(slots=True)
class ProgramContext:
    """Shared state. A standalone function gets one of its own, without methods."""

    global_vars: dict[str, ir.GlobalVar] = field(default_factory=dict)
    functions: dict[str, ir.Function] = field(default_factory=dict)
    externals: dict[str, ir.Function] = field(default_factory=dict)
    definitions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    dyn_vars: dict[str, ir.Var] = field(default_factory=dict)
    # scalars that types of dispatched methods name, by the dispatching method and their name
    caller_scalars: dict[tuple[str, str], ir.Var] = field(default_factory=dict)
    bound_scalars: set[ir.Var] = field(default_factory=set)
    names_in: dict[str, _Names] = field(default_factory=dict)
    window_buffers: set[str] = field(default_factory=set)
    # per method: buffer name -> constant keywords of its reserve_buffer call
    reserved_buffers: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    is_program: bool = False
    strict_ssa: bool = False
    annotation_types: dict[str, ir.Type] = field(default_factory=dict)

    def symbol(self, name: str) -> ir.Var:
        """The variable of a symbolic dimension that is known by name only."""
        var = self.dyn_vars.get(name)
        if var is None:
            var = ir.Var(name, ir.ScalarType(ir.DataType.INDEX), ir.Span.unknown())
            self.dyn_vars[name] = var
        return var

    def caller_scalar(self, name: str, method: str) -> ir.Var | None:
        """What a type in the signature of `method` means by the name of a scalar of its caller.

        An outlined kernel's types go on naming such scalars. None when nothing that dispatches `method`, even
        through others, binds the name.
        """
        seen, pending = {method}, [method]
        while pending:
            called = pending.pop(0)
            for caller, definition in self.definitions.items():
                names = self.names_in.get(caller) or self.names_in.setdefault(caller, _names_in(definition))
                if caller in seen or called not in names.methods:
                    continue
                if name in names.bound:
                    new = ir.Var(name, ir.ScalarType(ir.DataType.INDEX), ir.Span.unknown())
                    return self.caller_scalars.setdefault((caller, name), new)
                seen.add(caller)
                pending.append(caller)
        return None

    def variable(self, method: str, name: str, kind: ir.Type, span: ir.Span) -> ir.Var:
        """A new variable of a method: the one that types of what it dispatches, read before, have named."""
        known = self.caller_scalars.get((method, name))
        if known is None or known in self.bound_scalars or known.type != kind:
            return ir.Var(name, kind, span)
        self.bound_scalars.add(known)
        return known

    def resolve_dyn(self, dyn: DynVar) -> ir.Var:
        """The variable of a `pl.dynamic` object; objects of one name without a variable share one."""
        if not dyn.has_expr():
            known = self.dyn_vars.get(dyn.name)
            if known is not None:
                dyn.bind(known)
        var = dyn.unwrap()
        assert isinstance(var, ir.Var)
        self.dyn_vars.setdefault(dyn.name, var)
        return var

    def add_external(self, function: ir.Function, span: ir.Span) -> None:
        """Remember a function from outside that a body calls.

        Raises:
            ParserSyntaxError: its name belongs to a method, or to another external function.
        """
        if function.name in self.global_vars:
            raise ParserSyntaxError(
                f"External function '{function.name}' conflicts with program function '{function.name}'",
                span=span,
                hint="Rename one of the two functions",
            )
        known = self.externals.setdefault(function.name, function)
        if known is not function:
            raise ParserSyntaxError(
                f"Conflicting external functions with name '{function.name}'",
                span=span,
                hint="Two different functions of one name cannot be part of one program; rename one of them",
            )


def _names_in(definition: ast.FunctionDef) -> _Names:
    nodes = list(ast.walk(definition))
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    methods = {
        n.attr
        for n in nodes
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self"
    }
    return _Names(frozenset(stored | {n.arg for n in nodes if isinstance(n, ast.arg)}), frozenset(methods))
