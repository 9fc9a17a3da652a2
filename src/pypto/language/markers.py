"""DSL names that only mean something inside a parsed body, with what they do when Python executes them."""

from __future__ import annotations

from typing import Any, NoReturn


def yield_(*values: Any) -> Any:
    """Hand values to the enclosing loop or branch. Executed: the value itself, or the tuple of several."""
    return values[0] if len(values) == 1 else tuple(values)


def cond(condition: Any) -> None:
    """The condition of the enclosing `pl.while_` loop."""


def const(value: int | float, dtype: Any) -> int | float:
    """A typed constant. Executed: the plain value."""
    return value


def static_print(*args: Any) -> None:
    """Print while the program is parsed."""


def static_assert(condition: Any, msg: str = "") -> None:
    """Check while the program is parsed."""


def func_attr(attrs: dict[str, Any]) -> None:
    """Set attributes of the enclosing function; must be the first statement of its body."""


def submit(*args: Any, **kwargs: Any) -> NoReturn:
    """Launch a kernel as a task: `out, tid = pl.submit(self.kernel, ...)`."""
    raise RuntimeError("pl.submit is a DSL parser construct and cannot be called directly")


def spmd_submit(*args: Any, **kwargs: Any) -> NoReturn:
    """Launch a kernel as a task of `core_num` blocks."""
    raise RuntimeError("pl.spmd_submit is a DSL parser construct and cannot be called directly")
