"""Printed programs read back to structurally equal programs, before and after the front passes."""

# ruff: noqa: E501 - lines and returns of DSL programs are what is tested

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto import ir, passes
from pypto.language.parser.diagnostics import ParserSyntaxError
from tests.language.source import function, program

KERNELS = """
@pl.function(type=pl.FunctionType.InCore)
def k(self, x: pl.Tensor[[64], pl.FP32], out: pl.Out[pl.Tensor[[64], pl.FP32]]) -> pl.Tensor[[64], pl.FP32]:
    t = pl.load(x, [0], [64])
    out = pl.store(t, [0], out)
    return out
"""
XO = "x: pl.Tensor[[64], pl.FP32], out: pl.Out[pl.Tensor[[64], pl.FP32]]"
X2 = "x: pl.Tensor[[64, 32], pl.FP32], s: pl.Scalar[pl.INT32], i: pl.Scalar[pl.INDEX], f: pl.Scalar[pl.FP32]"
CORE = "level=pl.Level.CORE_GROUP"

BODIES = {
    "scalars": """
        a = (i + 1) * 2 - (i - (i - 3))
        b = -i // 2 % 3
        c = pl.cast(s, pl.INT64) + pl.const(3, pl.INT64)
        d = f * 2.5 - 1e-6
        e = not (i < 3) and (i > 1 or i == 2)
        g = pl.min(i, 3) + pl.max(i, 4)
        h = ~s << pl.const(1, pl.INT32)
        k: pl.Scalar[pl.INT64] = 0
        m = pl.const(-5, pl.INT8)
        n = -5
        o = -0.0
        p = True
        q = s / s
        return a
    """,
    "tensors": """
        a = pl.add(x, 1.0)
        b = pl.mul(a, a)
        c = x[0:16]
        d = x[i:i + 8, 3]
        e = x[i, 0]
        g = pl.cast(a, target_type=pl.BF16, mode="floor")
        h = pl.full([8, 16], dtype=pl.FP32, value=1.0)
        j = pl.row_expand_sub(x, pl.row_max(x))
        k = pl.create_tensor([64, 32], dtype=pl.FP32)
        k[0:16, :] = c
        k[3] = x[4]
        return k
    """,
    "tuples": """
        a, b = (x, i)
        c = (a, (b, 3))
        d = c[1][0]
        return d
    """,
    "loops": """
        acc = x
        for j in pl.range(4):
            acc = pl.add(acc, x)
        for j2 in pl.range(1, 4):
            acc = pl.add(acc, x)
        for j3 in pl.parallel(0, 8, 2, attrs={"k": 1, "z": "t", "q": 0.5, "b": True}):
            acc = pl.add(acc, x)
        for j4 in pl.unroll(4):
            acc = pl.add(acc, x)
        for j5 in pl.pipeline(pl.const(0, pl.INT64), pl.const(4, pl.INT64), pl.const(1, pl.INT64), stage=2):
            acc = pl.add(acc, x)
        for j6, (c, d) in pl.range(4, init_values=(x, i)):
            e = pl.add(c, x)
            r1, r2 = pl.yield_(e, d + 1)
        for (w,) in pl.while_(init_values=(r2,)):
            pl.cond(w < 10)
            r3 = pl.yield_(w + 1)
        while i < 10:
            i = i + 1
            if i == 7:
                break
            else:
                continue
        return r1, r3
    """,
    "branches": """
        if i > 3:
            y = pl.add(x, x)
        elif i > 2:
            y = pl.mul(x, x)
        else:
            pass
        if i > 4:
            a, b = pl.yield_(x, i)
        else:
            a, b = pl.yield_(pl.exp(x), i + 1)
        if i > 5:
            c = pl.yield_(i)
        else:
            c = pl.yield_(i + 1)
        return a, b, c
    """,
    "comments": """
        '''Doc.'''
        # one
        a = pl.exp(x)  # two
        # three
        for j in pl.range(4):  # four
            # five
            b = pl.exp(x)
        return a
    """,
    "effects": """
        pl.exp(x)
        pl.write(x, [0, 0], f)
        return
    """,
}


