"""Assignments in all their forms."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from pypto import ir
from pypto.ir.op_registry import get_op_def
from pypto.language.parser.annotations import is_left_to_value, local_type
from pypto.language.parser.diagnostics import ParserSyntaxError, ParserTypeError, UnsupportedFeatureError
from pypto.language.parser.diagnostics.notices import warn_at
from pypto.language.parser.dim_folding import is_dim_call
from pypto.language.parser.function_parser import FunctionParser, statement
from pypto.language.parser.names import Alias, Binding
from pypto.language.parser.slots import dotted_name, last_name
from pypto.language.parser.submits import is_submit, parse_submit
from pypto.language.parser.subscripts import parse_subscript_write
from pypto.language.parser.task_ids import is_task_id
from pypto.language.parser.type_checks import merge_annotation, retyped, same_value_type
from pypto.language.parser.windows import is_window_buffer_call, parse_window_buffer
from pypto.language.parser.yield_targets import is_yield
from pypto.language.parser.yields import parse_yield_assignment

_BUFFER_OPS = ("reserve_buffer", "import_peer_buffer")
AUTO_BASE = -1


@statement(ast.Assign)
def parse_assign(p: FunctionParser, node: ast.Assign) -> None:
    """`target = value` for names, tuples of names and subscripts."""
    if len(node.targets) != 1:
        raise _unsupported_assignment(p, node)
    target = node.targets[0]
    value = node.value
    if isinstance(target, ast.Name):
        if is_yield(value):
            assert isinstance(value, ast.Call)
            parse_yield_assignment(p, node, [target.id], value)
        else:
            _assign_name(p, node, target.id, value, None)
    elif isinstance(target, ast.Tuple):
        _assign_tuple(p, node, target, value)
    elif isinstance(target, ast.Subscript):
        if is_window_buffer_call(value):
            raise _needs_single_name(p, node)
        name, new_value = parse_subscript_write(p, node, target)
        let(p, name, new_value, p.span(node), node)
    else:
        raise _unsupported_assignment(p, node)


def _unsupported_assignment(p: FunctionParser, node: ast.Assign) -> ParserSyntaxError:
    return ParserSyntaxError(
        f"Unsupported assignment: {ast.unparse(node)}",
        span=p.span(node),
        hint="Assign to one name, to a tuple of names, or to a subscript",
    )


@statement(ast.AnnAssign)
def parse_annotated_assign(p: FunctionParser, node: ast.AnnAssign) -> None:
    """`name: annotation = value`."""
    if node.value is None:
        raise UnsupportedFeatureError(
            "An annotated name with no value is not supported", span=p.span(node), hint="Assign a value to it"
        )
    if not isinstance(node.target, ast.Name):
        if is_submit(node.value):
            raise ParserSyntaxError(
                "An annotated submit must target a simple variable name",
                span=p.span(node),
                hint="Write result: T = pl.submit(self.kernel, ...)",
            )
        raise ParserSyntaxError(
            "Only simple variable assignments supported with annotations",
            span=p.span(node),
            hint="Annotate a plain name, or leave the annotation out",
        )
    name = node.target.id
    if is_yield(node.value):
        assert isinstance(node.value, ast.Call)
        parse_yield_assignment(p, node, [name], node.value, node.annotation)
        return
    _assign_name(p, node, name, node.value, node.annotation)


# -- single names --------------------------------------------------------------------------------------------


def _assign_name(
    p: FunctionParser,
    node: ast.Assign | ast.AnnAssign,
    name: str,
    value_node: ast.expr,
    annotation: ast.expr | None,
) -> None:
    value = _value_of(p, name, value_node)
    if (
        isinstance(value, ir.Var)
        and is_dim_call(value_node)
        and _bind_folded_dim(p, node, name, value, annotation)
    ):
        return
    variable_type = value.type
    span = p.span(node)
    if annotation is not None and not is_left_to_value(annotation):
        declared = local_type(p, annotation)
        value, variable_type = merge_annotation(p, name, declared, value, p.span(annotation))
    variable = let(p, name, value, span, node, variable_type)
    if isinstance(value_node, ast.Call) and last_name(value_node.func) in _BUFFER_OPS:
        p.buffer_metadata[variable] = _buffer_keywords(p, value_node)


def _value_of(p: FunctionParser, name: str, node: ast.expr) -> ir.Expr:
    if isinstance(node, ast.Call):
        if is_submit(node):
            return parse_submit(p, node)
        if is_window_buffer_call(node):
            return parse_window_buffer(p, node, name)
    return p.expr(node)


def _bind_folded_dim(
    p: FunctionParser, node: ast.stmt, name: str, symbol: ir.Var, annotation: ast.expr | None
) -> bool:
    """Let a name stand for a symbolic extent; False when an ordinary assignment has to be made instead."""
    if (
        annotation is not None
        and not is_left_to_value(annotation)
        and local_type(p, annotation) != symbol.type
    ):
        return False
    bound = p.names.binding(name)
    if bound is not None and not isinstance(bound, Alias):
        return False
    p.hold_comments(node)
    p.names.bind(name, Alias(symbol))
    return True


def _buffer_keywords(p: FunctionParser, node: ast.Call) -> dict[str, Any]:
    """The constant keywords of a buffer declaration; an import takes `base` from the peer's reservation."""
    found: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is not None and (constant := constant_keyword(p, keyword.value)) is not None:
            found[keyword.arg] = constant
    if last_name(node.func) == "import_peer_buffer":
        peer = p.program.reserved_buffers.get(str(found.get("peer_func")), {})
        found["base"] = peer.get(str(found.get("name")), {}).get("base", AUTO_BASE)
    return found


