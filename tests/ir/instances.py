"""One or more objects of every node, type and view class, with attributes of every kind."""

from __future__ import annotations

from collections.abc import Iterator

from pypto import ir
from pypto.ir.types import MemRefType

WHERE = ir.Span("model.py", 3, 5, 4, 9)
FREE, OTHER, ROWS, COLS = (
    ir.Var(name, ir.ScalarType(ir.INDEX), WHERE) for name in ("free", "other", "rows", "cols")
)
BASE = ir.Var("base", ir.PtrType(), WHERE)
WINDOW = ir.WindowBuffer(BASE, ir.ConstInt(64, ir.INDEX, WHERE), True, False, WHERE)
CONSTANT_TYPES = (
    ir.UnknownType, ir.PtrType, ir.WindowBufferType, ir.CommCtxType, ir.PrefetchAsyncContextType,
    ir.AsyncEventType, ir.AsyncSessionType, MemRefType,
)  # fmt: skip


def attribute_values() -> dict[str, object]:
    """A value of every kind that attributes may hold."""
    return {
        "a_dtype": ir.BF16, "a_space": ir.Mem.Acc, "a_layout": ir.TensorLayout.NZ,
        "a_box": ir.TileLayout.col_major, "a_pad": ir.PadValue.min, "a_direction": ir.ArgDirection.NoDep,
        "a_pipe": ir.PipeType.V, "a_bool": False, "an_int": -7, "a_float": float("nan"), "minus_zero": -0.0,
        "a_text": "text", "directions": [ir.input, ir.inout], "nothing": [],
        "arg_direction_overrides": [0, 2], "dump_vars": [FREE], "manual_dep_edges": [],
        "variables": [FREE, OTHER], "task_id_var": FREE, "predicate": FREE + 1, "core_num": 4,
    }  # fmt: skip


def types() -> Iterator[ir.Type]:
    for cls in CONSTANT_TYPES:
        yield cls()
    yield from (
        ir.ScalarType(dtype) for dtype in (ir.INT64, ir.INDEX, ir.BOOL, ir.FP8E8M0, ir.DataType.TASK_ID)
    )
    for dims in ([], [4], [ir.ConstInt(4, ir.INT32, WHERE)], [ROWS, COLS], [ROWS + 1, ROWS], [2, 3, 4]):
        yield ir.TensorType(dims, ir.FP32)
        yield ir.DistributedTensorType(dims, ir.FP32)
        yield ir.TileType(dims, ir.FP32)
    pinned = ir.MemRef(BASE, 0, 256, WHERE, True, 2, ir.ConstInt(1, ir.INDEX, WHERE))
    nd, dn = ir.TensorLayout.ND, ir.TensorLayout.DN
    yield ir.TensorType([4, ROWS], ir.FP16, pinned, ir.TensorView([ROWS, 1], nd, [4, 2], ir.PadValue.zero))
    yield ir.TensorType([4, 8], ir.FP16, None, ir.TensorView(None, dn))
    yield ir.DistributedTensorType([4, 8], ir.FP16, pinned, ir.TensorView([COLS, 1], nd))
    yield ir.DistributedTensorType([ROWS], ir.FP32, WINDOW)
    yield ir.TileType([16, ROWS], ir.FP16, pinned, ir.TileView([16, 8], [ROWS, 1], COLS), ir.Mem.Vec)
    yield ir.TileType([16, 16], ir.FP16, None, ir.TileView(start_offset=0), ir.Mem.Mat)
    compact = ir.TileView(fractal=32, pad=ir.PadValue.max, compact=ir.CompactMode.normal)
    yield ir.TileType([16, 16], ir.FP16, None, compact, ir.Mem.Acc)
    yield ir.ArrayType(ir.DataType.TASK_ID, 4)
    yield ir.ArrayType(ir.INT32, 4)
    yield ir.TupleType([])
    yield ir.TupleType([ir.TensorType([ROWS], ir.FP32), ir.TupleType([ir.ScalarType(ir.INT32)])])


def variables() -> Iterator[ir.Var]:
    yield ir.Var("v", ir.ScalarType(ir.INT64), WHERE)
    yield ir.Var("t", ir.TensorType([ROWS, 4], ir.FP32), WHERE)
    yield FREE
    yield ir.IterArg("carried", ir.ScalarType(ir.INDEX), FREE, WHERE)
    yield ir.MemRef(BASE, FREE, 64, WHERE, 3, ir.ConstInt(2, ir.INDEX, WHERE))
    yield ir.MemRef("declared", WHERE, 2)
    yield ir.MemRef(ir.Mem.Vec, FREE + 1, 64, 3, WHERE)
    yield WINDOW
    yield ir.WindowBuffer(BASE, FREE, False, True, WHERE)


