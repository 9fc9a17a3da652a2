"""Python source that computes what a program of the IR computes, at any stage of compilation.

One Python function per function of the IR, with the same name and parameters. Loops and branches are Python's
own; what a loop carries is assigned at the end of its body. Everything else calls `pypto.debug.execution` and
`pypto.debug.operators`, imported as `rt`.
"""

from __future__ import annotations

import enum
import keyword
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from pypto import ir
from pypto.core.dtype import DataType
from pypto.debug.execution import KERNEL_TYPES, Function
from pypto.debug.expressions import RESERVED, ExpressionSource, number
from pypto.debug.operators import is_supported
from pypto.ir.walk import walk, walk_stmts

_HEADER = """\
# Computes what the IR of {what} computes, with torch tensors or numpy arrays; written by torch_codegen.
from pypto import ir
from pypto.debug import rt
"""


def python_source(node: ir.Program | ir.Function, *, check_shapes: bool = False) -> str:
    """See `pypto.debug.torch_codegen`."""
    if isinstance(node, ir.Program):
        functions, what = list(node.functions_.values()), f"program {node.name!r}"
    else:
        functions, what = [node], f"function {node.name!r}"
    for each in functions:
        _check_word(each.name, "function name")
        if each.name in RESERVED:
            raise ValueError(f"Unsupported function name {each.name!r} in torch_codegen: the source uses it")
    known = {each.name: each for each in functions}
    parts = [_HEADER.format(what=what)]
    parts += [_FunctionSource(each, known, check_shapes).text() for each in functions]
    return "\n\n".join(parts)


def loaded(program: ir.Program, *, check_shapes: bool = False) -> dict[str, Function]:
    """The functions of a program by name, ready to run."""
    namespace: dict[str, Any] = {}
    source = python_source(program, check_shapes=check_shapes)
    exec(compile(source, f"<torch_codegen of {program.name}>", "exec"), namespace)
    return {name: namespace[name] for name in program.functions_}


