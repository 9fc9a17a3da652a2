"""Equal kernels become one definition; every execution stays."""

from __future__ import annotations

import re
import struct
from dataclasses import replace

import pytest

import pypto
from pypto import ir, passes
from pypto.passes.dedup.reference_index import index_references
from pypto.passes.dedup.rewrite import redirect
from pypto.passes.dedup.units import find_units
from tests.passes.dedup.programs import (
    assert_round_trips,
    dedup,
    dispatches,
    function,
    kernels,
    reason,
    records,
    ssa,
)

TWINS = """
    @incore
    def step(self, x: T(64), out: pl.Out[T(64)]) -> T(64):
        t = pl.load(x, [0], [64])
        u = pl.add(t, 1.0)
        out = pl.store(u, [0], out)
        return out
    @incore
    def step_copy(self, source: T(64), target: pl.Out[T(64)]) -> T(64):
        loaded = pl.load(source, [0], [64])
        shifted = pl.add(loaded, 1.0)
        target = pl.store(shifted, [0], target)
        return target
"""


def called_by(body: str, signature: str = "x: T(64), a: pl.Out[T(64)], b: pl.Out[T(64)]") -> ir.Program:
    lines = "\n".join(f"        {line}" for line in body.strip().splitlines())
    return ssa(f"{TWINS}\n    @orch\n    def main(self, {signature}):\n{lines}\n")


def test_two_equal_kernels_become_one_definition_with_two_executions():
    source = called_by("a = self.step(x, a)\nb = self.step_copy(a, b)")
    result = dedup(source)
    assert kernels(result) == ["step"]
    assert [call.op.name for call in dispatches(function(result, "main"))] == ["step", "step"]
    assert_round_trips(result)


def test_the_smallest_name_stays_and_is_the_same_object():
    source = called_by("b = self.step_copy(x, b)\na = self.step(x, a)")
    result = dedup(source)
    assert kernels(result) == ["step"]
    assert function(result, "step") is function(source, "step")


def test_a_program_without_twins_is_the_same_object():
    source = called_by("a = self.step(x, a)")
    assert passes.deduplicate_outlined_kernels()(source) is source
    assert reason(source, "step_copy") == "unreferenced"


def test_three_equal_kernels_become_one():
    third = TWINS.replace("step_copy", "third").split("    @incore")[2]
    source = ssa(
        f"""{TWINS}
    @incore{third}
    @orch
    def main(self, x: T(64), a: pl.Out[T(64)], b: pl.Out[T(64)], c: pl.Out[T(64)]):
        a = self.step(x, a)
        b = self.step_copy(x, b)
        c = self.third(x, c)
    """
    )
    assert kernels(dedup(source)) == ["step"]


def test_calls_are_counted_per_execution():
    body = "\n".join(["a = self.step(x, a)"] * 3 + ["b = self.step_copy(x, b)"] * 2)
    source = called_by(body)
    assert records(source)["step_copy"].sites == 2
    result = dedup(source)
    assert kernels(result) == ["step"]
    assert [call.op.name for call in dispatches(function(result, "main"))] == ["step"] * 5


@pytest.mark.parametrize(
    "body",
    [
        "for i in pl.range(4):\n    a = self.step(x, a)\nb = self.step_copy(x, b)",
        "if cond:\n    a = self.step(x, a)\nelse:\n    a = self.step_copy(x, a)",
        "with pl.manual_scope():\n    a = self.step(x, a)\n    b = self.step_copy(x, b)",
        "with pl.spmd(4):\n    a = self.step(x, a)\nwith pl.spmd(4):\n    b = self.step_copy(x, b)",
    ],
    ids=["loop", "branch", "manual scope", "spmd wrapper"],
)
def test_calls_are_redirected_wherever_they_stand(body: str):
    source = called_by(body, "x: T(64), a: pl.InOut[T(64)], b: pl.InOut[T(64)], cond: B")
    assert kernels(dedup(source)) == ["step"]


