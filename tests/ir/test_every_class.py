"""What must hold for every node and type class alike."""

from __future__ import annotations

import enum
from typing import Any

import pytest

import pypto.language as pl
from pypto import ir
from pypto.ir.node import Structure
from pypto.ir.walk import walk

from . import instances

MODES = (False, True)


def concrete_classes(root: type) -> set[type]:
    below = set().union(*[concrete_classes(cls) for cls in root.__subclasses__()])
    return below if root.ABSTRACT or root.KIND is not root else below | {root}


def test_instances_cover_every_class():
    wanted = concrete_classes(ir.IRNode) | concrete_classes(ir.Type)
    assert {cls.__name__ for cls in wanted} == {type(each).__name__ for each in instances.everything()}


def comparable(left: object, right: object) -> bool:
    return isinstance(left, ir.Type) == isinstance(right, ir.Type)


@pytest.mark.parametrize("auto", MODES)
def test_equality_is_symmetric_and_implies_equal_hashes(auto):
    first, second = instances.everything(), instances.everything()
    hashes = [[ir.structural_hash(each, auto) for each in side] for side in (first, second)]
    equal = 0
    for i, left in enumerate(first):
        for j, right in enumerate(second):
            if not comparable(left, right):
                continue
            verdict = ir.structural_equal(left, right, auto)
            if type(left) is type(right):
                assert ir.structural_equal(right, left, auto) is verdict, (left, right)
            if verdict:
                equal += 1
                assert hashes[0][i] == hashes[1][j], (left, right)
    assert equal >= len(first) // 2


@pytest.mark.parametrize("auto", MODES)
def test_every_object_equals_itself(auto):
    for each in instances.everything():
        assert ir.structural_equal(each, each, auto)


def test_an_object_built_anew_over_the_same_free_variables_is_equal():
    for left, right in zip(instances.everything(), instances.everything(), strict=True):
        assert ir.structural_equal(left, right, True), left
        if isinstance(left, (ir.Type, ir.Function, ir.Program, ir.ScopeStmt)):
            assert ir.structural_equal(left, right), left
            ir.assert_structural_equal(left, right)


def other(value: Any) -> Any:
    """A value of the same kind that differs."""
    if isinstance(value, enum.Enum):
        return next((member for member in type(value) if member is not value), None)
    if value is None or isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return 3 if value != 3 else 4
    return ir.INT16 if isinstance(value, ir.DataType) else value + "x"


def changed(field: Any, value: Any) -> Any:
    """A value that differs from `value` in what the field holds; None where there is no such value."""
    if field.kind in ("node", "opt_node", "nodes", "iter_args", "view", "types", "functions"):
        return changed_nodes(field, value)
    if field.kind == "attrs":
        return {**value, "added": 1}
    if field.kind == "op":
        return ir.Op(value.name + "x")
    if field.kind == "type":
        return ir.ScalarType(ir.DataType.UINT16)
    if field.kind == "values":
        return (*value, ir.ParamDirection.InOut if field.name == "param_directions" else 5)
    if field.name == "span":
        return ir.Span("elsewhere.py", 1, 1)
    if field.name in ("level", "role", "memory_space") and value is None:
        return {"level": ir.Level.CHIP, "role": ir.Role.SubWorker, "memory_space": ir.Mem.Vec}[field.name]
    return other(value) if isinstance(value, (enum.Enum, int, float, str, ir.DataType)) else None


def changed_nodes(field: Any, value: Any) -> Any:
    if field.kind == "functions":
        return {**value, "zz": next(instances.functions())}
    if field.kind == "types":
        return (*value, ir.ScalarType(ir.BOOL))
    if field.kind == "view":
        return None if value is not None else ir.TileView() if field.name == "tile_view" else ir.TensorView()
    if field.kind in ("nodes", "iter_args"):
        return (*value, ir.BreakStmt(instances.WHERE) if field.name == "stmts" else a_variable())
    if isinstance(value, ir.Stmt):
        return ir.InlineStmt("other", ir.InlineLanguage.Python, instances.WHERE)
    return ir.MemRef("other", 0, 4) if field.name == "memref" else a_variable()


def a_variable() -> ir.Var:
    return ir.Var("another", ir.ScalarType(ir.DataType.UINT8), instances.WHERE)


def raw_copy(node: Structure, **stored: Any) -> Structure:
    """A copy with other stored values, unchecked."""
    values = [stored.get(field.stored, getattr(node, field.stored)) for field in node.FIELDS]
    return type(node).make(*values)


