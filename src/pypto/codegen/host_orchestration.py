"""The host function of a program for several ranks, as Python.

The text is `orchestration/host_orch.py`: one function that takes the host runtime `rt` and the arguments.
What it asks of `rt` is the interface of `pypto.runtime.distributed.host`; everything else is plain loops and
scalars.
"""

from __future__ import annotations

import keyword
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pypto import ir
from pypto.ir.entry_points import host_entry
from pypto.ir.meaning import COLLECTIVES
from pypto.ir.op_registry import get_op_def
from pypto.ir.return_lineage import ReturnLineage

if TYPE_CHECKING:
    from pypto.codegen.builtin_templates import BuiltinNextLevelSpec

__all__ = ["DistributedCodegen", "generate_host_orchestration", "is_host_sub_worker", "sub_worker_text"]

_BINARY: dict[type[ir.Expr], str] = {
    ir.Add: "{} + {}", ir.Sub: "{} - {}", ir.Mul: "{} * {}", ir.FloorDiv: "{} // {}", ir.FloorMod: "{} % {}",
    ir.FloatDiv: "{} / {}", ir.Pow: "{} ** {}", ir.Min: "min({}, {})", ir.Max: "max({}, {})",
    ir.BitAnd: "{} & {}", ir.BitOr: "{} | {}", ir.BitXor: "{} ^ {}", ir.BitShiftLeft: "{} << {}",
    ir.BitShiftRight: "{} >> {}", ir.Eq: "{} == {}", ir.Ne: "{} != {}", ir.Lt: "{} < {}", ir.Le: "{} <= {}",
    ir.Gt: "{} > {}", ir.Ge: "{} >= {}", ir.And: "{} and {}", ir.Or: "{} or {}",
    ir.Xor: "bool({}) != bool({})",
}  # fmt: skip
_UNARY: dict[type[ir.Expr], str] = {
    ir.Neg: "-{}", ir.Abs: "abs({})", ir.Not: "not {}", ir.BitNot: "~{}",
}  # fmt: skip
_DIRECTIONS = {ir.ArgDirection.Input: "r", ir.ArgDirection.Scalar: "s"}


class DistributedCodegen:
    """Generates the host code of a lowered program."""

    def generate(self, program: ir.Program) -> str:
        """The text of `host_orch.py`. Raises `ValueError` when the program has no host function."""
        host = host_entry(program)
        if host is None:
            raise ValueError(
                f"the program '{program.name}' has no host function that spreads work over ranks"
            )
        return generate_host_orchestration(program, host)

    def get_builtin_next_level_specs(self) -> list[BuiltinNextLevelSpec]:
        """The kernels from templates that the generated code needs: none, since the host runtime itself does
        what a host function may ask for, and anything else is refused.
        """
        return []


def generate_host_orchestration(program: ir.Program, host: ir.Function) -> str:
    """The text of `host_orch.py`.

    Raises:
        ValueError: the host function does what only a rank can do; names the line.
    """
    return _Writer(program, host).text()


