"""Loops, branches and the values they carry; buffer sharing; checked mode; what is refused."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from pypto import ir
from pypto.codegen.kernel import KernelError, generate_kernel
from pypto.core.dtype import DataType
from pypto.ir.op import tensor, tile

from .support import UNKNOWN, Cases, Kernel, compile_kernels, compile_text, index_expr, random

FP32, INT32, INDEX = DataType.FP32, DataType.INT32, DataType.INDEX
cases = Cases()


# ---- loops --------------------------------------------------------------------------------------------


@cases
def a_loop_accumulates_a_tile(k: Kernel) -> None:
    a = random(64, 32)
    x = k.tensor(a)
    zero = k.let(tile.full([16, 32], FP32, 0.0), "zero")
    (total,) = k.loop(
        4,
        [("acc", zero)],
        lambda i, acc: [k.let(tile.add(acc, k.load(x, [16, 32], [ir.mul(i, index_expr(16)), 0])))],
    )
    k.result(total, a.reshape(4, 16, 32).astype(np.float64).sum(0), 1e-5)


@cases
def a_matrix_product_accumulates_over_a_loop(k: Kernel) -> None:
    a, b = random(16, 128), random(128, 48, seed=1)
    x, y = k.tensor(a), k.tensor(b)
    zero = k.let(tile.matmul(k.load(x, [16, 32]), k.load(y, [32, 48])), "acc0")

    def body(i: ir.Expr, acc: ir.Expr) -> list[ir.Expr]:
        at = ir.mul(i, index_expr(32))
        return [k.let(tile.matmul_acc(acc, k.load(x, [16, 32], [0, at]), k.load(y, [32, 48], [at, 0])))]

    (total,) = k.loop(4, [("acc", zero)], body, start=1)
    k.result(total, a.astype(np.float64) @ b, 1e-4)


@cases
def carries_that_are_swapped_lose_nothing(k: Kernel) -> None:
    a, b = random(4, 16), random(4, 16, seed=1)
    n = k.scalar(3, INDEX, "n")
    x, y = k.loop(n, [("x", k.input(a)), ("y", k.input(b))], lambda i, x, y: [y, x])
    k.result(x, b)
    k.result(y, a)


@cases
def carries_that_rotate_lose_nothing(k: Kernel) -> None:
    arrays = [random(4, 16, seed=seed) for seed in range(3)]
    carried = [(name, k.input(array)) for name, array in zip("xyz", arrays, strict=True)]

    def body(i: ir.Expr, x: ir.Expr, y: ir.Expr, z: ir.Expr) -> list[ir.Expr]:
        return [y, z, k.let(tile.adds(x, 1))]

    results = k.loop(2, carried, body)
    for value, expected in zip(results, (arrays[2], arrays[0] + 1, arrays[1] + 1), strict=True):
        k.result(value, expected)


@cases
def a_carry_keeps_its_old_value_while_the_next_one_is_made(k: Kernel) -> None:
    a, w = random(8, 8), random(8, 8, seed=1)
    weights = k.input(w)
    start = k.let(tile.matmul(k.input(a), weights), "start")
    (value,) = k.loop(2, [("h", start)], lambda i, h: [k.let(tile.matmul(h, weights))])
    k.result(value, a.astype(np.float64) @ w @ w @ w, 1e-3)


@cases
def an_initial_value_that_is_used_again_survives_the_loop(k: Kernel) -> None:
    a = random(4, 16)
    start = k.input(a)
    (value,) = k.loop(3, [("v", start)], lambda i, v: [k.let(tile.adds(v, 1))])
    k.result(value, a + np.float32(1) + np.float32(1) + np.float32(1))
    k.result(start, a)


@cases
def loops_nest_and_carry_through(k: Kernel) -> None:
    a = random(4, 16)

    def outer(i: ir.Expr, acc: ir.Expr) -> list[ir.Expr]:
        return k.loop(2, [("inner", acc)], lambda j, inner: [k.let(tile.muls(inner, 2))])

    (value,) = k.loop(3, [("acc", k.input(a))], outer)
    k.result(value, a * 64)


@cases
def scalars_are_carried_in_parallel(k: Kernel) -> None:
    one = index_expr(1)
    a, b = k.loop(
        10,
        [("a", index_expr(0)), ("b", one)],
        lambda i, a, b: [b, ir.Add(a, b, INDEX, UNKNOWN)],
    )
    out = k.output([2], INT32, [55, 89])
    for position, value in enumerate((a, b)):
        k.do(tensor.write(out, [position], ir.cast(value, INT32, UNKNOWN)))


@cases
def loops_run_backwards_and_not_at_all(k: Kernel) -> None:
    out = k.output([6], INT32, [7, 7, 2, 7, 4, 7])
    value = ir.ConstInt
    k.loop(0, [], lambda i: k.do(tensor.write(out, [i], ir.cast(i, INT32, UNKNOWN))) or [], start=4, step=-2)
    k.loop(0, [], lambda i: k.do(tensor.write(out, [i], value(1, INT32, UNKNOWN))) or [], start=3)
    step = k.scalar(-1, INDEX, "step")
    k.loop(3, [], lambda i: k.do(tensor.write(out, [i], value(1, INT32, UNKNOWN))) or [], start=3, step=step)


@cases
def while_loops_test_their_carries(k: Kernel) -> None:
    n = ir.IterArg("n", ir.ScalarType(INDEX), k.scalar(27, INDEX, "n0"), UNKNOWN)
    steps = ir.IterArg("steps", ir.ScalarType(INDEX), index_expr(0), UNKNOWN)
    with k.body() as statements:
        even = ir.eq(ir.mod(n, index_expr(2)), index_expr(0))
        (following,) = k.when(
            even,
            lambda: [k.let(ir.floordiv(n, index_expr(2)))],
            lambda: [k.let(ir.add(ir.mul(n, index_expr(3)), index_expr(1)))],
        )
        statements.append(ir.YieldStmt([following, ir.add(steps, index_expr(1))], UNKNOWN))
    results = [k.var("n", ir.ScalarType(INDEX)), k.var("steps", ir.ScalarType(INDEX))]
    body = ir.flatten_stmts(statements, UNKNOWN)
    condition = ir.gt(n, index_expr(1))
    k.statements[-1].append(ir.WhileStmt(condition, [n, steps], body, results, UNKNOWN))
    out = k.output([2], INT32, [1, 111])
    for position, value in enumerate(results):
        k.do(tensor.write(out, [position], ir.cast(value, INT32, UNKNOWN)))


@cases
def a_carried_tensor_is_one_tensor(k: Kernel) -> None:
    a = random(8, 16)
    x = k.tensor(a)
    out = k.output([8, 16], FP32, 2 * a)

    def body(i: ir.Expr, target: ir.Expr) -> list[ir.Expr]:
        return [k.store(k.let(tile.muls(k.load(x, [1, 16], [i, 0]), 2)), target, [i, 0])]

    k.loop(8, [("target", out)], body)


# ---- branches -----------------------------------------------------------------------------------------


def a_branch_gives_its_value(k: Kernel, flag: bool) -> None:
    a = random(4, 16)
    t = k.input(a)
    condition = ir.ne(k.scalar(int(flag), INDEX, "flag"), index_expr(0))
    (value,) = k.when(condition, lambda: [k.let(tile.exp(t))], lambda: [t])
    k.result(value, np.exp(a.astype(np.float64)) if flag else a, 1e-6)
    k.result(t, a)


cases.each([True, False], a_branch_gives_its_value)


def a_branch_updates_in_place_or_leaves(k: Kernel, flag: bool) -> None:
    a, w = random(8, 8), random(8, 8, seed=1)
    x, y = k.input(a), k.input(w)
    acc = k.let(tile.matmul(x, y), "acc")
    condition = ir.ne(k.scalar(int(flag), INDEX, "flag"), index_expr(0))
    (value,) = k.when(condition, lambda: [k.let(tile.matmul_acc(acc, x, y))], lambda: [acc])
    k.result(value, (a.astype(np.float64) @ w) * (2 if flag else 1), 1e-4)


cases.each([True, False], a_branch_updates_in_place_or_leaves)


@cases
def a_loop_may_yield_a_view_of_its_carry(k: Kernel) -> None:
    a = random(8, 8)
    start = k.input(a)
    (value,) = k.loop(3, [("v", start)], lambda i, v: [k.let(tile.transpose_view(v))])
    k.result(value, a.T)
    k.result(start, a)


@cases
def an_update_spares_a_tile_that_is_read_under_another_name(k: Kernel) -> None:
    a, b = random(8, 8), random(8, 8, seed=1)
    x, y = k.input(a), k.input(b)
    flat = k.let(tile.reshape(x, [1, 64]))
    same = k.let(tile.reshape(flat, [8, 8]))
    k.result(k.let(tile.matmul_acc(same, x, y)), a + a.astype(np.float64) @ b, 1e-4)
    k.result(x, a)


def results_of_a_branch_do_not_overwrite_one_another(k: Kernel, flag: bool) -> None:
    a, b = random(8, 8), random(8, 8, seed=1)
    x, y = k.input(a), k.input(b)
    condition = ir.ne(k.scalar(int(flag), INDEX, "flag"), index_expr(0))

    def then() -> list[ir.Expr]:
        total = k.let(tile.add(x, y))
        return [y, k.let(tile.transpose_view(total))]

    one, other = k.when(condition, then, lambda: [x, y])
    k.result(one, b if flag else a)
    k.result(other, (a + b).T if flag else b)


cases.each([True, False], results_of_a_branch_do_not_overwrite_one_another)


def branches_choose_a_tensor(k: Kernel, flag: bool) -> None:
    a, b = random(4, 16), random(4, 16, seed=1)
    x, y = k.tensor(a), k.tensor(b)
    condition = ir.ne(k.scalar(int(flag), INDEX, "flag"), index_expr(0))
    (value,) = k.when(condition, lambda: [x], lambda: [y])
    k.result(k.load(value), a if flag else b)


cases.each([True, False], branches_choose_a_tensor)


def the_valid_extent_is_carried_with_the_tile(k: Kernel, flag: bool) -> None:
    a = random(8, 16)
    rows = k.scalar(3, INDEX, "rows")
    condition = ir.ne(k.scalar(int(flag), INDEX, "flag"), index_expr(0))
    t = k.input(a)
    more = k.let(ir.add(rows, index_expr(2)), "more")
    (value,) = k.when(
        condition,
        lambda: [k.let(tile.set_validshape(t, rows, 16))],
        lambda: [k.let(tile.set_validshape(t, more, 16))],
    )
    expected = np.full((8, 16), 7, np.float32)
    count = 3 if flag else 5
    expected[:count] = a[:count]
    k.store(value, k.output([8, 16], FP32, expected))


cases.each([True, False], the_valid_extent_is_carried_with_the_tile)


# ---- scalars ------------------------------------------------------------------------------------------


@cases
def integer_division_and_modulo_floor(k: Kernel) -> None:
    pairs = [(7, 2), (-7, 2), (7, -2), (-7, -2)]
    a, b = k.scalar(0, INDEX, "zero"), index_expr(0)
    out = k.output([8], INT32, [value for x, y in pairs for value in (x // y, x % y)])
    for position, (x, y) in enumerate(pairs):
        left, right = ir.add(a, index_expr(x)), ir.add(a, index_expr(y))
        k.do(tensor.write(out, [2 * position], ir.cast(ir.floordiv(left, right), INT32, UNKNOWN)))
        k.do(tensor.write(out, [2 * position + 1], ir.cast(ir.mod(left, right), INT32, UNKNOWN)))


@cases
def scalar_operators_agree_with_python(k: Kernel) -> None:
    x, y = k.scalar(12, INT32, "x"), k.scalar(-5, INT32, "y")
    shift = ir.ConstInt(2, INT32, UNKNOWN)
    values = [
        (ir.min_(x, y), -5), (ir.max_(x, y), 12), (ir.neg(x), -12), (ir.Abs(y, INT32, UNKNOWN), 5),
        (ir.bit_and(x, y), 12 & -5), (ir.bit_or(x, y), 12 | -5), (ir.bit_xor(x, y), 12 ^ -5),
        (ir.bit_shift_left(x, shift), 48), (ir.bit_shift_right(y, shift), -2), (ir.bit_not(x), -13),
        (ir.pow(y, shift), 25), (ir.cast(ir.and_(ir.gt(x, y), ir.not_(ir.le(x, y))), INT32, UNKNOWN), 1),
    ]  # fmt: skip
    out = k.output([len(values)], INT32, [value for _, value in values])
    for position, (expr, _) in enumerate(values):
        k.do(tensor.write(out, [position], expr))


@cases
def a_shared_and_deep_expression_stays_small(k: Kernel) -> None:
    value: ir.Expr = k.scalar(1, INDEX, "x")
    for _ in range(60):
        value = ir.add(value, value)  # 2 ** 60 leaves as a tree
    for _ in range(2000):
        value = ir.sub(value, index_expr(1))
    out = k.output([1], DataType.INT64, [2**60 - 2000])
    k.do(tensor.write(out, [0], ir.cast(value, DataType.INT64, UNKNOWN)))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compile_kernels(list(cases.kernels.values()), Path(tmp_path_factory.mktemp("control")))


@pytest.mark.parametrize("name", cases.kernels)
def test_kernel_carries_values_right(name: str, library: ctypes.CDLL) -> None:
    cases.kernels[name].check(library)


# ---- buffers ------------------------------------------------------------------------------------------


def workspace_of(kernel: Kernel) -> str:
    line = next(line for line in kernel.generate().text.splitlines() if "kernel_workspace_bytes" in line)
    return line.partition("= ")[2].rstrip(";")


def test_a_chain_of_elementwise_operators_lives_in_one_buffer() -> None:
    k = Kernel("chain")
    t = k.input(random(16, 64))
    for _ in range(10):
        t = k.let(tile.adds(t, 1))
    k.result(t, 0)
    assert workspace_of(k) == str(16 * 64 * 4)


def test_an_accumulation_needs_no_copy() -> None:
    text = cases.kernels["a_loop_accumulates_a_tile"].generate().text
    assert "assign" not in text and "copy" not in text
    text = cases.kernels["a_matrix_product_accumulates_over_a_loop"].generate().text
    assert "assign" not in text and "copy" not in text


def test_buffers_of_tiles_that_live_apart_are_shared() -> None:
    k = Kernel("apart")
    for seed in range(6):
        k.result(k.let(tile.exp(k.input(random(32, 64, seed=seed)))), 0)
    assert workspace_of(k) == str(32 * 64 * 4)


# ---- text ---------------------------------------------------------------------------------------------


def test_comments_lead_back_to_the_line_of_the_program() -> None:
    text = cases.kernels["a_loop_accumulates_a_tile"].generate().text
    assert "// case.py:10" in text and '"tile.load at case.py:11 in kernel a_loop_accumulates_a_tile"' in text


def test_equal_kernels_give_equal_text() -> None:
    def write() -> str:
        k = Kernel("same")
        k.result(k.let(tile.exp(k.input(random(4, 8)))), 0)
        return k.generate().text

    assert write() == write()


def test_names_of_variables_that_cannot_be_used_are_changed() -> None:
    k = Kernel("names")
    x = k.tensor(random(4, 8), "class")
    t = k.let(tile.load(x, [0, 0], [4, 8]), "kernel")
    t = k.let(tile.exp(t), "été")
    t = k.let(tile.exp(t), "1st")
    text = k.generate().text
    assert (
        "auto class " not in text and "auto kernel " not in text and "é" not in text and "auto v1st" in text
    )


def test_a_cube_kernel_is_of_core_type_cube() -> None:
    k = Kernel("cube")
    k.result(k.let(tile.matmul(k.input(random(4, 8)), k.input(random(8, 4)))), 0)
    assert k.generate(ir.FunctionType.AIC).core_type is ir.CoreType.CUBE
    assert k.generate(ir.FunctionType.InCore).core_type is ir.CoreType.VECTOR


# ---- checked mode -------------------------------------------------------------------------------------


def test_checked_mode_reports_accesses_outside_a_tensor(tmp_path: Path) -> None:
    def load(k: Kernel) -> None:
        k.input(random(8, 16), shape=[4, 16], offset=[k.scalar(6, INDEX), 0])

    def store(k: Kernel) -> None:
        k.store(k.input(random(4, 16)), k.output([8, 16], FP32, 0), [k.scalar(-1, INDEX), 0])

    def read(k: Kernel) -> None:
        k.let(tensor.read(k.tensor(random(8)), [k.scalar(8, INDEX)]))

    def write(k: Kernel) -> None:
        k.do(tensor.write(k.output([8], FP32, 0), [k.scalar(-1, INDEX)], ir.ConstFloat(1.0, FP32, UNKNOWN)))

    def inside(k: Kernel) -> None:
        k.input(random(8, 16), shape=[4, 16], offset=[k.scalar(4, INDEX), 0])

    def window(k: Kernel) -> None:
        source = k.input(random(8, 16))
        k.result(k.let(tile.slice(source, [4, 16], [k.scalar(5, INDEX), 0])), 0)

    kernels = []
    for case in (load, store, read, window, inside):
        kernel = Kernel(f"checked_{case.__name__}", checked=True)
        case(kernel)
        kernels.append(kernel)
    library = compile_kernels(kernels, tmp_path)
    expected = (
        ("tile.load", "6 to 9 in dimension 0 of extent 8"),
        ("tile.store", "-1 to 2 in dimension 0 of extent 8"),
        ("tensor.read", "8 in dimension 0 of extent 8"),
        ("tile.slice", "5 to 8 in dimension 0 of extent 8"),
    )
    for kernel, (op, where) in zip(kernels, expected, strict=False):
        (message,) = kernel.run(library)
        assert message.startswith(f"{op} at case.py:")
        assert message.endswith(f"in kernel {kernel.name}: out of range: {where}")
    assert kernels[-1].run(library) == []


# ---- refusals -----------------------------------------------------------------------------------------


def refused(k: Kernel) -> str:
    with pytest.raises(KernelError) as caught:
        k.generate()
    return str(caught.value)


def test_an_operator_without_cpu_meaning_is_named_with_kernel_and_line() -> None:
    k = Kernel("lanes")
    k.let(tile.aic_gather(k.input(random(4, 8)), split=1))
    message = refused(k)
    assert "tile.aic_gather" in message and "'lanes'" in message and "case.py:11" in message


def test_a_dimension_that_cannot_be_solved_is_named() -> None:
    k = Kernel("dims")
    m, n = (k.var(name, ir.ScalarType(INDEX)) for name in "MN")
    k.tensor(random(6), shape=[ir.Add(m, n, INDEX, UNKNOWN)])
    assert "Cannot recover dynamic dimension" in refused(k)


def test_a_tile_of_dynamic_extent_is_named_with_its_line() -> None:
    k = Kernel("grows")
    count = k.scalar(3, INDEX, "count")
    k.load(k.tensor(random(4, 8)), shape=[count, 8])
    message = refused(k)
    assert "tile.load" in message and "[count, 8]" in message and "case.py:10" in message
    assert "valid_shape" in message


def test_a_function_that_is_no_kernel_is_refused() -> None:
    k = Kernel("orch")
    function = k.function(ir.FunctionType.Orchestration)
    with pytest.raises(ValueError, match="not a kernel"):
        generate_kernel(ir.Program([function], "P", UNKNOWN), function)


def test_too_many_parameters_are_refused() -> None:
    k = Kernel("many")
    for _ in range(17):
        k.scalar(1, INDEX)
    assert "17 scalars" in refused(k)


def test_headers_compile_alone(tmp_path: Path) -> None:
    headers = [
        "abi",
        "kernel",
        "number",
        "math",
        "cast",
        "reduce",
        "matmul",
        "mask",
        "permute",
        "atomic",
        "scaled",
    ]
    compile_text("".join(f'#include "pypto_{header}.h"\n' for header in headers), tmp_path)


@pytest.mark.parametrize("escape", [ir.BreakStmt, ir.ContinueStmt])
def test_a_break_that_leaves_the_kernel_is_refused(escape: type[ir.Stmt]) -> None:
    kernel = ir.Function("k", [], [], escape(UNKNOWN), UNKNOWN, type=ir.FunctionType.InCore)
    word = "break" if escape is ir.BreakStmt else "continue"
    with pytest.raises(KernelError, match=f"a {word} cannot leave the scope"):
        generate_kernel(ir.Program([kernel], "P", UNKNOWN), kernel)
