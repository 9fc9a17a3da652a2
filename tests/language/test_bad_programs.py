"""Mistakes a newcomer makes: each is reported where it is, with what to write instead."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import pypto.language as pl
from pypto.language.op import __all__ as OPERATORS
from pypto.language.parser import (
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    UnsupportedFeatureError,
)
from pypto.language.parser.instead import instead_of_foreign

TENSOR = "pl.Tensor[[64, 64], pl.FP32]"


def error_of(body: str) -> ParserError:
    """The error of a kernel with this body."""
    code = (
        "@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.InCore)\n"
        f"    def k(self, a: {TENSOR}, out: pl.Out[{TENSOR}]):\n"
        f"{textwrap.indent(body, ' ' * 8)}\n"
    )
    with pytest.raises(ParserError) as caught:
        pl.parse(code)
    return caught.value


def marked(error: ParserError) -> str:
    """The source text from the place of an error to the end of its line."""
    assert error.span is not None and error.source_lines is not None
    return error.source_lines[error.span["line"] - 1][error.span["column"] - 1 :]


# -- places --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("c = a[70:80, 0:64]", "a[70:80, 0:64]"),
        ("x = pl.exp(a[-1])", "a[-1])"),
        ("x = 1 + (2.0 + 1)", "1 + (2.0 + 1)"),
        ("a[70:74, 0:64] = a[0:4, 0:64]", "a[70:74, 0:64] = a[0:4, 0:64]"),
    ],
)
def test_errors_of_subscripts_and_operators_are_reported_where_they_are(body, place):
    error = error_of(f"i = pl.const(1, pl.INT32)\n{body.replace('1 + (2.0', 'i + (2.0')}")
    assert type(error) is ParserSyntaxError
    assert error.message.startswith("Failed to parse function 'k': ")
    assert marked(error) == place.replace("1 + (2.0", "i + (2.0")


def test_mixed_operands_say_how_to_convert_them():
    error = error_of("i = pl.const(1, pl.INT32)\nx = i + 2.0")
    assert "same numeric dtype category" in error.message
    assert "pl.cast(x, pl.FP32)" in error.note


# -- extents of a signature ----------------------------------------------------------------------------------


@pytest.mark.parametrize("extent", [-64, 0])
@pytest.mark.parametrize("place", ["parameter", "result"])
def test_extents_of_a_signature_are_positive(extent, place, tmp_path):
    bad = f"pl.Tensor[[64, {extent}], pl.FP32]"
    kinds = (bad, TENSOR) if place == "parameter" else (TENSOR, bad)
    path = tmp_path / "extents.py"
    path.write_text(
        f"import pypto.language as pl\n\n@pl.function\ndef f(x: {kinds[0]}) -> {kinds[1]}:\n    return x\n"
    )
    with pytest.raises(ParserTypeError, match=f"dimension 1 is {extent}") as caught:
        exec(compile(path.read_text(), str(path), "exec"), {})
    assert marked(caught.value).startswith(bad)
    assert 'pl.dynamic("M")' in caught.value.hint


def test_text_may_hold_empty_windows_but_no_negative_extents():
    code = "@pl.function\ndef f(x: pl.Tensor[[0], pl.FP32]):\n    return x\n"
    pl.parse(code)
    with pytest.raises(ParserTypeError, match="dimension 0 is -1"):
        pl.parse(code.replace("[0]", "[-1]"))


def test_loop_with_step_zero_is_warned_about():
    code = "@pl.function\ndef f(n: pl.Scalar[pl.INDEX]):\n    for i in pl.range(0, n, 0):\n        m = i\n"
    with pytest.warns(UserWarning, match=r"step of pl.range\(\) is 0, so the loop never runs.*:3:14"):
        pl.parse(code)


# -- operators -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "message", "remedy"),
    [
        ("y = pl.row_max(t)", "Tile inputs require tmp_tile", "pl.create_tile(shape, dtype=dtype)"),
        ("y = pl.row_max(t)", "Tile inputs require tmp_tile", "pl.row_max(tile, tmp)"),
        ("y = pl.xor(t, t)", r"require an explicit scratch tile \(tmp\)", "pl.xor(lhs, rhs, tmp)"),
        ("y = pl.add(t, a)", "cannot mix Tensor and Tile", "pl.load(tensor, offsets, shape)"),
    ],
)
def test_operators_say_how_to_get_the_operands_they_want(body, message, remedy):
    error = error_of(f"t = pl.load(a, [0, 0], [64, 64])\n{body}")
    assert type(error) is InvalidOperationError
    assert re.search(message, error.message)
    assert remedy in error.message


@pytest.mark.parametrize(
    ("call", "signature"),
    [
        ("pl.add(a, a, axis=1)", "pl.add(lhs, rhs)"),
        ("pl.add(a)", "pl.add(lhs, rhs)"),
        ("pl.store(a, [0, 0], a)", "pl.store(tile, offsets, output_tensor, shapes=None, *, atomic=None_)"),
    ],
)
def test_wrong_arguments_show_the_signature(call, signature):
    error = error_of(f"y = {call}")
    assert type(error) is InvalidOperationError
    assert error.note == signature


def test_every_operator_has_a_signature_to_show():
    for name in OPERATORS:
        found = getattr(pl, name)
        if callable(found):
            inspect.signature(found)


# -- Python that the DSL does not have -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "remedy"),
    [
        ("y = f'{a}'", "pl.static_print"),
        ("y = lambda v: v", "@pl.inline"),
        ("y = a if True else a", "if statement"),
        ("y = [a for i in range(3)]", "pl.unroll"),
        ("y = {'a': a}", "one name per value"),
        ("y = pl.exp(z := a)", "statement of its own"),
        ("y = pl.add(*[a, a])", "Write the arguments out"),
        ("a += a", "a = a + a"),
        ("def g(v):\n    return v", "@pl.inline"),
        ("try:\n    pass\nexcept Exception:\n    pass", "pl.static_assert"),
        ("import math", "Import outside"),
        ("assert a", "pl.static_assert"),
        ("del a", "Leave it out"),
        ("y = a @ a", "pl.matmul(a, b)"),
        ("print(a)", "pl.static_print(...)"),
        ("y = np.exp(a)", "Write pl.exp(a)"),
        ("y = a.exp()", "Write pl.exp(a)"),
        ("y = a[0:2].add(1.0)", "Write pl.add(a[0:2], 1.0)"),
        ("y = a.max()", "pl.row_max(x) or pl.col_max(x)"),
        ("y = np.sum(a, axis=1)", "pl.row_sum(x) or pl.col_sum(x)"),
        ("y = k(a)", "self.k(...)"),
        ("y = self.k", "self.k(...)"),
        ("y = pl.cast(a, np.float16)", "Write pl.FP16"),
        ("y = pl.cast(a, torch.bfloat16)", "Write pl.BF16"),
        ("y = pl.cast(a, np.uint8)", "Write pl.UINT8"),
        ("y = pl.FP32", "A dtype is no value"),
    ],
)
def test_unsupported_python_comes_with_what_to_write_instead(body, remedy):
    error = error_of(body)
    assert type(error) is UnsupportedFeatureError
    assert remedy in error.hint


@pytest.mark.parametrize(
    ("body", "remedy"),
    [
        (
            "t = pl.create_tile([8, 8], dtype=pl.FP32, target_memory=pl.Mem.L1)",
            "Valid values: Acc, Bias",
        ),
        ("t = pl.cast(a, pl.FLOAT16)", "Did you mean 'pl.FP16'?"),
        ("t = pl.load(a, [0, 0], [64, 64])\nu = t[70:80, :]", "The tile has 64 elements on this axis"),
    ],
)
def test_wrong_members_and_windows_show_what_there_is(body, remedy):
    assert remedy in error_of(body).hint


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        ("pl.sum(a)", "pl.row_sum(x) or pl.col_sum(x)"),
        ("pl.tensor.mean(a)", "pl.row_sum"),
        ("pl.where(a, a, a)", "pl.sel(mask, a, b, tmp)"),
        ("pl.dot(a, a)", "pl.matmul(a, b)"),
        ("pl.zeros([8, 8])", "pl.full(shape, dtype=pl.FP32, value=0.0)"),
        ("pl.clip(a, 0, 1)", "pl.minimum(pl.maximum(x, low), high)"),
        ("pl.softmax(a)", "pl.row_expand_div"),
        ("pl.addd(a, a)", "Did you mean 'pl.add'?"),
        ("pl.load(a, 0, 64)", "offsets and shapes: write a list with one entry per dimension, as in [0, 0]"),
        ("pl.exp(1.0)", "For scalar values use Python operators"),
    ],
)
def test_operations_of_array_libraries_and_wrong_lists_show_what_to_write(call, remedy):
    error = error_of(f"y = {call}")
    assert type(error) is InvalidOperationError
    assert remedy in error.hint


@pytest.mark.parametrize(
    "name", ["sigmoid", "silu", "tanh", "mean", "clip", "zeros", "empty", "dot", "equal", "square", "mod"]
)
def test_what_to_write_for_a_name_of_array_libraries_is_accepted(name):
    advice = instead_of_foreign(name).removeprefix("Write ")
    call = re.split(" for | with ", advice)[0]
    values = {
        "a, b": "a, a",
        "x, x": "a, a",
        "(x": "(a",
        "shape": "[64, 64]",
        "low": "0.0",
        "high": "1.0",
        "/ n": "/ 64",
    }
    for placeholder, value in {**values, "...": "2"}.items():
        call = call.replace(placeholder, value)
    pl.parse(f"@pl.function\ndef f(a: {TENSOR}):\n    y = {call}\n    return y\n")


@pytest.mark.parametrize(
    ("body", "note"),
    [
        ("y = a[-16:, :]", "'a' has the extents [64, 64]; a slice must lie inside. Negative indices"),
        ("out[56:70] = a[0:14]", "'out' has the extents [64, 64]"),
        ("t = pl.load(a, [0, 0], [32, 64])\ny = t[-4:]", "'t' has the extents [32, 64]"),
        ("y = a + 1.0", "as in pl.add(a, 1.0)"),
        ("y = 2.0 * a", "as in pl.mul(a, 2.0)"),
        ("y = -a", "as in pl.neg(a)"),
    ],
)
def test_windows_and_operators_of_tensors_carry_a_note_of_what_to_write(body, note):
    error = error_of(body)
    assert type(error) is ParserSyntaxError
    assert error.hint == "Check your function definition for errors"
    assert note in error.note


@pytest.mark.parametrize("body", ["out[...] = a", "y = a[..., 0]"])
def test_ellipsis_as_index_is_to_be_written_as_whole_dimensions(body):
    assert "as in x[:]" in error_of(body).hint


def test_ellipsis_as_body_is_to_be_written_as_pass():
    assert "pass" in error_of("...").hint


def test_async_methods_are_refused():
    with pytest.raises(UnsupportedFeatureError, match="AsyncFunctionDef"):

        @pl.program
        class P:
            @pl.function
            def helper(self, x: pl.Tensor[[4], pl.FP32]):
                return x

            async def plain(self):
                pass

            @pl.function
            async def main(self):
                pass


@pytest.mark.parametrize("decorator", [pl.function, pl.inline])
def test_async_functions_are_refused_where_they_are_decorated(decorator):
    with pytest.raises(UnsupportedFeatureError, match="AsyncFunctionDef") as caught:

        @decorator
        async def main(x: pl.Tensor[[4], pl.FP32]):
            return x

    assert caught.value.source_lines[caught.value.span["line"] - 1].strip() == "@decorator"


def test_program_decorates_classes_only():
    with pytest.raises(TypeError, match="decorates classes, got function"):

        @pl.program
        def f(x: pl.Tensor[[4], pl.FP32]):
            return x


def test_wrong_argument_count_shows_the_call():
    body = "y = self.k(a)"
    code = (
        "@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.InCore)\n"
        f"    def k(self, a: {TENSOR}, out: pl.Out[{TENSOR}]):\n        return out\n"
        f"    @pl.function\n    def main(self, a: {TENSOR}):\n        {body}\n"
    )
    with pytest.raises(ParserTypeError, match=r"expects 2 argument\(s\), got 1") as caught:
        pl.parse(code)
    assert caught.value.hint == "Call it as self.k(a, out)"


# -- uncaught errors -----------------------------------------------------------------------------------------


def test_uncaught_verification_errors_show_no_frames_of_the_compiler(tmp_path: Path):
    path = tmp_path / "late.py"
    path.write_text(
        textwrap.dedent(
            f"""
            import pypto.language as pl
            from pypto import passes
            from pypto.passes.manager import OptimizationStrategy, PassManager

            @pl.program
            class P:
                @pl.function(type=pl.FunctionType.InCore)
                def k(self, a: {TENSOR}, out: pl.Out[{TENSOR}]) -> {TENSOR}:
                    for i in pl.range(4):
                        if i > 2:
                            y = pl.load(a, [0, 0], [64, 64])
                    out = pl.store(y, [0, 0], out)
                    return out

            PassManager.get_strategy(OptimizationStrategy.Default).run_passes(P)
            """
        )
    )
    ran = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 1
    assert "Variable 'y' used outside its defining scope" in ran.stderr
    assert "Assign it before the `if` or loop" in ran.stderr
    assert "Traceback" not in ran.stderr
