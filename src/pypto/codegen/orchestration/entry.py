"""The file around the body: includes, argument count, parameters, extent symbols."""

from __future__ import annotations

from pypto.codegen.extents import solve_extent
from pypto.codegen.orchestration.cpp_types import cpp_type
from pypto.codegen.orchestration.emission import Binding, Emission, Symbol
from pypto.codegen.orchestration.naming import base_name
from pypto.codegen.orchestration.scalars import HELPERS
from pypto.core.errors import InternalError
from pypto.ir.enums import ParamDirection
from pypto.ir.expr import Var
from pypto.ir.program import Function
from pypto.ir.types import CommCtxType, ScalarType, TensorType

__all__ = ["bind_parameters", "file_text", "orchestration_signature"]

_SIGNATURE = {ParamDirection.In: "IN", ParamDirection.Out: "OUT", ParamDirection.InOut: "INOUT"}


def orchestration_signature(function: Function) -> list[str]:
    """One of "IN", "OUT", "INOUT" per tensor parameter."""
    return [
        _SIGNATURE[direction]
        for param, direction in zip(function.params_, function.param_directions_, strict=True)
        if isinstance(param.type, TensorType)
    ]


def bind_parameters(emission: Emission) -> list[str]:
    """Bind the parameters; the lines that declare them. Tensors and scalars count separately."""
    tensors: list[str] = []
    scalars: list[str] = []
    for param in emission.function.params_:
        if isinstance(param.type, TensorType):
            position = len(tensors)
            name = emission.names.derived(f"ext_{base_name(param.name_hint) or 'arg'}")
            tensors.append(f"const ChipTensor& {name} = orch_args.tensor({position}).ref();")
            binding = Binding(name)
            emission.tensor_positions[id(param)] = position
            emission.first_tensor = emission.first_tensor or binding
            _note_symbols(emission, param.type, position)
        else:
            name = emission.names.of_variable(param)
            scalars.append(_scalar_param(param, name, len(scalars)))
            binding = Binding(name)
            emission.scalar_params.setdefault(param.name_hint, param)
        emission.bind(param, binding)
    lines = []
    if tensors:
        lines += ["// External tensors", *tensors, ""]
    if scalars:
        lines += ["// Scalar params", *scalars, ""]
    return lines


def _scalar_param(param: Var, name: str, position: int) -> str:
    if isinstance(param.type, CommCtxType):
        return f"uint64_t {name} = orch_args.scalar({position});"
    if not isinstance(param.type, ScalarType):
        raise InternalError(f"the parameter '{param.name_hint}' is neither a tensor nor a scalar")
    kind = cpp_type(param.type.dtype)
    return f"{kind} {name} = from_u64<{kind}>(orch_args.scalar({position}));"


def _note_symbols(emission: Emission, type_: TensorType, position: int) -> None:
    """Remember which symbols this parameter's extents declare; the first parameter and axis win.

    An extent that is a symbol itself wins over one that has to be solved for it.
    """
    for axis, dim in enumerate(type_.shape_):
        solved = solve_extent(dim)
        if solved is None or not solved.exact:
            continue
        symbol = Symbol(solved.var, position, axis, solved.undo)
        known = emission.symbols.get(id(symbol.var))
        if known is None or (known.adjustment and not symbol.adjustment):
            emission.symbols[id(symbol.var)] = symbol
        if not symbol.adjustment:
            emission.symbols_by_hint.setdefault(symbol.var.name_hint, symbol)


def file_text(emission: Emission, parameters: list[str]) -> str:
    """The whole file, once the body has been emitted."""
    function = emission.function
    lines = ["#include <stddef.h>", "#include <stdint.h>", "#include <stdio.h>", ""]
    lines += ['#include "pto_orchestration_api.h"', ""]
    for helper in emission.helpers:
        lines += [HELPERS[helper], ""]
    lines += [
        'extern "C" {',
        "",
        '__attribute__((visibility("default")))',
        "PTO2OrchestrationConfig aicpu_orchestration_config(const ChipTaskArgs& orch_args) {",
        "    (void)orch_args;",
        "    return PTO2OrchestrationConfig{",
        f"        .expected_arg_count = {len(function.params_)},",
        "    };",
        "}",
        "",
        '__attribute__((visibility("default")))',
        "void aicpu_orchestration_entry(const ChipTaskArgs& orch_args) {",
        "    (void)orch_args;" if not parameters else "",
    ]
    if not lines[-1]:
        lines.pop()
    entry = [*parameters, *_symbol_lines(emission)]
    lines += [f"    {line}" if line else "" for line in entry]
    body = emission.block.lines
    while body and not body[-1]:
        body.pop()
    lines += body
    while lines and not lines[-1]:
        lines.pop()
    lines += ["}", "", '}  // extern "C"', ""]
    return "\n".join(lines)


def _symbol_lines(emission: Emission) -> list[str]:
    if not emission.read_symbols:
        return []
    declarations = [
        f"int64_t {name} = (int64_t)orch_args.tensor({symbol.tensor}).ref().shapes[{symbol.axis}]"
        f"{symbol.adjustment};"
        for name, symbol in sorted(emission.read_symbols, key=lambda each: (each[1].tensor, each[1].axis))
    ]
    return ["// Dynamic-dim symbols (extent of the declaring argument)", *declarations, ""]
