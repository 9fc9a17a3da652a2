"""Elementwise operators: a formula over broadcast operands, as one lambda given to `pypto::each`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pypto import ir
from pypto.codegen.kernel.elements import Element, element_of
from pypto.codegen.kernel.formula import FormulaRenderer, calls_float_function
from pypto.codegen.kernel.layout import TileLayout, constant_extents
from pypto.codegen.kernel.operators.context import OpContext
from pypto.ir.meaning import OPERAND_NAMES, Elementwise, Partial, operands_used


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand of the lambda: its parameter, and what `each` reads it from."""

    parameter: str
    text: str


def emit_elementwise(context: OpContext, meaning: Elementwise) -> None:
    """`each(out, [](float a, float b) { return a + b; }, x, y);`"""
    if meaning.packs:
        _emit_packed(context, meaning)
        return
    name = context.declare_like(_valid_source(context, meaning))
    if name is None:
        return
    element = context.result_element
    ctype = "float" if calls_float_function(meaning.formula) else element.compute
    if any(char in meaning.formula for char in ("sin(", "cos(", "exp(", "log(", "sqrt(", "recip(")):
        context.emitter.headers.add("pypto_math.h")
    captures, operands, names = _operands(context, meaning, element, ctype, context.result_layout)
    if meaning.mask_operands:
        context.emitter.headers.add("pypto_mask.h")
    body = FormulaRenderer(ctype, names).render(meaning.formula)
    context.emitter.line(f"pypto::each({name}, {_lambda(captures, operands, body)}{_texts(operands)});")


def _valid_source(context: OpContext, meaning: Elementwise) -> int:
    """The operand whose valid region the result has: the first tile that is no mask."""
    return next(i for i in range(len(context.args)) if context.is_tile(i) and i not in meaning.mask_operands)


def _operands(
    context: OpContext, meaning: Elementwise, element: Element, ctype: str, layout: TileLayout
) -> tuple[list[str], list[Operand], dict[str, str]]:
    """Captures, lambda operands, and the C++ text of each name in the formula."""
    captures: list[str] = []
    operands: list[Operand] = []
    names = {key: str(value) for key, value in context.call.kwargs_.items() if isinstance(value, int)}
    for index in operands_used(meaning.formula):
        letter = OPERAND_NAMES[index]
        names[letter] = letter
        if index in meaning.mask_operands:
            operands.append(Operand(f"bool {letter}", f"pypto::bits({context.name(index)})"))
        elif context.is_tile(index):
            operands.append(Operand(f"{ctype} {letter}", _broadcast(context, index, layout)))
        elif isinstance(context.args[index], (ir.ConstInt, ir.ConstFloat, ir.ConstBool)):
            names[letter] = context.scalar_as(index, element)
        else:
            captures.append(f"{letter} = {context.scalar_as(index, element)}")
    return captures, operands, names


def _broadcast(context: OpContext, index: int, layout: TileLayout) -> str:
    """A tile operand as `each` reads it for results of `layout`.

    Raises:
        ValueError: its extents cannot be broadcast.
    """
    name, source = context.name(index), context.layout(index)
    extents = (source.rows, source.cols)
    if extents == (layout.rows, layout.cols):
        return name
    if extents == (1, 1):
        return f"pypto::splat({name}.at(0, 0))"
    if extents == (layout.rows, 1):
        return f"pypto::per_row({name})"
    if extents == (1, layout.cols):
        return f"pypto::per_column({name})"
    if (
        source.rows == layout.rows
        and source.cols * source.element.size == 32
        and layout.cols % source.cols == 0
    ):
        return f"pypto::per_row_block({name})"
    return f"pypto::repeated<{_repetition(context, index)}>({name})"


def _repetition(context: OpContext, index: int) -> str:
    """Template arguments that repeat an operand of any rank: see `pypto::Repeated`.

    Raises:
        ValueError: the shapes of the operands do not broadcast.
    """
    shapes = [_constant_shape(arg) for arg in context.args if isinstance(arg.type, ir.TileType)]
    rank = max(map(len, shapes))
    own = [1] * (rank - len(_constant_shape(context.args[index]))) + _constant_shape(context.args[index])
    wanted = [
        max(extents) for extents in zip(*([1] * (rank - len(each)) + each for each in shapes), strict=True)
    ]
    if any(extent not in (1, target) for extent, target in zip(own, wanted, strict=True)):
        raise ValueError(f"operand {index} of {own} cannot be broadcast to {wanted}")
    steps, rows = [], 1
    for extent, target in zip(reversed(own[:-1]), reversed(wanted[:-1]), strict=True):
        steps += [target, 0 if extent == 1 else rows]
        rows *= extent
    has_columns = "true" if own[-1] == wanted[-1] else "false"
    return ", ".join([has_columns, *map(str, steps)])


def _constant_shape(tile: ir.Expr) -> list[int]:
    assert isinstance(tile.type, ir.TileType)
    extents = constant_extents(tile.type.shape_)
    assert extents is not None
    return extents


def _lambda(captures: list[str], operands: list[Operand], body: str) -> str:
    parameters = ", ".join(operand.parameter for operand in operands)
    return f"[{', '.join(captures)}]({parameters}) {{ return {body}; }}"


def _texts(operands: list[Operand]) -> str:
    return "".join(f", {operand.text}" for operand in operands)


def _emit_packed(context: OpContext, meaning: Elementwise) -> None:
    """A comparison whose results are bits."""
    name = context.declare_typed()
    if name is None:
        return
    context.emitter.headers.add("pypto_mask.h")
    tiles = [i for i in range(len(context.args)) if context.is_tile(i)]
    layout = max((context.layout(i) for i in tiles), key=lambda layout: layout.rows * layout.cols)
    cols = max(context.layout(i).cols for i in tiles)
    rows = context.result_layout.rows
    element = _common_element(context, tiles)
    layout = replace(layout, rows=rows, cols=cols, row_stride=cols, col_stride=1)
    captures, operands, names = _operands(context, meaning, element, element.compute, layout)
    body = FormulaRenderer(element.compute, names).render(meaning.formula)
    source = context.name(tiles[0])
    limit = f"{source}.valid_cols" if context.layout(tiles[0]).cols == cols else str(cols)
    function = _lambda(captures, operands, body)
    context.emitter.line(f"pypto::each_bit<{element.stored}>({name}, {limit}, {function}{_texts(operands)});")


def _common_element(context: OpContext, tiles: list[int]) -> Element:
    """The type in which tiles are compared: a float beats an integer, then the wider one."""
    elements = [element_of(context.args[i].type.dtype) for i in tiles]  # type: ignore[attr-defined]
    return max(elements, key=lambda element: (element.is_float, element.size))


def emit_partial(context: OpContext, meaning: Partial) -> None:
    """A formula where both operands are valid, a copy where one is."""
    name = context.declare_like(0)
    if name is None:
        return
    context.emitter.headers.add("pypto_mask.h")
    ctype = context.result_element.compute
    body = FormulaRenderer(ctype, {"a": "a", "b": "b"}).render(meaning.formula)
    function = f"[]({ctype} a, {ctype} b) {{ return {body}; }}"
    context.emitter.line(f"pypto::each_partial({name}, {function}, {context.name(0)}, {context.name(1)});")
