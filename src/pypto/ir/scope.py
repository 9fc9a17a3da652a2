"""Scope statements: what runs together on a core group, and how it is launched.

A scope executes its body once and is transparent for values. Outlining turns most scopes into functions.
Attributes are set through `replace(attrs=...)` and through the builder; constructors take none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pypto.core.dtype import DataType
from pypto.core.errors import internal_error
from pypto.core.span import Span
from pypto.ir.attrs import AttrDict, read_back
from pypto.ir.enums import Level, Role, ScopeKind, SplitMode
from pypto.ir.expr import ConstInt, Expr, WindowBuffer
from pypto.ir.node import ATTRS, NODES, REQUIRED, VALUE, VALUES, expect, expect_all, use
from pypto.ir.stmt import Stmt

_COMMON = (use("name_hint", VALUE), use("body"), use("attrs", ATTRS))


class ScopeStmt(Stmt):
    """Base of all scopes. An empty `name_hint` asks for a generated name."""

    __slots__ = ("attrs_", "body", "name_hint")
    ABSTRACT = True
    SCOPE_KIND: ClassVar[ScopeKind]

    name_hint: str
    body: Stmt
    attrs_: AttrDict

    @property
    def attrs(self) -> AttrDict:
        return read_back(self.attrs_)

    @property
    def scope_kind(self) -> ScopeKind:
        return self.SCOPE_KIND

    def _check_common(self, name_hint: str, body: Stmt, span: Span) -> None:
        owner = type(self).__name__
        expect(name_hint, str, f"{owner}.name_hint")
        expect(body, Stmt, f"{owner}.body")
        expect(span, Span, f"{owner}.span")


class InCoreScopeStmt(ScopeStmt):
    """Runs on one core; outlined to an InCore function."""

    __slots__ = ("split",)
    FIELDS = (*_COMMON, use("split", VALUE))
    VISIT_ORDER = ("attrs", "body")
    SCOPE_KIND = ScopeKind.InCore

    split: SplitMode

    def __init__(
        self,
        split: SplitMode = SplitMode.NONE,
        name_hint: str = "",
        body: Stmt = REQUIRED,
        span: Span = REQUIRED,
    ) -> None:
        expect(split, SplitMode, "InCoreScopeStmt.split")
        self._check_common(name_hint, body, span)
        self._fill(name_hint, body, {}, split, span)


class ClusterScopeStmt(ScopeStmt):
    """Runs on one cluster of cores; outlined to a Group function."""

    __slots__ = ()
    FIELDS = _COMMON
    VISIT_ORDER = ("attrs", "body")
    SCOPE_KIND = ScopeKind.Cluster

    def __init__(self, name_hint: str = "", body: Stmt = REQUIRED, span: Span = REQUIRED) -> None:
        self._check_common(name_hint, body, span)
        self._fill(name_hint, body, {}, span)


class HierarchyScopeStmt(ScopeStmt):
    """Runs at a level of the machine above the core group."""

    __slots__ = ("level", "role")
    FIELDS = (*_COMMON, use("level", VALUE), use("role", VALUE))
    VISIT_ORDER = ("attrs", "body")
    SCOPE_KIND = ScopeKind.Hierarchy

    level: Level
    role: Role | None

    def __init__(
        self,
        level: Level,
        role: Role | None = None,
        name_hint: str = "",
        body: Stmt = REQUIRED,
        span: Span = REQUIRED,
    ) -> None:
        expect(level, Level, "HierarchyScopeStmt.level")
        if role is not None:
            expect(role, Role, "HierarchyScopeStmt.role")
        self._check_common(name_hint, body, span)
        self._fill(name_hint, body, {}, level, role, span)


class SpmdScopeStmt(ScopeStmt):
    """Launches `core_num` blocks of its body, all at once when `sync_start`; outlined to a Spmd function."""

    __slots__ = ("core_num", "sync_start")
    FIELDS = (*_COMMON, use("core_num"), use("sync_start", VALUE))
    VISIT_ORDER = ("core_num", "attrs", "body")
    REWRITE_ORDER = ("core_num", "body", "attrs")
    SCOPE_KIND = ScopeKind.Spmd

    core_num: Expr
    sync_start: bool

    def __init__(
        self,
        core_num: Expr | int,
        sync_start: bool = False,
        name_hint: str = "",
        body: Stmt = REQUIRED,
        span: Span = REQUIRED,
    ) -> None:
        self._check_common(name_hint, body, span)
        blocks = ConstInt(core_num, DataType.INDEX, span) if isinstance(core_num, int) else core_num
        expect(blocks, Expr, "SpmdScopeStmt.core_num")
        expect(sync_start, bool, "SpmdScopeStmt.sync_start")
        self._fill(name_hint, body, {}, blocks, sync_start, span)


class RuntimeScopeStmt(ScopeStmt):
    """A region of the task graph; in a manual one only declared dependencies order the tasks."""

    __slots__ = ("manual",)
    FIELDS = (*_COMMON, use("manual", VALUE))
    VISIT_ORDER = ("attrs", "body")
    SCOPE_KIND = ScopeKind.Runtime

    manual: bool

    def __init__(
        self, manual: bool = False, name_hint: str = "", body: Stmt = REQUIRED, span: Span = REQUIRED
    ) -> None:
        expect(manual, bool, "RuntimeScopeStmt.manual")
        self._check_common(name_hint, body, span)
        self._fill(name_hint, body, {}, manual, span)


class CommDomainScopeStmt(ScopeStmt):
    """A communication domain over `devices` (empty means all) with its window buffers."""

    __slots__ = ("devices_", "slots_")
    FIELDS = (*_COMMON, use("devices", VALUES), use("slots", NODES))
    VISIT_ORDER = ("attrs", "slots", "body")
    REWRITE_ORDER = ("body", "slots", "attrs")
    SCOPE_KIND = ScopeKind.CommDomain

    devices_: tuple[int, ...]
    slots_: tuple[WindowBuffer, ...]

    def __init__(
        self,
        devices: Sequence[int],
        slots: Sequence[WindowBuffer],
        name_hint: str = "",
        body: Stmt = REQUIRED,
        span: Span = REQUIRED,
    ) -> None:
        self._check_common(name_hint, body, span)
        numbers = expect_all(devices, int, "CommDomainScopeStmt.devices")
        buffers = expect_all(slots, WindowBuffer, "CommDomainScopeStmt.slots")
        self._fill(name_hint, body, {}, numbers, buffers, span)

    @property
    def devices(self) -> list[int]:
        return list(self.devices_)

    @property
    def slots(self) -> list[WindowBuffer]:
        return list(self.slots_)


class SplitAivScopeStmt(ScopeStmt):
    """A region whose vector work is split over the two vector cores of a cluster."""

    __slots__ = ("count", "split")
    FIELDS = (*_COMMON, use("split", VALUE), use("count", VALUE))
    VISIT_ORDER = ("attrs", "body")
    SCOPE_KIND = ScopeKind.SplitAiv

    split: SplitMode
    count: int

    def __init__(
        self,
        split: SplitMode,
        count: int = 2,
        name_hint: str = "",
        body: Stmt = REQUIRED,
        span: Span = REQUIRED,
    ) -> None:
        expect(split, SplitMode, "SplitAivScopeStmt.split")
        self._check_common(name_hint, body, span)
        expect(count, int, "SplitAivScopeStmt.count")
        if count != 2:
            raise internal_error(f"SplitAivScopeStmt.count must be 2, got {count}", span)
        self._fill(name_hint, body, {}, split, count, span)


__all__ = [
    "ClusterScopeStmt", "CommDomainScopeStmt", "HierarchyScopeStmt", "InCoreScopeStmt", "RuntimeScopeStmt",
    "ScopeStmt", "SplitAivScopeStmt", "SpmdScopeStmt",
]  # fmt: skip
