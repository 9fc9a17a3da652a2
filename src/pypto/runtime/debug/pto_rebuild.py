"""Kernel sources that are made from assembler files: a CPU build has none, its C++ is what is generated."""

from __future__ import annotations

from pathlib import Path

__all__ = ["rebuild_kernel_cpp_from_pto"]


def rebuild_kernel_cpp_from_pto(work_dir: Path | str) -> list[str]:
    """The kernels rebuilt from assembler files that are newer than their C++. Raises for no directory."""
    if not Path(work_dir).is_dir():
        raise FileNotFoundError(f"{work_dir} is not a directory")
    return []
