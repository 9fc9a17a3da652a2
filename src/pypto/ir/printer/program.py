"""Canonical text of functions and programs."""

from __future__ import annotations

from pypto.ir.enums import FunctionType, ParamDirection, Role, SplitMode
from pypto.ir.printer.attributes import attr_text
from pypto.ir.printer.literals import double_quoted
from pypto.ir.printer.names import (
    FunctionVars,
    TypeSymbols,
    declared_symbols,
    function_names,
    function_order,
    function_vars,
)
from pypto.ir.printer.state import INDENT, State
from pypto.ir.printer.statements import body_list, print_statements
from pypto.ir.printer.types import type_text
from pypto.ir.program import Function, Program
from pypto.ir.stmt import ReturnStmt, Stmt, YieldStmt

__all__ = ["print_function", "print_program"]

_DECORATOR_ATTRS = frozenset({"auto_scope", "external_source"})


def print_program(state: State, program: Program) -> None:
    """Header, symbol declarations, and the class with its functions, callees first."""
    state.in_program = True
    types = TypeSymbols()
    variables = {name: function_vars(function, types) for name, function in program.functions_.items()}
    declared = declared_symbols(program, variables)
    name = program.name or "Program"
    module = (
        "import pypto.language as pl"
        if state.prefix == "pl"
        else f"from pypto import language as {state.prefix}"
    )
    lines = state.lines
    lines += [f"# pypto.program: {name}", module, ""]
    if declared:
        lines += [f'{symbol} = {state.prefix}.dynamic("{symbol}")' for symbol in sorted(declared.values())]
        lines.append("")
    lines += [f"@{state.prefix}.program", f"class {name}:"]
    if not program.functions_:
        lines.append(f"{INDENT}pass")
    for function in function_order(program, variables):
        _print_function(state, function, variables[function.name], declared, INDENT)


def print_function(state: State, function: Function) -> None:
    """A function outside a program: no header, no declarations, no `self`."""
    _print_function(state, function, function_vars(function, TypeSymbols()), {}, "")


def _print_function(
    state: State, function: Function, variables: FunctionVars, declared: dict[int, str], indent: str
) -> None:
    names = function_names(function, variables, declared)
    state.enter_function(names, frozenset(id(var) for var in variables.body.defined))
    state.lines.append(indent + _decorator(state, function))
    state.in_signature = True
    state.lines.append(indent + _signature(state, function))
    state.in_signature = False
    _print_body(state, function, indent + INDENT)


def _decorator(state: State, function: Function) -> str:
    p = state.prefix
    parts = []
    if function.func_type is not FunctionType.Opaque:
        parts.append(f"type={p}.FunctionType.{function.func_type.name}")
    if function.level is not None:
        parts.append(f"level={p}.Level.{function.level.name}")
    if function.role is not None:
        parts.append(f"role={p}.Role.{function.role.name}")
    if function.attrs_.get("auto_scope") is False:
        parts.append("auto_scope=False")
    external = function.attrs_.get("external_source")
    if external:
        parts.append(f"external_source={double_quoted(external)}")
    return f"@{p}.function({', '.join(parts)})" if parts else f"@{p}.function"


def _signature(state: State, function: Function) -> str:
    p = state.prefix
    params = ["self"] if state.in_program and function.role is not Role.SubWorker else []
    for var, direction in zip(function.params_, function.param_directions_, strict=True):
        text = type_text(state, var.type)
        if direction is not ParamDirection.In:
            text = f"{p}.{direction.name}[{text}]"
        params.append(f"{state.name(var)}: {text}")
    returns = [type_text(state, type_) for type_ in function.return_types_]
    arrow = ""
    if returns:
        arrow = f" -> {returns[0]}" if len(returns) == 1 else f" -> tuple[{', '.join(returns)}]"
    return f"def {function.name}({', '.join(params)}){arrow}:"


def _print_body(state: State, function: Function, indent: str) -> None:
    entries = []
    for key, value in function.attrs_.items():
        if key in _DECORATOR_ATTRS or (key == "split" and value == 0):
            continue
        if key == "split":
            text = f"{state.prefix}.SplitMode.{SplitMode(value).name}"
        else:
            text = attr_text(state, key, value)
        entries.append(f"{double_quoted(key)}: {text}")
    if entries:
        state.lines.append(f"{indent}{state.prefix}.func_attr({{{', '.join(entries)}}})")
    if function.requires_runtime_binding:
        state.lines.append(f"{indent}...")
        return
    print_statements(state, [_as_return(stmt) for stmt in body_list(function.body)], indent)


def _as_return(stmt: Stmt) -> Stmt:
    """A yield at function level is what the function returns."""
    return ReturnStmt(stmt.value, stmt.span) if isinstance(stmt, YieldStmt) else stmt
