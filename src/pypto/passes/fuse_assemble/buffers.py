"""What happens to the buffers of an orchestration: where they are made, written, used and assembled.

One walk numbers the statements and records the facts. `Position` numbers follow program order; a statement
inside a loop or branch lies between its neighbours. Statements belong to the block (function body, loop body,
branch) around them; runtime scopes do not count as blocks, since they are entered once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pypto import ir
from pypto.ir.walk import exprs_of, substatements, vars_in
from pypto.passes.memory_effects import memory_operands
from pypto.passes.storage import ALL_VIEWS, ProgramStorage, Storage, is_builtin, is_tensor, yielded_values

__all__ = ["Access", "Assemble", "Buffer", "Facts", "Place", "collect"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a statement stands."""

    position: int
    block: int
    stmt: ir.Stmt


@dataclass(frozen=True, slots=True)
class Access:
    """A read or a write of a root, by the innermost of some nested statements."""

    places: tuple[Place, ...]
    writes: bool
    assemble: Assemble | None = None  # what reads or writes, if it is one

    def seen_from(self, block: int) -> int:
        """The position, of the statement of `block` in which the access happens if it happens in one: what a
        loop holds has no order among itself.
        """
        return next(
            (place.position for place in self.places if place.block == block), self.places[-1].position
        )


@dataclass(frozen=True, slots=True, eq=False)
class Assemble:
    """`var = tensor.assemble(target, source, offset)`."""

    place: Place
    stmt: ir.AssignStmt
    target: ir.Expr
    source: ir.Expr
    offset: ir.MakeTuple
    atomic: bool


@dataclass(slots=True, eq=False)
class Buffer:
    """A created tensor with all its names."""

    place: Place
    stmt: ir.AssignStmt
    assembles: list[Assemble] = field(default_factory=list)
    first_use: Place | None = None  # in the block of the creation
    is_mixed: bool = False  # one of its names may also be another buffer
    leaves_block: bool = False  # a name is yielded or returned
    only_dispatched: bool = True  # apart from being assembled


@dataclass(slots=True)
class Facts:
    """Everything about one function."""

    storage: Storage
    buffers: dict[ir.Var, Buffer] = field(default_factory=dict)  # by created variable, in program order
    assembles: list[Assemble] = field(default_factory=list)
    accesses: dict[ir.Var, list[Access]] = field(default_factory=dict)  # per root, in program order
    defined_at: dict[ir.Var, int] = field(default_factory=dict)
    sources: dict[ir.Var, ir.Expr] = field(default_factory=dict)  # what a variable is another name for
    origins: dict[ir.Var, Buffer] = field(default_factory=dict)  # variable -> the buffer that it names

    def origin(self, expr: ir.Expr) -> Buffer | None:
        return self.origins.get(expr) if isinstance(expr, ir.Var) else None


def collect(function: ir.Function, program: ir.Program, storage: ProgramStorage) -> Facts:
    """Record the facts of a function."""
    walk = _Walk(function, program, storage)
    for param in function.params_:
        walk.facts.defined_at[param] = 0
    walk.block(function.body)
    return walk.facts


