from __future__ import annotations

import copy
import importlib
import pickle
import subprocess
import sys
import types

import pytest

import pypto
from pypto import ir

from .nodes import S

MODULES = """
pypto.pypto_core pypto.pypto_core.ir pypto.pypto_core.passes pypto.pypto_core.arith
pypto.pypto_core.codegen pypto.pypto_core.backend pypto.pypto_core.testing pypto.ir.builder pypto.ir.operators
pypto.ir.utils pypto.ir.type pypto.ir.directions pypto.ir.op pypto.ir.op_conversion pypto.ir.printer
pypto.ir.compile pypto.ir.compiled_program pypto.ir.distributed_compiled_program pypto.ir.pass_manager
pypto.ir.instruments pypto.ir.formatter pypto.arith pypto.backend pypto.tools pypto.language pypto.runtime
pypto.testing pypto.compile_profiling
"""

PACKAGE_NAMES = """
codegen ir language passes compile_profiling runtime testing Error InternalError LogLevel
set_log_level get_log_level log_debug log_info log_warn log_error log_fatal log_event check internal_check
internal_check_span DataType DT_BOOL DT_INT4 DT_INT8 DT_INT16 DT_INT32 DT_INT64 DT_UINT4 DT_UINT8 DT_UINT16
DT_UINT32 DT_UINT64 DT_FP4 DT_FP8E4M3FN DT_FP8E5M2 DT_FP8E8M0 DT_FP16 DT_FP32 DT_BF16 DT_HF4 DT_HF8
DT_INDEX
"""

LEAKED = {
    "TensorLayout": "ND DN NZ MX_A_ZZ MX_B_NN",
    "PadValue": "null zero max min",
    "MemorySpace": "DDR Vec Mat Left Right Acc Bias LeftScale RightScale ScalarLocal",
    "PipeType": "MTE1 MTE2 MTE3 M V S FIX ALL",
    "CoreType": "VECTOR CUBE",
    "TileLayout": "none_box row_major col_major",
    "ForKind": "Sequential Parallel Unroll Pipeline",
    "ScopeKind": "Cluster Hierarchy Runtime CommDomain SplitAiv",
    "SplitMode": "NONE UP_DOWN LEFT_RIGHT",
    "InlineLanguage": "Python",
    "FunctionType": "Opaque Orchestration InCore Group Spmd Inline Graph",
    "Level": "AIV AIC CORE_GROUP CHIP_DIE CHIP HOST CLUSTER_0 CLUSTER_1 CLUSTER_2 GLOBAL POD UMA NODE",
    "Role": "Orchestrator SubWorker",
    "ParamDirection": "In Out InOut",
}


def run(code: str) -> str:
    """Standard output of a fresh interpreter."""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return result.stdout.strip()


@pytest.mark.parametrize("name", MODULES.split())
def test_module_can_be_imported_by_its_path(name):
    assert importlib.import_module(name)


def test_package_offers_exactly_its_names():
    assert sorted(pypto.__all__) == sorted(PACKAGE_NAMES.split())
    assert all(getattr(pypto, name) is not None for name in PACKAGE_NAMES.split())
    assert pypto.__version__ == "0.1.0"
    for name in ("codegen", "passes", "testing"):
        assert getattr(pypto, name) is getattr(pypto.pypto_core, name)


def test_every_public_name_can_be_loaded():
    assert [name for name in ir.__all__ if not hasattr(ir, name)] == []
    assert not {"Any", "annotations", "enum", "make_lazy"} & set(ir.__all__)


@pytest.mark.parametrize("enumeration", LEAKED)
def test_enumeration_members_are_names_of_the_module(enumeration):
    for member in LEAKED[enumeration].split():
        assert getattr(ir, member) is getattr(getattr(ir, enumeration), member)


def test_members_of_other_enumerations_do_not_hide_classes():
    assert all(isinstance(getattr(ir, name), type) for name in ("Eq", "Ge", "Add", "Max", "Min"))
    assert not any(
        hasattr(ir, name) for name in ("normal", "Set", "Read", "Dma", "NoDep", "Scalar", "TASK_ID")
    )


def test_star_import_gives_nodes_and_the_names_of_higher_layers():
    code = "print(*(n.__name__ for n in (Call, IRBuilder, PassManager, serialize)))"
    assert run(f"from pypto.ir import *; {code}") == "Call IRBuilder PassManager serialize"


def test_lower_layer_has_the_same_classes_and_the_begin_end_builder():
    from pypto.pypto_core import ir as core

    assert core.Call is ir.Call and core.structural_equal is ir.structural_equal
    assert core.IRBuilder is not ir.IRBuilder and hasattr(core.IRBuilder, "begin_function")
    for name in ("make_call", "PassManager", "compile"):
        assert not hasattr(core, name)
    names: dict[str, object] = {}
    exec("from pypto.pypto_core.ir import *", names)
    assert names["ForStmt"] is ir.ForStmt and "make_call" not in names


def test_lower_layer_has_error_classes_below_the_builtin_ones():
    for name in (
        "ValueError",
        "TypeError",
        "RuntimeError",
        "NotImplementedError",
        "IndexError",
        "AssertionError",
    ):
        assert issubclass(getattr(pypto.pypto_core, name), __builtins__[name])
    assert pypto.pypto_core.InternalError is pypto.InternalError


def test_compile_stays_the_function_when_its_module_is_imported():
    module = importlib.import_module("pypto.ir.compile")
    assert isinstance(module, types.ModuleType) and isinstance(ir.compile, types.FunctionType)


def test_direction_shorthands_are_the_members():
    direction = ir.ArgDirection
    assert (ir.input, ir.output, ir.inout) == (direction.Input, direction.Output, direction.InOut)
    assert (ir.output_existing, ir.no_dep) == (direction.OutputExisting, direction.NoDep)
    assert ir.scalar_dir is ir.directions.scalar is direction.Scalar


def test_spans_can_be_copied_and_operators_cannot():
    span = ir.Span("f", 1, 2, 3, 4)
    for made in (copy.copy(span), pickle.loads(pickle.dumps(span))):
        assert (made.filename, made.begin_line, made.end_column) == ("f", 1, 4)
    for copier in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            copier(ir.GlobalVar("f"))


@pytest.mark.parametrize(
    "arguments",
    [
        {"device_ids": []},
        {"device_ids": [-1]},
        {"device_ids": [1, 1]},
        {"num_sub_workers": -1},
        {"aicpu_thread_num": 1},
    ],
)
def test_distributed_configuration_rejects_impossible_values(arguments):
    from pypto.ir.distributed_compiled_program import DistributedConfig

    assert list(DistributedConfig().device_ids) == [0]
    with pytest.raises(ValueError):
        DistributedConfig(**arguments)


def test_nodes_and_types_show_their_identity_in_repr_and_their_text_in_str():
    assert "object at" in repr(ir.ScalarType(ir.INT64)) and "object at" in repr(ir.BreakStmt(S))
    assert str(ir.ScalarType(ir.INT64)) == "pl.Scalar[pl.INT64]" and str(ir.UnknownType()) == "pl.UnknownType"
