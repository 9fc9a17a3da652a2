"""Which variables a function uses: in expressions and attributes, and memory bases of what is used."""

from __future__ import annotations

from collections.abc import Iterator

from pypto import ir
from pypto.ir.walk import exprs_of, vars_in, walk_stmts
from pypto.passes.verify.definitions import definitions_of


def used_vars(function: ir.Function) -> set[ir.Var]:
    """Return every variable that the body uses."""
    used: set[ir.Var] = set()
    for stmt in walk_stmts(function.body):
        defined = set(definitions_of(stmt))
        for expr in exprs_of(stmt):
            if expr not in defined:
                used.update(vars_in(expr))
    for var in list(used):
        used.update(_memory_bases(var.type))
    return used


def _memory_bases(type_: ir.Type) -> Iterator[ir.Var]:
    if isinstance(type_, ir.TupleType):
        for element in type_.types_:
            yield from _memory_bases(element)
    elif isinstance(type_, ir.ShapedType) and type_.memref is not None:
        yield type_.memref.base_