class _FunctionSource(ExpressionSource):
    """Writes one function."""

    def __init__(self, function: ir.Function, known: dict[str, ir.Function], check_shapes: bool) -> None:
        super().__init__([*known, function.name])
        self.function, self.known, self.check_shapes = function, known, check_shapes
        self.lanes = _lanes(function, known)
        self.occurrences = _occurrences(function.body)
        self.lines: list[str] = []
        self.depth = 1
        self.may_be_unbound: dict[ir.Var, None] = {}  # assigned in a branch of a scope that publishes them
        self.targets: list[str] = []  # what the yield of the innermost loop or branch assigns

    def text(self) -> str:
        function = self.function
        params = [self.name(param) for param in function.params_]
        directions = "".join(f", {each.name!r}" for each in function.param_directions)
        returned = _returned_parameters(function)
        known = "" if returned is None else f", returned={returned}"
        if _is_dual(function):
            known += ", dual=True"
        self._bind_extents()
        if self.lanes:
            dual = any(map(_is_dual, self.lanes))
            self.line(f"rt.open_lanes(dual={dual})")
        self.stmt(function.body)
        head = [
            f"@rt.function({function.func_type.name!r}{directions}{known})",
            f"def {function.name}({', '.join(params)}):",
        ]
        unbound = [self.names[var] for var in self.may_be_unbound if var not in set(function.params_)]
        head += [f"    {name} = None" for name in unbound]
        return "\n".join([*head, *(self.lines or ["    pass"])]) + "\n"

    def _bind_extents(self) -> None:
        bound = set(self.function.params_)
        for param in self.function.params_:
            type_ = param.type
            if not isinstance(type_, ir.TensorType):
                continue
            rank = len(type_.shape_)
            if self.check_shapes and all(isinstance(dim, ir.ConstInt) for dim in type_.shape_):
                shape = "".join(f", {self.expr(dim)}" for dim in type_.shape_)
                self.line(f"rt.check_shape({self.names[param]}, {param.name_hint!r}{shape})")
            for extents, what in ((type_.shape_, "extent"), (_valid_extents(type_), "valid_extent")):
                for axis, dim in enumerate(extents):
                    if isinstance(dim, ir.Var) and dim not in bound:
                        bound.add(dim)
                        self.line(f"{self.name(dim)} = rt.{what}({self.names[param]}, {axis - rank})")

    # --- text

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        before = len(self.lines)
        self.depth += 1
        yield
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1

    # --- statements

    def stmt(self, stmt: ir.Stmt) -> None:
        for comment in stmt.leading_comments if not isinstance(stmt, ir.SeqStmts) else ():
            for line in comment.splitlines():
                self.line(f"# {line}")
        write = self._WRITE.get(type(stmt))
        if write is None:
            raise ValueError(f"Unsupported statement {type(stmt).__name__} in torch_codegen")
        write(self, stmt)

    def _sequence(self, stmt: ir.SeqStmts) -> None:
        for each in stmt.stmts_:
            self.stmt(each)

    def _assign(self, stmt: ir.AssignStmt) -> None:
        value = self.expr(stmt.value)
        self.line(f"{self.name(stmt.var)} = {value}")

    def _eval(self, stmt: ir.EvalStmt) -> None:
        self.line(self.expr(stmt.expr))

    def _return(self, stmt: ir.ReturnStmt) -> None:
        self.line(f"return {self.list_of(stmt.value_)}".rstrip())

    def _yield(self, stmt: ir.YieldStmt) -> None:
        self.assign(self.targets, [self.expr(value) for value in stmt.value_])

    def assign(self, targets: Sequence[str], values: Sequence[str]) -> None:
        """One assignment to all targets at once."""
        pairs = [pair for pair in zip(targets, values, strict=True) if pair[0] != pair[1]]
        if pairs:
            left, right = (", ".join(side) for side in zip(*pairs, strict=True))
            self.line(f"{left} = {right}")

    def _break(self, stmt: ir.BreakStmt) -> None:
        self.line("break")

    def _continue(self, stmt: ir.ContinueStmt) -> None:
        self.line("continue")

    def _if(self, stmt: ir.IfStmt) -> None:
        outer, self.targets = self.targets, [self.name(var) for var in stmt.return_vars_] or self.targets
        with self.block(f"if {self.expr(stmt.condition)}:"):
            self.stmt(stmt.then_body)
        if stmt.else_body is not None:
            with self.block("else:"):
                self.stmt(stmt.else_body)
        self.targets = outer

    def _for(self, stmt: ir.ForStmt) -> None:
        bounds = ", ".join(self.expr(each) for each in (stmt.start, stmt.stop, stmt.step))
        self._loop(stmt, lambda: f"for {self.name(stmt.loop_var)} in rt.turns({bounds}):")

    def _while(self, stmt: ir.WhileStmt) -> None:
        self._loop(stmt, lambda: f"while {self.expr(stmt.condition)}:")

    def _loop(self, loop: ir.ForStmt | ir.WhileStmt, head: Callable[[], str]) -> None:
        starts = [self.expr(each.initValue) for each in loop.iter_args_]
        carried = [self.name(each) for each in loop.iter_args_]
        self.assign(carried, starts)
        outer, self.targets = self.targets, carried
        with self.block(head()):
            if isinstance(loop, ir.WhileStmt):
                self.line("rt.turn()")
            self.stmt(loop.body)
        self.targets = outer
        if self.function.func_type in KERNEL_TYPES:
            for start, each in zip(starts, loop.iter_args_, strict=True):
                if isinstance(each.type, ir.TensorType):
                    self.line(f"rt.note_carried({start}, {self.name(each)})")
        self.assign([self.name(var) for var in loop.return_vars_], carried)

    def _scope(self, stmt: ir.ScopeStmt) -> None:
        self.stmt(stmt.body)

    def _runtime_scope(self, stmt: ir.RuntimeScopeStmt) -> None:
        if stmt.manual:
            with self.block("with rt.manual_scope():"):
                self.stmt(stmt.body)
        else:
            self.stmt(stmt.body)

    def _incore_scope(self, stmt: ir.InCoreScopeStmt) -> None:
        with self.block("with rt.core():"):
            self.stmt(stmt.body)
        if self.function.func_type in KERNEL_TYPES:
            return
        variables = _leaving(stmt, self.occurrences)
        certain = _defined_for_certain(stmt.body)
        self.may_be_unbound.update((var, None) for var in variables if var not in certain)
        leaving = [self.name(var) for var in variables]
        leaving += [target for target in self.targets if _yields(stmt.body) and target not in leaving]
        if leaving:
            names = ", ".join(leaving)
            self.line(f"[{names}] = rt.publish({names})")

    def _spmd_scope(self, stmt: ir.SpmdScopeStmt) -> None:
        condition = stmt.attrs_.get("predicate")
        given = "" if condition is None else f", {self.expr(condition)}"
        with self.block(f"for _ in rt.blocks({self.expr(stmt.core_num)}{given}):"):
            self.stmt(stmt.body)

    def _split_region(self, stmt: ir.SplitAivScopeStmt) -> None:
        with self.block(f"for _ in rt.split_region({stmt.split.value}):"):
            self.stmt(stmt.body)

    _WRITE: ClassVar[dict[type, Callable[[Any, Any], None]]] = {
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
        ir.SplitAivScopeStmt: _split_region,
    }

    # --- calls

    def call(self, call: ir.Call | ir.Submit) -> str:
        callee = self.known.get(call.op.name)
        if callee is not None or isinstance(call.op, ir.GlobalVar):
            return self._dispatch(call, callee)
        name = call.op.name
        if not is_supported(name):
            raise ValueError(f"Unsupported op {name!r} in torch_codegen")
        operands = self.list_of(call.args_)
        parts = [repr(name), f"({operands}{',' if len(call.args_) == 1 else ''})"]
        result = self._result(call.type)
        if result:
            parts.append(result)
        deps = self._deps(call)
        if deps:
            parts.append(f"deps=[{deps}]")
        for key, value in call.kwargs_.items():
            _check_word(key, "keyword")
            parts.append(f"{key}={_literal(value)}")
        return f"rt.op({', '.join(parts)})"

    def _result(self, type_: ir.Type) -> str:
        if isinstance(type_, ir.ScalarType):
            return f"rt.scalar({_literal(type_.dtype)})"
        if not isinstance(type_, ir.TensorType | ir.TileType):
            return ""
        shape = self.list_of(type_.shape_)
        valid = self.list_of(_valid_extents(type_))
        more = "" if valid == shape else f", [{valid}]"
        return f"rt.shaped([{shape}], {_literal(type_.dtype)}{more})"

    def _deps(self, call: ir.Call | ir.Submit) -> str:
        deps = call.deps_ if isinstance(call, ir.Submit) else call.attrs_.get("manual_dep_edges", ())
        return self.list_of(deps)

    def _dispatch(self, call: ir.Call | ir.Submit, callee: ir.Function | None) -> str:
        parts = [call.op.name, *(self.expr(arg) for arg in call.args_)]
        if callee is not None and callee in self.lanes:
            return f"rt.lane({', '.join(parts)}, results={len(callee.return_types)})"
        for param in callee.params_[len(call.args_) :] if callee is not None else ():
            assert isinstance(param.type, ir.TensorType)  # an output that a submit leaves to the runtime
            parts.append(f"rt.buffer([{self.list_of(param.type.shape_)}], {_literal(param.type.dtype)})")
        is_submit = isinstance(call, ir.Submit)
        if call.arg_directions:
            parts.append(f"directions={[each.name for each in call.arg_directions]}")
        count = call.core_num if isinstance(call, ir.Submit) else call.attrs_.get("core_num")
        if count is not None:
            parts.append(f"blocks={count if isinstance(count, int) else self.expr(count)}")
        deps = self._deps(call)
        if deps:
            parts.append(f"deps=[{deps}]")
        if isinstance(call, ir.Submit) and call.predicate is not None:
            parts.append(f"predicate={self.expr(call.predicate)}")
        if is_submit:
            parts.append("submit=True")
        return f"rt.dispatch({', '.join(parts)})"


