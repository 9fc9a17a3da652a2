"""Outlining looks at a function once, not once per scope."""

from __future__ import annotations

from pypto import ir, passes
from tests.work import lines_run

SPAN = ir.Span.unknown()
TENSOR = ir.TensorType([64], ir.DataType.FP32)


def chain(scopes: int) -> ir.Program:
    """A function of many scopes; each reads the result of the previous one and stores to one tensor."""
    x = ir.Var("x", TENSOR, SPAN)
    out = ir.Var("out", TENSOR, SPAN)
    zero = ir.MakeTuple([ir.ConstInt(0, ir.DataType.INDEX, SPAN)], SPAN)
    body: list[ir.Stmt] = []
    previous = x
    for number in range(scopes):
        value = ir.Var(f"v{number}", TENSOR, SPAN)
        tile = ir.Var(f"t{number}", ir.TileType([64], ir.DataType.FP32), SPAN)
        inner = [
            ir.AssignStmt(value, ir.Call(ir.Op("tensor.add"), [previous, x], TENSOR, SPAN), SPAN),
            ir.AssignStmt(tile, ir.Call(ir.Op("tile.load"), [value, zero, zero], tile.type, SPAN), SPAN),
            ir.EvalStmt(ir.Call(ir.Op("tile.store"), [tile, zero, out], TENSOR, SPAN), SPAN),
        ]
        body.append(ir.InCoreScopeStmt(name_hint="layer", body=ir.SeqStmts(inner, SPAN), span=SPAN))
        previous = value
    body.append(ir.ReturnStmt([out, previous], SPAN))
    main = ir.Function(
        "main",
        [x, (out, ir.ParamDirection.Out)],
        [TENSOR, TENSOR],
        ir.SeqStmts(body, SPAN),
        SPAN,
        ir.FunctionType.Orchestration,
    )
    return ir.Program([main], "P", SPAN)


def work(scopes: int) -> int:
    source = chain(scopes)
    assert len(passes.outline_incore_scopes()(source).functions_) == scopes + 1
    return lines_run(lambda: passes.outline_incore_scopes()(source))


def test_work_grows_with_the_number_of_scopes_and_not_with_its_square():
    assert work(200) < 4 * 1.1 * work(50)
