"""Loops and branches.

A pass has decided which carries are new values and which are other names for their initial value; the stamps
of `ClassifyIterArgCarry` say so. Parallel loops are ordinary loops here: what runs in parallel are the tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pypto.codegen.orchestration.carries import (
    Target,
    clear_slots,
    emit_declaration,
    is_constant,
    raw_name,
    slot_fill,
    value_binding,
    value_type,
)
from pypto.codegen.orchestration.emission import Binding, BlockKind, Emission
from pypto.codegen.orchestration.scalars import is_non_negative, scalar_text
from pypto.core.dtype import DataType
from pypto.core.errors import InternalError, located
from pypto.ir.enums import ForKind
from pypto.ir.expr import Call, ConstInt, Expr, IterArg, Var
from pypto.ir.stmt import AssignStmt, ForStmt, IfStmt, Stmt, WhileStmt, YieldStmt
from pypto.ir.types import ArrayType, ScalarType, TensorType
from pypto.ir.walk import walk, walk_stmts
from pypto.passes.classify_iter_arg_carry import ends_with_one_id

__all__ = ["emit_for", "emit_if", "emit_while"]

Targets = Sequence[Target | None]
EmitBody = Callable[[Emission, Stmt, Targets], None]


# --- loops

_LEAVE = "if (rt_is_fatal()) break;"  # a failed or interrupted run ends, whatever the loop waits for
_SHORT_LOOP = 1024


def emit_for(emission: Emission, loop: ForStmt, emit_body: EmitBody) -> None:
    """A counted loop with its carries."""
    if loop.kind in (ForKind.Unroll, ForKind.Pipeline):
        raise InternalError(
            located(
                f"a loop of kind {loop.kind.name} reached code generation of '{emission.function.name}'",
                loop.span,
            )
        )
    start, stop, step = (scalar_text(emission, bound) for bound in (loop.start, loop.stop, loop.step))
    counter = emission.names.of_variable(loop.loop_var, fallback="i")
    targets = [
        _for_carry(emission, loop, index, counter, start, step) for index in range(len(loop.iter_args_))
    ]
    emission.open(BlockKind.LOOP)
    counts_up = isinstance(loop.step, ConstInt) and loop.step.value > 0
    non_negative = counts_up and is_non_negative(emission, loop.start)
    emission.bind(loop.loop_var, Binding(counter, emission.block, non_negative=non_negative))
    if not _is_short(loop):
        emission.line(_LEAVE)
    emit_body(emission, loop.body, targets)
    condition = _loop_condition(loop.step, counter, stop, step)
    emission.close(f"for (int64_t {counter} = {start}; {condition}; {counter} += {step}) {{")


def _is_short(loop: ForStmt) -> bool:
    start, stop, step = loop.start, loop.stop, loop.step
    if isinstance(start, ConstInt) and isinstance(stop, ConstInt) and isinstance(step, ConstInt):
        return step.value != 0 and (stop.value - start.value) // step.value <= _SHORT_LOOP
    return False


def _loop_condition(step: Expr, counter: str, stop: str, step_text: str) -> str:
    if isinstance(step, ConstInt):
        if step.value == 0:
            return "false"
        return f"{counter} {'<' if step.value > 0 else '>'} {stop}"
    return f"((({step_text}) > 0 && {counter} < {stop}) || (({step_text}) < 0 && {counter} > {stop}))"


def _for_carry(
    emission: Emission, loop: ForStmt, index: int, counter: str, start: str, step: str
) -> Target | None:
    """Declare one carry, bind the iter-arg for the body and the loop's result."""
    arg, result = loop.iter_args_[index], loop.return_vars_[index]
    init = value_binding(emission, arg.initValue)
    slots = int(loop.attrs_.get(f"iter_arg_array_size_{index}", 0))
    if slots:
        return _id_array_carry(emission, loop, index, init, slots, _slot_index(counter, start, step))
    if not loop.attrs_.get(f"iter_arg_rebind_{index}", True) and not isinstance(arg.type, ArrayType):
        emission.bind(arg, init)
        emission.bind(result, init)
        return None
    return _carry(emission, arg, result, init)


def _slot_index(counter: str, start: str, step: str) -> str:
    index = counter if start == "0" else f"({counter} - {start})"
    return index if step == "1" else f"{index} / {step}"


