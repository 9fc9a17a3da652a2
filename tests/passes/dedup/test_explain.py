"""The records say what happened to each unit, and what to change to get a merge."""

from __future__ import annotations

import re

import pytest

from pypto import passes
from pypto.core.logging import LogLevel, get_log_level, set_log_level
from tests.passes.dedup.programs import records, ssa
from tests.passes.dedup.test_dynamic_shapes import M, N, pair, tensor

KERNEL = """
    @incore
    def {name}(self, x: T(64), out: pl.Out[T(64)]) -> T(64):
        t = pl.load(x, [0], [64])
        u = pl.add(t, {constant})
        out = pl.store(u, [0], out)
        return out
"""
MAIN = """
    @orch
    def main(self, x: T(64), a: pl.InOut[T(64)]):
"""


def calls(*names: str) -> str:
    return MAIN + "".join(f"        a = self.{name}(x, a)\n" for name in names)


def kernels(**constants: str) -> str:
    return "".join(KERNEL.format(name=name, constant=constant) for name, constant in constants.items())


def test_every_unit_has_one_record_in_name_order():
    source = ssa(kernels(a="1.0", b="1.0", c="2.0") + calls("a", "b", "b", "c"))
    found = passes.explain_deduplication(source)
    assert [(r.name, r.outcome, r.into, r.sites, r.reason) for r in found] == [
        ("a", "kept", None, 1, "canonical"),
        ("b", "merged", "a", 2, None),
        ("c", "kept", None, 1, "unique"),
        ("main", "kept", None, 0, "not_a_candidate_kind"),
    ]


def test_a_near_miss_tells_the_first_difference_and_both_values():
    source = ssa(kernels(a="1.0", b="2.0") + calls("a", "b"))
    detail = records(source)["b"].detail
    assert re.search(r"differs from 'a' at b\.body\[1\]\.value\.args\[1\]", detail)
    assert "1.0" in detail.replace("1.000000", "1.0") and "2.0" in detail.replace("2.000000", "2.0")


def test_scopes_of_one_name_are_compared_although_their_operators_differ():
    source = ssa(
        """
    @orch
    def main(self, x: T(64)) -> T(64):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="rows"):
            x = pl.add(x, x)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="rows"):
            x = pl.mul(x, x)
        return x
    """
    )
    assert "differs from 'rows'" in records(source)["rows_0"].detail


def test_a_unit_like_no_other_says_so():
    source = ssa(kernels(a="1.0") + calls("a"))
    assert records(source)["a"].detail == "no other unit has its form"


def test_a_failed_proof_names_the_call_and_what_contradicts():
    source = pair([tensor(M, M)], [tensor(N, N)], [tensor(64, 32)])
    detail = records(source)["b"].detail
    assert detail == (
        "'a' is equal up to its symbols; at a call in 'main': argument 'p0': extent 1: 'M' is 64, not 32"
    )


def test_explaining_changes_nothing():
    source = ssa(kernels(a="1.0", b="1.0") + calls("a", "b"))
    assert passes.explain_deduplication(source) == passes.explain_deduplication(source)
    assert sorted(source.functions_) == ["a", "b", "main"]


def test_the_pass_logs_the_records_at_debug_level(capfd: pytest.CaptureFixture[str]):
    source = ssa(kernels(a="1.0", b="1.0") + calls("a", "b"))
    level = get_log_level()
    set_log_level(LogLevel.DEBUG)
    try:
        passes.deduplicate_outlined_kernels()(source)
    finally:
        set_log_level(level)
    logged = capfd.readouterr().err
    assert "'b' merged into 'a'" in logged
    assert "'a' kept (canonical)" in logged
