"""The records say what happened to each unit, and what to change to get a merge."""

from __future__ import annotations

import re

import pytest

from pypto import ir, passes
from tests.passes.dedup.programs import logged, records, ssa
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
    assert records(source)["a"].detail == "no other kernel has its operators, its name or its signature"


def test_the_kernel_that_stays_names_those_it_stands_for():
    names = ["a", "b", "c", "d", "e", "f", "g"]
    source = ssa(kernels(**dict.fromkeys(names, "1.0")) + calls(*names))
    assert records(source)["a"].detail == "it stands for 'b', 'c', 'd', 'e', 'f' and 1 more"
    two = ssa(kernels(a="1.0", b="1.0") + calls("a", "b"))
    assert records(two)["a"].detail == "it stands for 'b'"


# ---- near misses: place, both values, advice


def near_miss(second: str, first: str = KERNEL.format(name="a", constant="1.0")) -> str:
    """The detail for kernel `b`, given as text, beside `a`."""
    source = ssa(
        f"{first}{second}\n    @orch\n    def main(self, x: T(64), a: pl.InOut[T(64)], w: T(128)):\n"
        "        a = self.a(x, a)\n        a = self.b(x, a)\n"
    )
    return records(source)["b"].detail


TWIN = KERNEL.format(name="b", constant="1.0")


def test_another_constant_is_shown_with_its_lines_and_may_become_an_argument():
    detail = near_miss(KERNEL.format(name="b", constant="2.0"))
    assert re.search(r"at b\.body\[1\]\.value\.args\[1\]\.value \(line \d+ against line \d+\)", detail)
    assert "2.0 against 1.0; pass the number as a scalar argument to share one kernel" in detail


def test_another_direction_names_the_parameter():
    detail = near_miss(TWIN.replace("pl.Out", "pl.InOut"))
    assert detail == (
        "differs from 'a' at b.param_directions[1]: 'out' is InOut against Out; "
        "declare it in the same direction"
    )


def test_another_attribute_is_shown_as_absent_where_it_is():
    attr = '        pl.func_attr({"windowize": True})\n        t = pl.load'
    detail = near_miss(TWIN.replace("        t = pl.load", attr))
    assert "at b.attrs['windowize']: True against absent" in detail


def test_another_operator_is_shown_as_it_is_written():
    detail = near_miss(TWIN.replace("pl.add(t", "pl.sub(t"))
    assert "pl.tile.subs(t, 1.0) against pl.tile.adds(t, 1.0)" in detail


def test_a_further_statement_is_shown():
    more = "        v = pl.exp(t)\n        u = pl.add"
    assert re.search(
        r"5 statements against 4; only here: pl\.tile\.exp\(t\) \(line \d+\)",
        near_miss(TWIN.replace("        u = pl.add", more)),
    )
    first = KERNEL.format(name="a", constant="1.0").replace("        u = pl.add", more)
    assert "4 statements against 5; only there: pl.tile.exp(t)" in near_miss(TWIN, first)


@pytest.mark.parametrize(
    ("mine", "theirs", "advice"),
    [
        (tensor(64, 32), tensor(64, 16), "a pl.dynamic extent in both would make them equal"),
        (tensor(64, 32), tensor(M, 32), "a pl.dynamic extent in both would make them equal"),
        (
            tensor(64, 32),
            tensor(M, M),
            "extents must have the same form, and repeat a symbol at the same places",
        ),
        (
            tensor(M, N),
            tensor(M, M),
            "extents must have the same form, and repeat a symbol at the same places",
        ),
        (tensor(64), ir.TensorType([64], ir.DataType.FP16), "element type and rank must agree"),
        (tensor(64), ir.ScalarType(ir.DataType.FP32), "the types must agree"),
    ],
)
def test_another_parameter_type_is_shown_with_what_would_make_it_equal(
    mine: ir.Type, theirs: ir.Type, advice: str
):
    detail = records(pair([theirs], [mine], [mine]))["b"].detail
    assert detail == f"differs from 'a' at b.params[0]: 'p0' is {mine} against {theirs}; {advice}"


