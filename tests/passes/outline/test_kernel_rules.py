"""What only OutlineIncoreScopes does: split regions, folding of extents, deferred waits, errors."""

from __future__ import annotations

import pytest

import pypto
from pypto import ir, passes
from pypto.ir.walk import vars_in
from tests.passes.dsl import assert_same, function, program, run, statements

UP_DOWN = ir.SplitMode.UP_DOWN.value


def incore(methods: str, header: str = "") -> ir.Program:
    return run(program(methods, header), passes.flatten_call_expr, passes.outline_incore_scopes)


# ---- split_aiv regions


def with_regions(*modes: str, options: str = "") -> ir.Program:
    lines = []
    for mode in modes:
        lines += [
            f"                for lane in pl.split_aiv(2, mode=pl.SplitMode.{mode}):",
            "                    z = pl.slice(x, [32, 64], [lane * 32, 0])",
        ]
    body = "\n".join(lines)
    return incore(
        f"""
        @orch
        def main(self, x: T(64, 64)) -> T(64, 64):
            with pl.at(level=pl.Level.CORE_GROUP{options}):
                y = pl.mul(x, x)
{body}
            return x
        """
    )


@pytest.mark.parametrize(
    ("modes", "attrs"),
    [
        (("UP_DOWN", "UP_DOWN"), {"split_aiv": True, "split": UP_DOWN}),
        (("NONE",), {"split_aiv": True}),
        (("UP_DOWN", "NONE"), {"split_aiv": True}),
        (("UP_DOWN", "LEFT_RIGHT"), {"split_aiv": True}),
    ],
)
def test_regions_mark_the_kernel_and_a_common_mode_is_its_split(
    modes: tuple[str, ...], attrs: dict[str, object]
):
    kernel = function(with_regions(*modes), "main_incore_0")
    assert kernel.attrs == attrs
    assert not any(param.name_hint.startswith("lane") for param in kernel.params_)


def test_a_split_of_the_scope_and_regions_exclude_each_other():
    source = run(
        program(
            """
            @orch
            def main(self, x: T(64, 64)) -> T(64, 64):
                with pl.at(level=pl.Level.CORE_GROUP):
                    for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
                        y = pl.add(x, x)
                return x
            """
        )
    )
    main = function(source, "main")
    scope, *rest = statements(main)
    body = ir.flatten_stmts([scope.replace(split=ir.SplitMode.LEFT_RIGHT), *rest], main.span)
    broken = ir.Program([main.replace(body=body)], "P", main.span)
    with pytest.raises(ValueError, match=r"mutually exclusive.*pl\.cross_core_slot"):
        passes.outline_incore_scopes()(broken)


def test_a_split_of_the_scope_becomes_an_attribute():
    actual = incore(
        """
        @orch
        def main(self, x: T(64, 64)) -> T(64, 64):
            with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):
                y = pl.add(x, x)
            return y
        """
    )
    assert function(actual, "main_incore_0").attrs == {"split": UP_DOWN}


def test_slot_number_goes_with_regions():
    kernel = function(
        with_regions("UP_DOWN", options=", optimizations=[pl.cross_core_slot(slot_num=4)]"), "main_incore_0"
    )
    assert kernel.attrs == {"slot_num": 4, "split_aiv": True, "split": UP_DOWN}


# ---- folding of declared extents


def test_reads_of_declared_extents_fold_when_an_opaque_function_is_promoted():
    source = """
        @{kind}
        def main(self, a: pl.Tensor[[M, 32], pl.FP32], o: pl.Out[pl.Tensor[[M, 32], pl.FP32]]):
            rows = pl.tensor.dim(a, -2)
            cols = pl.tensor.dim(a, 1)
            scratch = pl.create_tensor([rows, 32], dtype=pl.FP32)
            again = pl.tensor.dim(scratch, 0)
            for b in pl.spmd(again // 16):
                t = pl.load(a, [b * 16, 0], [16, 32])
                o = pl.store(t, [b * 16, 0], o)
        """
    steps = (passes.outline_incore_scopes, passes.outline_cluster_scopes)
    actual = run(program(source.format(kind="opaque"), header='M = pl.dynamic("M")'), *steps)
    main = function(actual, "main")
    symbol = main.params_[0].type.shape_[0]
    cols, scratch, dispatch = statements(main)
    assert cols.var.name_hint.startswith("cols")
    assert scratch.var.type.shape_[0] is symbol
    call = dispatch.value if isinstance(dispatch, ir.AssignStmt) else dispatch.expr
    assert call.attrs["core_num"].left is symbol
    twin = run(program(source.format(kind="orch"), header='M = pl.dynamic("M")'), *steps)
    ir.assert_structural_equal(actual, twin, enable_auto_mapping=True)


