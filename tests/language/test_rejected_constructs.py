"""The table of constructs that the DSL rejects, with the error class of each.

Every row is tried twice: in text given to `pl.parse`, and in a Python file with decorators."""

from __future__ import annotations

import importlib.util
import re
import textwrap
from pathlib import Path

import pytest

import pypto.language as pl
from pypto.language.parser import (
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    SSAViolationError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)

TENSOR = "pl.Tensor[[64, 32], pl.FP32]"
HEADER = "import pypto.language as pl\nimport pypto.language.distributed as pld\nNAME = 'text'\n"
METHODS = f'''
    @pl.function(type=pl.FunctionType.InCore)
    def kern(self, a: {TENSOR}, o: pl.Out[{TENSOR}]) -> {TENSOR}:
        return o

    @pl.function(DECORATOR)
    def main(self, x: {TENSOR}, y: {TENSOR}, t: pl.Tile[[64, 32], pl.FP32], n: pl.Scalar[pl.INDEX],
             k: pl.Scalar[pl.INT32], h: pl.Scalar[pl.FP32], arr: pl.Array[4, pl.INT32], p: PARAMETER,
             out: pl.Out[{TENSOR}]):
'''  # fmt: skip


def source(
    body: str, decorator: str = "type=pl.FunctionType.Orchestration", parameter: str = "pl.Scalar[pl.INT8]"
) -> str:
    """A program whose method `main` has this body."""
    methods = METHODS.replace("DECORATOR", decorator).replace("PARAMETER", parameter)
    strict = "(strict_ssa=True)" if "strict" in decorator else ""
    methods = methods.replace("strict", "")
    return f"{HEADER}@pl.program{strict}\nclass P:{methods}{textwrap.indent(body, ' ' * 8)}\n"


