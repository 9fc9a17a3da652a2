"""Numerics of a program without any backend: `torch_codegen` writes Python that computes the same values."""

from __future__ import annotations

from pypto import ir
from pypto.debug.python_source import python_source
from pypto.debug.stages import validate_pass_ir_codegen_results

__all__ = ["torch_codegen", "validate_pass_ir_codegen_results"]


def torch_codegen(node: ir.Program | ir.Function, *, check_shapes: bool = False) -> str:
    """Python source that computes the values of a program or function, at any stage of compilation.

    Executed, the source defines one function per function of the IR, with the same name and parameters in the
    same order, without `self`. They take torch tensors on the CPU or numpy arrays, and numbers; outputs are
    written in place, and results are returned too. Tasks run in the order of the text, the blocks of a launch
    one after the other; what an operator computes comes from its declared meaning. Allocations and
    synchronisation do nothing.

    Args:
        check_shapes: assert that arguments have the static shapes of the parameters.

    Raises:
        TypeError: `node` is neither a program nor a function.
        ValueError: an operator or statement of the program has no meaning here, such as one that concerns
            several ranks.
    """
    if not isinstance(node, ir.Program | ir.Function):
        raise TypeError(f"torch_codegen takes a Program or a Function, got {type(node).__name__}")
    return python_source(node, check_shapes=check_shapes)
