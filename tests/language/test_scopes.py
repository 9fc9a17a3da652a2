"""Scopes, launches and task ids."""

# ruff: noqa: E501 - lines and returns of DSL programs are what is tested

from __future__ import annotations

import warnings

import pytest

import pypto.language as pl
from pypto import ir
from pypto.language.parser import (
    ParserSyntaxError,
    ParserTypeError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)
from tests.language.source import main_of, program, statements, stmts_of

X = "x: pl.Tensor[[64], pl.FP32]"
XO = f"{X}, out: pl.Out[pl.Tensor[[64], pl.FP32]]"
TASK = "t0: pl.Scalar[pl.TASK_ID], t1: pl.Scalar[pl.TASK_ID]"
KERNELS = """
@pl.function(type=pl.FunctionType.InCore)
def k(self, x: pl.Tensor[[64], pl.FP32], out: pl.Out[pl.Tensor[[64], pl.FP32]]) -> pl.Tensor[[64], pl.FP32]:
    t = pl.load(x, [0], [64])
    out = pl.store(t, [0], out)
    return out

@pl.function(type=pl.FunctionType.InCore)
def two(self, x: pl.Tensor[[64], pl.FP32]) -> tuple[pl.Tensor[[64], pl.FP32], pl.Tensor[[64], pl.FP32]]:
    return x, x

@pl.function(type=pl.FunctionType.InCore)
def flags(self, x: pl.Tensor[[64], pl.FP32], f: pl.Out[pl.Tensor[[4, 4], pl.INT32]]) -> pl.Tensor[[4, 4], pl.INT32]:
    return f

@pl.function(type=pl.FunctionType.InCore)
def nothing(self, x: pl.Tensor[[64], pl.FP32]):
    t = pl.load(x, [0], [64])
"""
CORE = "level=pl.Level.CORE_GROUP"


def calls(body, params=XO):
    return main_of(body, params=params, kernels=KERNELS)


def rejects(body, error, message, params=f"{XO}, {TASK}"):
    with pytest.raises(error, match=message) as caught:
        main_of(body, params=params, kernels=KERNELS)
    assert caught.value.hint or caught.value.note


# -- pl.at ---------------------------------------------------------------------------------------------------


def test_core_group_is_an_incore_scope_without_split():
    scope = statements(X, f"with pl.at({CORE}):\n    y = pl.add(x, x)\nreturn y")[0]
    assert isinstance(scope, ir.InCoreScopeStmt)
    assert (scope.split, scope.name_hint, scope.attrs) == (ir.SplitMode.NONE, "", {})


def test_other_levels_are_hierarchy_scopes():
    scope = statements(
        X, "with pl.at(pl.Level.HOST, pl.Role.Orchestrator, name_hint='h'):\n    y = x\nreturn y"
    )[0]
    assert isinstance(scope, ir.HierarchyScopeStmt)
    assert (scope.level, scope.role, scope.name_hint) == (ir.Level.HOST, ir.Role.Orchestrator, "h")


def test_names_of_a_scope_leak():
    scope, returned = statements(X, f"with pl.at({CORE}):\n    y = pl.add(x, x)\nreturn y")
    assert returned.value[0] is scope.body.var


def test_task_capture_stores_attributes_in_order_behind_a_placeholder():
    body = f"""
    # the scope
    with pl.at({CORE}, windowize=True, deps=[t0], name_hint="stage2", no_dep_args=[x], dumps=[out],
               allow_early_resolve=True,
               optimizations=[pl.split(pl.SplitMode.UP_DOWN), pl.cross_core_slot(slot_num=4)]) as t9:
        out[0:64] = pl.exp(x)
    return out, t9
    """
    placeholder, scope, returned = calls(body, f"{XO}, {TASK}")
    assert placeholder.value.op.name == "system.task_invalid"
    assert placeholder.leading_comments == []
    assert scope.leading_comments == ["the scope"]
    assert scope.split is ir.SplitMode.UP_DOWN
    assert list(scope.attrs) == [
        "manual_dep_edges", "arg_direction_overrides_vars", "dump_vars", "task_id_var", "allow_early_resolve",
        "slot_num", "windowize",
    ]  # fmt: skip
    assert scope.attrs["task_id_var"] is placeholder.var is returned.value[1]


def test_task_capture_makes_a_new_variable_even_for_a_known_name():
    first, _, second, _, _ = calls(
        f"with pl.at({CORE}) as t:\n    y = x\nwith pl.at({CORE}) as t:\n    z = x\nreturn y"
    )
    assert first.var is not second.var


