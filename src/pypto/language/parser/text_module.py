"""The module level of program text: what stands around the definitions, read without executing it.

A text may import the language, name constants and symbols, and define decorated functions and classes. Each
statement is interpreted by a function below; expressions go through `TextEvaluator`. Everything else is an
error that names the construct and its line."""

from __future__ import annotations

import ast
import builtins
import importlib
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from pypto import ir
from pypto.language import decorators
from pypto.language.inline_function import InlineFunction
from pypto.language.parser.arithmetic import BINARY
from pypto.language.parser.closure import BUG_CLASSES, SAFE_BUILTINS
from pypto.language.parser.diagnostics import ParserError, ParserSyntaxError, span_to_dict
from pypto.language.parser.entry import parse_class_definition, parse_function_definition
from pypto.language.parser.function_attrs import external_source_path, normalise_decorator_attrs
from pypto.language.parser.function_definitions import FunctionOptions, ordinary_parameters
from pypto.language.parser.program_definitions import MethodValues
from pypto.language.parser.source import SourceText
from pypto.language.parser.text_evaluation import Refused, TextClosure, TextEvaluator, member, python_error
from pypto.language.typing import DynVar

_IMPORTABLE = ("pypto", "pypto.language", "pypto.language.distributed", "pypto.ir", "math")
_HINT = (
    "Program text is parsed and never executed: it holds imports of pypto.language, constants, pl.dynamic() "
    "symbols and decorated definitions. Import the file as a Python module to run everything else"
)
_FUNCTION_KEYWORDS = ("type", "level", "role", "attrs", "auto_scope", "strict_ssa", "external_source")


def _may_be_symbol(name: str) -> bool:
    return not (hasattr(builtins, name) or (name.startswith("__") and name.endswith("__")))


