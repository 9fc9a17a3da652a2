"""The text under construction: nested C++ blocks, and what each variable of the function is called in them.

`Emission` is the one mutable object of the generator. It answers "what stands for this variable" and
collects lines; what to write for which statement is decided elsewhere.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field

from pypto.codegen.orchestration.naming import Names, base_name
from pypto.codegen.registrations import RegistrationTable
from pypto.core.dtype import DataType
from pypto.core.errors import InternalError, located
from pypto.core.span import UNKNOWN_SPAN, Span
from pypto.ir.expr import Call, Expr, Var
from pypto.ir.program import Function, Program
from pypto.ir.types import ScalarType, TensorType
from pypto.ir.walk import vars_in

__all__ = [
    "Binding",
    "Block",
    "BlockKind",
    "Emission",
    "Escapes",
    "PendingOutput",
    "PendingTaskId",
    "Placeholder",
    "SliceView",
    "Symbol",
    "TupleBinding",
]

INDENT = "    "


class BlockKind(enum.Enum):
    """What opens a C++ block."""

    FUNCTION = "function"
    AUTO_SCOPE = "auto scope"
    MANUAL_SCOPE = "manual scope"
    LOOP = "loop"
    BRANCH = "branch"


_SCOPES = (BlockKind.AUTO_SCOPE, BlockKind.MANUAL_SCOPE)


@dataclass(slots=True, eq=False)
class Block:
    """One pair of braces. `before` holds lines that belong ahead of the block's own header, in the parent.

    `declared_ahead` are the names that those lines declare and the block itself gives their values.
    """

    kind: BlockKind
    parent: Block | None
    depth: int
    before: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    declared_ahead: set[str] = field(default_factory=set)
    is_open: bool = True


@dataclass(frozen=True, slots=True)
class Binding:
    """What stands for a variable. `block` declares its identifier; None means the whole function."""

    text: str
    block: Block | None = None
    constant: Expr | None = None  # the text is this literal, not an identifier
    certain: bool = False  # a task id that is never `invalid`
    non_negative: bool = False
    slots: int = 0  # extent, when the identifier is a C array
    hoistable: Var | None = None  # whose declaration may move outwards when it is used after its block
    view: SliceView | None = None  # when the tensor is a slice of another one


@dataclass(frozen=True, slots=True)
class SliceView:
    """A tensor that is the part of `root` (C++ text) at `offsets`."""

    root: str
    offsets: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class TupleBinding:
    """What stands for each element of a tuple value; None for an element that nothing stands for."""

    elements: tuple[Binding | PendingTaskId | PendingOutput | Placeholder | None, ...]


@dataclass(frozen=True, slots=True)
class PendingTaskId:
    """The id of a submitted task; a variable is declared only where one is used."""

    outputs: str


@dataclass(frozen=True, slots=True)
class PendingOutput:
    """Tensor number `index` of those that the runtime made for a submitted task."""

    outputs: str
    index: int


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A scalar result: no kernel hands one back.

    `value` computes it from the arguments; None if what the kernel does cannot be repeated here.
    """

    dtype: DataType
    value: Expr | None


@dataclass(frozen=True, slots=True)
class Symbol:
    """Where an extent symbol is read from: axis `axis` of tensor argument `tensor`.

    `adjustment` solves an extent such as `M * 8` for the symbol.
    """

    var: Var
    tensor: int
    axis: int
    adjustment: str = ""


class Escapes:
    """Variables used after the scope that declares them: found by a first run, hoisted by the second."""

    def __init__(self) -> None:
        self.depths: dict[int, int] = {}  # id of the variable -> depth of the block that must declare it
        self.complete = True

    def found(self, var: Var, depth: int) -> None:
        known = self.depths.get(id(var))
        if known is None or depth < known:
            self.depths[id(var)] = depth
            self.complete = False


InlineQuery = Callable[["Emission", Call], str]


