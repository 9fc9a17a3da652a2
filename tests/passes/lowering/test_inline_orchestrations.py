"""InlineOrchestrations: one orchestration submits what scopes of every level hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pypto import ir, passes
from pypto.ir.walk import walk, walk_stmts
from pypto.language import parse_program
from pypto.testing.interpreter import run

from .stages import LOWERING, lowered, through

HEADER = "import pypto.language as pl\n"
TENSOR = "pl.Tensor[[8, 16], pl.FP32]"
MAIN = f"    @pl.function\n    def main(self, x: {TENSOR}, o: pl.InOut[{TENSOR}]) -> {TENSOR}:\n"
HELPER = f"    @pl.function\n    def helper(self, x: {TENSOR}) -> {TENSOR}:\n"
CORE = "with pl.at(level=pl.Level.CORE_GROUP):"


def program(main: str, helper: str = "") -> ir.Program:
    text = HEADER + "@pl.program\nclass P:\n"
    for head, body in ((HELPER, helper), (MAIN, main)):
        if body:
            text += head + "".join(f"        {line}\n" for line in body.strip("\n").split("\n"))
    return parse_program(text)


def inlined(source: ir.Program) -> ir.Program:
    return lowered(source, "inline_orchestrations")


def submits(stage: ir.Program) -> list[ir.Submit]:
    return [node for node in walk(stage.get_function("main").body) if isinstance(node, ir.Submit)]


def barriers(stage: ir.Program) -> list[ir.Call]:
    body = stage.get_function("main").body
    return [n for n in walk(body) if isinstance(n, ir.Call) and n.op.name == "system.task_dummy"]


def result(source: ir.Program, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """The input and the output of a run of the compiled program."""
    x = np.random.default_rng(1).random((8, 16), np.float32)
    o = np.zeros((8, 16), np.float32)
    ir.compile(source, output_dir=str(folder))(x, o)
    return x, o


SCOPE_IN_THE_MIDDLE = f"""
{CORE}
    a = pl.exp(x)
with pl.at(level=pl.Level.HOST, role=pl.Role.Orchestrator):
    {CORE}
        b = pl.add(a, x)
    with pl.at(level=pl.Level.CHIP):
        {CORE}
            c = pl.mul(b, x)
{CORE}
    o = pl.assemble(o, c, [0, 0])
return o
"""


def test_the_outermost_orchestration_is_the_only_one_left() -> None:
    stage = inlined(program(SCOPE_IN_THE_MIDDLE))
    orchestrations = [f for f in stage.functions.values() if f.func_type is ir.FunctionType.Orchestration]
    assert [f.name for f in orchestrations] == ["main"]
    assert not [f for f in stage.functions.values() if f.func_type is ir.FunctionType.Opaque]


def test_a_parent_without_kernels_of_its_own_becomes_the_orchestration() -> None:
    source = program(f"with pl.at(level=pl.Level.GLOBAL):\n    {CORE}\n        o = pl.add(x, x)\nreturn o")
    stage = inlined(source)
    assert stage.get_function("main").func_type is ir.FunctionType.Orchestration
    assert [p.name_hint.partition("__")[0] for p in stage.get_function("main").params] == ["x", "o"]


def test_scopes_of_several_levels_compile_to_one_program_with_right_numbers(tmp_path: Path) -> None:
    x, o = result(program(SCOPE_IN_THE_MIDDLE), tmp_path)
    np.testing.assert_allclose(o, (np.exp(x) + x) * x, rtol=1e-5)


def test_a_helper_without_a_type_that_is_called_twice_runs_twice(tmp_path: Path) -> None:
    helper = f"{CORE}\n    y = pl.add(x, x)\nreturn y"
    main = f"a = self.helper(x)\nb = self.helper(a)\n{CORE}\n    o = pl.assemble(o, b, [0, 0])\nreturn o"
    x, o = result(program(main, helper), tmp_path)
    np.testing.assert_array_equal(o, 4 * x)


def test_a_loop_in_a_hierarchy_scope_leaves_what_it_computes(tmp_path: Path) -> None:
    main = f"""
with pl.at(level=pl.Level.HOST):
    for i in pl.range(3):
        {CORE}
            x = pl.add(x, x)
{CORE}
    o = pl.assemble(o, x, [0, 0])
return o
"""
    x, o = result(program(main), tmp_path)
    np.testing.assert_array_equal(o, 8 * x)


TASK_IDS = f"""
with pl.at(level=pl.Level.HOST) as first:
    for i in pl.range(3):
        {CORE}
            x = pl.add(x, x)
    v = pl.tensor.read(x, [0, 0])
    if v > 0.0:
        {CORE}
            y = pl.add(x, x)
    else:
        {CORE}
            y = pl.mul(x, x)
    for b in pl.spmd(2, sync_start=True):
        t = pl.load(y, [b * 4, 0], [4, 16])
        o = pl.store(t, [b * 4, 0], o)
with pl.at(level=pl.Level.HOST, deps=[first]):
    {CORE}
        z = pl.add(x, o)
    {CORE}
        o = pl.assemble(o, z, [0, 0])
