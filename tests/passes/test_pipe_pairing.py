"""MixedKernelExpanded: what two cores exchange has two fitting ends."""

from __future__ import annotations

from pypto import ir
from pypto.passes import IRProperty, IRPropertySet
from pypto.passes.verify import PropertyVerifierRegistry

S = ir.Span.unknown()
D = ir.DataType
F = ir.FunctionType
SCALAR = ir.ScalarType(D.INT32)
TILE = ir.TileType([16, 16], D.FP32)
X = ir.Var("x", ir.TensorType([16, 16], D.FP32), S)


def lane_op(op_name: str, /, *args: ir.Expr, type_: ir.Type = SCALAR, **kwargs: object) -> ir.Call:
    return ir.Call(ir.Op(op_name), list(args), kwargs, type_, S)


def tile(name: str) -> ir.Var:
    return ir.Var(name, TILE, S)


def assign(target: ir.Var, value: ir.Expr) -> ir.Stmt:
    return ir.AssignStmt(target, value, S)


def function(*stmts: ir.Stmt, name: str, type: ir.FunctionType) -> ir.Function:
    return ir.Function(name, [X], [], ir.flatten_stmts(list(stmts), S), S, type)


def pipe_errors(*stmts: ir.Stmt, type: ir.FunctionType = F.AIV, peer: ir.Function | None = None) -> list[str]:
    kernel = function(*stmts, name="k", type=type)
    program = ir.Program([kernel, peer] if peer is not None else [kernel], "P", S)
    rule = IRPropertySet()
    rule.insert(IRProperty.MixedKernelExpanded)
    return [found.message for found in PropertyVerifierRegistry.verify(rule, program)]


POPPED = tile("t")
POP = assign(POPPED, lane_op("tile.tpop_from_aic", type_=TILE, split=0))
FREE = ir.EvalStmt(lane_op("system.tfree_to_aic", POPPED), S)


def test_a_popped_tile_is_freed_at_most_once_and_not_read_afterwards() -> None:
    use = assign(tile("u"), lane_op("tile.neg", POPPED, type_=TILE))
    assert pipe_errors(POP, use, FREE) == []
    assert pipe_errors(POP, use) == []
    assert pipe_errors(POP, FREE, FREE) == ["'system.tfree_to_aic' frees 't' a second time"]
    assert pipe_errors(POP, FREE, use) == ["'t' is read after it was freed in 'k'"]


def test_only_a_tile_popped_from_that_side_can_be_freed() -> None:
    loaded = assign(POPPED, lane_op("tile.load", X, type_=TILE))
    assert pipe_errors(loaded, FREE) == ["'system.tfree_to_aic' frees 't', which is a result of 'tile.load'"]
    view = tile("v")
    through_a_view = assign(view, lane_op("tile.reshape", POPPED, type_=TILE))
    assert pipe_errors(POP, through_a_view, ir.EvalStmt(lane_op("system.tfree_to_aic", view), S)) == []


def test_each_core_uses_its_own_ends_of_a_pipe() -> None:
    assert pipe_errors(POP, type=F.AIC) == ["AIC function 'k' uses 'tile.tpop_from_aic' of the other core"]
    push = ir.EvalStmt(lane_op("tile.tpush_to_aiv", tile("t"), split=0), S)
    assert pipe_errors(push, type=F.AIC) == []
    assert pipe_errors(push) == ["AIV function 'k' uses 'tile.tpush_to_aiv' of the other core"]


def test_a_pipe_is_set_up_once_for_the_directions_that_are_used() -> None:
    def setup(mask: int, pipe: int = 0) -> ir.Stmt:
        zero = ir.ConstInt(0, D.INT32, S)
        return ir.EvalStmt(
            lane_op("system.aiv_initialize_pipe", zero, zero, dir_mask=mask, slot_size=64, id=pipe), S
        )

    assert pipe_errors(setup(1), POP) == []
    assert pipe_errors(setup(3), POP) == []
    assert pipe_errors(setup(2, 5), POP) == []
    assert pipe_errors(setup(2), POP) == [
        "'k' uses 'tile.tpop_from_aic' on pipe 0, whose dir_mask 2 lacks cube to vector (1)"
    ]
    assert pipe_errors(setup(1), setup(1)) == ["'k' sets up pipe 0 twice"]
    assert pipe_errors(setup(4)) == ["'k' sets up pipe 0 with dir_mask 4, not 1, 2 or 3"]


def test_an_imported_buffer_is_reserved_by_the_peer() -> None:
    slots = ir.Var("slots", SCALAR, S)
    wanted = assign(slots, lane_op("system.import_peer_buffer", name="slots", peer_func="p"))
    reserve = assign(slots, lane_op("system.reserve_buffer", name="slots", size=64, base=0))
    assert pipe_errors(wanted) == ["'k' imports 'slots' from 'p', which is not there"]
    assert pipe_errors(wanted, peer=function(reserve, name="p", type=F.AIC)) == []
    other = function(assign(ir.Var("z", SCALAR, S), ir.ConstInt(1, D.INT32, S)), name="p", type=F.AIC)
    assert pipe_errors(wanted, peer=other) == ["'k' imports 'slots', which 'p' does not reserve"]
