"""What the body of a specialised function may say beyond an ordinary one.

The types of the arguments are known, so `x.shape`, `x.dtype`, constants behind attributes (`CFG.n`) and
symbolic dimensions have a meaning here. Each statement is rewritten, just before it is parsed, into what
could have been written by hand: a literal, or a `pl.tensor.dim(...)`. Nested blocks follow when their turn
comes, since only then the types of their names are known.
"""

from __future__ import annotations

import ast
import copy
import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pypto import ir
from pypto.language.parser.closure import NOT_FOUND
from pypto.language.parser.diagnostics import ParserSyntaxError, ParserTypeError
from pypto.language.parser.function_parser import Frame, FunctionParser
from pypto.language.parser.names import Binding
from pypto.language.parser.slots import DTYPES, dotted_name
from pypto.language.specialisation import Constant, Specialisation, SpecialisedFunction
from pypto.language.typing import DynVar

Rewrite = Callable[[ast.expr], ast.expr | None]

_DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_OWN_PACKAGE = "pypto."


@dataclass(frozen=True, slots=True)
class _Home:
    """Where a variable was made: the constructs around it, and the scopes."""

    frames: tuple[Frame, ...]
    scopes: tuple[dict[str, Binding], ...]


class SpecialisedBody:
    """Rewrites the statements of one body."""

    def __init__(self, node: ast.FunctionDef, given: Specialisation) -> None:
        self.constants: Mapping[str, Constant] = given.constants  # of parameters that have a known value
        self._node = node
        returns = any(isinstance(inner, ast.Return) for inner in ast.walk(node))
        self._read_at_end = frozenset[str]() if returns else frozenset(given.output_names)
        self._assigned = _stored_names(node)
        self._homes: dict[ir.Var, _Home] = {}
        self._statement: ast.stmt | None = None

    def assigns(self, name: str) -> bool:
        """Whether some statement of the body binds this name."""
        return name in self._assigned

    def reads_after(self, name: str, node: ast.stmt) -> bool:
        """Whether a name is read behind a statement; a body without a return ends by reading its outputs."""
        end = (node.end_lineno or node.lineno, node.end_col_offset or 0)
        return name in self._read_at_end or any(
            isinstance(inner, ast.Name) and inner.id == name and (inner.lineno, inner.col_offset) >= end
            for inner in ast.walk(self._node)
            if isinstance(getattr(inner, "ctx", None), ast.Load)
        )

    def may_precede(self, call: ast.Call) -> bool:
        """Whether a call inside the present statement can be a statement before it.

        One that is the whole value of a statement need not; one in the condition of a loop is made in each
        turn.
        """
        statement = self._statement
        if isinstance(statement, ast.While):
            return False
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        return not (
            isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return))
            and statement.value is call
            and all(isinstance(target, (ast.Name, ast.Tuple)) for target in targets)
        )

    def rewrite(self, p: FunctionParser, node: ast.stmt) -> Sequence[ast.stmt]:
        """The statements to parse instead of `node`."""
        self._statement = node
        if self._is_declaration(p, node):
            p.hold_comments(node)
            return ()
        if isinstance(node, (ast.For, ast.While)):
            self._bridge_carries(p, node)
        for name, header in _HEADERS.get(type(node), ()):
            old = getattr(node, name)
            new = header(old, lambda expression: self._meaning(p, expression))
            if new is not old:
                node = copy.copy(node)
                setattr(node, name, new)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            return self._unpacked(p, node, node.targets[0])
        return (node,)

    # -- variables -------------------------------------------------------------------------------------------

    def note_home(self, p: FunctionParser, var: ir.Var) -> None:
        """Remember where a variable is made."""
        self._homes[var] = _Home(tuple(p.frames), p.names.path)

    def begins_variable(self, p: FunctionParser, old: ir.Var, same_type: bool) -> bool:
        """Whether an assignment to the name of `old` makes a new variable, possibly of another type.

        It does in the block where `old` was made, since from there on nothing else can mean `old`. It also
        does with another type once that block has been left. It never does in the other branch of an `if`:
        both branches assign one variable.
        """
        home = self._homes.get(old)
        if home is None:
            return False
        here = p.names.path
        if home.scopes[-1] is here[-1]:
            return True
        if same_type:
            return False
        for theirs, ours in zip(home.scopes, here, strict=False):
            if theirs is not ours:
                return not any(_is_in(theirs, f.branches) and _is_in(ours, f.branches) for f in p.frames)
        return len(home.scopes) > len(here)

    def _bridge_carries(self, p: FunctionParser, loop: ast.For | ast.While) -> None:
        """Start a variable before a loop for each name that the loop carries from a loop beside it."""
        stored = set[str]().union(*map(_stored_names, loop.body))
        for name in sorted(_read_first(loop.body) & stored):
            old = p.names.lookup(name)
            home = self._homes.get(old) if isinstance(old, ir.Var) else None
            if home is not None and len(home.frames) == len(p.frames) + 1:
                assert isinstance(old, ir.Var)
                span = p.source.head_span(loop)
                bridge = ir.Var(name, old.type, span)
                p.bind_new(name, bridge)
                p.emit(ir.AssignStmt(bridge, old, span))

    # -- declarations ----------------------------------------------------------------------------------------

    def _is_declaration(self, p: FunctionParser, node: ast.stmt) -> bool:
        """Take in `X = pl.dynamic("X")`, `h = other_function` and `p.bind_dynamic(i, X)`."""
        if isinstance(node, ast.Expr):
            return is_bind_dynamic(node.value)
        if not (
            isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
        ):
            return False
        value: Any = declared_dynamic(node.value)
        if value is None and isinstance(node.value, (ast.Name, ast.Attribute)):
            captured = self._captured(p, node.value)
            value = captured if isinstance(captured, SpecialisedFunction) else None
        if value is None:
            return False
        self._capture(p, node.targets[0].id, value)
        return True

    def _capture(self, p: FunctionParser, name: str, value: Any) -> None:
        """Let a name stand for a Python value from here on."""
        p.closure = p.closure.derived(p.closure.namespace, {name: value})
        self._assigned.discard(name)

    def _unpacked(self, p: FunctionParser, node: ast.Assign, target: ast.Tuple) -> Sequence[ast.stmt]:
        """`m, n = x.shape`: extents that are known become captured values, the others are assigned."""
        values = node.value
        if not (isinstance(values, ast.List) and getattr(values, "is_shape", False)):
            return (node,)
        if len(target.elts) != len(values.elts):
            raise ParserTypeError(
                f"Cannot unpack {len(values.elts)} extents into {len(target.elts)} names", span=p.span(node)
            )
        left: list[ast.stmt] = []
        for name, extent in zip(target.elts, values.elts, strict=True):
            if not isinstance(name, ast.Name):
                raise ParserSyntaxError("Unpack a shape into plain names", span=p.span(name))
            if isinstance(extent, ast.Constant) and name.id not in p.names:
                self._capture(p, name.id, extent.value)
            else:
                left.append(ast.copy_location(ast.Assign([name], extent), node))
        return left

    # -- expressions -----------------------------------------------------------------------------------------

    def _meaning(self, p: FunctionParser, node: ast.expr) -> ast.expr | None:
        """What an expression stands for; None when it is left as it is."""
        if isinstance(node, ast.Subscript) and _is_shape(node.value):
            return self._extent(p, node)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            return self._literal(p, node, self._captured_element(p, node))
        if isinstance(node, ast.Attribute):
            if node.attr in ("shape", "dtype") and isinstance(node.value, ast.Name):
                value = p.names.lookup(node.value.id)
                if value is not None:
                    return _property(p, node, value)
            return self._literal(p, node, self._captured(p, node))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            value = self._captured(p, node)
            if not isinstance(value, (bool, int, float)):  # the parser reads these itself
                return self._literal(p, node, value)
        return None

    def _extent(self, p: FunctionParser, node: ast.Subscript) -> ast.expr | None:
        assert isinstance(node.value, ast.Attribute)
        shape = self._meaning(p, node.value)
        position = p.closure.fold(node.slice, p.names.__contains__)
        if not isinstance(shape, ast.List) or type(position) is not int:
            return None
        if not -len(shape.elts) <= position < len(shape.elts):
            raise ParserTypeError(
                f"'{ast.unparse(node.value)}' has {len(shape.elts)} extents, there is none at {position}",
                span=p.span(node),
            )
        return shape.elts[position]

    def _captured(self, p: FunctionParser, node: ast.Name | ast.Attribute) -> Any:
        """The Python value of a (dotted) name that no statement of the body binds."""
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name) or root.id in self._assigned or root.id in p.names:
            return NOT_FOUND
        if getattr(p.closure.lookup(root.id), "__name__", "").startswith(_OWN_PACKAGE):
            return NOT_FOUND  # `pl.FP32`, `pl.Level.HOST`: the language itself
        return p.closure.lookup_path(node)

    def _captured_element(self, p: FunctionParser, node: ast.Subscript) -> Any:
        """The element that `SIZES[0]` or `CFG.sizes[0]` names in a captured list, tuple or dictionary."""
        if not isinstance(node.value, (ast.Name, ast.Attribute)):
            return NOT_FOUND
        owner = self._captured(p, node.value)
        position = p.closure.fold(node.slice, p.names.__contains__)
        if not isinstance(owner, (list, tuple, dict)) or position is NOT_FOUND:
            return NOT_FOUND
        try:
            return owner[position]
        except (LookupError, TypeError):
            return NOT_FOUND  # the ordinary path reports what is wrong

    def _literal(self, p: FunctionParser, node: ast.expr, value: Any) -> ast.expr | None:
        if isinstance(value, DynVar):
            return _symbol(p, node, value)
        if isinstance(value, ir.DataType) and value in _DTYPE_NAMES:
            return parsed_at(node, f"pl.{_DTYPE_NAMES[value]}")
        if isinstance(value, enum.Enum):
            return parsed_at(node, f"pl.{type(value).__name__}.{value.name}")
        if isinstance(value, (bool, int, float, str)):
            return ast.copy_location(ast.Constant(value), node)
        if isinstance(value, (list, tuple)):
            elements = [literal for v in value if (literal := self._literal(p, node, v)) is not None]
            display = ast.List if isinstance(value, list) else ast.Tuple
            whole = len(elements) == len(value)
            return ast.copy_location(display(elements, ast.Load()), node) if whole else None
        return None