@pytest.mark.parametrize("launch", [f"pl.at({CORE}, deps=[t0])", "pl.spmd(2, deps=[t0])"])
def test_a_task_id_that_a_loop_makes_anew_but_waits_for_from_before_it_is_a_warning(launch: str) -> None:
    def parsed(loop: str, name: str) -> None:
        inside = "y = pl.tile.get_block_idx()" if "spmd" in launch else "y = x"
        calls(f"for i in {loop}:\n    with {launch} as {name}:\n        {inside}\nreturn x", f"{X}, {TASK}")

    with pytest.warns(UserWarning, match=r"means the task from before the loop in every turn.*'t0 = mine'"):
        parsed("pl.range(4)", "t0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parsed("pl.range(4)", "mine")
        parsed("pl.parallel(4)", "t0")


@pytest.mark.parametrize(
    ("header", "error", "message"),
    [
        ("pl.at(pl.Level.HOST, None, 3)", ParserSyntaxError, "takes at most 2 positional arguments"),
        ("pl.at()", ParserSyntaxError, "requires a level argument"),
        ("pl.at(pl.Level.HOST, level=pl.Level.HOST)", ParserSyntaxError, "got multiple values for argument 'level'"),
        (f"pl.at({CORE}, **x)", ParserSyntaxError, r"Unsupported \*\*kwargs"),
        (f"pl.at({CORE}, other=1)", ParserSyntaxError, r"Unknown keyword argument 'other' in pl\.at\(\)"),
        ("pl.at(level=pl.Level.BOGUS)", ParserSyntaxError, "Unknown Level value"),
        ("pl.at(level=foo.Level.HOST)", ParserSyntaxError, r"Expected pl\.Level\.<name>, got 'foo\.Level\.HOST'"),
        ("pl.at(level=pl.Level.HOST, role=pl.Role.BOGUS)", ParserSyntaxError, "Unknown Role value"),
        (f"pl.at({CORE}, allow_early_resolve=1)", ParserSyntaxError, "allow_early_resolve must be a boolean literal"),
        (f"pl.at({CORE}, windowize=x)", ParserSyntaxError, "windowize must be a boolean literal"),
        (f"pl.at({CORE}, role=pl.Role.SubWorker)", ParserSyntaxError,
         r"role= is not supported with level=pl\.Level\.CORE_GROUP"),
        ("pl.at(level=pl.Level.HOST, optimizations=[])", ParserSyntaxError,
         r"are only supported with level=pl\.Level\.CORE_GROUP"),
        ("pl.at(level=pl.Level.HOST, role=pl.Role.SubWorker)", ParserSyntaxError, "Inline .* is not supported"),
        (f"pl.at({CORE}, name_hint=x)", ParserSyntaxError, "'name_hint' argument must be a string literal"),
        (f"pl.at({CORE}, name_hint='for')", ParserSyntaxError, "must be a valid non-keyword identifier"),
        (f"pl.at({CORE}, no_dep_args=x)", ParserTypeError, "must be a list literal"),
        (f"pl.at({CORE}, no_dep_args=[x[0]])", ParserTypeError, "entries must be bare tensor names"),
        (f"pl.at({CORE}, dumps=[nothing])", ParserTypeError, "references unknown name 'nothing'"),
        (f"pl.at({CORE}, dumps=[t0])", ParserTypeError, "is not a tensor"),
        (f"pl.at({CORE}, dumps=[x, x])", ParserTypeError, "more than once"),
        (f"pl.at({CORE}, optimizations=x)", ParserSyntaxError, r"pl\.at\(optimizations=\.\.\.\) must be a list literal"),
        (f"pl.at({CORE}, optimizations=[pl.auto_chunk])", ParserSyntaxError,
         r"Unsupported entry in pl\.at\(optimizations=\[\.\.\.\]\)"),
        (f"pl.at({CORE}, optimizations=[pl.split(pl.SplitMode.NONE), pl.split(pl.SplitMode.NONE)])",
         ParserSyntaxError, r"Duplicate 'pl\.split\(\.\.\.\)'"),
        (f"pl.at({CORE}, optimizations=[pl.cross_core_slot(slot_num=1), pl.cross_core_slot(slot_num=1)])",
         ParserSyntaxError, r"Duplicate 'pl\.cross_core_slot\(\.\.\.\)'"),
        (f"pl.at({CORE}, optimizations=[pl.split(pl.SplitMode.NONE, k=1)])", ParserSyntaxError,
         r"Unknown keyword argument 'k' in pl\.split\(\)"),
        (f"pl.at({CORE}, optimizations=[pl.split()])", ParserSyntaxError, "takes exactly 1 positional argument"),
        (f"pl.at({CORE}, optimizations=[pl.cross_core_slot(2)])", ParserSyntaxError, "takes no positional arguments"),
        (f"pl.at({CORE}, optimizations=[pl.cross_core_slot()])", ParserSyntaxError, "requires the slot_num= keyword"),
        (f"pl.at({CORE}, optimizations=[pl.cross_core_slot(slot_num=x)])", ParserSyntaxError,
         "must be an integer literal"),
        (f"pl.at({CORE}, optimizations=[pl.cross_core_slot(slot_num=0)])", ParserSyntaxError, "must be positive, got"),
        (f"pl.at({CORE}), pl.cluster()", ParserSyntaxError, "Only single context manager"),
        ("pl.incore()", UnsupportedFeatureError, "Unsupported context manager"),
        ("x", UnsupportedFeatureError, "Unsupported context manager"),
        ("pl.cluster() as t", ParserSyntaxError, "only applies to"),
        (f"pl.at({CORE}) as (a, b)", ParserSyntaxError, "must be a plain variable name"),
        ("pl.cluster(3)", ParserSyntaxError, "does not accept positional arguments"),
        ("pl.cluster(k=3)", ParserSyntaxError, "got unexpected keyword argument"),
        ("pl.scope(pl.ScopeMode.AUTO)", ParserSyntaxError, "takes only a 'mode=' keyword"),
        ("pl.scope(k=1)", ParserSyntaxError, "got an unexpected keyword"),
        ("pl.manual_scope(1)", ParserSyntaxError, "does not accept arguments"),
        ("pl.scope()", ParserSyntaxError, r"requires @pl\.function\(auto_scope=False\)"),
    ],
)  # fmt: skip
def test_bad_scope_headers(header, error, message):
    rejects(f"with {header}:\n    y = x\nreturn x", error, message)


def test_slot_num_inside_split_is_deprecated_and_equal_to_two_entries():
    with pytest.warns(DeprecationWarning):
        old = statements(
            X,
            f"with pl.at({CORE}, optimizations=[pl.split(pl.SplitMode.UP_DOWN, slot_num=4)]):\n    y = x\nreturn y",
        )[0]
    assert (old.split, old.attrs) == (ir.SplitMode.UP_DOWN, {"slot_num": 4})
    with (
        pytest.raises(ParserSyntaxError, match="sets the cross-core slot count twice"),
        pytest.warns(DeprecationWarning),
    ):
        statements(
            X,
            f"with pl.at({CORE}, optimizations=[pl.split(pl.SplitMode.UP_DOWN, slot_num=4), "
            "pl.cross_core_slot(slot_num=4)]):\n    y = x\nreturn y",
        )


# -- runtime scopes ------------------------------------------------------------------------------------------


def test_runtime_scopes():
    body = "with pl.scope():\n    with pl.manual_scope():\n        y = x\nreturn y"
    auto = statements(X, body, decorator="auto_scope=False")[0]
    assert (auto.manual, auto.body.manual) == (False, True)
    for inner, message in (
        ("pl.manual_scope()", "a manual scope may not be nested inside another manual scope"),
        ("pl.scope()", "an AUTO scope may not be nested inside a manual scope"),
    ):
        with pytest.raises(ParserSyntaxError, match=message):
            statements(
                X, f"with pl.scope(mode=pl.ScopeMode.MANUAL):\n    with {inner}:\n        y = x\nreturn x",
                decorator="auto_scope=False",
            )  # fmt: skip


def test_yields_pass_through_runtime_scopes():
    body = """
    for i, (a,) in pl.range(4, init_values=(x,)):
        with pl.manual_scope():
            b = pl.add(a, a)
            r = pl.yield_(b)
    return r
    """
    loop, returned = statements(X, body)
    assert returned.value[0] is loop.return_vars[0]


# -- spmd ----------------------------------------------------------------------------------------------------


def test_spmd_around_a_call_has_no_kernel_scope():
    scope = calls("with pl.spmd(4, sync_start=True, name_hint='q'):\n    out = self.k(x, out)\nreturn out")[0]
    assert isinstance(scope.body, ir.AssignStmt)
    assert (scope.core_num.value, scope.sync_start, scope.name_hint) == (4, True, "q")


def test_spmd_around_a_call_with_optimizations_gets_a_kernel_scope():
    split, slot = calls(
        """
        with pl.spmd(4, optimizations=[pl.split(pl.SplitMode.LEFT_RIGHT)]):
            out = self.k(x, out)
        with pl.spmd(4, optimizations=[pl.cross_core_slot(slot_num=3)]):
            out = self.k(x, out)
        return out
        """
    )[:2]
    assert split.body.split is ir.SplitMode.LEFT_RIGHT
    assert slot.body.attrs == {"slot_num": 3}


def test_spmd_body_that_reads_the_block_index_is_a_kernel():
    scope = calls(
        "with pl.spmd(4, name_hint='q_spmd'):\n    i = pl.get_block_idx()\n    t = pl.load(x, [i], [16])\nreturn out"
    )[0]
    assert isinstance(scope.body, ir.InCoreScopeStmt)
    assert (scope.name_hint, scope.body.name_hint) == ("q_spmd", "q")


@pytest.mark.parametrize("call", ["indexed(x, out)", "outer(x, out)"])
def test_spmd_body_whose_inline_helper_reads_the_block_index_is_a_kernel(call: str):
    helpers = """
@pl.inline
def indexed(x, o):
    i = pl.get_block_idx()
    return pl.store(pl.load(x, [i * 16], [16]), [i * 16], o)
@pl.inline
def outer(x, o):
    return indexed(x, o)
"""
    found = program(
        f"with pl.spmd(4, name_hint='q'):\n    out = {call}\nreturn out", params=XO, prelude=helpers
    )
    scope = stmts_of(found.get_function("main").body)[0]
    assert isinstance(scope.body, ir.InCoreScopeStmt)
    assert (scope.name_hint, scope.body.name_hint) == ("q_spmd", "q")
    ir.assert_structural_equal(pl.parse_program(found.as_python()), found)


def test_spmd_loop_binds_the_block_index():
    scope = calls("for i in pl.spmd(4, name_hint='q'):\n    t = pl.load(x, [i], [16])\nreturn out")[0]
    first = stmts_of(scope.body.body)[0]
    assert (scope.name_hint, scope.body.name_hint) == ("q_spmd", "q")
    assert first.value.op.name == "tile.get_block_idx" and first.var.name_hint == "i"
    assert first.var.type == ir.ScalarType(ir.DataType.INDEX)


def test_explicit_carrier_is_kept_as_the_only_kernel_scope():
    scope = calls(
        f"with pl.spmd(2):\n    with pl.at({CORE}, name_hint='c'):\n        y = pl.exp(x)\nreturn out"
    )[0]
    assert isinstance(scope.body, ir.InCoreScopeStmt) and scope.body.name_hint == "c"
    assert isinstance(scope.body.body, ir.AssignStmt)


@pytest.mark.parametrize(
    "code",
    [
        "with pl.spmd(4, deps=[t0, None]):\n    out = self.k(x, out)",
        "for i in pl.spmd(4, deps=[t0]):\n    y = pl.exp(x)",
    ],
)
def test_spmd_takes_dependencies_without_a_task_id_of_its_own(code: str):
    scope, _ = calls(f"{code}\nreturn out", f"{XO}, {TASK}")
    assert list(scope.attrs) == ["manual_dep_edges"]
    assert [dep.name_hint for dep in scope.attrs["manual_dep_edges"]] == ["t0"]


def test_spmd_task_capture():
    body = """
    with pl.spmd(4, deps=[t0], allow_early_resolve=True) as t9:
        out = self.k(x, out)
    return out
    """
    placeholder, scope, _ = calls(body, f"{XO}, {TASK}")
    assert list(scope.attrs) == ["manual_dep_edges", "task_id_var", "allow_early_resolve"]
    assert scope.attrs["task_id_var"] is placeholder.var


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("with pl.spmd(4):\n    y = pl.exp(x)", "neither reads the per-block index"),
        ("with pl.spmd(4):\n    out = self.k(x, out)\n    out = self.k(x, out)", "launches 2 kernels"),
        ("with pl.spmd(4, 5):\n    out = self.k(x, out)", "accepts at most one positional argument"),
        ("with pl.spmd(4, core_num=4):\n    out = self.k(x, out)", "got multiple values for argument 'core_num'"),
        ("with pl.spmd():\n    out = self.k(x, out)", "requires core_num"),
        ("with pl.spmd(1.5):\n    out = self.k(x, out)", "core_num must be an integer expression"),
        ("with pl.spmd(True):\n    out = self.k(x, out)", "core_num must be an integer expression"),
        ("with pl.spmd(0):\n    out = self.k(x, out)", "core_num must be a positive integer, got"),
        ("for i in pl.spmd(1.5):\n    y = x", "core_num must be an integer expression"),
        ("for i in pl.spmd(True):\n    y = x", "core_num must be an integer expression"),
        ("for i in pl.spmd(0):\n    y = x", "core_num must be a positive integer, got 0"),
        ("with pl.spmd(4, sync_start=1):\n    out = self.k(x, out)", "must be a boolean literal"),
        ("with pl.spmd(4, **x):\n    out = self.k(x, out)", r"does not accept \*\*kwargs"),
        ("with pl.spmd(4, k=1):\n    out = self.k(x, out)", "got unexpected keyword argument"),
        *((f"for i in pl.spmd(4, {word}=2):\n    y = x", rf"pl\.spmd\(\) loop form does not accept '{word}='")
          for word in ("init_values", "chunk", "chunk_policy", "attrs", "step", "stage")),
        ("for i, (a,) in pl.spmd(4):\n    y = x", "must use a single loop variable"),
        (f"with pl.spmd(2, optimizations=[pl.split(pl.SplitMode.NONE)]):\n    with pl.at({CORE}):\n        y = x",
         "belongs on the InCore scope"),
        (f"with pl.spmd(2, optimizations=[pl.split(pl.SplitMode.NONE)]):\n    with pl.at({CORE}, optimizations=[]):\n"
         "        y = x", "is specified twice"),
        ("with pl.cluster():\n    with pl.spmd(4) as t:\n        out = self.k(x, out)",
         r"cannot capture a TaskId when nested inside `pl\.cluster\(\)`"),
        ("with pl.cluster():\n    with pl.spmd(4, allow_early_resolve=True):\n        out = self.k(x, out)",
         r"allow_early_resolve.*cannot be nested inside `pl\.cluster\(\)`.*would be lost"),
    ],
)  # fmt: skip
def test_bad_spmd(code, message):
    rejects(f"{code}\nreturn out", ParserSyntaxError, message)


