"""The properties that every program must have on its way through the passes.

After each pass of the default pipeline the program computes what numpy computes from the same text, its text
parses back to an equal program, everything that the passes promised holds, and running the pass again gives
the same program. At the end the tasks may run in any order that their dependencies allow.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

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

MOST_ARGUMENTS = 12
"""How many seeds give different numbers and extents."""

REBUILDS = frozenset({"ConvertToSSA", "ConvertTensorToTileOps"})
"""Passes whose second run makes a new program, equal to the first."""


class Failure(AssertionError):
    """A property that does not hold; `stage` is the pass after which, `what` names the property."""

    def __init__(self, stage: str, what: str, detail: str) -> None:
        super().__init__(f"after {stage}: {what}: {detail}")
        self.stage, self.what = stage, what

    @property
    def key(self) -> tuple[str, str, str]:
        """What two occurrences of one bug have in common; the last is the class of an error behind it."""
        return self.stage, self.what, type(self.__cause__).__name__ if self.__cause__ else ""


class _Looks(NamedTuple):
    """What is looked at after one pass."""

    twice: bool = True
    promises: bool = True
    text: bool = True
    numbers: bool = True


def _drawn(names: Sequence[str], sample: int | None) -> dict[str, _Looks]:
    """What to look at after each pass: all without a sample, else as the sample says."""
    if sample is None:
        return dict.fromkeys(names, _Looks())
    rng = random.Random(sample)
    twice = set(rng.sample(names, 2))
    promises, numbers = rng.choice(names), rng.choice(names)
    text = rng.choice([*names, *[""] * len(names)])
    return {name: _Looks(name in twice, name == promises, name == text, name == numbers) for name in names}


def check_program(
    generated: Generated,
    *,
    orders: int = 2,
    seeds: Sequence[int] | None = None,
    sample: int | None = None,
    until: str | None = None,
) -> None:
    """Take a program through all passes and check the properties after each.

    Args:
        orders: in how many random orders the tasks run at the end.
        seeds: the arguments to run on; by default a few, one that the sample draws if there is one.
        sample: a number that draws after which passes each property is looked at, to check many programs in
            a short time; the numbers at the end are always looked at.
        until: stop after this pass.

    Raises:
        Failure: one does not hold.
    """
    if seeds is None:
        seeds = SEEDS if sample is None else (sample % MOST_ARGUMENTS,)
    wanted = {seed: generated.expected(seed) for seed in seeds}
    program = _attempt("the text", "parses", lambda: pl.parse_program(generated.text))
    held, printed, run_last = passes.IRPropertySet(), program, program
    pipeline = _pipeline()
    looks_at = _drawn([each.get_name() for each in pipeline], sample)
    for each in pipeline:
        name, before = each.get_name(), program
        looks = _Looks() if name == until else looks_at[name]
        program = _attempt(name, "runs", lambda each=each, before=before: each(before))
        if looks.twice:
            again = _attempt(name, "runs twice", lambda each=each, program=program: each(program))
            if again is not program and not (name in REBUILDS and ir.structural_equal(again, program)):
                raise Failure(name, "a second run gives the same program", "another one")
        held = held.difference(each.get_invalidated_properties()).union_with(each.get_produced_properties())
        if looks.promises:
            _attempt(name, "keeps promises", lambda held=held, program=program: _verify(held, program))
        if looks.text and program is not printed:
            printed = program
            _attempt(name, "round trip", lambda each=each, program=program: check_roundtrip(each, program))
        if looks.numbers and program is not run_last and name != "InlineFunctions":
            run_last = program
            _check_numbers(name, program, generated, wanted)
        if name == until:
            return
    for order in range(orders):
        _check_numbers("all passes", program, generated, wanted, order=order)


@functools.cache
def _pipeline() -> list[passes.Pass]:
    return PassManager.get_strategy(OptimizationStrategy.Default).passes


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
            _attempt(stage, f"{what} at all", lambda arguments=arguments: _run(program, arguments, order))
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