@pytest.mark.parametrize("auto", MODES)
def test_a_change_of_any_field_matters_exactly_unless_the_field_is_ignored(auto):
    checked = set()
    for node in instances.everything():
        if isinstance(node, ir.Var) and not auto:
            continue  # different variables are different whatever their fields
        for field in node.FIELDS:
            value = getattr(node, field.stored)
            new = changed(field, value)
            if new is None and (value is None or field.kind == "value"):
                continue  # nothing else can stand here
            copy = raw_copy(node, **{field.stored: new})
            assert ir.structural_equal(node, copy, auto) is (field.role == "ignored"), (node, field.name)
            if field.role == "ignored":
                assert ir.structural_hash(raw_copy(node), True) == ir.structural_hash(copy, True)
            else:
                with pytest.raises(ValueError, match=r"Reason: (?!Structures differ)"):
                    ir.assert_structural_equal(node, copy, auto)
                if field.name != "window_buffer":  # under auto-mapping, one buffer is as good as another
                    assert ir.structural_hash(node, auto) != ir.structural_hash(copy, auto), (
                        node,
                        field.name,
                    )
            checked.add((type(node).__name__, field.name))
    fields = {(type(n).__name__, f.name) for n in instances.everything() for f in n.FIELDS}
    variables = {pair for pair in fields if issubclass(getattr(ir, pair[0], object), ir.Var)}
    assert fields - checked - (set() if auto else variables) == {
        ("InlineStmt", "language")
    }  # it has one member


def snapshot(value: Any) -> Any:
    """Every stored fact of an object, names, places and comments included; variables told by their order."""
    numbers: dict[int, int] = {}

    def facts(value: Any) -> Any:
        if isinstance(value, Structure):
            if isinstance(value, ir.Var):
                if id(value) in numbers:
                    return numbers[id(value)]
                numbers[id(value)] = len(numbers)
            comments = value.leading_comments if isinstance(value, ir.Stmt) else []
            return (
                type(value).__name__,
                comments,
                [facts(getattr(value, field.stored)) for field in value.FIELDS],
            )
        if isinstance(value, dict):
            return [(key, facts(item)) for key, item in value.items()]
        if isinstance(value, (tuple, list)):
            return [facts(item) for item in value]
        if isinstance(value, ir.Span):
            return value.filename, value.begin_line, value.begin_column, value.end_line, value.end_column
        if isinstance(value, ir.Op):
            return type(value).__name__, value.name
        return type(value).__name__, repr(value)

    return facts(value)


def test_serialization_restores_every_fact():
    for node in instances.nodes():
        data = ir.serialize(node)
        restored = ir.deserialize(data)
        assert type(restored) is type(node)
        assert ir.structural_equal(node, restored, True), node
        assert ir.structural_hash(node, True) == ir.structural_hash(restored, True)
        assert ir.serialize(restored) == data, node
        if not has_placed_type(node):
            assert snapshot(restored) == snapshot(node)


def has_placed_type(node: ir.IRNode) -> bool:
    """Whether a type below holds a memory reference, whose place is not kept."""
    return isinstance(node, ir.Var) and getattr(node.type, "memref", None) is not None


def test_rewriting_that_changes_nothing_returns_the_same_object():
    for node in instances.nodes():
        mutator, substitution = ir.IRMutator(), ir.Substitution()
        if isinstance(node, ir.Program):
            assert mutator.visit_program(node) is node
        elif isinstance(node, ir.Function):
            assert mutator.visit_function(node) is node and substitution.function(node) is node
        elif isinstance(node, ir.Stmt):
            assert mutator.visit_stmt(node) is node and substitution.stmt(node) is node
        else:
            assert mutator.visit_expr(node) is node and substitution.expr(node) is node
        assert node.replace() is node


def rewriters(old: ir.Var, new: ir.Var) -> list[Any]:
    """Each way of replacing a variable in a statement."""

    class Renames(ir.IRMutator):
        def visit_var(self, op: ir.Var) -> ir.Expr:
            return new if op is old else super().visit_var(op)

    return [
        Renames().visit_stmt,
        lambda stmt: ir.substitute_stmt(stmt, [(old, new)]),
        lambda stmt: ir.deep_clone(stmt, [(old, new)])[0],
    ]


def test_replacing_a_variable_by_its_twin_changes_no_other_fact():
    free = instances.FREE
    twin = ir.Var(free.name_hint, free.type, free.span)
    for stmt in (
        *instances.statements(),
        *(ir.EvalStmt(e, instances.WHERE) for e in instances.expressions()),
    ):
        if isinstance(stmt, ir.SeqStmts) and any(isinstance(inner, ir.SeqStmts) for inner in stmt):
            continue  # a rebuilt sequence is flat
        for rewrite in rewriters(free, twin):
            after = rewrite(stmt)
            assert snapshot(after) == snapshot(stmt), stmt
            assert not any(node is free for node in walk(after)), stmt


def test_no_field_of_a_node_or_type_can_be_assigned():
    for each in instances.everything():
        for field in each.FIELDS:
            if isinstance(each, ir.MemRef) and field.name in ("base_", "byte_offset_", "size_"):
                continue
            with pytest.raises(AttributeError):
                setattr(each, field.name, None)


def test_a_class_that_only_specialises_another_counts_as_that_class():
    declared = pl.MemRef(instances.BASE, 0, 64)
    plain = ir.MemRef(instances.BASE, 0, 64)
    assert type(declared) is not type(plain)
    assert ir.structural_equal(declared, plain, True)
    assert ir.structural_hash(declared, True) == ir.structural_hash(plain, True)
    assert type(ir.deserialize(ir.serialize(declared))) is ir.MemRef
    met = []

    class Met(ir.IRVisitor):
        def visit_mem_ref(self, op):
            met.append(op)

    Met().visit_expr(declared)
    assert met[0] is declared and ir.IRMutator().visit_expr(declared) is declared
