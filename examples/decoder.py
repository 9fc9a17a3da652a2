"""A transformer decoder step of N equal layers, checked against numpy.

    python examples/decoder.py 8

Each layer is RMSNorm, a QKV projection, attention over a cache to which the new keys and values are
appended, the output projection, and a SwiGLU MLP, both with residuals. The layers come from one loop: every
layer outlines the same scopes, deduplication leaves one kernel of each, and each distinct kernel is compiled
once whatever N is.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

import pypto.language as pl
from pypto import LogLevel, ir, passes, set_log_level
from pypto.ir.pass_manager import OptimizationStrategy, PassManager
from pypto.runtime.build import compiler_runs
from pypto.runtime.kernel_config import load_kernel_config

TOKENS = 16  # rows of this step
HEADS, HEAD_DIM = 4, 32
HIDDEN = HEADS * HEAD_DIM
INNER = 256  # width of the MLP
PAST = 112  # tokens in the cache before this step
CACHE = PAST + TOKENS
EPSILON = 1e-5
WARM_STEPS = 20
SCALE = HEAD_DIM**-0.5


def build(layers: int = 4) -> ir.Program:
    """The decoder step with this many layers, whose weights and caches are stacked along the first axis."""

    @pl.program
    class Decoder:
        @pl.function
        def main(
            self,
            x: pl.Tensor[[TOKENS, HIDDEN], pl.FP32],
            mask: pl.Tensor[[TOKENS, CACHE], pl.FP32],
            attn_gamma: pl.Tensor[[layers, HIDDEN], pl.FP32],
            w_qkv: pl.Tensor[[layers * HIDDEN, 3 * HIDDEN], pl.FP32],
            w_out: pl.Tensor[[layers * HIDDEN, HIDDEN], pl.FP32],
            mlp_gamma: pl.Tensor[[layers, HIDDEN], pl.FP32],
            w_gate: pl.Tensor[[layers * HIDDEN, INNER], pl.FP32],
            w_up: pl.Tensor[[layers * HIDDEN, INNER], pl.FP32],
            w_down: pl.Tensor[[layers * INNER, HIDDEN], pl.FP32],
            k_cache: pl.InOut[pl.Tensor[[layers * CACHE, HIDDEN], pl.FP32]],
            v_cache: pl.InOut[pl.Tensor[[layers * CACHE, HIDDEN], pl.FP32]],
            out: pl.Out[pl.Tensor[[TOKENS, HIDDEN], pl.FP32]],
        ) -> pl.Tensor[[TOKENS, HIDDEN], pl.FP32]:
            h = x
            for layer in pl.unroll(layers):
                gamma_a = pl.slice(attn_gamma, [1, HIDDEN], [layer, 0])
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="rms_norm"):
                    mean_a = pl.mul(pl.row_sum(pl.mul(h, h)), 1.0 / HIDDEN)
                    normed_a = pl.col_expand_mul(
                        pl.row_expand_mul(h, pl.rsqrt(pl.add(mean_a, EPSILON))), gamma_a
                    )
                w_qkv_l = pl.slice(w_qkv, [HIDDEN, 3 * HIDDEN], [layer * HIDDEN, 0])
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="qkv"):
                    qkv = pl.matmul(normed_a, w_qkv_l)
                keys = pl.slice(k_cache, [CACHE, HIDDEN], [layer * CACHE, 0])
                values = pl.slice(v_cache, [CACHE, HIDDEN], [layer * CACHE, 0])
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="append"):
                    keys[PAST:CACHE, 0:HIDDEN] = qkv[0:TOKENS, HIDDEN : 2 * HIDDEN]
                    values[PAST:CACHE, 0:HIDDEN] = qkv[0:TOKENS, 2 * HIDDEN : 3 * HIDDEN]
                context = pl.create_tensor([TOKENS, HIDDEN], dtype=pl.FP32)
                for head in pl.spmd(HEADS, name_hint="attention"):
                    first = head * HEAD_DIM
                    q = pl.slice(qkv, [TOKENS, HEAD_DIM], [0, first])
                    k = pl.slice(keys, [CACHE, HEAD_DIM], [0, first])
                    v = pl.slice(values, [CACHE, HEAD_DIM], [0, first])
                    scores = pl.add(pl.mul(pl.matmul(q, k, b_trans=True), SCALE), mask)
                    e = pl.exp(pl.row_expand_sub(scores, pl.row_max(scores)))
                    probs = pl.row_expand_div(e, pl.row_sum(e))
                    context = pl.assemble(context, pl.matmul(probs, v), [0, first])
                w_out_l = pl.slice(w_out, [HIDDEN, HIDDEN], [layer * HIDDEN, 0])
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="project"):
                    attended = pl.add(h, pl.matmul(context, w_out_l))
                gamma_m = pl.slice(mlp_gamma, [1, HIDDEN], [layer, 0])
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="rms_norm"):
                    mean_m = pl.mul(pl.row_sum(pl.mul(attended, attended)), 1.0 / HIDDEN)
                    normed_m = pl.col_expand_mul(
                        pl.row_expand_mul(attended, pl.rsqrt(pl.add(mean_m, EPSILON))), gamma_m
                    )
                w_gate_l = pl.slice(w_gate, [HIDDEN, INNER], [layer * HIDDEN, 0])
                w_up_l = pl.slice(w_up, [HIDDEN, INNER], [layer * HIDDEN, 0])
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="swiglu"):
                    gate = pl.matmul(normed_m, w_gate_l)
                    up = pl.matmul(normed_m, w_up_l)
                    inner = pl.mul(pl.div(gate, pl.add(pl.exp(pl.neg(gate)), 1.0)), up)
                w_down_l = pl.slice(w_down, [INNER, HIDDEN], [layer * INNER, 0])
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="down"):
                    h = pl.add(attended, pl.matmul(inner, w_down_l))
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="result"):
                out[:] = pl.mul(h, 1.0)
            return out

    return Decoder


@dataclass
class State:
    """The arrays of one step, in parameter order."""

    x: np.ndarray
    mask: np.ndarray
    attn_gamma: np.ndarray
    w_qkv: np.ndarray
    w_out: np.ndarray
    mlp_gamma: np.ndarray
    w_gate: np.ndarray
    w_up: np.ndarray
    w_down: np.ndarray
    k_cache: np.ndarray
    v_cache: np.ndarray
    out: np.ndarray

    def arguments(self) -> list[np.ndarray]:
        return list(vars(self).values())


def random_state(layers: int, seed: int = 0) -> State:
    rng = np.random.default_rng(seed)

    def weights(rows: int, columns: int) -> np.ndarray:
        return (rng.standard_normal((layers * rows, columns)) * rows**-0.5).astype(np.float32)

    # A token of this step sees the whole past and the tokens of the step up to itself.
    visible = np.tril(np.ones((TOKENS, TOKENS), bool))
    mask = np.zeros((TOKENS, CACHE), np.float32)
    mask[:, PAST:][~visible] = -1e9
    cache = rng.standard_normal((2, layers * CACHE, HIDDEN)).astype(np.float32)
    for layer in range(layers):
        cache[:, layer * CACHE + PAST : (layer + 1) * CACHE] = 0.0
    return State(
        x=rng.standard_normal((TOKENS, HIDDEN)).astype(np.float32),
        mask=mask,
        attn_gamma=1 + 0.1 * rng.standard_normal((layers, HIDDEN)).astype(np.float32),
        w_qkv=weights(HIDDEN, 3 * HIDDEN),
        w_out=weights(HIDDEN, HIDDEN),
        mlp_gamma=1 + 0.1 * rng.standard_normal((layers, HIDDEN)).astype(np.float32),
        w_gate=weights(HIDDEN, INNER),
        w_up=weights(HIDDEN, INNER),
        w_down=weights(INNER, HIDDEN),
        k_cache=cache[0].copy(),
        v_cache=cache[1].copy(),
        out=np.zeros((TOKENS, HIDDEN), np.float32),
    )


def reference(state: State, layers: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The step in numpy, in double precision: output, key cache, value cache."""
    s = {name: value.astype(np.float64) for name, value in vars(state).items()}

    def rms_norm(rows: np.ndarray, gamma: np.ndarray) -> np.ndarray:
        return rows / np.sqrt((rows * rows).mean(axis=1, keepdims=True) + EPSILON) * gamma

    def part(name: str, layer: int, rows: int) -> np.ndarray:
        return s[name][layer * rows : (layer + 1) * rows]

    h = s["x"]
    for layer in range(layers):
        q, k_new, v_new = np.split(
            rms_norm(h, s["attn_gamma"][layer]) @ part("w_qkv", layer, HIDDEN), 3, axis=1
        )
        keys, values = part("k_cache", layer, CACHE), part("v_cache", layer, CACHE)
        keys[PAST:], values[PAST:] = k_new, v_new
        context = np.empty_like(q)
        for head in range(HEADS):
            columns = slice(head * HEAD_DIM, (head + 1) * HEAD_DIM)
            scores = q[:, columns] @ keys[:, columns].T * SCALE + s["mask"]
            e = np.exp(scores - scores.max(axis=1, keepdims=True))
            context[:, columns] = e / e.sum(axis=1, keepdims=True) @ values[:, columns]
        h = h + context @ part("w_out", layer, HIDDEN)
        normed = rms_norm(h, s["mlp_gamma"][layer])
        gate, up = normed @ part("w_gate", layer, HIDDEN), normed @ part("w_up", layer, HIDDEN)
        h = h + gate / (1 + np.exp(-gate)) * up @ part("w_down", layer, INNER)
    return h, s["k_cache"], s["v_cache"]


