"""Hunts miscompiles with random programs.

    python benchmarks/soundness.py N [--start S] [--compiled EVERY] [--thorough] [--shrink-most K]

Takes N random programs through all passes and compares what they compute with numpy, at the end in random
orders of the tasks. The seed of a program draws after which passes its other properties are looked at; every
100th program, or all with `--thorough`, have every property looked at after every pass. Every fourth seed
also brings a pair of twin kernels for deduplication. Every EVERY-th program is also compiled with the C++
compiler and run on the task runtime (default 200; 0 for none). Failures are printed with a shrunk program,
one per kind.

Run several processes with ranges of seeds of their own to use several cores.
"""

from __future__ import annotations

import argparse
import collections
import gc
import random
import sys
import time
from collections.abc import Callable

from pypto import LogLevel, set_log_level
from pypto.testing.checks import Failure, check_program, check_twins
from pypto.testing.compiled import check_compiled
from pypto.testing.programs import Generated, make_program
from pypto.testing.programs.twins import MUTATIONS, make_twins
from pypto.testing.shrink import shrink

REPORT_SECONDS = 60
THOROUGH_EVERY, TWINS_EVERY = 100, 4


def smallest(generated: Generated, check: Callable[[Generated], None], failure: Failure, most: int) -> str:
    """A small program that fails in the same way."""

    def fails(text: str) -> bool:
        try:
            check(generated.with_text(text))
        except Failure as found:
            return found.key == failure.key
        except Exception:
            return False
        return False

    return shrink(generated.text, fails, most_attempts=most)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=int)
    parser.add_argument("--start", type=int, default=0, help="seed of the first program")
    parser.add_argument("--compiled", type=int, default=200, help="compile every EVERY-th; 0 for none")
    parser.add_argument("--thorough", action="store_true", help="every property after every pass")
    parser.add_argument("--shrink-most", type=int, default=1000, help="attempts to shrink a failure")
    options = parser.parse_args()

    set_log_level(LogLevel.ERROR)
    gc.freeze()  # the compiler itself stays
    counts: collections.Counter[str] = collections.Counter()
    kinds: dict[tuple[str, str, str], list[int]] = {}
    started = reported = time.perf_counter()
    for seed in range(options.start, options.start + options.programs):
        generated = make_program(random.Random(seed))
        sample = None if options.thorough or seed % THOROUGH_EVERY == 0 else seed

        def check(generated: Generated, sample: int | None = sample) -> None:
            check_program(generated, sample=sample)

        checks: list[tuple[str, Callable[[Generated], None]]] = [("programs", check)]
        if options.compiled and seed % options.compiled == 0:
            checks.append(("compiled programs", check_compiled))
        for name, each in checks:
            counts[name] += 1
            try:
                each(generated)
            except Failure as failure:
                counts[f"failed {name}"] += 1
                seeds = kinds.setdefault(failure.key, [])
                seeds.append(seed)
                if len(seeds) == 1:
                    print(f"\nseed {seed}: {failure}\n", flush=True)
                    print(smallest(generated, each, failure, options.shrink_most), flush=True)
        if seed % TWINS_EVERY == 0:
            counts["twins"] += 1
            mutation = [None, *MUTATIONS][seed // TWINS_EVERY % (len(MUTATIONS) + 1)]
            try:
                check_twins(make_twins(random.Random(seed), mutation))
            except Failure as failure:
                counts["failed twins"] += 1
                if len(kinds.setdefault(failure.key, [])) == 0:
                    print(f"\nseed {seed}: {failure}", flush=True)
                kinds[failure.key].append(seed)
        if time.perf_counter() - reported > REPORT_SECONDS:
            reported = time.perf_counter()
            print(f"{reported - started:.0f} s: {dict(counts)}", flush=True)
    print(f"\n{time.perf_counter() - started:.0f} s: {dict(counts)}")
    for key, seeds in kinds.items():
        print(f"{len(seeds)} x after {key[0]}: {' '.join(key[1:])}; seeds {seeds[:10]}")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
