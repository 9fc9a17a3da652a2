"""What `pypto.testing` tells about operators: memory access, and the pipe of a core that runs a call."""

from __future__ import annotations

import pytest

from pypto import ir, testing

S = ir.Span.unknown()
FP32 = ir.DataType.FP32


def tile(space: ir.MemorySpace) -> ir.Var:
    return ir.Var("t", ir.TileType([16, 16], FP32, None, None, space), S)


def test_declarations_tell_which_operators_touch_memory() -> None:
    evidence = testing.get_execution_memory_access_evidence
    assert evidence("tile.reshape") == "none" and evidence("tile.store") == "access"
    assert evidence("tile.add") is None
    with pytest.raises(ValueError, match="nothing"):
        evidence("tile.nothing")


def test_the_pipe_of_a_call_follows_from_operator_and_memory_space() -> None:
    x = ir.Var("x", ir.TensorType([16, 16], FP32), S)
    zeros = [0, 0]
    vec, acc, mat = (tile(getattr(ir.MemorySpace, each)) for each in ("Vec", "Acc", "Mat"))
    pipes = {
        ir.PipeType.MTE2: ir.op.tile.load(x, zeros, [16, 16]),
        ir.PipeType.MTE3: ir.op.tile.store(vec, zeros, x),
        ir.PipeType.FIX: ir.op.tile.store(acc, zeros, x),
        ir.PipeType.MTE1: ir.op.tile.move(mat, target_memory=ir.MemorySpace.Left),
        ir.PipeType.V: ir.op.tile.add(vec, vec),
        ir.PipeType.S: ir.op.tile.read(vec, zeros),
    }
    assert {pipe: testing.try_infer_pipe(call) for pipe, call in pipes.items()} == {p: p for p in pipes}
    assert testing.try_infer_pipe(ir.op.tile.reshape(vec, [256, 1])) is None
    with pytest.raises(ValueError, match="nothing"):
        testing.try_infer_pipe(ir.Call(ir.Op("tile.nothing"), [], S))
