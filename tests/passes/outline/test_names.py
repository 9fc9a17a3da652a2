from __future__ import annotations

import pytest

from pypto import ir, passes
from pypto.passes.outline.names import ScopeNames, VariableNames
from tests.passes.dsl import program, run


def incore_names(methods: str) -> list[str]:
    """Names of the outlined kernels, in program order of the scopes."""
    result = run(program(methods), passes.outline_incore_scopes)
    return sorted(name for name, f in result.functions_.items() if f.func_type is ir.FunctionType.InCore)


def scopes(*hints: str) -> str:
    lines = []
    for hint in hints:
        option = f', name_hint="{hint}"' if hint else ""
        lines += [f"with pl.at(level=pl.Level.CORE_GROUP{option}):", "    x = pl.add(x, x)"]
    return "\n".join(f"            {line}" for line in lines)


def main_with(*hints: str, name: str = "main") -> str:
    return f"""
        @orch
        def {name}(self, x: T(64)) -> T(64):
{scopes(*hints)}
            return x
        """


@pytest.mark.parametrize(
    ("hints", "expected"),
    [
        (("", ""), ["main_incore_0", "main_incore_1"]),
        (("k", ""), ["k", "main_incore_1"]),
        (("", "k", ""), ["k", "main_incore_0", "main_incore_2"]),
        (("k", "k"), ["k", "k_0"]),
        (("main",), ["main_main"]),
        (("x__ssa_v0",), ["x__ssa_v0_0"]),
    ],
)
def test_names_of_scopes_in_one_function(hints: tuple[str, ...], expected: list[str]):
    assert incore_names(main_with(*hints)) == expected


def test_duplicate_hints_across_functions_are_prefixed_then_numbered():
    methods = main_with("dup", "dup", name="fa") + main_with("dup", "dup", name="fb")
    assert incore_names(methods) == ["dup", "dup_0", "fb_dup", "fb_dup_0"]


def test_a_hint_that_is_a_function_of_the_program_is_prefixed():
    helper = """
        @opaque
        def helper(self, x: T(64)) -> T(64):
            return x
        """
    names = incore_names(main_with("helper", "helper", "helper") + helper)
    assert names == ["main_helper", "main_helper_0", "main_helper_1"]


def test_counters_restart_in_each_function():
    methods = main_with("", name="a") + main_with("", "", name="b")
    assert incore_names(methods) == ["a_incore_0", "b_incore_0", "b_incore_1"]


def test_a_cluster_and_a_kernel_with_one_hint_get_two_names():
    source = program(
        """
        @orch
        def main(self, x: T(64)) -> T(64):
            with pl.cluster(name_hint="g"):
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="g"):
                    x = pl.add(x, x)
            return x
        """
    )
    result = run(source, passes.outline_incore_scopes, passes.outline_cluster_scopes)
    kinds = {name: found.func_type.name for name, found in result.functions_.items()}
    assert kinds == {"g": "InCore", "main": "Orchestration", "main_g": "Group"}


def test_a_cluster_and_an_spmd_with_one_hint_get_two_names():
    source = program(
        """
        @incore
        def k(self, x: T(64), o: pl.Out[T(64)]) -> T(64):
            t = pl.load(x, [0], [64])
            o = pl.store(t, [0], o)
            return o
        @orch
        def main(self, x: T(64), o: pl.Out[T(64)]) -> T(64):
            with pl.cluster(name_hint="g"):
                o = self.k(x, o)
            with pl.spmd(2, name_hint="g"):
                o = self.k(x, o)
            return o
        """
    )
    result = run(source, passes.outline_cluster_scopes)
    kinds = {name: found.func_type.name for name, found in result.functions_.items()}
    assert (kinds["g"], kinds["main_g"]) == ("Group", "Spmd")


def test_a_name_given_inside_a_nested_scope_is_free_for_the_function_but_not_for_the_program():
    source = program(
        """
        @opaque
        def main(self, x: T(64)) -> T(64):
            with pl.at(level=pl.Level.GLOBAL):
                with pl.at(level=pl.Level.HOST, name_hint="i"):
                    x = pl.add(x, x)
            with pl.at(level=pl.Level.HOST, name_hint="i"):
                x = pl.mul(x, x)
            return x
        """
    )
    result = run(source, passes.outline_hierarchy_scopes)
    assert sorted(result.functions_) == ["i", "main", "main_global_0", "main_i"]


def test_many_scopes_with_one_hint_cost_one_step_each():
    names = ScopeNames(set(), set())
    given = [names.take("layer", "main") for _ in range(20_000)]
    assert given[:3] == ["layer", "layer_0", "layer_1"]
    assert len(set(given)) == 20_000


def test_versions_of_variables_skip_what_is_known():
    variables = VariableNames({"buf__ssa_v0", "buf__ssa_v1", "o__store"})
    assert variables.next_version("buf__ssa_v0") == "buf__ssa_v2"
    assert variables.next_version("buf__ssa_v0") == "buf__ssa_v3"
    assert variables.next_version("tid") == "tid__ssa_v0"
    assert variables.store_result("o__ssa_v4") == "o__store_v0"
    assert variables.store_result("p__iter_v1") == "p__store"


def test_names_given_inside_a_scope_are_not_known_outside():
    outer = VariableNames({"o__ssa_v0"})
    inner = outer.inside()
    assert inner.next_version("o__ssa_v0") == "o__ssa_v1"
    assert inner.next_version("o__ssa_v0") == "o__ssa_v2"
    assert outer.next_version("o__ssa_v0") == "o__ssa_v1"
