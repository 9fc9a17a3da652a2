"""Short ways to write test programs as text."""

from __future__ import annotations

import textwrap

import pypto.language as pl
from pypto import ir


def function(
    params: str, body: str, *, prelude: str = "", decorator: str = "", returns: str = ""
) -> ir.Function:
    """Parse `@pl.function(decorator) def f(params) -> returns: body`."""
    arrow = f" -> {returns}" if returns else ""
    code = f"{prelude}\n@pl.function({decorator})\ndef f({params}){arrow}:\n{_indented(body, 1)}\n"
    parsed = pl.parse(code)
    assert isinstance(parsed, ir.Function)
    return parsed


def statements(params: str, body: str, **options: str) -> list[ir.Stmt]:
    """The statements of such a function."""
    return stmts_of(function(params, body, **options).body)


def stmts_of(body: ir.Stmt) -> list[ir.Stmt]:
    """The statements of a body."""
    return body.stmts if isinstance(body, ir.SeqStmts) else [body]


def program(
    main: str, *, params: str, kernels: str = "", prelude: str = "", decorator: str = ""
) -> ir.Program:
    """Parse a program of some kernels and a method `main`."""
    head = decorator or "type=pl.FunctionType.Orchestration"
    code = (
        f"{prelude}\n@pl.program\nclass P:\n{_indented(kernels, 1)}\n"
        f"    @pl.function({head})\n    def main(self, {params}):\n{_indented(main, 2)}\n"
    )
    return pl.parse_program(code)


def main_of(main: str, **options: str) -> list[ir.Stmt]:
    """The statements of `main` in such a program."""
    found = program(main, **options).get_function("main")
    assert found is not None
    return stmts_of(found.body)


def _indented(text: str, levels: int) -> str:
    return textwrap.indent(textwrap.dedent(text).strip("\n"), "    " * levels)
