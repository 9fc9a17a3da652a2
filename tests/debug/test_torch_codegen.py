"""`pypto.debug`: Python source that computes what the IR of any stage computes."""
# ruff: noqa: RET504  (a program names what it returns)

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pypto.language as pl
from pypto import debug, ir, passes
from pypto.debug import lanes, torch_codegen
from pypto.ir.pass_manager import OptimizationStrategy, PassManager
from tests.runtime import lane_programs

SIDE = pl.Tensor[[16, 16], pl.FP32]


@pl.program
class Steps:
    @pl.function(type=pl.FunctionType.InCore)
    def scale(self, x: SIDE, factor: pl.Scalar[pl.FP32], out: pl.Out[SIDE]) -> SIDE:
        t = pl.load(x, [0, 0], [16, 16])
        out = pl.store(pl.mul(t, factor), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: SIDE, n: pl.Scalar[pl.INDEX], out: pl.Out[SIDE]) -> SIDE:
        out = self.scale(x, 1.0, out)
        for i in pl.range(n):
            if i > 0:
                with pl.at(level=pl.Level.CORE_GROUP):
                    out[:] = pl.add(out, x)
        return out


@pl.program
class Softmax:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: SIDE, out: pl.Out[SIDE]) -> SIDE:
        with pl.spmd(4, name_hint="rows"):
            row = pl.tile.get_block_idx() * 4
            part = x[row : row + 4, :]
            e = pl.exp(pl.row_expand_sub(part, pl.row_max(part)))
            out = pl.assemble(out, pl.row_expand_div(e, pl.row_sum(e)), [row, 0])
        return out


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def functions_of(program: ir.Program | ir.Function, **options: bool) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(torch_codegen(program, **options), names)
    return names


def stages(program: ir.Program) -> list[ir.Program]:
    found = [program]
    for each in PassManager.get_strategy(OptimizationStrategy.Default).passes:
        changed = each(found[-1])
        if changed is not found[-1]:
            found.append(changed)
    return found


def test_source_computes_the_same_at_every_stage(rng: np.random.Generator) -> None:
    x = rng.standard_normal((16, 16)).astype(np.float32)
    for stage in stages(Steps):
        out = np.zeros_like(x)
        functions_of(stage)["main"](x, 3, out)
        np.testing.assert_allclose(out, 3 * x, rtol=1e-6)


def test_an_extent_that_only_a_valid_region_names_is_that_of_the_argument(rng: np.random.Generator) -> None:
    valid = pl.dynamic("VALID")

    @pl.program
    class Program:
        @pl.function(type=pl.FunctionType.InCore)
        def largest(
            self,
            x: pl.Tensor[
                [16, 16], pl.FP32, pl.TensorView(valid_shape=[16, valid], layout=pl.TensorLayout.ND)
            ],
            out: pl.Out[pl.Tensor[[16, 1], pl.FP32]],
        ) -> pl.Tensor[[16, 1], pl.FP32]:
            t = pl.load(x, [0, 0], [16, 16], valid_shape=[16, valid])
            scratch = pl.create_tile([16, 16], dtype=pl.FP32, target_memory=pl.Mem.Vec)
            padded = pl.tile.fillpad(t, pad_value=pl.PadValue.min)
            out = pl.store(pl.row_max(padded, scratch), [0, 0], out)
            return out

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, x: SIDE, n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[16, 1], pl.FP32]]
        ) -> pl.Tensor[[16, 1], pl.FP32]:
            window = pl.slice(x, [16, 16], [0, 0], valid_shape=[16, n])
            out = self.largest(window, out)
            return out

    x = rng.standard_normal((16, 16)).astype(np.float32)
    for stage in stages(Program):
        out = np.zeros((16, 1), np.float32)
        functions_of(stage)["main"](x, 5, out)
        np.testing.assert_array_equal(out[:, 0], x[:, :5].max(1))


def test_spmd_runs_every_block(rng: np.random.Generator) -> None:
    x = rng.standard_normal((16, 16)).astype(np.float32)
    wanted = np.exp(x - x.max(1, keepdims=True))
    for stage in stages(Softmax):
        out = np.zeros_like(x)
        functions_of(stage)["main"](x, out)
        np.testing.assert_allclose(out, wanted / wanted.sum(1, keepdims=True), rtol=1e-5)


def test_each_function_has_its_name_and_parameters_without_self() -> None:
    names = functions_of(Steps)
    x, out = np.ones((16, 16), np.float32), np.zeros((16, 16), np.float32)
    result = names["scale"](x=x, factor=2.0, out=out)
    assert result is out
    np.testing.assert_array_equal(out, 2 * x)


