"""Regions whose vector work is split over two lanes: `pl.split_aiv`, and the transfers in and out of them."""

from __future__ import annotations

import ast
from typing import Any

from pypto import ir
from pypto.ir.op_registry import create_op_call
from pypto.language.parser.diagnostics import ParserSyntaxError
from pypto.language.parser.function_parser import Frame, FunctionParser, to_body
from pypto.language.parser.slots import enum_literal, last_name

LOOP_KEYWORDS = ("init_values", "chunk", "chunk_policy", "attrs", "step", "stage")
_CALL = "pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN)"


def parse_split_aiv_loop(p: FunctionParser, node: ast.For, call: ast.Call) -> None:
    """`for v in pl.split_aiv(2, mode=...):`, in place inside a kernel and in a kernel of its own
    elsewhere."""
    comments = p.take_comments(_header_line(p, node, call))
    span = p.source.head_span(node)
    name, mode = _checked(p, node, call)
    wrap_in_kernel = not p.inside_incore()
    dumped = list(p.dump_tagged)
    frame = Frame("split_aiv", split_mode=mode, incore=True)
    p.frames.append(frame)
    p.names.push()
    outer = p.statements
    p.statements = []
    try:
        lane = create_op_call("tile.get_subblock_idx", [], p.span(call))
        variable = p.program.variable(p.function_name, name, lane.type, p.span(node.target))
        p.bind_new(name, variable)
        p.emit(ir.AssignStmt(variable, lane, p.span(node.target)))
        p.parse_statements(node.body)
        body = to_body(p.statements, span)
    finally:
        p.statements = outer
        p.frames.pop()
        p.names.pop_leaking()
    scope: ir.Stmt = ir.SplitAivScopeStmt(mode, 2, "", body, span)
    if wrap_in_kernel:
        kernel = ir.InCoreScopeStmt(ir.SplitMode.NONE, "", scope, span)
        scope = kernel.replace(attrs={"dump_vars": dumped}) if dumped else kernel
    if comments:
        ir.attach_leading_comments(scope, comments)
    p.emit(scope)


def _header_line(p: FunctionParser, node: ast.For, call: ast.Call) -> int:
    from pypto.language.parser.comments import header_end

    return header_end(p.source, call) if p.comments is not None else node.lineno


def _checked(p: FunctionParser, node: ast.For, call: ast.Call) -> tuple[str, ir.SplitMode]:
    """The lane variable's name and the mode; raises for every misuse in a fixed order."""
    _check_place(p, p.span(call))
    if not isinstance(node.target, ast.Name):
        raise ParserSyntaxError(
            "pl.split_aiv() must use a single loop variable",
            span=p.span(node.target),
            hint=f"Write for lane in {_CALL}:",
        )
    return node.target.id, _mode(p, call)


def _check_place(p: FunctionParser, span: ir.Span) -> None:
    if p.inside("split_aiv"):
        raise ParserSyntaxError(
            "nested 'for ... in pl.split_aiv(...)' is not allowed",
            span=span,
            hint="Lanes are split once: use the outer loop's variable",
        )
    if any(frame.written_split for frame in p.frames):
        raise ParserSyntaxError(
            "pl.split_aiv(...) and pl.split(...) on the enclosing scope are mutually exclusive",
            span=span,
            hint="Remove pl.split(...) from the optimizations of the scope",
        )


