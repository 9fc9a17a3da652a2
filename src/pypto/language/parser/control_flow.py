"""Loops over `pl` iterators, `while`, and `if`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from pypto import ir
from pypto.language.parser.annotations import is_left_to_value, local_type
from pypto.language.parser.assignments import let
from pypto.language.parser.closure import NOT_FOUND
from pypto.language.parser.comments import else_line, header_end
from pypto.language.parser.diagnostics import ParserSyntaxError, ParserTypeError
from pypto.language.parser.diagnostics.notices import warn_at
from pypto.language.parser.function_parser import Frame, FunctionParser, Yields, statement, to_body
from pypto.language.parser.slots import dotted_name, last_name
from pypto.language.parser.split_aiv import parse_split_aiv_loop
from pypto.language.parser.spmd import parse_spmd_loop
from pypto.language.parser.type_checks import same_value_type
from pypto.language.parser.yield_targets import direct_yield_names

_KINDS = {
    "range": ir.ForKind.Sequential,
    "parallel": ir.ForKind.Parallel,
    "unroll": ir.ForKind.Unroll,
    "pipeline": ir.ForKind.Pipeline,
}

_CARRYING_LOOP = "for i, (a, b) in pl.range(n, init_values=(x, y))"


@statement(ast.For)
def parse_for(p: FunctionParser, node: ast.For) -> None:
    """`for` over one of the seven iterators."""
    call = node.iter
    name = dotted_name(call.func) if isinstance(call, ast.Call) else None
    _, prefixed, leaf = (name or "").rpartition(".")
    handler = _ITERATORS.get(leaf) if prefixed else None
    if handler is None or not isinstance(call, ast.Call):
        raise ParserSyntaxError(
            "For loop must use pl.range(), pl.parallel(), pl.unroll(), pl.pipeline(), pl.while_(), pl.spmd() "
            "or pl.split_aiv()",
            span=p.span(node.iter),
            hint="Write: for i in pl.range(n):",
        )
    _reject_else(p, node)
    handler(p, node, call)


def _reject_else(p: FunctionParser, node: ast.For | ast.While) -> None:
    if node.orelse:
        raise ParserSyntaxError(
            "'else' on a loop is not supported",
            span=p.span(node.orelse[0]),
            hint="Write its statements behind the loop",
        )


# -- counted loops -------------------------------------------------------------------------------------------


def _parse_counted_loop(p: FunctionParser, node: ast.For, call: ast.Call) -> None:
    assert isinstance(call.func, ast.Attribute)
    kind = call.func.attr
    comments = _header_comments(p, node.iter)
    name, iter_names = _loop_target(p, node)
    bounds = _bounds(p, call, kind)
    inits, attrs = _loop_keywords(p, call, kind)
    if iter_names is None and inits:
        raise ParserSyntaxError(
            "For loop target must be a tuple when init_values is provided",
            span=p.span(node.target),
            hint="Write: for i, (acc,) in pl.range(n, init_values=(start,)):",
        )
    _check_counts(p, node, iter_names or [], inits)
    _check_step(p, call, kind, bounds[2])
    loop_var = p.program.variable(
        p.function_name, name, ir.ScalarType(_loop_dtype(bounds, len(call.args))), p.span(node.target)
    )
    carried = [
        ir.IterArg(arg, init.type, init, p.span(node.target))
        for arg, init in zip(iter_names or [], inits, strict=True)
    ]
    frame = Frame(kind, yields=Yields(), carries_values=bool(carried), results=_yielded_names(node.body))
    body = _loop_body(p, node, frame, loop_var, carried)
    results = _loop_results(p, node, frame, carried, "For")
    start, stop, step = bounds
    loop = ir.ForStmt(
        loop_var,
        start,
        stop,
        step,
        carried,
        body,
        results,
        p.source.head_span(node),
        _KINDS[kind],
        attrs or None,
    )
    _emit_compound(p, loop, comments)
    _bind_results(p, results, is_named=bool(frame.yields and frame.yields.names))


def _loop_target(p: FunctionParser, node: ast.For) -> tuple[str, list[str] | None]:
    """The loop variable and, for the tuple form, the names of the carried values."""
    target = node.target
    if isinstance(target, ast.Name):
        return target.id, None
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
        raise ParserSyntaxError(
            "For loop target must be a simple name or: (loop_var, (iter_args...))",
            span=p.span(target),
            hint=f"Write for i in pl.range(n): or {_CARRYING_LOOP}:",
        )
    loop_var, carried = target.elts
    if not isinstance(loop_var, ast.Name):
        raise ParserSyntaxError(
            "Loop variable must be a simple name",
            span=p.span(loop_var),
            hint=f"Write {_CARRYING_LOOP}:",
        )
    if not isinstance(carried, ast.Tuple):
        raise ParserSyntaxError(
            "Iter args must be a tuple", span=p.span(carried), hint="Write: for i, (acc,) in pl.range(...)"
        )
    return loop_var.id, _iter_arg_names(p, carried)


def _iter_arg_names(p: FunctionParser, node: ast.Tuple) -> list[str]:
    for element in node.elts:
        if not isinstance(element, ast.Name):
            raise ParserSyntaxError(
                "Iter arg must be a simple name",
                span=p.span(element),
                hint=f"Write {_CARRYING_LOOP}:",
            )
    return [element.id for element in node.elts if isinstance(element, ast.Name)]


def _check_counts(p: FunctionParser, node: ast.For, names: Sequence[str], inits: Sequence[ir.Expr]) -> None:
    if len(names) != len(inits):
        raise ParserSyntaxError(
            f"Mismatch: {len(names)} iter_args but {len(inits)} init_values",
            span=p.span(node.target),
            hint="Give one initial value per carried name",
        )


def _bounds(p: FunctionParser, call: ast.Call, kind: str) -> tuple[ir.Expr, ir.Expr, ir.Expr]:
    count = len(call.args)
    hint = f"Write pl.{kind}(stop), pl.{kind}(start, stop) or pl.{kind}(start, stop, step)"
    if count == 0:
        raise ParserSyntaxError(
            f"pl.{kind}() requires at least 1 argument",
            span=p.span(call),
            hint=hint,
        )
    if count > 3:
        raise ParserSyntaxError(
            f"pl.{kind}() takes at most 3 positional arguments, got {count}",
            span=p.span(call),
            hint=hint,
        )
    values = [_bound(p, argument, kind) for argument in call.args]
    span = p.span(call)
    zero, one = ir.ConstInt(0, ir.DataType.INDEX, span), ir.ConstInt(1, ir.DataType.INDEX, span)
    if count == 1:
        return zero, values[0], one
    return values[0], values[1], values[2] if count == 3 else one


def _bound(p: FunctionParser, node: ast.expr, kind: str) -> ir.Expr:
    value = p.expr(node)
    if kind == "unroll" and not isinstance(value, ir.ConstInt):
        raise ParserSyntaxError(
            "pl.unroll() requires compile-time constant integer bounds",
            span=p.span(node),
            hint="Use pl.range() when a bound is only known at run time",
        )
    if not (isinstance(value.type, ir.ScalarType) and value.type.dtype.is_int()):
        raise ParserTypeError(
            f"The bounds of pl.{kind}() must be integer scalars, got {value.type}",
            span=p.span(node),
            hint="Convert it with pl.cast(value, pl.INDEX)",
        )
    return value


def _loop_dtype(bounds: tuple[ir.Expr, ir.Expr, ir.Expr], written: int) -> ir.DataType:
    """The loop variable's dtype, from the constant bounds that stand in the source."""
    start, stop, step = bounds
    given = (stop,) if written == 1 else (start, stop) if written == 2 else (start, stop, step)
    dtypes = [bound.dtype for bound in given if isinstance(bound, ir.ConstInt)]
    for dtype in dtypes:
        if dtype not in (ir.DataType.INDEX, ir.DataType.INT64):
            return dtype
    if dtypes and ir.DataType.INDEX not in dtypes:
        return ir.DataType.INT64
    return ir.DataType.INDEX