def kernels_in(program: ir.Program) -> int:
    return sum(ir.is_incore_type(function.func_type) for function in program.functions.values())


def run_passes_until(program: ir.Program, last: str) -> ir.Program:
    for transform in PassManager.get_strategy(OptimizationStrategy.Default).passes:
        program = transform(program)
        if transform.get_name() == last:
            return program
    raise ValueError(f"No pass named {last}")


@contextlib.contextmanager
def deduplication_left_out() -> Iterator[None]:
    """Replace the pass by one that changes nothing. A pass manager looks its factories up when it is made."""
    kept = passes.deduplicate_outlined_kernels
    passes.deduplicate_outlined_kernels = lambda: passes.create_program_pass(
        lambda p: p, "DeduplicateOutlinedKernels"
    )
    try:
        yield
    finally:
        passes.deduplicate_outlined_kernels = kept


@dataclass(frozen=True)
class Measurement:
    """One compile on an empty store, one first call, the best of some warm calls."""

    kernels: int
    registrations: int
    compiler_runs: int
    compile_seconds: float
    call_seconds: float
    error: float


def measure(program: ir.Program, layers: int) -> Measurement:
    state = random_state(layers)
    want_out, want_k, want_v = reference(state, layers)
    with tempfile.TemporaryDirectory() as directory, empty_store():
        runs_before, started = compiler_runs(), time.perf_counter()
        compiled = ir.compile(program, directory, dump_passes=False)
        compiled.load()
        compile_seconds = time.perf_counter() - started
        compiled(*state.arguments())
        pairs = ((state.out, want_out), (state.k_cache, want_k), (state.v_cache, want_v))
        error = max(float(np.abs(got - want).max()) for got, want in pairs)
        call_seconds = min(timed_step(compiled, layers) for _ in range(WARM_STEPS))
        rows = load_kernel_config(compiled.output_dir).kernels
    return Measurement(
        kernels=len({row.code_name for row in rows}),
        registrations=len(rows),
        compiler_runs=compiler_runs() - runs_before,
        compile_seconds=compile_seconds,
        call_seconds=call_seconds,
        error=error,
    )


