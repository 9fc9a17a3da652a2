"""Random well-formed functions, built as IR: every kind of statement and scope, and all scalar operations.

Programs that start as text can only hold what the parser builds; these hold what a pass might.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from pypto import ir

S = ir.Span.unknown()
D = ir.DataType
INTEGERS = (D.INT64, D.INDEX, D.INT32, D.UINT8)
FLOATS = (D.FP32, D.FP16)
SCALARS = (*INTEGERS, *FLOATS, D.BOOL)
TASK_ID = ir.ScalarType(D.TASK_ID)
TENSOR = ir.TensorType([16, 16], D.FP32)
COMPARISONS = (ir.Eq, ir.Ne, ir.Lt, ir.Le, ir.Gt, ir.Ge)
ARITHMETIC = (ir.Add, ir.Sub, ir.Mul, ir.FloatDiv, ir.Min, ir.Max, ir.Pow)
INTEGER_ONLY = (ir.FloorDiv, ir.FloorMod, ir.BitAnd, ir.BitOr, ir.BitXor, ir.BitShiftLeft, ir.BitShiftRight)
NAMES = ("a", "b", "x", "x_1", "acc", "t__ssa_v0")
COMMENTS = (["a note"], ["one", "two"], ["# marked"])
LOOP_ATTRS = {"k": 1, "ratio": 1.5, "text": 'a"b', "flag": True}


class RandomFunction:
    """Builds one function; `visible` lists hold the variables that a statement may read."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def program(self) -> ir.Program:
        """An orchestration of random statements beside the kernel that it dispatches."""
        source, out = (ir.Var(name, TENSOR, S) for name in ("source", "out"))
        kernel = ir.Function(
            "kernel", [source, (out, ir.Out)], [TENSOR], ir.ReturnStmt([out], S), S, ir.FunctionType.InCore
        )
        params = [ir.Var(f"p{i}", ir.ScalarType(dtype), S) for i, dtype in enumerate(SCALARS)]
        params += [ir.Var("t0", TASK_ID, S), ir.Var("x0", TENSOR, S), ir.Var("x1", TENSOR, S)]
        body = ir.flatten_stmts(self.statements(list(params), 3, ()), S)
        main = ir.Function(
            "main", params, [], body, S, ir.FunctionType.Orchestration, attrs={"auto_scope": False}
        )
        return ir.Program([main, kernel], "P", S)

    # -- expressions

    def expr(self, visible: Sequence[ir.Var], dtype: ir.DataType, depth: int = 3) -> ir.Expr:
        rng = self.rng
        if depth == 0 or rng.random() < 0.25:
            return self.leaf(visible, dtype)
        if dtype is D.BOOL:
            return self.truth(visible, depth - 1)
        draw = rng.random()
        if draw < 0.15:
            return ir.Cast(self.varying(visible, rng.choice((*INTEGERS, *FLOATS)), depth - 1), dtype, S)
        if draw < 0.25:
            return ir.Neg(self.varying(visible, dtype, depth - 1), dtype, S)
        if draw < 0.3 and dtype.is_int():
            return ir.BitNot(self.varying(visible, dtype, depth - 1), dtype, S)
        operation = rng.choice((*ARITHMETIC, *INTEGER_ONLY) if dtype.is_int() else ARITHMETIC)
        operands = [self.varying(visible, dtype, depth - 1), self.expr(visible, dtype, depth - 1)]
        rng.shuffle(operands)
        return operation(*operands, dtype, S)

    def truth(self, visible: Sequence[ir.Var], depth: int) -> ir.Expr:
        draw = self.rng.random()
        if draw < 0.6:
            dtype = self.rng.choice((*INTEGERS, *FLOATS))
            operands = self.expr(visible, dtype, depth), self.varying(visible, dtype, depth)
            return self.rng.choice(COMPARISONS)(*operands, D.BOOL, S)
        if draw < 0.85:
            both = self.expr(visible, D.BOOL, depth), self.expr(visible, D.BOOL, depth)
            return self.rng.choice((ir.And, ir.Or))(*both, D.BOOL, S)
        return ir.Not(self.expr(visible, D.BOOL, depth), D.BOOL, S)

    def leaf(self, visible: Sequence[ir.Var], dtype: ir.DataType) -> ir.Expr:
        if self.rng.random() < 0.6:
            return self.varying(visible, dtype, 0)
        if dtype is D.BOOL:
            return ir.ConstBool(self.rng.random() < 0.5, S)
        if dtype.is_float():
            return ir.ConstFloat(self.rng.choice((0.0, -0.0, 1.5, 0.1, 1e20, -3.25)), dtype, S)
        return ir.ConstInt(self.rng.choice((0, 1, 5) if dtype is D.UINT8 else (0, 1, -7)), dtype, S)

    def varying(self, visible: Sequence[ir.Var], dtype: ir.DataType, depth: int) -> ir.Expr:
        """No constant: operations on constants alone read back as folded constants."""
        if depth:
            made = self.expr(visible, dtype, depth)
            if not isinstance(made, (ir.ConstInt, ir.ConstFloat, ir.ConstBool)):
                return made
        return self.rng.choice([v for v in visible if v.type == ir.ScalarType(dtype)])

    # -- statements

    def statements(self, visible: list[ir.Var], depth: int, inside: tuple[str, ...]) -> list[ir.Stmt]:
        made: list[ir.Stmt] = []
        for _ in range(self.rng.randint(1, 4)):
            made += self.statement(visible, depth, inside)
        return made

    def statement(self, visible: list[ir.Var], depth: int, inside: tuple[str, ...]) -> list[ir.Stmt]:
        kinds = [self.assignment, self.tensor_assignment, self.fence]
        if depth:
            kinds += [self.branch, self.counted_loop, self.conditional_loop, self.scope]
        if "kernel" not in inside:
            kinds += [self.submit, self.dispatch, self.task_barrier]
        stmts = self.rng.choice(kinds)(visible, depth, inside)
        if self.rng.random() < 0.15:
            ir.attach_leading_comments(stmts[-1], self.rng.choice(COMMENTS))
        return stmts

    def new(self, visible: list[ir.Var], type: ir.Type) -> ir.Var:
        var = ir.Var(self.rng.choice(NAMES), type, S)
        visible.append(var)
        return var

    def assignment(self, visible: list[ir.Var], *_: object) -> list[ir.Stmt]:
        dtype = self.rng.choice(SCALARS)
        value = self.expr(visible, dtype)
        return [ir.AssignStmt(self.new(visible, ir.ScalarType(dtype)), value, S)]

    def tensor_assignment(self, visible: list[ir.Var], *_: object) -> list[ir.Stmt]:
        value = ir.create_op_call("tensor.add", [self.tensor(visible), self.tensor(visible)], S)
        if self.rng.random() < 0.3:
            marked = {"k": 1, "dtype": D.BF16, "vars": [self.tensor(visible)], "directions": [ir.input]}
            value = ir.set_call_attrs(value, marked)
        return [ir.AssignStmt(self.new(visible, TENSOR), value, S)]

    def fence(self, *_: object) -> list[ir.Stmt]:
        return [ir.EvalStmt(ir.create_op_call("system.fence", [], S), S)]

    def tensor(self, visible: Sequence[ir.Var]) -> ir.Var:
        return self.rng.choice([var for var in visible if var.type is TENSOR])

    def task_ids(self, visible: Sequence[ir.Var]) -> list[ir.Var]:
        known = [var for var in visible if var.type is TASK_ID]
        return self.rng.sample(known, self.rng.randint(0, min(2, len(known))))

    def yielded(self, visible: list[ir.Var], types: Sequence[ir.ScalarType]) -> list[ir.Stmt]:
        return [ir.YieldStmt([self.expr(visible, type.dtype) for type in types], S)] if types else []

    def result_types(self) -> list[ir.ScalarType]:
        return [ir.ScalarType(self.rng.choice(SCALARS)) for _ in range(self.rng.choice((0, 0, 1, 2)))]

    def branch(self, visible: list[ir.Var], depth: int, inside: tuple[str, ...]) -> list[ir.Stmt]:
        types = self.result_types()

        def body() -> ir.Stmt:
            local = list(visible)
            stmts = self.statements(local, depth - 1, inside)
            return ir.flatten_stmts([*stmts, *self.yielded(local, types)], S)

        condition = self.varying(visible, D.BOOL, 2)
        then, otherwise = body(), body() if types or self.rng.random() < 0.5 else None
        return [ir.IfStmt(condition, then, otherwise, [self.new(visible, type) for type in types], S)]

    def carried(self, visible: list[ir.Var], types: Sequence[ir.ScalarType]) -> list[ir.IterArg]:
        return [
            ir.IterArg(self.rng.choice(NAMES), type, self.expr(visible, type.dtype, 1), S) for type in types
        ]

    def counted_loop(self, visible: list[ir.Var], depth: int, inside: tuple[str, ...]) -> list[ir.Stmt]:
        rng = self.rng
        kind = rng.choice(list(ir.ForKind))
        types = [] if kind is ir.ForKind.Unroll else self.result_types()
        dtype = rng.choice((D.INDEX, D.INDEX, D.INT64))
        index, carried = ir.Var("i", ir.ScalarType(dtype), S), self.carried(visible, types)
        local = [*visible, index, *carried]
        body = [*self.statements(local, depth - 1, inside), *self.yielded(local, types)]
        if not types and kind is ir.ForKind.Sequential and rng.random() < 0.2:
            body.append(rng.choice((ir.BreakStmt, ir.ContinueStmt))(S))
        attrs = {"pipeline_stages": rng.randint(1, 3)} if kind is ir.ForKind.Pipeline else {}
        stop = ir.ConstInt(4, dtype, S) if kind is ir.ForKind.Unroll else self.expr(visible, dtype, 1)
        bounds = (
            ir.ConstInt(rng.choice((0, 0, 2)), dtype, S),
            stop,
            ir.ConstInt(rng.choice((1, 2)), dtype, S),
        )
        results = [self.new(visible, type) for type in types]
        attrs |= LOOP_ATTRS if rng.random() < 0.2 else {}
        body_stmt = ir.flatten_stmts(body, S)
        return [ir.ForStmt(index, *bounds, carried, body_stmt, results, S, kind, attrs)]

    def conditional_loop(self, visible: list[ir.Var], depth: int, inside: tuple[str, ...]) -> list[ir.Stmt]:
        types = self.result_types()
        carried = self.carried(visible, types)
        local = [*visible, *carried]
        condition = ir.Lt(self.varying(local, D.INDEX, 0), ir.ConstInt(3, D.INDEX, S), D.BOOL, S)
        body = ir.flatten_stmts([*self.statements(local, depth - 1, inside), *self.yielded(local, types)], S)
        results = [self.new(visible, type) for type in types]
        return [ir.WhileStmt(condition, carried, body, results, S)]

    # -- tasks and scopes

    def submit(self, visible: list[ir.Var], _depth: int, inside: tuple[str, ...]) -> list[ir.Stmt]:
        rng = self.rng
        args = [self.tensor(visible), self.tensor(visible)]
        attrs: dict[str, object] = {}
        if rng.random() < 0.3:
            attrs["arg_directions"] = [rng.choice(list(ir.ArgDirection)) for _ in args]
        if rng.random() < 0.3:
            attrs["note"] = "text"
        launch = {}
        if "cluster" not in inside:
            launch = {"allow_early_resolve": rng.random() < 0.3}
            if rng.random() < 0.4:
                launch |= {"core_num": self.varying(visible, D.INDEX, 1), "sync_start": rng.random() < 0.5}
        deps = [] if "cluster" in inside else self.task_ids(visible)
        result = ir.TupleType([TENSOR, TASK_ID])
        value = ir.Submit(ir.GlobalVar("kernel"), args, deps, {}, attrs, result, S, **launch)
        both = ir.Var("_submit_tmp", result, S)
        parts = [ir.TupleGetItemExpr(both, i, S) for i in (0, 1)]
        named = [self.new(visible, TENSOR), self.new(visible, TASK_ID)]
        return [
            ir.AssignStmt(both, value, S),
            *(ir.AssignStmt(var, part, S) for var, part in zip(named, parts, strict=True)),
        ]

    def dispatch(self, visible: list[ir.Var], *_: object) -> list[ir.Stmt]:
        args = [self.tensor(visible), self.tensor(visible)]
        attrs = {"dump_vars": args[:1], "arg_direction_overrides": [1]} if self.rng.random() < 0.3 else {}
        value = ir.Call(ir.GlobalVar("kernel"), args, {}, attrs, TENSOR, S)
        return [ir.AssignStmt(self.new(visible, TENSOR), value, S)]

    def task_barrier(self, visible: list[ir.Var], *_: object) -> list[ir.Stmt]:
        deps = self.task_ids(visible)
        attrs = {"manual_dep_edges": deps, "dummy_task": True} if deps else {"dummy_task": True}
        value = ir.Call(ir.get_op("system.task_dummy"), [], {}, attrs, TASK_ID, S)
        return [ir.AssignStmt(self.new(visible, TASK_ID), value, S)]

    def scope(self, visible: list[ir.Var], depth: int, inside: tuple[str, ...]) -> list[ir.Stmt]:
        kinds = [self.kernel_scope, self.block_scope, self.cluster_scope, self.manual_scope, self.auto_scope]
        kinds += [self.level_scope]
        allowed = [self.lane_scope] if "kernel" in inside else kinds
        if "split" in inside:
            return self.assignment(visible)
        if "cluster" in inside:
            allowed = [self.kernel_scope] if "kernel" not in inside else allowed
        if "manual" in inside:
            allowed = [make for make in allowed if make not in (self.manual_scope, self.auto_scope)]
        return self.rng.choice(allowed)(visible, depth, inside)

    def _inner(self, visible: list[ir.Var], depth: int, inside: tuple[str, ...]) -> ir.Stmt:
        return ir.flatten_stmts(self.statements(visible, depth - 1, inside), S)

    def kernel_scope(self, visible: list[ir.Var], depth: int, inside: tuple[str, ...]) -> list[ir.Stmt]:
        rng = self.rng
        before: list[ir.Stmt] = []
        attrs: dict[str, object] = {}
        deps = self.task_ids(visible)
        if deps:
            attrs["manual_dep_edges"] = deps
        for key in ("arg_direction_overrides_vars", "dump_vars"):
            if rng.random() < 0.2:
                attrs[key] = [self.tensor(visible)]
        if rng.random() < 0.4 and "cluster" not in inside:
            task = self.new(visible, TASK_ID)
            before = [ir.AssignStmt(task, ir.create_op_call("system.task_invalid", [], S), S)]
            attrs["task_id_var"] = task
        attrs |= {key: True for key in ("allow_early_resolve", "windowize") if rng.random() < 0.2}
        hint = rng.choice(("", f"scope{rng.randrange(100)}"))
        split = rng.choice(list(ir.SplitMode))
        place = ("kernel",) if split is ir.NONE else ("kernel", "split")
        body = self._inner(visible, depth, (*inside, *place))
        return [*before, ir.InCoreScopeStmt(split, hint, body, S).replace(attrs=attrs)]

    def block_scope(self, visible: list[ir.Var], depth: int, inside: tuple[str, ...]) -> list[ir.Stmt]:
        rng = self.rng
        blocks = self.varying(visible, D.INDEX, 1)
        hint = rng.choice(("", f"scope{rng.randrange(100)}"))
        read = ir.create_op_call("tile.get_block_idx", [], S)
        block = ir.AssignStmt(ir.Var("block", read.type, S), read, S)
        stmts = self.statements(visible, depth - 1, (*inside, "kernel"))
        kernel = ir.InCoreScopeStmt(ir.NONE, hint, ir.flatten_stmts([block, *stmts], S), S)
        return [ir.SpmdScopeStmt(blocks, rng.random() < 0.3, f"{hint}_spmd" if hint else "", kernel, S)]

    def lane_scope(self, visible: list[ir.Var], depth: int, inside: tuple[str, ...]) -> list[ir.Stmt]:
        read = ir.create_op_call("tile.get_subblock_idx", [], S)
        lane = ir.AssignStmt(ir.Var("lane", read.type, S), read, S)
        stmts = [lane, *self.statements(visible, depth - 1, (*inside, "split"))]
        mode = self.rng.choice(list(ir.SplitMode))
        return [ir.SplitAivScopeStmt(mode, 2, "", ir.flatten_stmts(stmts, S), S)]

    def level_scope(self, visible: list[ir.Var], depth: int, inside: tuple[str, ...]) -> list[ir.Stmt]:
        level = self.rng.choice((ir.Level.CHIP, ir.Level.HOST, ir.Level.CLUSTER_0))
        return [ir.HierarchyScopeStmt(level, None, "", self._inner(visible, depth, inside), S)]

    def cluster_scope(self, visible: list[ir.Var], depth: int, inside: tuple[str, ...]) -> list[ir.Stmt]:
        return [ir.ClusterScopeStmt("", self._inner(visible, depth, (*inside, "cluster")), S)]

    def manual_scope(self, visible: list[ir.Var], depth: int, inside: tuple[str, ...]) -> list[ir.Stmt]:
        return [ir.RuntimeScopeStmt(True, "", self._inner(visible, depth, (*inside, "manual")), S)]

    def auto_scope(self, visible: list[ir.Var], depth: int, inside: tuple[str, ...]) -> list[ir.Stmt]:
        return [ir.RuntimeScopeStmt(False, "", self._inner(visible, depth, inside), S)]
