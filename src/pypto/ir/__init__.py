"""The intermediate representation: nodes, types, operators, traversal, comparison, printing, serialization.

`from pypto import ir` gives everything a compiler engineer needs. Names that belong to higher layers
(`ir.compile`, `ir.PassManager`, ...) are looked up on first use, so that importing the IR stays cheap and
layers stay
one-way.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from pypto.core.dtype import DataType
from pypto.core.lazy_module import make_lazy
from pypto.core.span import Span
from pypto.ir import enums as _enums
from pypto.ir import expr as _expr
from pypto.ir.enums import *
from pypto.ir.enums import ArgDirection, Mem, is_incore_type, level_to_linqu_level
from pypto.ir.expr import *
from pypto.ir.formatter import register_format_callback
from pypto.ir.node import IRNode
from pypto.ir.program import Function, Program
from pypto.ir.rewrite import Substitution, deep_clone, map_expr, substitute_expr, substitute_stmt
from pypto.ir.scalar_ops import (
    add,
    and_,
    bit_and,
    bit_not,
    bit_or,
    bit_shift_left,
    bit_shift_right,
    bit_xor,
    cast,
    eq,
    floordiv,
    ge,
    gt,
    le,
    lt,
    max_,
    min_,
    mod,
    mul,
    ne,
    neg,
    not_,
    or_,
    pow,
    sub,
    truediv,
)  # fmt: skip
from pypto.ir.scope import *
from pypto.ir.stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    InlineStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
    attach_leading_comments,
    flatten_stmts,
)  # fmt: skip
from pypto.ir.structural import assert_structural_equal, structural_equal, structural_hash
from pypto.ir.tree import (
    ParentStmtAnalysis,
    collect_def_vars,
    find_yield_stmt,
    flatten_to_stmts,
    get_last_yield_stmt,
)  # fmt: skip
from pypto.ir.types import (
    ArrayType,
    AsyncEventType,
    AsyncSessionType,
    CommCtxType,
    DistributedTensorType,
    PrefetchAsyncContextType,
    PtrType,
    ScalarType,
    ShapedType,
    TensorType,
    TileType,
    TupleType,
    Type,
    UnknownType,
    WindowBufferType,
    scalar_type,
)  # fmt: skip
from pypto.ir.views import TensorView, TileView
from pypto.ir.visitor import IRMutator, IRVisitor

DYNAMIC_DIM = -1

_SUBMODULES = frozenset({
    "builder", "compiled_program", "comm_layout", "directions", "distributed_compiled_program", "formatter",
    "instruments", "op", "op_conversion", "operators", "pass_manager", "printer", "serialization",
    "tensor_view_semantics", "type", "utils",
})  # fmt: skip

_LAZY = {
    name: module
    for module, names in {
        "pypto.passes.context": (
            "DiagnosticCheck",
            "DiagnosticCheckSet",
            "DiagnosticPhase",
            "PassContext",
            "VerificationLevel",
            "VerificationMode",
        ),
        "pypto.ir.pass_manager": ("PassManager", "OptimizationStrategy", "PassDumpLevel"),
        "pypto.ir.instruments": ("make_roundtrip_instrument",),
        "pypto.ir.compiled_program": ("CompiledProgram",),
        "pypto.ir.compile": ("compile",),
        "pypto.ir.builder": ("IRBuilder",),
        "pypto.ir.directions": (
            "make_call",
            "input",
            "output",
            "output_existing",
            "inout",
            "no_dep",
            "scalar_dir",
        ),
        "pypto.ir.printer": ("python_print", "python_print_type"),
        "pypto.ir.serialization": ("serialize", "deserialize", "serialize_to_file", "deserialize_from_file"),
        "pypto.ir.op_conversion": (
            "ConversionContext",
            "op_conversion",
            "register_op_conversion",
            "register_op_conversion_custom",
            "has_op_conversion",
        ),
        "pypto.ir.op_registry": (
            "create_op_call",
            "get_op",
            "get_op_arg_effect",
            "get_op_memory_spec",
            "get_op_write_channel",
            "is_op_registered",
            "op_has_declared_arg_effect",
            "op_has_declared_arg_effects",
        ),
        "pypto.ir.return_types": ("deduce_call_return_type",),
    }.items()
    for name in names
}

_DTYPES = (
    "FP4",
    "FP8E4M3FN",
    "FP8E5M2",
    "FP8E8M0",
    "FP16",
    "FP32",
    "BF16",
    "HF4",
    "HF8",
    "INT4",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "UINT4",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "BOOL",
    "INDEX",
)
for _name in _DTYPES:
    globals()[_name] = getattr(DataType, _name)
for _enum in _enums.LEAKED_ENUMS:
    globals().update(_enum.__members__)


def set_call_attrs(call: Call, attrs: Any) -> Call:
    """A copy of the call with exactly these attributes. A `Submit` is a `TypeError`."""
    if not isinstance(call, _expr.Call):
        raise TypeError(f"set_call_attrs needs a Call, got {type(call).__name__}")
    return call.replace(attrs=attrs)


def _public_names() -> list[str]:
    """What a user may import: the names defined here, those loaded on first use, the public modules."""
    plumbing = {"Any", "ModuleType", "annotations", "enum", "make_lazy"}
    defined = {
        name
        for name, value in globals().items()
        if not name.startswith("_") and name not in plumbing and not isinstance(value, ModuleType)
    }
    return sorted(defined | _LAZY.keys() | _SUBMODULES)


__all__ = _public_names()
make_lazy(__name__, {**_LAZY, **{name: f"{__name__}.{name}" for name in _SUBMODULES}})