def _id_array_carry(
    emission: Emission, loop: ForStmt, index: int, init: Binding, slots: int, slot: str
) -> Target:
    """The ids of all iterations of a parallel loop, or of the parallel loop inside a sequential one."""
    arg, result = loop.iter_args_[index], loop.return_vars_[index]
    name = raw_name(emission, result)
    emit_declaration(emission, "PTO2TaskId", name, slots=slots)
    _fill_from(emission, name, slots, init)
    carried = _outer_binding(emission, name, slots)
    yielded = _id_slots(emission, _yielded(loop.body, index), loop.body)
    one = _outer_binding(emission, f"{name}[0]", 0)
    emission.bind(result, one if ends_with_one_id(loop, yielded) else carried)
    is_parallel = loop.kind is ForKind.Parallel
    emission.bind(arg, init if is_parallel else carried)
    return Target(name, "PTO2TaskId", slots, slot if is_parallel else "")


def _fill_from(emission: Emission, name: str, slots: int, init: Binding) -> None:
    """Start an array of ids: from another array slot by slot, or from one id in every slot."""
    if not init.slots:
        emission.line(slot_fill("__init_i", slots, name, init.text))
        return
    given = min(slots, init.slots)
    emission.line(slot_fill("__init_i", given, name, f"{init.text}[__init_i]"))
    clear_slots(emission, name, given, slots)


def _carry(emission: Emission, arg: IterArg, result: Var, init: Binding, slots: int = 0) -> Target | None:
    """A variable that starts as `init` and is assigned by every yield; with `slots`, an array of ids."""
    if isinstance(arg.type, ArrayType):
        return _array_carry(emission, arg, result, init)
    name = raw_name(emission, result)
    if slots:
        emit_declaration(emission, "PTO2TaskId", name, slots=slots)
        _fill_from(emission, name, slots, init)
        carried = _outer_binding(emission, name, slots)
        emission.bind(arg, carried)
        emission.bind(result, carried)
        return Target(name, "PTO2TaskId", slots)
    kind = value_type(result)
    if emission.outside_manual_scope() and not _is_known_ahead(emission, init, arg.initValue):
        emit_declaration(emission, kind, name, start=f"{kind}{{}}")
        emission.line(f"{name} = {init.text};")
    else:
        emit_declaration(emission, kind, name, start=init.text)
    carried = _outer_binding(emission, name, 0)
    emission.bind(arg, carried)
    emission.bind(result, carried)
    return Target(name, kind)


def _is_known_ahead(emission: Emission, init: Binding, value: Expr) -> bool:
    """Whether an initial value can be read ahead of the current scope: nothing in the scope makes it."""
    if not isinstance(value, Var):
        return is_constant(value)
    return init.block is not emission.block and init.text not in emission.block.declared_ahead


def _array_carry(emission: Emission, arg: IterArg, result: Var, init: Binding) -> Target:
    """An array carry shares the array that it starts with."""
    assert isinstance(arg.type, ArrayType) and isinstance(arg.type.extent, ConstInt)
    extent = arg.type.extent.value
    kind = value_type(result)
    if init.slots == extent:
        emission.bind(arg, init)
        emission.bind(result, init)
        return Target(init.text, kind, extent)
    name = raw_name(emission, result)
    emit_declaration(emission, kind, name, slots=extent)
    emission.line(slot_fill("__init_i", extent, name, f"{init.text}[__init_i]"))
    carried = _outer_binding(emission, name, extent)
    emission.bind(arg, carried)
    emission.bind(result, carried)
    return Target(name, kind, extent)


def _outer_binding(emission: Emission, name: str, slots: int) -> Binding:
    block = emission.block.parent if emission.outside_manual_scope() else emission.block
    return Binding(name, block, slots=slots)


def emit_while(emission: Emission, loop: WhileStmt, emit_body: EmitBody) -> None:
    """A conditional loop; every carry is a variable that the condition reads."""
    targets = [_while_carry(emission, loop, index) for index in range(len(loop.iter_args_))]
    if any(isinstance(node, Call) and node.op.name == "tensor.read" for node in walk(loop.condition)):
        raise ValueError(
            located(
                "the condition of a while loop reads a tensor; read it into a variable that the loop carries",
                loop.span,
            )
        )
    condition = scalar_text(emission, loop.condition)
    emission.open(BlockKind.LOOP)
    emission.line(_LEAVE)
    emit_body(emission, loop.body, targets)
    emission.close(f"while ({condition}) {{")