def test_reads_in_the_block_count_of_a_launch_fold_too():
    source = """
        @{kind}
        def main(self, a: pl.Tensor[[M, 32], pl.FP32], o: pl.Out[pl.Tensor[[M, 32], pl.FP32]]):
            for b in pl.spmd(pl.tensor.dim(a, 0) // 16):
                t = pl.load(a, [b * 16, 0], [16, 32])
                o = pl.store(t, [b * 16, 0], o)
        """
    steps = (passes.outline_incore_scopes, passes.outline_cluster_scopes)
    actual, twin = (
        run(program(source.format(kind=k), header='M = pl.dynamic("M")'), *steps) for k in ("opaque", "orch")
    )
    ir.assert_structural_equal(actual, twin, enable_auto_mapping=True)


def read_of(axis: str, tensor: str = "a", *, bound: bool = True) -> list[ir.Stmt]:
    """What is left, in a promoted function, of a read of an extent and of the scope after it."""
    read = f"pl.tensor.dim({tensor}, {axis})"
    actual = incore(
        f"""
        @opaque
        def main(self, a: T(M, 32), w: T(64, 32), i: I) -> T(64, 32):
            early = pl.create_tensor([i, 32], dtype=pl.FP32)
            {"m = " if bound else ""}{read}
            with pl.at(level=pl.Level.CORE_GROUP):
                w = pl.add(w, w)
            return w
        """,
        header='M = pl.dynamic("M")',
    )
    return [s for s in statements(function(actual, "main")) if "tensor.dim" in str(s)]


@pytest.mark.parametrize("axis", ["0", "-2"])
def test_a_read_of_a_declared_extent_goes_when_its_function_is_promoted(axis: str):
    assert read_of(axis) == []


@pytest.mark.parametrize(
    ("axis", "tensor", "bound"),
    [("1", "a", True), ("0", "early", True), ("0", "a", False)],
    ids=["constant extent", "symbol of no parameter", "not bound"],
)
def test_a_read_of_what_the_signature_does_not_declare_stays(axis: str, tensor: str, bound: bool):
    assert len(read_of(axis, tensor, bound=bound)) == 1


@pytest.mark.parametrize("axis", ["out of range", "known at run time"])
def test_a_read_along_an_axis_that_names_no_extent_stays(axis: str):
    source = run(
        program(
            """
            @opaque
            def main(self, a: T(M, 32), w: T(64, 32), i: I) -> T(64, 32):
                m = pl.tensor.dim(a, 0)
                with pl.at(level=pl.Level.CORE_GROUP):
                    w = pl.add(w, w)
                return w
            """,
            header='M = pl.dynamic("M")',
        )
    )
    main = function(source, "main")
    read, *rest = statements(main)
    far = ir.ConstInt(2, ir.DataType.INDEX, main.span) if axis == "out of range" else main.params_[2]
    read = read.replace(value=read.value.replace(args=[read.value.args_[0], far]))
    body = ir.flatten_stmts([read, *rest], main.span)
    result = passes.outline_incore_scopes()(ir.Program([main.replace(body=body)], "P", main.span))
    assert statements(function(result, "main"))[0] is read


def test_a_folded_read_is_replaced_in_types_attributes_and_block_counts():
    actual = run(
        program(
            """
            @opaque
            def main(self, a: T(M, 32), o: pl.Out[T(M, 32)], gate: pl.Tensor[[M], pl.INT32]) -> T(M, 32):
                m = pl.tensor.dim(a, 0)
                s = pl.create_tensor([m, 32], dtype=pl.FP32)
                for b in pl.spmd(m // 16, predicate=(gate[m] > 0)):
                    t = pl.load(s, [b * 16, 0], [16, 32])
                    o = pl.store(t, [b * 16, 0], o)
                return o
            """,
            header='M = pl.dynamic("M")',
        ),
        passes.outline_incore_scopes,
        passes.outline_cluster_scopes,
    )
    main = function(actual, "main")
    symbol = main.params_[0].type.shape_[0]
    created, dispatch = statements(main)[:2]
    submit = dispatch.value
    assert created.var.type.shape_[0] is symbol
    assert submit.core_num.left is symbol
    assert symbol in {*vars_in(submit.predicate)}
    assert function(actual, "main_incore_0").params_[0].type.shape_[0] is symbol


