"""The text front end: `pl.parse`, `pl.loads` and their program-only forms.

Module-level statements of the text run as Python (they import names, set constants, declare symbols); bodies
of decorated functions are only ever parsed."""

from __future__ import annotations

import ast
import builtins
import linecache
import os
import re
import sys
import threading
import traceback
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pypto import ir
from pypto.language.parser.closure import BUG_CLASSES
from pypto.language.parser.diagnostics import ParserError, ParserSyntaxError
from pypto.core.garbage import paused_gc
from pypto.language.parser.slots import last_name
from pypto.language.parser.source import SourceMap, SourceText, forget_source, load_source, remember_source
from pypto.language.typing import DynVar

_MODULE_NAME = "__pypto_parsed__"
_one_at_a_time = threading.RLock()  # texts of one file name would disturb each other
_COMPILER_CHECKED = re.compile(r"\b(?:break|continue|await|nonlocal|global|async)\b")
_CHECKED_KEYWORDS: dict[str, type[Any]] = {"type": ir.FunctionType, "level": ir.Level, "role": ir.Role}


class _Namespace(dict[str, Any]):
    """Module globals in which an unknown name becomes a symbolic dimension of that name."""

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name):
            return getattr(builtins, name)
        if name.startswith("__") and name.endswith("__"):
            raise KeyError(name)
        symbol = self[name] = DynVar(name)
        return symbol


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
    with _one_at_a_time, paused_gc():
        return _parse(code, filename, source_map)


def _parse(code: str, filename: str, source_map: SourceMap | None) -> ir.Function | ir.Program:
    try:
        tree = ast.parse(code, filename)
        compiled = _compile_module_level(tree, code, filename)
    except SyntaxError as error:
        raise _compile_error(error, filename) from error
    source = SourceText(filename, code, tree, source_map, is_text=True)
    with _registered(source):
        try:
            _check_decorators(source)
            namespace = _execute(source, compiled)
        except ParserError as error:
            if error.source_lines is None:
                error.source_lines = source.lines
            raise
    return _only_definition(namespace)


def loads(filepath: str | os.PathLike[str]) -> ir.Function | ir.Program:
    """Parse a file that defines exactly one function or program; see `parse`."""
    path = os.fspath(filepath)
    with open(path, encoding="utf-8") as file:
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


def _compile_error(error: SyntaxError, filename: str) -> SyntaxError:
    place = (error.filename, error.lineno, error.offset, error.text)
    return SyntaxError(f"Failed to compile code from {filename}: {error}", place)


# -- decorators checked before anything runs -----------------------------------------------------------------


def _check_decorators(source: SourceText) -> None:
    """Report unknown members in `@pl.function(type=..., level=..., role=...)` where they stand."""
    if not any(f"{name}=" in source.text for name in _CHECKED_KEYWORDS):
        return
    for node in _definitions(source.tree.body):
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and last_name(decorator.func) == "function":
                _check_decorator(source, decorator)


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


def _check_decorator(source: SourceText, decorator: ast.Call) -> None:
    for keyword in decorator.keywords:
        kind = _CHECKED_KEYWORDS.get(keyword.arg or "")
        value = keyword.value
        if kind is None or not isinstance(value, ast.Attribute):
            continue
        if last_name(value.value) != kind.__name__:
            raise ParserSyntaxError(f"Expected pl.{kind.__name__}.<name>", span=source.span(value))
        if value.attr not in kind.__members__:
            start = (value.end_col_offset or 0) - len(value.attr.encode())
            raise ParserSyntaxError(
                f"Unknown {kind.__name__} value: {value.attr}",
                span=source.point(value.end_lineno or value.lineno, start),
                hint=f"Valid values: {', '.join(sorted(kind.__members__))}",
            )


# -- running the module level --------------------------------------------------------------------------------


def _compile_module_level(tree: ast.Module, code: str, filename: str) -> types.CodeType:
    """Compile the text. Bodies of DSL functions are left out: they are parsed and never run.

    A few mistakes in bodies only show when Python compiles them (a `break` outside a loop); a text that
    mentions such words is compiled as a whole."""
    functions: list[ast.FunctionDef] = []
    if not _COMPILER_CHECKED.search(code):
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        members = [*tree.body, *(member for node in classes for member in node.body)]
        functions = [
            member for member in members if isinstance(member, ast.FunctionDef) and _is_parsed(member)
        ]
    bodies = [function.body for function in functions]
    for function in functions:
        function.body = [ast.copy_location(ast.Pass(), function.body[0])]
    try:
        return compile(tree, filename, "exec", dont_inherit=True)
    finally:
        for function, body in zip(functions, bodies, strict=True):
            function.body = body


def _execute(source: SourceText, compiled: types.CodeType) -> _Namespace:
    import pypto.language as pl
    import pypto.language.distributed as pld

    module = types.ModuleType(_MODULE_NAME)
    namespace = _Namespace(pl=pl, pld=pld, __name__=_MODULE_NAME, __file__=source.filename)
    previous = sys.modules.get(_MODULE_NAME)
    sys.modules[_MODULE_NAME] = module
    try:
        exec(compiled, namespace)
    except (ParserError, *BUG_CLASSES):
        raise
    except Exception as error:
        raise _execution_error(source, error) from error
    finally:
        if previous is None:
            sys.modules.pop(_MODULE_NAME, None)
        else:
            sys.modules[_MODULE_NAME] = previous
    return namespace


def _execution_error(source: SourceText, error: Exception) -> Exception:
    lines = [
        line
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == source.filename
    ]
    if not lines:
        return RuntimeError(f"Error executing code from {source.filename}: {error}")
    return ParserSyntaxError(
        f"{type(error).__name__}: {error}", span=source.point(lines[-1], 0), source_lines=source.lines
    )


@contextmanager
def _registered(source: SourceText) -> Iterator[None]:
    """Let decorators find the text under its file name, for the time of the parse."""
    name = source.filename
    cached = linecache.cache.get(name)
    known = load_source(name) if cached is not None else None
    linecache.cache[name] = (len(source.text), None, source.text.splitlines(keepends=True), name)
    remember_source(source)
    try:
        yield
    finally:
        forget_source(name)
        if cached is None:
            linecache.cache.pop(name, None)
        else:
            linecache.cache[name] = cached
        if known is not None:
            remember_source(known)


def _only_definition(namespace: _Namespace) -> ir.Function | ir.Program:
    found = {id(value): value for value in namespace.values() if isinstance(value, (ir.Function, ir.Program))}
    if not found:
        raise ValueError("No @pl.function or @pl.program found in the code")
    if len(found) > 1:
        names = ", ".join(value.name for value in found.values())
        raise ValueError(f"Multiple functions/programs found in the code: {names}")
    return next(iter(found.values()))
