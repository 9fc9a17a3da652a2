"""`replay`: run a build directory in place, after edits of its C++, and compare with its test data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pypto.codegen.artifact import HOST_CODE
from pypto.runtime import golden, metadata
from pypto.runtime._binary_cache import binary_context_lock, invalidate_binary_context
from pypto.runtime.debug.pto_rebuild import rebuild_kernel_cpp_from_pto
from pypto.runtime.kernel_config import FILE_NAME
from pypto.runtime.run_config import RunConfig
from pypto.runtime.runner import _DfxOpts, execute_compiled, execute_distributed_compiled

__all__ = ["invalidate_binary_cache", "replay"]


def invalidate_binary_cache(work_dir: Path | str) -> int:
    """Forget the binaries that lie in a build directory; how many there were.

    Binaries of the store need no invalidation: an edited source is another key.
    """
    root = Path(work_dir)
    if not root.is_dir():
        raise FileNotFoundError(f"{root} is not a directory")
    with binary_context_lock(root):
        return invalidate_binary_context(root)


def replay(
    work_dir: Path | str,
    *tensors: Any,
    config: RunConfig | None = None,
    recompile: bool = True,
    rebuild_from_pto: bool = True,
    validate: bool = False,
) -> None:
    """Run a build directory in place; C++ that was edited is compiled again.

    Raises `FileNotFoundError` for what is no build directory, and, with `validate`, `AssertionError` for
    outputs that differ from what the directory's `golden.py` computes.
    """
    root = Path(work_dir)
    if not (root / FILE_NAME).is_file() and not (root / HOST_CODE).is_file():
        raise FileNotFoundError(f"{root} is not a build_output directory: no {FILE_NAME}")
    test_data = _test_data(root, tensors) if validate else None
    if rebuild_from_pto:
        rebuilt = rebuild_kernel_cpp_from_pto(root)
        print(f"[pto->cpp] {len(rebuilt)} kernel(s) rebuilt", flush=True)
    if recompile:
        count = invalidate_binary_cache(root)
        done = f"invalidated {count} cached binary file(s); cpp will rebuild"
        print(f"[cpp->.so] {done if count else 'no cached binaries to invalidate'}", flush=True)
    settings = config or RunConfig(platform=_platform_of(root))
    print("[execute] running on device...", flush=True)
    dfx = _DfxOpts.from_run_config(settings)
    if not (root / FILE_NAME).is_file():
        execute_distributed_compiled(root, tensors, config)
    else:
        execute_compiled(root, tensors, platform=settings.platform, device_id=settings.device_id, dfx=dfx)
    if test_data is not None:
        data, names, expected = test_data
        results = dict(zip(names, tensors, strict=True))
        golden.validate_golden(results, expected, data.rtol, data.atol)


def _test_data(root: Path, tensors: Sequence[Any]) -> tuple[golden.Golden, list[str], dict[str, Any]]:
    """The directory's test data, the names of the tensors, and what should come out of them."""
    data = golden.load_golden(root)
    names = [name for name, _ in data.generate_inputs({})]
    if len(names) != len(tensors):
        raise ValueError(f"{golden.FILE_NAME} has {len(names)} inputs, but {len(tensors)} tensors are given")
    for name, value in zip(names, tensors, strict=True):
        if not hasattr(value, "shape"):
            raise TypeError(f"'{name}' must be a tensor to be validated, got {type(value).__name__}")
    return data, names, data.expected(list(zip(names, tensors, strict=True)))


def _platform_of(root: Path) -> str:
    try:
        return metadata.read_sidecar(root).platform
    except FileNotFoundError:
        return RunConfig().platform
