"""The text of a kernel in the making: lines, names, and what each variable is in C++."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pypto import ir
from pypto.codegen.kernel.elements import element_of
from pypto.codegen.kernel.errors import KernelError, place
from pypto.codegen.kernel.layout import fold_valid, valid_extents
from pypto.codegen.kernel.scalars import ScalarRenderer
from pypto.codegen.kernel.storage import StoragePlan, TileValue
from pypto.core.span import Span
from pypto.ir.walk import vars_in

_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const constexpr
const_cast continue decltype default delete do double dynamic_cast else enum explicit export extern false
float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq
private protected public register reinterpret_cast return short signed sizeof static static_assert
static_cast struct switch template this thread_local throw true try typedef typeid typename union unsigned
using virtual void volatile wchar_t while xor xor_eq
"""
_OURS = "args kernel kernel_entry kernel_workspace_bytes pypto scratch a b c d e f"
_RESERVED = frozenset((_KEYWORDS + _OURS).split())


class Emitter:
    """Collects the lines of one kernel body."""

    def __init__(
        self, func: ir.Function, plan: StoragePlan, roots: dict[ir.Var, ir.Var], *, show_places: bool = True
    ) -> None:
        self.func = func
        self._show_places = show_places
        self.plan = plan
        self.roots = roots
        self.names: dict[ir.Var, str] = {}
        self.part_names: dict[tuple[ir.Var, int], str] = {}
        self.headers: set[str] = set()
        self.needs_scratch = False
        self.lines: list[str] = []
        self._taken: set[str] = set()
        self._indent = 1
        self._place = ""
        self.scalar = ScalarRenderer(self.names, self._define_scalar, self._nested_call)

    # ---- lines --------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("    " * self._indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """`head { ... }`."""
        self.line(f"{head} {{")
        self._indent += 1
        try:
            yield
        finally:
            self._indent -= 1
            self.line("}")
            self._place = ""

    def reopen(self, text: str) -> None:
        """A line such as `} else {` in the middle of a block."""
        self._indent -= 1
        self.line(text)
        self._indent += 1
        self._place = ""

    def source(self, stmt: ir.Stmt) -> None:
        """Comments that lead back to the program: its own comments, and the line, when it is another one."""
        for comment in stmt.leading_comments:
            self.line(f"// {_one_line(comment)}")
        where = place(stmt.span) if self._show_places else ""
        if where and where != self._place:
            self._place = where
            self.line(f"// {where}")

    # ---- names --------------------------------------------------------------------------------------------

    def new_name(self, hint: str) -> str:
        """A C++ identifier close to `hint` that is not in use."""
        base = re.sub(r"\W", "_", hint, flags=re.ASCII) or "v"
        if base[0].isdigit():
            base = f"v{base}"
        name, count = base, 1
        while name in self._taken or name in _RESERVED:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        return name

    def bind(self, var: ir.Var, text: str | None = None) -> str:
        """Give `var` a name of its own, or let it be `text`."""
        self.names[var] = self.new_name(var.name_hint) if text is None else text
        return self.names[var]

    def name(self, expr: ir.Expr) -> str:
        """C++ name of a tile or tensor operand.

        Raises:
            ValueError: the operand is not a variable in scope.
        """
        if not isinstance(expr, ir.Var):
            raise ValueError(
                f"{type(expr).__name__} is not supported as an operand; assign it to a variable first"
            )
        var = self.roots.get(expr, expr)
        name = self.names.get(expr) or self.names.get(var)
        if name is None:
            raise ValueError(f"variable '{expr.name_hint}' is not defined here")
        return name

    def tile(self, expr: ir.Expr) -> TileValue:
        """The planned value of a tile operand."""
        value = self.plan.values.get(expr) if isinstance(expr, ir.Var) else None
        if value is None:
            raise ValueError("a tile operand must be a variable")
        return value

    # ---- tiles --------------------------------------------------------------------------------------------

    def tile_text(self, value: TileValue, valid: tuple[str, str] | None) -> str:
        """The tile of `value` at its place in the workspace; `valid` in full if None."""
        layout = value.layout
        extents = "" if valid is None else f", {valid[0]}, {valid[1]}"
        tile = f"kernel.tile<{layout.element.stored}, {layout.rows}, {layout.cols}>"
        return f"{tile}({self.plan.offset(value.slot)}{extents})"

    def declare_tile(self, var: ir.Var, valid: tuple[str, str] | None) -> str:
        """`auto <name> = kernel.tile<...>(...);` for a fresh tile."""
        text = self.tile_text(self.plan.values[var], valid)
        name = self.bind(var)
        self.line(f"auto {name} = {text};")
        return name

    def declare_parts(self, var: ir.Var) -> list[str]:
        """Declare the tiles of a tuple result, valid in full; elements are taken from them by name."""
        assert isinstance(var.type, ir.TupleType)
        base = self.bind(var)
        names = []
        for index in range(len(var.type.types_)):
            name = self.part_names[(var, index)] = self.new_name(f"{base}_{index}")
            self.line(f"auto {name} = {self.tile_text(self.plan.parts[(var, index)], None)};")
            names.append(name)
        return names

    def typed_valid(self, type: ir.Type) -> tuple[str, str] | None:
        """Valid rows and columns as the type says; None if in full."""
        assert isinstance(type, ir.TileType)
        valid = valid_extents(type)
        if valid is None:
            return None
        factors, cols = fold_valid(type, valid)
        rows = " * ".join(self.scalar.render(factor).operand for factor in factors) or "1"
        return rows, "1" if cols is None else self.scalar(cols)

    def knows(self, type: ir.TileType) -> bool:
        """Whether all variables in the valid extents of `type` are in scope."""
        valid = valid_extents(type) or ()
        return all(var in self.names for extent in valid for var in vars_in(extent))

    # ---- scalars ------------------------------------------------------------------------------------------

    def define_scalar(self, var: ir.Var, text: str) -> None:
        """`const <ctype> <name> = <text>;`."""
        assert isinstance(var.type, ir.ScalarType)
        ctype = element_of(var.type.dtype).compute
        self.line(f"const {ctype} {self.bind(var)} = {text};")

    def _define_scalar(self, ctype: str, text: str) -> str:
        name = self.new_name("part")
        self.line(f"const {ctype} {name} = {text};")
        return name

    def _nested_call(self, call: ir.Call) -> str:
        raise ValueError(f"operator '{call.op.name}' is not supported inside an expression; assign it first")

    # ---- errors -------------------------------------------------------------------------------------------

    @contextmanager
    def located(self, span: Span, op: str = "") -> Iterator[None]:
        """Errors inside name the kernel, the operator and the line of the program."""
        try:
            yield
        except KernelError:
            raise
        except ValueError as error:
            prefix = f"operator '{op}': " if op else ""
            raise KernelError(f"{prefix}{error}", kernel=self.func.name, span=span) from error


def _one_line(text: str) -> str:
    return " ".join(text.replace("\\", "/").split())
