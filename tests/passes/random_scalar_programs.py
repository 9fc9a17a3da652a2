"""Random scalar functions with nested loops, branches, break and continue, before SSA form."""

from __future__ import annotations

from hypothesis import strategies as st

from pypto import ir

S = ir.Span.unknown()
INDEX = ir.DataType.INDEX
BOOL = ir.DataType.BOOL
NAMES = ("a", "b", "c")


def const(value: int) -> ir.ConstInt:
    return ir.ConstInt(value, INDEX, S)


class _Builder:
    """Draws a function. Every variable is set at the start, so that each read has a value."""

    def __init__(self, draw: st.DrawFn, kernel: bool, scopes: bool) -> None:
        self.draw = draw
        self.kernel = kernel
        self.scopes = ["scope"] if scopes else []
        self.vars = [ir.Var(name, ir.ScalarType(INDEX), S) for name in NAMES]
        self.params = [ir.Var(name, ir.ScalarType(INDEX), S) for name in ("p", "q")]
        self.loop_vars: list[ir.Var] = []

    def atom(self) -> ir.Expr:
        choices: list[ir.Expr] = [
            *self.vars,
            *self.params,
            *self.loop_vars,
            const(self.draw(st.integers(0, 4))),
        ]
        return self.draw(st.sampled_from(choices))

    def value(self) -> ir.Expr:
        kind = self.draw(st.sampled_from(["atom", "add", "sub", "min", "mul2"]))
        left = self.atom()
        if kind == "atom":
            return left
        if kind == "mul2":
            return ir.FloorMod(ir.Mul(left, const(2), INDEX, S), const(7), INDEX, S)
        cls = {"add": ir.Add, "sub": ir.Sub, "min": ir.Min}[kind]
        return ir.FloorMod(cls(left, self.atom(), INDEX, S), const(11), INDEX, S)

    def condition(self) -> ir.Expr:
        cls = self.draw(st.sampled_from([ir.Lt, ir.Ge, ir.Eq, ir.Ne, ir.Gt]))
        return cls(self.atom(), self.atom(), BOOL, S)

    def body(self, depth: int, in_loop: bool) -> ir.Stmt:
        count = self.draw(st.integers(1, 3))
        stmts = [self.stmt(depth, in_loop) for _ in range(count)]
        return stmts[0] if len(stmts) == 1 else ir.SeqStmts(stmts, S)

    def stmt(self, depth: int, in_loop: bool) -> ir.Stmt:
        kinds = ["assign", "assign"]
        if depth > 0:
            kinds += ["if", "if", "for", "while", *self.scopes]
        if in_loop and self.kernel:
            kinds += ["break", "continue"]
        kind = self.draw(st.sampled_from(kinds))
        if kind == "assign":
            return ir.AssignStmt(self.draw(st.sampled_from(self.vars)), self.value(), S)
        if kind == "break":
            return ir.BreakStmt(S)
        if kind == "continue":
            return ir.ContinueStmt(S)
        if kind == "scope":
            return ir.RuntimeScopeStmt(manual=False, body=self.body(depth - 1, in_loop), span=S)
        if kind == "if":
            else_body = self.body(depth - 1, in_loop) if self.draw(st.booleans()) else None
            return ir.IfStmt(self.condition(), self.body(depth - 1, in_loop), else_body, [], S)
        if kind == "for":
            return self.for_loop(depth)
        return self.while_loop(depth)

    def for_loop(self, depth: int) -> ir.Stmt:
        var = ir.Var(f"i{depth}", ir.ScalarType(INDEX), S)
        start, stop, step = self.draw(
            st.sampled_from([(0, 3, 1), (0, 1, 1), (2, 2, 1), (3, 0, -1), (0, 5, 2), (1, None, 1)])
        )
        stop_expr = self.draw(st.sampled_from(self.vars)) if stop is None else const(stop)
        self.loop_vars.append(var)
        body = self.body(depth - 1, True)
        self.loop_vars.pop()
        return ir.ForStmt(var, const(start), stop_expr, const(step), [], body, [], S)

    def while_loop(self, depth: int) -> ir.Stmt:
        """A loop that counts a variable of its own down, so that it ends whatever the body does."""
        count = ir.Var(f"w{depth}", ir.ScalarType(INDEX), S)
        down = ir.AssignStmt(count, ir.Sub(count, const(1), INDEX, S), S)
        body = ir.SeqStmts([down, self.body(depth - 1, True)], S)
        condition = ir.Gt(count, const(0), BOOL, S)
        loop = ir.WhileStmt(condition, [], body, [], S)
        return ir.SeqStmts([ir.AssignStmt(count, const(3), S), loop], S)

    def function(self) -> ir.Function:
        starts = [ir.AssignStmt(var, self.draw(st.sampled_from(self.params)), S) for var in self.vars]
        body = self.body(4, False)
        result = ir.ReturnStmt(list(self.vars), S)
        kind = ir.FunctionType.InCore if self.kernel else ir.FunctionType.Opaque
        types = [ir.ScalarType(INDEX)] * len(self.vars)
        return ir.Function("main", self.params, types, ir.SeqStmts([*starts, body, result], S), S, type=kind)


@st.composite
def scalar_programs(draw: st.DrawFn, *, kernel: bool = True, scopes: bool = True) -> ir.Program:
    """A program of one function `main(p, q)`; a kernel may hold break and continue."""
    return ir.Program([_Builder(draw, kernel, scopes).function()], "P", S)
