"""Tensors named for a dump: how scopes say it, that text keeps it, and where it ends up."""

from __future__ import annotations

import pytest

from pypto import ir, passes
from pypto.ir.walk import walk_stmts
from pypto.language.parser.diagnostics import ParserSyntaxError, ParserTypeError
from tests.passes.dsl import assert_round_trips, function, program

KERNEL = """
    @incore
    def kernel(self, x: T(64), o: pl.Out[T(64)]) -> T(64):
        t = pl.load(x, [0], [64])
        o = pl.store(t, [0], o)
        return o
    @orch
    def main(self, x: T(64), o: pl.InOut[T(64)]) -> T(64):
"""
BLOCK = """
            {index}t = pl.load(x, [{at}], [16])
            o = pl.store(t, [{at}], o)"""
INSIDE = BLOCK.format(index="i = pl.tile.get_block_idx()\n            ", at="i")

FORMS = {
    "cluster": "with pl.cluster({0}):\n            o = self.kernel(x, o)",
    "spmd in cluster": "with pl.cluster():\n            with pl.spmd(4, {0}):\n"
    "                o = self.kernel(x, o)",
    "dispatch": "with pl.spmd(4, name_hint='h', {0}):\n            o = self.kernel(x, o)",
    "dispatch with task id": "with pl.spmd(4, {0}) as t0:\n            o = self.kernel(x, o)",
    "loop": "for i in pl.spmd(4, name_hint='h', {0}):" + BLOCK.format(index="", at="i"),
    "loop with slots": "for i in pl.spmd(4, {0}, optimizations=[pl.cross_core_slot(slot_num=2)]):"
    + BLOCK.format(index="", at="i"),
    "block with task id": "with pl.spmd(4, {0}) as t0:" + INSIDE,
    "explicit kernel": "with pl.spmd(4, {0}):\n            with pl.at(level=pl.Level.CORE_GROUP):"
    + INSIDE.replace("\n", "\n    "),
}


def source(form: str, *, tagged: bool) -> ir.Program:
    """A program with a scope that dumps `x`: by a tag before it, or by its own list."""
    scope = FORMS[form].format("" if tagged else "dumps=[x]").replace(", )", ")").replace(", ,", ",")
    tag = "        pl.dump_tag(x)\n" if tagged else ""
    return program(f"{KERNEL}{tag}        {scope}\n        return o\n")


def dumping_scopes(found: ir.Program) -> list[str]:
    return [
        type(stmt).__name__
        for stmt in walk_stmts(function(found, "main").body)
        if isinstance(stmt, ir.ScopeStmt) and "dump_vars" in stmt.attrs_
    ]


@pytest.mark.parametrize("tagged", [True, False], ids=["tag", "list"])
@pytest.mark.parametrize("form", FORMS)
def test_dump_lists_of_every_scope_survive_printing_before_and_after_each_outliner(form: str, tagged: bool):
    stage = source(form, tagged=tagged)
    assert dumping_scopes(stage), "the scope itself must carry the list"
    assert_round_trips(stage)
    for step in (
        passes.convert_to_ssa,
        passes.normalize_stmt_structure,
        passes.flatten_call_expr,
        passes.outline_incore_scopes,
        passes.outline_cluster_scopes,
    ):
        stage = step()(stage)
        assert_round_trips(stage)


@pytest.mark.parametrize("form", ["loop", "block with task id"])
def test_the_list_of_a_launch_that_makes_its_kernel_goes_to_the_kernel(form: str):
    assert dumping_scopes(source(form, tagged=False)) == ["InCoreScopeStmt"]


def test_attributes_of_a_kernel_scope_that_a_launch_cannot_state_keep_the_scope_in_the_text():
    """`windowize` has no place on `pl.spmd`, so the scope is printed although it starts with the index."""
    scope = (
        FORMS["explicit kernel"].replace(", {0}", "").replace("CORE_GROUP)", "CORE_GROUP, windowize=True)")
    )
    text = f"{KERNEL}        {scope}\n        return o\n"
    found = program(text)
    assert "windowize=True" in found.as_python()
    assert_round_trips(found)


@pytest.mark.parametrize(
    ("scope", "error", "fact"),
    [
        ("with pl.cluster(dumps=x):", ParserTypeError, r"pl.cluster\(dumps=...\) must be a list literal"),
        ("with pl.cluster(dumps=[z]):", ParserTypeError, "references unknown name 'z'"),
        ("with pl.spmd(2, dumps=[x, x]):", ParserTypeError, "lists 'x' more than once"),
        ("with pl.spmd(2, dumps=[x[0:4]]):", ParserTypeError, "entries must be bare tensor names"),
        ("with pl.cluster(dump=[x]):", ParserSyntaxError, "unexpected keyword argument 'dump'"),
    ],
)
def test_misuse_of_a_dump_list_is_named(scope: str, error: type[Exception], fact: str):
    with pytest.raises(error, match=fact):
        program(f"{KERNEL}        {scope}\n            o = self.kernel(x, o)\n        return o\n")