def timed_step(compiled: Callable[..., object], layers: int) -> float:
    arguments = random_state(layers).arguments()
    started = time.perf_counter()
    compiled(*arguments)
    return time.perf_counter() - started


@contextlib.contextmanager
def empty_store() -> Iterator[None]:
    """A store of its own, so that nothing compiled earlier shortens the measurement."""
    kept = os.environ.get("PYPTO_CACHE_DIR")
    with tempfile.TemporaryDirectory() as directory:
        os.environ["PYPTO_CACHE_DIR"] = directory
        try:
            yield
        finally:
            if kept is None:
                del os.environ["PYPTO_CACHE_DIR"]
            else:
                os.environ["PYPTO_CACHE_DIR"] = kept


TOLERANCE = 1e-3  # single precision through all layers, against double


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("layers", nargs="?", type=int, default=8, help="number of layers (default 8)")
    layers = parser.parse_args().layers
    set_log_level(LogLevel.WARN)  # the builds are temporary, and so are the reports that notes would point at
    if layers < 1:
        parser.error("layers must be at least 1")
    started = time.perf_counter()
    program = build(layers)
    parse_seconds = time.perf_counter() - started
    outlined = kernels_in(run_passes_until(program, "OutlineClusterScopes"))
    shared = measure(program, layers)
    with deduplication_left_out():
        separate = measure(program, layers)

    table = Table("", "with deduplication", "without", title=f"Decoder step, {layers} layers")
    for label, show in (
        ("scopes outlined", lambda m: str(outlined)),
        ("distinct kernels", lambda m: str(m.kernels)),
        ("registrations", lambda m: str(m.registrations)),
        ("compiler runs", lambda m: str(m.compiler_runs)),
        ("passes, code generation and compilation", lambda m: f"{m.compile_seconds:.2f} s"),
        (f"one step, warm, best of {WARM_STEPS}", lambda m: f"{m.call_seconds * 1e3:.2f} ms"),
        ("largest error against numpy", lambda m: f"{m.error:.2e}"),
    ):
        table.add_row(label, show(shared), show(separate))
    Console().print(table)
    Console().print(
        f"parsed in {parse_seconds:.2f} s; compiler runs include the task runtime and the orchestration"
    )
    worst = max(shared.error, separate.error)
    if not worst <= TOLERANCE:
        print(f"error {worst:.3g} exceeds {TOLERANCE}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
