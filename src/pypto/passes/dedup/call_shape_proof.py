"""Proof that every call of a kernel may go to a kernel whose dynamic extents are other symbols.

Two kernels over `Tensor[[M, 32]]` and `Tensor[[N, 32]]` have equal bodies, but a call states its result
type, and later stages read extents off the signature that is called. So before a call is redirected it
must be shown that the new signature, at this very call, says the same:

1. *Bind.* Every symbol and scalar parameter of the new signature gets a value from the arguments: a
   scalar parameter is its argument, a symbol is the extent that stands at its place. What is bound
   twice must be bound to the same.
2. *Reproduce.* The new result types, with the bindings put in, are the result type that the call carries.

Matching is by structure alone. `N * 128` matches `P * 128` and binds `N` to `P`; it matches neither
`128 * P` nor `512`: no algebra, no inversion, no check at run time. An expression of the caller is
compared by its number in an open numbering (`numbering`), so its size does not matter.

One failing call keeps the alias whole. Only scalars and plain tensors without storage take part; where
a signature has anything else, symbols must be identical, and no proof is needed. Work is bounded: per
call by a number of steps, over a whole run by the weight of the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pypto import ir
from pypto.passes.dedup.near_miss import shown
from pypto.passes.dedup.numbering import Numbering
from pypto.passes.dedup.reasons import Kept, Reason
from pypto.passes.dedup.reference_index import Site

__all__ = ["MAX_STEPS_PER_SITE", "CallShapeProver", "describe_unprovable"]

MAX_SIGNATURE_ENTRIES = 256
MAX_EXTENT_NODES = 256
MAX_STEPS_PER_SITE = 65_536

_TASK_ID = ir.DataType.TASK_ID
_SAME = "use the same pl.dynamic extents in both"


def describe_unprovable(function: ir.Function) -> Kept | None:
    """Return why the signature of `function` is outside the proof, None if it is inside."""
    entries = (*(param.type for param in function.params_), *function.return_types_)
    if len(entries) > MAX_SIGNATURE_ENTRIES:
        limit = MAX_SIGNATURE_ENTRIES
        detail = f"the signature has {len(entries)} parameters and results, the proof takes {limit}; {_SAME}"
        return Kept(Reason.SYMBOL_IDENTITY, detail)
    nodes: set[int] = set()
    for position, entry in enumerate(entries):
        if isinstance(entry, ir.ScalarType):
            continue
        if not _is_plain_tensor(entry):
            count = len(function.params_)
            what = (
                f"parameter '{shown(function.params_[position])}'"
                if position < count
                else f"result {position - count}"
            )
            return Kept(
                Reason.PROOF_UNSUPPORTED_TYPE,
                f"{what} is no tensor with at most a layout, but {shown(entry)}; {_SAME}",
            )
        unsupported = _collect_extent_nodes(entry, nodes)
        if unsupported is not None:
            detail = (
                f"an extent of the signature is a {unsupported}, the proof takes arithmetic only; {_SAME}"
            )
            return Kept(Reason.PROOF_UNSUPPORTED_TYPE, detail)
        if len(nodes) > MAX_EXTENT_NODES:
            detail = f"the extents of the signature have more than {MAX_EXTENT_NODES} nodes; {_SAME}"
            return Kept(Reason.SYMBOL_IDENTITY, detail)
    return None


def _is_plain_tensor(entry: ir.Type) -> bool:
    """Whether `entry` is a tensor without storage whose view, if any, says nothing but a layout."""
    if type(entry) is not ir.TensorType or entry.memref is not None:
        return False
    view = entry.tensor_view
    return view is None or not (view.stride_ or view.valid_shape_ or view.pad is not ir.PadValue.null)


def _collect_extent_nodes(tensor: ir.Type, nodes: set[int]) -> str | None:
    """Add the distinct nodes of all extents to `nodes`; return a class that matching does not know."""
    pending = list(tensor._children())
    while pending and len(nodes) <= MAX_EXTENT_NODES:
        node = pending.pop()
        if id(node) in nodes:
            continue
        if not isinstance(node, (ir.Var, ir.ConstInt, ir.BinaryExpr, ir.UnaryExpr)):
            return type(node).__name__
        nodes.add(id(node))
        if not isinstance(node, ir.Var):
            pending += node._children()
    return None


@dataclass(slots=True)
class _Steps:
    """Steps left at one site and in the whole run. Running out raises `_Exhausted`."""

    here: int
    overall: int

    def take(self) -> None:
        if self.here <= 0 or self.overall <= 0:
            raise _Exhausted
        self.here -= 1
        self.overall -= 1


class _Exhausted(Exception):
    pass


class CallShapeProver:
    """Proves call shapes within a budget of `budget` steps for all proofs together."""

    __slots__ = ("_numbering", "_steps")

    def __init__(self, numbering: Numbering, budget: int) -> None:
        self._numbering = numbering
        self._steps = _Steps(0, budget)

    def refute(self, sites: Iterable[Site], canonical: ir.Function) -> Kept | None:
        """Return why a call among `sites` may not go to `canonical`, None if all of them may."""
        for site in sites:
            self._steps.here = MAX_STEPS_PER_SITE
            try:
                problem = _Match(canonical, site.dispatch, self._numbering, self._steps).problem()
            except _Exhausted:
                where = "at one call" if self._steps.here <= 0 else "of this program"
                problem = Kept(Reason.BUDGET, f"the proof for '{canonical.name}' used up the steps {where}")
            if problem is not None:
                span = site.dispatch.span
                line = f", line {span.begin_line}" if span.is_valid() else ""
                return Kept(problem.reason, f"at a call in '{site.function.name}'{line}: {problem.detail}")
        return None


class _Match:
    """One call against one signature."""

    __slots__ = ("_bindings", "_bound_by", "_call", "_matched", "_number", "_steps", "_target")

    def __init__(
        self, target: ir.Function, call: ir.Call | ir.Submit, numbering: Numbering, steps: _Steps
    ) -> None:
        self._target = target
        self._call = call
        self._number = numbering.number
        self._steps = steps
        self._bindings: dict[ir.Var, int] = {}  # the number of the caller's expression
        self._bound_by: dict[ir.Var, ir.Expr] = {}
        self._matched: set[tuple[int, int]] = set()

    def problem(self) -> Kept | None:
        params, args = self._target.params_, self._call.args_
        if len(params) != len(args):
            return Kept(
                Reason.PROOF_ARITY,
                f"it passes {len(args)} of {len(params)} arguments, so an extent has no binding; "
                "pass every output",
            )
        scalars = [pair for pair in zip(params, args, strict=True) if isinstance(pair[0].type, ir.ScalarType)]
        for param, arg in scalars:
            self._bind(param, arg)
        for param, arg in zip(params, args, strict=True):
            if isinstance(param.type, ir.TensorType):
                mismatch = self._match_type(param.type, arg.type, binding=True)
                if mismatch is not None:
                    return Kept(Reason.PROOF_BINDING, f"argument '{shown(param)}': {mismatch}")
        return self._problem_of_result()

    def _problem_of_result(self) -> Kept | None:
        expected = self._target.return_types_
        carried = _results_of(self._call)
        if carried is None or len(carried) != len(expected):
            return Kept(
                Reason.PROOF_RESULT_TYPE, "its type does not hold the results of the signature one by one"
            )
        for position, (pattern, actual) in enumerate(zip(expected, carried, strict=True)):
            if isinstance(pattern, ir.ScalarType):
                same = isinstance(actual, ir.ScalarType) and actual.dtype is pattern.dtype
                mismatch = None if same else f"{actual} is not {pattern}"
            else:
                mismatch = self._match_type(pattern, actual, binding=False)
            if mismatch is not None:
                return Kept(Reason.PROOF_RESULT_TYPE, f"result {position}: {mismatch}")
        return None

    def _match_type(self, pattern: ir.Type, actual: ir.Type, *, binding: bool) -> str | None:
        """Match tensor types; return a mismatch in words.

        An argument may have strides of its own, as it may at the present callee. A result type must be
        reproduced, and has what the signature has.
        """
        assert isinstance(pattern, ir.TensorType)
        if type(actual) is not ir.TensorType:
            return f"a {type(actual).__name__} is no plain tensor"
        if actual.dtype is not pattern.dtype or len(actual.shape_) != len(pattern.shape_):
            return "element type or rank differ"
        if _layout(actual) is not _layout(pattern):
            return "layouts differ"
        if not binding and not _is_plain_tensor(actual):
            return "the result carries strides, a valid shape or storage"
        for axis, (left, right) in enumerate(zip(pattern.shape_, actual.shape_, strict=True)):
            mismatch = self._match_extent(left, right, binding=binding)
            if mismatch is not None:
                return f"extent {axis}: {mismatch}"
        return None

    def _match_extent(self, pattern: ir.Expr, actual: ir.Expr, *, binding: bool) -> str | None:
        pending = [(pattern, actual)]
        while pending:
            left, right = pending.pop()
            pair = (id(left), id(right))
            if pair in self._matched:
                continue
            self._steps.take()
            if isinstance(left, ir.Var):
                if left not in self._bindings:
                    if not binding:
                        return f"'{shown(left)}' is bound by no argument"
                    self._bind(left, right)
                elif self._bindings[left] != self._number(right):
                    return (
                        f"'{shown(left)}' is {_text(self._bound_by[left])} here, not {_text(right)}; both "
                        "must be the same expression"
                    )
            elif isinstance(left, ir.ConstInt):
                if not isinstance(right, ir.ConstInt) or (left.value, left.dtype) != (
                    right.value,
                    right.dtype,
                ):
                    return f"{_text(left)} is not {_text(right)}"
            else:
                assert isinstance(left, (ir.BinaryExpr, ir.UnaryExpr))
                if type(left) is not type(right) or left.dtype is not right.dtype:
                    return f"{_text(left)} has not the form of {_text(right)}"
                pending += reversed([*zip(left._children(), right._children(), strict=True)])
            self._matched.add(pair)
        return None

    def _bind(self, var: ir.Var, value: ir.Expr) -> None:
        self._bindings[var] = self._number(value)
        self._bound_by[var] = value


def _results_of(call: ir.Call | ir.Submit) -> Sequence[ir.Type] | None:
    """The result types that a dispatch carries, one per result; None if its type has another form."""
    carried = call.type
    if isinstance(call, ir.Submit):
        if not isinstance(carried, ir.TupleType) or not carried.types_:
            return None
        last = carried.types_[-1]
        return carried.types_[:-1] if isinstance(last, ir.ScalarType) and last.dtype is _TASK_ID else None
    if isinstance(carried, ir.UnknownType):
        return ()
    return carried.types_ if isinstance(carried, ir.TupleType) else (carried,)


def _layout(tensor: ir.TensorType) -> ir.TensorLayout:
    return ir.TensorLayout.ND if tensor.tensor_view is None else tensor.tensor_view.layout


def _text(expr: ir.Expr) -> str:
    """A short text of an expression; deep ones are cut."""
    return "..." if _is_large(expr) else shown(expr)


def _is_large(expr: ir.Expr, limit: int = 40) -> bool:
    pending = [expr]
    while pending and limit:
        limit -= 1
        node = pending.pop()
        if not isinstance(node, ir.Var):
            pending += node._children()
    return bool(pending)
