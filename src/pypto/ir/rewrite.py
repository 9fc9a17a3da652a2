"""Copy-on-write rewriting of expressions, types and statements.

`map_expr` applies a function bottom-up, `map_values` one to what statements compute. `Substitution` replaces
variables everywhere: uses, definition sites, types, attributes. All return the same object where nothing
changed; `map_expr` and `Substitution` enter a shared node once, and do not recurse into expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from pypto.core.errors import InternalError, internal_error
from pypto.ir.expr import ConstBool, ConstFloat, ConstInt, Expr, IterArg, MemRef, Var, WindowBuffer
from pypto.ir.node import expect, expect_all
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, EvalStmt, SeqStmts, Stmt, flatten_stmts
from pypto.ir.types import ScalarType, TensorType, TileType, TupleType, Type
from pypto.ir.walk import map_substatements

_CONSTANTS = (ConstInt, ConstFloat, ConstBool)


def map_expr(expr: Expr, leave: Callable[[Expr], Expr]) -> Expr:
    """Rewrite bottom-up: `leave` gets each node with its children already rewritten. Variables and constants
    included; types are left alone."""
    done: dict[int, Expr] = {}
    pending: list[tuple[Expr, bool]] = [(expr, False)]
    keep = [expr]  # rebuilt nodes are keyed by the id of their original, which must stay alive
    while pending:
        node, ready = pending.pop()
        if id(node) in done:
            continue
        below = node._children()
        if not ready and below:
            pending.append((node, True))
            pending += [(child, False) for child in reversed(below)]
            continue
        rebuilt = node._map_children(lambda child: done[id(child)], _same_type) if below else node
        done[id(node)] = leave(rebuilt)
        keep.append(node)
    return done[id(expr)]


def map_values(stmt: Stmt, f: Callable[[Expr], Expr]) -> Stmt:
    """`stmt` with `f` of what each assignment and evaluation statement in it computes."""
    if isinstance(stmt, AssignStmt):
        return stmt.replace(value=f(stmt.value))
    if isinstance(stmt, EvalStmt):
        return stmt.replace(expr=f(stmt.expr))
    return map_substatements(stmt, lambda inner: map_values(inner, f))


def _same_type(type: Type) -> Type:
    return type


def is_static_type(type: Type) -> bool:
    """Whether the type mentions no variable at all, so that no substitution can change it."""
    if type.__class__ is ScalarType:
        return True
    if isinstance(type, TensorType):
        if type.tensor_view is not None or type.memref is not None:
            return not type._children() or all(isinstance(part, _CONSTANTS) for part in type._children())
        return all([dim.__class__ is ConstInt for dim in type.shape_]) and not getattr(
            type, "window_buffer", None
        )
    if isinstance(type, TileType) and type.memref is None and type.tile_view is None:
        return all([dim.__class__ is ConstInt for dim in type.shape_])
    if isinstance(type, TupleType):
        return all([is_static_type(element) for element in type.types_])
    return all(isinstance(part, _CONSTANTS) for part in type._children())


class Substitution:
    """Replaces variables by expressions.

    Definition sites are replaced too, so a map from variable to variable renames consistently. A variable
    whose type mentions a replaced one becomes one fresh variable, the same at its definition and all its
    uses. Chains
    (`x` to `y`, `y` to `z`) resolve to the end; a cycle is cut where it closes.
    """

    def __init__(self, mapping: Mapping[Var, Expr] | None = None) -> None:
        self._done: dict[Expr, Expr] = {}
        self._types: dict[
            int, tuple[Type, Type]
        ] = {}  # by id; the original is kept alive beside its rewritten form
        self._seeds: dict[Var, Expr] = {}
        self.update(mapping or {})

    def update(self, mapping: Mapping[Var, Expr]) -> None:
        """Add replacements; they count for what is rewritten from now on."""
        self._seeds.update(mapping)
        for source in mapping:
            self._done[source] = self._resolved(source)

    def set(self, var: Var, value: Expr) -> None:
        """Replace `var` by `value` from now on."""
        self._seeds[var] = value
        self._done[var] = self._resolved(var)

    def _resolved(self, var: Var) -> Expr:
        followed = {var}
        target = self._seeds[var]
        while isinstance(target, Var) and target in self._seeds and target not in followed:
            followed.add(target)
            target = self._seeds[target]
        return target

    def expr(self, expr: Expr) -> Expr:
        """The expression with all replacements made."""
        done = self._done
        hit = done.get(expr)
        if hit is not None:
            return hit
        if isinstance(expr, Var):
            return self.var(expr)
        pending: list[Expr] = [expr]
        while pending:
            node = pending[-1]
            if node in done:
                pending.pop()
                continue
            waiting = False
            for child in node._children():
                if child not in done:
                    if isinstance(child, Var):
                        self.var(child)
                    elif child.__class__ in _CONSTANTS:
                        done[child] = child
                    else:
                        pending.append(child)
                        waiting = True
            if not waiting:
                done[node] = self.rebuild(node)
                pending.pop()
        return done[expr]

    def rebuild(self, node: Expr) -> Expr:
        """`node`, neither variable nor constant, with its children replaced; a hook for subclasses."""
        rebuilt: Expr = node._map_children(self._done.__getitem__, self.type)
        return rebuilt

    def var(self, var: Var) -> Expr:
        """What a use of `var` becomes."""
        hit = self._done.get(var)
        if hit is not None:
            return hit
        if is_static_type(var.type) and var.__class__ is Var:
            new: Var = var
        else:
            new = self._retyped(var)
        self._done[var] = new
        return new

    def _retyped(self, var: Var) -> Var:
        return var._map_children(self.expr, self.type)  # type: ignore[no-any-return]

    def type(self, type: Type) -> Type:
        """The type with all replacements made."""
        if is_static_type(type):
            return type
        hit = self._types.get(id(type))
        if hit is None:
            hit = self._types[id(type)] = (type, type._map_children(self.expr, self.type))
        return hit[1]

    def definition(self, var: Var) -> Var:
        """What a definition of `var` becomes. Raises `InternalError` where a use became something else."""
        new = self.var(var)
        if not isinstance(new, Var):
            raise _no_definition(var, new)
        return new

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with all replacements made, nested statements included."""
        if isinstance(stmt, SeqStmts):
            mapped = [self.stmt(inner) for inner in stmt.stmts_]
            if all([new is old for new, old in zip(mapped, stmt.stmts_, strict=True)]):
                return stmt
            return flatten_stmts(mapped, stmt.span)
        new = stmt._map_children(self._child, self.type)
        if new is not stmt:
            _check_definitions(stmt, new)
        return cast(Stmt, new)

    def _child(self, child: Any) -> Any:
        return self.stmt(child) if isinstance(child, Stmt) else self.expr(child)

    def function(self, function: Function) -> Function:
        """The function with all replacements made in parameters, result types, attributes and body."""
        return function._map_children(self._child, self.type)  # type: ignore[no-any-return]