def assert_round_trips(found: ir.Function | ir.Program) -> None:
    text = found.as_python(format=False)
    again = pl.parse(text)
    ir.assert_structural_equal(found, again)
    assert again.as_python(format=False) == text


@pytest.mark.parametrize("name", BODIES)
def test_function_round_trips(name):
    assert_round_trips(function(X2, BODIES[name]))


MAINS = {
    "scopes": f"""
        with pl.at({CORE}, name_hint="a", optimizations=[pl.split(pl.SplitMode.UP_DOWN), pl.cross_core_slot(slot_num=4)]):
            y = pl.exp(x)
        with pl.at({CORE}, deps=[t0], no_dep_args=[x], dumps=[y], allow_early_resolve=True, windowize=True) as t1:
            z = pl.add(y, x)
        with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator):
            with pl.cluster(name_hint="c"):
                with pl.spmd(n // 2, sync_start=True, name_hint="q"):
                    out = self.k(x, out)
        with pl.spmd(4, deps=[t1]) as t2:
            out = self.k(x, out)
        with pl.spmd(4) as t3:
            i = pl.tile.get_block_idx()
            w = pl.load(x, [i], [16])
        for b in pl.spmd(8, name_hint="row", optimizations=[pl.split(pl.SplitMode.LEFT_RIGHT)]):
            v = pl.load(x, [b], [16])
        with pl.spmd(2):
            with pl.at({CORE}):
                u = pl.exp(x)
        with pl.manual_scope():
            out = self.k(x, out)
        return out
    """,
    "tasks": """
        out, a = pl.submit(self.k, x, out)
        out, b = pl.spmd_submit(self.k, x, out, core_num=n, sync_start=True, deps=[a], dumps=[x], allow_early_resolve=True,
                                predicate=(flags[0, 1] > 0))
        whole = pl.submit(self.k, x)
        c = pl.system.task_dummy(deps=[a, b])
        d = None
        arr = pl.array.create(4, pl.TASK_ID)
        arr[1] = a
        out, e = pl.submit(self.k, x, out, deps=[arr[i] for i in range(2)])
        out, g = pl.submit(self.k, x, out, deps=[arr])
        out = self.k(pl.no_dep(x), out, attrs={"core_num": 4, "arg_directions": [pl.adir.input, pl.adir.inout]})
        pl.dump_tag(x)
        out = self.k(x, out)
        return out
    """,
}
PARAMS = f"{XO}, t0: pl.Scalar[pl.TASK_ID], n: pl.Scalar[pl.INDEX], flags: pl.Tensor[[4, 4], pl.INT32]"


@pytest.mark.parametrize("name", MAINS)
def test_program_round_trips(name):
    assert_round_trips(program(MAINS[name], params=PARAMS, kernels=KERNELS))


@pytest.mark.parametrize(
    "header",
    [
        f"with pl.at({CORE}):",
        "with pl.at(level=pl.Level.CHIP) as tid:",
        "with pl.cluster():",
        "with pl.scope(mode=pl.ScopeMode.MANUAL):",
        "with pl.spmd(4):",
        "with pl.spmd(4) as tid:",
        "for b in pl.spmd(4):",
        "for v in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):",
    ],
)
def test_a_yield_that_ends_a_scope_names_the_results_of_the_loop_around_it(header):
    main = f"""
    for i, (acc,) in pl.range(4, init_values=(out,)):
        {header}
            acc2 = self.k(x, acc)
            r = pl.yield_(acc2)
    return r
    """
    assert_round_trips(program(main, params=XO, kernels=KERNELS))


def test_split_region_round_trips():
    body = """
    for v in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
        a = pl.aiv_shard(t)
        b = pl.exp(a)
        c = pl.aic_gather(b)
    return t
    """
    assert_round_trips(
        function("t: pl.Tile[[16, 16], pl.FP32]", body, decorator="type=pl.FunctionType.InCore")
    )


