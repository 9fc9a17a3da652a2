"""The `pl` surface: everything a program of the DSL mentions.

Importing it is cheap. The parser, the text front end and the JIT load when they are first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from pypto.ir import (
    AtomicType,
    CompactMode,
    DataType,
    ForKind,
    FunctionType,
    Level,
    MemorySpace,
    PadValue,
    PipeType,
    PtrType,
    Role,
    SplitMode,
    TensorLayout,
    TensorView,
    TileLayout,
    TileView,
)
from pypto.ir.types import MemRefType
from pypto.language import adir, optimizations, parser
from pypto.language.contexts import ScopeMode, at, cluster, manual_scope, scope, split_aiv, spmd
from pypto.language.decorators import function, inline, program
from pypto.language.inline_function import InlineFunction
from pypto.language.iterators import parallel, pipeline, range, unroll, while_
from pypto.language.markers import (
    cond,
    const,
    func_attr,
    spmd_submit,
    static_assert,
    static_print,
    submit,
    yield_,
)
from pypto.language.op import *  # noqa: F403
from pypto.language.op import __all__ as _op_names
from pypto.language.optimizations import cross_core_slot, split
from pypto.language.typing import (
    RUNTIME,
    Array,
    AsyncEvent,
    AsyncSession,
    DynVar,
    InOut,
    IntLike,
    MemRef,
    Out,
    PrefetchAsyncContext,
    Scalar,
    Tensor,
    Tile,
    Tuple,
    dynamic,
)

Mem = MemorySpace
Ptr = PtrType
TaskId = Scalar(DataType.TASK_ID)

FP4 = DataType.FP4
FP8E4M3FN = DataType.FP8E4M3FN
FP8E5M2 = DataType.FP8E5M2
FP8E8M0 = DataType.FP8E8M0
FP16 = DataType.FP16
FP32 = DataType.FP32
BF16 = DataType.BF16
HF4 = DataType.HF4
HF8 = DataType.HF8
INT4 = DataType.INT4
INT8 = DataType.INT8
INT16 = DataType.INT16
INT32 = DataType.INT32
INT64 = DataType.INT64
UINT4 = DataType.UINT4
UINT8 = DataType.UINT8
UINT16 = DataType.UINT16
UINT32 = DataType.UINT32
UINT64 = DataType.UINT64
BOOL = DataType.BOOL
INDEX = DataType.INDEX
TASK_ID = DataType.TASK_ID

ND = TensorLayout.ND
DN = TensorLayout.DN
NZ = TensorLayout.NZ
MX_A_ZZ = TensorLayout.MX_A_ZZ
MX_B_NN = TensorLayout.MX_B_NN

_LAZY = {
    "parse": "pypto.language.text",
    "loads": "pypto.language.text",
    "parse_program": "pypto.language.text",
    "loads_program": "pypto.language.text",
    "jit": "pypto.jit",
    "JITFunction": "pypto.jit",
}


def __getattr__(name: str) -> Any:
    if name == "distributed":
        return importlib.import_module("pypto.language.distributed")
    home = _LAZY.get(name)
    if home is None:
        raise AttributeError(f"module 'pypto.language' has no attribute '{name}'{_suggestion(name)}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def _suggestion(name: str) -> str:
    import difflib

    if name.startswith("__"):
        return ""
    close = difflib.get_close_matches(name.upper(), _DTYPE_NAMES, n=1, cutoff=0.5)  # FLOAT32, float16, i8
    close = difflib.get_close_matches(name, __all__, n=1, cutoff=0.7) or close
    return f". Did you mean 'pl.{close[0]}'?" if close else ""


_DTYPE_NAMES = [
    "FP4", "FP8E4M3FN", "FP8E5M2", "FP8E8M0", "FP16", "FP32", "BF16", "HF4", "HF8", "INT4", "INT8", "INT16",
    "INT32", "INT64", "UINT4", "UINT8", "UINT16", "UINT32", "UINT64", "BOOL", "INDEX", "TASK_ID",
]  # fmt: skip

__all__ = [
    # decorators and entry points
    "function", "program", "inline", "InlineFunction", "parser", *_LAZY,
    # types and annotation objects
    "Tensor", "Tile", "Scalar", "Array", "Tuple", "DynVar", "dynamic", "Out", "InOut", "IntLike", "RUNTIME",
    "MemRef", "Ptr", "PtrType", "MemRefType", "TensorView", "TileView", "PrefetchAsyncContext",
    "AsyncEvent", "AsyncSession", "TaskId",
    # helpers of bodies
    "range", "parallel", "unroll", "pipeline", "while_", "yield_", "cond", "const", "static_print",
    "static_assert", "func_attr", "at", "cluster", "spmd", "split_aiv", "scope", "manual_scope", "split",
    "cross_core_slot", "submit", "spmd_submit", "optimizations", "adir", "ScopeMode",
    # enums
    "FunctionType", "ForKind", "Level", "Role", "SplitMode", "MemorySpace", "Mem", "TensorLayout",
    "TileLayout", "PadValue", "CompactMode", "AtomicType", "PipeType", "ND", "DN", "NZ", "MX_A_ZZ",
    "MX_B_NN",
    # dtypes
    "DataType", *_DTYPE_NAMES,
    # operators
    *_op_names,
]  # fmt: skip