def _check_step(p: FunctionParser, call: ast.Call, kind: str, step: ir.Expr) -> None:
    if not (isinstance(step, ir.ConstInt) and step.value == 0):
        return
    if kind == "unroll":
        raise ParserSyntaxError(
            "pl.unroll() step cannot be zero", span=p.span(call), hint="Use a step above or below zero"
        )
    span = p.span(call)
    warn_at(span, f"The step of pl.{kind}() is 0, so the loop never runs: {ast.unparse(call)} at {span}")


def _loop_keywords(p: FunctionParser, call: ast.Call, kind: str) -> tuple[list[ir.Expr], dict[str, Any]]:
    """Initial values and attributes of a counted loop."""
    inits: list[ir.Expr] = []
    attrs: dict[str, Any] = {}
    stage: int | None = None
    for keyword in call.keywords:
        value = keyword.value
        if keyword.arg == "init_values":
            inits = _init_values(p, value, "init_values must be a list or tuple")
            if kind == "unroll" and inits:
                raise ParserSyntaxError(
                    "pl.unroll() cannot be combined with init_values",
                    span=p.span(value),
                    hint="Assign the carried names in the body: they are known after each copy",
                )
        elif keyword.arg == "stage" and kind == "pipeline":
            stage = _stage(p, value)
        elif keyword.arg == "stage":
            raise ParserSyntaxError(
                f"stage= is only supported on pl.pipeline(), not pl.{kind}()",
                span=p.span(value),
                hint="Write pl.pipeline(..., stage=n)",
            )
        elif keyword.arg == "attrs":
            attrs = _loop_attrs(p, value)
        else:
            supported = "init_values, stage, attrs" if kind == "pipeline" else "init_values, attrs"
            raise ParserSyntaxError(
                f"Unknown keyword argument '{keyword.arg}' in pl.{kind}()",
                span=p.span(value),
                hint=f"Supported keywords: {supported}",
            )
    if kind == "pipeline":
        if stage is None:
            raise ParserSyntaxError("pl.pipeline() requires stage=", span=p.span(call), hint="Add stage=2")
        attrs = {"pipeline_stages": stage, **attrs}
    return inits, attrs


