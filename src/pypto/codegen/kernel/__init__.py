"""Kernel code generation: an InCore function with tile operators becomes freestanding C++.

The text is meant to be read: one line per operator, under the line of the program that it comes from. What
an operator does is looked up in its declared meaning; where tiles live is planned in `storage`; everything
numeric is in the headers of the CPU kernel library.
"""

from __future__ import annotations

from pypto.codegen.kernel.errors import KernelError
from pypto.codegen.kernel.generator import KernelSource, generate_kernel
from pypto.codegen.kernel.whole_program import PTOCodegen

__all__ = ["KernelError", "KernelSource", "PTOCodegen", "generate_kernel"]
