"""Groups merge with all their members or not at all."""

from __future__ import annotations

import textwrap

import pytest

from pypto import ir
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


def bundle(number: int, *, members: str = "cv", aic: str = "", aiv: str = "", group: str = "") -> str:
    """A Group `g<n>` that calls an AIC and an AIV member; each imports the other's buffer."""
    calls = {"c": f"        o = self.c{number}(x, o)\n", "v": f"        o = self.v{number}(x, o)\n"}
    return f"""
    @aic
    def c{number}(self, x: T(64), o: pl.Out[T(64)]) -> T(64):
        b = pl.import_peer_buffer(name="pipe", peer_func="v{number}")
        t = pl.load(x, [0], [64])
        {aic}
        o = pl.store(t, [0], o)
        return o
    @aiv
    def v{number}(self, x: T(64), o: pl.Out[T(64)]) -> T(64):
        r = pl.reserve_buffer(name="pipe", size=4096)
        t = pl.load(x, [0], [64])
        {aiv}
        o = pl.store(t, [0], o)
        return o
    @group
    def g{number}(self, x: T(64), o: pl.InOut[T(64)]) -> T(64):
        {group}
{"".join(calls[each] for each in members)}        return o
    """


def main(*calls: str) -> str:
    lines = "".join(f"        {call}\n" for call in calls)
    return f"\n    @orch\n    def main(self, x: T(64), o: pl.InOut[T(64)]):\n{lines}"


BOTH = main("o = self.g1(x, o)", "o = self.g2(x, o)")


def test_equal_bundles_become_one_with_two_executions():
    source = ssa(bundle(1) + bundle(2) + BOTH)
    result = dedup(source)
    assert kernels(result) == ["c1", "g1", "v1"]
    assert [call.op.name for call in dispatches(function(result, "main"))] == ["g1", "g1"]
    for name in ("c1", "g1", "v1"):
        assert function(result, name) is function(source, name)
    assert_round_trips(result)


def test_bundles_whose_members_return_nothing_merge():
    def void(number: int) -> str:
        return f"""
        @aic
        def c{number}(self, x: T(64), o: pl.Out[T(64)]):
            t = pl.load(x, [0], [64])
            pl.store(t, [0], o)
        @group
        def g{number}(self, x: T(64), o: pl.Out[T(64)]):
            self.c{number}(x, o)
        """

    calls = main("self.g1(x, o)", "self.g2(x, o)")
    result = dedup(ssa(textwrap.dedent(void(1)) + textwrap.dedent(void(2)) + textwrap.dedent(calls)))
    assert kernels(result) == ["c1", "g1"]
    assert [call.op.name for call in dispatches(function(result, "main"))] == ["g1", "g1"]


def test_a_record_of_a_bundle_names_its_members():
    source = ssa(bundle(1) + bundle(2) + BOTH)
    record = records(source)["g2"]
    assert (record.members, record.outcome, record.into, record.sites) == (("c2", "v2"), "merged", "g1", 1)
    assert "c2" not in records(source)


@pytest.mark.parametrize(
    "changes",
    [
        {"members": "vc"},
        {"aic": "t = pl.add(t, t)"},
        {"aiv": "t = pl.add(t, t)"},
        {"group": 'pl.func_attr({"spmd_unwrapped": True})'},
    ],
    ids=["order of members", "first member", "second member", "attribute of the bridge"],
)
def test_a_difference_anywhere_keeps_both_bundles(changes: dict[str, str]):
    source = ssa(bundle(1) + bundle(2, **changes) + BOTH)
    assert reason(source, "g2") == "unique"
    assert kernels(dedup(source)) == ["c1", "c2", "g1", "g2", "v1", "v2"]


def test_a_near_miss_of_bundles_looks_behind_the_names_of_their_members():
    constant = "t = pl.add(t, {})"
    source = ssa(bundle(1, aiv=constant.format("1.0")) + bundle(2, aiv=constant.format("2.0")) + BOTH)
    detail = records(source)["g2"].detail
    assert detail.startswith("differs from 'g1' at v2.body[2].value.args[1].value")
    assert "2.0 against 1.0" in detail
    members = records(ssa(bundle(1) + bundle(2, members="vc") + BOTH))["g2"].detail
    assert members.startswith("differs from 'g1' at ")
    crossed = bundle(2).replace('peer_func="v2"', 'peer_func="c2"')
    assert (
        "differs from 'g1' at c2.body[0].value.kwargs"
        in records(ssa(bundle(1) + crossed + BOTH))["g2"].detail
    )


def test_peers_are_compared_by_position():
    crossed = bundle(2).replace('peer_func="v2"', 'peer_func="c2"')
    source = ssa(bundle(1) + crossed + BOTH)
    assert reason(source, "g2") == "unique"


def test_a_member_called_from_outside_keeps_the_bundle_and_the_member():
    source = ssa(bundle(1) + bundle(2) + main("o = self.g1(x, o)", "o = self.g2(x, o)", "o = self.c2(x, o)"))
    assert reason(source, "g2") == "external_member_use"
    assert "'c2'" in records(source)["g2"].detail and "'main'" in records(source)["g2"].detail
    assert dedup(source) is source


