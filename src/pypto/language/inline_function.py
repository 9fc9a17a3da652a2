"""What `@pl.inline` captures: a body that is parsed anew at every place where it is called."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any


@dataclass
class InlineFunction:
    """A helper that the parser expands at its call sites. Places in `func_def` are those of the file
    itself."""

    name: str
    func_def: ast.FunctionDef
    param_names: list[str]
    source_file: str
    source_lines: list[str]
    line_offset: int = 0
    col_offset: int = 0
    closure_vars: dict[str, Any] = field(default_factory=dict)
