"""Visitors and mutators for users, with one overridable method per node class.

A subclass overrides `visit_<class>` in snake case and calls `super().visit_<class>(op)` for the default
recursion. The override is called for every node of its kind, nested ones included. `visit_binary_expr` and
`visit_unary_expr` stand for all arithmetic classes that have no override of their own, `visit_expr` and
`visit_stmt` for every
node.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pypto.core.errors import internal_error
from pypto.ir import expr as exprs
from pypto.ir import scope as scopes
from pypto.ir import stmt as stmts
from pypto.ir.expr import BinaryExpr, Expr, IterArg, UnaryExpr, Var
from pypto.ir.node import IRNode, attr_references
from pypto.ir.program import Function, Program
from pypto.ir.rewrite import Substitution, definitions_of
from pypto.ir.scope import ScopeStmt
from pypto.ir.stmt import SeqStmts, Stmt, flatten_stmts
from pypto.ir.types import DistributedTensorType, TensorType


def _method_name(cls: type[IRNode]) -> str:
    return "visit_" + re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()


def _concrete(module: Any, base: type[IRNode]) -> list[type[IRNode]]:
    return [
        cls
        for cls in vars(module).values()
        if isinstance(cls, type)
        and issubclass(cls, base)
        and cls.__module__ == module.__name__
        and not cls.ABSTRACT
    ]


_EXPR_CLASSES = _concrete(exprs, Expr)
_STMT_CLASSES = _concrete(stmts, Stmt) + _concrete(scopes, ScopeStmt)
_METHODS: dict[type[IRNode], str] = {cls: _method_name(cls) for cls in (*_EXPR_CLASSES, *_STMT_CLASSES)}


def _grouped(cls: type[IRNode]) -> str | None:
    if issubclass(cls, BinaryExpr):
        return "visit_binary_expr"
    if issubclass(cls, UnaryExpr):
        return "visit_unary_expr"
    return None


class IRVisitor:
    """Walks a program for its effects."""

    def visit_program(self, program: Program) -> None:
        for function in program.functions_.values():
            self.visit_function(function)

    def visit_function(self, func: Function) -> None:
        for param in func.params_:
            self.visit_expr(param)
        for reference in attr_references(func.attrs_):
            self.visit_expr(reference)
        self.visit_stmt(func.body)

    def visit_expr(self, expr: Expr) -> None:
        _dispatch(self, expr)

    def visit_stmt(self, stmt: Stmt) -> None:
        _dispatch(self, stmt)

    def visit_var_like(self, op: Var) -> None:
        if isinstance(op.type, TensorType) and not isinstance(op.type, DistributedTensorType):
            for dim in op.type.shape_:
                self.visit_expr(dim)

    def visit_binary_expr(self, op: BinaryExpr) -> None:
        _visit_children(self, op)

    def visit_unary_expr(self, op: UnaryExpr) -> None:
        _visit_children(self, op)


class IRMutator:
    """Rewrites a program copy-on-write: a node is rebuilt only if something below it changed."""

    def __init__(self) -> None:
        self._remapped = _MutatorSubstitution(self)

    def visit_program(self, program: Program) -> Program:
        return program.replace(functions=[self.visit_function(f) for f in program.functions_.values()])

    def visit_function(self, func: Function) -> Function:
        new: Function = func._map_children(lambda child: _mutated(self, child), self._remapped.type)
        for old_param, param in zip(func.params_, new.params_, strict=True):
            _expect_definition(old_param, param)
        return new

    def visit_expr(self, expr: Expr) -> Expr:
        result: Expr = _dispatch(self, expr)
        return result

    def visit_stmt(self, stmt: Stmt) -> Stmt:
        result: Stmt = _dispatch(self, stmt)
        return result

    def visit_binary_expr(self, op: BinaryExpr) -> Expr:
        return _mutate_children(self, op)  # type: ignore[no-any-return]

    def visit_unary_expr(self, op: UnaryExpr) -> Expr:
        return _mutate_children(self, op)  # type: ignore[no-any-return]


class _MutatorSubstitution(Substitution):
    """Lets the expressions inside types go through the mutator, and remembers retyped variables."""

    def __init__(self, mutator: IRMutator) -> None:
        super().__init__()
        self._mutator = mutator

    def expr(self, expr: Expr) -> Expr:
        return self._mutator.visit_expr(expr)

    def recall(self, var: Var) -> Expr | None:
        return self._done.get(var)

    def remember(self, var: Var, new: Expr) -> Expr:
        self._done[var] = new
        return new

    def forget(self, var: Var) -> None:
        self._done.pop(var, None)


def _dispatch(visitor: Any, node: IRNode) -> Any:
    name = _METHODS.get(type(node))
    if name is None:
        raise TypeError(f"Cannot visit a {type(node).__name__}")
    return getattr(visitor, name)(node)


def _visit_children(visitor: Any, node: IRNode) -> None:
    for child in node._children():
        (visitor.visit_stmt if isinstance(child, Stmt) else visitor.visit_expr)(child)


def _visit_iter_arg(visitor: IRVisitor, node: IterArg) -> None:
    visitor.visit_var_like(node)
    visitor.visit_expr(node.initValue)


def _visit_loop(visitor: IRVisitor, node: stmts.ForStmt | stmts.WhileStmt) -> None:
    """As `_visit_children`, except that each carried value visits its own initial value."""
    for field in node.FIELDS if node.VISIT_ORDER is None else _ordered_fields(node):
        value = getattr(node, field.stored, None)
        if field.kind == "attrs":
            for reference in attr_references(value or {}):
                visitor.visit_expr(reference)
        elif isinstance(value, Stmt):
            visitor.visit_stmt(value)
        elif isinstance(value, Expr):
            visitor.visit_expr(value)
        elif isinstance(value, tuple):
            for item in value:
                visitor.visit_expr(item)


def _ordered_fields(node: IRNode) -> list[Any]:
    by_name = {field.name: field for field in node.FIELDS}
    return [by_name[name] for name in node.VISIT_ORDER or ()]


def _mutated(mutator: IRMutator, child: Any) -> Any:
    new = mutator.visit_stmt(child) if isinstance(child, Stmt) else mutator.visit_expr(child)
    if new is None:
        raise internal_error(f"A {type(child).__name__} was mutated to null", child.span)
    if not isinstance(new, IRNode):
        raise internal_error(f"A {type(child).__name__} was mutated to a {type(new).__name__}", child.span)
    return new


def _mutate_children(mutator: IRMutator, node: IRNode) -> Any:
    return node._map_children(lambda child: _mutated(mutator, child), mutator._remapped.type)


def _mutate_var(mutator: IRMutator, var: Var) -> Expr:
    remapped = mutator._remapped
    known = remapped.recall(var)
    return known if known is not None else remapped.remember(var, remapped._retyped(var))


def _mutate_seq(mutator: IRMutator, seq: SeqStmts) -> Stmt:
    mapped = [_mutated(mutator, inner) for inner in seq.stmts_]
    if all(new is old for new, old in zip(mapped, seq.stmts_, strict=True)):
        return seq
    return flatten_stmts(mapped, seq.span)


def _mutate_stmt(mutator: IRMutator, stmt: Stmt) -> Stmt:
    new: Stmt = _mutate_children(mutator, stmt)
    if new is not stmt:
        for old_var, new_var in zip(definitions_of(stmt), definitions_of(new), strict=True):
            _expect_definition(old_var, new_var)
    if isinstance(stmt, (stmts.ForStmt, stmts.WhileStmt)):
        for carried in stmt.iter_args_:
            mutator._remapped.forget(carried)
    return new


def _expect_definition(old: Var, new: Any) -> None:
    wanted = IterArg if isinstance(old, IterArg) else Var
    if not isinstance(new, wanted):
        raise internal_error(
            f"The definition of '{old.name_hint}' was mutated to a {type(new).__name__}, "
            f"not a {wanted.__name__}",
            old.span,
        )


def _method(name: str, body: Callable[[Any, Any], Any], doc: str) -> Callable[[Any, Any], Any]:
    def visit(self: Any, op: Any) -> Any:
        return body(self, op)

    visit.__name__ = visit.__qualname__ = name
    visit.__doc__ = doc
    return visit


def _install_methods() -> None:
    for cls, name in _METHODS.items():
        group = _grouped(cls)
        if group is not None:
            read = write = _to_group(group)
        elif issubclass(cls, Var):
            read = _visit_iter_arg if cls is IterArg else _visit_var
            if cls in (exprs.MemRef, exprs.WindowBuffer):
                read = _visit_nothing
            write = _mutate_var
        elif issubclass(cls, (stmts.ForStmt, stmts.WhileStmt)):
            read, write = _visit_loop, _mutate_stmt
        elif cls is SeqStmts:
            read, write = _visit_children, _mutate_seq
        elif issubclass(cls, Stmt):
            read, write = _visit_children, _mutate_stmt
        else:
            read, write = _visit_children, _mutate_children
        for owner, body in ((IRVisitor, read), (IRMutator, write)):
            setattr(owner, name, _method(name, body, f"Called for each {cls.__name__}."))


def _visit_var(visitor: IRVisitor, node: Var) -> None:
    visitor.visit_var_like(node)


def _visit_nothing(visitor: IRVisitor, node: Var) -> None:
    """Memory references and window buffers are leaves."""


def _to_group(group: str) -> Callable[[Any, Any], Any]:
    return lambda visitor, node: getattr(visitor, group)(node)


_install_methods()