def _check_word(word: str, what: str) -> None:
    """Only names may go into the source as they are: IR from elsewhere must not bring code with it."""
    if not word.isidentifier() or keyword.iskeyword(word):
        raise ValueError(f"Unsupported {what} {word!r} in torch_codegen: it is no Python name")


def _literal(value: Any) -> str:
    """Source text of a keyword's value."""
    if isinstance(value, DataType):
        return f"ir.DataType.{value.member}"
    if isinstance(value, enum.Enum):
        return f"ir.{type(value).__name__}.{value.name}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_literal(each) for each in value)}]"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, bool | int | str) or value is None:
        return repr(value)
    raise ValueError(f"Unsupported keyword value {value!r} in torch_codegen")


def _valid_extents(type_: ir.TensorType | ir.TileType) -> Sequence[ir.Expr]:
    if isinstance(type_, ir.TileType):
        return type_.get_effective_tile_view().valid_shape_
    view = type_.tensor_view
    return view.valid_shape_ if view is not None and view.valid_shape_ else type_.shape_


def _returned_parameters(function: ir.Function) -> tuple[int, ...] | None:
    """Positions of the parameters that a function returns, None if it returns anything else."""
    positions = {param: position for position, param in enumerate(function.params_)}
    returns = [node for node in walk(function.body) if isinstance(node, ir.ReturnStmt)]
    if not returns:
        return ()
    values = returns[0].value_
    if len(returns) > 1 or not all(isinstance(each, ir.Var) and each in positions for each in values):
        return None
    return tuple(positions[each] for each in values if isinstance(each, ir.Var))