def test_a_submit_keeps_dependencies_early_resolve_predicate_dumps_and_launch():
    source = called_by(
        "a, t0 = pl.submit(self.step, x, a)\n"
        "b, t1 = pl.spmd_submit(self.step_copy, pl.no_dep(a), b, deps=[t0], core_num=4, sync_start=True, "
        "allow_early_resolve=True, predicate=(gate[1] > 0), dumps=[b])",
        "x: T(64), a: pl.Out[T(64)], b: pl.Out[T(64)], gate: pl.Tensor[[4], pl.INT32]",
    )
    old = dispatches(function(source, "main"))[1]
    new = dispatches(function(dedup(source), "main"))[1]
    assert (old.op.name, new.op.name) == ("step_copy", "step")
    for field in ("deps_", "core_num", "predicate", "args_", "attrs_", "kwargs_", "type", "span"):
        assert getattr(old, field) is getattr(new, field)
    assert len(new.deps_) == 1 and set(new.attrs_) == {"dump_vars", "arg_direction_overrides"}
    assert new.predicate is not None and new.core_num is not None
    assert new.sync_start and new.allow_early_resolve


def test_kernels_without_results_that_store_in_place_merge():
    source = ssa(
        """
    @incore
    def one(self, x: T(64), o: pl.Out[T(64)]):
        t = pl.load(x, [0], [64])
        pl.store(t, [0], o)
    @incore
    def two(self, x: T(64), o: pl.Out[T(64)]):
        t = pl.load(x, [0], [64])
        pl.store(t, [0], o)
    @orch
    def main(self, x: T(64), a: pl.InOut[T(64)]):
        self.one(x, a)
        self.two(x, a)
    """
    )
    assert kernels(dedup(source)) == ["one"]


def test_control_flow_inside_kernels_is_compared():
    def kernel(name: str, bound: int) -> str:
        return f"""
    @incore
    def {name}(self, x: T(64), o: pl.InOut[T(64)], cond: B) -> T(64):
        for i in pl.range({bound}):
            t = pl.load(x, [0], [32])
            if cond:
                o = pl.store(t, [i], o)
        n: pl.Scalar[pl.INDEX] = 0
        while n < 3:
            n = n + 1
        return o
    """

    main = """
    @orch
    def main(self, x: T(64), o: pl.InOut[T(64)], cond: B):
        o = self.a(x, o, cond)
        o = self.b(x, o, cond)
        o = self.c(x, o, cond)
    """
    source = ssa(kernel("a", 4) + kernel("b", 4) + kernel("c", 5) + main)
    assert kernels(dedup(source)) == ["a", "c"]


def test_outlined_layers_share_their_kernels():
    source = ssa(
        """
    @opaque
    def main(self, x: T(16, 16), w: T(16, 16)) -> T(16, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            a = pl.matmul(x, w)
        with pl.at(level=pl.Level.CORE_GROUP):
            b = pl.matmul(a, w)
        with pl.at(level=pl.Level.CORE_GROUP):
            c = pl.add(b, b)
        return c
    """
    )
    assert kernels(dedup(source)) == ["main_incore_0", "main_incore_2"]


def test_sharing_of_nodes_within_a_kernel_makes_no_difference():
    """One kernel uses a constant object twice, the other two equal ones."""
    span = ir.Span.unknown()
    tensor = ir.TensorType([64], ir.DataType.FP32)

    def kernel(name: str, shared: bool) -> ir.Function:
        x = ir.Var("x", tensor, span)
        scalars = [ir.ConstFloat(2.0, ir.DataType.FP32, span) for _ in range(2)]
        if shared:
            scalars[1] = scalars[0]
        y = ir.Var("y", tensor, span)
        call = ir.Call(ir.Op("tensor.muls"), [x, ir.Add(*scalars, ir.DataType.FP32, span)], tensor, span)
        body = ir.SeqStmts([ir.AssignStmt(y, call, span), ir.ReturnStmt([y], span)], span)
        return ir.Function(name, [x], [tensor], body, span, ir.FunctionType.InCore)

    x = ir.Var("x", tensor, span)
    a, b = ir.Var("a", tensor, span), ir.Var("b", tensor, span)
    body = ir.SeqStmts(
        [
            ir.AssignStmt(a, ir.Call(ir.GlobalVar("k1"), [x], tensor, span), span),
            ir.AssignStmt(b, ir.Call(ir.GlobalVar("k2"), [a], tensor, span), span),
        ],
        span,
    )
    main = ir.Function("main", [x], [], body, span, ir.FunctionType.Orchestration)
    source = ir.Program([kernel("k1", True), kernel("k2", False), main], "P", span)
    assert kernels(dedup(source)) == ["k1"]


