"""FuseCreateAssembleToSlice: a buffer that is assembled into a tensor becomes a window of that tensor.

    part = tensor.create([16, 64])                 part = tensor.slice(full, [16, 64], [i, 0])
    part1 = self.kernel(x, part)          =>       part1 = self.kernel(x, part)
    full1 = tensor.assemble(full, part1, [i, 0])   # full1 is full

An orchestration has no means to copy, so this is how its `assemble` is carried out. The kernel then writes
into the target where it used to write into the buffer: earlier than the `assemble` stood. A buffer is fused
only if nobody can tell (`fuse_assemble/conflicts.py`); otherwise both statements stay, and code generation
decides what to do about them.

A buffer is looked at together with all its names: dispatch results that hand it back, loops that carry it. It
is fused if exactly one `assemble`, not an atomic one, takes it, in the block in which it was created. The
work is repeated while it finds something, because a buffer that receives windows may itself be assembled into
a larger one.
"""

from __future__ import annotations

from collections.abc import Sequence

from pypto import ir
from pypto.core.dtype import DataType
from pypto.ir.op_registry import create_op_call
from pypto.ir.rewrite import Substitution
from pypto.ir.walk import map_substatements
from pypto.passes.base import IRProperty, Pass, PassProperties, create_program_pass, property_set
from pypto.passes.carried_values import items_without, with_fewer_yields
from pypto.passes.fuse_assemble.buffers import collect
from pypto.passes.fuse_assemble.conflicts import Fusion, fusable
from pypto.passes.leading_comments import with_comments_first
from pypto.passes.storage import ALL_VIEWS, ProgramStorage, yielded_values

__all__ = ["fuse_create_assemble_to_slice"]

_PROPERTIES = PassProperties(required=property_set(IRProperty.SplitIncoreOrch))


def fuse_create_assemble_to_slice() -> Pass:
    """Return the pass that turns assembled buffers into windows of their targets."""
    return create_program_pass(_fuse, "FuseCreateAssembleToSlice", _PROPERTIES)


def _fuse(program: ir.Program) -> ir.Program:
    return program.replace(
        functions=[
            _fuse_function(function, program)
            if function.func_type is ir.FunctionType.Orchestration
            else function
            for function in program.functions_.values()
        ]
    )


def _fuse_function(function: ir.Function, program: ir.Program) -> ir.Function:
    while True:
        storage = ProgramStorage(program, views=ALL_VIEWS, outputs_by_position=True)
        fusions = fusable(collect(function, program, storage))
        if not fusions:
            return function
        function = function.replace(body=_without_idle_carries(_fused(function.body, fusions)))


def _fused(body: ir.Stmt, fusions: Sequence[Fusion]) -> ir.Stmt:
    """The body with a slice in place of each create and without the assembles."""
    by_create = {fusion.create: fusion for fusion in fusions}
    by_assemble = {fusion.assemble: fusion for fusion in fusions}
    placed_before: dict[ir.Stmt, list[Fusion]] = {}
    for fusion in fusions:
        if fusion.place is not fusion.create:
            placed_before.setdefault(fusion.place, []).append(fusion)
    renamed = Substitution()
    slices = {fusion.create: _slice(fusion) for fusion in fusions}
    for fusion in fusions:
        window = slices[fusion.create]
        if window.var is not fusion.create.var:
            renamed.set(fusion.create.var, window.var)
    for fusion in fusions:  # in program order: a target may be the result of an earlier assemble
        renamed.set(fusion.assemble.var, renamed.expr(fusion.target))

    def rewrite(stmt: ir.Stmt) -> ir.Stmt:
        front: list[ir.Stmt] = [slices[fusion.create] for fusion in placed_before.get(stmt, ())]
        if isinstance(stmt, ir.AssignStmt) and stmt in by_create:
            kept: list[ir.Stmt] = [slices[stmt]] if by_create[stmt].place is stmt else []
        elif isinstance(stmt, ir.AssignStmt) and stmt in by_assemble:
            kept = []
        else:
            kept = [map_substatements(stmt, rewrite)]
        if not front and len(kept) == 1:
            return kept[0]
        return ir.flatten_stmts(with_comments_first([*front, *kept], ()), stmt.span)

    return renamed.stmt(rewrite(body))


def _slice(fusion: Fusion) -> ir.AssignStmt:
    """The window of the target: its shape is that of the buffer with unit axes in front."""
    span = fusion.create.span
    buffer = fusion.create.var
    assert isinstance(buffer.type, ir.TensorType)
    surplus = len(fusion.offset.elements_) - len(buffer.type.shape_)
    one = ir.ConstInt(1, DataType.INDEX, span)
    shape = ir.MakeTuple([*([one] * surplus), *buffer.type.shape_], span)
    args: list[ir.Expr] = [fusion.place_target, shape, fusion.offset]
    if surplus and fusion.keeps_rank:
        axes = [ir.ConstInt(axis, DataType.INDEX, span) for axis in range(surplus)]
        args += [ir.MakeTuple([], span), ir.MakeTuple(axes, span)]
    window = create_op_call("tensor.slice", args, span)
    same = isinstance(window.type, ir.TensorType) and window.type == buffer.type
    return ir.AssignStmt(buffer if same else buffer.replace(type=window.type), window, span)


# --- carries that became idle -------------------------------------------------------------------------------


def _without_idle_carries(body: ir.Stmt) -> ir.Stmt:
    """Drop the tensors that a loop hands through unchanged: their only content was the removed assemble."""
    same: dict[ir.Expr, ir.Expr] = {}

    def meant(expr: ir.Expr) -> ir.Expr:
        while expr in same:
            expr = same[expr]
        return expr

    def rewrite(stmt: ir.Stmt) -> ir.Stmt:
        stmt = map_substatements(stmt, rewrite)
        if not isinstance(stmt, (ir.ForStmt, ir.WhileStmt)):
            return stmt
        yielded = yielded_values(stmt.body)
        idle = [
            isinstance(carried.type, ir.TensorType) and meant(yielded[position]) is carried
            for position, carried in enumerate(stmt.iter_args_)
        ]
        if not any(idle):
            return stmt
        for carried, result, dropped in zip(stmt.iter_args_, stmt.return_vars_, idle, strict=True):
            if dropped:
                same[carried] = carried.initValue
                same[result] = carried.initValue
        return stmt.replace(
            iter_args=items_without(stmt.iter_args_, idle),
            return_vars=items_without(stmt.return_vars_, idle),
            body=with_fewer_yields(stmt.body, idle),
        )

    rewritten = rewrite(body)
    replaced = {var: value for var, value in same.items() if isinstance(var, ir.Var)}
    return Substitution(replaced).stmt(rewritten) if replaced else rewritten
