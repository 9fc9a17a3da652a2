"""Source text: finding it, parsing it once per file, and turning syntax-tree places into spans.

A definition is looked up in the syntax tree of its whole file, so lines and columns need no adjustment and
all functions of a file share one `ast.parse`. Trees are kept for the few most recent files."""

from __future__ import annotations

import ast
import linecache
import sys
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pypto import ir
from pypto.language.parser.diagnostics import ParserSyntaxError

SourceMap = Mapping[int, tuple[str, int, int]]

_KEPT_FILES = 8
_Definition = TypeVar("_Definition", ast.FunctionDef, ast.ClassDef)
_BLOCKS = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.If, ast.For, ast.While, ast.With, ast.Try,
    ast.ExceptHandler,
)  # fmt: skip


class SourceText:
    """One file (or cell, or string) of source: its lines and its syntax tree."""

    __slots__ = (
        "_ascii",
        "_definitions",
        "comment_lines",
        "filename",
        "is_text",
        "lines",
        "source_map",
        "text",
        "tree",
    )

    def __init__(
        self,
        filename: str,
        text: str,
        tree: ast.Module | None = None,
        source_map: SourceMap | None = None,
        is_text: bool = False,
    ) -> None:
        self.filename = filename
        self.text = text
        self.tree = ast.parse(text, filename) if tree is None else tree
        self.lines = text.split("\n")
        self.source_map = source_map
        self.is_text = is_text  # given to pl.parse, so possibly printed by the compiler
        self._ascii = text.isascii()
        self._definitions: dict[str, list[Any]] | None = None
        self.comment_lines = [n for n, line in enumerate(self.lines, 1) if "#" in line] if "#" in text else []

    def span(self, node: Any) -> ir.Span:
        """The range of `node`, with columns in characters from 1."""
        line, end_line = node.lineno, node.end_lineno
        if self.source_map is not None and line in self.source_map:
            return ir.Span(*self.source_map[line])
        if self._ascii:
            return ir.Span(self.filename, line, node.col_offset + 1, end_line, node.end_col_offset + 1)
        return ir.Span(
            self.filename,
            line,
            self.column(line, node.col_offset),
            end_line,
            self.column(end_line, node.end_col_offset),
        )

    def head_span(self, node: Any) -> ir.Span:
        """The point where a compound statement or definition begins."""
        return self.point(node.lineno, node.col_offset)

    def point(self, line: int, byte_offset: int) -> ir.Span:
        """The single place at a byte offset of a line."""
        if self.source_map is not None and line in self.source_map:
            return ir.Span(*self.source_map[line])
        column = self.column(line, byte_offset)
        return ir.Span(self.filename, line, column, line, column)

    def column(self, line: int, byte_offset: int) -> int:
        """The character column (from 1) of a byte offset as the syntax tree counts them."""
        if self._ascii:
            return byte_offset + 1
        return len(self.lines[line - 1].encode()[:byte_offset].decode(errors="replace")) + 1

    def segment(self, node: Any) -> str:
        """The text of `node`."""
        first, last = node.lineno - 1, node.end_lineno - 1
        begin, end = node.col_offset, node.end_col_offset
        if not self._ascii:
            begin, end = self.column(first + 1, begin) - 1, self.column(last + 1, end) - 1
        if first == last:
            line: str = self.lines[first][begin:end]
            return line
        inner = self.lines[first + 1 : last]
        return "\n".join([self.lines[first][begin:], *inner, self.lines[last][:end]])

    def definitions(self, kind: type[_Definition], name: str) -> list[_Definition]:
        """All function or class definitions of this name, wherever they stand."""
        if self._definitions is None:
            self._definitions = _index_definitions(self.tree)
        return [node for node in self._definitions.get(name, ()) if isinstance(node, kind)]


def _index_definitions(tree: ast.Module) -> dict[str, list[Any]]:
    index: dict[str, list[Any]] = {}
    pending: list[ast.AST] = [tree]
    while pending:
        for child in ast.iter_child_nodes(pending.pop()):
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                index.setdefault(child.name, []).append(child)
            if isinstance(child, _BLOCKS):
                pending.append(child)
    return index


_recent: OrderedDict[str, SourceText] = OrderedDict()


def remember_source(source: SourceText) -> None:
    """Make `source` the known content of its file name."""
    _recent[source.filename] = source
    _recent.move_to_end(source.filename)
    while len(_recent) > _KEPT_FILES:
        _recent.popitem(last=False)


def load_source(filename: str, module_globals: dict[str, Any] | None = None) -> SourceText | None:
    """The source known under `filename`, or None when there is none or it does not parse."""
    known = _recent.get(filename)
    if known is not None and known.is_text:
        return known
    linecache.checkcache(filename)
    text = "".join(linecache.getlines(filename, module_globals))
    if not text and filename in ("<string>", "-c"):
        text = _command_line_source()
    if known is not None and (not text or known.text == text):
        return known
    if not text:
        return None
    try:
        source = SourceText(filename, text)
    except SyntaxError:
        return None
    remember_source(source)
    return source


def _command_line_source() -> str:
    """The text after `python -c`."""
    arguments = getattr(sys, "orig_argv", [])
    for position, argument in enumerate(arguments[:-1]):
        if argument == "-c":
            return str(arguments[position + 1])
    return ""


def find_function(
    filename: str, name: str, line: int, namespace: dict[str, Any]
) -> tuple[SourceText, ast.FunctionDef]:
    """The definition of function `name` nearest to `line` of a file.

    Raises:
        ParserSyntaxError: there is no source text, or no such definition in it.
    """
    source = load_source(filename, namespace)
    if source is not None:
        found = _nearest(source, ast.FunctionDef, name, [line])
        if found is not None:
            return source, found
    raise _no_source("function", name)


def find_class(
    filename: str, name: str, lines: Iterable[int], namespace: dict[str, Any]
) -> tuple[SourceText, ast.ClassDef]:
    """The definition of class `name` that contains (or lies nearest to) the given lines.

    Raises:
        ParserSyntaxError: there is no source text, or no such definition in it.
    """
    source = load_source(filename, namespace)
    if source is not None:
        found = _nearest(source, ast.ClassDef, name, list(lines))
        if found is not None:
            return source, found
    raise _no_source("class", name)


def _nearest(source: SourceText, kind: type[_Definition], name: str, lines: list[int]) -> _Definition | None:
    candidates = source.definitions(kind, name)
    return min(candidates, key=lambda node: _distance(node, lines)) if candidates else None


def _distance(node: ast.FunctionDef | ast.ClassDef, lines: list[int]) -> tuple[int, int]:
    """How far the nearest of `lines` is from the definition, 0 inside it; then how far from its first line,
    since a definition may hold another of its name."""
    first = first_line(node)
    if not lines:
        return (0, 0)
    last = node.end_lineno or node.lineno
    return min((max(first - line, line - last, 0), abs(first - line)) for line in lines)


def first_line(node: ast.FunctionDef | ast.ClassDef) -> int:
    """The line where a definition starts, decorators included."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _no_source(kind: str, name: str) -> ParserSyntaxError:
    return ParserSyntaxError(
        f"Cannot retrieve source code for {kind} '{name}'",
        hint="Definitions without a source file can be given as text: use pl.parse() or pl.parse_program()",
    )