def test_of_several_like_it_a_kernel_is_compared_with_the_one_on_the_same_extents_or_element_types():
    head = "def {name}(self, x: {tensor}, out: pl.Out[{tensor}]) -> {tensor}"
    plain = head.format(name="{name}", tensor="T(64)")
    texts = []
    for name, constant, kind in (
        ("a", "1.0", "pl.Tensor[[64], pl.FP16]"),
        ("b", "1.0", "T(128)"),
        ("c", "1.0", "T(64)"),
        ("d", "2.0", "T(64)"),
        ("e", "1.0", "T(256)"),
    ):
        header = head.format(name=name, tensor=kind)
        texts.append(KERNEL.replace(plain, header).format(name=name, constant=constant))
    found = records(
        ssa(
            "".join(texts)
            + """
    @orch
    def main(
        self, h: pl.InOut[pl.Tensor[[64], pl.FP16]], w: pl.InOut[T(128)], v: pl.InOut[T(64)],
        u: pl.InOut[T(256)],
    ):
        h = self.a(h, h)
        w = self.b(w, w)
        v = self.c(v, v)
        v = self.d(v, v)
        u = self.e(u, u)
    """
        )
    )
    assert found["d"].detail.startswith("differs from 'c' at d.body")
    assert found["e"].detail.startswith("differs from 'b' at e.params[0]")
    assert found["a"].detail.startswith("differs from 'b' at a.params[0]")


def test_kernels_of_one_signature_are_compared_although_names_and_operators_differ():
    second = TWIN.replace("pl.add(t, 1.0)", "pl.exp(t)")
    assert "pl.tile.exp(t) against pl.tile.adds(t, 1.0)" in near_miss(second)


def test_a_proof_that_fails_in_a_program_of_the_language_names_the_line():
    source = ssa(
        """
    @incore
    def a(self, n: I, x: T(M), out: pl.Out[T(M)]) -> T(M):
        t = pl.load(x, [n], [64])
        out = pl.store(t, [n], out)
        return out
    @incore
    def b(self, n: I, x: T(N), out: pl.Out[T(N)]) -> T(N):
        t = pl.load(x, [n], [64])
        out = pl.store(t, [n], out)
        return out
    @orch
    def main(self, x: T(64), o: pl.Out[T(64)]):
        o = self.a(0, x, o)
        r, t0 = pl.submit(self.b, 0, x)
    """,
        header='M = pl.dynamic("M")\nN = pl.dynamic("N")',
    )
    detail = records(source)["b"].detail
    assert re.search(r"at a call in 'main', line \d+: it passes 2 of 3 arguments", detail)
    assert detail.endswith("pass every output")


def test_a_failed_proof_names_the_call_and_what_contradicts():
    source = pair([tensor(M, M)], [tensor(N, N)], [tensor(64, 32)])
    detail = records(source)["b"].detail
    assert detail == (
        "'a' is equal up to its symbols; at a call in 'main': argument 'p0': extent 1: 'M' is 64 here, "
        "not 32; both must be the same expression"
    )


def test_the_kernel_that_an_equal_one_cannot_share_points_to_it():
    source = pair([tensor(M, M)], [tensor(N, N)], [tensor(64, 32)])
    assert records(source)["a"].detail == "'b' is equal up to its symbols, but cannot share it; see there"


def test_another_number_of_parameters_is_told_in_numbers():
    functions = kernels(a="1.0", b="1.0").replace("def b(self, ", "def b(self, n: I, ")
    source = ssa(functions + calls("a", "b").replace("self.b(", "self.b(7, "))
    assert "b.params: the number of parameters differs, 3 against 2" in records(source)["b"].detail


def test_explaining_changes_nothing():
    source = ssa(kernels(a="1.0", b="1.0") + calls("a", "b"))
    assert passes.explain_deduplication(source) == passes.explain_deduplication(source)
    assert sorted(source.functions_) == ["a", "b", "main"]


def test_the_pass_logs_the_records_at_debug_level(capfd: pytest.CaptureFixture[str]):
    source = ssa(kernels(a="1.0", b="1.0") + calls("a", "b"))
    log = logged(source, capfd)
    assert "'b' merged into 'a'" in log
    assert "'a' kept (canonical)" in log