# -- split_aiv -----------------------------------------------------------------------------------------------

AIV = "for v in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):"
T = "t: pl.Tile[[16, 16], pl.FP32]"


def test_split_aiv_is_wrapped_unless_it_is_in_a_kernel():
    bare = statements(T, f"{AIV}\n    y = pl.exp(t)\nreturn t")[0]
    assert isinstance(bare, ir.InCoreScopeStmt) and isinstance(bare.body, ir.SplitAivScopeStmt)
    inside = statements(T, f"with pl.at({CORE}):\n    {AIV}\n        y = pl.exp(t)\nreturn t")[0]
    assert isinstance(inside.body, ir.SplitAivScopeStmt)
    kernel = statements(T, f"{AIV}\n    y = pl.exp(t)\nreturn t", decorator="type=pl.FunctionType.InCore")[0]
    assert isinstance(kernel, ir.SplitAivScopeStmt)
    assert stmts_of(kernel.body)[0].value.op.name == "tile.get_subblock_idx"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (f"{AIV}\n    {AIV}\n        y = t", r"nested 'for \.\.\. in pl\.split_aiv\(\.\.\.\)' is not allowed"),
        (f"with pl.at({CORE}, optimizations=[pl.split(pl.SplitMode.NONE)]):\n    {AIV}\n        y = t",
         "mutually exclusive"),
        ("for a, (b,) in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n    y = t", "must use a single loop variable"),
        ("for v in pl.split_aiv(2, chunk=1):\n    y = t", r"pl\.split_aiv\(\) loop form does not accept"),
        ("for v in pl.split_aiv(2, optimizations=[]):\n    y = t", "does not accept 'optimizations='"),
        ("for v in pl.split_aiv():\n    y = t", "takes exactly one positional argument"),
        ("for v in pl.split_aiv(4, mode=pl.SplitMode.UP_DOWN):\n    y = t", "requires n == 2"),
        ("for v in pl.split_aiv(2, **t):\n    y = t", r"does not accept \*\*kwargs"),
        ("for v in pl.split_aiv(2, k=1):\n    y = t", "got unexpected keyword argument"),
        ("for v in pl.split_aiv(2):\n    y = t", "requires mode="),
        ("y = pl.aiv_shard(t)", r"must be used inside a 'for \.\.\. in pl\.split_aiv"),
        ("y = pl.aiv_shard(t, t)", "takes exactly one positional argument"),
        ("y = pl.aiv_shard(t, mode=1)", "does not take a mode= argument"),
        ("y = pl.aiv_shard(t, k=1)", "does not accept keyword argument"),
        ("y = pl.aiv_shard(t, split=t)", "requires an integer split"),
        (f"{AIV}\n    y = pl.aiv_shard(t, split=1)", "does not take a split= argument inside"),
        ("y = pl.aic_gather(t, split=1, lane_stride=1)", "does not take a lane_stride="),
    ],
)  # fmt: skip
def test_bad_split_aiv(code, message):
    with pytest.raises(ParserSyntaxError, match=message) as caught:
        statements(T, f"{code}\nreturn t")
    assert caught.value.hint


