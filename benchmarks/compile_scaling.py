"""How compile time grows with the number of equal layers, on the decoder of `examples/`.

    python benchmarks/compile_scaling.py [4 16 64]

For each number of layers, on an empty store that holds the task runtime only: time of parsing, passes, code
generation and C++ compilation, starts of the compiler, registrations, and the time of loading the same build
again from a full store. Ends with status 1 when the starts of the compiler differ, or when generation and
compilation of the largest program take more than twice the time of the smallest one.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from pypto.codegen.artifact import write_artifact
from pypto.passes.manager import PassManager
from pypto.runtime import build
from pypto.runtime.assemble import compile_and_assemble

LIMIT = 2.0


@dataclass(frozen=True)
class Row:
    """Seconds per stage, and counts."""

    layers: int
    parse: float
    passes: float
    codegen: float
    cpp: float
    again: float
    compiler_runs: int
    registrations: int

    @property
    def growing(self) -> float:
        """What the limit is about: everything after the passes."""
        return self.codegen + self.cpp


def load_decoder() -> ModuleType:
    """The example as a module."""
    path = Path(__file__).parents[1] / "examples" / "decoder.py"
    spec = importlib.util.spec_from_file_location("decoder", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["decoder"] = module
    spec.loader.exec_module(module)
    return module


def measure(decoder: ModuleType, layers: int) -> Row:
    """One cold compile of a decoder with this many layers."""
    with tempfile.TemporaryDirectory() as store, tempfile.TemporaryDirectory() as output:
        os.environ["PYPTO_CACHE_DIR"] = store
        build.runtime_library()
        marks = [time.perf_counter()]

        def mark() -> None:
            marks.append(time.perf_counter())

        program = decoder.build(layers)
        mark()
        lowered = PassManager.get_strategy().run_passes(program)
        mark()
        write_artifact(lowered, output)
        mark()
        runs = build.compiler_runs()
        chip, _, _ = compile_and_assemble(output, "a2a3sim")
        runs = build.compiler_runs() - runs
        mark()
        compile_and_assemble(output, "a2a3sim")
        mark()
        parse, passes, codegen, cpp, again = (b - a for a, b in itertools.pairwise(marks))
        return Row(layers, parse, passes, codegen, cpp, again, runs, chip.child_count)


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("layers", nargs="*", type=int, default=[4, 16, 64])
    decoder = load_decoder()
    layers = sorted(parser.parse_args().layers)
    measure(decoder, layers[0])  # imports and first-time costs are not what is compared
    rows = [measure(decoder, n) for n in layers]
    print("layers    parse   passes  codegen      C++  codegen+C++  load again  compiler runs  registrations")
    for r in rows:
        print(
            f"{r.layers:6d} {r.parse:8.3f} {r.passes:8.3f} {r.codegen:8.3f} {r.cpp:8.3f} {r.growing:12.3f} "
            f"{r.again:11.3f} {r.compiler_runs:14d} {r.registrations:14d}"
        )
    ratio = rows[-1].growing / rows[0].growing
    print(f"\ncodegen + C++ of {rows[-1].layers} layers: {ratio:.2f} times that of {rows[0].layers} layers")
    same = len({r.compiler_runs for r in rows}) == 1
    return 0 if same and ratio <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
