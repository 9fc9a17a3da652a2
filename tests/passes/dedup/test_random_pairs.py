"""Random pairs of kernels: what is merged is exactly what independent checks find equal."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest

import pypto.language as pl
from pypto import ir, passes
from pypto.ir.rewrite import Substitution
from pypto.ir.walk import type_exprs, vars_in
from pypto.passes import FACTORIES
from pypto.testing.programs import make_program
from tests.passes.dedup.node_mutations import mutated
from tests.passes.dedup.programs import dedup

SPAN = ir.Span.unknown()
INDEX = ir.ScalarType(ir.DataType.INDEX)
In = ir.ParamDirection.In
TO_KERNELS = FACTORIES[: FACTORIES.index("deduplicate_outlined_kernels")]


def outlined(seed: int) -> ir.Program:
    source = pl.parse_program(make_program(random.Random(seed), 6).text)
    for name in TO_KERNELS:
        source = getattr(passes, name)()(source)
    return source


def result_type(types: list[ir.Type]) -> ir.Type:
    if not types:
        return ir.UnknownType.get()
    return types[0] if len(types) == 1 else ir.TupleType(types)


def main_of(params: list[ir.Var], calls: list[ir.Expr]) -> ir.Function:
    body = ir.SeqStmts([ir.EvalStmt(each, SPAN) for each in calls], SPAN)
    return ir.Function("main", [(v, In) for v in params], [], body, SPAN, ir.FunctionType.Orchestration)


# ---- equality


def copied(kernel: ir.Function, name: str) -> ir.Function:
    """The kernel under another name, with variables of its own."""
    params = [ir.Var(param.name_hint, param.type, SPAN) for param in kernel.params_]
    pairs = list(zip(kernel.params_, params, strict=True))
    body, _ = ir.deep_clone(kernel.body, pairs)
    results = [Substitution(dict(pairs)).type(each) for each in kernel.return_types_]
    return kernel.replace(name=name, params=params, body=body, return_types=results)


def is_merged(first: ir.Function, second: ir.Function) -> bool:
    calls = [
        ir.Call(ir.GlobalVar(f.name), f.params_, result_type(f.return_types), SPAN) for f in (first, second)
    ]
    source = ir.Program([first, second, main_of([*first.params_, *second.params_], calls)], "P", SPAN)
    return second.name not in passes.deduplicate_outlined_kernels()(source).functions_


@pytest.mark.parametrize("seed", range(12))
def test_a_kernel_with_one_changed_node_is_merged_only_if_it_is_structurally_equal(seed: int):
    rng = random.Random(seed)
    for kernel in outlined(seed).functions.values():
        if kernel.func_type is not ir.FunctionType.InCore:
            continue
        original = copied(kernel, "a")
        assert is_merged(original, copied(kernel, "b"))
        for _ in range(8):
            changed = copied(mutated(kernel, rng), "b")
            assert is_merged(original, changed) == ir.structural_equal(original.replace(name="b"), changed)


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_keep_every_dispatch_with_its_type(seed: int):
    dedup(outlined(100 + seed))  # checks number, order, fields and types, and that a second run is idle


def renamed(source: ir.Program) -> ir.Program:
    """The program with other names for all functions, in the same order, and for all variables."""
    text = re.sub(r"\b(\w+?)__(?=ssa|iter|rv|idx|tmp|store)", r"\1q__", source.as_python(format=False))
    for name in source.functions_:
        text = re.sub(rf"(\bself\.|\bdef |peer_func=\"){name}\b", rf"\1f_{name}", text)
    return pl.parse_program(text)


@pytest.mark.parametrize("seed", range(200, 208))
def test_other_names_in_the_same_order_give_the_same_merges(seed: int):
    source = outlined(seed)

    def fates(found: ir.Program, prefix: str) -> list[tuple[str, str | None]]:
        return [(prefix + r.name, r.into and prefix + r.into) for r in passes.explain_deduplication(found)]

    assert fates(renamed(source), "") == fates(source, "f_")


# ---- the call-shape proof


def constant(value: int) -> ir.Expr:
    return ir.ConstInt(value, ir.DataType.INDEX, SPAN)


def scalar(name: str) -> ir.Var:
    return ir.Var(name, INDEX, SPAN)


def random_extent(rng: random.Random, leaves: list[ir.Var]) -> ir.Expr:
    leaf = rng.choice(leaves)
    times = [ir.Mul(leaf, constant(128), ir.DataType.INDEX, SPAN)]
    times.append(ir.Mul(constant(128), leaf, ir.DataType.INDEX, SPAN))
    return rng.choice([leaf, leaf, leaf, constant(32), constant(64), *times])


def random_shapes(rng: random.Random, leaves: list[ir.Var], count: int) -> list[ir.Type]:
    return [
        ir.TensorType([random_extent(rng, leaves) for _ in range(rng.randint(1, 2))], ir.DataType.FP32)
        for _ in range(count)
    ]


def proved(canonical: ir.Function, call: ir.Call) -> bool:
    """The contract by plain recursion: bind scalars, then tensors; then reproduce the result types."""
    if len(call.args_) != len(canonical.params_):
        return False
    pairs = list(zip(canonical.params_, call.args_, strict=True))
    bound: dict[ir.Var, ir.Expr] = {p: a for p, a in pairs if isinstance(p.type, ir.ScalarType)}

    def match(pattern: ir.Expr, actual: ir.Expr) -> bool:
        if isinstance(pattern, ir.Var):
            return ir.structural_equal(bound.setdefault(pattern, actual), actual)
        if isinstance(pattern, ir.ConstInt):
            return ir.structural_equal(pattern, actual)
        same = type(pattern) is type(actual) and pattern.dtype is actual.dtype
        return same and match(pattern.left, actual.left) and match(pattern.right, actual.right)

    for param, arg in pairs:
        if isinstance(param.type, ir.TensorType):
            extents = param.type.shape_, arg.type.shape_
            if len(extents[0]) != len(extents[1]) or not all(map(match, *extents)):
                return False
    carried = call.type.types if isinstance(call.type, ir.TupleType) else [call.type]
    return all(
        set(extent_vars(pattern)) <= set(bound)
        and ir.structural_equal(Substitution(bound).type(pattern), actual)
        for pattern, actual in zip(canonical.return_types_, carried, strict=False)
    )


def extent_vars(type_: ir.Type) -> Iterator[ir.Var]:
    return (var for expr in type_exprs(type_) for var in vars_in(expr))


@pytest.mark.parametrize("seed", range(6))
def test_a_kernel_of_other_symbols_is_merged_only_if_plain_substitution_proves_every_call(seed: int):
    rng = random.Random(seed)
    outcomes = set()
    for _ in range(100):
        symbols = [[scalar(f"{letter}{i}") for i in range(2)] for letter in "AB"]
        number = scalar("n")
        template = random_shapes(rng, [*symbols[0], number], rng.randint(1, 3))
        results = rng.choice([[], template[:1], random_shapes(rng, [*symbols[0], number], 1)])
        at = rng.randint(0, len(template))  # where the scalar parameter stands
        kernels = []
        for name, own in zip("ab", symbols, strict=True):
            mine = scalar("n")
            renamed = Substitution({**dict(zip(symbols[0], own, strict=True)), number: mine})
            params = [ir.Var(f"x{i}", renamed.type(each), SPAN) for i, each in enumerate(template)]
            params.insert(at, mine)
            body = ir.ReturnStmt(params[: len(results)], SPAN)
            returned = [renamed.type(each) for each in results]
            kernels.append(
                ir.Function(name, [(p, In) for p in params], returned, body, SPAN, ir.FunctionType.InCore)
            )
        known = [scalar("P"), scalar("Q"), constant(32), constant(64)]
        calls = [random_call(rng, kernels[1], symbols[1], known) for _ in range(rng.randint(1, 2))]
        canonical_call = ir.Call(ir.GlobalVar("a"), kernels[0].params_, result_type(results), SPAN)
        source = ir.Program([*kernels, main_of([], [canonical_call, *calls])], "P", SPAN)
        merged = "b" not in passes.deduplicate_outlined_kernels()(source).functions_
        signature = [*(p.type for p in kernels[0].params_), *kernels[0].return_types_]
        is_closed = not any(True for each in signature for _ in extent_vars(each))
        assert merged == (is_closed or all(proved(kernels[0], call) for call in calls))
        outcomes.add(merged)
    assert outcomes == {True, False}


def random_call(
    rng: random.Random, kernel: ir.Function, symbols: list[ir.Var], known: list[ir.Expr]
) -> ir.Call:
    """A call of `kernel` with mostly consistent extents."""
    bindings: dict[ir.Var, ir.Expr] = {var: rng.choice(known) for var in symbols}
    bindings |= {param: rng.choice(known) for param in kernel.params_ if param.type is INDEX}
    at_call = Substitution(bindings)

    def type_here(declared: ir.Type) -> ir.Type:
        odd = ir.TensorType([rng.choice(known) for _ in declared.shape_], ir.DataType.FP32)
        return odd if rng.random() < 0.1 else at_call.type(declared)

    args = [
        bindings[param] if param in bindings else ir.Var("v", type_here(param.type), SPAN)
        for param in kernel.params_
    ]
    types = [type_here(each) for each in kernel.return_types_]
    return ir.Call(ir.GlobalVar("b"), args, result_type(types), SPAN)