@pytest.mark.parametrize("prefix", ["pl", "pl.tile", "pl.tensor"])
@pytest.mark.parametrize("name", ["aiv_shard", "aic_gather"])
@pytest.mark.parametrize("mode", list(ir.SplitMode))
def test_lane_transfers_take_the_mode_of_the_region(mode, name, prefix):
    shard = statements(
        f"{T}, x: pl.Tensor[[16, 16], pl.FP32]",
        f"{AIV.replace('UP_DOWN', mode.name)}\n    a = {prefix}.{name}(t)\n    b = {prefix}.{name}(x)\nreturn t",
    )
    _, a, b = stmts_of(shard[0].body.body)
    assert (a.value.op.name, a.value.kwargs["split"]) == (f"tile.{name}", mode.value)
    assert (b.value.op.name, b.value.kwargs["split"]) == (f"tensor.{name}", mode.value)


# -- calls ---------------------------------------------------------------------------------------------------


def test_no_dep_positions_survive_annotation_and_later_declaration():
    call = calls("out: pl.Tensor[[64], pl.FP32] = self.k(pl.no_dep(x), out)\nreturn out")[0].value
    assert call.attrs == {"arg_direction_overrides": [0]}
    later = pl.parse_program(
        "@pl.program\nclass P:\n    @pl.function\n    def a(self, x: pl.Tensor[[64], pl.FP32]):\n"
        "        y: pl.Tensor[[64], pl.FP32] = self.b(pl.no_dep(x))\n        return y\n"
        "    @pl.function\n    def b(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:\n        return x\n"
    )
    call = stmts_of(later.get_function("a").body)[0].value
    assert call.attrs == {"arg_direction_overrides": [0]}
    assert call.type == ir.TensorType([64], ir.DataType.FP32)


