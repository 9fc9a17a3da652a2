"""Visitors and mutators for users, with one overridable method per node class.

A subclass overrides `visit_<class>` in snake case and calls `super().visit_<class>(op)` for the default
recursion. The override is called for every node of its kind, nested ones included. `visit_binary_expr` and
`visit_unary_expr` stand for all arithmetic classes that have no override of their own, `visit_expr` and
`visit_stmt` for every node.

Kinds of expressions that a subclass does not override are traversed with an explicit stack, so their depth is
no limit; and a shared expression below which no override was called is not entered again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from pypto.core.errors import internal_error
from pypto.ir import expr as exprs
from pypto.ir import scope as scopes
from pypto.ir import stmt as stmts
from pypto.ir.expr import BinaryExpr, ConstBool, ConstFloat, ConstInt, Expr, IterArg, UnaryExpr, Var
from pypto.ir.node import IRNode, attr_references, expect
from pypto.ir.program import Function, Program
from pypto.ir.rewrite import Substitution, definitions_of, is_static_type
from pypto.ir.scope import ScopeStmt
from pypto.ir.stmt import SeqStmts, Stmt, flatten_stmts
from pypto.ir.types import DistributedTensorType, TensorType, Type


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


def _handlers(cls: type[IRNode]) -> tuple[str, ...]:
    """The methods that a node of this class reaches: that of its kind, then that of its group."""
    own = _METHODS[cls]
    if issubclass(cls, BinaryExpr):
        return own, "visit_binary_expr"
    if issubclass(cls, UnaryExpr):
        return own, "visit_unary_expr"
    if cls in (Var, IterArg):
        return own, "visit_var_like"
    return (own,)


def _note_overrides(cls: type[Any], base: type[Any]) -> None:
    """Record which kinds of expressions a subclass of `base` wants to see, once per subclass."""
    cls._called = {
        kind: _METHODS[kind]
        for kind in _EXPR_CLASSES
        if any(getattr(cls, name, None) is not getattr(base, name, None) for name in _handlers(kind))
    }
    cls._sees_every_expr = cls.visit_expr is not base.visit_expr


class IRVisitor:
    """Walks a program for its effects."""

    _called: ClassVar[dict[type[IRNode], str]] = {}
    _sees_every_expr: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        _note_overrides(cls, IRVisitor)

    def visit_program(self, program: Program) -> None:
        expect(program, Program, "visit_program program")
        for function in program.functions_.values():
            self.visit_function(function)

    def visit_function(self, func: Function) -> None:
        expect(func, Function, "visit_function func")
        for param in func.params_:
            self.visit_expr(param)
        for reference in attr_references(func.attrs_):
            self.visit_expr(reference)
        self.visit_stmt(func.body)

    def visit_expr(self, expr: Expr) -> None:
        if self._sees_every_expr or _expr_kind(expr) in self._called:
            _dispatch(self, expr)
        else:
            _walk_expr(self, expr)

    def visit_stmt(self, stmt: Stmt) -> None:
        expect(stmt, Stmt, "visit_stmt stmt")
        _dispatch(self, stmt)

    def visit_var_like(self, op: Var) -> None:
        for dim in _visited_dims(op):
            self.visit_expr(dim)

    def visit_binary_expr(self, op: BinaryExpr) -> None:
        _visit_children(self, op)

    def visit_unary_expr(self, op: UnaryExpr) -> None:
        _visit_children(self, op)


class IRMutator:
    """Rewrites a program copy-on-write: a node is rebuilt only if something below it changed."""

    _called: ClassVar[dict[type[IRNode], str]] = {}
    _sees_every_expr: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        _note_overrides(cls, IRMutator)

    def __init__(self) -> None:
        self._remapped = _MutatorSubstitution(self)

    def visit_program(self, program: Program) -> Program:
        expect(program, Program, "visit_program program")
        changed = []
        for function in program.functions_.values():
            new = self.visit_function(function)
            if new is None:
                raise internal_error(f"The function '{function.name}' was mutated to null", function.span)
            changed.append(new)
        return program.replace(functions=changed)

    def visit_function(self, func: Function) -> Function:
        expect(func, Function, "visit_function func")
        new: Function = func._map_children(lambda child: _mutated(self, child), self._remapped.type)
        for old_param, param in zip(func.params_, new.params_, strict=True):
            _expect_definition(old_param, param)
        return new

    def visit_expr(self, expr: Expr) -> Expr:
        if self._sees_every_expr or _expr_kind(expr) in self._called:
            result: Expr = _dispatch(self, expr)
            return result
        return _rewrite_expr(self, expr)

    def visit_stmt(self, stmt: Stmt) -> Stmt:
        expect(stmt, Stmt, "visit_stmt stmt")
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
        sees_constants = any(kind in mutator._called for kind in (ConstInt, ConstFloat, ConstBool))
        self._keeps_static_types = not (mutator._sees_every_expr or sees_constants)

    def type(self, type: Type) -> Type:
        """Rewritten anew at each occurrence: what the mutator does may depend on where it is."""
        if self._keeps_static_types and is_static_type(type):
            return type
        new: Type = type._map_children(self.expr, self.type)
        return new

    def expr(self, expr: Expr) -> Expr:
        return _mutated(self._mutator, expr)  # type: ignore[no-any-return]

    def recall(self, var: Var) -> Expr | None:
        return self._done.get(var)

    def remember(self, var: Var, new: Expr) -> Expr:
        self._done[var] = new
        return new

    def forget(self, var: Var) -> None:
        self._done.pop(var, None)


def _expr_kind(expr: Any) -> type[Any]:
    """The class whose method an expression reaches. Raises `TypeError` for anything but an expression."""
    if not isinstance(expr, Expr):
        raise TypeError(f"Cannot visit a {type(expr).__name__} as an expression")
    return expr.KIND


def _dispatch(visitor: Any, node: IRNode) -> Any:
    name = _METHODS.get(getattr(node, "KIND", None))  # type: ignore[arg-type]
    if name is None:
        raise TypeError(f"Cannot visit a {type(node).__name__}")
    return getattr(visitor, name)(node)


# -- reading -------------------------------------------------------------------------------------------------


def _walk_expr(visitor: IRVisitor, root: Expr) -> None:
    """Visit an expression whose own kind is not overridden, down to the kinds that are."""
    called = visitor._called
    calls = 0
    quiet: set[int] = set()  # shared nodes below which nothing was called
    pending: list[tuple[Any, int]] = [(part, _NOT_ENTERED) for part in reversed(_visited_parts(root))]
    while pending:
        node, calls_before = pending.pop()
        if calls_before != _NOT_ENTERED:
            if calls == calls_before:
                quiet.add(id(node))
            continue
        name = called.get(node.KIND)
        if name is not None:
            calls += 1
            getattr(visitor, name)(node)
            continue
        below = _visited_parts(node)
        if below and id(node) not in quiet:
            pending.append((node, calls))
            pending += [(child, _NOT_ENTERED) for child in reversed(below)]


_NOT_ENTERED = -1


def _visited_parts(node: Expr) -> Sequence[Any]:
    """What the default visit of an expression goes on to."""
    if not isinstance(node, Var):
        return node._children()
    if node.__class__ is Var:
        return _visited_dims(node)
    return (*_visited_dims(node), node.initValue) if isinstance(node, IterArg) else ()


def _visited_dims(var: Var) -> Sequence[Expr]:
    if isinstance(var.type, TensorType) and not isinstance(var.type, DistributedTensorType):
        return var.type.shape_
    return ()


def _visit_children(visitor: Any, node: IRNode) -> None:
    for child in node._children():
        (visitor.visit_stmt if isinstance(child, Stmt) else visitor.visit_expr)(child)


def _visit_var(visitor: IRVisitor, node: Var) -> None:
    visitor.visit_var_like(node)


def _visit_iter_arg(visitor: IRVisitor, node: IterArg) -> None:
    visitor.visit_var_like(node)
    visitor.visit_expr(node.initValue)


def _visit_nothing(visitor: IRVisitor, node: Var) -> None:
    """Memory references and window buffers are leaves."""


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


# -- rewriting -----------------------------------------------------------------------------------------------


def _rewrite_expr(mutator: IRMutator, root: Expr) -> Expr:
    """Rewrite an expression whose own kind is not overridden: operands first, on a stack of results."""
    if isinstance(root, Var):
        return _mutate_var(mutator, root)
    if isinstance(root, (ConstInt, ConstFloat, ConstBool)):
        return root
    called = mutator._called
    calls = 0
    quiet: dict[int, Expr] = {}  # results of nodes below which nothing was called
    results: list[Any] = []
    pending: list[tuple[Any, int]] = [(root, _NOT_ENTERED)]
    while pending:
        node, calls_before = pending.pop()
        if calls_before == _NOT_ENTERED:
            name = called.get(node.KIND)
            if name is not None:
                calls += 1
                results.append(_checked(node, getattr(mutator, name)(node)))
            elif isinstance(node, Var):
                results.append(_mutate_var(mutator, node))
            elif id(node) in quiet:
                results.append(quiet[id(node)])
            else:
                operands = _operands(node)
                pending.append((node, calls))
                pending += [(operand, _NOT_ENTERED) for operand in reversed(operands)]
            continue
        count = len(_operands(node))
        first = len(results) - count
        new = _rebuilt(mutator, node, results[first:])
        results[first:] = [new]
        if calls == calls_before:
            quiet[id(node)] = new
    rewritten: Expr = results[0]
    return rewritten


def _operands(node: Expr) -> Sequence[Any]:
    """The operands of an expression; its type and the references in its attributes are not among them."""
    if isinstance(node, exprs.Call):
        return node.args_
    if isinstance(node, exprs.Submit):
        launch = [part for part in (node.core_num, node.predicate) if part is not None]
        return [*node.args_, *node.deps_, *launch]
    return node._children()


def _rebuilt(mutator: IRMutator, node: Expr, operands: list[Any]) -> Expr:
    """`node` with these operands; attributes and type are rewritten after them, in the order of its class."""
    ready = iter(operands)

    def mapped(child: Any) -> Any:
        new = next(ready, None)
        return _mutated(mutator, child) if new is None else new

    rebuilt: Expr = node._map_children(mapped, mutator._remapped.type)
    return rebuilt


def _mutated(mutator: IRMutator, child: Any) -> Any:
    return _checked(
        child, mutator.visit_stmt(child) if isinstance(child, Stmt) else mutator.visit_expr(child)
    )


def _checked(child: Any, new: Any) -> Any:
    """What a node was mutated to. Raises `InternalError` unless it can stand in the same place."""
    if new is None:
        raise internal_error(f"A {type(child).__name__} was mutated to null", child.span)
    if not isinstance(new, Stmt if isinstance(child, Stmt) else Expr):
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


# -- one method per class ------------------------------------------------------------------------------------


def _method(name: str, body: Callable[[Any, Any], Any], doc: str) -> Callable[[Any, Any], Any]:
    def visit(self: Any, op: Any) -> Any:
        return body(self, op)

    visit.__name__ = visit.__qualname__ = name
    visit.__doc__ = doc
    return visit


def _install_methods() -> None:
    for cls, name in _METHODS.items():
        read: Callable[[Any, Any], Any] = _visit_children
        write: Callable[[Any, Any], Any] = _mutate_children
        if issubclass(cls, (BinaryExpr, UnaryExpr)):
            read = write = _to_group(_handlers(cls)[-1])
        elif issubclass(cls, Var):
            read = {Var: _visit_var, IterArg: _visit_iter_arg}.get(cls, _visit_nothing)
            write = _mutate_var
        elif cls is SeqStmts:
            write = _mutate_seq
        elif issubclass(cls, Stmt):
            read = _visit_loop if issubclass(cls, (stmts.ForStmt, stmts.WhileStmt)) else _visit_children
            write = _mutate_stmt
        for owner, body in ((IRVisitor, read), (IRMutator, write)):
            setattr(owner, name, _method(name, body, f"Called for each {cls.__name__}."))


def _to_group(group: str) -> Callable[[Any, Any], Any]:
    return lambda visitor, node: getattr(visitor, group)(node)


_install_methods()
