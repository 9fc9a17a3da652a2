"""The road to the lowered program, pass by pass, and the check that every stage computes the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pypto import ir, passes
from pypto.testing.interpreter import run

TO_SSA = ("inline_functions", "unroll_loops", "ctrl_flow_transform", "convert_to_ssa", "simplify")
TO_DISPATCHES = (
    "normalize_stmt_structure",
    "flatten_call_expr",
    "outline_hierarchy_scopes",
    "outline_incore_scopes",
    "outline_cluster_scopes",
    "deduplicate_outlined_kernels",
)
LOWERING = (
    "convert_tensor_to_tile_ops",
    "inline_orchestrations",
    "expand_mixed_kernel",
    "normalize_return_order",
    "fuse_create_assemble_to_slice",
    "materialize_assemble_copies",
    "derive_call_directions",
    "auto_derive_task_dependencies",
    "expand_manual_phase_fence",
    "materialize_runtime_scopes",
    "classify_iter_arg_carry",
)


def through(program: ir.Program, *names: str) -> ir.Program:
    for name in names:
        program = getattr(passes, name)()(program)
    return program


def lowered(program: ir.Program, last: str = "classify_iter_arg_carry") -> ir.Program:
    """The program after the lowering pass `last`."""
    return through(program, *TO_SSA, *TO_DISPATCHES, *LOWERING[: LOWERING.index(last) + 1])


def converted(program: ir.Program) -> ir.Program:
    """The program after ConvertTensorToTileOps."""
    return lowered(program, "convert_tensor_to_tile_ops")


def check_meaning(program: ir.Program, make_args: Callable[[], list[Any]], entry: str = "main") -> ir.Program:
    """Run the program before outlining and after each lowering pass; returns the last stage."""
    ssa = through(program, *TO_SSA)
    wanted_args = make_args()
    wanted = run(ssa, entry, *wanted_args)
    stage = through(ssa, *TO_DISPATCHES)
    for name in LOWERING:
        stage = getattr(passes, name)()(stage)
        args = make_args()
        results = run(stage, entry, *args)
        for position, (got, expected) in enumerate(zip(args, wanted_args, strict=True)):
            np.testing.assert_allclose(
                got, expected, rtol=1e-5, atol=1e-5, err_msg=f"{name}: argument {position}"
            )
        for position, (got, expected) in enumerate(zip(results, wanted, strict=True)):
            np.testing.assert_allclose(
                got, expected, rtol=1e-5, atol=1e-5, err_msg=f"{name}: result {position}"
            )
    return stage


def random_args(*shapes: tuple[int, ...] | int, seed: int = 0) -> Callable[[], list[Any]]:
    """A maker of FP32 arrays of these shapes; a plain int is passed as a scalar."""

    def make() -> list[Any]:
        rng = np.random.default_rng(seed)
        return [
            rng.standard_normal(shape).astype(np.float32) if isinstance(shape, tuple) else shape
            for shape in shapes
        ]

    return make


def calls(function: ir.Function | None, prefix: str = "") -> list[str]:
    """Names of the operators and functions called in a body, in order, that start with `prefix`."""
    from pypto.ir.walk import walk

    assert function is not None
    return [
        node.op.name
        for node in walk(function.body)
        if isinstance(node, (ir.Call, ir.Submit)) and node.op.name.startswith(prefix)
    ]


def dispatches(function: ir.Function | None) -> list[ir.Call | ir.Submit]:
    """The dispatches of a body, in order."""
    from pypto.ir.walk import walk

    assert function is not None
    return [
        node
        for node in walk(function.body)
        if isinstance(node, (ir.Call, ir.Submit)) and isinstance(node.op, ir.GlobalVar)
    ]


def names_of(params: Any) -> list[str]:
    return [param.name_hint.partition("__ssa")[0] for param in params]