def expressions() -> Iterator[ir.Expr]:
    yield from variables()
    yield from (ir.Var("typed", type, WHERE) for type in types())
    for value in (0, -1, 2**63 - 1, -(2**63)):
        yield from (ir.ConstInt(value, dtype, WHERE) for dtype in (ir.INT64, ir.INDEX, ir.INT32, ir.FP32))
    for number in (0.0, -0.0, 1.5, float("inf"), float("nan")):
        yield from (ir.ConstFloat(number, dtype, WHERE) for dtype in (ir.FP32, ir.BF16))
    yield from (ir.ConstBool(value, WHERE) for value in (True, False))
    one = ir.ConstInt(1, ir.INDEX, WHERE)
    for operation in ir.BINARY_CLASSES:
        yield operation(FREE, one, ir.INDEX, WHERE)
        yield operation(FREE, FREE, ir.BOOL, WHERE)
    yield from (operation(FREE, ir.INDEX, WHERE) for operation in ir.UNARY_CLASSES)
    pair = ir.MakeTuple([FREE, one], WHERE)
    yield from (
        pair,
        ir.MakeTuple([], WHERE),
        ir.TupleGetItemExpr(pair, 0, WHERE),
        ir.TupleGetItemExpr(pair, 1, WHERE),
    )
    directions = {"arg_directions": [ir.input, ir.scalar_dir]}
    for op in (ir.Op("an.op"), ir.GlobalVar("a_function")):
        yield ir.Call(op, [], WHERE)
        yield ir.Call(op, [FREE, pair], {"k": 1}, directions, ir.TensorType([ROWS], ir.FP32), WHERE)
        yield ir.Call(op, [FREE], attribute_values(), attribute_values(), ir.ScalarType(ir.INT32), WHERE)
        yield ir.Submit(op, [FREE], [OTHER], ir.UnknownType(), WHERE)
        yield ir.Submit(
            op, [FREE, one], [OTHER], {"k": True}, attribute_values(),
            ir.TupleType([ir.ScalarType(ir.INT32)]), WHERE, one, True, True, FREE < 3,
        )  # fmt: skip


def small_body(value: int = 1) -> ir.Stmt:
    target = ir.Var("a", ir.ScalarType(ir.INDEX), WHERE)
    first = ir.AssignStmt(target, ir.ConstInt(value, ir.INDEX, WHERE), WHERE)
    return ir.SeqStmts([first, ir.EvalStmt(target + FREE, WHERE)], WHERE)


def statements() -> Iterator[ir.Stmt]:
    index, result = (ir.ScalarType(ir.INDEX) for _ in range(2))
    carried = ir.IterArg("carried", index, FREE, WHERE)
    yields = ir.YieldStmt([carried + 1], WHERE)
    final = ir.Var("final", result, WHERE)
    zero, four = (ir.ConstInt(value, ir.INDEX, WHERE) for value in (0, 4))
    counter = ir.Var("i", index, WHERE)
    yield small_body()
    yield ir.SeqStmts([], WHERE)
    yield ir.SeqStmts([small_body(2), ir.BreakStmt(WHERE)], WHERE)
    yield ir.AssignStmt(ir.Var("x", index, WHERE), FREE, WHERE)
    yield ir.attach_leading_comments(ir.EvalStmt(FREE + OTHER, WHERE), ["a comment", "of two lines"])
    yield from (ir.YieldStmt(WHERE), yields, ir.ReturnStmt(WHERE), ir.ReturnStmt([FREE, OTHER], WHERE))
    yield from (
        ir.BreakStmt(WHERE),
        ir.ContinueStmt(WHERE),
        ir.InlineStmt("x = 1", ir.InlineLanguage.Python, WHERE),
    )
    yield ir.IfStmt(FREE < 3, small_body(), None, [], WHERE)
    yield ir.IfStmt(FREE < 3, ir.YieldStmt([FREE], WHERE), ir.YieldStmt([OTHER], WHERE), [final], WHERE)
    yield ir.ForStmt(counter, zero, four, zero, [], small_body(), [], WHERE)
    yield ir.ForStmt(
        counter, FREE, four, zero, [carried], yields, [final], WHERE, ir.ForKind.Pipeline, attribute_values()
    )
    yield ir.WhileStmt(carried < 3, [carried], yields, [final], WHERE)
    yield from scopes()


def scopes() -> Iterator[ir.ScopeStmt]:
    level, role, split = ir.Level.HOST, ir.Role.SubWorker, ir.SplitMode.UP_DOWN
    plain = (
        ir.InCoreScopeStmt(split, "name", small_body(), WHERE),
        ir.ClusterScopeStmt("name", small_body(), WHERE),
        ir.HierarchyScopeStmt(level, role, "name", small_body(), WHERE),
        ir.HierarchyScopeStmt(level, None, "", small_body(), WHERE),
        ir.SpmdScopeStmt(FREE, True, "name", small_body(), WHERE),
        ir.RuntimeScopeStmt(True, "name", small_body(), WHERE),
        ir.CommDomainScopeStmt([0, 1], [WINDOW], "name", small_body(), WHERE),
        ir.SplitAivScopeStmt(split, 2, "name", small_body(), WHERE),
    )
    yield from plain
    yield from (scope.replace(attrs=attribute_values()) for scope in plain)


def functions() -> Iterator[ir.Function]:
    shape = ir.TensorType([ROWS, COLS], ir.FP32)
    x, out = (ir.Var(name, shape, WHERE) for name in ("x", "out"))
    body = ir.ReturnStmt([x], WHERE)
    yield ir.Function("f", [], [], ir.SeqStmts([], WHERE), WHERE)
    yield ir.Function("g", [x, (out, ir.ParamDirection.Out)], [shape], body, WHERE, ir.FunctionType.AIV)
    yield ir.Function(
        "h", [(x, ir.ParamDirection.InOut)], [shape], body, WHERE, ir.FunctionType.Opaque, ir.Level.POD,
        ir.Role.Orchestrator, attribute_values(), True,
    )  # fmt: skip


def programs() -> Iterator[ir.Program]:
    yield ir.Program([], "Empty", WHERE)
    yield ir.Program(list(functions()), "P", WHERE)


def nodes() -> list[ir.IRNode]:
    return [*expressions(), *statements(), *functions(), *programs()]


def everything() -> list[ir.IRNode | ir.Type]:
    return [*nodes(), *types()]