def _while_carry(emission: Emission, loop: WhileStmt, index: int) -> Target | None:
    arg = loop.iter_args_[index]
    init = value_binding(emission, arg.initValue)
    yielded = _yielded(loop.body, index)
    slots = max(init.slots, _id_slots(emission, yielded, loop.body)) if _is_task_id(arg) else 0
    return _carry(emission, arg, loop.return_vars_[index], init, slots)


def _is_task_id(var: Var) -> bool:
    return isinstance(var.type, ScalarType) and var.type.dtype is DataType.TASK_ID


def _id_slots(emission: Emission, value: Expr | None, body: Stmt) -> int:
    """How many ids `value` will hold, which is known already or given a value in `body`."""
    if not isinstance(value, Var):
        return 0
    known = emission.bindings.get(id(value))
    if isinstance(known, Binding):
        return known.slots
    for stmt in walk_stmts(body):
        if isinstance(stmt, AssignStmt) and stmt.var is value:
            return _id_slots(emission, stmt.value, body)
        for index, result in enumerate(getattr(stmt, "return_vars_", ())):
            if result is value:
                return _result_slots(emission, stmt, index)
    return 0


def _result_slots(emission: Emission, stmt: Stmt, index: int) -> int:
    if isinstance(stmt, ForStmt):
        slots = int(stmt.attrs_.get(f"iter_arg_array_size_{index}", 0))
        inner = _id_slots(emission, _yielded(stmt.body, index), stmt.body) if slots else 0
        return 0 if slots and ends_with_one_id(stmt, inner) else slots
    bodies = [stmt.body] if isinstance(stmt, WhileStmt) else []
    bodies += [body for body in (stmt.then_body, stmt.else_body) if body] if isinstance(stmt, IfStmt) else []
    slots = [_id_slots(emission, _yielded(body, index), body) for body in bodies]
    if isinstance(stmt, WhileStmt):
        slots.append(_id_slots(emission, stmt.iter_args_[index].initValue, stmt.body))
    return max(slots, default=0)


# --- branches


def emit_if(emission: Emission, stmt: IfStmt, emit_body: EmitBody) -> None:
    """A branch; its results are declared before it and assigned by the yields."""
    targets = [_result(emission, stmt, index) for index in range(len(stmt.return_vars_))]
    condition = scalar_text(emission, stmt.condition)
    emission.open(BlockKind.BRANCH)
    emit_body(emission, stmt.then_body, targets)
    if stmt.else_body is None:
        emission.close(f"if ({condition}) {{")
        return
    emission.close(f"if ({condition}) {{", footer="")
    emission.open(BlockKind.BRANCH)
    emit_body(emission, stmt.else_body, targets)
    emission.close("} else {")


def _result(emission: Emission, stmt: IfStmt, index: int) -> Target:
    var = stmt.return_vars_[index]
    kind = value_type(var)
    name = raw_name(emission, var)
    if isinstance(var.type, ArrayType):
        assert isinstance(var.type.extent, ConstInt)
        slots = var.type.extent.value
        emit_declaration(emission, kind, name, slots=slots)
        emission.bind(var, _outer_binding(emission, name, slots))
        return Target(name, kind, slots)
    if isinstance(var.type, TensorType):
        emit_declaration(emission, kind, name, start=_placeholder(emission, stmt, index))
    else:
        slots = _result_slots(emission, stmt, index) if _is_task_id(var) else 0
        emit_declaration(emission, kind, name, slots=slots)
        emission.bind(var, _outer_binding(emission, name, slots))
        return Target(name, kind, slots)
    emission.bind(var, _outer_binding(emission, name, 0))
    return Target(name, kind)


def _placeholder(emission: Emission, stmt: IfStmt, index: int) -> str:
    """A tensor that exists before the branch, for the result to start with."""
    if emission.first_tensor is not None:
        return emission.first_tensor.text
    for body in (stmt.then_body, stmt.else_body):
        value = _yielded(body, index) if body is not None else None
        found = emission.bindings.get(id(value)) if isinstance(value, Var) else None
        if isinstance(found, Binding):
            return found.text
    raise InternalError(
        located(
            f"'{stmt.return_vars_[index].name_hint}' has no tensor to start with: "
            f"'{emission.function.name}' has no "
            "tensor parameter, and no branch yields a tensor that exists before",
            stmt.span,
        )
    )


def _yielded(body: Stmt, index: int) -> Expr | None:
    yields = [inner for inner in walk_stmts(body) if isinstance(inner, YieldStmt)]
    return yields[-1].value_[index] if yields and index < len(yields[-1].value_) else None