def _init_values(p: FunctionParser, node: ast.expr, message: str) -> list[ir.Expr]:
    if not isinstance(node, (ast.List, ast.Tuple)):
        raise ParserSyntaxError(message, span=p.span(node), hint="Write init_values=(x, y)")
    return [p.expr(element) for element in node.elts]


def _stage(p: FunctionParser, node: ast.expr) -> int:
    value = p.closure.fold(node, p.names.__contains__)
    if value is NOT_FOUND or isinstance(value, bool) or not isinstance(value, int):
        raise ParserSyntaxError(
            "stage must be a compile-time constant integer",
            span=p.span(node),
            hint="Use a literal or an int that exists where the decorator is applied",
        )
    if value < 1:
        raise ParserSyntaxError(
            f"stage must be >= 1, got {value}",
            span=p.span(node),
            hint="stage is the number of buffers that iterations take turns in",
        )
    return value


def _loop_attrs(p: FunctionParser, node: ast.expr) -> dict[str, Any]:
    if not isinstance(node, ast.Dict):
        raise ParserSyntaxError(
            "attrs must be a dict literal", span=p.span(node), hint='Write attrs={"key": value}'
        )
    attrs: dict[str, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
            raise ParserSyntaxError(
                "attrs keys must be string literals",
                span=p.span(key or value),
                hint='Write attrs={"key": value}',
            )
        constant = p.closure.fold(value, lambda name: True)
        if not isinstance(constant, (bool, int, float, str)):
            raise ParserSyntaxError(
                f"Unsupported value type for attrs key '{key.value}'",
                span=p.span(value),
                hint="Attributes of a loop hold numbers, bools and text",
            )
        attrs[key.value] = constant
    return attrs


# -- what all loops share ------------------------------------------------------------------------------------


def _loop_body(
    p: FunctionParser, node: ast.For, frame: Frame, loop_var: ir.Var, carried: Sequence[ir.IterArg]
) -> ir.Stmt:
    """Parse a loop body; without carried values and yields its names leak outward."""
    p.frames.append(frame)
    p.names.push(guarded=True)
    try:
        for variable in (loop_var, *carried):
            p.bind_new(variable.name_hint, variable, allow_redefinition=True)
        statements = p.block(node.body, carried=carried)
    finally:
        p.frames.pop()
        leaks = not frame.carries_values and frame.yields is not None and not frame.yields.names
        if leaks:
            p.names.pop_leaking()
        else:
            p.names.pop()
    return to_body(statements, p.source.head_span(node))


def _loop_results(
    p: FunctionParser, node: ast.For | ast.While, frame: Frame, carried: Sequence[ir.IterArg], what: str
) -> list[ir.Var]:
    """The variables that hold the carried values after the loop, bound to the names of the yield targets."""
    yields = frame.yields
    assert yields is not None
    if not carried and not yields.names:
        return []
    span = p.source.head_span(node)
    if not yields.names:
        return [ir.Var(f"{arg.name_hint}_out", arg.type, span) for arg in carried]
    if len(yields.names) != len(carried):
        raise ValueError(
            f"{what} loop has {len(carried)} iteration arguments but {len(yields.names)} return variables. "
            "They must match."
        )
    return [
        p.program.variable(p.function_name, name, arg.type, span)
        for name, arg in zip(yields.names, carried, strict=True)
    ]


def _yielded_names(body: Sequence[ast.stmt]) -> tuple[str, ...]:
    return tuple(name for name, _ in direct_yield_names(body))


def _bind_results(p: FunctionParser, results: Sequence[ir.Var], *, is_named: bool = True) -> None:
    """Bind the names of the yield targets, which become visible after the construct.

    A construct that itself stands in a branch or a loop runs in some cases only, or several times. If such a
    name has a variable of its type from outside of that block, the variable takes the value, as from any
    assignment, unless the block hands the name on with a yield of its own.
    """
    for result in results if is_named else ():
        if _reaches_outside(p, result):
            let(p, result.name_hint, result, result.span, None)
        else:
            p.bind_new(result.name_hint, result, allow_redefinition=True)


def _reaches_outside(p: FunctionParser, result: ir.Var) -> bool:
    name = result.name_hint
    enclosing = p.yield_frame()
    if p.strict_ssa or enclosing is None or name in enclosing.results or not p.names.is_from_outside(name):
        return False
    outside = p.names.binding(name)
    return isinstance(outside, ir.Var) and same_value_type(outside.type, result.type)


def _header_comments(p: FunctionParser, last_expression: ast.expr) -> list[str]:
    if p.comments is None:
        return []
    return p.comments.take(header_end(p.source, last_expression))


def _emit_compound(p: FunctionParser, stmt: ir.Stmt, comments: list[str]) -> None:
    if comments:
        ir.attach_leading_comments(stmt, comments)
    p.emit(stmt)


# -- while ---------------------------------------------------------------------------------------------------


@statement(ast.While)
def parse_while(p: FunctionParser, node: ast.While) -> None:
    """`while condition:` without carried values; names of the body leak."""
    _reject_else(p, node)
    comments = _header_comments(p, node.test)
    condition = _condition(p, node.test, "while")
    frame = Frame("while", yields=Yields())
    p.frames.append(frame)
    p.names.push(guarded=True)
    try:
        statements = p.block(node.body)
    finally:
        p.frames.pop()
        p.names.pop_leaking()
    _loop_results(p, node, frame, [], "While")
    span = p.source.head_span(node)
    _emit_compound(p, ir.WhileStmt(condition, [], to_body(statements, span), [], span), comments)


def _parse_while_iterator(p: FunctionParser, node: ast.For, call: ast.Call) -> None:
    """`for (a, b) in pl.while_(init_values=(x, y)):` with the condition as its first statement."""
    comments = _header_comments(p, node.iter)
    inits = _while_init_values(p, call)
    condition_node = _while_condition(p, node)
    if not isinstance(node.target, ast.Tuple):
        raise ParserSyntaxError(
            "While loop target must be a tuple",
            span=p.span(node.target),
            hint="Write: for (a,) in pl.while_(...)",
        )
    names = _iter_arg_names(p, node.target)
    _check_counts(p, node, names, inits)
    carried = [
        ir.IterArg(name, init.type, init, p.span(node.target))
        for name, init in zip(names, inits, strict=True)
    ]
    frame = Frame("while", yields=Yields(), carries_values=True, results=_yielded_names(node.body))
    p.frames.append(frame)
    p.names.push(guarded=True)
    try:
        for arg in carried:
            p.bind_new(arg.name_hint, arg, allow_redefinition=True)
        condition = _condition(p, condition_node, "while")
        if p.comments is not None:
            p.hold_comments(node.body[0])
        statements = p.block(node.body[1:], carried=carried)
    finally:
        p.frames.pop()
        p.names.pop()
    results = _loop_results(p, node, frame, carried, "While")
    span = p.source.head_span(node)
    _emit_compound(p, ir.WhileStmt(condition, carried, to_body(statements, span), results, span), comments)
    _bind_results(p, results, is_named=bool(frame.yields and frame.yields.names))


def _while_init_values(p: FunctionParser, call: ast.Call) -> list[ir.Expr]:
    span = p.span(call)
    if call.args:
        raise ParserSyntaxError(
            "pl.while_() takes no positional arguments",
            span=span,
            hint="Write for (a,) in pl.while_(init_values=(x,)):",
        )
    inits: list[ir.Expr] = []
    for keyword in call.keywords:
        if keyword.arg != "init_values":
            raise ParserSyntaxError(
                f"Unknown keyword argument '{keyword.arg}' in pl.while_()",
                span=p.span(keyword.value),
                hint="Supported keywords: init_values",
            )
        inits = _init_values(p, keyword.value, "init_values must be a tuple or list")
    if not inits:
        raise ParserSyntaxError(
            "pl.while_() requires init_values",
            span=span,
            hint="Write: for (a,) in pl.while_(init_values=(start,)):",
        )
    return inits


def _while_condition(p: FunctionParser, node: ast.For) -> ast.expr:
    conditions = [stmt for stmt in node.body if _is_cond(stmt)]
    if not _is_cond(node.body[0]):
        raise ParserSyntaxError(
            "First statement in pl.while_() body must be pl.cond(condition)",
            span=p.span(node.body[0]),
            hint="Write pl.cond(condition) as the first line of the body",
        )
    if len(conditions) > 1:
        raise ParserSyntaxError(
            "pl.cond() can only be the first statement",
            span=p.span(conditions[1]),
            hint="Combine conditions with and, or, not",
        )
    first = node.body[0]
    assert isinstance(first, ast.Expr) and isinstance(first.value, ast.Call)
    if len(first.value.args) != 1 or first.value.keywords:
        raise ParserSyntaxError(
            "pl.cond() requires exactly 1 argument", span=p.span(first), hint="Write pl.cond(condition)"
        )
    return first.value.args[0]


def _is_cond(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and last_name(node.value.func) == "cond"
    )


def _condition(p: FunctionParser, node: ast.expr, word: str) -> ir.Expr:
    condition = p.expr(node)
    kind = condition.type
    if not (isinstance(kind, ir.ScalarType) and kind.dtype == ir.DataType.BOOL):
        raise ParserTypeError(
            f"{word} condition must be a Bool-typed scalar expression, got {kind}",
            span=p.span(node),
            hint="Compare explicitly, for example x != 0",
        )
    return condition


# -- if ------------------------------------------------------------------------------------------------------


@statement(ast.If)
def parse_if(p: FunctionParser, node: ast.If) -> None:
    """Two branches. With assignment-form yields the results get names; without, names of both branches
    leak."""
    comments = _header_comments(p, node.test)
    condition = _condition(p, node.test, "if")
    declared = _declared_results(node)
    frame = Frame("if", yields=Yields(), results=tuple(declared))
    p.frames.append(frame)
    span = p.source.head_span(node)
    try:
        limit = None
        if node.orelse and p.comments is not None:
            limit = else_line(p.source, node.body[-1].end_lineno or node.lineno, node.orelse[0].lineno)
        then_body = to_body(_branch(p, node.body, leaks=not declared, limit=limit), span)
        else_body: ir.Stmt | None = None
        if node.orelse:
            is_elif = isinstance(node.orelse[0], ast.If) and node.orelse[0].col_offset == node.col_offset
            statements = _branch(p, node.orelse, leaks=not declared, limit=None, is_indented=not is_elif)
            else_body = to_body(statements, span)
    finally:
        p.frames.pop()
    results = [
        p.program.variable(p.function_name, name, _result_type(p, node, frame, name, annotation), span)
        for name, annotation in declared.items()
    ]
    _emit_compound(p, ir.IfStmt(condition, then_body, else_body, results, span), comments)
    _bind_results(p, results)


def _branch(
    p: FunctionParser,
    body: Sequence[ast.stmt],
    *,
    leaks: bool,
    limit: int | None,
    is_indented: bool = True,
) -> list[ir.Stmt]:
    p.names.push(guarded=True)
    p.frames[-1].branches.append(p.names.current)
    try:
        statements = p.block(body, limit, is_indented=is_indented)
        _hand_on(p.frames[-1], statements)
        return statements
    finally:
        if leaks:
            p.names.pop_leaking()
        else:
            p.names.pop()


def _hand_on(frame: Frame, statements: list[ir.Stmt]) -> None:
    """Yield at the end of a branch what its last construct yields under the same names, as an `elif` does."""
    last = statements[-1] if statements else None
    if not frame.results or not isinstance(last, (ir.IfStmt, ir.ForStmt, ir.WhileStmt)):
        return
    found = {variable.name_hint: variable for variable in last.return_vars_}
    if all(name in found for name in frame.results):
        assert frame.yields is not None
        for name in frame.results:
            frame.yields.record(name, found[name].type)
        statements.append(ir.YieldStmt([found[name] for name in frame.results], last.span))


def _declared_results(node: ast.If) -> dict[str, ast.expr | None]:
    """Names (with the first annotation) that the branches yield, in order of first appearance."""
    declared: dict[str, ast.expr | None] = {}
    for branch in (node.body, node.orelse):
        for name, annotation in direct_yield_names(branch):
            if declared.get(name) is None:
                declared[name] = annotation
    return declared


def _result_type(
    p: FunctionParser, node: ast.If, frame: Frame, name: str, annotation: ast.expr | None
) -> ir.Type:
    assert frame.yields is not None
    recorded = frame.yields.types.get(name)
    if recorded is not None and (annotation is None or not isinstance(recorded, ir.UnknownType)):
        return recorded
    if annotation is not None and not is_left_to_value(annotation):
        return local_type(p, annotation)
    if recorded is not None:
        return recorded
    raise ParserTypeError(
        f"The type of yielded name '{name}' is unknown: no branch yields a value for it",
        span=p.source.head_span(node),
        hint="Yield one value per name, or annotate the name",
    )


_ITERATORS: dict[str, Callable[[FunctionParser, ast.For, ast.Call], None]] = {
    **dict.fromkeys(_KINDS, _parse_counted_loop),
    "while_": _parse_while_iterator,
    "spmd": parse_spmd_loop,
    "split_aiv": parse_split_aiv_loop,
}