def test_a_name_left_dangling_is_an_internal_error_that_names_it_and_the_referrer():
    source = called_by("a = self.step(x, a)\nb = self.step_copy(x, b)")
    index = index_references(source)
    units = {unit.name: unit for unit in find_units(source, index).candidates}
    forgetful = replace(index, sites={"step": index.sites["step"]})
    with pytest.raises(pypto.InternalError, match="function 'main' still names 'step_copy'"):
        redirect(source, forgetful, {"step_copy": units["step_copy"]}, {"step_copy": units["step"]})


def test_untouched_functions_and_statements_keep_their_identity():
    source = ssa(
        f"""{TWINS}
    @orch
    def main(self, x: T(64), a: pl.Out[T(64)], b: pl.Out[T(64)]):
        a = self.step(x, a)
        b = self.step_copy(x, b)
    @orch
    def other(self, x: T(64), a: pl.Out[T(64)]):
        a = self.step(x, a)
    """
    )
    result = dedup(source)
    assert function(result, "other") is function(source, "other")
    before, after = function(source, "main").body.stmts_, function(result, "main").body.stmts_
    assert before[0] is after[0]
    assert before[1] is not after[1]
    assert result.get_global_var("step") is source.get_global_var("step")


def test_the_pass_declares_its_properties():
    found = passes.deduplicate_outlined_kernels()
    names = ["SSAForm", "NormalizedStmtStructure", "SplitIncoreOrch", "ClusterOutlined"]
    assert found.get_name() == "DeduplicateOutlinedKernels"
    assert sorted(p.name for p in found.get_required_properties().to_list()) == sorted(names)
    assert sorted(p.name for p in found.get_produced_properties().to_list()) == sorted(names)
    assert found.get_invalidated_properties().empty()


# ---- what must not merge


def variant(name: str, **changes: str) -> str:
    parts = {
        "decorator": "incore",
        "dtype": "pl.FP32",
        "direction": "pl.Out",
        "attr": "",
        "body": "t = pl.load(x, [0], [64])\nu = pl.add(t, 1.0)\nout = pl.store(u, [0], out)",
    } | changes
    tensor = f"pl.Tensor[[64], {parts['dtype']}]"
    attr = f"        pl.func_attr({parts['attr']})\n" if parts["attr"] else ""
    body = "\n".join(f"        {line}" for line in parts["body"].splitlines())
    return (
        f"    @{parts['decorator']}\n"
        f"    def {name}(self, x: {tensor}, out: {parts['direction']}[{tensor}]) -> {tensor}:\n{attr}{body}\n"
        "        return out\n"
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"dtype": "pl.FP16"},
        {"direction": "pl.InOut"},
        {"attr": '{"windowize": True}'},
        {"attr": '{"split": pl.SplitMode.UP_DOWN}'},
        {"body": "t = pl.load(x, [0], [64])\nu = pl.add(t, 2.0)\nout = pl.store(u, [0], out)"},
        {"body": "t = pl.load(x, [0], [64])\nu = pl.sub(t, 1.0)\nout = pl.store(u, [0], out)"},
        {"body": "t = pl.load(x, [0], [32])\nu = pl.add(t, 1.0)\nout = pl.store(u, [0], out)"},
        {
            "body": "t = pl.load(x, [0], [64])\nu = pl.add(t, 1.0)\n"
            "out = pl.store(u, [0], out, atomic=pl.AtomicType.Add)"
        },
        {"body": "t = pl.load(x, [0], [64])\nu = pl.add(t, 1.0)\nv = pl.neg(t)\nout = pl.store(u, [0], out)"},
    ],
    ids=["dtype", "direction", "attr", "split", "constant", "op", "shape", "kwarg", "extra statement"],
)
def test_a_semantic_difference_keeps_both(changes: dict[str, str]):
    tensor = f"pl.Tensor[[64], {changes.get('dtype', 'pl.FP32')}]"
    source = ssa(
        variant("one")
        + variant("two", **changes)
        + f"""
    @orch
    def main(self, x: T(64), a: pl.InOut[T(64)], y: {tensor}, b: pl.InOut[{tensor}]):
        a = self.one(x, a)
        b = self.two(y, b)
    """
    )
    assert kernels(dedup(source)) == ["one", "two"]
    assert reason(source, "two") == "unique"


