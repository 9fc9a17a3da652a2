"""Runs a random program through the C++ compiler and the task runtime, and compares with numpy."""

from __future__ import annotations

import os
import tempfile

import numpy as np

import pypto.language as pl
from pypto import ir
from pypto.testing.checks import SEEDS, Failure, close
from pypto.testing.programs import Generated

__all__ = ["check_compiled"]


def check_compiled(generated: Generated, *, output_dir: str | os.PathLike[str] | None = None) -> None:
    """Compile a program, run it, and compare its arrays with what numpy computes.

    Raises:
        Failure: it does not compile or run, or the numbers differ.
    """
    with tempfile.TemporaryDirectory() as scratch:
        try:
            program = pl.parse_program(generated.text)
            compiled = ir.compile(program, output_dir=os.fspath(output_dir or scratch), dump_passes=False)
        except Exception as error:
            raise Failure("code generation", "compiles", f"{type(error).__name__}: {error}") from error
        for seed in SEEDS:
            arguments, expected = generated.arguments(seed), generated.expected(seed)
            try:
                compiled(*arguments)
            except Exception as error:
                raise Failure("the runtime", "runs", f"{type(error).__name__}: {error}") from error
            for (name, _), got, want in zip(generated.parameters, arguments, expected, strict=True):
                if isinstance(got, np.ndarray) and not close(got, want):
                    detail = f"{name} is\n{got}\nbut must be\n{want}\nfor seed {seed}"
                    raise Failure("the runtime", "numbers", detail)