def test_text_of_a_split_region_brings_back_its_split_and_a_missing_lane_binding():
    body = """
    for aiv_id in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
        a = pl.aiv_shard(t)
        b = pl.aic_gather(a)
    return t
    """
    found = function("t: pl.Tile[[16, 16], pl.FP32]", body, decorator="type=pl.FunctionType.InCore")
    region = found.body.stmts[0]
    bare = region.replace(body=ir.SeqStmts(region.body.stmts[1:], region.span))
    stripped = found.replace(body=ir.SeqStmts([bare, *found.body.stmts[1:]], found.body.span))
    for version in (found, stripped):
        text = version.as_python(format=False)
        assert "split=" not in text and "get_subblock_idx" not in text
        again = pl.parse(text)
        ir.assert_structural_equal(again, found)
        lane, shard, gather = again.body.stmts[0].body.stmts
        assert lane.value.op.name == "tile.get_subblock_idx"
        assert shard.value.kwargs["split"] == gather.value.kwargs["split"] == ir.SplitMode.UP_DOWN.value


def test_types_round_trip():
    params = (
        "a: pl.Tensor[[M, 64], pl.BF16, pl.NZ], "
        "b: pl.Tensor[[M * 2, N], pl.FP32, pl.TensorView(valid_shape=[M, 3], stride=[N, 1], "
        "layout=pl.TensorLayout.ND, pad=pl.PadValue.zero)], "
        "c: pl.Tile[[16, 16], pl.FP32, pl.MemRef('m', 0, 1024), pl.Mem.Mat, pl.TileView(valid_shape=[8, 16])], "
        "d: pl.Tile[[16, 16], pl.FP32, pl.MemRef('ring', slots=2)[1], pl.Mem.Vec], "
        "e: pl.Array[4, pl.INT32], g: pl.Tuple[pl.Scalar[pl.INT32], pl.Tensor[[4], pl.FP32]], "
        "h: pl.Tensor[[], pl.FP32], j: pl.Tile[[32, 1], pl.FP8E4M3FN]"
    )
    source = (
        "M = pl.dynamic('M')\nN = pl.dynamic('N')\n@pl.program\nclass P:\n    @pl.function\n"
        f"    def f(self, {params}) -> tuple[pl.Tensor[[M, 64], pl.BF16, pl.NZ], pl.Scalar[pl.INT32]]:\n"
        "        pl.func_attr({'who': [a], 'split': pl.SplitMode.UP_DOWN, 'dt': pl.FP16, 'text': 'q\"uote'})\n"
        "        v = M + 1\n        return a, g[0]\n"
    )
    found = pl.parse_program(source)
    again = pl.parse_program(found.as_python(format=False))
    ir.assert_structural_equal(found, again)


PIPELINE = (
    "inline_functions", "unroll_loops", "ctrl_flow_transform", "convert_to_ssa", "simplify", "flatten_call_expr",
    "normalize_stmt_structure", "outline_hierarchy_scopes", "outline_incore_scopes", "outline_cluster_scopes",
    "deduplicate_outlined_kernels",
)  # fmt: skip


@pytest.mark.parametrize("name", MAINS)
def test_program_round_trips_after_every_front_pass(name):
    current = program(MAINS[name], params=PARAMS, kernels=KERNELS)
    for pass_name in PIPELINE:
        current = getattr(passes, pass_name)()(current)
        text = current.as_python(format=False)
        try:
            ir.assert_structural_equal(current, pl.parse(text))
        except Exception as error:
            raise AssertionError(f"after {pass_name}:\n{text}") from error


@pytest.mark.parametrize("name", BODIES)
def test_function_round_trips_after_every_front_pass(name):
    current = ir.Program([function(X2, BODIES[name])], "P", ir.Span.unknown())
    for pass_name in PIPELINE:
        current = getattr(passes, pass_name)()(current)
        text = current.as_python(format=False)
        try:
            ir.assert_structural_equal(current, pl.parse(text))
        except Exception as error:
            raise AssertionError(f"after {pass_name}:\n{text}") from error