class TextModule:
    """The names of one text while its statements are read from top to bottom."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.names: dict[str, Any] = {
            "pl": importlib.import_module("pypto.language"),
            "pld": importlib.import_module("pypto.language.distributed"),
            "__name__": "__pypto_parsed__",
            "__file__": source.filename,
        }
        self.postponed_annotations = False

    def read(self) -> list[ir.Function | ir.Program]:
        """Read all statements; returns the functions and programs that the names stand for."""
        self._statements(self.source.tree.body)
        found = {id(v): v for v in self.names.values() if isinstance(v, (ir.Function, ir.Program))}
        return list(found.values())

    def _statements(self, body: list[ast.stmt]) -> None:
        for node in body:
            handler = _STATEMENTS.get(type(node))
            if handler is None:
                raise self._unsupported(node, f"a statement of kind {type(node).__name__}")
            self._guarded(node, partial(handler, self, node))

    # -- names and values ------------------------------------------------------------------------------------

    def lookup(self, name: str) -> Any:
        """The value of a name; an unknown one becomes a symbolic dimension."""
        if name in self.names:
            return self.names[name]
        if name in SAFE_BUILTINS:
            return SAFE_BUILTINS[name]
        if hasattr(builtins, name):
            raise Refused(f"the builtin '{name}'")
        if not _may_be_symbol(name):
            raise NameError(f"name '{name}' is not defined")
        symbol = self.names[name] = DynVar(name)
        return symbol

    def value(self, node: ast.expr) -> Any:
        """The value of an expression at module level.

        Raises:
            ParserSyntaxError: it cannot be evaluated; the message says what Python says, or what is refused.
        """
        return self._guarded(node, lambda: TextEvaluator(self.lookup).value(node))

    def _guarded(self, node: ast.stmt | ast.expr, work: Callable[[], Any]) -> Any:
        """What `work` returns; an error of Python in it is reported at the line of `node`."""
        try:
            return work()
        except (ParserError, *BUG_CLASSES):
            raise
        except Refused as refusal:
            raise self._unsupported(node, str(refusal)) from None
        except Exception as error:
            raise python_error(error, self.source, node.lineno) from error

    def _unsupported(self, node: ast.AST, what: str) -> ParserSyntaxError:
        line = getattr(node, "lineno", 0)
        return ParserSyntaxError(
            f"Program text is parsed and never executed: it cannot hold {what} (line {line})",
            span=self.source.head_span(node),
            hint=_HINT,
        )

    def _closure(self) -> TextClosure:
        return TextClosure(self.names, postponed_annotations=self.postponed_annotations)

    # -- statements ------------------------------------------------------------------------------------------

    def _pass(self, node: ast.stmt) -> None:
        """Nothing."""

    def _expression(self, node: ast.Expr) -> None:
        self.value(node.value)

    def _assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self._bind(target, value)

    def _annotated_assign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._bind(node.target, self.value(node.value))

    def _augmented_assign(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name) or type(node.op) not in BINARY:
            raise self._unsupported(node, f"an assignment to {ast.unparse(node.target)}")
        read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        self._bind(node.target, self.value(ast.copy_location(ast.BinOp(read, node.op, node.value), node)))

    def _bind(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = value
            return
        if not isinstance(target, (ast.Tuple, ast.List)):
            raise self._unsupported(target, f"an assignment to {ast.unparse(target)}")
        if not isinstance(value, (list, tuple, str)) or len(value) != len(target.elts):
            error = ValueError(f"cannot unpack the value into {len(target.elts)} names")
            raise python_error(error, self.source, target.lineno)
        for element, item in zip(target.elts, value, strict=True):
            self._bind(element, item)

    def _if(self, node: ast.If) -> None:
        holds = self._guarded(node.test, lambda: bool(TextEvaluator(self.lookup).value(node.test)))
        self._statements(node.body if holds else node.orelse)

    # -- imports ---------------------------------------------------------------------------------------------

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            module = self._module(node, alias.name)
            if alias.asname is not None:
                self.names[alias.asname] = module
            else:
                root = alias.name.split(".")[0]
                self.names[root] = importlib.import_module(root)

    def _import_from(self, node: ast.ImportFrom) -> None:
        if node.module == "__future__":
            self.postponed_annotations |= any(alias.name == "annotations" for alias in node.names)
            return
        module = self._module(node, "." * node.level + (node.module or ""))
        for alias in node.names:
            if alias.name == "*":
                raise self._unsupported(node, f"the import of all names of {module.__name__}")
            self.names[alias.asname or alias.name] = self._imported(node, module, alias.name)

    def _module(self, node: ast.stmt, name: str) -> ModuleType:
        if name not in _IMPORTABLE:
            raise self._unsupported(node, f"the import of '{name}'")
        return importlib.import_module(name)

    def _imported(self, node: ast.stmt, module: ModuleType, name: str) -> Any:
        try:
            return member(module, name)
        except Refused as refusal:
            raise self._unsupported(node, str(refusal)) from None
        except AttributeError:
            error = ImportError(f"cannot import name '{name}' from '{module.__name__}'")
            raise python_error(error, self.source, node.lineno) from None

    # -- definitions -----------------------------------------------------------------------------------------

    def _function(self, node: ast.FunctionDef) -> None:
        decorator, given = self._decorator(node, "function")
        if decorator is decorators.inline:
            self._inline(node)
            return
        if decorator is not decorators.function:
            raise self._unsupported(node, f"the decorator of '{node.name}'")
        options = self._function_options(given)
        self._evaluate_signature(node)
        self.names[node.name] = parse_function_definition(self.source, node, self._closure(), options)

    def _class(self, node: ast.ClassDef) -> None:
        decorator, given = self._decorator(node, "class")
        if decorator is not decorators.program:
            raise self._unsupported(node, f"the decorator of '{node.name}'")
        if node.bases or node.keywords:
            raise self._unsupported(node, f"base classes of the program '{node.name}'")
        strict_ssa = False
        for name, value in given.items():
            if name != "strict_ssa":
                raise self._unknown_keyword(value, "program", name)
            strict_ssa = bool(self.value(value))
        values = {child.name: self._method_values(child) for child in self._methods(node)}
        self.names[node.name] = parse_class_definition(
            self.source, node, values, self._closure(), strict_ssa=strict_ssa
        )

    def _decorator(self, node: ast.FunctionDef | ast.ClassDef, kind: str) -> tuple[Any, dict[str, ast.expr]]:
        """What decorates a definition, and its keywords."""
        if not node.decorator_list:
            raise self._unsupported(node, f"the undecorated {kind} '{node.name}'")
        if len(node.decorator_list) > 1:
            raise self._unsupported(node, f"the {kind} '{node.name}' with more than one decorator")
        decorator = node.decorator_list[0]
        if not isinstance(decorator, ast.Call):
            return self.value(decorator), {}
        given: dict[str, ast.expr] = {}
        for keyword in decorator.keywords:
            if keyword.arg is None:
                raise self._unsupported(decorator, "`**kwargs` in a decorator")
            given[keyword.arg] = keyword.value
        if decorator.args:
            raise self._unsupported(decorator, "positional arguments of a decorator")
        return self.value(decorator.func), given

    def _unknown_keyword(self, node: ast.expr, owner: str, name: str) -> ParserSyntaxError:
        error = TypeError(f"{owner}() got an unexpected keyword argument '{name}'")
        return python_error(error, self.source, node.lineno)

    def _function_options(self, given: dict[str, ast.expr]) -> FunctionOptions:
        values: dict[str, Any] = {}
        for name, node in given.items():
            if name not in _FUNCTION_KEYWORDS:
                raise self._unknown_keyword(node, "function", name)
            if name != "attrs":
                values[name] = self.value(node)
        return FunctionOptions(
            values.get("type", ir.FunctionType.Opaque),
            values.get("level"),
            values.get("role"),
            self._attrs(given.get("attrs")),
            values.get("auto_scope", True),
            values.get("strict_ssa", False),
            self._external_source(values.get("external_source"), given.get("external_source")),
        )

    def _attrs(self, node: ast.expr | None) -> dict[str, Any]:
        if node is None:
            return {}
        value = self.value(node)
        try:
            return normalise_decorator_attrs(value)
        except ParserError as error:
            error.span = span_to_dict(self.source.span(node))
            raise

    def _external_source(self, path: Any, node: ast.expr | None) -> str | None:
        if path is None or node is None:
            return None
        try:
            return external_source_path(path, self.source.filename)
        except (TypeError, ValueError) as error:
            raise python_error(error, self.source, node.lineno) from error

    def _evaluate_signature(self, node: ast.FunctionDef) -> None:
        """Unknown names in the annotations of a module-level function become symbols."""
        if self.postponed_annotations:
            return
        arguments = node.args
        annotations = [a.annotation for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        for annotation in (*annotations, node.returns):
            for inner in ast.walk(annotation) if annotation is not None else ():
                if isinstance(inner, ast.Name) and _may_be_symbol(inner.id):
                    self.lookup(inner.id)

    def _inline(self, node: ast.FunctionDef) -> None:
        self.names[node.name] = InlineFunction(
            name=node.name,
            func_def=node,
            param_names=[parameter.arg for parameter in ordinary_parameters(self.source, node)],
            source_file=self.source.filename,
            source_lines=self.source.lines,
            closure_vars=dict(self.names),
        )

    # -- members of a program --------------------------------------------------------------------------------

    def _methods(self, node: ast.ClassDef) -> list[ast.FunctionDef]:
        """The functions of a class. Its other members have no meaning and may only be constants."""
        methods: list[ast.FunctionDef] = []
        for child in node.body:
            if isinstance(child, ast.FunctionDef):
                methods.append(child)
            elif isinstance(child, (ast.Assign, ast.AnnAssign, ast.Expr)):
                if child.value is not None:
                    self.value(child.value)
            elif not isinstance(child, ast.Pass):
                raise self._unsupported(child, f"a {type(child).__name__} statement in a program class")
        return methods

    def _method_values(self, node: ast.FunctionDef) -> MethodValues:
        """The values in a method's decorator that the parser does not read from the source itself."""
        if not node.decorator_list:
            return MethodValues()
        decorator, given = self._decorator(node, "method")
        if decorator is not decorators.function:
            raise self._unsupported(node, f"the decorator of '{node.name}'")
        for name, value in given.items():
            if name not in _FUNCTION_KEYWORDS:
                raise self._unknown_keyword(value, "function", name)
        path = given.get("external_source")
        return MethodValues(
            self._attrs(given.get("attrs")),
            None if path is None else self._external_source(self.value(path), path),
        )


_STATEMENTS: dict[type[ast.stmt], Callable[[TextModule, Any], None]] = {
    ast.Pass: TextModule._pass,
    ast.Expr: TextModule._expression,
    ast.Assign: TextModule._assign,
    ast.AnnAssign: TextModule._annotated_assign,
    ast.AugAssign: TextModule._augmented_assign,
    ast.If: TextModule._if,
    ast.Import: TextModule._import,
    ast.ImportFrom: TextModule._import_from,
    ast.FunctionDef: TextModule._function,
    ast.ClassDef: TextModule._class,
}