def test_call_attrs_round_the_printer():
    call = calls(
        'out = self.k(x, out, attrs={"core_num": 4, "sync_start": True, "arg_directions": [pl.adir.input, pl.adir.inout]})\nreturn out'
    )[0].value
    assert call.attrs["core_num"].value == 4
    assert call.attrs["sync_start"] is True
    assert call.arg_directions == [ir.ArgDirection.Input, ir.ArgDirection.InOut]


def test_result_type_is_read_in_the_callers_symbols():
    main = main_of(
        "y = self.f(x)\nreturn y",
        params="x: pl.Tensor[[32, 8], pl.FP32]",
        prelude="M = pl.dynamic('M')",
        kernels="@pl.function\ndef f(self, x: pl.Tensor[[M, 8], pl.FP32]) -> pl.Tensor[[M, 8], pl.FP32]:\n    return x",
    )
    assert [d.value for d in main[0].var.type.shape] == [32, 8]


def test_result_type_without_annotation_is_that_of_the_first_return():
    main = main_of(
        "y = self.f(x)\nreturn y", params=X, kernels=f"@pl.function\ndef f(self, {X}):\n    return x"
    )
    assert main[0].var.type == ir.TensorType([64], ir.DataType.FP32)


def test_conflicting_bindings_are_reported():
    with pytest.raises(ParserSyntaxError, match="conflicting bindings"):
        main_of(
            "y = self.f(x, x2)\nreturn y",
            params="x: pl.Tensor[[32], pl.FP32], x2: pl.Tensor[[16], pl.FP32]",
            prelude="M = pl.dynamic('M')",
            kernels="@pl.function\ndef f(self, a: pl.Tensor[[M], pl.FP32], b: pl.Tensor[[M], pl.FP32]) "
            "-> pl.Tensor[[M], pl.FP32]:\n    return a",
        )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        ("self.k(x)", ParserTypeError, r"Function 'k' expects 2 argument\(s\), got 1"),
        ("self.k(x, out, deps=[t0])", ParserTypeError, "does not accept keyword argument 'deps'"),
        ("self.k(x, out, device=0)", ParserTypeError, "does not accept keyword argument 'device'"),
        ("self.nope(x)", UndefinedVariableError, "Function 'nope' not defined in program"),
        ("self.k(x, out, attrs=x)", ParserTypeError, "must be a dict literal"),
        ("self.k(x, out, attrs={x: 1})", ParserSyntaxError, "must use string-literal keys"),
        ("self.k(x, out, attrs={'arg_directions': x})", ParserTypeError, "must be a list literal"),
        ("self.k(x, out, attrs={'arg_directions': [x]})", ParserTypeError, r"must contain 'pl\.adir\.<name>'"),
        ("self.k(x, out, attrs={'arg_directions': [pl.adir.up]})", ParserTypeError, "Unknown call-site direction"),
        ("self.k(x, out, attrs={'arg_directions': [pl.adir.input]})", ParserTypeError,
         "must match positional arg count"),
        ("self.k(x, out, attrs={'manual_dep_edges': [t0]})", ParserTypeError, "is not accepted on a call"),
        ("self.k(x, out, attrs={'k': None})", ParserSyntaxError, "unsupported constant"),
        ("self.k(x, out, attrs={'k': [1, x]})", ParserSyntaxError, "list elements are mixed or of an unsupported"),
    ],
)  # fmt: skip
def test_bad_calls(call, error, message):
    rejects(f"y = {call}\nreturn x", error, message)


