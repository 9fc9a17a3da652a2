"""What an operator computes, as data.

An operator declares its numeric meaning once, next to its signature. Two readers derive from it: the CPU
code generator, which turns it into loops, and the numpy evaluator, which is the oracle of the tests. A
meaning never mentions addresses, layouts or buffers; those follow from the types of the operands.

Rules that hold for every meaning:

* Only cells inside the valid region of the result are defined.
* Arithmetic happens in the element type of the result; 16-bit floats compute in FP32 and round to nearest
  even once per operator, integers wrap.
* Operands broadcast by their types: a tile or tensor of the result's shape, a unit axis (a column vector
  ``[M, 1]`` or a row vector ``[1, N]``), or a scalar.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from typing import Literal

#: Functions that a formula may call, with their definition.
FUNCTIONS: dict[str, str] = {
    "exp": "e ** x",
    "log": "natural logarithm",
    "sqrt": "square root",
    "rsqrt": "1 / sqrt(x)",
    "recip": "1 / x",
    "sin": "sine, radians",
    "cos": "cosine, radians",
    "abs": "absolute value (the most negative integer maps to itself)",
    "min": "the smaller of two",
    "max": "the larger of two",
    "div": "floats: IEEE division; integers: quotient truncated toward zero",
    "fmod": "remainder with the sign of the dividend (C fmod)",
    "floormod": "remainder with the sign of the divisor",
    "where": "where(condition, x, y)",
    "compare": "compare(x, y, code), code 0 eq, 1 ne, 2 lt, 3 le, 4 gt, 5 ge; gives 1 or 0",
    "shl": "x << y, wrapping",
    "shr": "x >> y, arithmetic for signed element types, logical for unsigned ones",
}

#: Elements that share a scale in a product of block-scaled operands.
SCALE_BLOCK = 32

#: Operand names of a formula: the i-th argument of the call.
OPERAND_NAMES = "abcdef"


@dataclass(frozen=True, slots=True)
class Elementwise:
    """Each result cell is ``formula`` of the operand cells at the same (broadcast) position.

    ``formula`` is a Python expression over ``a`` (argument 0), ``b`` (argument 1) and so on, the operators
    ``+ - * & | ^ ~``, comparisons, numbers, keyword names of the operator and :data:`FUNCTIONS`.
    ``mask_operands`` are arguments that hold a packed predicate (bit ``c % 8`` of byte ``c // 8`` of the
    row, least significant bit first) and enter the formula as a truth value per cell; ``packs`` says that
    the result is one.
    """

    formula: str
    mask_operands: tuple[int, ...] = ()
    packs: bool = False


@dataclass(frozen=True, slots=True)
class Partial:
    """``formula`` where both operands are valid, a copy of the valid one where exactly one is, else
    undefined."""

    formula: str


@dataclass(frozen=True, slots=True)
class Reduce:
    """Combine the valid cells along one axis; the axis stays with extent 1.

    ``axis`` is ``"row"`` (the last axis) or ``"col"`` (the second-last axis of a tensor, the first of a
    tile).
    ``argmax`` and ``argmin`` give the index of the first extreme. 16-bit floats accumulate in FP32 and round
    once.
    """

    combine: Literal["sum", "max", "min", "prod", "argmax", "argmin"]
    axis: Literal["row", "col"]


@dataclass(frozen=True, slots=True)
class Contraction:
    """Matrix product over the last two axes; products are summed in FP32 or INT32.

    Arguments: ``[acc,] lhs, rhs [, bias] [, init_cond]``. With ``accumulate`` the result is
    ``acc + lhs @ rhs``, or the product alone where ``init_cond`` is true. Keywords ``a_trans`` and
    ``b_trans`` swap the operand's trailing axes first. With ``scaled`` each operand is followed by its
    scales, one for every :data:`SCALE_BLOCK` elements along the summed axis.
    """

    accumulate: bool
    bias: bool = False
    scaled: bool = False

    @property
    def operands(self) -> tuple[int, int]:
        """Positions of ``lhs`` and ``rhs`` among the arguments; a bias follows the last operand."""
        first = 1 if self.accumulate else 0
        return first, first + (2 if self.scaled else 1)

    @property
    def bias_position(self) -> int:
        """Position of the bias among the arguments, where there is one."""
        return self.operands[1] + (2 if self.scaled else 1)


@dataclass(frozen=True, slots=True)
class Cast:
    """Element conversion to keyword ``target_type`` with rounding ``mode``."""


@dataclass(frozen=True, slots=True)
class Move:
    """Cells change place but not value; ``kind`` names the rule (see the operator's documentation)."""

    kind: str


@dataclass(frozen=True, slots=True)
class Query:
    """A scalar about a type or about the running launch: ``dim``, ``get_block_idx``, ``get_block_num``,
    ..."""

    kind: str


@dataclass(frozen=True, slots=True)
class Together:
    """What the lanes of one kernel, or the blocks of one launch, do together; ``kind`` names the rule.

    Tiles: ``push_to_vector``, ``push_to_cube``, ``pop_from_cube``, ``pop_from_vector``, ``shard`` (one lane's
    half of a tile), ``gather`` (both halves). Queues: ``free``, ``open``, ``reserve``, ``import``. Order:
    ``signal``, ``await``, ``barrier``.
    """

    kind: str


#: What all ranks do together: the operators `pld.tensor.<kind>`.
COLLECTIVES = frozenset(
    {"barrier", "allreduce", "reduce_scatter", "broadcast", "allgather", "all_to_all", "all_to_all_v"}
)


@dataclass(frozen=True, slots=True)
class Remote:
    """What concerns several ranks; ``kind`` names the rule.

    About a window: ``context``, ``rank``, ``nranks``. Signals: ``notify``, ``wait``. Transfers with the
    window of a peer: ``load``, ``store``, ``put``, ``get``. The others are the `COLLECTIVES`.
    """

    kind: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """No meaning on the CPU yet; ``reason`` completes the sentence "<op> is not supported on the CPU: "
    "..."."""

    reason: str


Meaning = Elementwise | Partial | Reduce | Contraction | Cast | Move | Query | Together | Remote | Opaque


@cache
def parse_formula(formula: str) -> ast.expr:
    """Syntax tree of a formula.

    Raises:
        ValueError: a call of something that is not in :data:`FUNCTIONS`.
    """
    tree = ast.parse(formula, mode="eval").body
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and not (
            isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS and not node.keywords
        ):
            raise ValueError(
                f"formula {formula!r} calls {ast.unparse(node.func)}, which is not a known function"
            )
    return tree


def operands_used(formula: str) -> tuple[int, ...]:
    """Argument positions that a formula reads, ascending."""
    names = {node.id for node in ast.walk(parse_formula(formula)) if isinstance(node, ast.Name)}
    return tuple(i for i, name in enumerate(OPERAND_NAMES) if name in names)