def test_an_opaque_function_without_scope_keeps_its_reads():
    source = run(
        program(
            """
            @opaque
            def main(self, a: pl.Tensor[[M, 32], pl.FP32]) -> I:
                rows = pl.tensor.dim(a, 0)
                return rows
            """,
            header='M = pl.dynamic("M")',
        )
    )
    assert passes.outline_incore_scopes()(source) is source


# ---- rejected programs


def test_rebinding_a_captured_variable_needs_ssa_form():
    source = program(
        """
        @orch
        def main(self, x: T(64)) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP):
                x = pl.add(x, x)
            return x
        """
    )
    with pytest.raises(pypto.InternalError, match=r"'main_incore_0' assigns 'x'.*SSA form.*ConvertToSSA"):
        passes.outline_incore_scopes()(source)


# ---- deferred waits

SIGNALS = """
        @orch
        def main(self, x: T(64), signal: pld.DistributedTensor[[64], pl.INT32], k: I) -> T(64):
"""


def waiter(body: str, *, scope: str = "pl.at(level=pl.Level.CORE_GROUP)", nested: str = "") -> ir.Program:
    indent = " " * (20 if nested else 16)
    lines = "\n".join(f"{indent}{line}" for line in body.strip().splitlines())
    head = (
        f"            with {nested}:\n                with {scope}:"
        if nested
        else f"            with {scope}:"
    )
    return incore(
        f"{SIGNALS}{head}\n{lines}\n            return x\n",
        header="import pypto.language.distributed as pld",
    )


WAIT = "pld.system.defer_wait(signal, [0], 1, cmp=pld.WaitCmp.Ge)"


def test_a_scope_that_registers_waits_is_marked_and_returns_nothing():
    kernel = function(waiter(f"n = k + 1\n{WAIT}\nfor i in pl.range(4):\n    {WAIT}"), "main_incore_0")
    assert kernel.attrs["deferred_completion_waiter"] is True
    assert kernel.return_types_ == ()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f"for i in pl.range(65):\n    {WAIT}", "supports at most 64 conditions"),
        (
            f"for i in pl.range(9):\n    for j in pl.range(8):\n        {WAIT}",
            "supports at most 64 conditions",
        ),
        (
            f"for i in pl.range(40):\n    {WAIT}\nfor i in pl.range(40):\n    {WAIT}",
            "supports at most 64 conditions",
        ),
        (f"for i in pl.range(k):\n    {WAIT}", "statically known positive trip count"),
        (f"for i in pl.range(0):\n    {WAIT}", "statically known positive trip count"),
        (f"for i in pl.range(4, 8, -1):\n    {WAIT}", "statically known positive trip count"),
        (f"for i in pl.parallel(4):\n    {WAIT}", "supports only a pre-registration tensor.read"),
        (
            f"n: pl.Scalar[pl.INDEX] = 0\nwhile n < 3:\n    {WAIT}\n    n = n + 1",
            "supports only a pre-registration tensor.read",
        ),
        (
            f"if k > 1:\n    {WAIT}\na = pl.tensor.read(signal, [0])",
            "cannot execute tensor reads after .* registration",
        ),
        (f"b = pl.tile.get_block_idx()\n{WAIT}", "no other call"),
        (f"y = pl.add(x, x)\n{WAIT}", "cannot create or update payload tensors"),
        (f"{WAIT}\na = pl.tensor.read(x, [0])", "cannot execute tensor reads after .* registration"),
        (
            f"for i in pl.range(2):\n    a = pl.tensor.read(x, [0])\n    {WAIT}",
            "loop may execute tensor reads .* after registering",
        ),
        (
            f"n = pl.tensor.dim(x, 0)\npl.tensor.write(x, [0], 1.0)\n{WAIT}",
            "supports only a pre-registration",
        ),
    ],
)
def test_a_waiter_may_only_keep_scalar_books(body: str, message: str):
    with pytest.raises(ValueError, match=message):
        waiter(body)


