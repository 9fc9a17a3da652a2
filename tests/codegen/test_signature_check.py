"""What `ir.compile` refuses before it translates anything: results and arguments that do not fit."""

from __future__ import annotations

import textwrap

import pytest

import pypto.language as pl
from pypto import ir
from pypto.codegen.artifact import PartialCodegenError
from pypto.core.errors import Error

TENSOR = "pl.Tensor[[64, 64], pl.FP32]"
STORED = "x = pl.load(a, [0, 0], [64, 64])\nout = pl.store(x, [0, 0], out)\nreturn out"


def program(kernel: str = STORED, returns: str = TENSOR, main: str = "return self.k(a, out)") -> ir.Program:
    """A kernel `k` and an orchestration that calls it."""
    signature = f"self, a: {TENSOR}, out: pl.Out[{TENSOR}]"
    return pl.parse_program(
        "@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.InCore)\n"
        f"    def k({signature}){f' -> {returns}' if returns else ''}:\n{textwrap.indent(kernel, ' ' * 8)}\n"
        f"    @pl.function(type=pl.FunctionType.Orchestration)\n    def main({signature}) -> {TENSOR}:\n"
        f"{textwrap.indent(main, ' ' * 8)}\n",
        filename="program.py",
    )


@pytest.mark.parametrize(
    ("returns", "message"),
    [
        ("pl.Tensor[[32, 64], pl.FP32]", r"the result of 'k' is pl.Tensor\[\[32, 64\], pl.FP32\], but it is"),
        ("pl.Tensor[[64, 64], pl.FP16]", r"the result of 'k' is pl.Tensor\[\[64, 64\], pl.FP16\], but it is"),
        ("pl.Tensor[[64, 64, 1], pl.FP32]", r"the result of 'k' is .*; change the annotation"),
        (f"tuple[{TENSOR}, {TENSOR}]", r"'k' is annotated to return 2 value\(s\), but returns 1"),
    ],
)
def test_result_that_contradicts_its_annotation_is_refused(returns, message, tmp_path):
    with pytest.raises(ValueError, match=rf"{message}.*program\.py:7:9"):
        ir.compile(program(returns=returns), tmp_path, dump_passes=False)
    assert not (tmp_path / "kernel_config.py").exists()


def test_return_without_the_annotated_value_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"annotated to return 1 value\(s\), but returns 0"):
        ir.compile(program(STORED.replace("return out", "return")), tmp_path, dump_passes=False)


def test_missing_return_says_what_to_write(tmp_path):
    with pytest.raises(Error, match=r"(?s)'k' returns tensors but has no ReturnStmt.*`return out`"):
        ir.compile(program(STORED.replace("return out", "")), tmp_path, dump_passes=False)


def test_symbolic_extents_of_a_result_are_taken_on_trust(tmp_path):
    text = """
    M = pl.dynamic("M")
    N = pl.dynamic("N")

    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(
            self, b: pl.Tensor[[N, 64], pl.FP32], out: pl.Out[pl.Tensor[[M, 64], pl.FP32]]
        ) -> pl.Tensor[[N, 64], pl.FP32]:
            x = pl.tile.full([1, 64], dtype=pl.FP32, value=1.0)
            return pl.store(x, [0, 0], out)

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, b: pl.Tensor[[N, 64], pl.FP32], out: pl.Out[pl.Tensor[[M, 64], pl.FP32]]
        ) -> pl.Tensor[[M, 64], pl.FP32]:
            return self.k(b, out)
    """
    ir.compile(pl.parse_program(textwrap.dedent(text)), tmp_path, dump_passes=False)


def test_kernel_that_only_returns_a_tile_is_warned_about(tmp_path, capfd):
    ir.compile(program("x = pl.load(a, [0, 0], [64, 64])\nreturn x"), tmp_path, dump_passes=False)
    written = capfd.readouterr()
    assert "Output parameter 'out' of function 'k' is never written" in written.out + written.err
    assert "pl.store(tile, offsets, out)" in written.out + written.err


def test_outputs_that_are_stored_or_passed_on_are_not_warned_about(tmp_path, capfd):
    ir.compile(program(), tmp_path, dump_passes=False)
    written = capfd.readouterr()
    assert "never written" not in written.out + written.err


@pytest.mark.parametrize(
    ("call", "given"),
    [
        ("self.k(1, out)", r"'a' of 'k' .* gets a pl.Scalar\[pl.INDEX\]"),
        ("self.k(a, 3)", r"'out' of 'k' .* gets a pl.Scalar\[pl.INDEX\]"),
        ("self.k(a, [out])", r"'out' of 'k' .* gets a pl.Tuple"),
    ],
)
def test_argument_of_another_kind_is_refused(call, given, tmp_path):
    with pytest.raises(ValueError, match=rf"Parameter {given}.*program\.py:10:16"):
        ir.compile(program(main=f"return {call}"), tmp_path, dump_passes=False)


