"""The enumerations of the IR. Values are part of the serialized form.

`str` and `repr` of a member are both `ClassName.MEMBER`. Members of the integer enumerations equal their
value.
"""

from __future__ import annotations

import enum


class _IREnum(enum.Enum):
    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


class _IRIntEnum(enum.IntEnum):
    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


class TensorLayout(_IREnum):
    ND = 0
    DN = 1
    NZ = 2
    MX_A_ZZ = 3
    MX_B_NN = 4


class TileLayout(_IREnum):
    none_box = 0
    row_major = 1
    col_major = 2


class PadValue(_IREnum):
    null = 0
    zero = 1
    max = 2
    min = 3


class CompactMode(_IREnum):
    null = 0
    normal = 1


class MemorySpace(_IREnum):
    DDR = 0
    Vec = 1
    Mat = 2
    Left = 3
    Right = 4
    Acc = 5
    Bias = 6
    LeftScale = 8
    RightScale = 9
    ScalarLocal = 7


class ForKind(_IREnum):
    Sequential = 0
    Parallel = 1
    Unroll = 2
    Pipeline = 3


class ScopeKind(_IREnum):
    InCore = 0
    Cluster = 2
    Hierarchy = 3
    Spmd = 4
    Runtime = 5
    CommDomain = 6
    SplitAiv = 7


class SplitMode(_IREnum):
    NONE = 0
    UP_DOWN = 1
    LEFT_RIGHT = 2


class InlineLanguage(_IREnum):
    Python = 0


class FunctionType(_IREnum):
    Opaque = 0
    Orchestration = 1
    InCore = 2
    AIC = 3
    AIV = 4
    Group = 5
    Spmd = 6
    Inline = 7
    Graph = 8


class Level(_IREnum):
    AIV = 0
    AIC = 1
    CORE_GROUP = 2
    CHIP_DIE = 3
    CHIP = 4
    HOST = 5
    CLUSTER_0 = 6
    CLUSTER_1 = 7
    CLUSTER_2 = 8
    GLOBAL = 9
    L2CACHE = CHIP_DIE
    PROCESSOR = CHIP
    UMA = CHIP
    NODE = HOST
    POD = CLUSTER_0
    CLOS1 = CLUSTER_1
    CLOS2 = CLUSTER_2


class Role(_IREnum):
    Orchestrator = 0
    SubWorker = 1


class ParamDirection(_IREnum):
    """What a function promises about a parameter."""

    In = 0
    Out = 1
    InOut = 2


class ArgDirection(_IREnum):
    """How one dispatch uses one argument."""

    Input = 0
    Output = 1
    InOut = 2
    OutputExisting = 3
    NoDep = 4
    Scalar = 5


class ArgEffect(_IREnum):
    """What an operator does to the memory of one operand."""

    Read = 0
    Write = 1
    ReadWrite = 2


class WriteChannel(_IREnum):
    Dma = 0
    Scalar = 1


class PipeType(_IRIntEnum):
    MTE1 = 0
    MTE2 = 1
    MTE3 = 2
    M = 3
    V = 4
    S = 5
    FIX = 6
    ALL = 7


class CoreType(_IRIntEnum):
    CUBE = 0
    VECTOR = 1


class NotifyOp(_IRIntEnum):
    AtomicAdd = 0
    Set = 1


class WaitCmp(_IRIntEnum):
    Eq = 0
    Ge = 1


class AtomicType(_IRIntEnum):
    None_ = 0
    Add = 1


class ReduceOp(_IRIntEnum):
    Sum = 0
    Max = 1
    Min = 2
    Prod = 3


Mem = MemorySpace

LEAKED_ENUMS: tuple[type[enum.Enum], ...] = (
    TensorLayout, PadValue, MemorySpace, PipeType, CoreType, TileLayout, ForKind, ScopeKind, SplitMode,
    InlineLanguage, FunctionType, Level, Role, ParamDirection,
)  # fmt: skip
"""Enumerations whose members are also names of `pypto.ir`; where two share a name, the later enumeration
wins."""


def level_to_linqu_level(level: Level) -> int:
    """The hierarchy number of a level: cores are 0, a die 1, a chip 2, a host 3, clusters 4 to 6, global
    7. Raises `TypeError` for anything but a level."""
    if not isinstance(level, Level):
        raise TypeError(f"level_to_linqu_level needs a Level, got {type(level).__name__}")
    return 0 if level.value <= Level.CORE_GROUP.value else level.value - 2


def is_incore_type(func_type: FunctionType) -> bool:
    """Whether functions of this type run on a core (InCore, AIC or AIV).

    Raises `TypeError` for anything but a function type.
    """
    if not isinstance(func_type, FunctionType):
        raise TypeError(f"is_incore_type needs a FunctionType, got {type(func_type).__name__}")
    return func_type in (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)