GENERIC_ATTRS = (
    '{"i": -3, "b": True, "t": "q\\"uo\\\\te", "f": 0.5, "dt": pl.BF16, "m": pl.Mem.Mat, "tl": pl.TensorLayout.NZ, '
    '"il": pl.TileLayout.col_major, "p": pl.PadValue.zero, "d": [pl.adir.input, pl.adir.no_dep], "v": x, '
    '"vs": [x, out], "e": n + 1, "c": pl.const(4, pl.INT64), "i4": pl.const(4, pl.INDEX), "f4": pl.const(0.5, pl.FP32), "arg_direction_overrides": [0], "empty": []}'
)


@pytest.mark.parametrize(
    "statement",
    [
        f"y = pl.exp(x, attrs={GENERIC_ATTRS})",
        f"y = self.k(x, out, attrs={GENERIC_ATTRS})",
        f"y, t = pl.submit(self.k, x, out, attrs={GENERIC_ATTRS})",
    ],
)
def test_attributes_of_every_kind_round_trip(statement):
    found = program(f"{statement}\nreturn y", params=PARAMS, kernels=KERNELS)
    assert_round_trips(found)
    main = found.get_function("main")
    value = main.body.stmts[0].value
    attrs = value.attrs
    assert (attrs["i"], attrs["b"], attrs["t"], attrs["f"]) == (-3, True, 'q"uo\\te', 0.5)
    assert attrs["v"] is main.params[0]
    assert [v is w for v, w in zip(attrs["vs"], main.params, strict=False)] == [True, True]
    assert attrs["d"] == [ir.ArgDirection.Input, ir.ArgDirection.NoDep]
    assert isinstance(attrs["e"], ir.Add) and attrs["c"].dtype == ir.DataType.INT64
    assert isinstance(attrs["i4"], ir.ConstInt) and isinstance(attrs["f4"], ir.ConstFloat)


def test_function_attributes_of_every_kind_round_trip():
    attrs = GENERIC_ATTRS
    found = program(f"pl.func_attr({attrs})\nreturn x", params=PARAMS, kernels=KERNELS)
    assert_round_trips(found)


def test_devices_of_calls_and_submits_round_trip():
    found = pl.parse_program(
        f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(self, {XO}) -> pl.Tensor[[64], pl.FP32]:
        return out

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, {XO}):
        for d in pl.range(2):
            a = self.chip(x, out, device=d)
            b = self.chip(x, out, device=1)
            c, t = pl.submit(self.chip, x, out, device=1)
            e, u = pl.submit(self.chip, x, out, device=d)
        return out
"""
    )
    assert_round_trips(found)
    assert "self.chip(x, out, device=1)" in found.as_python(format=False)


def test_host_workers_and_external_kernels_round_trip(tmp_path):
    kernel = tmp_path / 'a "quoted" name.cpp'
    kernel.write_text("// kernel")
    found = pl.parse_program(
        f"""
@pl.program
class P:
    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def work(x: pl.Tensor[[64], pl.FP32]):
        for i in range(3):
            if i:
                print(x, i)
        return

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def abstract(x: pl.Tensor[[64], pl.FP32]): ...

    @pl.function(type=pl.FunctionType.AIV, external_source={str(kernel)!r})
    def outside(self, x: pl.Tensor[[64], pl.FP32], out: pl.Out[pl.Tensor[[64], pl.FP32]]) -> pl.Tensor[[64], pl.FP32]:
        ...

    @pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)
    def main(self, x: pl.Tensor[[64], pl.FP32], out: pl.Out[pl.Tensor[[64], pl.FP32]]) -> pl.Tensor[[64], pl.FP32]:
        with pl.scope():
            out = self.outside(x, out)
        return out
"""
    )
    assert_round_trips(found)


def test_a_call_of_a_later_method_that_assigns_a_variable_again_has_the_type_of_the_variable():
    found = pl.parse_program(
        f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def a(self, {XO}) -> pl.Tensor[[64], pl.FP32]:
        out = self.b(x, out)
        out = self.b(x, out)
        return out

    @pl.function(type=pl.FunctionType.InCore)
    def b(self, {XO}) -> pl.Tensor[[64], pl.FP32]:
        return out
"""
    )
    assert_round_trips(found)
    assert [stmt.value.type for stmt in found["a"].body.stmts[:2]] == [found["a"].params[1].type] * 2


