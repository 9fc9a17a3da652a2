"""Text given to `pl.parse` is parsed and never executed, whatever it says; and parsing it ends."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path

import pytest

import pypto.language as pl
from pypto import ir
from pypto.language.parser import ParserError, ParserSyntaxError, ParserTypeError

FUNCTION = "@pl.function\ndef f(x: pl.Tensor[[64], pl.FP32]):\n    return x\n"
METHOD = "\n    @pl.function\n    def f(self):\n        return\n"
EVIL = "__import__('os').system('touch {mark}')"


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """A file that exists as soon as a text got something executed."""
    return tmp_path / "executed"


PLACES = {
    "statement": "{evil}\n" + FUNCTION,
    "constant": "N = {evil}\n" + FUNCTION,
    "annotated constant": "N: {evil} = {evil}\n" + FUNCTION,
    "constant in a tuple": "N = (1, [2, {evil}])\n" + FUNCTION,
    "comprehension": "N = [{evil} for i in range(3)]\n" + FUNCTION,
    "comprehension filter": "N = [i for i in range(3) if {evil}]\n" + FUNCTION,
    "generator": "N = sum({evil} for i in range(3))\n" + FUNCTION,
    "f-string": 'N = f"{{{evil}}}"\n' + FUNCTION,
    "lambda": "N = (lambda: {evil})()\n" + FUNCTION,
    "walrus": "N = (M := {evil})\n" + FUNCTION,
    "condition": "if {evil}:\n    N = 1\n" + FUNCTION,
    "conditional value": "N = 1 if {evil} else 2\n" + FUNCTION,
    "name of a symbol": "M = pl.dynamic({evil})\n" + FUNCTION,
    "subscript": "N = [1][{evil}]\n" + FUNCTION,
    "parameter annotation": "@pl.function\ndef f(x: {evil}):\n    return x\n",
    "shape": "@pl.function\ndef f(x: pl.Tensor[[{evil}], pl.FP32]):\n    return x\n",
    "whole shape": "@pl.function\ndef f(x: pl.Tensor[{evil}, pl.FP32]):\n    return x\n",
    "dtype": "@pl.function\ndef f(x: pl.Tensor[[64], {evil}]):\n    return x\n",
    "layout": "@pl.function\ndef f(x: pl.Tensor[[64], pl.FP32, {evil}]):\n    return x\n",
    "array extent": "@pl.function\ndef f(x: pl.Array[{evil}, pl.INT32]):\n    return x\n",
    "return annotation": "@pl.function\ndef f(x: pl.Tensor[[64], pl.FP32]) -> {evil}:\n    return x\n",
    "annotation prefix": FUNCTION.replace("pl.Tensor", "({evil}).Tensor"),
    "annotation constructor": FUNCTION.replace("pl.Tensor[[64], pl.FP32]", "({evil}).Tensor([64], pl.FP32)"),
    "dtype prefix": FUNCTION.replace("pl.FP32", "({evil}).FP32"),
    "enum prefix": FUNCTION.replace(
        "    return", "    with pl.at(level=({evil}).Level.CORE_GROUP):\n        pass\n    return"
    ),
    "loop prefix": FUNCTION.replace(
        "    return", "    for i in ({evil}).range(4):\n        pass\n    return"
    ),
    "yield prefix": FUNCTION.replace("    return", "    y = ({evil}).yield_(x)\n    return"),
    "local annotation": FUNCTION.replace("    return", "    y: pl.Tensor[[{evil}], pl.FP32] = x\n    return"),
    "decorator": "@{evil}\n" + FUNCTION,
    "decorator argument": FUNCTION.replace("@pl.function", "@pl.function(attrs={evil})"),
    "decorator type": FUNCTION.replace("@pl.function", "@pl.function(type={evil})"),
    "external source": FUNCTION.replace("@pl.function", "@pl.function(external_source={evil})"),
    "class decorator": "@pl.program(strict_ssa={evil})\nclass P:" + METHOD,
    "base class": "@pl.program\nclass P({evil}):" + METHOD,
    "metaclass": "@pl.program\nclass P(metaclass={evil}):" + METHOD,
    "class body": "@pl.program\nclass P:\n    {evil}" + METHOD,
    "class constant": "@pl.program\nclass P:\n    N = {evil}" + METHOD,
    "method decorator": "@pl.program\nclass P:" + METHOD.replace("function", "function(attrs={evil})"),
    "body statement": FUNCTION.replace("    return", "    {evil}\n    return"),
    "operand": FUNCTION.replace("return x", "return pl.add(x, {evil})"),
    "keyword operand": FUNCTION.replace("return x", "return pl.cast(x, pl.FP16, mode={evil})"),
    "listed keyword": FUNCTION.replace("return x", "return pl.reshape(x, shape=[{evil}])"),
    "function attribute": FUNCTION.replace("    return", "    pl.func_attr({{'k': {evil}}})\n    return"),
    "static_assert": FUNCTION.replace("    return", "    pl.static_assert({evil} == 1)\n    return"),
    "static_print": FUNCTION.replace("    return", '    pl.static_print(f"{{{evil}}}")\n    return'),
    "loop attributes": FUNCTION.replace(
        "    return", "    for i in pl.range(4, attrs={{'k': {evil}}}):\n        pass\n    return"
    ),
    "stage": FUNCTION.replace(
        "    return", "    for i in pl.pipeline(4, stage={evil}):\n        pass\n    return"
    ),
    "deps": FUNCTION.replace(
        "    return", "    pl.system.task_dummy(deps=[None for i in range({evil})])\n    return"
    ),
    "name hint": FUNCTION.replace(
        "    return", "    with pl.at(level=pl.Level.CORE_GROUP, name_hint={evil}):\n        pass\n    return"
    ),
    "nested definition": FUNCTION.replace("    return", "    def g(a={evil}):\n        pass\n    return"),
    "undecorated function": "def g(a={evil}):\n    {evil}\n" + FUNCTION,
    "undecorated class": "class C:\n    {evil}\n" + FUNCTION,
    "other decorator": "@{evil}\ndef g():\n    pass\n" + FUNCTION,
    "assertion": "assert {evil}\n" + FUNCTION,
    "deletion": "N = 1\ndel N, ({evil})[0]\n" + FUNCTION,
    "loop": "for i in {evil}:\n    pass\n" + FUNCTION,
    "while": "while {evil}:\n    pass\n" + FUNCTION,
    "with": "with {evil}:\n    pass\n" + FUNCTION,
    "try": "try:\n    {evil}\nexcept ValueError:\n    pass\n" + FUNCTION,
    "attribute target": "pl.evil = {evil}\n" + FUNCTION,
    "string method": "N = ''.join({evil})\n" + FUNCTION,
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_code_in_text_is_refused_and_not_executed(place: str, mark: Path) -> None:
    with pytest.raises(ParserError):
        pl.parse(PLACES[place].format(evil=EVIL.format(mark=mark)))
    assert not mark.exists()


def test_default_values_are_not_evaluated(mark: Path) -> None:
    code = FUNCTION.replace("):", f" = {EVIL.format(mark=mark)}):")
    assert isinstance(pl.parse(code), ir.Function)
    assert not mark.exists()


def test_host_worker_bodies_are_kept_as_text_and_not_executed(mark: Path) -> None:
    head = (
        "@pl.program\nclass P:\n    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)\n    def f():\n"
    )
    program = pl.parse(f"{head}        {EVIL.format(mark=mark)}\n")
    assert isinstance(program, ir.Program) and "system" in program.functions_["f"].body.body
    assert not mark.exists()


def test_refusal_names_the_construct_and_the_line() -> None:
    with pytest.raises(ParserSyntaxError, match=r"a call of 'open' \(line 2\)") as caught:
        pl.parse(f"N = 1\nM = open('/etc/passwd')\n{FUNCTION}")
    assert caught.value.span is not None and caught.value.span["line"] == 2
    assert caught.value.source_lines is not None and "open" in caught.value.source_lines[1]
    assert caught.value.hint is not None and "never executed" in caught.value.hint
    with pytest.raises(ParserSyntaxError, match=r"the import of 'os' \(line 1\)"):
        pl.parse(f"import os\n{FUNCTION}")
    with pytest.raises(ParserSyntaxError, match=r"the import of 'subprocess'"):
        pl.parse(f"from subprocess import run\n{FUNCTION}")
    with pytest.raises(ParserSyntaxError, match=r"the import of '\.'"):
        pl.parse(f"from . import x\n{FUNCTION}")
    with pytest.raises(ParserSyntaxError, match="the undecorated function 'g'"):
        pl.parse(f"def g():\n    return 1\n{FUNCTION}")
    with pytest.raises(ParserSyntaxError, match="a statement of kind While"):
        pl.parse(f"while True:\n    pass\n{FUNCTION}")


@pytest.mark.parametrize(
    "expression",
    [
        "pl.__name__", "pl.parse.__globals__", "pl.parser.diagnostics", "pl.importlib", "pl._op_names",
        "().__class__.__base__.__subclasses__()", "pl.FP32.__class__", "pl.Level.mro()", "pl.Tensor.unwrap",
        "pl.tensor._ir", "'{0.__class__}'.format(1)", "'%s' % pl", "[].append", "type(1)", "eval('1')",
        "open",
        "pl.loads('/etc/passwd')", "pl.parse('')", "pl.function(1)", "print('x')", "getattr(pl, 'parse')",
        "globals()", "__builtins__", "breakpoint()", "{1, 2}", "*[1]", "[*range(3)]", "(yield)",
        "sum([[1], [2]], [])", "max([1], key=len)", "f'{1}'",
    ],
)  # fmt: skip
def test_expressions_outside_the_closed_list_are_refused(expression: str) -> None:
    with pytest.raises((ParserError, SyntaxError)):
        pl.parse(f"N = {expression}\n{FUNCTION}")
    with pytest.raises((ParserError, SyntaxError)):
        pl.parse(FUNCTION.replace("[64]", f"[{expression}]"))


@pytest.mark.parametrize(
    "expression",
    [
        "9**9**9", "2**(2**40)", "1 << 10**12", "(10**1000) * (10**1000)", "[0] * 10**12", "'a' * 10**12",
        "list(range(10**12))", "sum(range(10**18))", "max(range(10**12))", "[i for i in range(10**12)]",
        "[i for i in range(10**5) for j in range(10**5)]", "1.5 in range(10**12)", "round(5, -10**9)",
        "len(range(10**30))", "(" * 150 + "1" + ")" * 150 + "**9" * 60, "-" * 3000 + "1", "not " * 3000 + "1",
        "[" * 150 + "]" * 150, "1" + "+1" * 100_000, "9" * 5000, "0x" + "f" * 5000, "'%0999999999d' % 1",
        "[[0] * 1000 for i in range(1000)]", "tuple('x' * 10**9)",
    ],
)  # fmt: skip
def test_expensive_expressions_do_not_hang(expression: str) -> None:
    start = time.perf_counter()
    for code in (f"N = {expression}\n{FUNCTION}", FUNCTION.replace("[64]", f"[{expression}]"),
                 FUNCTION.replace("return x", f"y = {expression}\n    return x"),
                 FUNCTION.replace("return x", f"pl.static_assert({expression})\n    return x")):  # fmt: skip
        with contextlib.suppress(ParserError, SyntaxError):
            pl.parse(code)
    assert time.perf_counter() - start < 5


def test_values_that_double_with_every_line_are_refused() -> None:
    lines = ["A0 = [1, 1]", *(f"A{n + 1} = [A{n}, A{n}]" for n in range(60))]
    with pytest.raises(ParserSyntaxError, match="too many elements"):
        pl.parse("\n".join(lines) + "\n" + FUNCTION)
    lines = ["A0 = 'xx'", *(f"A{n + 1} = A{n} + A{n}" for n in range(60))]
    with pytest.raises(ParserSyntaxError, match="too long"):
        pl.parse("\n".join(lines) + "\n" + FUNCTION)
    lines = ["A0 = 99", *(f"A{n + 1} = A{n} * A{n}" for n in range(60))]
    with pytest.raises(ParserSyntaxError, match="too large"):
        pl.parse("\n".join(lines) + "\n" + FUNCTION)


@pytest.mark.parametrize(
    "code",
    ["(" * 100_000, "-" * 1_000_000 + "1", "x = " + "[" * 100_000, "a\0b", "if 1:\n" * 200, "\ud800"],
)
def test_malformed_text_is_a_syntax_error(code: str) -> None:
    with pytest.raises((SyntaxError, ParserError)):
        pl.parse(code)


def test_deeply_nested_statements_end_in_an_error_or_a_program() -> None:
    body = "".join("    " * depth + "if True:\n" for depth in range(1, 90)) + "    " * 90 + "pass\n"
    assert isinstance(pl.parse(f"@pl.function\ndef f(x: pl.Tensor[[64], pl.FP32]):\n{body}"), ir.Function)
    nested = "pl.exp(" * 150 + "x" + ")" * 150
    assert isinstance(pl.parse(FUNCTION.replace("return x", f"return {nested}")), ir.Function)


def test_parsing_leaves_no_trace_in_the_interpreter() -> None:
    before = set(sys.modules)
    pl.parse(FUNCTION)
    assert set(sys.modules) == before


_EVENTS: list[str] = []
_WATCHED = ("exec", "import", "open", "os.", "subprocess.", "socket.", "ctypes.", "code.__new__", "marshal.")


def _watch(event: str, _arguments: object) -> None:
    if _WATCHING and event.startswith(_WATCHED):
        _EVENTS.append(event)


_WATCHING: list[bool] = []


def test_parsing_runs_no_code_object_and_opens_nothing() -> None:
    code = (
        "N = [4, 8][1] * 2\nM = pl.dynamic('M')\n@pl.inline\ndef g(a):\n    return pl.exp(a)\n"
        "@pl.function(attrs={})\ndef f(x: pl.Tensor[[M, N + 1], pl.FP32], y: pl.Array[N, pl.INT32]):\n"
        "    pl.static_assert(len([N, N]) == 2 and N > 3)\n"
        "    z: pl.Tensor[[M, N + 1], pl.FP32] = g(x)\n    w = pl.cast(z, target_type=pl.FP16, mode='rint')\n"
        "    pl.system.task_dummy(deps=[None for i in range(N) if i % 2])\n    return w\n"
    )
    pl.parse(code)  # whatever loads on first use has loaded now
    sys.addaudithook(_watch)
    _WATCHING.append(True)
    try:
        pl.parse(code)
    finally:
        _WATCHING.clear()
    assert not _EVENTS


# -- what text may hold --------------------------------------------------------------------------------------


def shape_of(code: str) -> list[object]:
    function = pl.parse(code)
    assert isinstance(function, ir.Function)
    return [d.value if isinstance(d, ir.ConstInt) else str(d) for d in function.params[0].type.shape]


@pytest.mark.parametrize(
    ("prelude", "expected"),
    [
        ("N = 4", 4),
        ("N: int = 2 * 3 + 1", 7),
        ("N = 4\nN *= 2", 8),
        ("A, (B, N) = 1, (2, 3)", 3),
        ("A = N = 5", 5),
        ("S = [1, 2, 3]\nN = S[1] + len(S[1:])", 4),
        ("C = {'n': 9}\nN = C['n']", 9),
        ("N = max(3, min(8, 5)) + abs(-1)", 6),
        ("N = 16 if 3 > 2 and not False else 1", 16),
        ("N = sum([i * 2 for i in range(5) if i % 2])", 8),
        ("N = pl.FP32.get_byte() * 2", 8),
        ("N = int(round(2.6)) + int(1 < 2 < 3)", 4),
        ("N = pl.Mem.Vec.value + pl.tile.MaskPattern.P1010", 3),
        ("import math\nN = int(math.pi)", 3),
        ("if __name__ == '__main__':\n    N = 1\nelse:\n    N = 2", 2),
        ("'docstring'\npass\nN = ~-8", 7),
        ("N = 3 if 2 in (1, 2) else 0", 3),
    ],
)
def test_constants_of_the_module_level(prelude: str, expected: int) -> None:
    assert shape_of(f"{prelude}\n{FUNCTION.replace('[64]', '[N]')}") == [expected]


@pytest.mark.parametrize(
    "prelude",
    [
        "import pypto.language as pl",
        "from pypto import language as pl",
        "from pypto.language import Tensor, FP32, function",
        "import pypto.language",
        "from pypto import DataType\nfrom pypto.ir import MemorySpace",
        "import pypto.language.distributed as pld",
        "from pypto.language import distributed as pld",
        "from __future__ import annotations",
    ],
)
def test_imports_of_the_language(prelude: str) -> None:
    assert shape_of(f"{prelude}\n{FUNCTION}") == [64]


def test_the_language_may_have_another_name_where_python_reads_it() -> None:
    assert shape_of("import pypto.language as lang\n" + FUNCTION.replace("pl.", "lang.")) == [64]
    assert shape_of("from pypto.language import function, Tensor, FP32\n" + FUNCTION.replace("pl.", "")) == [
        64
    ]


def test_declarations_in_text() -> None:
    code = (
        "M = pl.dynamic('M')\nT = pl.Tensor[[M, 4], pl.FP32]\nscratch = pl.MemRef()\nD = pl.FP16\n"
        "@pl.function\ndef f(a: T, b: pl.Tile[[16, 16], D, scratch, pl.Mem.Vec]):\n    return a\n"
    )
    function = pl.parse(code)
    assert isinstance(function, ir.Function)
    a, b = function.params
    assert str(a.type.shape[0]) == "M" and b.type.dtype == ir.DataType.FP16 and b.type.memref.is_pinned_


def test_missing_names_and_failing_constants_say_what_python_says() -> None:
    with pytest.raises(ParserSyntaxError, match="ZeroDivisionError") as caught:
        pl.parse(f"A = 1\nN = 1 // 0\n{FUNCTION}")
    assert caught.value.span is not None
    assert (caught.value.span["line"], caught.value.span["column"]) == (2, 1)
    with pytest.raises(ParserSyntaxError, match=r"AttributeError.*FP99"):
        pl.parse(f"D = pl.FP99\n{FUNCTION}")
    with pytest.raises(ParserSyntaxError, match=r"ImportError.*'nothing'"):
        pl.parse(f"from pypto.language import nothing\n{FUNCTION}")
    with pytest.raises(ParserSyntaxError, match=r"TypeError.*unexpected keyword argument 'kind'"):
        pl.parse(FUNCTION.replace("@pl.function", "@pl.function(kind=1)"))
    with pytest.raises(ParserSyntaxError, match=r"TypeError: A Scalar has no truth value"):
        pl.parse("@pl.program(strict_ssa=M)\nclass P:" + METHOD)
    with pytest.raises(ParserSyntaxError, match=r"TypeError: A Scalar has no truth value"):
        pl.parse(f"if M > 1:\n    N = 1\n{FUNCTION}")


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        ("pl.Tensor[[64]]", r"TypeError: Tensor subscript requires \[shape, dtype\]"),
        ("pl.Tensor[[64], pl.FP99]", "AttributeError: .*FP99"),
        ("pl.Tile[[16, 16], pl.FP32, pl.MemRef('m')]", "TypeError: .*memory space"),
    ],
)
def test_malformed_signature_annotations_say_what_python_says(annotation: str, message: str) -> None:
    with pytest.raises(ParserSyntaxError, match=message):
        pl.parse(f"@pl.function\ndef f(x: {annotation}):\n    return x\n")
    with pytest.raises(ParserTypeError):
        pl.parse(f"from __future__ import annotations\n@pl.function\ndef f(x: {annotation}):\n    return x\n")


def test_inline_helpers_in_text() -> None:
    code = (
        "@pl.inline\ndef twice(a):\n    return pl.add(a, a)\n"
        "@pl.function\ndef f(x: pl.Tensor[[64], pl.FP32]):\n    return twice(x)\n"
    )
    function = pl.parse(code)
    assert isinstance(function, ir.Function) and "tensor.add" in str(function)
