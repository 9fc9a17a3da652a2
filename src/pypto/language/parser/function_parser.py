"""The state of parsing one body, and the two dispatch tables that everything else plugs into.

Each kind of syntax node has one handler, a function `(parser, node)`, registered with `@expression(...)` or
`@statement(...)` in the module of its subject. The parser object holds what handlers share: names, the
statement list being filled, enclosing loops and scopes, comments."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from pypto import ir
from pypto.language.parser.closure import BUG_CLASSES, NOT_FOUND, Closure, value_to_ir
from pypto.language.parser.comments import Comments, docstring_lines
from pypto.language.parser.diagnostics import (
    ParserError,
    ParserSyntaxError,
    SSAViolationError,
    UndefinedVariableError,
    UnsupportedFeatureError,
    concise_error_message,
)
from pypto.language.parser.inner_blocks import assigned_in_inner_loops, filled_by_helpers
from pypto.language.parser.instead import instead_of_expression, instead_of_statement
from pypto.language.parser.names import Binding, Names
from pypto.language.parser.program_context import ProgramContext
from pypto.language.parser.source import SourceText
from pypto.language.typing import DynVar

if TYPE_CHECKING:
    from pypto.language.parser.specialised_body import SpecialisedBody

ExpressionHandler = Callable[["FunctionParser", Any], ir.Expr]
StatementHandler = Callable[["FunctionParser", Any], None]
_H = TypeVar("_H", bound=Callable[..., Any])

EXPRESSIONS: dict[type[ast.expr], ExpressionHandler] = {}
STATEMENTS: dict[type[ast.stmt], StatementHandler] = {}


def expression(*kinds: type[ast.expr]) -> Callable[[_H], _H]:
    """Register a handler for expression nodes."""

    def register(handler: _H) -> _H:
        for kind in kinds:
            EXPRESSIONS[kind] = handler
        return handler

    return register


def statement(*kinds: type[ast.stmt]) -> Callable[[_H], _H]:
    """Register a handler for statement nodes."""

    def register(handler: _H) -> _H:
        for kind in kinds:
            STATEMENTS[kind] = handler
        return handler

    return register


@dataclass(slots=True)
class Yields:
    """Targets and types of the assignment-form yields seen in a loop or branch."""

    names: list[str] = field(default_factory=list)
    types: dict[str, ir.Type] = field(default_factory=dict)

    def record(self, name: str, value_type: ir.Type) -> None:
        """Note one yield; the first type of a name counts."""
        if name not in self.types:
            self.names.append(name)
            self.types[name] = value_type


@dataclass(slots=True)
class Frame:
    """One enclosing construct: a loop, a branch, or a scope.

    `kind` is the spelling of the construct (`range`, `while`, `if`, `at`, `cluster`, ...).
    """

    kind: str
    yields: Yields | None = None  # loops and branches only
    carries_values: bool = False  # a loop with init_values
    incore: bool = False  # the scope is (or holds) a kernel body
    written_split: bool = False  # the kernel scope was written with a literal pl.split(...)
    split_mode: ir.SplitMode | None = None  # split_aiv only
    branches: list[dict[str, Binding]] = field(default_factory=list)  # of an if: the scopes of its blocks
    results: tuple[str, ...] = ()  # the names that yields of a loop or branch hand on


@dataclass(frozen=True, slots=True)
class CarryingBody:
    """The body of a loop with carried values: its names and its statements so far."""

    names: dict[str, Binding]
    statements: list[ir.Stmt]


DEFINITION_HINT = "Check your function definition for errors"
_PRINTED_FLOATS = ("inf", "nan")  # how the printer writes what has no literal
_NO_VARS: frozenset[ir.Var] = frozenset()
LOOP_KINDS = frozenset({"range", "parallel", "unroll", "pipeline", "while"})


class FunctionParser:
    """Parses one function body into IR statements."""

    def __init__(
        self,
        source: SourceText,
        closure: Closure,
        program: ProgramContext,
        *,
        function_name: str,
        func_type: ir.FunctionType = ir.FunctionType.Opaque,
        level: ir.Level | None = None,
        auto_scope: bool = True,
        strict_ssa: bool = False,
    ) -> None:
        self.source = source
        self.closure = closure
        self.program = program
        self.function_name = function_name
        self.reads_signature = True
        self.func_type = func_type
        self.level = level
        self.auto_scope = auto_scope
        self.strict_ssa = strict_ssa
        self.names = Names()
        self.statements: list[ir.Stmt] = []
        self.frames: list[Frame] = []
        self.comments: Comments | None = None
        self.pointers: dict[str, ir.Var] = {}
        self.allocations: dict[str, ir.Var] = {}
        self.declared_names: dict[int, str] = {}
        self.declared_objects: dict[str, object] = {}
        self.literal_annotation = True
        self.nested_tuples = False
        self.symbol_parameters: dict[str, ir.Var] = {}
        self.params: list[ir.Var] = []
        self.dump_tagged: dict[ir.Var, None] = {}
        self.producers: dict[ir.Var, tuple[str, ir.Var, int]] = {}
        self.task_id_versions: dict[ir.Var, int] = {}
        self.carrying_bodies: dict[ir.IterArg, CarryingBody] = {}
        self.buffer_metadata: dict[ir.Var, dict[str, Any]] = {}
        self.inline_return: ir.Expr | None = None
        self.inline_results: frozenset[ir.Var] = _NO_VARS  # what the current statement has from inline calls
        self.held: frozenset[ir.Var] = _NO_VARS  # what the statement around an inline call still reads
        self.inline_depth = 0
        self.specialised: SpecialisedBody | None = None

    # -- reading ---------------------------------------------------------------------------------------------

    def expr(self, node: ast.expr) -> ir.Expr:
        """The IR of an expression node."""
        handler = EXPRESSIONS.get(type(node))
        if handler is None:
            raise UnsupportedFeatureError(
                f"Unsupported expression type: {type(node).__name__}",
                span=self.source.span(node),
                hint=instead_of_expression(node),
            )
        try:
            return handler(self, node)
        except ParserError:
            raise
        except (TypeError, ValueError) as error:
            raise self.rejected(error, node) from error

    def span(self, node: Any) -> ir.Span:
        """The source range of a node."""
        return self.source.span(node)

    def read_name(self, node: ast.Name) -> ir.Expr:
        """The expression a DSL or captured name stands for."""
        found = self.names.lookup(node.id)
        if found is not None:
            return found
        value = self.closure.lookup(node.id)
        if value is NOT_FOUND and self.source.is_text and node.id in _PRINTED_FLOATS:
            return ir.ConstFloat(float(node.id), ir.DataType.FP32, self.span(node))
        if value is NOT_FOUND:
            raise UndefinedVariableError(
                f"Undefined variable '{node.id}'", span=self.span(node), hint=self._suggest(node.id)
            )
        return value_to_ir(value, self.span(node), self.resolve_dyn)

    def resolve_dyn(self, dyn: DynVar) -> ir.Var:
        """The variable of a symbolic dimension, or the parameter that is that symbol in this function."""
        return self.symbol_parameters.get(dyn.name) or self.program.resolve_dyn(dyn)

    def _suggest(self, name: str) -> str:
        import difflib

        known = self.names.all_names()
        close = difflib.get_close_matches(name, known, n=1)
        if close:
            return f"Did you mean '{close[0]}'?"
        return "Assign the name before using it, or define it where the decorator is applied"

    # -- writing ---------------------------------------------------------------------------------------------

    def emit(self, stmt: ir.Stmt) -> None:
        """Append a statement to the block being parsed."""
        self.statements.append(stmt)

    def block(
        self,
        body: Sequence[ast.stmt],
        limit: int | None = None,
        carried: Sequence[ir.IterArg] = (),
        *,
        is_indented: bool = True,
    ) -> list[ir.Stmt]:
        """Parse the statements of a nested block.

        `limit` is the line at which the block ends at the latest, `carried` what a loop with this body
        carries. An `elif` is a block that is not indented, so no comment stands at the end of it.
        """
        outer = self.statements
        self.statements = []
        assigned: set[str] = set()
        if carried and not self.strict_ssa:
            assigned = assigned_in_inner_loops(body) | filled_by_helpers(body, self.closure.lookup)
        for arg in carried:
            self.carrying_bodies[arg] = CarryingBody(self.names.current, self.statements)
            if arg.name_hint in assigned:
                self.seed(arg, arg.span)
        try:
            self.parse_statements(body, limit, is_indented=is_indented)
            return self.statements
        finally:
            self.statements = outer

    def seed(self, carried: ir.IterArg, span: ir.Span) -> ir.Var:
        """A variable that starts as the carried value, for an assignment nested deeper than the loop body.

        An assignment in a branch or an inner loop happens or does not; with a variable that the loop body
        starts with, reading the name afterwards means the right value either way.
        """
        home = self.carrying_bodies[carried]
        variable = ir.Var(carried.name_hint, carried.type, span)
        home.statements.insert(0, ir.AssignStmt(variable, carried, span))
        home.names[carried.name_hint] = variable
        return variable

    def parse_statements(
        self, body: Sequence[ast.stmt], limit: int | None = None, *, is_indented: bool = True
    ) -> None:
        """Parse statements into the current block."""
        if self.comments is None:
            for node in body:
                self.parse_statement(node)
            return
        comments = self.comments
        outer_boundary = comments.boundary
        end = outer_boundary if limit is None else limit
        for position, node in enumerate(body):
            comments.boundary = body[position + 1].lineno if position + 1 < len(body) else end
            self.parse_statement(node)
        comments.boundary = outer_boundary
        if body and is_indented:
            comments.end_block(body[0].col_offset, end)

    def parse_statement(self, node: ast.stmt) -> None:
        """Parse one statement."""
        self.inline_results = _NO_VARS
        if self.specialised is None:
            self._parse_plain(node)
        else:
            for rewritten in self.specialised.rewrite(self, node):
                self._parse_plain(rewritten)

    def _parse_plain(self, node: ast.stmt) -> None:
        handler = STATEMENTS.get(type(node))
        if handler is None:
            raise UnsupportedFeatureError(
                f"Unsupported statement type: {type(node).__name__}",
                span=self.span(node),
                hint=instead_of_statement(node),
            )
        try:
            handler(self, node)
        except ParserError:
            raise
        except (TypeError, ValueError) as error:
            raise self.rejected(error, node) from error

    def rejected(
        self, error: TypeError | ValueError, node: ast.expr | ast.stmt, note: str | None = None
    ) -> Exception:
        """The error of a program from which no IR can be built, at the place that is to blame."""
        if isinstance(error, BUG_CLASSES):
            return error
        return ParserSyntaxError(
            f"Failed to parse function '{self.function_name}': {concise_error_message(error)}",
            span=self.span(node),
            hint=DEFINITION_HINT,
            note=note,
        )

    def take_comments(self, last_line: int) -> list[str]:
        """The comments that belong to a statement whose header ends on `last_line`."""
        return self.comments.take(last_line) if self.comments is not None else []

    def hold_docstring(self, text: str, node: ast.stmt) -> None:
        """A bare string is comment text of the next statement."""
        if self.comments is None:
            self.comments = Comments([])
        lines = self.comments.take(node.end_lineno or node.lineno)
        self.comments.hold(lines + docstring_lines(text))

    def hold_comments(self, node: ast.stmt) -> None:
        """Pass the comments of a statement that emits nothing on to the next one."""
        if self.comments is not None:
            self.comments.hold(self.comments.take(node.end_lineno or node.lineno))

    def emit_commented(self, stmt: ir.Stmt, node: ast.stmt) -> None:
        """Append a simple statement together with its comments."""
        if self.comments is not None:
            comments = self.comments.take(node.end_lineno or node.lineno)
            if comments:
                ir.attach_leading_comments(stmt, comments)
        self.statements.append(stmt)

    # -- binding ---------------------------------------------------------------------------------------------

    def bind_new(self, name: str, var: ir.Var, *, allow_redefinition: bool = False) -> None:
        """Bind a name to a new variable in the current block."""
        if self.strict_ssa and not allow_redefinition and name in self.names.current:
            previous = self.names.lookup(name)
            raise SSAViolationError(
                f"Variable '{name}' is already defined",
                span=var.span,
                previous_span=previous.span if previous is not None else None,
                hint="Use a different variable name for each new value",
                note="strict_ssa=True allows one binding of a name per block",
            )
        self.names.current[name] = var
        if self.specialised is not None:
            self.specialised.note_home(self, var)

    # -- surroundings ----------------------------------------------------------------------------------------

    def inside(self, kind: str) -> bool:
        """Whether some enclosing construct is of this kind."""
        return any(frame.kind == kind for frame in self.frames)

    def inside_incore(self) -> bool:
        """Whether statements here run in a kernel: in an InCore scope or an InCore function."""
        return self.func_type is ir.FunctionType.InCore or any(frame.incore for frame in self.frames)

    def yield_frame(self) -> Frame | None:
        """The innermost loop or branch."""
        for frame in reversed(self.frames):
            if frame.yields is not None:
                return frame
        return None


def to_body(statements: list[ir.Stmt], span: ir.Span) -> ir.Stmt:
    """A block as one statement: a single statement stays bare."""
    if len(statements) == 1:
        return statements[0]
    return ir.SeqStmts(statements, span)
