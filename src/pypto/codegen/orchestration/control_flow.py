"""Loops and branches.

A pass has decided which carries are new values and which are other names for their initial value; the stamps
of `ClassifyIterArgCarry` say so. Parallel loops are ordinary loops here: what runs in parallel are the tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pypto.codegen.orchestration.carries import (
    Target,
    emit_declaration,
    is_constant,
    raw_name,
    slot_fill,
    value_binding,
    value_type,
)
from pypto.codegen.orchestration.emission import Binding, BlockKind, Emission
from pypto.codegen.orchestration.scalars import condition_text, is_non_negative, scalar_text
from pypto.core.errors import InternalError, located
from pypto.ir.enums import ForKind
from pypto.ir.expr import Call, ConstInt, Expr, IterArg, Var
from pypto.ir.stmt import ForStmt, IfStmt, Stmt, WhileStmt, YieldStmt
from pypto.ir.types import ArrayType, TensorType
from pypto.ir.walk import walk, walk_stmts

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
    if init.slots and init.slots != slots:
        raise InternalError(located(f"'{name}' has {slots} slots, its initial value {init.slots}", loop.span))
    source = f"{init.text}[__init_i]" if init.slots else init.text
    emission.line(slot_fill("__init_i", slots, name, source))
    carried = _outer_binding(emission, name, slots)
    emission.bind(result, carried)
    is_parallel = loop.kind is ForKind.Parallel
    emission.bind(arg, init if is_parallel else carried)
    return Target(name, "PTO2TaskId", slots, slot if is_parallel else "")


def _carry(emission: Emission, arg: IterArg, result: Var, init: Binding) -> Target | None:
    """A variable that starts as `init` and is assigned by every yield."""
    if isinstance(arg.type, ArrayType):
        return _array_carry(emission, arg, result, init)
    if init.slots:
        raise ValueError(
            located(
                f"'{arg.name_hint}' carries one task id but starts with those of a parallel loop", arg.span
            )
        )
    name = raw_name(emission, result)
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
    targets = [
        _carry(emission, arg, result, value_binding(emission, arg.initValue))
        for arg, result in zip(loop.iter_args_, loop.return_vars_, strict=True)
    ]
    if any(isinstance(node, Call) and node.op.name == "tensor.read" for node in walk(loop.condition)):
        raise ValueError(
            located(
                "the condition of a while loop reads a tensor; read it into a variable that the loop carries",
                loop.span,
            )
        )
    condition = condition_text(emission, loop.condition)
    emission.open(BlockKind.LOOP)
    emission.line(_LEAVE)
    emit_body(emission, loop.body, targets)
    emission.close(f"while ({condition}) {{")


# --- branches


def emit_if(emission: Emission, stmt: IfStmt, emit_body: EmitBody) -> None:
    """A branch; its results are declared before it and assigned by the yields."""
    targets = [_result(emission, stmt, index) for index in range(len(stmt.return_vars_))]
    condition = condition_text(emission, stmt.condition)
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
        emit_declaration(emission, kind, name)
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