def test_dump_tag_marks_later_calls_only():
    body = "out = self.k(x, out)\npl.dump_tag(x)\nout = self.k(x, out)\nreturn out"
    f = program(body, params=XO, kernels=KERNELS).get_function("main")
    before, after = (stmt.value for stmt in stmts_of(f.body)[:2])
    assert before.attrs == {}
    (dumped,) = after.attrs["dump_vars"]
    assert dumped is f.params[0]


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("pl.dump_tag()", ParserSyntaxError, "takes exactly one positional argument"),
        ("pl.dump_tag(x[0:4])", ParserSyntaxError, "must be a bare variable name"),
        ("pl.dump_tag(nothing)", ParserSyntaxError, "is not defined at this point"),
        ("pl.dump_tag(t0)", ParserTypeError, "is not a tensor"),
    ],
)
def test_bad_dump_tag(statement, error, message):
    rejects(f"{statement}\nreturn x", error, message)


def test_dump_tag_in_a_kernel_is_rejected():
    with pytest.raises(ParserSyntaxError, match="only valid inside an Orchestration or Inline function"):
        statements(X, "pl.dump_tag(x)\nreturn x", decorator="type=pl.FunctionType.InCore")


# -- submits -------------------------------------------------------------------------------------------------


def test_submit_unpacks_into_results_and_task_id():
    temp, out, tid, _ = calls("out, tid = pl.submit(self.k, x, out)\nreturn out")
    submit = temp.value
    assert isinstance(submit, ir.Submit)
    assert temp.var.name_hint == "_submit_tmp"
    assert [str(t) for t in submit.type.types] == ["pl.Tensor[[64], pl.FP32]", "pl.Scalar[pl.TASK_ID]"]
    assert (out.value.index, tid.value.index) == (0, 1)
    assert tid.var.type == ir.ScalarType(ir.DataType.TASK_ID)


@pytest.mark.parametrize(("kernel", "results"), [("nothing", 0), ("k", 1), ("two", 2)])
@pytest.mark.parametrize("form", ["pl.submit(self.{}, x)", "pl.spmd_submit(self.{}, x, core_num=4)"])
def test_the_type_of_a_submit_is_flat_with_the_task_id_last(form, kernel, results):
    submit = calls(f"whole = {form.format(kernel)}\nreturn x")[0].value
    tensors = [ir.TensorType([64], ir.FP32)] * results
    assert submit.type.types == [*tensors, ir.ScalarType(ir.DataType.TASK_ID)]


