"""What the methods of one program share while they are parsed."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from pypto import ir
from pypto.language.parser.diagnostics import ParserSyntaxError
from pypto.language.typing import DynVar


@dataclass(slots=True)
class ProgramContext:
    """Shared state. A standalone function gets one of its own, without methods."""

    global_vars: dict[str, ir.GlobalVar] = field(default_factory=dict)
    functions: dict[str, ir.Function] = field(default_factory=dict)
    externals: dict[str, ir.Function] = field(default_factory=dict)
    definitions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    dyn_vars: dict[str, ir.Var] = field(default_factory=dict)
    unbound_symbols: dict[str, ir.Var] = field(default_factory=dict)
    # per name: the methods that bind it; filled when it is first needed
    binders: dict[str, set[str]] = field(default_factory=dict)
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
            self.dyn_vars[name] = self.unbound_symbols[name] = var
        return var

    def variable(self, name: str, kind: ir.Type, span: ir.Span) -> ir.Var:
        """The new variable of a method.

        An outlined kernel's types go on naming the scalars of its caller. Such a scalar is the symbol that
        the types of the kernel, read before, mention by name.
        """
        if isinstance(kind, ir.ScalarType) and kind.dtype == ir.DataType.INDEX:
            symbol = self.unbound_symbols.pop(name, None)
            if symbol is not None:
                return symbol
        return ir.Var(name, kind, span)

    def is_bound_elsewhere(self, name: str, method: str) -> bool:
        """Whether another method than the one of that name binds `name` to a value."""
        if not self.binders:
            for definition in self.definitions.values():
                for bound in _bound_names(definition):
                    self.binders.setdefault(bound, set()).add(definition.name)
        return bool(self.binders.get(name, set()) - {method})

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


def _bound_names(definition: ast.FunctionDef) -> set[str]:
    nodes = list(ast.walk(definition))
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return stored | {n.arg for n in nodes if isinstance(n, ast.arg)}
