"""The properties that every program must have on its way through the passes.

After each pass of the default pipeline the program computes what numpy computes from the same text, its text
parses back to an equal program, everything that the passes promised holds, and running the pass again gives
the same object. At the end the tasks may run in any order that their dependencies allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import pypto.language as pl
from pypto import ir, passes
from pypto.ir.pass_manager import OptimizationStrategy, PassManager
from pypto.passes.roundtrip import check_roundtrip
from pypto.testing.interpreter import Undetermined, run
from pypto.testing.programs import Generated
from pypto.testing.programs.twins import Twins

SEEDS = (3, 1)
"""The arguments that programs run on: `n` is 3 and 1, the symbolic extent 8 and 12."""

REBUILDS = frozenset({"ConvertToSSA", "ConvertTensorToTileOps"})
"""Passes that promise nothing about a second run."""


class Failure(AssertionError):
    """A property that does not hold; `stage` is the pass after which, `what` names the property."""

    def __init__(self, stage: str, what: str, detail: str) -> None:
        super().__init__(f"after {stage}: {what}: {detail}")
        self.stage, self.what = stage, what

    @property
    def key(self) -> tuple[str, str]:
        """What two occurrences of one bug have in common."""
        return self.stage, self.what


BOUNDARIES = frozenset(
    {"ConvertToSSA", "FlattenCallExpr", "OutlineClusterScopes", "DeduplicateOutlinedKernels", "Simplify"}
)
"""Passes after which a quick check looks at text and numbers."""


def check_program(
    generated: Generated,
    *,
    orders: int = 2,
    seeds: Sequence[int] = SEEDS,
    quick: bool = False,
    until: str | None = None,
) -> None:
    """Take a program through all passes and check the properties after each.

    Args:
        orders: in how many random orders the tasks run at the end.
        seeds: the arguments to run on.
        quick: look at text and numbers only after a few passes and at the end, and verify only what a pass
            produces.
        until: stop after this pass.

    Raises:
        Failure: one does not hold.
    """
    wanted = {seed: generated.expected(seed) for seed in seeds}
    program = _attempt("the text", "parses", lambda: pl.parse_program(generated.text))
    held, seen = passes.IRPropertySet(), program
    for each in PassManager.get_strategy(OptimizationStrategy.Default).passes:
        name = each.get_name()
        program = _attempt(name, "runs", lambda each=each, program=program: each(program))
        again = _attempt(name, "runs twice", lambda each=each, program=program: each(program))
        if again is not program and name not in REBUILDS:
            raise Failure(name, "a second run gives the same program", "another one")
        held = held.difference(each.get_invalidated_properties()).union_with(each.get_produced_properties())
        due = each.get_produced_properties() if quick else held
        _attempt(name, "keeps promises", lambda due=due, program=program: _verify(due, program))
        if program is seen or (quick and name not in BOUNDARIES and name != until):
            if name == until:
                return
            continue
        seen = program
        _attempt(name, "round trip", lambda each=each, program=program: check_roundtrip(each, program))
        if name != "InlineFunctions":
            _check_numbers(name, program, generated, wanted)
        if name == until:
            return
    if quick:
        _attempt("all passes", "round trip", lambda program=program: check_roundtrip(each, program))
        _check_numbers("all passes", program, generated, wanted)
    for seed in range(orders):
        _check_numbers("all passes", program, generated, wanted, order=seed)


def _verify(held: passes.IRPropertySet, program: ir.Program) -> None:
    found = passes.PropertyVerifierRegistry.verify(held, program)
    if found:
        raise AssertionError("; ".join(str(each) for each in found[:3]))


def _attempt(stage: str, what: str, action: Any) -> Any:
    try:
        return action()
    except Failure:
        raise
    except Exception as error:
        raise Failure(stage, what, f"{type(error).__name__}: {error}") from error


def _check_numbers(
    stage: str,
    program: ir.Program,
    generated: Generated,
    wanted: dict[int, list[Any]],
    *,
    order: int | None = None,
) -> None:
    what = "numbers" if order is None else "numbers in another order"
    for seed, expected in wanted.items():
        arguments = generated.arguments(seed)
        try:
            _attempt(stage, what, lambda arguments=arguments: _run(program, arguments, order))
        except Failure as failure:
            if isinstance(failure.__cause__, Undetermined):
                return
            raise
        for (name, _), got, want in zip(generated.parameters, arguments, expected, strict=True):
            if isinstance(got, np.ndarray) and not close(got, want):
                raise Failure(stage, what, f"{name} is\n{got}\nbut must be\n{want}\nfor seed {seed}")


def _run(program: ir.Program, arguments: list[Any], order: int | None) -> None:
    with np.errstate(all="ignore"):
        run(program, "main", *arguments, order=order)


def close(got: np.ndarray, want: np.ndarray) -> bool:
    """Whether two results are equal up to rounding in their element type."""
    if got.dtype.kind == "i":
        return np.array_equal(got, want)
    tolerance = {"float32": 1e-4, "float16": 4e-3}.get(got.dtype.name, 4e-2)
    plain, other = got.astype(np.float64), want.astype(np.float64)
    scale = 1.0 + np.max(np.abs(other[np.isfinite(other)]), initial=0.0)
    return np.allclose(plain, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True)


def check_twins(twins: Twins) -> None:
    """Deduplicate a program with two kernels: one must remain if they are equal, two if not.

    Raises:
        Failure: another number remains.
    """
    program = _attempt("the text", "parses", lambda: pl.parse_program(twins.text))
    for factory in (passes.convert_to_ssa, passes.normalize_stmt_structure, passes.flatten_call_expr):
        program = factory()(program)
    merged = _attempt(
        "DeduplicateOutlinedKernels", "runs", lambda: passes.deduplicate_outlined_kernels()(program)
    )
    kernels = [name for name, each in merged.functions_.items() if each.func_type is ir.FunctionType.InCore]
    wanted = 1 if twins.mutation is None else 2
    if len(kernels) != wanted:
        what = f"twins that differ by {twins.mutation or 'names only'}"
        raise Failure("DeduplicateOutlinedKernels", what, f"{len(kernels)} kernels remain, not {wanted}")