@pytest.mark.parametrize(
    ("main", "message"),
    [
        (
            "c = pl.add(a, a)\nreturn self.k(c, out)",
            r"Misplaced tensor op 'tensor\.add'.*pl\.at\(.*program\.py:10:13",
        ),
        ("t = pl.load(a, [0, 0], [64, 64])\nreturn self.k(a, out)", "builtin op 'tile.load'"),
        ("return self.main(a, out)", "type Orchestration cannot be dispatched.*FunctionType.Inline"),
        (
            "with pl.at(level=pl.Level.CORE_GROUP):\n    out = self.k(a, out)\nreturn out",
            "a kernel cannot call function 'k'; call kernels from an orchestration",
        ),
    ],
)
def test_misplaced_operations_say_where_they_belong(main, message, tmp_path):
    with pytest.raises(PartialCodegenError, match=message) as caught:
        ir.compile(program(main=main), tmp_path, dump_passes=False)
    assert "InternalError" not in str(caught.value)
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize(
    "operation",
    [
        "pl.full([4, 4], pl.FP32, value=0)", "pl.arange(0, [1, 32])", "pl.fillpad(a)", "pl.cast(a, pl.BF16)",
        "pl.set_validshape(a, 4, 4)", "pl.matmul(a, a)", "pl.row_sum(a)", "pl.concat(a, a)", "pl.mul(a, 2.0)",
        "pl.gather(a, mask_pattern=1)", "pl.get_block_idx()", "pl.create_l1([16, 16], pl.FP32)",
    ],
)  # fmt: skip
def test_an_orchestration_computes_nothing(operation, tmp_path):
    message = r"Misplaced tensor op 'tensor\.\w+' in Orchestration function \(should be inside InCore block\)"
    with pytest.raises(PartialCodegenError, match=message):
        ir.compile(program(main=f"c = {operation}\nreturn self.k(a, out)"), tmp_path, dump_passes=False)


@pytest.mark.parametrize(
    "operation", ["pl.reinterpret_view(a, pl.INT32)", "pl.assemble(a, a, [0, 0], atomic=pl.AtomicType.Add)"]
)
def test_operations_that_an_orchestration_cannot_do_are_refused_by_name(operation, tmp_path):
    with pytest.raises(PartialCodegenError, match=r"not possible in an Orchestration; move it into"):
        ir.compile(program(main=f"c = {operation}\nreturn self.k(a, out)"), tmp_path, dump_passes=False)


def test_an_orchestration_creates_reads_writes_and_views(tmp_path):
    main = """
        c = pl.create_tensor([64, 64], dtype=pl.FP32)
        pl.write(c, [0, 0], pl.read(a, [1, 2]))
        flat = pl.reshape(a, [4096])
        piece = pl.slice(flat, [64], [pl.tensor.dim(a, 0)])
        turned = pl.transpose(pl.tensor.view(a, [64, 64]), 0, 1)
        c = self.k(a, c)
        out = pl.assemble(out, c, [0, 0])
        counts = pl.array.create(4, pl.INT32)
        counts[0] = 3
        return out
    """
    ir.compile(program(main=textwrap.dedent(main).strip()), tmp_path, dump_passes=False)


def test_division_by_a_constant_zero_names_the_place(tmp_path):
    kernel = "x = pl.load(a, [4 // 0, 0], [64, 64])\n" + STORED.split("\n", 1)[1]
    with pytest.raises(ValueError, match=r"Floor division by zero \[program\.py:5:25\]"):
        ir.compile(program(kernel), tmp_path, dump_passes=False)


@pytest.mark.parametrize(
    ("main", "message"),
    [
        (
            "with pl.spmd(2):\n    with pl.spmd(2):\n        out = self.k(a, out)\nreturn out",
            r"take one pl\.spmd\(\) out",
        ),
        (
            "for i in pl.spmd(2):\n    for j in pl.spmd(2):\n        out[0:64, :] = pl.exp(a)\nreturn out",
            r"outside of pl\.at and pl\.spmd, and do not nest these",
        ),
    ],
)
def test_launches_inside_launches_say_how_to_write_them(main, message, tmp_path):
    with pytest.raises(RuntimeError, match=message) as caught:
        ir.compile(program(main=main), tmp_path, dump_passes=False)
    assert "InternalError" not in str(caught.value)


