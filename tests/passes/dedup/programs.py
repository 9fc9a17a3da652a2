"""Small programs with twins, and questions about what deduplication makes of them."""

from __future__ import annotations

import pytest

from pypto import ir, passes
from pypto.core.logging import LogLevel, get_log_level, set_log_level
from pypto.passes.dedup.explain import DedupRecord
from tests.passes.dsl import assert_round_trips, function, program
from tests.passes.dsl import run as run_passes

KEPT = "kept"


def ssa(methods: str, header: str = "") -> ir.Program:
    """The program as deduplication sees it: SSA form, no nested calls, scopes outlined."""
    return run_passes(
        program(methods, header),
        passes.normalize_stmt_structure,
        passes.flatten_call_expr,
        passes.outline_hierarchy_scopes,
        passes.outline_incore_scopes,
        passes.outline_cluster_scopes,
    )


def dedup(source: ir.Program) -> ir.Program:
    """Deduplicate, and check what must hold for every program."""
    result = passes.deduplicate_outlined_kernels()(source)
    assert passes.deduplicate_outlined_kernels()(result) is result, "a second run must change nothing"
    check_executions_are_unchanged(source, result)
    return result


def check_executions_are_unchanged(before: ir.Program, after: ir.Program) -> None:
    """Every surviving function has the same dispatches in the same order, with the same types and fields."""
    for name, found in after.functions_.items():
        old, new = dispatches(function(before, name)), dispatches(found)
        assert len(old) == len(new)
        for mine, theirs in zip(old, new, strict=True):
            assert theirs.op.name in after.functions_
            assert theirs.replace(op=mine.op) is mine or _same_but_callee(mine, theirs)


def _same_but_callee(old: ir.Call | ir.Submit, new: ir.Call | ir.Submit) -> bool:
    if type(old) is not type(new):
        return False
    fields = [field.stored for field in type(old).FIELDS if field.name != "op"]
    return all(
        getattr(old, name) is getattr(new, name) or getattr(old, name) == getattr(new, name)
        for name in fields
        if name not in ("args_", "deps_", "core_num", "predicate")
    ) and all(a is b for a, b in zip(old.args_, new.args_, strict=True))


def dispatches(found: ir.Function) -> list[ir.Call | ir.Submit]:
    from pypto.ir.walk import walk

    return [
        node
        for node in walk(found, once=True)
        if isinstance(node, (ir.Call, ir.Submit)) and isinstance(node.op, ir.GlobalVar)
    ]


def kernels(result: ir.Program) -> list[str]:
    """The names of all definitions that are no orchestration."""
    outer = (
        ir.FunctionType.Orchestration,
        ir.FunctionType.Opaque,
        ir.FunctionType.Graph,
        ir.FunctionType.Spmd,
    )
    return [name for name, found in result.functions_.items() if found.func_type not in outer]


def records(source: ir.Program) -> dict[str, DedupRecord]:
    return {record.name: record for record in passes.explain_deduplication(source)}


def reason(source: ir.Program, name: str) -> str | None:
    """Why `name` is kept; None if it is merged. The pass itself must agree."""
    record = records(source)[name]
    assert (name in dedup(source).functions_) == (record.outcome == KEPT)
    return record.reason


def logged(source: ir.Program, capfd: pytest.CaptureFixture[str]) -> str:
    """What the pass logs at debug level."""
    level = get_log_level()
    set_log_level(LogLevel.DEBUG)
    try:
        passes.deduplicate_outlined_kernels()(source)
    finally:
        set_log_level(level)
    return capfd.readouterr().err


__all__ = [
    "assert_round_trips",
    "dedup",
    "dispatches",
    "function",
    "kernels",
    "logged",
    "reason",
    "records",
    "ssa",
]
