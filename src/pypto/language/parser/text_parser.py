"""Public import path of the text front end in `pypto.language.text`."""

from __future__ import annotations

from pypto.language.text import loads, loads_program, parse, parse_program

__all__ = ["loads", "loads_program", "parse", "parse_program"]
