"""The walk over the statements of an orchestration: one emitter per kind, in program order.

Code generation decides nothing that a pass has decided. Recursion follows the nesting of bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pypto.codegen.orchestration.buffers import allocate_ahead, allocate_in_place, is_create
from pypto.codegen.orchestration.carries import Target, assign_targets, is_constant
from pypto.codegen.orchestration.control_flow import emit_for, emit_if, emit_while
from pypto.codegen.orchestration.cpp_types import cpp_type
from pypto.codegen.orchestration.emission import Binding, Block, BlockKind, Emission, TupleBinding
from pypto.codegen.orchestration.launches import Launches
from pypto.codegen.orchestration.results import bind_item
from pypto.codegen.orchestration.scalars import is_non_negative, scalar_text
from pypto.codegen.orchestration.tasks import submit_task
from pypto.codegen.orchestration.tensor_ops import emit_op
from pypto.core.dtype import DataType
from pypto.core.errors import InternalError, located
from pypto.ir.expr import Call, Expr, GlobalVar, MakeTuple, Submit, TupleGetItemExpr, Var
from pypto.ir.scope import CommDomainScopeStmt, RuntimeScopeStmt
from pypto.ir.stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    InlineStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from pypto.ir.types import ScalarType

__all__ = ["StatementEmitter", "body_statements"]

Targets = Sequence[Target | None]


def body_statements(body: Stmt) -> list[Stmt]:
    """The statements of a body with nested sequences spliced in."""
    flat: list[Stmt] = []
    stack: list[Stmt] = [body]
    while stack:
        stmt = stack.pop()
        if isinstance(stmt, SeqStmts):
            stack += reversed(stmt.stmts_)
        else:
            flat.append(stmt)
    return flat


class StatementEmitter:
    """Emits the bodies of one function."""

    def __init__(self, emission: Emission) -> None:
        self._emission = emission
        self._launches = Launches(emission.program)
        self._loops: list[Targets] = []  # of the enclosing loops, innermost last

    def body(self, emission: Emission, body: Stmt, targets: Targets = ()) -> None:
        """The statements of one sequence; a yield at its end assigns `targets`."""
        stmts = body_statements(body)
        allocated = allocate_ahead(emission, stmts)
        for stmt in stmts:
            if id(stmt) in allocated:
                continue
            emitter = _EMITTERS.get(type(stmt))
            if emitter is None:
                raise InternalError(
                    located(
                        f"a {type(stmt).__name__} reached code generation of '{emission.function.name}'",
                        stmt.span,
                    )
                )
            emitter(self, stmt, targets)

    # --- plain
    # statements

    def assign(self, stmt: AssignStmt, _targets: Targets) -> None:
        emission, var, value = self._emission, stmt.var, stmt.value
        if isinstance(value, Call | Submit):
            self._call(value, var, stmt)
        elif isinstance(value, TupleGetItemExpr):
            bind_item(emission, var, value)
        elif isinstance(value, MakeTuple):
            emission.bind(var, TupleBinding(tuple(self._element(each) for each in value.elements_)))
        elif isinstance(value, Var) and not self._is_plain_scalar(value):
            found = emission.bindings.get(id(value))
            emission.bind(
                var, found if isinstance(found, TupleBinding) else emission.binding(value, stmt.span)
            )
        else:
            self._scalar(var, value)

    def _element(self, value: Expr) -> Binding:
        if isinstance(value, Var):
            return self._emission.binding(value, value.span)
        return Binding(scalar_text(self._emission, value), constant=value if is_constant(value) else None)

    @staticmethod
    def _is_plain_scalar(value: Var) -> bool:
        return isinstance(value.type, ScalarType) and value.type.dtype is not DataType.TASK_ID

    def _scalar(self, var: Var, value: Expr) -> None:
        if not isinstance(var.type, ScalarType):
            raise InternalError(
                located(
                    f"'{var.name_hint}' is assigned a {type(value).__name__}, which has no text", value.span
                )
            )
        non_negative = is_non_negative(self._emission, value)
        text = scalar_text(self._emission, value)
        self._emission.declare(var, cpp_type(var.type.dtype), text, non_negative=non_negative)

    def evaluate(self, stmt: EvalStmt, _targets: Targets) -> None:
        if not isinstance(stmt.expr, Call | Submit):
            raise InternalError(
                located(f"a {type(stmt.expr).__name__} is evaluated for no effect", stmt.span)
            )
        self._call(stmt.expr, None, stmt)

    def _call(self, call: Call | Submit, result: Var | None, stmt: Stmt) -> None:
        if isinstance(call, Submit) or isinstance(call.op, GlobalVar):
            submit_task(self._emission, self._launches, call, result)
        elif is_create(stmt):
            assert isinstance(stmt, AssignStmt)
            allocate_in_place(self._emission, stmt)
        else:
            emit_op(self._emission, call, result)

    def assign_yield(self, stmt: YieldStmt, targets: Targets) -> None:
        if targets or stmt.value_:
            assign_targets(self._emission, stmt, targets)

    def leave(self, stmt: ReturnStmt, _targets: Targets) -> None:
        """Nothing: results reach the host through tensor parameters. But nothing may follow either."""
        block: Block | None = self._emission.block
        while block is not None:
            if block.kind in (BlockKind.LOOP, BlockKind.BRANCH):
                raise ValueError(
                    located(
                        "a return inside a loop or branch of an Orchestration cannot be compiled", stmt.span
                    )
                )
            block = block.parent

    # --- nested statements

    def loop(self, stmt: ForStmt, _targets: Targets) -> None:
        emit_for(self._emission, stmt, self._loop_body)

    def conditional_loop(self, stmt: WhileStmt, _targets: Targets) -> None:
        emit_while(self._emission, stmt, self._loop_body)

    def _loop_body(self, emission: Emission, body: Stmt, targets: Targets) -> None:
        self._loops.append(targets)
        self.body(emission, body, targets)
        self._loops.pop()

    def branch(self, stmt: IfStmt, _targets: Targets) -> None:
        emit_if(self._emission, stmt, self.body)

    def scope(self, stmt: RuntimeScopeStmt, targets: Targets) -> None:
        emission = self._emission
        emission.blank()
        emission.open(BlockKind.MANUAL_SCOPE if stmt.manual else BlockKind.AUTO_SCOPE)
        self.body(emission, stmt.body, targets)
        emission.close("PTO2_SCOPE(PTO2ScopeMode::MANUAL) {" if stmt.manual else "PTO2_SCOPE() {")

    def domain(self, stmt: CommDomainScopeStmt, _targets: Targets) -> None:
        raise ValueError(located("communication domains are not supported on a single chip", stmt.span))

    def jump(self, stmt: BreakStmt | ContinueStmt, _targets: Targets) -> None:
        """Leave or continue the innermost loop, which must carry no value to its next iteration.

        A jump does not say which version of a carried value it takes along.
        """
        word = "break" if isinstance(stmt, BreakStmt) else "continue"
        if not self._loops:
            raise InternalError(located(f"a {word} outside a loop", stmt.span))
        carried = [target.name for target in self._loops[-1] if target is not None]
        if carried:
            raise ValueError(
                located(
                    f"{word} is not supported in an Orchestration loop that carries a value, '{carried[0]}'; "
                    "guard the rest of the body with a condition instead",
                    stmt.span,
                )
            )
        self._emission.line(f"{word};")

    def refuse_inline(self, stmt: InlineStmt, _targets: Targets) -> None:
        raise ValueError(located("inline source text cannot be compiled into an orchestration", stmt.span))


_EMITTERS: dict[type[Stmt], Callable[..., None]] = {
    AssignStmt: StatementEmitter.assign,
    EvalStmt: StatementEmitter.evaluate,
    YieldStmt: StatementEmitter.assign_yield,
    ReturnStmt: StatementEmitter.leave,
    ForStmt: StatementEmitter.loop,
    WhileStmt: StatementEmitter.conditional_loop,
    IfStmt: StatementEmitter.branch,
    RuntimeScopeStmt: StatementEmitter.scope,
    CommDomainScopeStmt: StatementEmitter.domain,
    BreakStmt: StatementEmitter.jump,
    ContinueStmt: StatementEmitter.jump,
    InlineStmt: StatementEmitter.refuse_inline,
}
