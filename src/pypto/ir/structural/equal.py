"""Structural equality.

The comparison runs on an explicit stack of pairs, in field order: definitions met earlier decide how later
uses match. While a definition field is compared, variables are mapped; elsewhere they are looked up.

Two rules concern objects that occur on both sides. A shared statement, function or variable-free expression
is equal at once. A shared variable is equal unless it is already the partner of another one; in a *strong*
context
(inside a type, or with auto-mapping requested) it is recorded as its own partner. Without that, kernels over
`[N, M]`
and `[M, M]` with shared symbols would compare equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pypto.ir.attrs import RepeatedKeys
from pypto.ir.expr import ConstInt, Expr, IterArg, MemRef, Var, WindowBuffer
from pypto.ir.node import IRNode, Structure
from pypto.ir.program import Function
from pypto.ir.stmt import Stmt
from pypto.ir.structural.values import is_reference, same_int_dtype, same_value
from pypto.ir.types import ScalarType, Type


def structural_equal(lhs: IRNode | Type, rhs: IRNode | Type, enable_auto_mapping: bool = False) -> bool:
    """Whether two nodes or two types mean the same.

    With `enable_auto_mapping` free variables may be renamed, too. Raises `TypeError` unless both are nodes
    or both are types.
    """
    check_comparable(lhs, rhs)
    return Comparison(enable_auto_mapping).equal(lhs, rhs)


def check_comparable(lhs: object, rhs: object) -> None:
    if isinstance(lhs, IRNode) and isinstance(rhs, IRNode):
        return
    if isinstance(lhs, Type) and isinstance(rhs, Type):
        return
    raise TypeError(
        f"Can only compare two IR nodes or two types, got {type(lhs).__name__} and {type(rhs).__name__}"
    )


_LENIENT_VAR = object()  # marks the pair of loop variables, whose INT64 and INDEX types are one
IDENTITY_ONLY = object()  # marks a pair of variables of which only the pairing counts


class Comparison:
    """The state of one comparison: the partial bijection between variables, and which pairs are strong."""

    def __init__(self, auto: bool) -> None:
        self.requested_auto = auto
        self.left_to_right: dict[Var, Var] = {}
        self.right_to_left: dict[Var, Var] = {}
        self.strong_pairs: set[Var] = set()
        self._shared_vars: dict[int, tuple[Expr, tuple[Var, ...]]] = {}
        self._passed: dict[tuple[int, int, bool, bool], int] = {}

    def equal(self, lhs: Any, rhs: Any) -> bool:
        pending: list[tuple[Any, Any, bool, bool, Any]] = [
            (lhs, rhs, self.requested_auto, self.requested_auto or isinstance(lhs, Type), None)
        ]
        while pending:
            left, right, auto, strong, mark = pending.pop()
            if left is right:
                if not self._shared_ok(left, strong):
                    return False
                continue
            if left is None or right is None:
                return False
            if left.__class__ is not right.__class__ and left.KIND is not right.KIND:
                return False
            if isinstance(left, Var):
                if not self._var_ok(left, right, auto, strong, mark, pending):
                    return False
                continue
            if isinstance(left, Expr) and self.has_passed(left, right, auto, strong):
                continue
            step = _STEPS.get(left.__class__)
            if step is None:
                step = _STEPS[left.__class__] = _make_step(left.__class__)
            if not step(left, right, auto, strong, pending, self):
                return False
        return True

    def has_passed(self, left: Expr, right: Expr, auto: bool, strong: bool) -> bool:
        """Whether this very pair has been entered before and nothing that its verdict rests on has changed.

        A pair is entered again only after it has been left, and a difference inside ends the comparison, so
        expressions that share their operands cost no more than those operands.
        """
        known = len(self.left_to_right) + len(self.right_to_left) + len(self.strong_pairs)
        key = (id(left), id(right), auto, strong)
        if self._passed.get(key) == known:
            return True
        self._passed[key] = known
        return False

    # -- variables
    # -------------------------------------------------------------------------------------------------

    def _var_ok(self, left: Any, right: Any, auto: bool, strong: bool, mark: Any, pending: list[Any]) -> bool:
        partner = self.left_to_right.get(left)
        if partner is not None or right in self.right_to_left:
            if partner is not right:
                return False
            if strong:
                self.strong_pairs.add(left)
            if type(left) is Var or mark is IDENTITY_ONLY:
                return True
        elif not auto:
            return False
        else:
            self.pair(left, right, strong)
            if mark is IDENTITY_ONLY:
                return True
            if type(left) is Var:
                if mark is _LENIENT_VAR and _lenient_types(left.type, right.type):
                    return True
                pending.append((left.type, right.type, True, True, None))
                return True
        return self._var_parts_ok(left, right, auto, strong, pending, partner is None)

    def _var_parts_ok(
        self, left: Any, right: Any, auto: bool, strong: bool, pending: list[Any], is_new: bool
    ) -> bool:
        if isinstance(left, IterArg):
            pending.append((left.initValue, right.initValue, auto, strong, None))
        elif isinstance(left, MemRef):
            if (left.size_, left.is_pinned_, left.slot_count_) != (
                right.size_,
                right.is_pinned_,
                right.slot_count_,
            ):
                return False
            if (left.slot_index_ is None) != (right.slot_index_ is None):
                return False
            if left.slot_index_ is not None:
                pending.append((left.slot_index_, right.slot_index_, auto, strong, None))
            pending.append((left.byte_offset_, right.byte_offset_, auto, strong, None))
            pending.append((left.base_, right.base_, auto, strong, None))
        elif isinstance(left, WindowBuffer):
            if (left.load_from_host, left.store_to_host) != (right.load_from_host, right.store_to_host):
                return False
            pending.append((left.size, right.size, auto, strong, None))
            pending.append((left.base, right.base, auto, strong, None))
        if is_new:
            pending.append((left.type, right.type, True, True, None))
        return True

    def pair(self, left: Var, right: Var, strong: bool) -> None:
        """Record that the two variables stand for each other."""
        self.left_to_right[left] = right
        self.right_to_left[right] = left
        if strong:
            self.strong_pairs.add(left)

    # -- objects on both sides
    # -------------------------------------------------------------------------------------

    def _shared_ok(self, shared: Any, strong: bool) -> bool:
        if shared is None or isinstance(shared, (Stmt, Function)):
            return True
        if isinstance(shared, Var):
            return self._shared_var_ok(shared, strong)
        if isinstance(shared, Structure):
            for var in self._vars_of(shared):
                if not self._shared_var_ok(var, strong or isinstance(shared, Type)):
                    return False
        return True

    def _shared_var_ok(self, var: Var, strong: bool) -> bool:
        partner, source = self.left_to_right.get(var), self.right_to_left.get(var)
        if strong:
            if (partner is not None and partner is not var) or (source is not None and source is not var):
                return False
            self.pair(var, var, True)
            return True
        if partner is not None and partner is not var and var in self.strong_pairs:
            return False
        return not (source is not None and source is not var and source in self.strong_pairs)

    def _vars_of(self, shared: Any) -> tuple[Var, ...]:
        if isinstance(shared, Type):
            return type_vars(shared)
        known = self._shared_vars.get(id(shared))
        if known is None:
            known = self._shared_vars[id(shared)] = (shared, tuple(dict.fromkeys(_compared_vars(shared))))
        return known[1]


def type_vars(type: Type) -> tuple[Var, ...]:
    """The variables that comparison of a type looks at (so not those of its memory reference), each once."""
    try:
        return type.vars_cache
    except AttributeError:
        found = tuple(dict.fromkeys(_compared_vars(type)))
        _set_vars_cache(type, found)
        return found


_set_vars_cache = Type.__dict__["vars_cache"].__set__


def _compared_vars(root: Any) -> list[Var]:
    found: list[Var] = []
    pending = [root]
    entered: set[int] = set()
    while pending:
        node = pending.pop()
        if isinstance(node, Var):
            found.append(node)
            continue
        if id(node) in entered:
            continue
        entered.add(id(node))
        pending += reversed(_compared_children(node))
    return found


def _compared_children(node: Any) -> Sequence[Any]:
    below: list[Any] = []
    for field in node.FIELDS:
        if field.role == "ignored":
            continue
        value = getattr(node, field.stored)
        if field.kind in ("node", "opt_node", "type", "view"):
            if value is not None:
                below.append(value)
        elif field.kind in ("nodes", "iter_args", "types"):
            below += value
        elif field.kind == "attrs":
            for attr in value.values():
                if is_reference(attr):
                    below += attr if type(attr) is tuple else (attr,)
    return below


def _lenient_types(left: Type, right: Type) -> bool:
    return (
        isinstance(left, ScalarType)
        and isinstance(right, ScalarType)
        and same_int_dtype(left.dtype, right.dtype)
    )


# -- one step per class: compare plain fields at once, push the rest in reverse order
# ---------------------------------


def _attrs_ok(
    left: dict[str, Any], right: dict[str, Any], auto: bool, strong: bool, pending: list[Any]
) -> bool:
    if left is right and not left:
        return True
    if len(left) != len(right) or isinstance(left, RepeatedKeys) or isinstance(right, RepeatedKeys):
        return False
    references = []
    for key, value in left.items():
        if key not in right:
            return False
        other = right[key]
        if is_reference(value):
            if isinstance(value, IRNode):
                references.append((value, other, auto, strong, None))
            elif type(other) is not tuple or len(other) != len(value):
                return False
            else:
                references += [(a, b, auto, strong, None) for a, b in zip(value, other, strict=True)]
        elif is_reference(other) or not same_value(value, other):
            return False
    if any(not isinstance(other, IRNode) for _, other, *_ in references):
        return False
    pending += reversed(references)
    return True


def _step_const_int(left: Any, right: Any, auto: bool, strong: bool, pending: Any, state: Any) -> bool:
    return left.value == right.value and (
        left.type is right.type or same_int_dtype(left.type.dtype, right.type.dtype)
    )


def _step_functions(left: Any, right: Any, auto: bool, strong: bool, pending: Any, state: Any) -> bool:
    if list(left.functions_) != list(right.functions_):
        return False
    pairs = zip(left.functions_.values(), right.functions_.values(), strict=True)
    pending += reversed([(a, b, auto, strong, None) for a, b in pairs])
    return True


_MARKS = {("ForStmt", "loop_var"): "lenient", ("DistributedTensorType", "window_buffer"): "identity_only"}


def _make_step(cls: type[Any]) -> Any:
    """Generate the comparison step of a class from its field list."""
    if cls is ConstInt:
        return _step_const_int
    if cls.__name__ == "Program":
        return _step_functions
    checks: list[str] = []
    pushes: list[str] = []
    in_type = issubclass(cls, Type)
    for field in cls.FIELDS:
        if field.role == "ignored":
            continue
        a, b = f"l.{field.stored}", f"r.{field.stored}"
        auto = "True" if field.role == "def" else "auto"
        strong = "True" if in_type or field.kind in ("type", "types") else "strong"
        mark = _MARKS.get((cls.__name__, field.name), "None")
        if field.kind in ("value", "values"):
            checks.append(f"if {a} is not {b} and not same_value({a}, {b}): return False")
        elif field.kind == "op":
            checks.append(f"if {a} is not {b} and {a}.name != {b}.name: return False")
        elif field.kind in ("node", "type", "opt_node", "view"):
            pushes.append(f"pending.append(({a}, {b}, {auto}, {strong}, {mark}))")
        elif field.kind in ("nodes", "iter_args", "types"):
            checks.append(f"if len({a}) != len({b}): return False")
            pushes.append(
                f"if {a}: pending += [(x, y, {auto}, {strong}, None) for x, y in zip({a}[::-1], {b}[::-1])]"
            )
        elif field.kind == "attrs":
            pushes.append(
                f"if ({a} or {b}) and not attrs_ok({a}, {b}, {auto}, {strong}, pending): return False"
            )
    lines = ["def step(l, r, auto, strong, pending, state):", *checks, *reversed(pushes), "return True"]
    namespace = {
        "same_value": same_value,
        "attrs_ok": _attrs_ok,
        "lenient": _LENIENT_VAR,
        "identity_only": IDENTITY_ONLY,
    }
    exec("\n    ".join(lines), namespace)
    return namespace["step"]


_STEPS: dict[type[Any], Any] = {}