def is_bind_dynamic(node: ast.expr) -> bool:
    """Whether an expression is written `p.bind_dynamic(i, X)`."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "bind_dynamic"
        and isinstance(node.func.value, ast.Name)
    )


def declared_dynamic(node: ast.expr) -> DynVar | None:
    """The symbol of `pl.dynamic("X")`."""
    if isinstance(node, ast.Call) and dotted_name(node.func) in ("pl.dynamic", "dynamic"):
        name = node.args[0] if len(node.args) == 1 else None
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            return DynVar(name.value)
    return None


def parsed_at(place: ast.expr, text: str) -> ast.expr:
    """The expression `text`, at the place of another one."""
    found = ast.parse(text, mode="eval").body
    for inner in ast.walk(found):
        if isinstance(inner, ast.expr):
            ast.copy_location(inner, place)
    return found


def _is_shape(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "shape" and isinstance(node.value, ast.Name)


def _property(p: FunctionParser, node: ast.Attribute, value: ir.Expr) -> ast.expr | None:
    kind = value.type
    if not isinstance(kind, (ir.TensorType, ir.TileType)):
        return None
    if node.attr == "dtype":
        return parsed_at(node, f"pl.{_DTYPE_NAMES[kind.dtype]}")
    assert isinstance(node.value, ast.Name)
    extents: list[ast.expr] = []
    for axis, extent in enumerate(kind.shape_):
        if isinstance(extent, ir.ConstInt):
            extents.append(ast.copy_location(ast.Constant(extent.value), node))
        elif isinstance(kind, ir.TensorType):
            extents.append(parsed_at(node, f"pl.tensor.dim({node.value.id}, {axis})"))
        else:
            raise ParserTypeError(
                f"Extent {axis} of tile '{node.value.id}' is only known when the program runs",
                span=p.span(node),
                hint="Use the scalar that the tile was made with",
            )
    shape = ast.copy_location(ast.List(extents, ast.Load()), node)
    shape.is_shape = True  # type: ignore[attr-defined]
    return shape


def _symbol(p: FunctionParser, node: ast.expr, dyn: DynVar) -> ast.expr | None:
    """The run-time extent of the first parameter dimension that a symbol names."""
    symbol = p.resolve_dyn(dyn)
    for param in p.params:
        if isinstance(param.type, ir.TensorType) and p.names.lookup(param.name_hint) is param:
            for axis, extent in enumerate(param.type.shape_):
                if extent is symbol:
                    return parsed_at(node, f"pl.tensor.dim({param.name_hint}, {axis})")
    return None


def _is_in(scope: dict[str, Binding], scopes: list[dict[str, Binding]]) -> bool:
    return any(scope is other for other in scopes)


def _read_first(body: Sequence[ast.stmt]) -> set[str]:
    """Names that a block reads, or may read, before it assigns them."""
    read: set[str] = set()
    assigned: set[str] = set()
    for statement in body:
        match statement:
            case ast.With():
                inner = _read_first(statement.body).union(*map(_loaded_names, statement.items))
            case ast.For():
                inner = _read_first(statement.body) - _stored_names(statement.target)
                inner |= _loaded_names(statement.iter)
            case ast.While():
                inner = _read_first(statement.body) | _loaded_names(statement.test)
            case ast.If():
                inner = _read_first(statement.body) | _read_first(statement.orelse)
                inner |= _loaded_names(statement.test)
            case _:
                inner = _loaded_names(statement)
        read |= inner - assigned
        if not isinstance(statement, (ast.If, ast.For, ast.While)):
            assigned |= _stored_names(statement)
    return read


def _loaded_names(node: ast.AST) -> set[str]:
    """Names that a node reads; those that a comprehension binds are its own."""
    names = set[str]()
    waiting: list[tuple[ast.AST, frozenset[str]]] = [(node, frozenset())]
    while waiting:
        inner, bound = waiting.pop()
        if isinstance(inner, ast.Name):
            if isinstance(inner.ctx, ast.Load) and inner.id not in bound:
                names.add(inner.id)
            continue
        if isinstance(inner, (ast.ListComp, ast.GeneratorExp)):
            bound = bound.union(*(_stored_names(each.target) for each in inner.generators))
        waiting += [(child, bound) for child in ast.iter_child_nodes(inner)]
    return names


def _stored_names(node: ast.AST) -> set[str]:
    names: set[str] = set()
    for inner in ast.walk(node):
        target = inner.value if isinstance(inner, ast.Subscript) else inner
        if isinstance(target, ast.Name) and isinstance(getattr(inner, "ctx", None), ast.Store):
            names.add(target.id)
    return names


# -- the expressions of a statement --------------------------------------------------------------------------


def _rewritten(node: Any, meaning: Rewrite) -> Any:
    """`node` with every expression replaced that means something else; the same object if none does."""
    if isinstance(node, list):
        return _each(node, lambda item: _rewritten(item, meaning))
    if isinstance(node, ast.BinOp):
        return _rewritten_chain(node, meaning)
    if not isinstance(node, ast.AST):
        return node
    if isinstance(node, ast.expr):
        replacement = meaning(node)
        if replacement is not None:
            return replacement
    return _with_fields(node, {name: _rewritten(value, meaning) for name, value in _operands(node)})


def _operands(node: ast.AST) -> list[tuple[str, Any]]:
    return [
        (name, value)
        for name, value in ast.iter_fields(node)
        if isinstance(value, (ast.AST, list)) and not (isinstance(node, ast.Call) and name == "func")
    ]


def _rewritten_chain(node: ast.BinOp, meaning: Rewrite) -> ast.expr:
    """A chain of operators leans left; it is followed without recursion."""
    links: list[ast.BinOp] = []
    leaf: ast.expr = node
    while isinstance(leaf, ast.BinOp):
        links.append(leaf)
        leaf = leaf.left
    result: ast.expr = _rewritten(leaf, meaning)
    for link in reversed(links):
        result = _with_fields(link, {"left": result, "right": _rewritten(link.right, meaning)})
    return result


def _with_fields(node: Any, fields: dict[str, Any]) -> Any:
    if all(getattr(node, name) is value for name, value in fields.items()):
        return node
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _each(nodes: list[Any], change: Callable[[Any], Any]) -> list[Any]:
    changed = [change(node) for node in nodes]
    return changed if any(new is not old for new, old in zip(changed, nodes, strict=True)) else nodes


def _target(node: ast.expr, meaning: Rewrite) -> ast.expr:
    """An assignment target: a name stays, the index of a subscript is a value."""
    if not isinstance(node, ast.Subscript):
        return node
    changed: ast.expr = _with_fields(node, {"slice": _rewritten(node.slice, meaning)})
    return changed


def _targets(nodes: list[ast.expr], meaning: Rewrite) -> list[ast.expr]:
    return _each(nodes, lambda node: _target(node, meaning))


_HEADERS: dict[type[ast.stmt], tuple[tuple[str, Callable[[Any, Rewrite], Any]], ...]] = {
    ast.Assign: (("value", _rewritten), ("targets", _targets)),
    ast.AnnAssign: (("value", _rewritten),),
    ast.Expr: (("value", _rewritten),),
    ast.Return: (("value", _rewritten),),
    ast.For: (("iter", _rewritten),),
    ast.While: (("test", _rewritten),),
    ast.If: (("test", _rewritten),),
    ast.With: (("items", _rewritten),),
}
