"""Scopes of the DSL as Python context managers.

The parser reads `with pl.at(...)` and its relatives from the source; the objects here exist so that the same
text runs under plain Python, and so that wrong arguments fail early there too."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NoReturn

from pypto import ir


class ScopeMode(enum.Enum):
    """How dependencies inside a runtime scope arise: inferred (AUTO) or declared (MANUAL)."""

    AUTO = 0
    MANUAL = 1


class _Scope:
    """A context manager that does nothing and swallows nothing."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc_info: object) -> None:
        return None


class AtContext(_Scope):
    """The object of `pl.at(...)`; its attributes mirror the arguments."""

    def __init__(
        self,
        level: ir.Level,
        role: ir.Role | None = None,
        *,
        optimizations: Sequence[Any] | None = None,
        deps: Sequence[Any] | None = None,
        no_dep_args: Sequence[Any] | None = None,
        dumps: Sequence[Any] | None = None,
        allow_early_resolve: bool = False,
        name_hint: str = "",
        windowize: bool = False,
    ) -> None:
        self.level = level
        self.role = role
        self.optimizations = optimizations
        self.deps = deps
        self.no_dep_args = no_dep_args
        self.dumps = dumps
        self.allow_early_resolve = allow_early_resolve
        self.name_hint = name_hint
        self.windowize = windowize


class ClusterContext(_Scope):
    """The object of `pl.cluster()`."""

    def __init__(self, *, name_hint: str = "", dumps: Sequence[Any] | None = None) -> None:
        self.name_hint = name_hint
        self.dumps = dumps

    def __enter__(self) -> None:
        return None


class SpmdContext(_Scope):
    """The object of `pl.spmd(core_num)`."""

    def __init__(
        self,
        core_num: Any,
        *,
        sync_start: bool = False,
        name_hint: str = "",
        optimizations: Sequence[Any] | None = None,
        deps: Sequence[Any] | None = None,
        allow_early_resolve: bool = False,
        predicate: Any = None,
        dumps: Sequence[Any] | None = None,
    ) -> None:
        if isinstance(core_num, bool) or not isinstance(core_num, (int, ir.Expr)):
            raise ValueError(f"core_num must be a positive integer or ir.Expr, got {core_num!r}")
        if isinstance(core_num, int) and core_num <= 0:
            raise ValueError(f"core_num must be a positive integer or ir.Expr, got {core_num}")
        self.core_num = core_num
        self.sync_start = sync_start
        self.name_hint = name_hint
        self.optimizations = optimizations
        self.deps = deps
        self.allow_early_resolve = allow_early_resolve
        self.predicate = predicate
        self.dumps = dumps

    def __iter__(self) -> NoReturn:
        raise RuntimeError(
            "'for ... in pl.spmd(...)' is DSL syntax and only works inside a @pl.function body"
        )


class SplitAivContext(_Scope):
    """The object of `pl.split_aiv(2, mode=...)`."""

    def __init__(self, n: int, *, mode: ir.SplitMode) -> None:
        if isinstance(n, bool) or not isinstance(n, int) or n != 2:
            raise ValueError(f"pl.split_aiv() lane count must be the integer 2, got {n!r}")
        if not isinstance(mode, ir.SplitMode):
            raise ValueError(f"pl.split_aiv() mode must be a SplitMode, got {mode!r}")
        self.n = n
        self.mode = mode

    def __iter__(self) -> NoReturn:
        raise RuntimeError(
            "'for ... in pl.split_aiv(...)' is DSL syntax and only works inside a @pl.function body"
        )


class scope(_Scope):
    """A runtime scope: `with pl.scope(mode=pl.ScopeMode.MANUAL):`."""

    def __init__(self, mode: ScopeMode = ScopeMode.AUTO) -> None:
        self.mode = mode


class manual_scope(_Scope):
    """A runtime scope whose dependencies are the declared ones only."""

    def __init__(self) -> None:
        self.mode = ScopeMode.MANUAL


def at(
    level: ir.Level,
    role: ir.Role | None = None,
    *,
    optimizations: Sequence[Any] | None = None,
    deps: Sequence[Any] | None = None,
    no_dep_args: Sequence[Any] | None = None,
    dumps: Sequence[Any] | None = None,
    allow_early_resolve: bool = False,
    name_hint: str = "",
    windowize: bool = False,
) -> AtContext:
    """Run the body at a level of the machine; `CORE_GROUP` makes it a kernel."""
    return AtContext(
        level,
        role,
        optimizations=optimizations,
        deps=deps,
        no_dep_args=no_dep_args,
        dumps=dumps,
        allow_early_resolve=allow_early_resolve,
        name_hint=name_hint,
        windowize=windowize,
    )


def cluster(*, name_hint: str = "", dumps: Sequence[Any] | None = None) -> ClusterContext:
    """Run the kernels of the body together on one cluster of cores."""
    return ClusterContext(name_hint=name_hint, dumps=dumps)


def spmd(
    core_num: Any,
    *,
    sync_start: bool = False,
    name_hint: str = "",
    optimizations: Sequence[Any] | None = None,
    deps: Sequence[Any] | None = None,
    allow_early_resolve: bool = False,
    predicate: Any = None,
    dumps: Sequence[Any] | None = None,
) -> SpmdContext:
    """Run the body once per block, `core_num` blocks in all."""
    return SpmdContext(
        core_num,
        sync_start=sync_start,
        name_hint=name_hint,
        optimizations=optimizations,
        deps=deps,
        allow_early_resolve=allow_early_resolve,
        predicate=predicate,
        dumps=dumps,
    )


def split_aiv(n: int, *, mode: ir.SplitMode) -> SplitAivContext:
    """Run the body on both vector lanes of a core; `mode` says how operands are halved."""
    return SplitAivContext(n, mode=mode)
