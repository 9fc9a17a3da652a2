"""The text of `kernel_config.py`: what a build directory says about its orchestration and kernels.

The module is valid Python without side effects beyond its own names, loads wherever pypto is installed, and
has one KERNELS row per registration: rows of one code share name, source and core type.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence

from pypto.codegen.registrations import KernelRegistration
from pypto.ir.enums import CoreType
from pypto.ir.printer.literals import double_quoted
from pypto.ir.program import Function

__all__ = ["DEFAULT_RUNTIME", "core_folder", "external_source", "kernel_config_text"]

DEFAULT_RUNTIME = "tensormap_and_ringbuffer"

_HEAD = """\
# Kernel and Orchestration Configuration

from pathlib import Path
"""
_DIRECTION_IMPORT = """
from pypto.runtime.task_interface import ArgDirection as _D
"""


def kernel_config_text(
    orchestration: str,
    signature: Sequence[str],
    registrations: Sequence[KernelRegistration],
    functions: Mapping[str, Function],
    runtime: str = DEFAULT_RUNTIME,
) -> str:
    """The module for one orchestration. `functions` is the function table of the program, by name."""
    rows = [
        _kernel_row(row, functions[row.code_name]) for row in sorted(registrations, key=lambda r: r.func_id)
    ]
    has_signature = bool(signature) or any(row.signature for row in registrations)
    lines = [
        _HEAD + (_DIRECTION_IMPORT if has_signature else ""),
        "_ROOT_DIR = Path(__file__).parent",
        "",
        f"# Runtime configuration for {runtime}.",
        "# AICPU thread count 0 selects the runtime's architecture default (one worker thread per core on "
        "a CPU).",
        "RUNTIME_CONFIG = {",
        f'\t"runtime": {double_quoted(runtime)},',
        '\t"aicpu_thread_num": 0,',
        "}",
        "",
        "ORCHESTRATION = {",
        f'\t"source": {_rooted("orchestration", f"{orchestration}.cpp")},',
        '\t"function_name": "aicpu_orchestration_entry",',
        *([f'\t"signature": {_directions(signature)},'] if signature else []),
        "}",
        "",
        "KERNELS = [",
        *(f"\t{row}," for row in rows),
        "]",
        "",
    ]
    return "\n".join(lines)


def external_source(function: Function) -> str | None:
    """The path of a hand-written kernel; None for one that is generated."""
    source = function.attrs_.get("external_source")
    return source if isinstance(source, str) and source else None


def core_folder(core_type: CoreType) -> str:
    """`aic` or `aiv`: the folder of a kernel, and its core type in a row."""
    return "aic" if core_type is CoreType.CUBE else "aiv"


def _kernel_row(row: KernelRegistration, function: Function) -> str:
    core = core_folder(row.core_type)
    external = external_source(function)
    fields = [("func_id", str(row.func_id)), ("name", double_quoted(row.code_name))]
    if external is None:
        fields.append(("source", _rooted("kernels", core, f"{row.code_name}.cpp")))
        fields += [("core_type", double_quoted(core)), ("code_name", double_quoted(row.code_name))]
    else:
        fields += [
            ("source", double_quoted(external)),
            ("core_type", double_quoted(core)),
            ("external", "True"),
        ]
        include_dirs = _include_dirs(function, external)
        if include_dirs:
            listed = ", ".join(double_quoted(path) for path in include_dirs)
            fields.append(("extra_include_dirs", f"[{listed}]"))
    if row.signature:
        fields.append(("signature", _directions(row.signature)))
    return "{" + ", ".join(f'"{key}": {value}' for key, value in fields) + "}"


def _include_dirs(function: Function, source: str) -> list[str]:
    """The include folders of an external kernel: an attribute that holds a JSON list.

    Relative ones start at the folder of the source. Raises `ValueError` for another value.
    """
    text = function.attrs_.get("external_include_dirs")
    if not text:
        return []
    try:
        paths = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        paths = None
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise ValueError(
            f"'external_include_dirs' of '{function.name}' must be a JSON list of paths, got {text!r}"
        )
    return [os.path.normpath(os.path.join(os.path.dirname(source), path)) for path in paths]


def _rooted(*parts: str) -> str:
    return f"str(_ROOT_DIR / {' / '.join(double_quoted(part) for part in parts)})"


def _directions(signature: Sequence[str]) -> str:
    return f"[{', '.join(f'_D.{token}' for token in signature)}]"
