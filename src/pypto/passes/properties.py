"""Properties of the IR: what a pass needs, gives and loses.

A property is a named fact about a whole program ("every variable is assigned once"). Passes declare the
properties they require, produce and invalidate; the pipeline and the instruments decide which of them are
checked. The order of the members is part of the interface: sets list and print in that order.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar, Generic, NoReturn, TypeVar

if TYPE_CHECKING:
    from typing_extensions import Self


class IRProperty(enum.Enum):
    """A fact about a program that a pass may require, produce or invalidate."""

    SSAForm = 0
    TypeChecked = 1
    NoNestedCalls = 2
    NormalizedStmtStructure = 3
    NoRedundantBlocks = 4
    SplitIncoreOrch = 5
    HasMemRefs = 6
    IncoreTileOps = 7
    AllocatedMemoryAddr = 8
    MixedKernelExpanded = 9
    ClusterOutlined = 10
    TileOps2D = 11
    TileMemoryInferred = 12
    BreakContinueValid = 13
    UseAfterDef = 14
    HierarchyOutlined = 15
    StructuredCtrlFlow = 16
    VectorKernelSplit = 17
    OutParamNotShadowed = 18
    NoNestedInCore = 19
    InOutUseValid = 20
    PipelineLoopValid = 21
    PipelineResolved = 22
    CallDirectionsResolved = 23
    TileTypeCoherence = 24
    InlineFunctionsEliminated = 25
    OrchestrationReferencesResolved = 26
    TensorViewCanonical = 27
    ArrayNotEscaped = 28
    CommDomainScopesMaterialized = 29
    DistTensorCtxMaterialized = 30
    RuntimeScopesMaterialized = 31
    AssignTypeSymmetry = 32
    ManualDepsOnSubmitOnly = 33
    ReturnParamsExplicit = 34
    UnrollResolved = 35
    AivSplitValid = 36
    HardSyncallOccupancyValid = 37
    IterArgCarryClassified = 38
    AccToGmStoreValid = 39
    AtomicAddDtypeValid = 40

    def __str__(self) -> str:
        return f"IRProperty.{self.name}"

    __repr__ = __str__


E = TypeVar("E", bound=enum.Enum)


class EnumSet(Generic[E]):
    """A mutable set of enum members that lists and prints in declaration order.

    The constructor takes no elements. Sets compare by value and are not hashable, because they change.
    """

    __slots__ = ("_members",)
    KIND: ClassVar[type[enum.Enum]]

    def __init__(self) -> None:
        self._members: set[E] = set()

    @classmethod
    def of(cls, members: Iterable[E]) -> Self:
        """Build a set from its members."""
        result = cls()
        result._members.update(members)
        return result

    def _member(self, member: E) -> E:
        if not isinstance(member, self.KIND):
            raise TypeError(f"{type(self).__name__} holds {self.KIND.__name__}, got {type(member).__name__}")
        return member

    def _same(self, other: EnumSet[E]) -> set[E]:
        if type(other) is not type(self):
            raise TypeError(f"{type(self).__name__} combines with its like, got {type(other).__name__}")
        return other._members

    def insert(self, member: E) -> None:
        """Add one member."""
        self._members.add(self._member(member))

    def remove(self, member: E) -> None:
        """Drop one member; an absent one is no error."""
        self._members.discard(self._member(member))

    def contains(self, member: E) -> bool:
        """Say whether `member` is in the set."""
        return self._member(member) in self._members

    def empty(self) -> bool:
        """Say whether the set has no members."""
        return not self._members

    def difference(self, other: Self) -> Self:
        """Return the members that `other` lacks."""
        return type(self).of(self._members - self._same(other))

    def union_with(self, other: Self) -> Self:
        """Return the members of either set."""
        return type(self).of(self._members | self._same(other))

    def to_list(self) -> list[E]:
        """Return the members in declaration order."""
        if not self._members:
            return []
        return [member for member in type(next(iter(self._members))) if member in self._members]

    def copy(self) -> Self:
        """Return an independent set with the same members."""
        return type(self).of(self._members)

    def __iter__(self) -> Iterator[E]:
        return iter(self.to_list())

    def __str__(self) -> str:
        return "{" + ", ".join(member.name for member in self.to_list()) + "}"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        assert isinstance(other, EnumSet)
        return self._members == other._members

    def __hash__(self) -> NoReturn:
        raise TypeError(f"unhashable type: '{type(self).__name__}'")


class IRPropertySet(EnumSet[IRProperty]):
    """A set of IR properties."""

    __slots__ = ()
    KIND = IRProperty

    def contains_all(self, other: IRPropertySet) -> bool:
        """Say whether every member of `other` is in this set."""
        return self._members >= self._same(other)

    def intersection(self, other: IRPropertySet) -> IRPropertySet:
        """Return the members of both sets."""
        return IRPropertySet.of(self._members & self._same(other))


def property_set(*members: IRProperty) -> IRPropertySet:
    """Build a property set from its members."""
    return IRPropertySet.of(members)


_P = IRProperty

_STRUCTURAL = (
    _P.TypeChecked,
    _P.NoRedundantBlocks,
    _P.BreakContinueValid,
    _P.UseAfterDef,
    _P.OutParamNotShadowed,
    _P.NoNestedInCore,
    _P.InOutUseValid,
    _P.PipelineLoopValid,
    _P.ArrayNotEscaped,
    _P.ManualDepsOnSubmitOnly,
    _P.AtomicAddDtypeValid,
)

_DEFAULT_VERIFY = (
    _P.SSAForm,
    _P.TypeChecked,
    _P.NoNestedCalls,
    _P.NoRedundantBlocks,
    _P.BreakContinueValid,
    _P.UseAfterDef,
    _P.OutParamNotShadowed,
    _P.NoNestedInCore,
    _P.TileTypeCoherence,
    _P.ArrayNotEscaped,
)

_VERIFIED = (
    _P.SSAForm,
    _P.TypeChecked,
    _P.NoRedundantBlocks,
    _P.AllocatedMemoryAddr,
    _P.MixedKernelExpanded,
    _P.TileMemoryInferred,
    _P.BreakContinueValid,
    _P.InOutUseValid,
    _P.CallDirectionsResolved,
    _P.DistTensorCtxMaterialized,
    _P.RuntimeScopesMaterialized,
    _P.ManualDepsOnSubmitOnly,
    _P.ReturnParamsExplicit,
    _P.AivSplitValid,
    _P.HardSyncallOccupancyValid,
    _P.IterArgCarryClassified,
    _P.AccToGmStoreValid,
    _P.AtomicAddDtypeValid,
)


def get_structural_properties() -> IRPropertySet:
    """Return the properties that hold before and after every pass."""
    return property_set(*_STRUCTURAL)


def get_default_verify_properties() -> IRPropertySet:
    """Return what `run_verifier()` checks when it is given no set."""
    return property_set(*_DEFAULT_VERIFY)


def get_verified_properties() -> IRPropertySet:
    """Return the cheap properties that a pipeline checks by itself."""
    return property_set(*_VERIFIED)