@dataclass(slots=True)
class _Writer:
    program: ir.Program
    host: ir.Function
    names: dict[ir.Var, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    taken: set[str] = field(
        default_factory=lambda: {"rt", "range", "min", "max", "abs", "int", "float", "bool"}
    )
    indent: int = 1
    lineage: ReturnLineage = field(init=False)

    def __post_init__(self) -> None:
        self.lineage = ReturnLineage(self.program.functions_)

    def text(self) -> str:
        params = ", ".join(["rt", *(self.bind(param) for param in self.host.params_)])
        self.block(self.host.body)
        if not self.lines:
            self.line("pass")
        head = [f'"""What the host of program {self.program.name} does. Generated."""', "", ""]
        return "\n".join([*head, f"def {self.host.name}({params}):", *self.lines, ""])

    # -- names and lines ---------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def bind(self, var: ir.Var) -> str:
        base = re.sub(r"\W", "_", var.name_hint, flags=re.ASCII) or "v"
        if base[0].isdigit() or keyword.iskeyword(base):
            base = f"v_{base}"
        name, count = base, 1
        while name in self.taken:
            count += 1
            name = f"{base}_{count}"
        self.taken.add(name)
        self.names[var] = name
        return name

    def refuse(self, what: str, span: ir.Span) -> ValueError:
        return ValueError(f"the host function '{self.host.name}' {what} [{span}]")

    # -- statements --------------------------------------------------------------------------------------

    def block(self, body: ir.Stmt) -> Sequence[ir.Expr]:
        """Write statements; gives what a trailing `yield` yields."""
        yielded: Sequence[ir.Expr] = ()
        for stmt in ir.flatten_to_stmts(body):
            if isinstance(stmt, ir.YieldStmt):
                yielded = stmt.value_
            else:
                self.statement(stmt)
        return yielded

    def nested(self, body: ir.Stmt | None, targets: Sequence[ir.Var]) -> None:
        self.indent += 1
        start = len(self.lines)
        yielded = self.block(body) if body is not None else ()
        if targets:
            left = ", ".join(self.names[target] for target in targets)
            self.line(f"{left} = {', '.join(map(self.value, yielded))}")
        if len(self.lines) == start:
            self.line("pass")
        self.indent -= 1

    def statement(self, stmt: ir.Stmt) -> None:
        if isinstance(stmt, ir.AssignStmt):
            text = self.value(stmt.value)
            self.line(f"{self.bind(stmt.var)} = {text}")
        elif isinstance(stmt, ir.EvalStmt):
            self.line(self.value(stmt.expr))
        elif isinstance(stmt, ir.ReturnStmt):
            self.line(f"return {', '.join(map(self.value, stmt.value_))}".rstrip())
        elif isinstance(stmt, (ir.ForStmt, ir.WhileStmt)):
            self.loop(stmt)
        elif isinstance(stmt, ir.IfStmt):
            self.branch(stmt)
        elif isinstance(stmt, ir.ScopeStmt):
            self.block(stmt.body)
        else:
            raise self.refuse(f"contains a {type(stmt).__name__}, which only a rank can run", stmt.span)

    def loop(self, loop: ir.ForStmt | ir.WhileStmt) -> None:
        for arg in loop.iter_args_:
            initial = self.value(arg.initValue)
            self.line(f"{self.bind(arg)} = {initial}")
        if isinstance(loop, ir.ForStmt):
            bounds = ", ".join(map(self.value, (loop.start, loop.stop, loop.step)))
            self.line(f"for {self.bind(loop.loop_var)} in range({bounds}):")
        else:
            self.line("while True:")
            self.line(f"    if not ({self.value(loop.condition)}):")
            self.line("        break")
        self.nested(loop.body, loop.iter_args_)
        for arg, result in zip(loop.iter_args_, loop.return_vars_, strict=True):
            self.names[result] = self.names[arg]

    def branch(self, stmt: ir.IfStmt) -> None:
        condition = self.value(stmt.condition)
        for result in stmt.return_vars_:
            self.bind(result)
        self.line(f"if {condition}:")
        self.nested(stmt.then_body, stmt.return_vars_)
        if stmt.else_body is not None:
            self.line("else:")
            self.nested(stmt.else_body, stmt.return_vars_)

    # -- expressions -------------------------------------------------------------------------------------

    def value(self, expr: ir.Expr) -> str:
        if isinstance(expr, ir.Var):
            return self.names[expr]
        if isinstance(expr, (ir.ConstInt, ir.ConstFloat, ir.ConstBool)):
            return repr(expr.value)
        if isinstance(expr, ir.MakeTuple):
            return self.sequence(expr.elements_)
        if isinstance(expr, ir.TupleGetItemExpr):
            return f"{self.value(expr.tuple)}[{expr.index}]"
        if isinstance(expr, ir.Call):
            return self.call(expr)
        if isinstance(expr, ir.Cast):
            kind = expr.type
            assert isinstance(kind, ir.ScalarType)
            function = (
                "bool" if kind.dtype == ir.DataType.BOOL else "float" if kind.dtype.is_float() else "int"
            )
            return f"{function}({self.value(expr.operand)})"
        if isinstance(expr, ir.BinaryExpr):
            return f"({_BINARY[type(expr)].format(self.value(expr.left), self.value(expr.right))})"
        if isinstance(expr, ir.UnaryExpr):
            return f"({_UNARY[type(expr)].format(self.value(expr.operand))})"
        raise self.refuse(f"contains a {type(expr).__name__}, which only a rank can run", expr.span)

    def sequence(self, items: Sequence[ir.Expr]) -> str:
        inner = ", ".join(map(self.value, items))
        return f"({inner},)" if len(items) == 1 else f"({inner})"

    def call(self, call: ir.Call) -> str:
        if isinstance(call.op, ir.GlobalVar):
            return self.dispatch(call, call.op.name)
        write = _OPERATORS.get(call.op.name)
        if write is None:
            raise self.refuse(f"uses '{call.op.name}', which only a rank can run", call.span)
        return write(self, call)

    def dispatch(self, call: ir.Call, name: str) -> str:
        callee = self.program.functions_.get(name)
        if callee is None:
            raise self.refuse(f"calls '{name}', which is not part of the program", call.span)
        arguments = self.sequence(call.args_)
        if is_host_sub_worker(callee):
            return f"rt.sub_worker({name!r}, {arguments})"
        if callee.func_type is not ir.FunctionType.Orchestration:
            raise self.refuse(
                f"calls '{name}', which orchestrates nothing; call a function that dispatches it on a rank",
                call.span,
            )
        directions = call.attrs_.get("arg_directions", ())
        access = "".join(_DIRECTIONS.get(direction, "w") for direction in directions)
        device = call.attrs_.get("device")
        place = "" if device is None else f", device={self.value(device)}"
        returned = self.lineage.returned_params(callee)
        if call.type != ir.UnknownType.get() and None in returned:
            raise self.refuse(
                f"uses a result of '{name}' that is none of its parameters; write it to an Out parameter",
                call.span,
            )
        return f"rt.dispatch({name!r}, {arguments}, {access!r}, {tuple(returned)}{place})"


def is_host_sub_worker(function: ir.Function) -> bool:
    """Whether a function is plain Python that runs on the host."""
    return function.role is ir.Role.SubWorker and isinstance(function.body, ir.InlineStmt)


def sub_worker_text(function: ir.Function) -> str:
    """The file of a SubWorker; without a function when the body is given at run time."""
    body = function.body
    assert isinstance(body, ir.InlineStmt)
    if function.requires_runtime_binding:
        return f'"""SubWorker {function.name}: its body is given as a callback."""\n'
    params = ", ".join(param.name_hint for param in function.params_)
    return f"def {function.name}({params}):\n{textwrap.indent(body.body or 'pass', '    ')}\n"


# -- operators of a host -------------------------------------------------------------------------------------


def _slice(w: _Writer, call: ir.Call) -> str:
    source, shape, offset = map(w.value, call.args_[:3])
    dropped = call.args_[4] if len(call.args_) > 4 else None
    axes = w.value(dropped) if dropped is not None else "()"
    return f"rt.slice({source}, {shape}, {offset}, {axes})"


def _dtype(call: ir.Call) -> str:
    kind = call.type
    assert isinstance(kind, ir.TensorType)
    return repr(str(kind.dtype))


def _window(w: _Writer, call: ir.Call) -> str:
    return f"rt.window({w.value(call.args_[0])}, {w.value(call.args_[1])}, {_dtype(call)})"


def _alloc(w: _Writer, call: ir.Call) -> str:
    name = call.kwargs_.get("name", "")
    return f"rt.alloc_window_buffer({name!r}, {w.value(call.args_[0])})"


def _create(w: _Writer, call: ir.Call) -> str:
    return f"rt.create({w.value(call.args_[0])}, {_dtype(call)})"


def _element(function: str) -> Callable[[_Writer, ir.Call], str]:
    return lambda w, call: f"rt.{function}({', '.join(map(w.value, call.args_))})"


def _collective(w: _Writer, call: ir.Call) -> str:
    options = "".join(f", {key}={int(call.kwargs_[key])}" for key in ("op", "root") if key in call.kwargs_)
    definition = get_op_def(call.op.name)
    assert definition is not None and definition.reuses is not None
    kind = call.op.name.rpartition(".")[2]
    return f"rt.collective({kind!r}, {w.sequence(call.args_)}, {definition.reuses}{options})"


_OPERATORS: dict[str, Callable[[_Writer, ir.Call], str]] = {
    **{f"pld.tensor.{kind}": _collective for kind in COLLECTIVES},
    "pld.system.world_size": lambda w, call: "rt.world_size()",
    "pld.tensor.alloc_window_buffer": _alloc,
    "pld.tensor.window": _window,
    "tensor.slice": _slice,
    "tensor.create": _create,
    "tensor.read": _element("read"),
    "tensor.write": _element("write"),
    "tensor.dim": _element("dim"),
    "tensor.reshape": lambda w, call: f"rt.reshape({w.value(call.args_[0])}, {w.value(call.args_[1])})",
}