def test_the_order_of_operators_and_of_operands_is_significant():
    def of(expression: str) -> str:
        return f"t = pl.load(x, [0], [64])\nout = pl.store({expression}, [0], out)"

    source = ssa(
        variant("one", body=of("pl.exp(pl.neg(t))"))
        + variant("two", body=of("pl.neg(pl.exp(t))"))
        + variant("up", body=of("pl.sub(t, pl.exp(t))"))
        + variant("down", body=of("pl.sub(pl.exp(t), t)"))
        + """
    @orch
    def main(self, x: T(64), a: pl.Out[T(64)]):
        a = self.one(x, a)
        a = self.two(x, a)
        a = self.up(x, a)
        a = self.down(x, a)
    """
    )
    assert kernels(dedup(source)) == ["down", "one", "two", "up"]


@pytest.mark.parametrize("field", ["level", "role"])
def test_level_and_role_of_a_kernel_are_significant(field: str):
    source = called_by("a = self.step(x, a)\nb = self.step_copy(a, b)")
    other = ir.Level.HOST if field == "level" else ir.Role.Orchestrator
    moved = source.functions_["step_copy"].replace(**{field: other})
    functions = [moved if each.name == "step_copy" else each for each in source.functions_.values()]
    assert reason(source.replace(functions=functions), "step_copy") == "unique"


def test_names_of_functions_decide_nothing_but_which_one_stays():
    """New names in the same order give the same program under the new names."""
    body = "a = self.step(x, a)\nb = self.step_copy(a, b)"
    plain = dedup(called_by(body))
    names = {"step_copy": "zz_second", "step": "yy_first"}
    text = f"{TWINS}\n    @orch\n    def main(self, x: T(64), a: pl.Out[T(64)], b: pl.Out[T(64)]):\n"
    text += "".join(f"        {line}\n" for line in body.splitlines())
    for old, new in names.items():
        text = re.sub(rf"\b{old}\b", new, text)
    renamed = dedup(ssa(text))
    assert kernels(plain) == ["step"] and kernels(renamed) == ["yy_first"]
    for old, new in (("step", "yy_first"), ("main", "main")):
        found = renamed.functions_[new]
        assert [each.op.name for each in dispatches(found)] == [
            names[each.op.name] for each in dispatches(plain.functions_[old])
        ]
    ir.assert_structural_equal(plain.functions_["step"], renamed.functions_["yy_first"].replace(name="step"))


def _scaled_by(*values: float) -> ir.Program:
    """Kernels k0, k1, ... that multiply by these constants, each called once."""
    span = ir.Span.unknown()
    tensor = ir.TensorType([64], ir.DataType.FP32)
    functions, calls = [], []
    argument = ir.Var("x", tensor, span)
    for number, value in enumerate(values):
        x, y = ir.Var("x", tensor, span), ir.Var("y", tensor, span)
        constant = ir.ConstFloat(value, ir.DataType.FP32, span)
        call = ir.Call(ir.Op("tensor.muls"), [x, constant], tensor, span)
        body = ir.SeqStmts([ir.AssignStmt(y, call, span), ir.ReturnStmt([y], span)], span)
        functions.append(ir.Function(f"k{number}", [x], [tensor], body, span, ir.FunctionType.InCore))
        dispatch = ir.Call(ir.GlobalVar(f"k{number}"), [argument], tensor, span)
        calls.append(ir.AssignStmt(ir.Var("r", tensor, span), dispatch, span))
    main = ir.Function("main", [argument], [], ir.SeqStmts(calls, span), span, ir.FunctionType.Orchestration)
    return ir.Program([*functions, main], "P", span)


def test_the_sign_of_zero_is_significant():
    assert kernels(dedup(_scaled_by(0.0, -0.0, 0.0))) == ["k0", "k1"]


def test_equal_nan_payloads_are_equal_and_different_ones_are_not():
    def nan(payload: int) -> float:
        value: float = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000000 | payload))[0]
        return value

    assert kernels(dedup(_scaled_by(nan(1), nan(1), nan(2)))) == ["k0", "k2"]


def test_the_result_does_not_depend_on_the_names_of_variables():
    plain = called_by("a = self.step(x, a)\nb = self.step_copy(a, b)")
    assert kernels(dedup(plain)) == ["step"]
    renamed = TWINS.replace("loaded", "zz").replace("shifted", "aa")
    source = ssa(
        f"{renamed}\n    @orch\n    def main(self, x: T(64), a: pl.Out[T(64)], b: pl.Out[T(64)]):\n"
        "        a = self.step(x, a)\n        b = self.step_copy(a, b)\n"
    )
    ir.assert_structural_equal(dedup(plain), dedup(source))