class Emission:
    """Lines, names and bindings of one orchestration function."""

    def __init__(
        self, program: Program, function: Function, used: frozenset[int], escapes: Escapes, query: InlineQuery
    ) -> None:
        self.program = program
        self.function = function
        self.used = used  # ids of all variables that the body reads
        self.escapes = escapes
        self._query = query  # the text of an operator call inside a scalar expression
        self.names = Names()
        self.registrations = RegistrationTable()
        self.helpers: dict[str, None] = {}
        self.block = Block(BlockKind.FUNCTION, None, 1)
        self.bindings: dict[int, Binding | TupleBinding] = {}
        self.symbols: dict[int, Symbol] = {}  # extent symbols of the parameters, by variable id
        self.symbols_by_hint: dict[str, Symbol] = {}
        self.scalar_params: dict[str, Var] = {}  # by hint
        self.read_symbols: list[tuple[str, Symbol]] = []  # those that the body mentions, with their C++ names
        self.tensor_positions: dict[int, int] = {}  # id of a tensor parameter -> index among the tensors
        self.first_tensor: Binding | None = None
        self.tasks = 0
        self.allocations = 0
        self.barriers = 0

    # --- lines

    def line(self, text: str) -> None:
        """One line at the current depth."""
        self.block.lines.append(INDENT * self.block.depth + text)

    def blank(self) -> None:
        """An empty line, but never two, nor one at the start of a block."""
        if self.block.lines and self.block.lines[-1]:
            self.block.lines.append("")

    def open(self, kind: BlockKind) -> Block:
        """Begin a block; its header is written when it closes."""
        self.block = Block(kind, self.block, self.block.depth + 1)
        return self.block

    def close(self, header: str, footer: str = "}") -> None:
        """End the current block: what belongs before it, its header, its lines, its footer."""
        block = self.block
        parent = block.parent
        assert parent is not None
        block.is_open = False
        while block.lines and not block.lines[-1]:
            block.lines.pop()
        self.block = parent
        parent.lines += block.before
        self.line(header)
        parent.lines += block.lines
        if footer:
            self.line(footer)

    def outer_line(self, text: str) -> None:
        """One line ahead of the current block."""
        self.block.before.append(INDENT * (self.block.depth - 1) + text)

    def outside_manual_scope(self) -> bool:
        """Whether what the current statement makes is declared ahead of the block: directly in a manual
        scope."""
        return self.block.kind is BlockKind.MANUAL_SCOPE

    # --- bindings

    def bind(self, var: Var, binding: Binding | TupleBinding) -> None:
        self.bindings[id(var)] = binding

    def tuple_of(self, expr: Expr) -> TupleBinding:
        """What stands for the elements of a tuple value."""
        found = self.bindings.get(id(expr))
        if not isinstance(found, TupleBinding):
            raise InternalError(f"'{_hint(expr)}' is no tuple result of a dispatch")
        return found

    def lookup(self, var: Var) -> Binding | None:
        """The binding of a variable, whether or not its block is still open; None when there is none."""
        found = self.bindings.get(id(var))
        if isinstance(found, TupleBinding):
            raise InternalError(f"the tuple '{var.name_hint}' is used as one value")
        return found if found is not None else self._symbol(var)

    def binding(self, var: Var, span: Span = UNKNOWN_SPAN) -> Binding:
        """The binding of a variable that is in scope here."""
        found = self.lookup(var)
        if found is None:
            raise self._undefined(var, span)
        self._check_scope(var, found, span)
        return found

    def _undefined(self, var: Var, span: Span) -> Exception:
        for param in self.function.params_:
            for dim in param.type.shape_ if isinstance(param.type, TensorType) else ():
                if any(each.name_hint == var.name_hint for each in vars_in(dim)):
                    return ValueError(
                        located(
                            f"Cannot recover dynamic dimension '{var.name_hint}' in '{self.function.name}': "
                            f"its arguments tell it only as {dim} of '{base_name(param.name_hint)}'; declare "
                            f"a tensor with the dimension '{var.name_hint}' itself, or pass it as a scalar",
                            span,
                        )
                    )
        return InternalError(
            located(f"'{var.name_hint}' is used in '{self.function.name}' but not defined before", span)
        )

    def _check_scope(self, var: Var, found: Binding, span: Span) -> None:
        if found.block is None or found.block.is_open:
            return
        ancestor, child = _common_ancestor(found.block, self.block)
        only_scopes = all(block.kind in _SCOPES for block in _path(found.block, child))
        if found.hoistable is None or not only_scopes:
            raise ValueError(
                located(
                    f"'{var.name_hint}' lives in a scope of '{self.function.name}' that has closed, but is "
                    "used after "
                    "it; create the buffer before the scope, or move the use into the scope",
                    span,
                )
            )
        self.escapes.found(found.hoistable, ancestor.depth)

    def _symbol(self, var: Var) -> Binding | None:
        symbol = self.symbols.get(id(var)) or self.symbols_by_hint.get(var.name_hint)
        if symbol is None:
            return None
        param = self.scalar_params.get(var.name_hint)
        if param is not None:
            binding = self.bindings[id(param)]
            assert isinstance(binding, Binding)
        else:
            known = self.bindings.get(id(symbol.var))
            if isinstance(known, Binding):
                return known
            name = self.names.of_variable(symbol.var)
            self.read_symbols.append((name, symbol))
            binding = Binding(name, non_negative=True)
        self.bindings[id(symbol.var)] = binding
        self.bindings[id(var)] = binding
        return binding

    def declare(
        self,
        var: Var,
        cpp_type: str,
        value: str,
        *,
        name: str = "",
        is_reference: bool = False,
        non_negative: bool = False,
        ahead: bool = False,
    ) -> Binding:
        """Declare a variable that starts with `value`, further out when a use after its block demands it.

        One that `is_reference` is another name for what `value` names, as long as it stays in its block. Its
        block is the present one or, `ahead`, the one around it.
        """
        name = name or self.names.of_variable(var)
        depth = self.escapes.depths.get(id(var))
        block = self.block.parent if ahead else self.block
        write = self.outer_line if ahead else self.line
        if depth is None:
            kind = f"const {cpp_type}&" if is_reference else cpp_type
            write(f"{kind} {name} = {value};")
        else:
            assert block is not None
            inner = block
            while inner.depth > depth + 1:
                assert inner.parent is not None
                inner = inner.parent
            inner.before.append(f"{INDENT * depth}{cpp_type} {name}{{}};")
            write(f"{name} = {value};")
            block = inner.parent
        binding = Binding(name, block, hoistable=var, non_negative=non_negative)
        self.bind(var, binding)
        return binding

    # --- what scalar expressions ask for

    def text_of(self, var: Var) -> str:
        return self.binding(var).text

    def is_non_negative_var(self, var: Var) -> bool:
        found = self.bindings.get(id(var)) or self._symbol(var)
        if isinstance(var.type, ScalarType) and var.type.dtype.is_unsigned_int():
            return True
        return isinstance(found, Binding) and found.non_negative

    def query_text(self, call: Call) -> str:
        return self._query(self, call)

    def need_helper(self, name: str) -> None:
        self.helpers[name] = None

    def callee(self, name: str) -> Function:
        """The function of the program with this name."""
        found = self.program.functions_.get(name)
        if found is None:
            raise InternalError(f"'{self.function.name}' calls '{name}', which is not in the program")
        return found


def _hint(expr: Expr) -> str:
    return expr.name_hint if isinstance(expr, Var) else type(expr).__name__


def _common_ancestor(closed: Block, current: Block) -> tuple[Block, Block]:
    """The innermost block around both, and its child on the way to `closed`."""
    around: set[int] = set()
    block: Block | None = current
    while block is not None:
        around.add(id(block))
        block = block.parent
    child = closed
    while child.parent is not None and id(child.parent) not in around:
        child = child.parent
    assert child.parent is not None
    return child.parent, child


def _path(inner: Block, outer: Block) -> list[Block]:
    blocks = [inner]
    while blocks[-1] is not outer:
        parent = blocks[-1].parent
        assert parent is not None
        blocks.append(parent)
    return blocks