class _Walk:
    def __init__(self, function: ir.Function, program: ir.Program, storage: ProgramStorage) -> None:
        self.facts = Facts(storage.of_body(function))
        self._program = program
        self._program_storage = storage
        self._defined: dict[ir.Var, ir.Expr] = {}
        self._position = 0
        self._blocks = 0
        self._block = 0
        self._enclosing: list[Place] = []  # the statements that contain the current one

    def block(self, body: ir.Stmt) -> None:
        """Walk a body that is a block of its own."""
        outer = self._block
        self._blocks += 1
        self._block = self._blocks
        self._stmt(body)
        self._block = outer

    def _stmt(self, stmt: ir.Stmt) -> None:
        if isinstance(stmt, ir.SeqStmts):
            for inner in stmt.stmts_:
                self._stmt(inner)
            return
        self._position += 1
        self._enclosing.append(Place(self._position, self._block, stmt))
        if isinstance(stmt, ir.ScopeStmt):
            self._stmt(stmt.body)
        elif isinstance(stmt, (ir.ForStmt, ir.WhileStmt)):
            self._loop(stmt)
        elif isinstance(stmt, ir.IfStmt):
            self._if(stmt)
        else:
            self._simple(stmt)
        self._enclosing.pop()

    # --- control flow ---------------------------------------------------------------------------------------

    def _loop(self, loop: ir.ForStmt | ir.WhileStmt) -> None:
        facts = self.facts
        for carried in loop.iter_args_:
            facts.defined_at[carried] = self._position
            self._name(carried, carried.initValue)
        if isinstance(loop, ir.ForStmt):
            facts.defined_at[loop.loop_var] = self._position
        self.block(loop.body)
        self._position += 1
        for carried, value in zip(loop.iter_args_, yielded_values(loop.body), strict=False):
            self._merge(carried, value)
        for carried, result in zip(loop.iter_args_, loop.return_vars_, strict=False):
            facts.defined_at[result] = self._position
            self._name(result, carried.initValue)

    def _if(self, stmt: ir.IfStmt) -> None:
        yields = []
        for branch in substatements(stmt):
            self.block(branch)
            yields.append(yielded_values(branch))
        self._position += 1
        for position, result in enumerate(stmt.return_vars_):
            self.facts.defined_at[result] = self._position
            if is_tensor(result):
                for values in yields:
                    self._mark_mixed(values[position])

    def _name(self, var: ir.Var, source: ir.Expr) -> None:
        """`var` is another name for what `source` names."""
        if not is_tensor(var):
            return
        self.facts.sources[var] = source
        origin = self.facts.origin(source)
        if origin is not None:
            self.facts.origins[var] = origin
            if isinstance(var, ir.IterArg):
                self._use(origin)

    def _merge(self, carried: ir.IterArg, value: ir.Expr) -> None:
        """A loop yields `value` for `carried`: harmless if both name one buffer."""
        if is_tensor(carried) and self.facts.origin(carried) is not self.facts.origin(value):
            self._mark_mixed(carried)
            self._mark_mixed(value)

    def _mark_mixed(self, expr: ir.Expr) -> None:
        origin = self.facts.origin(expr)
        if origin is not None:
            origin.is_mixed = True

    # --- simple statements ----------------------------------------------------------------------------------

    def _simple(self, stmt: ir.Stmt) -> None:
        if isinstance(stmt, ir.AssignStmt):
            self._assign(stmt)
            self._defined[stmt.var] = stmt.value
            self.facts.defined_at[stmt.var] = self._position
        elif isinstance(stmt, ir.YieldStmt):
            return  # what a loop or branch does with it is seen there
        elif isinstance(stmt, ir.ReturnStmt):
            for value in stmt.value_:
                self._leave(value)
        else:
            for expr in exprs_of(stmt):
                self._operands(expr)

    def _assign(self, stmt: ir.AssignStmt) -> None:
        value = stmt.value
        if isinstance(value, ir.Call) and value.op.name == "tensor.create":
            buffer = Buffer(self._enclosing[-1], stmt)
            self.facts.buffers[stmt.var] = buffer
            self.facts.origins[stmt.var] = buffer
        elif isinstance(value, ir.Call) and value.op.name == "tensor.assemble":
            self._assemble(stmt, value)
        else:
            self._operands(value)
            self._result(stmt)

    def _assemble(self, stmt: ir.AssignStmt, call: ir.Call) -> None:
        target, source, offset = call.args_
        assert isinstance(offset, ir.MakeTuple)
        assemble = Assemble(
            self._enclosing[-1], stmt, target, source, offset, bool(call.kwargs_.get("atomic", 0))
        )
        self.facts.assembles.append(assemble)
        self._accesses(call, assemble)
        origin = self.facts.origin(source)
        if origin is not None:
            origin.assembles.append(assemble)
            self._use(origin)
        self._name(stmt.var, target)
        into = self.facts.origin(target)
        if into is not None:
            self._use(into)

    def _result(self, stmt: ir.AssignStmt) -> None:
        if not is_tensor(stmt.var):
            return
        sources = self._program_storage.rule(stmt.var, stmt.value, self._defined)
        same = [source for source in sources if source is not stmt.var]
        is_view = (
            isinstance(stmt.value, ir.Call)
            and is_builtin(stmt.value.op)
            and stmt.value.op.name != "tensor.write"
        )
        if len(sources) == 1 and same and not is_view:
            self._name(stmt.var, same[0])
        elif not is_view:
            for source in same:
                self._mark_mixed(source)

    def _operands(self, expr: ir.Expr) -> None:
        """Record the accesses of an expression, and the uses of buffers in it."""
        if isinstance(expr, (ir.Call, ir.Submit)):
            self._accesses(expr)
        dispatched = isinstance(expr, (ir.Call, ir.Submit)) and not is_builtin(expr.op)
        for var in () if isinstance(expr, ir.Var) else vars_in(expr):
            origin = self.facts.origin(var)
            if origin is not None:
                self._use(origin)
                if not dispatched:
                    origin.only_dispatched = False

    def _accesses(self, call: ir.Call | ir.Submit, assemble: Assemble | None = None) -> None:
        places = tuple(self._enclosing)
        for arg, effect in memory_operands(call, self._program, ALL_VIEWS):
            for root in self.facts.storage.roots_of(arg):
                access = Access(places, effect is not ir.ArgEffect.Read, assemble)
                self.facts.accesses.setdefault(root, []).append(access)

    def _leave(self, value: ir.Expr) -> None:
        origin = self.facts.origin(value)
        if origin is not None:
            origin.leaves_block = True
            self._use(origin)

    def _use(self, buffer: Buffer) -> None:
        if buffer.first_use is None:
            made = buffer.place
            buffer.first_use = next(
                (p for p in self._enclosing if p.block == made.block and p.position > made.position), None
            )