def _is_dual(function: ir.Function) -> bool:
    return function.attrs_.get("dual_aiv_dispatch") is True


def _lanes(function: ir.Function, known: dict[str, ir.Function]) -> list[ir.Function]:
    """The kernels that a group runs at the same time, if there are several or one on both vector lanes."""
    if function.func_type is not ir.FunctionType.Group:
        return []
    calls = (node for node in walk(function.body) if isinstance(node, ir.Call) and node.op.name in known)
    callees = [known[call.op.name] for call in calls]
    lanes = [each for each in callees if each.func_type in (ir.FunctionType.AIC, ir.FunctionType.AIV)]
    cube = any(each.func_type is ir.FunctionType.AIC for each in lanes)
    vector = any(each.func_type is ir.FunctionType.AIV for each in lanes)
    both = any(map(_is_dual, lanes))
    return lanes if (cube and vector) or both else []


def _occurrences(stmt: ir.Stmt) -> Counter[ir.Var]:
    return Counter(node for node in walk(stmt) if isinstance(node, ir.Var))


def _leaving(scope: ir.ScopeStmt, everywhere: Counter[ir.Var]) -> list[ir.Var]:
    """Tensors and tiles defined in a scope and used outside of it, in the order of their definitions."""
    defined: dict[ir.Var, None] = {}
    for stmt in walk_stmts(scope.body):
        if isinstance(stmt, ir.AssignStmt):
            defined[stmt.var] = None
        elif isinstance(stmt, ir.IfStmt | ir.ForStmt | ir.WhileStmt):
            defined.update(dict.fromkeys(stmt.return_vars_))
    inside = _occurrences(scope.body)
    return [var for var in defined if isinstance(var.type, ir.ShapedType) and everywhere[var] > inside[var]]


def _defined_for_certain(body: ir.Stmt) -> set[ir.Var]:
    """The variables that the statements of a block define outside of branches and loops."""
    found: set[ir.Var] = set()
    for stmt in body.stmts_ if isinstance(body, ir.SeqStmts) else (body,):
        if isinstance(stmt, ir.AssignStmt):
            found.add(stmt.var)
        elif isinstance(stmt, ir.IfStmt | ir.ForStmt | ir.WhileStmt):
            found.update(stmt.return_vars_)
        elif isinstance(stmt, ir.ScopeStmt | ir.SeqStmts):
            found |= _defined_for_certain(stmt.body if isinstance(stmt, ir.ScopeStmt) else stmt)
    return found


def _yields(body: ir.Stmt) -> bool:
    last = body.stmts_[-1] if isinstance(body, ir.SeqStmts) and body.stmts_ else body
    return isinstance(last, ir.YieldStmt)
