"""All kernels of a program as one text."""

from __future__ import annotations

from pypto import ir
from pypto.codegen.kernel.generator import generate_kernel

__all__ = ["PTOCodegen"]


class PTOCodegen:
    """Generates the code of the kernels of a lowered program: C++ for the CPU."""

    def generate(self, program: ir.Program, emit_tile_addr: bool = True, emit_source_loc: bool = True) -> str:
        """The kernels of `program` in name order, each of them a translation unit of its own.

        Without `emit_source_loc` no comments name the lines of the program. A tile always says at which
        offset it lives, whatever `emit_tile_addr`: there is no assembler after this that could place it.

        Raises:
            KernelError: something in a kernel has no form on the CPU.
            ValueError: the program has no kernel.
        """
        kernels = [
            function
            for function in program.functions_.values()
            if ir.is_incore_type(function.func_type) and "external_source" not in function.attrs_
        ]
        if not kernels:
            raise ValueError(f"the program '{program.name}' has no kernel")
        return "\n".join(generate_kernel(program, each, show_places=emit_source_loc).text for each in kernels)