def test_a_single_function_has_source_of_its_own() -> None:
    kernel = next(each for each in Steps.functions.values() if each.name == "scale")
    out = np.zeros((16, 16), np.float32)
    functions_of(kernel)["scale"](np.ones((16, 16), np.float32), 3.0, out)
    assert (out == 3).all()


@pytest.mark.parametrize("name", ["f(): pass\nboom", "class", "rt", "min"])
def test_a_function_name_that_python_cannot_take_is_refused(name: str) -> None:
    kernel = next(each for each in Steps.functions.values() if each.name == "scale")
    with pytest.raises(ValueError, match="Unsupported function name"):
        torch_codegen(kernel.replace(name=name))


def test_a_comment_of_several_lines_stays_a_comment() -> None:
    kernel = next(each for each in Steps.functions.values() if each.name == "scale")
    first, *rest = ir.flatten_to_stmts(kernel.body)
    assert isinstance(first, ir.AssignStmt)
    commented = ir.AssignStmt(first.var, first.value, first.span)
    ir.attach_leading_comments(commented, ["one\nraise SystemExit"])
    body = ir.flatten_stmts([commented, *rest], kernel.span)
    out = np.zeros((16, 16), np.float32)
    functions_of(kernel.replace(body=body))["scale"](np.ones((16, 16), np.float32), 3.0, out)
    assert (out == 3).all()


@pytest.mark.parametrize("node", [None, "main", Steps.functions])
def test_anything_but_a_program_or_function_is_refused(node: Any) -> None:
    with pytest.raises(TypeError, match="takes a Program or a Function"):
        torch_codegen(node)


def test_check_shapes_asserts_static_shapes() -> None:
    wrong = np.zeros((8, 16), np.float32)
    with pytest.raises(AssertionError, match=r"x has shape \[8, 16\], expected \[16, 16\]"):
        functions_of(Steps, check_shapes=True)["main"](wrong, 1, np.zeros((16, 16), np.float32))
    assert "check_shape" not in torch_codegen(Steps)


def test_operators_between_ranks_are_unsupported() -> None:
    with pytest.raises(ValueError, match=r"Unsupported op 'system\.syncall' in torch_codegen"):
        torch_codegen(lane_programs.Meeting)