@pytest.mark.parametrize(
    "body",
    [
        f"for i in pl.range(64):\n    {WAIT}",
        f"if k > 1:\n    for i in pl.range(40):\n        {WAIT}\nelse:\n"
        f"    for i in pl.range(40):\n        {WAIT}",
        f"for i in pl.range(4, 0, -1):\n    {WAIT}",
        f"for i in pl.unroll(4):\n    {WAIT}",
        f"for i in pl.range(k):\n    a = pl.tensor.read(signal, [i])\n{WAIT}",
        f"for i in pl.range(1):\n    a = pl.tensor.read(signal, [0])\n    {WAIT}",
        f"c = pl.cast(pl.min(k, 3), pl.INT32)\n{WAIT}",
    ],
    ids=["64", "branches", "backwards", "unrolled", "reads before", "read in a single trip", "arithmetic"],
)
def test_a_waiter_may_register_in_loops_and_branches_up_to_the_limit(body: str):
    assert function(waiter(body), "main_incore_0").attrs == {"deferred_completion_waiter": True}


def test_reads_before_the_first_registration_are_allowed():
    kernel = function(waiter(f"a = pl.tensor.read(signal, [0])\nif a > 1:\n    {WAIT}"), "main_incore_0")
    assert kernel.attrs["deferred_completion_waiter"] is True


def test_a_waiter_cannot_resolve_early():
    with pytest.raises(ValueError, match="defer_wait cannot use allow_early_resolve=True"):
        waiter(WAIT, scope="pl.at(level=pl.Level.CORE_GROUP, allow_early_resolve=True)")


def test_a_waiter_must_be_at_task_level():
    with pytest.raises(ValueError, match=r"defer_wait must be in a task-level .* nesting .* unsupported"):
        waiter(WAIT, nested="pl.cluster()")
    assert "main_incore_0" in waiter(WAIT, nested="pl.manual_scope()").functions_


def test_a_hierarchy_scope_cannot_register_waits():
    source = program(
        f"""
        @opaque
        def main(self, x: T(64), signal: pld.DistributedTensor[[64], pl.INT32]) -> T(64):
            with pl.at(level=pl.Level.HOST):
                {WAIT}
            return x
        """,
        header="import pypto.language.distributed as pld",
    )
    with pytest.raises(ValueError, match="must be in the body of a CORE_GROUP / InCore task"):
        run(source, passes.outline_hierarchy_scopes)


# ---- the rest of the pipeline agrees


def test_properties_hold_after_the_outliners():
    source = program(
        """
        @opaque
        def main(self, x: T(64), o: pl.InOut[T(64)], cond: B) -> T(64):
            for i in pl.range(4):
                with pl.at(level=pl.Level.CORE_GROUP):
                    t = pl.load(x, [0], [64])
                    pl.store(t, [0], o)
                if cond:
                    with pl.at(level=pl.Level.CORE_GROUP):
                        u = pl.load(o, [0], [64])
                        pl.store(u, [0], o)
            with pl.at(level=pl.Level.CORE_GROUP):
                v = pl.load(o, [0], [64])
                o = pl.store(v, [0], o)
            return o
        """
    )
    result = run(source, passes.outline_incore_scopes, passes.outline_cluster_scopes)
    properties = passes.IRPropertySet()
    for name in ("SSAForm", "UseAfterDef", "SplitIncoreOrch", "ClusterOutlined"):
        properties.insert(passes.IRProperty[name])
    passes.verify_properties(properties, result, "outlining")


def test_both_spellings_of_a_program_outline_to_equal_programs():
    body = """
        def main(self, x: T(64)) -> T(64):
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.add(x, x)
            return y
        """
    assert_same(
        run(program(f"        @opaque{body}"), passes.outline_incore_scopes),
        run(program(f"        @orch{body}"), passes.outline_incore_scopes),
    )


@pytest.mark.parametrize(
    "step",
    [passes.outline_hierarchy_scopes, passes.outline_incore_scopes, passes.outline_cluster_scopes],
)
def test_running_an_outliner_twice_changes_nothing_the_second_time(step: object):
    once = run(program(NESTED_KINDS), step)  # type: ignore[arg-type]
    assert ir.structural_equal(step()(once), once)  # type: ignore[operator]


NESTED_KINDS = """
    @opaque
    def main(self, x: T(64), o: pl.InOut[T(64)]) -> T(64):
        with pl.at(level=pl.Level.HOST, role=pl.Role.Orchestrator):
            with pl.cluster():
                for b in pl.spmd(4):
                    t = pl.load(x, [b * 16], [16])
                    o = pl.store(t, [b * 16], o)
            for b in pl.spmd(4):
                t = pl.load(o, [b * 16], [16])
                o = pl.store(t, [b * 16], o)
        return o
"""
