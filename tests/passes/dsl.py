"""Short DSL programs for tests of passes, and the comparison of what a pass makes of them.

`program` takes the methods of a program class as text. Decorators are spelled by function type (`@incore`),
and `T(32, 64)` stands for `pl.Tensor[[32, 64], pl.FP32]`, `I` for an INDEX scalar, `B` for a BOOL scalar.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable

import pypto.language as pl
from pypto import ir, passes

_TYPES = {
    "opaque": "Opaque",
    "orch": "Orchestration",
    "incore": "InCore",
    "graph": "Graph",
    "group": "Group",
    "spmd": "Spmd",
    "aic": "AIC",
    "aiv": "AIV",
}
_DECORATOR = re.compile(r"^([ \t]*)@(\w+)(?:\((.*)\))?\s*$", re.MULTILINE)
_TENSOR = re.compile(r"\bT\(([^()]*)\)")
_SCALAR = re.compile(r"(: |-> |tuple\[|, )(I|B)(?=[,)\]:\s])")
_SCALARS = {"I": "pl.Scalar[pl.INDEX]", "B": "pl.Scalar[pl.BOOL]"}

Step = Callable[[], passes.Pass]


def program(methods: str, header: str = "") -> ir.Program:
    """Parse a program class with the given methods; `header` holds definitions before it."""
    text = _DECORATOR.sub(_decorator, textwrap.dedent(methods).strip("\n"))
    text = _SCALAR.sub(lambda match: match.group(1) + _SCALARS[match.group(2)], text)
    text = _TENSOR.sub(r"pl.Tensor[[\1], pl.FP32]", text)
    body = textwrap.indent(text, "    ")
    header = textwrap.dedent(header)
    return pl.parse_program(f"import pypto.language as pl\n{header}\n\n@pl.program\nclass P:\n{body}\n")


def _decorator(match: re.Match[str]) -> str:
    indent, name, options = match.groups()
    if name not in _TYPES:
        return match.group(0)
    more = f", {options}" if options else ""
    return f"{indent}@pl.function(type=pl.FunctionType.{_TYPES[name]}{more})"


def run(source: ir.Program, *steps: Step) -> ir.Program:
    """Bring `source` to SSA form and apply the passes."""
    result = passes.convert_to_ssa()(source)
    for step in steps:
        result = step()(result)
    return result


def assert_same(actual: ir.Program, expected: ir.Program) -> None:
    """Compare a result with an expectation in the DSL, which may reassign variables."""
    ir.assert_structural_equal(actual, passes.convert_to_ssa()(expected), enable_auto_mapping=True)


def assert_round_trips(result: ir.Program) -> None:
    """The printed text of `result` parses back to an equal program."""
    ir.assert_structural_equal(result, pl.parse_program(result.as_python(format=False)))


def assert_ssa(result: ir.Program) -> None:
    """Every variable has one definition, and every use comes after it."""
    properties = passes.IRPropertySet()
    properties.insert(passes.IRProperty.SSAForm)
    properties.insert(passes.IRProperty.UseAfterDef)
    passes.verify_properties(properties, result, "a test")


def function(result: ir.Program, name: str) -> ir.Function:
    found = result.get_function(name)
    assert found is not None, f"no function '{name}' among {sorted(result.functions_)}"
    return found


def statements(owner: ir.Function | ir.Stmt) -> list[ir.Stmt]:
    """The top-level statements of a function or body."""
    return list(ir.flatten_to_stmts(owner.body if isinstance(owner, ir.Function) else owner))
