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