def constant_keyword(p: FunctionParser, node: ast.expr) -> Any:
    """The value of a constant keyword argument, or None."""
    if isinstance(node, ast.Constant):
        return node.value
    if dotted_name(node) == "pl.AUTO":
        return AUTO_BASE
    try:
        return p.closure.evaluate(node, p.span(node))
    except ParserTypeError:
        return None


def let(
    p: FunctionParser,
    name: str,
    value: ir.Expr,
    span: ir.Span,
    node: ast.stmt | None,
    variable_type: ir.Type | None = None,
) -> ir.Var:
    """Emit `name = value`: assign the variable again if the name has one, else make a new one."""
    new_type = value.type if variable_type is None else variable_type
    variable = _assigned_again(p, name, value, new_type, span)
    if variable is None:
        variable = _new_variable(p, name, new_type, span)
        p.bind_new(name, variable)
    elif isinstance(value.type, ir.UnknownType):  # a call of a later method gives what the variable holds
        value = retyped(value, variable.type)
    if p.producers:
        p.producers.pop(variable, None)
    if is_task_id(variable.type):
        p.task_id_versions[variable] = p.task_id_versions.get(variable, 0) + 1
    stmt = ir.AssignStmt(variable, value, span)
    if node is None or p.comments is None:
        p.statements.append(stmt)
    else:
        p.emit_commented(stmt, node)
    return variable


def _assigned_again(
    p: FunctionParser, name: str, value: ir.Expr, new_type: ir.Type, span: ir.Span
) -> ir.Var | None:
    """The variable that `name = value` assigns, bound to the name; None if the assignment makes a new one."""
    if p.strict_ssa:
        return None
    old = p.names.binding(name)
    filled = _filled_argument(old, value)
    if filled is not None:
        old = filled.value
    if isinstance(old, ir.IterArg) and (filled is not None or name not in p.names.current):
        old = p.seed(old, span)
    if not isinstance(old, ir.Var) or isinstance(old, ir.IterArg):
        return None
    same_type = same_value_type(old.type, new_type)
    if filled is None and (old in p.held or _begins_variable(p, old, same_type)):
        return None
    if not same_type:
        raise ParserTypeError(
            f"Cannot reassign '{name}' with a different type: was {old.type}, got {new_type}",
            span=span,
            hint="Use a new name for a value of another type",
        )
    if filled is not None:
        filled.value = old
    else:
        p.names.current[name] = old
    return old


def _begins_variable(p: FunctionParser, old: ir.Var, same_type: bool) -> bool:
    return p.specialised is not None and p.specialised.begins_variable(p, old, same_type)


def _filled_argument(old: Binding | None, value: ir.Expr) -> Alias | None:
    """The inline parameter into whose argument, a variable, the call `value` writes.

    A helper that fills what it is given, as in `out[...] = tile`, fills the caller's variable.
    """
    if type(old) is not Alias or not isinstance(old.value, ir.Var) or not isinstance(value, ir.Call):
        return None
    definition = get_op_def(value.op.name)
    fills = definition is not None and any(
        argument is old.value and definition.effect(position, value.kwargs_) is not ir.ArgEffect.Read
        for position, argument in enumerate(value.args_)
    )
    return old if fills else None


def _new_variable(p: FunctionParser, name: str, variable_type: ir.Type, span: ir.Span) -> ir.Var:
    if isinstance(variable_type, ir.PtrType):
        return p.pointers.setdefault(
            name, ir.Var(name, variable_type, span)
        )  # an annotation may know it already
    return p.program.variable(p.function_name, name, variable_type, span)


def _needs_single_name(p: FunctionParser, node: ast.Assign) -> ParserSyntaxError:
    return ParserSyntaxError(
        "A window buffer must be assigned to a single variable name",
        span=p.span(node),
        hint="Write buffer = pld.alloc_window_buffer(...)",
    )


# -- tuples --------------------------------------------------------------------------------------------------


def _assign_tuple(p: FunctionParser, node: ast.Assign, target: ast.Tuple, value: ast.expr) -> None:
    if is_submit(value):
        assert isinstance(value, ast.Call)
        _unpack_submit(p, node, target, value)
        return
    if is_window_buffer_call(value):
        raise _needs_single_name(p, node)
    names = _target_names(p, target.elts)
    if is_yield(value):
        assert isinstance(value, ast.Call)
        parse_yield_assignment(p, node, names, value)
        return
    span = p.span(node)
    parsed = p.expr(value)
    _check_unpacked(parsed.type, len(names), span)
    let_each(p, names, parsed, span, node)