return o
"""


def test_every_task_of_a_scope_waits_for_the_dependencies_of_the_scope() -> None:
    stage = inlined(program(TASK_IDS))
    waiting = [task for task in submits(stage) if task.deps]
    assert len(submits(stage)) == 6 and len(waiting) == 2
    (awaited,) = {dep for task in waiting for dep in task.deps}
    body = walk(stage.get_function("main").body)
    values = {node.var: node.value for node in body if isinstance(node, ir.AssignStmt)}
    assert values[values[awaited]] is barriers(stage)[1]  # a copy of the id after the one in the loop


def test_the_id_of_a_scope_covers_its_loops_branches_and_blocks() -> None:
    first = barriers(inlined(program(TASK_IDS)))[1]
    kinds = [var.name_hint.partition("__")[0] for var in first.attrs["manual_dep_edges"]]
    assert kinds == ["tasks", "tasks", "task"]


def test_a_launch_spec_survives_when_a_call_gets_a_task_id() -> None:
    (launch,) = [task for task in submits(inlined(program(TASK_IDS))) if task.core_num is not None]
    assert launch.sync_start and "core_num" not in launch.attrs


def test_scopes_that_wait_for_scopes_compute_the_right_numbers(tmp_path: Path) -> None:
    x, o = result(program(TASK_IDS), tmp_path)
    np.testing.assert_array_equal(o, 24 * x)


def test_an_argument_that_a_scope_does_not_track_is_not_tracked_by_its_tasks() -> None:
    main = f"""
with pl.at(level=pl.Level.HOST, no_dep_args=[x]):
    {CORE}
        y = pl.add(x, x)
    {CORE}
        o = pl.assemble(o, y, [0, 0])
return o
"""
    stage = inlined(program(main))
    calls = [n for n in walk(stage.get_function("main").body) if isinstance(n, ir.Call)]
    overrides = [n.attrs.get("arg_direction_overrides") for n in calls if isinstance(n.op, ir.GlobalVar)]
    assert overrides == [[0], None]


def test_each_stage_with_inlined_scopes_prints_and_parses_back() -> None:
    stage = lowered(program(TASK_IDS), "convert_tensor_to_tile_ops")
    for name in LOWERING[1:]:
        stage = through(stage, name)
        ir.assert_structural_equal(stage, parse_program(str(stage)))
    properties = passes.IRPropertySet()
    properties.insert(passes.IRProperty.SSAForm)
    passes.verify_properties(properties, stage, "test")


def test_a_program_with_one_orchestration_is_the_same_object() -> None:
    stage = lowered(program(f"{CORE}\n    o = pl.add(x, x)\nreturn o"), "convert_tensor_to_tile_ops")
    assert passes.inline_orchestrations()(stage) is stage


def test_orchestrations_that_call_each_other_are_rejected() -> None:
    text = f"""{HEADER}@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def a(self, x: {TENSOR}) -> {TENSOR}:
        y = self.b(x)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def b(self, x: {TENSOR}) -> {TENSOR}:
        y = self.a(x)
        return y
"""
    with pytest.raises(ValueError, match=r"Cycle detected .* call graph: a -> b -> a"):
        passes.inline_orchestrations()(parse_program(text))


def test_the_id_of_a_scope_covers_tasks_of_a_manual_scope(tmp_path: Path) -> None:
    main = """
with pl.at(level=pl.Level.HOST) as whole:
    with pl.manual_scope():
        with pl.at(level=pl.Level.CORE_GROUP) as one:
            y = pl.add(x, x)
        with pl.at(level=pl.Level.CORE_GROUP, deps=[one]):
            o = pl.assemble(o, y, [0, 0])
with pl.at(level=pl.Level.CORE_GROUP, deps=[whole]):
    o = pl.assemble(o, pl.add(o, x), [0, 0])
return o
"""
    source = program(main)
    consumer = submits(inlined(source))[-1]
    assert [dep.name_hint.partition("__")[0] for dep in consumer.deps] == ["whole"]
    x, o = result(source, tmp_path)
    np.testing.assert_allclose(o, 3 * x, rtol=1e-6)


FIRST = f"""
{CORE}
    t = pl.load(x, [0, 0], [8, 16])
    pl.store(t, [0, 0], o)
"""
AGAIN = f"""
    {CORE}
        t = pl.load(o, [0, 0], [8, 16])
        pl.store(pl.add(t, 1.0), [0, 0], o)
"""


@pytest.mark.parametrize(
    ("repeated", "times"),
    [
        (f"for i in pl.range(3):{AGAIN}", 3),
        (f"n: pl.Scalar[pl.INDEX] = 0\nwhile n < 2:{AGAIN}    n = n + 1\n", 2),
        (f"for i in pl.range(3):\n    if i < 2:{AGAIN.replace(chr(10), chr(10) + '    ')}", 2),
    ],
    ids=["for", "while", "branch in a loop"],
)
def test_a_name_that_kernels_use_for_tiles_is_not_carried_around_them(repeated: str, times: int):
    source = program(f"{FIRST}{repeated}\nreturn o")
    stage = inlined(source)
    main = stage.get_function("main")
    handed_on = [v for s in walk_stmts(main.body) for v in getattr(s, "return_vars_", ())]
    assert not any(isinstance(var.type, ir.TileType) for var in handed_on)
    assert passes.inline_orchestrations()(stage) is stage
    x = np.random.default_rng(1).random((8, 16), np.float32)
    o = np.zeros((8, 16), np.float32)
    run(lowered(source, "classify_iter_arg_carry"), "main", x, o)
    np.testing.assert_allclose(o, x + times, rtol=1e-6)
