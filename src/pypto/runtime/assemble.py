"""From a build directory to callables: compile what is not in the store, attach signatures, join the parts.

Each code is compiled once, however many rows name it. What a row shares its code with follows from its kind:
generated rows by content, external ones by source path as well, those of a built-in template by its variant
and inputs as well, rows without a code name (hand-written configurations) not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pypto.backend.toolchain import CodeKind
from pypto.runtime import build
from pypto.runtime._binary_cache import (
    BinaryCacheContext,
    binary_context_lock,
    prepare_binary_context,
    record_binary_context,
)
from pypto.runtime.build import CompileJob
from pypto.runtime.callables import Binary, ChipCallable, CoreCallable
from pypto.runtime.kernel_config import FILE_NAME, KernelConfig, KernelRow, load_kernel_config

Identity = tuple[str, ...]


def compile_and_assemble(
    work_dir: Path | str, platform: str, *, portable: bool = False
) -> tuple[ChipCallable, str, Mapping[str, Any]]:
    """The callable of a build directory, the name of its runtime, and its runtime configuration.

    `portable` asks for code that runs on every CPU of this machine's family instead of the best for this one.

    Raises `FileNotFoundError` for a directory that cannot be loaded, `ValueError` for a malformed
    configuration, `CompileError` and `ToolchainError` when compiling fails.
    """
    root = Path(work_dir)
    if not (root / FILE_NAME).is_file():
        raise FileNotFoundError(_explain_missing_config(root))
    with binary_context_lock(root):
        config = load_kernel_config(root)
        context = BinaryCacheContext(
            platform=platform,
            runtime_name=config.runtime_name,
            runtime_revision=build.runtime_revision(),
            pto_isa_revision=build.compiler().describe(),
        )
        prepare_binary_context(root, context)
        chip = _assemble(config, platform, portable)
        record_binary_context(root, context)
    return chip, config.runtime_name, config.runtime_config


def _assemble(config: KernelConfig, platform: str, portable: bool) -> ChipCallable:
    orchestration = config.orchestration
    orchestration_job = CompileJob(
        CodeKind.ORCHESTRATION,
        orchestration.source,
        f"orchestration '{orchestration.source.stem}'",
        identity=("orchestration", config.runtime_name),
    )
    codes = [(_identity(row), row.name, row.source) for row in config.kernels]
    ids: dict[tuple[Identity, str, Path], list[int]] = {}
    for row, code in zip(config.kernels, codes, strict=True):
        ids.setdefault(code, []).append(row.func_id)
    target = (platform, config.runtime_name)
    jobs = [
        _kernel_job(row, code[0], ids[code], target) for row, code in zip(config.kernels, codes, strict=True)
    ]
    paths = build.compile_jobs([orchestration_job, *jobs], with_runtime=True, portable=portable)
    children = [
        (
            row.func_id,
            CoreCallable.build(row.signature, Binary.of(path), name=row.name, core_type=row.core_type),
        )
        for row, path in zip(config.kernels, paths[1:], strict=True)
    ]
    return ChipCallable.build(
        orchestration.signature,
        orchestration.function_name,
        Binary.of(paths[0]),
        children,
        orchestration.config_name,
    )


def _identity(row: KernelRow) -> Identity:
    """What keeps the code of a row apart from equal text, beside its core type."""
    if row.template is not None:
        return ("template", row.template.variant, row.template.inputs, row.core_type)
    if row.external:
        return ("external", str(row.source), *map(str, row.include_dirs), row.core_type)
    if row.code_name is None:
        return ("legacy", str(row.func_id), row.core_type)
    return ("generated", row.core_type)


def _kernel_job(row: KernelRow, identity: Identity, ids: list[int], target: tuple[str, str]) -> CompileJob:
    label = f"kernel '{row.name}' ({'id' if len(ids) == 1 else 'ids'} {', '.join(map(str, ids))})"
    kind = CodeKind.KERNEL if identity[0] == "generated" else CodeKind.EXTERNAL_KERNEL
    return CompileJob(kind, row.source, label, row.include_dirs, (*identity, *target))


def _explain_missing_config(root: Path) -> str:
    sources = len([*root.glob("kernels/**/*.cpp"), *root.glob("orchestration/*.cpp")]) if root.is_dir() else 0
    if not root.is_dir():
        return f"{root} does not exist; compile the program into it first"
    if sources == 0:
        return f"no {FILE_NAME} in {root} and no sources beside it: not a build directory"
    return (
        f"no {FILE_NAME} in {root}, which holds {sources} C++ sources: "
        "the compile that wrote them did not finish. Compile the program again"
    )