def test_names_of_python_and_of_the_source_itself_are_avoided() -> None:
    @pl.program
    class P:
        @pl.function
        def main(self, rt: pl.Scalar[pl.INDEX], ir: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
            main: pl.Scalar[pl.INDEX] = pl.max(rt, 2) - (ir - 1)
            return main

    assert functions_of(P)["main"](1, 5) == -2


def test_a_loop_without_turns_gives_what_it_started_from() -> None:
    @pl.program
    class P:
        @pl.function
        def main(self, n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
            a: pl.Scalar[pl.INDEX] = n
            b: pl.Scalar[pl.INDEX] = n + 1
            for _ in pl.range(n):
                swap: pl.Scalar[pl.INDEX] = a
                a = b
                b = swap
            return a - b

    for program in (P, passes.convert_to_ssa()(P)):
        main = functions_of(program)["main"]
        assert [main(n) for n in range(4)] == [-1, 1, -1, 1]


def test_a_tensor_that_only_a_branch_of_a_scope_makes_may_be_missing() -> None:
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, n: pl.Scalar[pl.INDEX], out: pl.Out[SIDE]) -> SIDE:
            for _ in pl.unroll(2):
                with pl.at(level=pl.Level.CORE_GROUP):
                    if n > 0:
                        t = pl.full([16, 16], dtype=pl.FP32, value=2.0)
                        out = pl.assemble(out, t, [0, 0])
            return out

    for program in (P, passes.unroll_loops()(P)):
        for n in (0, 1):
            out = np.zeros((16, 16), np.float32)
            functions_of(program)["main"](n, out)
            assert (out == 2 * n).all()


@pytest.mark.parametrize(("name", "rows"), [("rows", 32), ("columns", 32), ("odd", 15)])
def test_split_regions_do_the_work_of_both_lanes(rng: np.random.Generator, name: str, rows: int) -> None:
    extent = rows + rows % 2
    a, b = (rng.standard_normal((each, 32)).astype(np.float32) for each in (rows, 32))
    changed = np.zeros((extent, 32), np.float32)
    changed[:rows] = 2 * (a @ b)
    changed[(slice(None), slice(16, None)) if name == "columns" else slice(extent // 2, None)] += 1
    for stage in stages(lane_programs.Regions):
        side, out = np.zeros((extent, 32), np.float32), np.zeros((extent, 32), np.float32)
        functions_of(stage)[name](a, b, side, out)
        np.testing.assert_allclose(side[:rows], changed[:rows], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(out[:rows], (changed @ b)[:rows], rtol=1e-4, atol=1e-3)


def test_lanes_of_a_group_hand_tiles_to_each_other(rng: np.random.Generator) -> None:
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((128, 32), (32, 32)))
    out = np.zeros((128, 32), np.float32)
    functions_of(lane_programs.Forward)["main"](a, b, out)
    np.testing.assert_allclose(out, np.maximum(a @ b, 0), rtol=1e-4, atol=1e-5)
    x, back = rng.standard_normal((13, 32)).astype(np.float32), np.zeros((13, 32), np.float32)
    functions_of(lane_programs.Odds)["valid_part"](x, back)
    np.testing.assert_array_equal(back, x)


def test_vector_kernel_for_both_lanes_runs_on_both() -> None:
    out = np.zeros((2, 32), np.int32)
    functions_of(lane_programs.Odds)["vector_pair"](out)
    np.testing.assert_array_equal(out, [[5] * 32, [6] * 32])


def test_pop_waits_for_a_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "POP_SECONDS", 0.05)
    x, out = np.zeros((16, 16), np.float32), np.zeros((16, 16), np.float32)
    with pytest.raises(RuntimeError, match=r"timeout: no tile came to the (cube|vector) lane"):
        functions_of(lane_programs.Uneven)["main"](x, out, 1, 1, 1, 0)


def test_torch_tensors_are_changed_in_place_and_returned() -> None:
    torch = pytest.importorskip("torch")

    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def main(
            self, x: pl.Tensor[[8, 16], pl.BF16], out: pl.Out[pl.Tensor[[8, 16], pl.BF16]]
        ) -> pl.Tensor[[8, 16], pl.BF16]:
            t = pl.load(x, [0, 0], [8, 16])
            out = pl.store(pl.add(t, 1.0), [0, 0], out)
            return out

    x, out = torch.ones((8, 16), dtype=torch.bfloat16), torch.zeros((8, 16), dtype=torch.bfloat16)
    assert functions_of(P)["main"](x, out) is out
    assert (out == 2).all()


def test_validation_of_dumps_is_that_of_a_compiled_program(tmp_path: Any) -> None:
    for number, stage in enumerate(stages(Steps)):
        (tmp_path / f"{number:02}_stage.py").write_text(ir.python_print(stage))
    x = np.ones((16, 16), np.float32)
    tensors = {"x": x, "n": 2, "out": np.zeros_like(x)}
    debug.validate_pass_ir_codegen_results(tmp_path, tensors, {"out": 2 * x})
    debug.validate_pass_ir_codegen_results(tmp_path / "00_stage.py", tensors, {"out": 2 * x})
    wrong = tmp_path / "03_wrong.py"
    wrong.write_text(ir.python_print(Steps).replace("1.0", "4.0"))
    with pytest.raises(AssertionError, match=r"03_wrong\.py: 'out' differs from what is expected: 3"):
        debug.validate_pass_ir_codegen_results(tmp_path, tensors, {"out": 2 * x})


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"ir_dir": "missing"}, FileNotFoundError, "missing"),
        ({"ir_dir": "empty"}, ValueError, r"no \.py files"),
        ({"expected": {"z": np.ones(2)}}, ValueError, "no parameter z; there are x, n, out"),
        ({"rtol": -1.0}, ValueError, "must not be negative"),
        ({"tensors": {}}, KeyError, "no tensor for parameter 'x'"),
        ({"tensors": {"x": "text", "n": 1, "out": None}}, TypeError, "'x' must be a tensor, got str"),
        ({"tensors": {"x": 1.0, "n": 1, "out": None}}, TypeError, "'x' must be a tensor, got float"),
        ({"tensors": {"x": np.ones(2), "n": np.ones(1)}}, TypeError, "'n' must be a number, got ndarray"),
        ({"expected": {"out": "text"}}, TypeError, "'out' must be a tensor, got str"),
    ],
    ids=["path", "empty", "name", "tolerance", "tensor", "type", "number", "scalar", "expected"],
)
def test_validation_refuses(
    tmp_path: Any, changed: dict[str, Any], error: type[Exception], message: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "00.py").write_text(ir.python_print(Steps))
    x = np.ones((16, 16), np.float32)
    given: dict[str, Any] = {"tensors": {"x": x, "n": 2, "out": x}, "expected": {"out": x}, **changed}
    folder = tmp_path / given.pop("ir_dir", ".")
    with pytest.raises(error, match=message):
        debug.validate_pass_ir_codegen_results(folder, given.pop("tensors"), given.pop("expected"), **given)
