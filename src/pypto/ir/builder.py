"""`IRBuilder`: programs from Python code, with `with` blocks for nested constructs.

    builder = ir.IRBuilder()
    with builder.function("double") as f:
        x = f.param("x", ir.TensorType([64], ir.FP32))
        f.return_type(x.type)
        y = builder.let("y", ir.op.tensor.add(x, x))
        builder.return_stmt(y)
    double = f.get_result()

Literals become constants of INDEX or FP32. The place of each node is the user's line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

from pypto.core.dtype import DataType
from pypto.core.span import UNKNOWN_SPAN, Span
from pypto.ir.block_lines import BlockStart
from pypto.ir.build_context import BuildContext
from pypto.ir.enums import (
    CompactMode,
    ForKind,
    FunctionType,
    InlineLanguage,
    Level,
    MemorySpace,
    PadValue,
    ParamDirection,
    Role,
    ScopeKind,
    SplitMode,
    TensorLayout,
    TileLayout,
)
from pypto.ir.expr import Call, Expr, GlobalVar, IterArg, MakeTuple, MemRef, Var
from pypto.ir.program import Function, Program
from pypto.ir.scope import ScopeStmt
from pypto.ir.stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    InlineStmt,
    ReturnStmt,
    Stmt,
    WhileStmt,
)
from pypto.ir.types import TensorType, TileType, Type, UnknownType
from pypto.ir.utils import _get_span_or_capture, _normalize_expr
from pypto.ir.views import TensorView, TileView, normalise_extents

__all__ = [
    "ForLoopBuilder", "FunctionBuilder", "IRBuilder", "IfStmtBuilder", "ProgramBuilder", "ScopeBuilder",
    "WhileLoopBuilder",
]  # fmt: skip

_Node = TypeVar("_Node")
_Stmt = TypeVar("_Stmt", bound=Stmt)


class _Result(Generic[_Node]):
    """What a `with` block builds; known once the block has ended."""

    _kind = ""

    def __init__(self, core: BuildContext) -> None:
        self._core = core
        self._result: _Node | None = None

    def get_result(self) -> _Node:
        """The built node. Raises `AssertionError` before the block has ended."""
        assert self._result is not None, "The block has not ended yet"
        return self._result

    def _check_place(self, action: str) -> None:
        innermost = self._core.innermost()
        if self._result is not None or innermost != self._kind:
            raise ValueError(
                f"{action} is only possible directly inside its own {self._kind} block, "
                f"not inside {f'a {innermost}' if innermost else 'nothing'}"
            )


class FunctionBuilder(_Result[Function]):
    _kind = "function"

    def param(
        self, name: str, type: Type, span: Span | None = None, direction: ParamDirection = ParamDirection.In
    ) -> Var:
        """A new parameter, after those there are."""
        self._check_place("param")
        return self._core.func_arg(name, type, _get_span_or_capture(span), direction)

    def return_type(self, type: Type) -> None:
        """A further result type."""
        self._check_place("return_type")
        self._core.return_type(type)


class _WithOutputs(_Result[_Node]):
    def __init__(self, core: BuildContext) -> None:
        super().__init__(core)
        self._return_vars: list[Var] = []

    def output(self, index: int = 0) -> Var:
        """The result variable at `index`, once the block has ended."""
        if self._result is None:
            raise RuntimeError("Outputs are available after the block has ended")
        if index >= len(self._return_vars):
            raise IndexError(f"Return variable index {index} out of range")
        return self._return_vars[index]

    def outputs(self) -> list[Var]:
        """All result variables, once the block has ended."""
        if self._result is None:
            raise RuntimeError("Outputs are available after the block has ended")
        return list(self._return_vars)


class _LoopBuilder(_WithOutputs[_Node]):
    _add_iter_arg: ClassVar[Callable[[BuildContext, IterArg], None]]
    _add_return_var: ClassVar[Callable[[BuildContext, Var], None]]

    def __init__(self, core: BuildContext) -> None:
        super().__init__(core)
        self._iter_args: list[IterArg] = []

    def iter_arg(
        self, name: str, init_value: Any, type: Type | None = None, span: Span | None = None
    ) -> IterArg:
        """A carried value; its type is that of the initial value."""
        self._check_place("iter_arg")
        where = _get_span_or_capture(span)
        init = _normalize_expr(init_value, where)
        if type is not None and type != init.type:
            raise ValueError(f"Type mismatch: iter_arg '{name}' is {type}, its initial value is {init.type}")
        carried = IterArg(name, init.type, init, where)
        self._iter_args.append(carried)
        self.__class__._add_iter_arg(self._core, carried)
        return carried

    def return_var(self, name: str, type: Type | None = None, span: Span | None = None) -> Var:
        """The final value of the carried value in the same position."""
        self._check_place("return_var")
        position = len(self._return_vars)
        matching = self._iter_args[position].type if position < len(self._iter_args) else None
        if matching is None and type is None:
            raise ValueError(f"return_var '{name}' has no matching iter_arg and needs a type")
        if matching is not None and type is not None and matching != type:
            raise ValueError(f"Type mismatch: return_var '{name}' is {type}, its iter_arg is {matching}")
        chosen = type if type is not None else matching
        assert chosen is not None
        var = Var(name, chosen, _get_span_or_capture(span))
        self._return_vars.append(var)
        self.__class__._add_return_var(self._core, var)
        return var


class ForLoopBuilder(_LoopBuilder[ForStmt]):
    _kind = "for loop"
    _add_iter_arg = BuildContext.add_iter_arg
    _add_return_var = BuildContext.add_return_var


class WhileLoopBuilder(_LoopBuilder[WhileStmt]):
    _kind = "while loop"
    _add_iter_arg = BuildContext.add_while_iter_arg
    _add_return_var = BuildContext.add_while_return_var

    def set_condition(self, condition: Expr) -> None:
        """Replace the condition, now that carried values exist."""
        self._check_place("set_condition")
        self._core.set_while_loop_condition(condition)


class IfStmtBuilder(_WithOutputs[IfStmt]):
    _kind = "if"

    def else_(self, span: Span | None = None) -> None:
        """What follows belongs to the else branch."""
        self._check_place("else_")
        self._core.begin_else(_get_span_or_capture(span))

    def return_var(self, name: str, type: Type, span: Span | None = None) -> None:
        """A result of the statement."""
        self._check_place("return_var")
        var = Var(name, type, _get_span_or_capture(span))
        self._return_vars.append(var)
        self._core.add_if_return_var(var)


class ScopeBuilder(_Result[ScopeStmt]):
    pass


class ProgramBuilder(_Result[Program]):
    def declare_function(self, name: str) -> GlobalVar:
        return self._core.declare_function(name)

    def get_global_var(self, name: str) -> GlobalVar:
        return self._core.get_global_var(name)

    def add_function(self, func: Function) -> None:
        self._core.add_function(func)


class IRBuilder:
    """Builds functions, statements and programs; see the module for an example."""

    def __init__(self) -> None:
        self._core = BuildContext()

    @contextmanager
    def _block(
        self, begin: Callable[[], None], result: _Result[Any], end: Callable[[Span], Any]
    ) -> Iterator[Any]:
        """Yield the block's builder and end the construct also when the block raises."""
        begin()
        entered = BlockStart.of_user()
        try:
            yield result
        except BaseException:
            self._end_quietly(result, end)
            raise
        result._result = end(entered.end_of_block())

    def _end_quietly(self, result: _Result[Any], end: Callable[[Span], Any]) -> None:
        """Close the construct after an error in its block; that error is the one to show."""
        depth = self._core.depth()
        try:
            result._result = end(UNKNOWN_SPAN)
        except (RuntimeError, TypeError, ValueError):
            self._core.abandon(depth - 1)

    def function(
        self,
        name: str,
        span: Span | None = None,
        type: FunctionType = FunctionType.Opaque,
        level: Level | None = None,
        role: Role | None = None,
        attrs: Any = None,
        requires_runtime_binding: bool = False,
    ) -> Any:
        """A block that builds a function; yields a `FunctionBuilder`."""
        core, where = self._core, _get_span_or_capture(span)
        begin = partial(core.begin_function, name, where, type, level, role, attrs, requires_runtime_binding)
        return self._block(begin, FunctionBuilder(core), core.end_function)

    def for_loop(
        self,
        loop_var: Var,
        start: Any,
        stop: Any,
        step: Any,
        span: Span | None = None,
        kind: ForKind = ForKind.Sequential,
        attrs: Any = None,
    ) -> Any:
        """A block that builds a counted loop; yields a `ForLoopBuilder`."""
        core, where = self._core, _get_span_or_capture(span)
        first, end, by = (_normalize_expr(bound, where) for bound in (start, stop, step))
        begin = partial(core.begin_for_loop, loop_var, first, end, by, where, kind, attrs)
        return self._block(begin, ForLoopBuilder(core), core.end_for_loop)

    def while_loop(self, condition: Any, span: Span | None = None) -> Any:
        """A block that builds a conditional loop; yields a `WhileLoopBuilder`."""
        core, where = self._core, _get_span_or_capture(span)
        begin = partial(core.begin_while_loop, _normalize_expr(condition, where), where)
        return self._block(begin, WhileLoopBuilder(core), core.end_while_loop)

    def if_stmt(self, condition: Any, span: Span | None = None) -> Any:
        """A block that builds a branch; yields an `IfStmtBuilder`."""
        core, where = self._core, _get_span_or_capture(span)
        begin = partial(core.begin_if, _normalize_expr(condition, where), where)
        return self._block(begin, IfStmtBuilder(core), core.end_if)

    def scope(
        self,
        scope_kind: ScopeKind,
        span: Span | None = None,
        level: Level | None = None,
        role: Role | None = None,
        split: SplitMode | None = None,
        name_hint: str = "",
        core_num: Any = None,
        sync_start: bool | None = None,
        manual: bool | None = None,
        attrs: list[tuple[str, Any]] | None = None,
    ) -> Any:
        """A block that builds a scope; yields a `ScopeBuilder`."""
        core, where = self._core, _get_span_or_capture(span)
        begin = partial(
            core.begin_scope,
            scope_kind, where, level, role, split, name_hint, core_num, sync_start, manual, attrs,
        )  # fmt: skip
        return self._block(begin, ScopeBuilder(core), core.end_scope)

    def program(self, name: str, span: Span | None = None) -> Any:
        """A block that builds a program; yields a `ProgramBuilder`."""
        core, where = self._core, _get_span_or_capture(span)
        return self._block(partial(core.begin_program, name, where), ProgramBuilder(core), core.end_program)

    # -- one-line methods -----------------------------------------------------------------------------------

    def var(self, name: str, type: Type, span: Span | None = None) -> Var:
        return Var(name, type, _get_span_or_capture(span))

    def assign(self, var: Var, value: Any, span: Span | None = None) -> AssignStmt:
        where = _get_span_or_capture(span)
        return self._core.assign(var, _normalize_expr(value, where), where)

    def let(self, name: str, value: Any, type: Type | None = None, span: Span | None = None) -> Var:
        """Assign to a new variable and return it; the type comes from the value."""
        where = _get_span_or_capture(span)
        expr = self._with_callee_type(_normalize_expr(value, where))
        known = not isinstance(expr.type, UnknownType)
        if type is not None and known and type.__class__ is not expr.type.__class__:
            raise TypeError(f"The type {type} of '{name}' is incompatible with its value of type {expr.type}")
        var = Var(name, type if type is not None else expr.type, where)
        self._core.assign(var, expr, where)
        return var

    def _with_callee_type(self, value: Expr) -> Expr:
        if not (isinstance(value, Call) and isinstance(value.op, GlobalVar) and self._core.in_program()):
            return value
        if not isinstance(value.type, UnknownType):
            return value
        returns = self._core.get_function_return_types(value.op)
        if len(returns) > 1:
            raise ValueError(f"Function '{value.op.name}' returns {len(returns)} values; `let` takes one")
        return value.replace(type=returns[0]) if returns else value

    def make_tuple(self, elements: Sequence[Any], span: Span | None = None) -> MakeTuple:
        where = _get_span_or_capture(span)
        return MakeTuple([_normalize_expr(element, where) for element in elements], where)

    def emit(self, stmt: Stmt) -> Stmt:
        return self._core.emit(stmt)

    def return_stmt(self, values: Any = None, span: Span | None = None) -> ReturnStmt:
        where = _get_span_or_capture(span)
        given = [] if values is None else list(values) if isinstance(values, (list, tuple)) else [values]
        return self._core.return_([_normalize_expr(value, where) for value in given], where)

    def eval_stmt(self, expr: Expr, span: Span | None = None) -> EvalStmt:
        return self._emitted(EvalStmt(expr, _get_span_or_capture(span)))

    def break_stmt(self, span: Span | None = None) -> BreakStmt:
        return self._emitted(BreakStmt(_get_span_or_capture(span)))

    def continue_stmt(self, span: Span | None = None) -> ContinueStmt:
        return self._emitted(ContinueStmt(_get_span_or_capture(span)))

    def inline_stmt(
        self, body: str, language: InlineLanguage = InlineLanguage.Python, span: Span | None = None
    ) -> InlineStmt:
        return self._emitted(InlineStmt(body, language, _get_span_or_capture(span)))

    def _emitted(self, stmt: _Stmt) -> _Stmt:
        self._core.emit(stmt)
        return stmt

    def add_function_attrs(self, attrs: dict[str, Any]) -> None:
        self._core.add_function_attrs(attrs)

    def in_function(self) -> bool:
        return self._core.in_function()

    def in_loop(self) -> bool:
        return self._core.in_loop()

    def in_if(self) -> bool:
        return self._core.in_if()

    def push_pending_leading_comments(self, comments: Sequence[str]) -> None:
        self._core.push_pending_leading_comments(comments)

    def pop_pending_leading_comments(self) -> list[str]:
        return self._core.pop_pending_leading_comments()

    # -- types -----------------------------------------------------------------------------------------------

    def memref(self, *place: Any, **named: Any) -> MemRef:
        """`memref(space, addr, size, id, span=None)` or `memref(addr, size, id, span=None)`."""
        in_space = isinstance(place[0], MemorySpace) if place else "space" in named
        names = ("space", "addr", "size", "id", "span") if in_space else ("addr", "size", "id", "span")
        has_fourth = len(place) > 3 and not (place[3] is None or isinstance(place[3], Span))
        if not in_space and (len(place) > 4 or has_fourth):
            raise TypeError(
                "memref(addr, size, id) accepts exactly three positional arguments and a span, "
                f"got {len(place)}"
            )
        given = dict(zip(names, place, strict=False))
        if len(place) > len(names) or not named.keys() <= set(names) - given.keys():
            raise TypeError(f"memref got unexpected or repeated arguments; it takes {', '.join(names)}")
        given |= named
        where = _get_span_or_capture(given.pop("span", None))
        missing = [name for name in names[:-1] if name not in given]
        if missing:
            raise TypeError(f"memref misses {', '.join(missing)}")
        if in_space:
            given["addr"] = _normalize_expr(given["addr"], where)
        return MemRef(*given.values(), where)

    def tile_view(
        self,
        valid_shape: Sequence[Any],
        stride: Sequence[Any],
        start_offset: Any,
        blayout: TileLayout,
        slayout: TileLayout,
        fractal: int,
        pad: PadValue,
        span: Span | None = None,
        compact: CompactMode = CompactMode.null,
    ) -> TileView:
        where = _get_span_or_capture(span)
        return TileView(
            normalise_extents(valid_shape, "valid_shape", where), normalise_extents(stride, "stride", where),
            None if start_offset is None else _normalize_expr(start_offset, where),
            blayout, slayout, fractal, pad, compact,
        )  # fmt: skip

    def tensor_view(
        self, stride: Sequence[Any], layout: TensorLayout, span: Span | None = None
    ) -> TensorView:
        return TensorView(normalise_extents(stride, "stride", _get_span_or_capture(span)), layout)

    def tensor_type(
        self,
        shape: Sequence[Any],
        dtype: DataType,
        memref: MemRef | None = None,
        tensor_view: TensorView | None = None,
        span: Span | None = None,
    ) -> TensorType:
        extents = normalise_extents(shape, "shape", _get_span_or_capture(span))
        return TensorType(extents, dtype, memref, tensor_view)

    def tile_type(
        self,
        shape: Sequence[Any],
        dtype: DataType,
        memref: MemRef | None = None,
        tile_view: TileView | None = None,
        memory_space: MemorySpace | None = None,
        span: Span | None = None,
    ) -> TileType:
        extents = normalise_extents(shape, "shape", _get_span_or_capture(span))
        return TileType(extents, dtype, memref, tile_view, memory_space)