def test_submit_forms():
    body = """
    (a, b), t9 = pl.submit(self.two, x)
    whole = pl.submit(self.k, x)
    typed: pl.Tuple[pl.Tensor[[64], pl.FP32], pl.Scalar[pl.TASK_ID]] = pl.submit(self.k, x, out)
    out, t8 = pl.spmd_submit(self.k, x, out, core_num=8, sync_start=True, deps=[t9, None], dumps=[x],
                             allow_early_resolve=True)
    return out
    """
    stmts = calls(body)
    whole = stmts[4].value
    assert len(whole.args) == 1
    launch = stmts[6].value
    assert (launch.core_num.value, launch.sync_start, launch.allow_early_resolve) == (8, True, True)
    assert len(launch.deps) == 1 and launch.deps[0] is stmts[3].var
    assert len(launch.attrs["dump_vars"]) == 1


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("pl.submit(self.k, x)", ParserSyntaxError, "must be unpacked as a 2-tuple"),
        ("a, b, c = pl.submit(self.k, x)", ParserSyntaxError, "must be unpacked as exactly 2 targets"),
        ("a, b[0] = pl.submit(self.k, x)", ParserSyntaxError, "task_id target must be a plain variable name"),
        ("a[0], b = pl.submit(self.k, x)", ParserSyntaxError,
         "result target must be a variable name or a tuple of names"),
        ("(a[0], c), b = pl.submit(self.k, x)", ParserSyntaxError, "must contain plain variable names only"),
        ("a, b = pl.submit()", ParserSyntaxError, "requires the kernel as its first argument"),
        ("a, b = pl.submit(self.k(x))", ParserSyntaxError, r"first argument must be a `self\.<kernel>` method"),
        ("(a, c), b = pl.submit(self.k, x)", ParserTypeError,
         r"unpacks 2 result value\(s\) but kernel 'k' returns 1"),
        ("a, b = pl.submit(self.k)", ParserTypeError, r"expects 1\.\.2 argument\(s\), got 0"),
        ("a, b = pl.spmd_submit(self.k, x)", ParserSyntaxError, "requires the core_num keyword argument"),
        ("a, b = pl.spmd_submit(self.k, x, core_num=0)", ParserSyntaxError, "core_num must be a positive integer"),
        ("a, b = pl.submit(self.k, x, core_num=4)", ParserTypeError, "does not accept keyword argument"),
        ("a, b = pl.submit(self.k, x, deps=t0)", ParserTypeError, "deps= must be a list / tuple / comprehension"),
        ("a, b = pl.submit(self.k, x, deps=[x])", ParserTypeError, "deps= entries must be a TaskId variable"),
        ("a, b = pl.submit(self.k, x, dumps=x)", ParserTypeError, "dumps= must be a list"),
        ("a, b = pl.submit(self.k, x, dumps=[t0])", ParserTypeError, "must be tensor variables"),
        ("a, b = pl.submit(self.k, x, dumps=[out])", ParserTypeError, "is not an argument of this submit"),
        ("a, b = pl.submit(self.k, x, allow_early_resolve=1)", ParserSyntaxError,
         "allow_early_resolve must be a boolean literal"),
        ("with pl.cluster():\n    a, b = pl.submit(self.k, x, deps=[t0])", ParserSyntaxError,
         "cannot carry per-task dispatch metadata.*deps"),
    ],
)  # fmt: skip
def test_bad_submits(statement, error, message):
    rejects(f"{statement}\nreturn x", error, message)


# -- deps ----------------------------------------------------------------------------------------------------

ARR = f"{XO}, arr: pl.Array[4, pl.TASK_ID], {TASK}, n: pl.Scalar[pl.INDEX]"


def test_comprehension_over_array_elements_gathers_them():
    stmts = calls("a, b = pl.submit(self.k, x, deps=[arr[i] for i in range(4) if i != 1])\nreturn a", ARR)
    create, *updates = stmts[:4]
    assert create.value.op.name == "array.create" and create.var.type.extent.value == 3
    assert [u.value.op.name for u in updates] == ["array.update_element"] * 3
    assert len({u.var for u in updates}) == 3
    assert [u.value.args[2].args[1].value for u in updates] == [0, 2, 3]
    assert stmts[4].value.deps[0] is updates[-1].var


def test_plain_deps_stay_as_written():
    submit = calls("a, b = pl.submit(self.k, x, deps=[t0, None, arr])\nreturn a", ARR)[0].value
    assert [d.name_hint for d in submit.deps] == ["t0", "arr"]
    assert calls("a, b = pl.submit(self.k, x, deps=[None])\nreturn a", ARR)[0].value.deps == []


@pytest.mark.parametrize(
    ("deps", "error", "message"),
    [
        ("[arr, arr[0]]", ParserTypeError, "cannot mix a whole TASK_ID array with per-element entries"),
        ("[arr[i] for i in pl.range(4)]", ParserTypeError, "is a DSL loop"),
        ("[arr[i] for i in range(n)]", ParserTypeError, "depends on an IR variable"),
        ("[arr[i] for i in 3]", ParserTypeError, "did not produce a sequence"),
        ("[arr[i] for i in [1.5]]", ParserTypeError, "yielded a non-integer value"),
        ("[arr[i] for i in range(2) for j in range(2)]", ParserSyntaxError, "single `for` clause"),
        ("[arr[i] for i, j in [(1, 2)]]", ParserSyntaxError, "target must be a single name"),
    ],
)
def test_bad_deps(deps, error, message):
    rejects(f"a, b = pl.submit(self.k, x, deps={deps})\nreturn x", error, message, ARR)


def test_task_dummy():
    stmts = calls("t2 = pl.system.task_dummy(deps=[t0])\nt3 = pl.system.task_dummy(deps=[])\nreturn x", ARR)
    assert list(stmts[0].value.attrs) == ["manual_dep_edges", "dummy_task"]
    assert stmts[1].value.attrs == {"dummy_task": True}
    rejects("t = pl.system.task_dummy()\nreturn x", ParserTypeError, "requires keyword argument 'deps'")
    rejects(
        "t = pl.system.task_dummy(deps=[], k=1)\nreturn x",
        ParserTypeError,
        "does not accept keyword argument",
    )
    from pypto.language.parser import InvalidOperationError

    rejects(
        "t = pl.system.task_dummy([t0])\nreturn x", InvalidOperationError, "must not use positional arguments"
    )


