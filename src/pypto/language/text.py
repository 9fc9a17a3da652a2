"""The text front end: `pl.parse`, `pl.loads` and their program-only forms.

Text is parsed and never executed. Its module level is interpreted in a restricted way (see `text_module`),
bodies of decorated functions go through the parser like those of Python functions."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from typing import Any

from pypto import ir
from pypto.core.garbage import paused_gc
from pypto.language.parser.diagnostics import ParserSyntaxError
from pypto.language.parser.entry import source_lines_attached
from pypto.language.parser.slots import dotted_name, last_name
from pypto.language.parser.source import SourceMap, SourceText
from pypto.language.parser.text_module import TextModule

_COMPILER_CHECKED = ("break", "continue", "await", "nonlocal", "global ", "async ")
_CHECKED_KEYWORDS: dict[str, type[Any]] = {"type": ir.FunctionType, "level": ir.Level, "role": ir.Role}


def parse(
    code: str, filename: str = "<string>", source_map: SourceMap | None = None
) -> ir.Function | ir.Program:
    """Parse text that defines exactly one function or program.

    Args:
        code: the text; `pl` and `pld` are predefined in it.
        filename: the name that spans and errors carry.
        source_map: original place (file, line, column) of generated lines.

    Raises:
        SyntaxError: the text is not Python.
        ParserError: the definition is not a valid DSL function or program.
        ValueError: the text defines none or several.
    """
    with paused_gc():
        source = _checked_source(code, filename, source_map)
        with source_lines_attached(source.lines, of=source.filename):
            _check_decorators(source)
            return _only_definition(TextModule(source).read())


def loads(filepath: str | os.PathLike[str]) -> ir.Function | ir.Program:
    """Parse a file that defines exactly one function or program; see `parse`."""
    path = os.fspath(filepath)
    with open(path, encoding="utf-8-sig") as file:
        return parse(file.read(), filename=path)


def parse_program(code: str, filename: str = "<string>") -> ir.Program:
    """Parse text that defines exactly one program; see `parse`."""
    return _require_program(parse(code, filename))


def loads_program(filepath: str | os.PathLike[str]) -> ir.Program:
    """Parse a file that defines exactly one program; see `parse`."""
    return _require_program(loads(filepath))


def _require_program(found: ir.Function | ir.Program) -> ir.Program:
    if isinstance(found, ir.Program):
        return found
    raise ValueError("Expected @pl.program but found @pl.function")


# -- syntax --------------------------------------------------------------------------------------------------


def _checked_source(code: str, filename: str, source_map: SourceMap | None) -> SourceText:
    """The text with its syntax tree.

    Raises:
        SyntaxError: Python would refuse to compile the text.
    """
    if "\r" in code:
        code = code.replace("\r\n", "\n").replace("\r", "\n")
    try:
        tree = ast.parse(code, filename)
        _check_as_python(tree, code, filename)
    except SyntaxError as error:
        place = (error.filename, error.lineno, error.offset, error.text)
        raise SyntaxError(f"Failed to compile code from {filename}: {error.msg}", place) from error
    except (ValueError, RecursionError, MemoryError) as error:  # null characters; nesting beyond all reason
        raise SyntaxError(
            f"Failed to compile code from {filename}: {error or 'nested too deeply'}"
        ) from error
    return SourceText(filename, code, tree, source_map, is_text=True)


def _check_as_python(tree: ast.Module, code: str, filename: str) -> None:
    """Let Python's compiler look for mistakes that a syntax tree does not show; nothing is executed.

    Bodies of DSL functions are left out, as the parser reads them itself. A few mistakes in bodies only show
    here (a `break` outside a loop); a text that mentions such words is checked as a whole."""
    functions: list[ast.FunctionDef] = []
    if not any(word in code for word in _COMPILER_CHECKED):
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        members = [*tree.body, *(member for node in classes for member in node.body)]
        functions = [
            member for member in members if isinstance(member, ast.FunctionDef) and _is_parsed(member)
        ]
    bodies = [function.body for function in functions]
    for function in functions:
        function.body = [ast.copy_location(ast.Pass(), function.body[0])]
    try:
        compile(tree, filename, "exec", dont_inherit=True)
    finally:
        for function, body in zip(functions, bodies, strict=True):
            function.body = body


# -- decorators checked before anything runs -----------------------------------------------------------------


def _check_decorators(source: SourceText) -> None:
    """Report unknown members in `@pl.function(type=..., level=..., role=...)` where they stand."""
    if not any(f"{name}=" in source.text for name in _CHECKED_KEYWORDS):
        return
    imported = _imported_names(source.tree)
    for node in _definitions(source.tree.body):
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and last_name(decorator.func) == "function":
                _check_decorator(source, decorator, imported)


def _imported_names(tree: ast.Module) -> set[str]:
    """The names that the imports of a text bind."""
    imports = (node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom)))
    return {alias.asname or alias.name.split(".")[0] for node in imports for alias in node.names}


def _definitions(body: list[ast.stmt]) -> Iterator[ast.FunctionDef]:
    """Function definitions at module level and in classes and plain functions of it."""
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield node
        inner = getattr(node, "body", None)
        if isinstance(inner, list) and not (isinstance(node, ast.FunctionDef) and _is_parsed(node)):
            yield from _definitions(inner)


def _is_parsed(node: ast.FunctionDef) -> bool:
    """Whether the body of a definition is DSL code, which Python never runs."""
    targets = (d.func if isinstance(d, ast.Call) else d for d in node.decorator_list)
    return any(last_name(target) in ("function", "inline") for target in targets)


def _check_decorator(source: SourceText, decorator: ast.Call, imported: set[str]) -> None:
    for keyword in decorator.keywords:
        kind = _CHECKED_KEYWORDS.get(keyword.arg or "")
        value = keyword.value
        if kind is None or not isinstance(value, ast.Attribute):
            continue
        owner = dotted_name(value.value) or ""
        root, _, member = owner.rpartition(".")
        if member != kind.__name__ or not (root in ("", "pl") or root.split(".")[0] in imported):
            raise ParserSyntaxError(
                f"Expected pl.{kind.__name__}.<name>, got '{ast.unparse(value)}'",
                span=source.span(value),
                hint=_members_of(kind),
            )
        if value.attr not in kind.__members__:
            start = (value.end_col_offset or 0) - len(value.attr.encode())
            raise ParserSyntaxError(
                f"Unknown {kind.__name__} value: {value.attr}",
                span=source.point(value.end_lineno or value.lineno, start),
                hint=_members_of(kind),
            )


def _members_of(kind: type[Any]) -> str:
    return f"Valid values: {', '.join(sorted(kind.__members__))}"


def _only_definition(found: list[ir.Function | ir.Program]) -> ir.Function | ir.Program:
    if not found:
        raise ValueError("No @pl.function or @pl.program found in the code")
    if len(found) > 1:
        names = ", ".join(value.name for value in found)
        raise ValueError(f"Multiple functions/programs found in the code: {names}")
    return found[0]
