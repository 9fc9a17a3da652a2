"""One operator call to be rendered: its operands in C++, and where its result goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pypto import ir
from pypto.codegen.kernel.elements import Element, element_of, literal
from pypto.codegen.kernel.emitter import Emitter
from pypto.codegen.kernel.errors import place
from pypto.codegen.kernel.layout import TileLayout, is_same, tile_layout, valid_extents
from pypto.codegen.kernel.scalars import scalar_element
from pypto.core.span import Span
from pypto.ir.op_registry import OpDef


@dataclass(frozen=True, slots=True, eq=False)
class OpContext:
    """What a renderer needs to know about a call.

    Attributes:
        result: the variable that is assigned, None for a call as a statement.
    """

    emitter: Emitter
    call: ir.Call
    definition: OpDef
    result: ir.Var | None
    span: Span

    # ---- operands -----------------------------------------------------------------------------------------

    @property
    def args(self) -> Sequence[ir.Expr]:
        return self.call.args_

    def keyword(self, name: str, default: Any = None) -> Any:
        return self.call.kwargs_.get(name, default)

    def name(self, index: int) -> str:
        """C++ name of a tile or tensor operand."""
        return self.emitter.name(self.args[index])

    def is_tile(self, index: int) -> bool:
        return isinstance(self.args[index].type, ir.TileType)

    def layout(self, index: int) -> TileLayout:
        return self.emitter.tile(self.args[index]).layout

    def scalar(self, index: int) -> str:
        return self.emitter.scalar(self.args[index])

    def elements(self, index: int) -> tuple[ir.Expr, ...]:
        """The elements of a tuple operand."""
        arg = self.args[index]
        if not isinstance(arg, ir.MakeTuple):
            raise ValueError(f"argument {index} must be a literal tuple")
        return arg.elements_

    def list_of(self, exprs: Sequence[ir.Expr]) -> str:
        return ", ".join(self.emitter.scalar(expr) for expr in exprs)

    def scalar_as(self, index: int, element: Element) -> str:
        """A scalar operand converted to an element type: constants now, others when the kernel runs."""
        arg = self.args[index]
        if isinstance(arg, (ir.ConstInt, ir.ConstFloat, ir.ConstBool)):
            return literal(arg.value, element)
        text = self.scalar(index)
        source = scalar_element(arg)
        if source.stored == element.stored:
            return text
        if element.is_narrow:
            return f"pypto::round_to<{element.stored}>({text})"
        return text if source.compute == element.compute else f"pypto::convert<{element.compute}>({text})"

    @property
    def detail(self) -> str:
        """C++ string that names the operator, the kernel and the line, for checked mode."""
        where = place(self.span)
        at = f" at {where}" if where else ""
        return f'"{self.definition.name}{at} in kernel {self.emitter.func.name}"'

    # ---- result -------------------------------------------------------------------------------------------

    @property
    def result_element(self) -> Element:
        assert isinstance(self.call.type, (ir.TileType, ir.ScalarType))
        return element_of(self.call.type.dtype)

    @property
    def result_layout(self) -> TileLayout:
        """Layout of a tile result, whether or not it is bound to a variable."""
        value = self.emitter.plan.values.get(self.result) if self.result is not None else None
        if value is not None:
            return value.layout
        assert isinstance(self.call.type, ir.TileType)
        return tile_layout(self.call.type)

    def declare(self, valid: tuple[str, str] | None) -> str | None:
        """Declare the fresh tile of the result; None if nobody uses it. `valid` applies if the type is
        valid in part.
        """
        if self.result is None:
            return None
        is_full = valid_extents(self.call.type) is None
        return self.emitter.declare_tile(self.result, None if is_full else valid)

    def declare_typed(self) -> str | None:
        """Declare the result with the valid extents of its type."""
        return self.declare(self.emitter.typed_valid(self.call.type))

    def declare_like(self, index: int) -> str | None:
        """Declare the result with the valid extents that operand `index` has when the kernel runs."""
        layout, source = self.result_layout, self.layout(index)
        if (layout.rows, layout.cols) == (source.rows, source.cols):
            name = self.name(index)
            return self.declare((f"{name}.valid_rows", f"{name}.valid_cols"))
        return self.declare_typed()

    def update(self, index: int) -> str:
        """The tile that the operator updates in place, as the result: its valid extents become those of
        the type.
        """
        name = self.name(index)
        if self.result is None:
            return name
        value = self.emitter.plan.values[self.result]
        if value.copies is not None:
            fresh = self.declare_like(index)
            assert fresh is not None
            self.emitter.line(f"pypto::copy({fresh}, {name});")
            return fresh
        self.bind_update(index, name)
        return self.emitter.names[self.result]

    def bind_update(self, index: int, name: str) -> None:
        """Let the result be operand `index`, with other valid extents where its type says so."""
        assert self.result is not None
        before, after = self.args[index].type, self.call.type
        assert isinstance(before, ir.TileType) and isinstance(after, ir.TileType)
        old, new = valid_extents(before), valid_extents(after)
        if (old is None and new is None) or (old is not None and new is not None and is_same(old, new)):
            self.emitter.bind(self.result, name)
            return
        if new is not None and not self.emitter.knows(after):
            self.emitter.bind(self.result, name)
            return
        valid = self.emitter.typed_valid(after)
        layout = self.layout(index)
        rows, cols = valid if valid is not None else (str(layout.rows), str(layout.cols))
        fresh = self.emitter.bind(self.result)
        self.emitter.line(f"auto {fresh} = pypto::with_valid({name}, {rows}, {cols});")
