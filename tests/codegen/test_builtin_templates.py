"""Build directories that are written from templates."""

from __future__ import annotations

import pytest

from pypto.codegen import BuiltinNextLevelSpec, write_builtin_next_level
from pypto.runtime.assemble import compile_and_assemble
from pypto.runtime.kernel_config import load_kernel_config

CONFIG = """\
from pathlib import Path
from pypto.runtime.task_interface import ArgDirection as _D
_ROOT_DIR = Path(__file__).parent
ORCHESTRATION = {"source": str(_ROOT_DIR / "orch.cpp"), "function_name": {{ entry_symbol | tojson }}}
KERNELS = [{"func_id": 0, "name": "sum", "source": str(_ROOT_DIR / "sum.cpp"), "core_type": "aiv",
            "signature": [_D.INOUT], "template": "{{ variant }}", "template_inputs": {{ inputs }}}]
"""
KERNEL = """\
#include "pypto_abi.h"
extern "C" __attribute__((visibility("default"))) void kernel_entry(int64_t* args) { args[0] += {{ ranks }}; }
extern "C" __attribute__((visibility("default"))) const uint64_t kernel_workspace_bytes = 0;
"""
ORCHESTRATION = """\
#include "pto_orchestration_api.h"
extern "C" __attribute__((visibility("default")))
void {{ entry_symbol }}(const ChipTaskArgs&) { /* ranks as text: {{ note }} */ }
"""


@pytest.fixture
def template(tmp_path):
    folder = tmp_path / "template"
    folder.mkdir()
    for name, text in (("kernel_config.py", CONFIG), ("sum.cpp", KERNEL), ("orch.cpp", ORCHESTRATION)):
        (folder / name).write_text(text)
    return folder


def spec(template, variant="sum_2", **inputs):
    return BuiltinNextLevelSpec("pld.tensor.allreduce", variant, "sum_entry", str(template), inputs)


def test_each_variant_is_a_build_directory_with_an_identity_of_its_own(template, tmp_path):
    note = 'quotes " and \\ survive'
    two, same, four = (
        spec(template, "sum_2", ranks=2, note=note),
        spec(template, "sum_2", ranks=2, note=note),
        spec(template, "sum_4", ranks=2, note=note),
    )
    files = write_builtin_next_level(two, tmp_path / "a")
    root = tmp_path / "a" / "next_levels" / "sum_2"
    assert [str(f.relative_to(root)) for f in files] == ["orch.cpp", "sum.cpp", "kernel_config.py"]
    (row,) = load_kernel_config(root).kernels
    assert row.template is not None and row.template.variant == "sum_2"
    write_builtin_next_level(same, tmp_path / "b")
    write_builtin_next_level(four, tmp_path / "a")
    chips = [
        compile_and_assemble(tmp_path / folder / "next_levels" / variant, "a2a3sim")[0]
        for folder, variant in (("a", "sum_2"), ("b", "sum_2"), ("a", "sum_4"))
    ]
    assert chips[0].func_name == "sum_entry"
    paths = [chip.child(0).binary.path for chip in chips]
    assert paths[0] == paths[1] != paths[2], "equal text, but another variant"


def test_what_a_template_lacks_is_named(template, tmp_path):
    with pytest.raises(ValueError, match="'note' is undefined"):
        write_builtin_next_level(spec(template, ranks=2), tmp_path)
    with pytest.raises(ValueError, match=r"'\.\./x' of 'pld.tensor.allreduce' is no name"):
        write_builtin_next_level(spec(template, "../x", ranks=2, note=""), tmp_path)
    (template / "kernel_config.py").unlink()
    with pytest.raises(ValueError, match=r"has no kernel_config\.py"):
        write_builtin_next_level(spec(template, ranks=2, note=""), tmp_path)
    assert not (tmp_path / "next_levels").exists()