def test_a_member_named_as_a_peer_from_outside_keeps_the_bundle():
    outside = """
    @incore
    def spy(self, x: T(64)) -> T(64):
        b = pl.import_peer_buffer(name="pipe", peer_func="v2")
        return x
    """
    source = ssa(bundle(1) + bundle(2) + outside + BOTH)
    assert reason(source, "g2") == "external_member_use"


def test_a_member_shared_by_two_groups_keeps_both_bundles():
    shared = """
    @group
    def g3(self, x: T(64), o: pl.InOut[T(64)]) -> T(64):
        o = self.c2(x, o)
        return o
    """
    source = ssa(
        bundle(1) + bundle(2) + shared + main("o = self.g1(x, o)", "o = self.g2(x, o)", "o = self.g3(x, o)")
    )
    assert reason(source, "g2") == "shared_member"
    assert reason(source, "g3") == "shared_member"
    assert reason(source, "g1") == "unique"


def test_kernels_of_a_group_are_never_ordinary_kernels():
    group = """
    @incore
    def k{n}(self, x: T(64), o: pl.Out[T(64)]) -> T(64):
        t = pl.load(x, [0], [64])
        o = pl.store(t, [0], o)
        return o
    @group
    def h{n}(self, x: T(64), o: pl.InOut[T(64)]) -> T(64):
        {attr}
        o = self.k{n}(x, o)
        return o
    """
    marked = 'pl.func_attr({"spmd_unwrapped": True})'
    source = ssa(
        group.format(n=1, attr="")
        + group.format(n=2, attr=marked)
        + main("o = self.h1(x, o)", "o = self.h2(x, o)")
    )
    assert kernels(dedup(source)) == ["h1", "h2", "k1", "k2"]


def test_an_unreferenced_bundle_stays():
    source = ssa(bundle(1) + bundle(2) + main("o = self.g1(x, o)"))
    assert reason(source, "g2") == "unreferenced"


def test_a_bridge_that_calls_something_else_is_a_helper_graph():
    helper = """
    @opaque
    def helper(self, x: T(64)) -> T(64):
        return x
    """
    extra = "y = self.helper(x)"
    source = ssa(bundle(1, group=extra) + bundle(2, group=extra) + helper + BOTH)
    assert reason(source, "g2") == "helper_call"


def test_a_member_that_calls_a_function_is_a_helper_graph():
    helper = """
    @opaque
    def helper(self, x: T(64)) -> T(64):
        return x
    """
    extra = "y = self.helper(x)"
    source = ssa(bundle(1, aiv=extra) + bundle(2, aiv=extra) + helper + BOTH)
    assert reason(source, "g2") == "helper_call"


def dynamic(number: int, symbol: str) -> str:
    return f"""
    @incore
    def k{number}(self, x: T({symbol}), o: pl.Out[T({symbol})]) -> T({symbol}):
        t = pl.load(x, [0], [64])
        o = pl.store(t, [0], o)
        return o
    @group
    def g{number}(self, x: T({symbol}), o: pl.InOut[T({symbol})]) -> T({symbol}):
        o = self.k{number}(x, o)
        return o
    """


def test_bundles_with_identical_symbols_merge_and_with_different_ones_do_not():
    header = 'M = pl.dynamic("M")\nN = pl.dynamic("N")'
    same = ssa(dynamic(1, "M") + dynamic(2, "M") + BOTH, header)
    other = ssa(dynamic(1, "M") + dynamic(2, "N") + BOTH, header)
    assert kernels(dedup(same)) == ["g1", "k1"]
    assert reason(other, "g2") == "symbol_identity"


def test_calls_of_a_kernel_inside_a_wrapper_are_redirected():
    text = """
    @incore
    def k{n}(self, x: T(64), o: pl.Out[T(64)]) -> T(64):
        t = pl.load(x, [0], [64])
        o = pl.store(t, [0], o)
        return o
    @spmd
    def w{n}(self, x: T(64), o: pl.InOut[T(64)]) -> T(64):
        o = self.k{n}(x, o)
        return o
    """
    source = ssa(text.format(n=1) + text.format(n=2) + main("o = self.w1(x, o)", "o = self.w2(x, o)"))
    result = dedup(source)
    assert sorted(result.functions_) == ["k1", "main", "w1", "w2"]
    assert function(result, "w1") is function(source, "w1")


def test_cluster_launches_of_equal_bundles_share_one_definition():
    source = ssa(
        """
    @opaque
    def main(self, x: T(128, 32), o: pl.InOut[T(128, 32)], n: I) -> T(128, 32):
        with pl.cluster():
            for b in pl.spmd(n):
                t = pl.load(x, [b * 32, 0], [32, 32])
                o = pl.store(t, [b * 32, 0], o)
        with pl.cluster():
            for c in pl.spmd(n, sync_start=True):
                u = pl.load(x, [c * 32, 0], [32, 32])
                o = pl.store(u, [c * 32, 0], o)
        return o
    """
    )
    result = dedup(source)
    assert kernels(result) == ["main_cluster_0", "main_incore_0"]
    first, second = (call for call in dispatches(function(result, "main")) if isinstance(call, ir.Call))
    assert "sync_start" not in first.attrs and second.attrs["sync_start"] is True
