"""`pl.range` and its relatives, called as ordinary Python.

The parser reads these calls from the source. Executing them (in a notebook, in a reference implementation of
a kernel) walks the same numbers, so that a body can be tried out without compiling it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


class RangeIterator:
    """Yields loop values, paired with the carried values when there are any."""

    def __init__(
        self,
        stop: Any,
        start: Any = 0,
        step: Any = 1,
        init_values: Sequence[Any] | None = None,
        pipeline_stages: int | None = None,
    ) -> None:
        self.start = start
        self.stop = stop
        self.step = step
        self.init_values: tuple[Any, ...] = tuple(init_values or ())
        self.pipeline_stages = pipeline_stages
        self._current = start

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        value = self._current
        done = value >= self.stop if self.step > 0 else value <= self.stop
        if done:
            raise StopIteration
        self._current = value + self.step
        return (value, self.init_values) if self.init_values else value


class WhileIterator:
    """Yields the carried values again and again; the condition is the body's own business."""

    def __init__(self, init_values: Sequence[Any]) -> None:
        self.init_values = tuple(init_values)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self

    def __next__(self) -> tuple[Any, ...]:
        return self.init_values


def _bounds(name: str, args: tuple[Any, ...]) -> dict[str, Any]:
    if len(args) == 1:
        return {"stop": args[0]}
    if len(args) == 2:
        return {"start": args[0], "stop": args[1]}
    if len(args) == 3:
        return {"start": args[0], "stop": args[1], "step": args[2]}
    raise ValueError(f"{name}() takes 1 to 3 positional arguments, got {len(args)}")


def range(*args: Any, init_values: Sequence[Any] | None = None) -> RangeIterator:
    """A sequential loop over `range(*args)`; `init_values` are carried from one iteration to the next."""
    return RangeIterator(**_bounds("range", args), init_values=init_values)


def parallel(*args: Any, init_values: Sequence[Any] | None = None) -> RangeIterator:
    """A loop whose iterations may run in any order or at once."""
    return RangeIterator(**_bounds("parallel", args), init_values=init_values)


def unroll(*args: Any) -> RangeIterator:
    """A loop with constant bounds that the compiler writes out."""
    return RangeIterator(**_bounds("unroll", args))


def pipeline(*args: Any, stage: int, init_values: Sequence[Any] | None = None) -> RangeIterator:
    """A sequential loop whose iterations overlap in `stage` stages."""
    if isinstance(stage, bool) or not isinstance(stage, int) or stage < 1:
        raise ValueError(f"stage must be a positive integer, got {stage!r}")
    return RangeIterator(**_bounds("pipeline", args), init_values=init_values, pipeline_stages=stage)


def while_(*, init_values: Sequence[Any] | None = None) -> WhileIterator:
    """A loop with carried values that runs as long as the `pl.cond(...)` at its start holds."""
    if not init_values:
        raise ValueError("while_() requires init_values to be specified")
    return WhileIterator(init_values)
