"""The translation unit of a kernel: workspace size, entry, arguments, body."""

from __future__ import annotations

from dataclasses import dataclass

from pypto import ir
from pypto.codegen.kernel.elements import element_of
from pypto.codegen.kernel.emitter import Emitter
from pypto.codegen.kernel.errors import KernelError, place
from pypto.codegen.kernel.extents import bind_extents, unbound_extents
from pypto.codegen.kernel.returns import check_returns
from pypto.codegen.kernel.statements import emit_body
from pypto.codegen.kernel.storage import StoragePlan, plan_storage
from pypto.codegen.kernel.tensor_roots import tensor_roots
from pypto.ir.walk import vars_in
from pypto.passes.convert_tensor_to_tile_ops.tuples import without_tuple_literals

_MAX_TENSORS = 32
_MAX_SCALARS = 16
_BASE_HEADER = "pypto_kernel.h"


@dataclass(frozen=True, slots=True)
class KernelSource:
    """The C++ text of one kernel function.

    Attributes:
        code_name: name of the function in the program.
        core_type: the kind of core that it runs on.
        text: a complete translation unit against the CPU kernel headers.
    """

    code_name: str
    core_type: ir.CoreType
    text: str


def generate_kernel(program: ir.Program, func: ir.Function, *, show_places: bool = True) -> KernelSource:
    """Translate an InCore, AIC or AIV function with tile operators into C++.

    With `show_places` comments name the lines that it comes from.

    Raises:
        KernelError: something in the function has no form on the CPU; names it and its place in the program.
        ValueError: `func` is not a kernel, or a dynamic dimension cannot be recovered from its arguments.
    """
    if not ir.is_incore_type(func.func_type):
        raise ValueError(f"function '{func.name}' is of type {func.func_type.name}, which is not a kernel")
    if program.get_function(func.name) is not func:
        raise ValueError(f"function '{func.name}' is not the one of program '{program.name}'")
    func = without_tuple_literals(func)  # also those of kernels that were written on tiles
    emitter = Emitter(func, _plan(func), tensor_roots(func.body), show_places=show_places)
    _emit_parameters(emitter, func)
    check_returns(func)
    emit_body(emitter, func.body)
    return KernelSource(func.name, _core_type(func), _assemble(func, emitter, show_places))


def _core_type(func: ir.Function) -> ir.CoreType:
    return ir.CoreType.CUBE if func.func_type is ir.FunctionType.AIC else ir.CoreType.VECTOR


def _plan(func: ir.Function) -> StoragePlan:
    try:
        return plan_storage(func)
    except KernelError:
        raise
    except ValueError as error:
        raise KernelError(str(error), kernel=func.name, span=func.span) from error


def _emit_parameters(emitter: Emitter, func: ir.Function) -> None:
    """Arguments come as tensors first, then scalars, each in order of declaration."""
    tensors = [param for param in func.params_ if isinstance(param.type, ir.TensorType)]
    scalars = [param for param in func.params_ if isinstance(param.type, ir.ScalarType)]
    if len(tensors) + len(scalars) != len(func.params_):
        odd = next(
            param for param in func.params_ if not isinstance(param.type, (ir.TensorType, ir.ScalarType))
        )
        raise KernelError(
            f"parameter '{odd.name_hint}' of type {type(odd.type).__name__} cannot be passed to a kernel",
            kernel=func.name, span=func.span,
        )  # fmt: skip
    if len(tensors) > _MAX_TENSORS or len(scalars) > _MAX_SCALARS:
        raise KernelError(
            f"{len(tensors)} tensors and {len(scalars)} scalars are too many parameters: a kernel takes at "
            f"most {_MAX_TENSORS} tensors and {_MAX_SCALARS} scalars",
            kernel=func.name, span=func.span,
        )  # fmt: skip
    with emitter.located(func.span):
        for slot, param in enumerate(tensors):
            _emit_tensor(emitter, func, param, slot)
        for position, param in enumerate(scalars):
            _emit_scalar(emitter, param, len(tensors) + position)
        _emit_extents(emitter, func, tensors)


def _emit_tensor(emitter: Emitter, func: ir.Function, param: ir.Var, slot: int) -> None:
    assert isinstance(param.type, ir.TensorType)
    direction = func.param_directions_[next(i for i, other in enumerate(func.params_) if other is param)]
    ctype = f"{element_of(param.type.dtype).stored}, {len(param.type.shape_)}"
    name = emitter.bind(param)
    emitter.line(
        f"const auto {name} = kernel.tensor<{ctype}>({slot});  // {direction.name} {_shape_text(param.type)}"
    )


def _shape_text(type: ir.TensorType) -> str:
    dims = ", ".join(_dim_text(dim) for dim in type.shape_)
    return f"[{dims}]"


def _dim_text(dim: ir.Expr) -> str:
    if isinstance(dim, ir.ConstInt):
        return str(dim.value)
    return dim.name_hint if isinstance(dim, ir.Var) else "..."


def _emit_scalar(emitter: Emitter, param: ir.Var, slot: int) -> None:
    assert isinstance(param.type, ir.ScalarType)
    element = element_of(param.type.dtype)
    emitter.line(f"const {element.compute} {emitter.bind(param)} = kernel.scalar<{element.stored}>({slot});")


def _emit_extents(emitter: Emitter, func: ir.Function, tensors: list[ir.Var]) -> None:
    types = [(param.type, emitter.names[param]) for param in tensors if isinstance(param.type, ir.TensorType)]
    bindings = bind_extents(types)
    for binding in bindings:
        if binding.var not in emitter.names:
            emitter.define_scalar(binding.var, binding.text)
    for type_, name in types:
        for dim in unbound_extents(type_, bindings):
            if all(var in emitter.names for var in vars_in(dim)):
                continue
            raise ValueError(
                f"Cannot recover dynamic dimension {dim} of parameter '{name}' of kernel '{func.name}': only "
                "M, M + c, M - c, M * c and M // c can be solved for M"
            )


def _assemble(func: ir.Function, emitter: Emitter, show_places: bool) -> str:
    where = place(func.span) if show_places else ""
    headers = [_BASE_HEADER, *sorted(emitter.headers)]
    size = str(emitter.plan.size)
    if emitter.needs_scratch:
        size = f"{size} + pypto::MATMUL_SCRATCH"
        emitter.lines.insert(0, f"    void* const scratch = kernel.workspace({emitter.plan.size});")
    return "\n".join(
        [
            f"// Kernel {func.name} ({func.func_type.name}){f', from {where}' if where else ''}",
            *(f'#include "{header}"' for header in headers),
            "",
            f'extern "C" PYPTO_EXPORT const uint64_t kernel_workspace_bytes = {size};',
            "",
            'extern "C" PYPTO_EXPORT void kernel_entry(int64_t* args) {',
            "    const pypto::Kernel kernel(args);",
            *emitter.lines,
            "}",
            "",
        ]
    )