def as_module(code: str, directory: Path) -> object:
    """Import the code as a Python file."""
    path = directory / "rejected.py"
    path.write_text(code)
    spec = importlib.util.spec_from_file_location("rejected", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ROWS: dict[str, list[tuple[str, type[ParserError], str]]] = {
    "statements outside the DSL": [
        ("n += 1", UnsupportedFeatureError, "Unsupported statement type: AugAssign"),
        ("try:\n    pass\nexcept ValueError:\n    pass", UnsupportedFeatureError, "statement type: Try"),
        ("assert n", UnsupportedFeatureError, "Unsupported statement type: Assert"),
        ("import os", UnsupportedFeatureError, "Unsupported statement type: Import"),
        ("def g():\n    pass", UnsupportedFeatureError, "Unsupported statement type: FunctionDef"),
        ("class C:\n    pass", UnsupportedFeatureError, "Unsupported statement type: ClassDef"),
        ("del n", UnsupportedFeatureError, "Unsupported statement type: Delete"),
        ("match n:\n    case 1:\n        pass", UnsupportedFeatureError, "Unsupported statement type: Match"),
        ("raise ValueError", UnsupportedFeatureError, "Unsupported statement type: Raise"),
    ],
    "assignment targets": [
        ("a = b = x", ParserSyntaxError, "Unsupported assignment"),
        ("x.a = x", ParserSyntaxError, "Unsupported assignment"),
        ("*a, b = x", ParserSyntaxError, "Unsupported assignment"),
        ("[a, b] = x", ParserSyntaxError, "Unsupported assignment"),
    ],
    "annotation without value": [("a: pl.Scalar[pl.INT32]", UnsupportedFeatureError, "with no value")],
    "values that are no DSL values": [
        ("z = f'{n}'", UnsupportedFeatureError, "Unsupported expression type: JoinedStr"),
        ("z = lambda: 1", UnsupportedFeatureError, "Unsupported expression type: Lambda"),
        ("z = 1 if n else 2", UnsupportedFeatureError, "Unsupported expression type: IfExp"),
        ("z = [i for i in n]", UnsupportedFeatureError, "Unsupported expression type: ListComp"),
        ("z = {1: 2}", UnsupportedFeatureError, "Unsupported expression type: Dict"),
        ("z = {1}", UnsupportedFeatureError, "Unsupported expression type: Set"),
    ],
    "string literal as value": [("z = 's'", ParserTypeError, "Unsupported constant type")],
    "chained comparison": [("z = 1 < n < 3", ParserSyntaxError, "Only simple comparisons supported")],
    "identity and membership": [
        ("z = n is None", UnsupportedFeatureError, "Unsupported comparison"),
        ("z = n in x", UnsupportedFeatureError, "Unsupported comparison"),
    ],
    "operators that only scalars have": [
        ("z = x ** 2", UnsupportedFeatureError, "Unsupported binary operator: Pow"),
        ("z = x & y", UnsupportedFeatureError, "Unsupported binary operator: BitAnd"),
        ("z = x | y", UnsupportedFeatureError, "Unsupported binary operator: BitOr"),
        ("z = x ^ y", UnsupportedFeatureError, "Unsupported binary operator: BitXor"),
        ("z = n @ n", UnsupportedFeatureError, "Unsupported binary operator: MatMult"),
    ],
    "operator on tensor or tile": [
        ("z = x + y", ParserSyntaxError, "must be ScalarExpr or Var with ScalarType"),
        ("z = t * 2", ParserSyntaxError, "must be ScalarExpr or Var with ScalarType"),
        ("z = -t", ParserSyntaxError, "must be ScalarExpr or Var with ScalarType"),
        ("z = not t", ParserSyntaxError, "Expression must be ScalarExpr or Var with ScalarType"),
        ("z = t > t", ParserSyntaxError, "must be ScalarExpr or Var with ScalarType"),
    ],
    "mixed int and float": [("z = n + h", ParserSyntaxError, "requires same numeric dtype category")],
    "arithmetic on bool": [("z = (n > 1) + 1", ParserSyntaxError, "does not accept bool dtype")],
    "for over anything else": [
        ("for i in range(4):\n    pass", ParserSyntaxError, r"For loop must use pl\.range\(\)"),
        ("for i in x:\n    pass", ParserSyntaxError, r"For loop must use pl\.range\(\)"),
    ],
    "condition that is no bool": [
        ("if n:\n    pass", ParserTypeError, "if condition must be a Bool-typed scalar expression, got"),
        (
            "while n:\n    pass",
            ParserTypeError,
            "while condition must be a Bool-typed scalar expression, got",
        ),
    ],
    "break and continue": [
        ("for i in pl.spmd(4):\n    break", InvalidOperationError, "'break' outside loop"),
        ("for i in pl.parallel(4):\n    break", InvalidOperationError, "not supported in parallel loops"),
        ("for i in pl.unroll(4):\n    continue", InvalidOperationError, "not supported in unrolled loops"),
        (
            "for i in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n    break",
            InvalidOperationError,
            r"not supported inside a 'for \.\.\. in pl\.split_aiv\(\.\.\.\)' body",
        ),
    ],
    "bare yield in a carrying loop": [
        (
            "for i, (a,) in pl.range(4, init_values=(x,)):\n    pl.yield_(a)",
            ParserSyntaxError,
            r"requires an assignment-form pl\.yield_\(\.\.\.\)",
        )
    ],
    "unknown operation": [
        ("z = pl.foo(x)", InvalidOperationError, r"Unknown operation 'pl\.foo'"),
        ("z = pl.tile.constant(1)", InvalidOperationError, r"Unknown pl\.tile operation: constant"),
        ("z = pld.foo(x)", InvalidOperationError, r"Unknown distributed operation 'pld\.foo'"),
    ],
    "operation on wrong arguments": [
        ("z = pl.add(x, t)", InvalidOperationError, "cannot mix Tensor and Tile arguments"),
        ("z = pl.tile.load(x)", InvalidOperationError, r"pl\.tile operation 'load': "),
        ("z = pl.exp(n)", InvalidOperationError, "expected Tensor or Tile"),
    ],
    "unknown function call": [
        ("z = foo(x)", UnsupportedFeatureError, "Unsupported function call"),
        ("z = np.zeros(3)", UnsupportedFeatureError, "Unsupported operation call"),
        ("z = x.foo()", UnsupportedFeatureError, "Unsupported operation call"),
    ],
    "undefined name or method": [
        ("z = zz", UndefinedVariableError, "Undefined variable 'zz'"),
        ("z = self.nope(x)", UndefinedVariableError, "Function 'nope' not defined in program"),
    ],
    "keyword or count of a function call": [
        ("z = self.kern(x, out, foo=1)", ParserTypeError, "does not accept keyword argument 'foo'"),
        ("z = self.kern(x)", ParserTypeError, r"expects 2 argument\(s\), got 1"),
    ],
    "captured value without IR form": [
        ("z = NAME", ParserTypeError, "Unsupported closure variable type: str")
    ],
    "standalone attribute": [
        ("z = x.shape", UnsupportedFeatureError, "Standalone attribute access not supported"),
        ("z = x.shape[0]", UnsupportedFeatureError, "Standalone attribute access not supported"),
    ],
    "slices and elements out of reach": [
        ("z = x[0:8:2]", UnsupportedFeatureError, "Slice step is not supported"),
        ("z = t[n:]", UnsupportedFeatureError, "Dynamic lower bounds are not supported"),
        ("z = t[:, 10:5]", UnsupportedFeatureError, "must produce a positive static extent"),
        ("out[0, 0] = n", UnsupportedFeatureError, r"Element-write 'out\[0, 0\] = scalar' is not supported"),
    ],
    "indices and shapes of subscripts": [
        ("z = x[0, 1, 2]", ParserTypeError, "Tensor subscript has 3 indices but the tensor is 2D"),
        ("out[0, 1, 2] = y", ParserTypeError, "Tensor subscript-write has 3 indices but the tensor is 2D"),
        ("out[0] = y", ParserTypeError, "source must be 1D to match the rank-reduced tensor window, got 2D"),
        (
            "out[0:8] = y",
            ParserTypeError,
            "Subscript-write shape mismatch on source axis 0: window expects 8",
        ),
        ("n[0] = y", ParserTypeError, "requires a Tensor, Tile, or Array target"),
        ("z = n[0]", ParserTypeError, "Subscript requires Tuple, Tensor, Tile, or Array"),
        ("z = arr[0, 1]", ParserTypeError, "requires a single index"),
    ],
    "another type for a name": [("x = n", ParserTypeError, "Cannot reassign 'x' with a different type")],
    "annotation that contradicts the value": [
        ("z: pl.Tile[[64, 32], pl.FP32] = x", ParserTypeError, "is Tile but expression has type Tensor"),
    ],
    "unknown context manager": [
        ("with pl.incore():\n    pass", UnsupportedFeatureError, "Unsupported context manager"),
        ("with open('f'):\n    pass", UnsupportedFeatureError, "Unsupported context manager"),
    ],
    "scope arguments": [
        ("with pl.at():\n    pass", ParserSyntaxError, "requires a level argument"),
        ("with pl.cluster(1):\n    pass", ParserSyntaxError, "does not accept positional arguments"),
        ("with pl.at(level=pl.Level.HOST, dumps=[n]):\n    pass", ParserTypeError, "is not a tensor"),
    ],
    "form of a submit": [
        ("pl.submit(self.kern, x, out)", ParserSyntaxError, "must be unpacked as a 2-tuple"),
        (
            "a, b, c = pl.submit(self.kern, x, out)",
            ParserSyntaxError,
            "must be unpacked as exactly 2 targets",
        ),
    ],
    "content of a submit": [
        ("a, b = pl.submit(self.kern, x, out, out)", ParserTypeError, r"expects 1\.\.2 argument\(s\), got 3"),
        ("a, b = pl.submit(self.kern, x, deps=[x])", ParserTypeError, "entries must be a TaskId variable"),
        ("a, b = pl.submit(self.kern, x, dumps=[y])", ParserTypeError, "is not an argument of this submit"),
    ],
}
CASES = [pytest.param(*row, id=f"{name}: {row[0]}") for name, rows in ROWS.items() for row in rows]


@pytest.mark.parametrize(("body", "error", "message"), CASES)
def test_rejected_construct(body: str, error: type[ParserError], message: str, tmp_path: Path) -> None:
    code = source(body)
    with pytest.raises(error, match=message) as in_text:
        pl.parse(code)
    with pytest.raises(error, match=message) as in_file:
        as_module(code, tmp_path)
    assert type(in_text.value) is type(in_file.value) and in_text.value.hint == in_file.value.hint
    assert in_text.value.hint or in_text.value.note
    for caught in (in_text, in_file):
        assert caught.value.source_lines is not None and caught.value.span is not None
        assert 1 <= caught.value.span["line"] <= len(caught.value.source_lines)
        assert caught.value.hint or caught.value.note
    assert in_text.value.span["line"] == in_file.value.span["line"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        ("z = self.kern(x, out, deps=[])", r"pl\.submit"),
        ("z = self.kern(x, out, core_num=4)", r"pl\.spmd_submit"),
        ("z = self.kern(x, out, sync_start=True)", r"pl\.spmd_submit"),
        ("z = self.kern(x, out, dumps=[x])", r"pl\.dump_tag"),
        ("z = pl.exp(n)", r"s1 \+ s2"),
        ("z: pl.Tile[[64, 32], pl.FP32] = x", r"^Change annotation to: pl\.Tensor\[\[64, 32\], pl\.FP32\]$"),
        ("for i in pl.range(4, chunk=2):\n    z = x", "init_values, attrs"),
        ("for i in pl.pipeline(4, stage=2, chunk=2):\n    z = x", "init_values, stage, attrs"),
        ("z = x + y", "Check your function definition for errors"),
        ("z = self.nope(x)", "Methods of this program: kern, main"),
    ],
)
def test_hint_of_a_rejected_construct_names_the_remedy(body: str, hint: str) -> None:
    with pytest.raises(ParserError) as caught:
        pl.parse(source(body))
    assert caught.value.hint is not None and re.search(hint, caught.value.hint)


def test_rejected_construct_static_assert_failure_is_the_base_class() -> None:
    with pytest.raises(ParserError, match="static_assert failed: too small") as caught:
        pl.parse(source("pl.static_assert(1 > 2, 'too small')"))
    assert type(caught.value) is ParserError and caught.value.hint is not None
    assert "1 > 2" in caught.value.hint


def test_rejected_construct_redefinition_and_subscript_write_in_strict_ssa() -> None:
    with pytest.raises(SSAViolationError, match="Variable 'z' is already defined") as caught:
        pl.parse(source("z = x\nz = y", decorator="strict"))
    assert caught.value.previous_span is not None and caught.value.note is not None
    with pytest.raises(UnsupportedFeatureError, match="only supported before SSA conversion"):
        pl.parse(source("out[0:64] = x", decorator="strict"))


def test_rejected_construct_bad_parameter_annotation() -> None:
    with pytest.raises(ParserTypeError, match="Unsupported type annotation"):
        pl.parse(source("return x", parameter="int"))
    with pytest.raises(ParserTypeError, match="Parameter 'p' missing type annotation"):
        pl.parse(source("return x").replace("p: pl.Scalar[pl.INT8]", "p"))
