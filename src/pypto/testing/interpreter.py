"""Runs a program of the IR on numpy arrays, at any stage between SSA form and code generation.

Two kinds of tensors are told apart while running: `Memory`, an array that everybody who names it sees change,
and `Value`, a result with a valid region. Before outlining, a scope on a core runs in place; what it computes
becomes memory when it leaves. What an operator computes comes from its declared meaning. Slow and simple on
purpose: it knows nothing of the passes that it checks.

An orchestration may run its tasks in the order of the text, or in a random order that the derived argument
directions and the declared dependencies allow (`order=`): missing order then shows as a wrong number.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from pypto import ir
from pypto.core.dtype import DataType
from pypto.ir.evaluate import Value, evaluate_call, storage
from pypto.ir.walk import walk
from pypto.testing.eager import POISON, OutOfSteps

_READS = (ir.ArgDirection.Input, ir.ArgDirection.InOut)
_WRITES = (ir.ArgDirection.InOut, ir.ArgDirection.OutputExisting, ir.ArgDirection.Output)
MOST_STEPS = 20_000
"""How many turns all loops of a run may take together."""

_KERNELS = (ir.FunctionType.InCore, ir.FunctionType.AIC, ir.FunctionType.AIV)


class Undetermined(Exception):
    """The IR of this stage does not say what a kernel returns: it names a parameter that nothing wrote."""


@dataclass(eq=False)
class Memory:
    """An array in global memory."""

    array: np.ndarray
    valid: tuple[int, ...] | None = None


@dataclass(eq=False)
class Task:
    """A dispatch that waits for its turn."""

    callee: ir.Function
    args: list[Any]
    blocks: int | None
    needs: set[int] = field(default_factory=set)


class _Return(Exception):
    def __init__(self, values: list[Any]) -> None:
        self.values = values


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


def run(program: ir.Program, name: str, *arguments: Any, order: int | None = None) -> list[Any]:
    """Run a function on arrays, which are changed in place, and numbers; returns what it returns.

    Args:
        order: None runs tasks in the order of the text; a number seeds a random order of the tasks of a
            lowered program, among those that its dependencies allow.

    Raises:
        Undetermined: see there.
        OutOfSteps: the loops take more turns than a test should.
    """
    given = [Memory(each) if isinstance(each, np.ndarray) else each for each in arguments]
    machine = _Machine(program, None if order is None else random.Random(order))
    results = machine.call(program.functions_[name], given)
    machine.finish()
    return [each.array if isinstance(each, Memory) else each for each in results]


def evaluate(expr: ir.Expr, values: dict[ir.Var, Any]) -> Any:
    """The value of a scalar expression."""
    return _Frame(_Machine(ir.Program([], "", expr.span), None), dict(values), in_kernel=False).expr(expr)


class _Machine:
    """The program, the block that runs, and the tasks that wait."""

    def __init__(self, program: ir.Program, rng: random.Random | None) -> None:
        self.program, self.rng = program, rng
        self.block = (0, 1)
        self.tasks: list[Task] = []
        self.is_in_task = False
        self.done: set[int] = set()
        self.steps = 0
        self.readers: list[tuple[np.ndarray, int]] = []
        self.writers: list[tuple[np.ndarray, int]] = []

    def call(self, function: ir.Function, args: list[Any], *, is_off: bool = False) -> list[Any]:
        env: dict[ir.Var, Any] = dict(zip(function.params_, args, strict=True))
        for param, arg in zip(function.params_, args, strict=True):
            if isinstance(param.type, ir.TensorType):
                _bind_extents(param.type, arg, env)
        frame = _Frame(self, env, in_kernel=function.func_type in _KERNELS)
        frame.is_off = is_off
        try:
            frame.stmt(function.body)
        except _Return as result:
            frame.check_returns(function, result.values)
            return result.values
        return []

    def step(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise OutOfSteps

    def launch(self, callee: ir.Function, args: list[Any], blocks: int | None) -> list[Any]:
        """Run all blocks of a dispatch; the results of the last one."""
        if blocks is None:
            return self.call(callee, args)
        outer, results = self.block, []
        numbers = list(range(blocks))
        if self.rng is not None:
            self.rng.shuffle(numbers)
        for block in numbers:
            self.block = (block, blocks)
            results = self.call(callee, args)
        self.block = outer
        return results

    # --- tasks in any allowed order

    def enqueue(
        self,
        call: ir.Call | ir.Submit,
        callee: ir.Function,
        args: list[Any],
        deps: set[int],
        blocks: int | None,
        manual: set[int] | None,
    ) -> int:
        task, number = Task(callee, args, blocks, set(deps)), len(self.tasks)
        self.tasks.append(task)
        memory = [
            (arg.array, direction)
            for arg, direction in zip(args, call.arg_directions, strict=True)
            if isinstance(arg, Memory)
        ]
        for array, direction in memory:
            if direction in _READS:
                task.needs |= _overlapping(self.writers, array)
            if direction in _WRITES:
                task.needs |= _overlapping(self.readers, array)
        if manual is not None:
            task.needs = (task.needs - manual) | deps
            manual.add(number)
        self.readers += [(array, number) for array, direction in memory if direction in _READS]
        self.writers += [(array, number) for array, direction in memory if direction in _WRITES]
        return number

    def finish(self) -> None:
        """Run the waiting tasks, unless one of them asks for it."""
        while not self.is_in_task and len(self.done) < len(self.tasks):
            ready = [n for n, each in enumerate(self.tasks) if n not in self.done and each.needs <= self.done]
            assert self.rng is not None
            number = self.rng.choice(ready)
            task = self.tasks[number]
            self.is_in_task = True
            self.launch(task.callee, task.args, task.blocks)
            self.is_in_task = False
            self.done.add(number)


def _overlapping(entries: list[tuple[np.ndarray, int]], array: np.ndarray) -> set[int]:
    return {number for other, number in entries if np.shares_memory(other, array)}


def _bind_extents(type_: ir.TensorType, value: Any, env: dict[ir.Var, Any]) -> None:
    shape = value.array.shape if isinstance(value, Memory) else value.data.shape
    for dim, extent in zip(type_.shape_, shape[len(shape) - len(type_.shape_) :], strict=True):
        if isinstance(dim, ir.Var):
            env.setdefault(dim, extent)


class _Frame:
    """One activation of a function."""

    def __init__(self, machine: _Machine, env: dict[ir.Var, Any], in_kernel: bool) -> None:
        self.machine, self.env, self.in_kernel = machine, env, in_kernel
        self.left_behind: list[np.ndarray] = []  # memory from which a loop went on to a value
        self.manual: set[int] | None = None
        self.is_off = False  # in a launch whose condition does not hold

    # --- statements

    def stmt(self, stmt: ir.Stmt) -> list[Any] | None:
        """Run a statement; what its trailing yield gives."""
        return self._RUN[type(stmt)](self, stmt)

    def _sequence(self, stmt: ir.SeqStmts) -> list[Any] | None:
        yielded = None
        for inner in stmt.stmts_:
            yielded = self._RUN[type(inner)](self, inner)
        return yielded

    def _assign(self, stmt: ir.AssignStmt) -> None:
        self.env[stmt.var] = self.expr(stmt.value)

    def _eval(self, stmt: ir.EvalStmt) -> None:
        self.expr(stmt.expr)

    def _return(self, stmt: ir.ReturnStmt) -> None:
        raise _Return([self.expr(value) for value in stmt.value_])

    def _yield(self, stmt: ir.YieldStmt) -> list[Any]:
        return [self.expr(value) for value in stmt.value_]

    def _break(self, stmt: ir.BreakStmt) -> None:
        raise _Break

    def _continue(self, stmt: ir.ContinueStmt) -> None:
        raise _Continue

    def _runtime_scope(self, stmt: ir.RuntimeScopeStmt) -> list[Any] | None:
        outer = self.manual
        if stmt.manual and outer is None:
            self.manual = set()
        try:
            return self.stmt(stmt.body)
        finally:
            self.manual = outer

    def _scope(self, stmt: ir.ScopeStmt) -> list[Any] | None:
        return self.stmt(stmt.body)

    def _incore_scope(self, stmt: ir.InCoreScopeStmt) -> list[Any] | None:
        outer, self.in_kernel = self.in_kernel, True
        try:
            return self.stmt(stmt.body)
        finally:
            self.in_kernel = outer
            if not outer:
                self._publish()

    def _publish(self) -> None:
        """What a scope computed is memory from now on; names of one value keep naming one array."""
        seen: dict[int, Memory] = {}
        for var, value in list(self.env.items()):
            if isinstance(value, Value):
                if id(value) not in seen:
                    seen[id(value)] = _as_memory(value)
                self.env[var] = seen[id(value)]

    def _spmd_scope(self, stmt: ir.SpmdScopeStmt) -> None:
        outer, count = self.machine.block, self.expr(stmt.core_num)
        condition = stmt.attrs_.get("predicate")
        self.is_off = condition is not None and not self.expr(condition)
        for block in range(count):
            self.machine.block = (block, count)
            self.stmt(stmt.body)
        self.machine.block, self.is_off = outer, False

    def _if(self, stmt: ir.IfStmt) -> None:
        branch = stmt.then_body if self.expr(stmt.condition) else stmt.else_body
        yielded = self.stmt(branch) if branch is not None else None
        self.env.update(zip(stmt.return_vars_, yielded or [], strict=bool(stmt.return_vars_)))

    def _for(self, stmt: ir.ForStmt) -> None:
        trips = iter(range(*(int(self.expr(each)) for each in (stmt.start, stmt.stop, stmt.step))))

        def enters() -> bool:
            for index in trips:
                self.env[stmt.loop_var] = index
                return True
            return False

        self._loop(stmt, enters)

    def _while(self, stmt: ir.WhileStmt) -> None:
        self._loop(stmt, lambda: self.expr(stmt.condition))

    def _loop(self, loop: ir.ForStmt | ir.WhileStmt, enters: Callable[[], Any]) -> None:
        starts = carried = [self.expr(each.initValue) for each in loop.iter_args_]
        self.env.update(zip(loop.iter_args_, carried, strict=True))
        while enters():
            self.machine.step()
            try:
                carried = self.stmt(loop.body) or carried
            except _Break:
                break
            except _Continue:
                continue
            self.env.update(zip(loop.iter_args_, carried, strict=True))
        self.env.update(zip(loop.return_vars_, carried, strict=True))
        for start, end in zip(starts, carried, strict=True):
            if isinstance(start, Memory) and isinstance(end, Value):
                self.left_behind.append(start.array)

    _RUN: ClassVar[dict[type, Callable[[Any, Any], list[Any] | None]]] = {
        ir.SeqStmts: _sequence,
        ir.AssignStmt: _assign,
        ir.EvalStmt: _eval,
        ir.ReturnStmt: _return,
        ir.YieldStmt: _yield,
        ir.BreakStmt: _break,
        ir.ContinueStmt: _continue,
        ir.IfStmt: _if,
        ir.ForStmt: _for,
        ir.WhileStmt: _while,
        ir.RuntimeScopeStmt: _runtime_scope,
        ir.ClusterScopeStmt: _scope,
        ir.HierarchyScopeStmt: _scope,
        ir.InCoreScopeStmt: _incore_scope,
        ir.SpmdScopeStmt: _spmd_scope,
    }

    # --- expressions

    def expr(self, expr: ir.Expr) -> Any:
        if isinstance(expr, ir.Var):
            return self.env[expr]
        if isinstance(expr, (ir.ConstInt, ir.ConstFloat, ir.ConstBool)):
            return expr.value
        if isinstance(expr, (ir.Call, ir.Submit)):
            callee = self.machine.program.functions_.get(expr.op.name)
            return self._operator(expr) if callee is None else self._dispatch(expr, callee)
        if isinstance(expr, ir.MakeTuple):
            return [self.expr(each) for each in expr.elements_]
        if isinstance(expr, ir.TupleGetItemExpr):
            return self.expr(expr.tuple)[expr.index]
        if isinstance(expr, ir.Cast):
            value = self.expr(expr.operand)
            return float(value) if expr.dtype.is_float() else int(value)
        if isinstance(expr, ir.UnaryExpr):
            return _UNARY[type(expr)](self.expr(expr.operand))
        assert isinstance(expr, ir.BinaryExpr), type(expr)
        return _BINARY[type(expr)](self.expr(expr.left), self.expr(expr.right))

    def _dispatch(self, call: ir.Call | ir.Submit, callee: ir.Function) -> Any:
        machine = self.machine
        args = [self.expr(arg) for arg in call.args_]
        count = call.core_num if isinstance(call, ir.Submit) else call.attrs_.get("core_num")
        blocks = None if count is None else int(self.expr(count))
        for arg, param in zip(args, callee.params_, strict=False):
            if isinstance(arg, Value):
                raise AssertionError(f"an on-chip value is passed to {callee.name} as {param.name_hint}")
        args += self._omitted_outputs(call, callee, args)
        task: Any = "task"
        condition = call.predicate if isinstance(call, ir.Submit) else None
        if self.is_off or (condition is not None and not self.expr(condition)):
            is_kernel = callee.func_type in _KERNELS
            results = (
                _updated_arguments(callee, args) if is_kernel else machine.call(callee, args, is_off=True)
            )
        elif machine.rng is not None and not machine.is_in_task and _is_task(callee):
            number = machine.enqueue(call, callee, args, self.declared(call), blocks, self.manual)
            results, task = _returned_arguments(callee, args), number
        else:
            results = machine.launch(callee, args, blocks)
        results = [_as_memory(each) if isinstance(each, Value) else each for each in results]
        if isinstance(call, ir.Submit):
            return [*results, task]
        return results[0] if len(results) == 1 else results

    def _omitted_outputs(self, call: Any, callee: ir.Function, args: list[Any]) -> list[Any]:
        """Buffers for trailing output parameters that a submit leaves to the runtime."""
        made = []
        for param in callee.params_[len(args) :]:
            assert isinstance(param.type, ir.TensorType)
            shape = self.extents(param.type.shape_)
            made.append(Memory(np.full(shape, POISON).astype(storage(param.type.dtype))))
        return made

    def declared(self, call: ir.Call | ir.Submit) -> set[int]:
        """The tasks that a dispatch or a barrier names as its dependencies."""
        deps = call.deps_ if isinstance(call, ir.Submit) else call.attrs_.get("manual_dep_edges", ())
        return {number for dep in deps for number in _task_numbers(self.expr(dep))}

    def check_returns(self, function: ir.Function, values: list[Any]) -> None:
        """The outliner lets a kernel return the parameter that a loop computes anew; lowering mends it."""
        if function.func_type is ir.FunctionType.InCore:
            for value in values:
                if isinstance(value, Memory) and _overlaps(self.left_behind, value.array):
                    raise Undetermined(function.name)

    def _operator(self, call: ir.Call) -> Any:
        name = call.op.name
        special = _SPECIAL.get(name) or _SPECIAL.get(name.rpartition(".")[2])
        if special is not None:
            return special(self, call)
        if not self.in_kernel and isinstance(call.type, ir.TensorType):
            raise AssertionError(f"{name} computes a tensor outside of kernels")
        operands = [_as_value(self.expr(arg)) for arg in call.args_]
        return evaluate_call(self._concrete(call), operands)

    def _concrete(self, call: ir.Call) -> ir.Call:
        """The call with the extents of its result as numbers."""
        type_ = call.type
        if not isinstance(type_, (ir.TensorType, ir.TileType)):
            return call
        if all(isinstance(dim, ir.ConstInt) for dim in type_.shape_):
            return call
        shape = list(self.extents(type_.shape_))
        return call.replace(type=ir.TensorType(shape, type_.dtype))

    def extents(self, shape: Any) -> tuple[int, ...]:
        return tuple(int(self.expr(dim)) for dim in shape)

    def region_of(self, type_: ir.Type) -> tuple[int, ...]:
        if isinstance(type_, ir.TileType):
            return self.extents(type_.get_effective_tile_view().valid_shape_)
        assert isinstance(type_, ir.TensorType)
        view = type_.tensor_view
        return self.extents(view.valid_shape_ if view is not None and view.valid_shape_ else type_.shape_)


def _is_task(callee: ir.Function) -> bool:
    return callee.func_type not in (ir.FunctionType.Orchestration, ir.FunctionType.Opaque)


def _updated_arguments(callee: ir.Function, args: list[Any]) -> list[Any]:
    """What a task that does not run gives: its outputs as they are."""
    directions = zip(args, callee.param_directions, strict=True)
    return [arg for arg, direction in directions if direction is not ir.ParamDirection.In]


def _returned_arguments(callee: ir.Function, args: list[Any]) -> list[Any]:
    positions = {param: position for position, param in enumerate(callee.params_)}
    result = next((node for node in walk(callee.body) if isinstance(node, ir.ReturnStmt)), None)
    if result is None:
        return []
    return [args[positions[value]] for value in result.value_]  # type: ignore[index]


# --- operators on memory and queries


def _create(frame: _Frame, call: ir.Call) -> Any:
    shape = tuple(frame.expr(call.args_[0]))
    fill = call.kwargs_.get("init_value")
    array = np.full(shape, POISON if fill is None else fill).astype(storage(call.type.dtype))
    return Value(array, shape) if frame.in_kernel else Memory(array)


def _slice(frame: _Frame, call: ir.Call) -> Any:
    source = frame.expr(call.args_[0])
    if isinstance(source, Value) or frame.in_kernel:
        operands = [_as_value(source), *(frame.expr(arg) for arg in call.args_[1:])]
        return evaluate_call(frame._concrete(call), operands)
    shape, offset = (frame.expr(arg) for arg in call.args_[1:3])
    dropped = frame.expr(call.args_[4]) if len(call.args_) > 4 else []
    view = source.array[_window(offset, shape)]
    kept = tuple(0 if axis in dropped else slice(None) for axis in range(view.ndim))
    return Memory(view[kept], _partial(frame.region_of(call.type), view[kept].shape))


def _reshape(frame: _Frame, call: ir.Call) -> Any:
    source, shape = frame.expr(call.args_[0]), frame.extents(call.type.shape_)
    if isinstance(source, Value) or frame.in_kernel:
        operands = [_snapshot(source), *(frame.expr(arg) for arg in call.args_[1:])]
        return evaluate_call(frame._concrete(call), operands)
    view = source.array.reshape(shape)
    if not np.shares_memory(view, source.array):
        raise AssertionError("a reshape of the orchestration copies")
    return Memory(view)


def _transpose(frame: _Frame, call: ir.Call) -> Any:
    source = frame.expr(call.args_[0])
    axes = [frame.expr(arg) for arg in call.args_[1:3]]
    if isinstance(source, Value) or frame.in_kernel:
        return evaluate_call(frame._concrete(call), [_snapshot(source), *axes])
    return Memory(np.swapaxes(source.array, *axes))


def _load(frame: _Frame, call: ir.Call) -> Value:
    source, offset, shape, *_ = (frame.expr(arg) for arg in call.args_)
    array = source.array if isinstance(source, Memory) else source.data
    cells = np.zeros(shape, array.dtype)
    inside = _unlifted(array, len(shape))[_window(offset, shape)]
    cells[_window((0,) * inside.ndim, inside.shape)] = inside
    return Value(cells, frame.region_of(call.type))


def _store(frame: _Frame, call: ir.Call) -> Any:
    value, offset, target = (frame.expr(arg) for arg in call.args_[:3])
    if isinstance(target, Value):
        return evaluate_call(frame._concrete(call), [value, offset, target])
    cells = _as_value(value)
    _write_cells(target, Value(cells.data, frame.region_of(call.args_[0].type)), offset, call)
    return target


def _assemble(frame: _Frame, call: ir.Call) -> Any:
    target, source, offset = (frame.expr(arg) for arg in call.args_)
    if not frame.in_kernel:
        frame.machine.finish()
    if isinstance(target, Value):
        return evaluate_call(frame._concrete(call), [target, _as_value(source), offset])
    _write_cells(target, _as_value(source), offset, call)
    return target


def _write_cells(target: Memory, source: Value, offset: Any, call: ir.Call) -> None:
    array = _unlifted(target.array, len(offset))
    cells = source.region.copy()
    cells = cells.reshape((1,) * (array.ndim - cells.ndim) + cells.shape).astype(array.dtype)
    window = _window(offset, cells.shape)
    array[window] = array[window] + cells if call.kwargs_.get("atomic") else cells


def _read(frame: _Frame, call: ir.Call) -> Any:
    if not frame.in_kernel:
        frame.machine.finish()
    index = tuple(frame.expr(call.args_[1]))
    return _as_value(frame.expr(call.args_[0])).data[index].item()


def _write(frame: _Frame, call: ir.Call) -> Any:
    if not frame.in_kernel:
        frame.machine.finish()
    target, index, value = (frame.expr(arg) for arg in call.args_)
    if isinstance(target, Value):
        return evaluate_call(call, [target, tuple(index), value])
    target.array[tuple(index)] = value
    return target


def _dim(frame: _Frame, call: ir.Call) -> int:
    return _as_value(frame.expr(call.args_[0])).data.shape[frame.expr(call.args_[1])]


def _set_valid(frame: _Frame, call: ir.Call) -> Value:
    source, rows, columns = (frame.expr(arg) for arg in call.args_)
    return Value(_as_value(source).data, (int(rows), int(columns)))


def _task_numbers(task_id: Any) -> Iterator[int]:
    """The tasks that an id stands for: one, all that a barrier or an array names, or none."""
    if isinstance(task_id, int):
        yield task_id
    elif isinstance(task_id, list):
        for each in task_id:
            yield from _task_numbers(each)


def _create_array(frame: _Frame, call: ir.Call) -> list[Any]:
    return ["task" if call.kwargs_["dtype"] is DataType.TASK_ID else 0] * frame.expr(call.args_[0])


def _update_element(frame: _Frame, call: ir.Call) -> list[Any]:
    array, index, value = (frame.expr(arg) for arg in call.args_)
    return [value if position == index else each for position, each in enumerate(array)]


_SPECIAL: dict[str, Callable[[_Frame, Any], Any]] = {
    "tensor.create": _create,
    "tile.create": _create,
    "tensor.slice": _slice,
    "tensor.reshape": _reshape,
    "tensor.transpose": _transpose,
    "tile.load": _load,
    "tile.store": _store,
    "tensor.assemble": _assemble,
    "tile.assemble": _assemble,
    "read": _read,
    "write": _write,
    "dim": _dim,
    "set_validshape": _set_valid,
    "get_block_idx": lambda frame, call: frame.machine.block[0],
    "get_block_num": lambda frame, call: frame.machine.block[1],
    "task_invalid": lambda frame, call: "task",
    "task_dummy": lambda frame, call: sorted(frame.declared(call)),
    "array.create": _create_array,
    "array.get_element": lambda frame, call: frame.expr(call.args_[0])[frame.expr(call.args_[1])],
    "array.update_element": _update_element,
}


def _as_value(operand: Any) -> Any:
    if isinstance(operand, Memory):
        return Value(operand.array, operand.valid or operand.array.shape)
    return tuple(operand) if isinstance(operand, list) else operand


def _snapshot(operand: Any) -> Value:
    value = _as_value(operand)
    return Value(value.data.copy(), value.valid)


def _as_memory(value: Value) -> Memory:
    memory = np.full_like(value.data, POISON)
    memory[tuple(slice(0, extent) for extent in value.valid)] = value.region
    return Memory(memory)


def _partial(region: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    return None if region == shape else region


def _unlifted(array: np.ndarray, rank: int) -> np.ndarray:
    while array.ndim > rank:
        array = array[0]
    return array


def _window(offset: Any, shape: Any) -> tuple[slice, ...]:
    return tuple(slice(start, start + extent) for start, extent in zip(offset, shape, strict=True))


def _overlaps(arrays: list[np.ndarray], array: np.ndarray) -> bool:
    return any(np.shares_memory(each, array) for each in arrays)


_UNARY: dict[type, Callable[[Any], Any]] = {
    ir.Neg: operator.neg,
    ir.Not: operator.not_,
    ir.Abs: abs,
    ir.BitNot: operator.invert,
}
_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ir.Add: operator.add,
    ir.Sub: operator.sub,
    ir.Mul: operator.mul,
    ir.FloorDiv: operator.floordiv,
    ir.FloorMod: operator.mod,
    ir.FloatDiv: operator.truediv,
    ir.Pow: operator.pow,
    ir.Min: min,
    ir.Max: max,
    ir.Eq: operator.eq,
    ir.Ne: operator.ne,
    ir.Lt: operator.lt,
    ir.Le: operator.le,
    ir.Gt: operator.gt,
    ir.Ge: operator.ge,
    ir.And: lambda a, b: a and b,
    ir.Or: lambda a, b: a or b,
    ir.Xor: operator.xor,
    ir.BitAnd: operator.and_,
    ir.BitOr: operator.or_,
    ir.BitXor: operator.xor,
    ir.BitShiftLeft: operator.lshift,
    ir.BitShiftRight: operator.rshift,
}