# -- predicates ----------------------------------------------------------------------------------------------

PRED = f"{XO}, f: pl.Tensor[[4, 4], pl.INT32], u: pl.Tensor[[4], pl.UINT32], n: pl.Scalar[pl.INDEX], {TASK}"


def test_predicate_is_stored_and_not_emitted():
    stmts = calls("a, b = pl.submit(self.k, x, predicate=(f[n, 0] > 0))\nreturn a", PRED)
    assert isinstance(stmts[0].value.predicate, ir.Gt)
    assert stmts[0].value.predicate.left.operand.op.name == "tensor.read"
    scope = calls("with pl.spmd(4, predicate=0 < f[0, 0]):\n    out = self.k(x, out)\nreturn out", PRED)[0]
    assert isinstance(scope.attrs["predicate"], ir.Lt)


@pytest.mark.parametrize(
    ("predicate", "error", "message"),
    [
        ("f[0, 0]", ParserSyntaxError, "must be a single comparison"),
        ("None", ParserSyntaxError, "omit predicate="),
        ("n > 0", ParserSyntaxError, "must compare one tensor element"),
        ("f[0, 0] > n", ParserSyntaxError, "must compare one tensor element"),
        ("u[0] > 0", ParserTypeError, "must be a signed 8/16/32/64-bit integer tensor"),
        ("f[0, -1] > 0", ParserTypeError, "predicate index must be non-negative"),
        ("f[0] > 0", ParserTypeError, r"predicate needs 2 index\(es\)"),
        ("f[0, 0:1] > 0", ParserTypeError, "predicate indices must be integer scalars"),
        ("t0[0] > 0", ParserTypeError, "predicate operand must be a tensor"),
    ],
)
def test_bad_predicates(predicate, error, message):
    rejects(f"a, b = pl.submit(self.k, x, predicate=({predicate}))\nreturn x", error, message, PRED)


def test_producer_of_the_predicate_must_be_a_dependency():
    good = "f, tf = pl.submit(self.flags, x, f)\na, b = pl.submit(self.k, x, predicate=f[0, 0] > 0, deps=[tf])\nreturn a"
    calls(good, PRED)
    missing = good.replace(", deps=[tf]", "")
    unnamed = "operand 'f' is produced by the task bound to 'tf', but 'tf' is not in deps="
    rejects(missing, ParserSyntaxError, unnamed, PRED)
    rebound = good.replace("\na, b", "\ny, tf = pl.submit(self.k, x)\na, b")
    rejects(rebound, ParserSyntaxError, unnamed, PRED)


def test_values_of_a_captured_spmd_launch_are_produced_by_its_task():
    good = """
    with pl.spmd(4) as tf:
        f = self.flags(x, f)
    with pl.spmd(4, deps=[tf], predicate=(f[0, 0] > 0)) as t9:
        out = self.k(x, out)
    return out
    """
    calls(good, PRED)
    missing = good.replace("deps=[tf], ", "").replace(" as t9", "")
    with pytest.raises(ParserSyntaxError, match="is produced by the task bound to 'tf'") as caught:
        calls(missing, PRED)
    assert caught.value.hint.startswith("Write with pl.spmd(..., deps=[tf]) as tid:")


def test_deps_of_a_scope_may_be_gathered_from_an_array():
    body = f"""
    with pl.at({CORE}, deps=[arr[i] for i in range(2)]) as t9:
        y = pl.exp(x)
    return x
    """
    stmts = calls(body, ARR)
    scope = next(stmt for stmt in stmts if isinstance(stmt, ir.InCoreScopeStmt))
    assert len(scope.attrs["manual_dep_edges"]) == 1
    assert isinstance(scope.attrs["manual_dep_edges"][0].type, ir.ArrayType)


def test_device_selects_where_an_orchestrator_runs():
    found = pl.parse_program(
        "@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.Orchestration)\n"
        f"    def chip(self, {X}) -> pl.Tensor[[64], pl.FP32]:\n        return x\n"
        f"    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)\n    def host(self, {X}):\n"
        "        for d in pl.range(2):\n            y = self.chip(x, device=d)\n"
        "            z, t = pl.submit(self.chip, x, device=1)\n        return x\n"
    )
    loop = stmts_of(found.get_function("host").body)[0]
    call, submit = stmts_of(loop.body)[:2]
    assert call.value.attrs["device"] is loop.loop_var
    assert submit.value.attrs["device"].value == 1


def test_dump_tag_reaches_the_kernel_around_a_split_region():
    (scope,) = main_of(
        "pl.dump_tag(x)\nfor v in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n    y = pl.exp(x)",
        params="x: pl.Tensor[[64, 32], pl.FP32]",
    )
    assert isinstance(scope, ir.InCoreScopeStmt)
    assert [var.name_hint for var in scope.attrs["dump_vars"]] == ["x"]


def test_comprehension_over_too_many_values_is_rejected():
    with pytest.raises(ParserTypeError, match="runs over more than 100000 values"):
        main_of(
            "pl.system.task_dummy(deps=[None for i in range(10**12)])", params="x: pl.Tensor[[4], pl.FP32]"
        )