def test_forward_submit_takes_the_declared_results():
    found = pl.parse_program(
        f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def a(self, {XO}) -> pl.Tensor[[64], pl.FP32]:
        out, tid = pl.submit(self.z, x, out)
        return out

    @pl.function(type=pl.FunctionType.InCore)
    def z(self, {XO}) -> pl.Tensor[[64], pl.FP32]:
        return out
"""
    )
    assert_round_trips(found)


SLICES = {
    "extent": "pl.slice(x, [m, 32], [0, 0])",
    "computed extent": "pl.slice(x, [m + 1, 32], [0, 0])",
    "valid extent": "pl.slice(x, [16, 32], [0, 0], valid_shape=[m, 32])",
}
ROWS = {
    "computed": "m = n + 1",
    "parameter": "m = n",
    "loop variable": "for m in pl.range(1, n):",
    "branch": "if n > 8: m = n\n        else: m = n + 1",
}


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("part", SLICES)
def test_kernel_types_that_name_a_scalar_of_the_caller_read_back(rows: str, part: str):
    inside = "    " if rows == "loop variable" else ""
    found: ir.Program = pl.parse_program(
        f"""
@pl.program
class P:
    @pl.function
    def main(
        self, x: pl.Tensor[[64, 32], pl.FP32], n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[64, 32], pl.FP32]]
    ) -> pl.Tensor[[64, 32], pl.FP32]:
        {ROWS[rows]}
        {inside}y = {SLICES[part]}
        {inside}with pl.at({CORE}):
        {inside}    out = pl.assemble(out, pl.add(y, 1.0), [0, 0])
        return out
"""
    )
    for each in (passes.convert_to_ssa, passes.outline_incore_scopes, passes.convert_tensor_to_tile_ops):
        found = each()(found)
        assert_round_trips(found)


def test_scalar_in_the_valid_shape_of_an_earlier_parameter_is_that_parameter():
    found = pl.parse(
        """
m = pl.dynamic("m")

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self, x: pl.Tensor[[64], pl.FP32, pl.TensorView(valid_shape=[m], layout=pl.TensorLayout.ND)], m: pl.Scalar[pl.INDEX]
    ):
        n = m + 1
"""
    )
    x, m = next(iter(found.functions.values())).params
    assert x.type.tensor_view.valid_shape[0] is m


def test_name_that_no_method_binds_is_no_extent():
    with pytest.raises(ParserSyntaxError, match="'m' is not defined"):
        pl.parse(
            f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, {XO.replace("64", "m", 1)}) -> pl.Tensor[[64], pl.FP32]:
        m = 3
        return out
"""
        )


def test_scalars_of_one_name_in_two_callers_stay_apart():
    entry = """
    @pl.function
    def {name}(
        self, x: pl.Tensor[[64, 32], pl.FP32], n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[64, 32], pl.FP32]]
    ) -> pl.Tensor[[64, 32], pl.FP32]:
        m = n + {more}
        y = pl.slice(x, [m, 32], [0, 0])
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.assemble(out, pl.add(y, 1.0), [0, 0])
        return out
"""
    text = "@pl.program\nclass P:" + entry.format(name="a", more=1) + entry.format(name="b", more=2)
    found: ir.Program = pl.parse_program(text)
    for each in (passes.convert_to_ssa, passes.outline_incore_scopes, passes.convert_tensor_to_tile_ops):
        found = each()(found)
        assert_round_trips(found)


def test_name_that_only_a_stranger_binds_is_no_extent():
    with pytest.raises(ParserSyntaxError, match="'rows' is not defined"):
        pl.parse(
            f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, {XO.replace("64", "rows", 1)}) -> pl.Tensor[[64], pl.FP32]:
        return out

    @pl.function
    def stranger(self, {XO}) -> pl.Tensor[[64], pl.FP32]:
        for rows in pl.range(4):
            out = pl.add(out, x)
        return out
"""
        )