def test_inline_function_without_result_is_the_users_mistake(tmp_path):
    text = f"""
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.Inline)
        def twice(self, n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
            m = n * 2

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, n: pl.Scalar[pl.INDEX], out: pl.Out[{TENSOR}]):
            m = self.twice(n)
            with pl.at(level=pl.Level.CORE_GROUP):
                out[m : m + 1, :] = pl.exp(out[0:1, :])
    """
    with pytest.raises(ValueError, match=r"Inline function 'twice' has no return value.*at the end"):
        ir.compile(pl.parse_program(textwrap.dedent(text)), tmp_path, dump_passes=False)


def test_extents_of_tiles_are_constants_and_windows_say_what_counts(tmp_path):
    text = f"""
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, a: {TENSOR}, n: pl.Scalar[pl.INDEX], out: pl.Out[{TENSOR}]):
            with pl.at(level=pl.Level.CORE_GROUP):
                out[0:n, :] = pl.exp(a[0:n, :])
    """
    with pytest.raises(RuntimeError, match=r"extents of a tile must be .* got \[n.*, 64\].*valid_shape="):
        ir.compile(pl.parse_program(textwrap.dedent(text)), tmp_path, dump_passes=False)


def test_arrays_of_task_ids_do_not_enter_a_kernel(tmp_path):
    text = f"""
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, a: {TENSOR}, out: pl.Out[{TENSOR}]):
            ids = pl.array.create(4, pl.TASK_ID)
            for i in pl.range(2):
                with pl.at(level=pl.Level.CORE_GROUP) as tid:
                    ids[i] = tid
                    out[:, :] = pl.exp(a)
    """
    with pytest.raises(RuntimeError) as caught:
        ir.compile(pl.parse_program(textwrap.dedent(text)), tmp_path, dump_passes=False)
    assert "InternalError" not in str(caught.value)
    assert "of type ArrayType" in str(caught.value)


@pytest.mark.parametrize(
    "kernel",
    [
        STORED.replace("return out", "for i in pl.range(2):\n    return out\nout = pl.store(x, [0, 0], out)"),
        STORED.replace("return out", "for i in pl.range(2):\n    if i > 0:\n        return out\nreturn out"),
    ],
)
def test_return_of_a_kernel_before_its_end_is_refused(kernel, tmp_path):
    with pytest.raises(PartialCodegenError, match="a return inside a loop, or before other statements"):
        ir.compile(program(kernel), tmp_path, dump_passes=False)


def test_kernel_may_return_in_both_branches_at_its_end(tmp_path):
    kernel = "x = pl.load(a, [0, 0], [64, 64])\nv = pl.read(a, [0, 0])\nif v > 0.0:\n"
    kernel += "    out = pl.store(x, [0, 0], out)\n    return out\nelse:\n    return out"
    ir.compile(program(kernel), tmp_path, dump_passes=False)


@pytest.mark.parametrize(
    ("access", "index"),
    [
        ("v = pl.read(a, [70, 0])", 70),
        ("v = a[0, 64]", 64),
        ("v = pl.read(x, [0, 64])", 64),
        ("q = pl.array.create(4, pl.INDEX)\nk = q[4]\nv = pl.read(a, [k, 0])", 4),
        ("q = pl.array.create(4, pl.INDEX)\nq[5] = 3\nv = pl.read(a, [q[0], 0])", 5),
    ],
)
def test_constant_index_outside_of_its_tensor_is_refused(access, index, tmp_path):
    kernel = f"x = pl.load(a, [0, 0], [64, 64])\n{access}\nx = pl.mul(x, v)\n" + STORED.split("\n", 1)[1]
    with pytest.raises(ValueError, match=rf"Index {index} of dimension \d is outside of .*program\.py:[67]"):
        ir.compile(program(kernel), tmp_path, dump_passes=False)


@pytest.mark.parametrize("made", [True, False])
def test_a_result_that_no_output_parameter_holds_is_warned_about(made, tmp_path, capfd):
    create = "out = pl.create_tensor([64, 64], dtype=pl.FP32)" if made else "pass"
    parameter = "" if made else f", out: pl.Out[{TENSOR}]"
    text = f"""
    @pl.program
    class P:
        @pl.function
        def main(self, a: {TENSOR}{parameter}) -> {TENSOR}:
            {create}
            with pl.at(level=pl.Level.CORE_GROUP):
                out[:] = pl.exp(a)
            return out
    """
    ir.compile(pl.parse_program(textwrap.dedent(text)), tmp_path, dump_passes=False)
    written = capfd.readouterr()
    assert ("'main' returns 'out', which is no output parameter" in written.out + written.err) is made
