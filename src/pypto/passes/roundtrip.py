"""The check that printed text means the program it was printed from.

The parser belongs to the language layer, which passes must not import; it is looked up by name when the check
runs.
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

from pypto import ir
from pypto.ir.printer import python_print

if TYPE_CHECKING:
    from pypto.passes.base import Pass

_PARSER = "pypto.language.parser.text_parser"
_UNPRINTABLE = "does not support iter_args"


def check_roundtrip(pass_obj: Pass, program: ir.Program) -> None:
    """Raise RuntimeError unless the program's text parses back to an equal program."""
    name = pass_obj.get_name()
    try:
        text = python_print(program, format=False)
    except Exception as problem:
        if _UNPRINTABLE in _first_line(problem):
            warnings.warn(f"[RoundtripInstrument] IR not printable after '{name}': {problem}", stacklevel=2)
            return
        raise RuntimeError(
            f"[RoundtripInstrument] Printer failed after pass '{name}': {problem}"
        ) from problem
    try:
        parsed: Any = importlib.import_module(_PARSER).parse(text, filename="<roundtrip>")
    except Exception as problem:
        raise RuntimeError(f"[RoundtripInstrument] Parse failed after pass '{name}': {problem}") from problem
    if not isinstance(parsed, ir.Program):
        raise RuntimeError(
            f"[RoundtripInstrument] Parse after pass '{name}' gave a {type(parsed).__name__}, not a Program"
        )
    try:
        ir.assert_structural_equal(program, parsed)
    except Exception as problem:
        raise RuntimeError(
            f"[RoundtripInstrument] Structural equality failed after pass '{name}': {problem}\n"
            f"--- Printed IR ---\n{text}"
        ) from problem


def _first_line(problem: Exception) -> str:
    return str(problem).partition("\n")[0]