def _mode(p: FunctionParser, call: ast.Call) -> ir.SplitMode:
    """The mode of a call with two lanes and nothing but a mode."""

    def error(message: str, hint: str = f"Write {_CALL}", at: ast.expr = call) -> ParserSyntaxError:
        return ParserSyntaxError(f"pl.split_aiv() {message}", span=p.span(at), hint=hint)

    keywords: dict[str | None, ast.expr] = {keyword.arg: keyword.value for keyword in call.keywords}
    for name in LOOP_KEYWORDS:
        if name in keywords:
            raise error(f"loop form does not accept '{name}='", f"Write for lane in {_CALL}:")
    if "optimizations" in keywords:
        raise error("does not accept 'optimizations='", "Put optimizations on the pl.at around it")
    if len(call.args) != 1:
        raise error("takes exactly one positional argument")
    lanes = p.closure.fold(call.args[0], p.names.__contains__)
    if type(lanes) is not int or lanes != 2:
        raise error("requires n == 2", "A core group has two vector lanes", call.args[0])
    if None in keywords:
        raise error("does not accept **kwargs", "Write the keywords out")
    for unknown in keywords:
        if unknown != "mode":
            raise error(f"got unexpected keyword argument '{unknown}'")
    if "mode" not in keywords:
        raise error("requires mode=pl.SplitMode.X")
    return enum_literal(p, keywords["mode"], ir.SplitMode)


def parse_lane_transfer(p: FunctionParser, node: ast.Call) -> ir.Expr:
    """`pl.aiv_shard(x)` and `pl.aic_gather(x)`."""
    name = last_name(node.func) or ""
    span = p.span(node)
    keywords: dict[str | None, ast.expr] = {keyword.arg: keyword.value for keyword in node.keywords}
    if len(node.args) != 1:
        raise ParserSyntaxError(
            f"pl.{name}() takes exactly one positional argument", span=span, hint=f"Write pl.{name}(tile)"
        )
    if "mode" in keywords:
        raise ParserSyntaxError(
            f"pl.{name}() does not take a mode= argument",
            span=span,
            hint="The enclosing pl.split_aiv has the mode",
        )
    for unknown in keywords:
        if unknown not in ("split", "lane_stride"):
            raise ParserSyntaxError(
                f"pl.{name}() does not accept keyword argument '{unknown}'",
                span=span,
                hint=f"Write pl.{name}(tile)",
            )
    region = next((frame for frame in reversed(p.frames) if frame.kind == "split_aiv"), None)
    if region is None and "split" not in keywords:
        raise ParserSyntaxError(
            f"pl.{name}() must be used inside a 'for ... in pl.split_aiv(...)' loop",
            span=span,
            hint=f"Write for lane in {_CALL}: around it",
        )
    operand = p.expr(node.args[0])
    if isinstance(operand.type, ir.DistributedTensorType):
        raise ParserSyntaxError(
            f"pl.{name}() does not support distributed tensors",
            span=span,
            hint="Load the part into a tile first",
        )
    if region is not None:
        if keywords:
            raise ParserSyntaxError(
                f"pl.{name}() does not take a {next(iter(keywords))}= argument inside a pl.split_aiv loop",
                span=span,
                hint="The loop gives the mode: leave it out",
            )
        assert region.split_mode is not None
        category = "tensor" if isinstance(operand.type, ir.TensorType) else "tile"
        return create_op_call(f"{category}.{name}", [operand], {"split": region.split_mode.value}, span)
    return _explicit_transfer(p, name, operand, keywords, span)


def _explicit_transfer(
    p: FunctionParser, name: str, operand: ir.Expr, keywords: dict[str | None, ast.expr], span: ir.Span
) -> ir.Expr:
    """The form with `split=`, as it stands in programs after lowering."""
    kwargs: dict[str, Any] = {"split": _int_keyword(p, name, "split", keywords["split"])}
    if isinstance(operand.type, ir.TensorType):
        raise ParserSyntaxError(
            f"pl.{name}() with split= does not accept a high-level Tensor operand",
            span=span,
            hint="Load the tensor into a tile first",
        )
    if "lane_stride" in keywords:
        if name != "aiv_shard":
            raise ParserSyntaxError(
                f"pl.{name}() does not take a lane_stride= argument",
                span=span,
                hint="Only pl.aiv_shard has lane_stride=",
            )
        kwargs["lane_stride"] = _int_keyword(p, name, "lane_stride", keywords["lane_stride"])
    return create_op_call(f"tile.{name}", [operand], kwargs, span)


def _int_keyword(p: FunctionParser, owner: str, name: str, node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    raise ParserSyntaxError(
        f"pl.{owner}() requires an integer {name}", span=p.span(node), hint="Write the number out"
    )