def let_each(p: FunctionParser, names: Sequence[str], value: ir.Expr, span: ir.Span, node: ast.stmt) -> None:
    """Emit `names[0], names[1], ... = value`."""
    source = ir.Var("_tuple_tmp", value.type, span)  # no name of the body refers to it
    p.emit_commented(ir.AssignStmt(source, value, span), node)
    for position, name in enumerate(names):
        let(p, name, ir.TupleGetItemExpr(source, position, span), span, None)


def _check_unpacked(unpacked: ir.Type, names: int, span: ir.Span) -> None:
    if isinstance(unpacked, ir.UnknownType):
        raise ParserSyntaxError(
            f"Cannot unpack a value of unknown type into {names} names",
            span=span,
            hint="Define a called method above its caller, so that its results are known",
        )
    if not isinstance(unpacked, ir.TupleType):
        kind = type(unpacked).__name__.removesuffix("Type")
        raise ParserSyntaxError(
            f"Cannot unpack a {kind} into {names} names: only a tuple is unpacked",
            span=span,
            hint="Assign it to one name; parts of it are taken with subscripts or pl.slice(...)",
        )
    if names > len(unpacked.types_):
        raise ParserSyntaxError(
            f"Cannot unpack {len(unpacked.types_)} values into {names} names",
            span=span,
            hint="Write one name per value",
        )
    if names < len(unpacked.types_):
        dropped = len(unpacked.types_) - names
        warn_at(
            span,
            f"Unpacking {len(unpacked.types_)} values into {names} names drops the last {dropped}: "
            f"write one name per value, at {span}",
        )


def _target_names(p: FunctionParser, targets: Sequence[ast.expr]) -> list[str]:
    names: list[str] = []
    for target in targets:
        if isinstance(target, ast.Starred):
            raise ParserSyntaxError(
                "Unsupported assignment: Tuple unpacking target must be a variable name, "
                f"got '{ast.unparse(target)}'",
                span=p.span(target),
                hint="Unpack into plain names, one per value",
            )
        if not isinstance(target, ast.Name):
            raise ParserSyntaxError(
                "Tuple unpacking target must be a variable name",
                span=p.span(target),
                hint="Unpack into plain names, then use them",
            )
        names.append(target.id)
    return names


def _unpack_submit(p: FunctionParser, node: ast.Assign, target: ast.Tuple, call: ast.Call) -> None:
    name = dotted_name(call.func)
    if len(target.elts) != 2:
        raise ParserSyntaxError(
            f"{name}(...) must be unpacked as exactly 2 targets",
            span=p.span(node),
            hint="Write out, tid = ... or (out1, out2), tid = ...",
        )
    results, task_id = target.elts
    if not isinstance(task_id, ast.Name):
        raise ParserSyntaxError(
            "The task_id target must be a plain variable name",
            span=p.span(task_id),
            hint="Write out, tid = pl.submit(self.kernel, ...)",
        )
    names = _submit_result_names(p, results)
    submit = parse_submit(p, call)
    assert isinstance(submit.type, ir.TupleType) and isinstance(submit.op, ir.GlobalVar)
    count = len(submit.type.types_) - 1
    if len(names) != count:
        raise ParserTypeError(
            f"{name}(...) unpacks {len(names)} result value(s) but kernel '{submit.op.name}' returns {count}",
            span=p.span(node),
            hint="Write one name per result, and one for the task id",
        )
    _emit_unpacked(p, node, submit, names, task_id.id)


def _submit_result_names(p: FunctionParser, results: ast.expr) -> list[str]:
    if isinstance(results, ast.Name):
        return [results.id]
    if not isinstance(results, (ast.Tuple, ast.List)):
        raise ParserSyntaxError(
            "The result target must be a variable name or a tuple of names",
            span=p.span(results),
            hint="Write (a, b), tid = pl.submit(self.kernel, ...)",
        )
    if not all(isinstance(element, ast.Name) for element in results.elts):
        raise ParserSyntaxError(
            "The result tuple must contain plain variable names only",
            span=p.span(results),
            hint="Write (a, b), tid = pl.submit(self.kernel, ...)",
        )
    return [element.id for element in results.elts if isinstance(element, ast.Name)]


def _emit_unpacked(
    p: FunctionParser, node: ast.Assign, submit: ir.Submit, names: list[str], task_name: str
) -> None:
    span = p.span(node)
    source = ir.Var("_submit_tmp", submit.type, span)
    p.emit_commented(ir.AssignStmt(source, submit, span), node)
    variables = [
        let(p, name, ir.TupleGetItemExpr(source, position, span), span, None)
        for position, name in enumerate(names)
    ]
    task_id = let(p, task_name, ir.TupleGetItemExpr(source, len(names), span), span, None)
    for variable in variables:
        p.producers[variable] = (task_name, task_id, p.task_id_versions.get(task_id, 0))