def substitute_expr(expr: Expr, pairs: list[tuple[Var, Expr]]) -> Expr:
    """Replace variables in an expression. Without a match the same object comes back."""
    expect(expr, Expr, "substitute_expr expr")
    return Substitution(_replacements(pairs)).expr(expr)


def substitute_stmt(stmt: Stmt, pairs: list[tuple[Var, Expr]]) -> Stmt:
    """Replace variables in a statement, uses and definitions alike. Without a match the same object comes
    back."""
    expect(stmt, Stmt, "substitute_stmt stmt")
    return Substitution(_replacements(pairs)).stmt(stmt)


def _replacements(pairs: Sequence[tuple[Var, Expr]]) -> dict[Var, Expr]:
    """The pairs as a mapping. Raises `TypeError` for anything but pairs of a variable and an expression."""
    for pair in expect_all(pairs, tuple, "pairs"):
        if not (len(pair) == 2 and isinstance(pair[0], Var) and isinstance(pair[1], Expr)):
            raise TypeError("Replacements must be pairs of a Var and an Expr")
    return dict(pairs)


class _Clone(Substitution):
    """A substitution that mints a fresh variable at each definition site."""

    def __init__(self, mapping: Mapping[Var, Expr]) -> None:
        super().__init__(mapping)
        self.pairs: list[tuple[Var, Var]] = []

    def mint(self, var: Var) -> None:
        if var in self._seeds or var in self._done:
            return
        fresh = var._map_children(self.expr, self.type)
        if fresh is var:
            fresh = type(var).make(*var._values())
        self._done[var] = fresh
        self.pairs.append((var, fresh))

    def stmt(self, stmt: Stmt) -> Stmt:
        for var in definitions_of(stmt):
            self.mint(var)
        return super().stmt(stmt)

    def var(self, var: Var) -> Expr:
        """What a use becomes: a variable from outside stays, whatever its type mentions, for nothing inside
        defines it. Memory references and window buffers have no definition and are made anew."""
        hit = self._done.get(var)
        if hit is not None:
            return hit
        new = var
        if isinstance(var, (MemRef, WindowBuffer)):
            new = self._retyped(var)
            if new is var:
                new = type(var).make(*var._values())
        self._done[var] = new
        return new


def _check_definitions(stmt: Stmt, new: Stmt) -> None:
    for old_var, new_var in zip(definitions_of(stmt), definitions_of(new), strict=True):
        if not isinstance(new_var, IterArg if isinstance(old_var, IterArg) else Var):
            raise _no_definition(old_var, new_var)


def _no_definition(var: Var, replacement: Expr) -> InternalError:
    return internal_error(
        f"The definition of '{var.name_hint}' was replaced by a {type(replacement).__name__}", var.span
    )


def definitions_of(stmt: Stmt) -> list[Var]:
    """The variables that a statement itself introduces, not those of statements inside it."""
    defined: list[Var] = []
    for field in stmt.FIELDS:
        if field.role == "def":
            value = getattr(stmt, field.stored)
            defined += value if isinstance(value, tuple) else (value,)
    return defined


def deep_clone(
    body: Stmt, var_map: list[tuple[Var, Expr]] | None = None
) -> tuple[Stmt, list[tuple[Var, Var]]]:
    """A copy of `body` with a fresh variable at each definition site, and the pairs (original, clone).

    `var_map` seeds replacements; variables defined outside and not seeded stay the same objects.
    """
    expect(body, Stmt, "deep_clone body")
    clone = _Clone(_replacements(var_map or []))
    return clone.stmt(body), clone.pairs
