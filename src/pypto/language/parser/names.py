"""The scope chain of a body: which Python name stands for which IR expression.

Blocks push a scope and decide on leaving whether their names leak outward. Most names stand for a `Var` that
an assignment may assign again; an `Alias` stands for an expression that an assignment must replace by a new
variable."""

from __future__ import annotations

from pypto import ir


class Alias:
    """A binding that is read like a variable and not assigned: an inline argument, a folded dimension.

    A call that writes into the variable of an inline argument assigns that variable.
    """

    __slots__ = ("value",)

    def __init__(self, value: ir.Expr) -> None:
        self.value = value


Binding = ir.Expr | Alias


class Names:
    """The chain of scopes, innermost last.

    A *guarded* block runs in some cases only, or several times: the body of a loop, the branch of an `if`.
    """

    __slots__ = ("_guarded", "_scopes", "current")

    def __init__(self) -> None:
        self.current: dict[str, Binding] = {}
        self._scopes: list[dict[str, Binding]] = [self.current]
        self._guarded: list[int] = []  # positions of the guarded blocks

    def push(self, *, guarded: bool = False) -> None:
        """Enter a block."""
        if guarded:
            self._guarded.append(len(self._scopes))
        self.current = {}
        self._scopes.append(self.current)

    def pop(self) -> dict[str, Binding]:
        """Leave the block and forget its names; returns them."""
        left = self._scopes.pop()
        self.current = self._scopes[-1]
        if self._guarded and self._guarded[-1] == len(self._scopes):
            self._guarded.pop()
        return left

    def pop_leaking(self) -> None:
        """Leave the block and keep its names in the enclosing one."""
        left = self.pop()
        self.current.update(left)

    def binding(self, name: str) -> Binding | None:
        """What `name` is bound to, or None."""
        for scope in reversed(self._scopes):
            found = scope.get(name)
            if found is not None:
                return found
        return None

    def is_from_outside(self, name: str) -> bool:
        """Whether `name` means what it means outside of the innermost guarded block."""
        if not self._guarded:
            return False
        outside = self._scopes[self._guarded[-1] - 1 :: -1]
        found = next((scope[name] for scope in outside if name in scope), None)
        return found is not None and found is self.binding(name)

    def lookup(self, name: str) -> ir.Expr | None:
        """The expression `name` stands for, or None."""
        found = self.binding(name)
        return found.value if type(found) is Alias else found  # type: ignore[return-value]

    def __contains__(self, name: str) -> bool:
        return self.binding(name) is not None

    @property
    def path(self) -> tuple[dict[str, Binding], ...]:
        """The scopes from the outermost to the current one."""
        return tuple(self._scopes)

    def bind(self, name: str, value: Binding) -> None:
        """Bind `name` in the current block."""
        self.current[name] = value

    def all_names(self) -> list[str]:
        """Every bound name, for suggestions."""
        return sorted({name for scope in self._scopes for name in scope})
