"""Decorators: what they return, what they store, what they reject."""

# ruff: noqa: RET504 - lines and returns of DSL programs are what is tested

from __future__ import annotations

import importlib.util
import os
import warnings

import pytest

import pypto.language as pl
from pypto import ir
from pypto.core.errors import InternalError
from pypto.language.parser import (
    InvalidOperationError,
    ParserSyntaxError,
    ParserTypeError,
    UndefinedVariableError,
)
from tests.language.source import function

T64 = "pl.Tensor[[64], pl.FP32]"


@pl.function
def standalone(x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
    y = pl.add(x, x)
    return y


def test_function_decorator_on_module_function_gives_ir_function():
    assert isinstance(standalone, ir.Function)
    assert standalone.name == "standalone"
    assert len(standalone.params) == 1
    assert standalone.param_directions == [ir.ParamDirection.In]


def test_function_decorator_in_class_body_leaves_a_python_function():
    class Holder:
        @pl.function
        def f(self, x: pl.Tensor[[64], pl.FP32]):
            return x

    assert callable(Holder.f)
    assert not isinstance(Holder.f, ir.Function)


def test_program_takes_class_name_and_method_order_does_not_matter():
    @pl.program
    class Forward:
        @pl.function
        def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            y: pl.Tensor[[64], pl.FP32] = self.later(x)
            return y

        @pl.function
        def later(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            return x

    assert isinstance(Forward, ir.Program)
    assert Forward.name == "Forward"
    assert [f.name for f in Forward.functions.values()] == ["later", "main"]


def test_unknown_method_is_an_undefined_variable():
    with pytest.raises(UndefinedVariableError, match="not defined in program"):

        @pl.program
        class P:
            @pl.function
            def main(self, x: pl.Tensor[[64], pl.FP32]):
                y = self.nowhere(x)
                return y


def test_results_of_a_later_method_cannot_be_unpacked():
    with pytest.raises(
        ParserSyntaxError, match="Cannot unpack a value of unknown type into 2 names"
    ) as caught:

        @pl.program
        class P:
            @pl.function
            def main(self, x: pl.Tensor[[64], pl.FP32]):
                a, b = self.later(x)
                return a, b

            @pl.function
            def later(self, x: pl.Tensor[[64], pl.FP32]):
                return x, x

    assert "above its caller" in caught.value.hint


def test_unpacked_keywords_of_a_method_call_are_rejected_as_written():
    with pytest.raises(ParserTypeError, match=r"'self_' does not accept keyword argument '\*\*more'"):

        @pl.program
        class P:
            @pl.function
            def self_(self, x: pl.Tensor[[64], pl.FP32]):
                y = self.self_(x, **more)  # noqa: F821
                return y


def test_self_call_in_standalone_function_is_undefined():
    with pytest.raises(UndefinedVariableError, match="not defined in program"):

        @pl.function
        def f(x: pl.Tensor[[64], pl.FP32]):
            y = self.g(x)  # noqa: F821
            return y


def test_class_without_methods_is_rejected():
    with pytest.raises(ParserSyntaxError, match=r"contains no @pl\.function"):

        @pl.program
        class Empty:
            def f(self):
                return 1


def test_decorator_attrs_warn_and_store_split_as_int():
    with pytest.warns(DeprecationWarning, match="func_attr"):

        @pl.function(attrs={"split": pl.SplitMode.UP_DOWN, "k": 3})
        def f(x: pl.Tensor[[64], pl.FP32]):
            return x

    assert f.attrs == {"split": 1, "k": 3}
    with pytest.warns(DeprecationWarning):

        @pl.function(attrs={"split": pl.SplitMode.NONE})
        def g(x: pl.Tensor[[64], pl.FP32]):
            return x

    assert g.attrs == {}
    with pytest.warns(DeprecationWarning, match=r"pl\.func_attr"):

        @pl.program
        class P:
            @pl.function(attrs={"split": pl.SplitMode.LEFT_RIGHT})
            def h(self, x: pl.Tensor[[64], pl.FP32]):
                return x

    assert P.get_function("h").attrs == {"split": 2}


def test_empty_decorator_attrs_are_silent_and_wrong_ones_rejected():
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        @pl.function(attrs={})
        def f(x: pl.Tensor[[64], pl.FP32]):
            return x

    for wrong in ([], "", 3):
        with pytest.raises(ParserSyntaxError, match="must be a dict"):
            pl.function(attrs=wrong)
    with pytest.raises(ParserSyntaxError, match="keys must be strings"), pytest.warns(DeprecationWarning):
        pl.function(attrs={1: 2})
    with pytest.raises(ParserSyntaxError, match="annotation-only"), pytest.warns(DeprecationWarning):
        pl.function(attrs={"k": pl.Scalar[pl.INT32]})
    with pytest.raises(ParserSyntaxError, match="references a variable"), pytest.warns(DeprecationWarning):
        pl.function(attrs={"k": pl.dynamic("M")})


def test_func_attr_prologue_sets_attributes_and_emits_nothing():
    k = 5

    @pl.function
    def f(x: pl.Tensor[[64], pl.FP32], k: pl.Scalar[pl.INT32]):
        """Doc."""
        pl.func_attr({"one": 1, "param": k, "who": [x], "split": pl.SplitMode.LEFT_RIGHT})
        pl.func_attr({"dt": pl.FP16, "dirs": [pl.adir.input], "neg": -2})
        return x

    assert isinstance(f.body, ir.ReturnStmt)
    attrs = f.attrs
    assert attrs["param"] is f.params[1]
    assert attrs["who"][0] is f.params[0]
    assert (attrs["one"], attrs["split"], attrs["neg"]) == (1, 2, -2)
    assert attrs["dt"] == pl.FP16
    assert attrs["dirs"] == [ir.ArgDirection.Input]


FUNC_ATTR_ERRORS = {
    'y = pl.add(x, x)\n    pl.func_attr({"k": 1})': "must appear before every other statement",
    'pl.func_attr({"k": 1}, 2)': "takes exactly one positional dict argument",
    "pl.func_attr(x)": "must be a dict literal",
    "pl.func_attr({**x})": r"Unsupported `\*\*` unpacking",
    "pl.func_attr({1: 2})": "key must be a string literal",
    'pl.func_attr({"k": 1, "k": 2})': "Duplicate function attribute 'k'",
    'pl.func_attr({"auto_scope": False})': r"cannot be set with pl\.func_attr",
    'pl.func_attr({"k": None})': "unsupported constant",
    "pl.func_attr({'k': -'a'})": "unsupported constant -'a'",
    'pl.func_attr({"k": [1, x]})': "Unsupported list element type for key",
}


@pytest.mark.parametrize("body", FUNC_ATTR_ERRORS)
def test_func_attr_misuse_is_reported(body):
    code = f"@pl.function\ndef f(x: {T64}):\n    {body}\n    return x\n"
    with pytest.raises(ParserSyntaxError, match=FUNC_ATTR_ERRORS[body]) as caught:
        pl.parse(code)
    assert caught.value.hint


def test_bare_name_in_func_attr_is_never_a_captured_value():
    for value in ("k", "[k]"):
        with pytest.raises(UndefinedVariableError, match="Undefined variable 'k'"):
            pl.parse(
                f"k = 3\n@pl.function\ndef f(x: {T64}):\n    pl.func_attr({{'a': {value}}})\n    return x\n"
            )


def test_attribute_given_in_decorator_and_body_is_a_duplicate():
    with (
        pytest.raises(ParserSyntaxError, match="Duplicate function attribute"),
        pytest.warns(DeprecationWarning),
    ):

        @pl.function(attrs={"k": 1})
        def f(x: pl.Tensor[[64], pl.FP32]):
            pl.func_attr({"k": 2})
            return x


def test_auto_scope_is_stored_only_when_off():
    @pl.function(auto_scope=False)
    def off(x: pl.Tensor[[64], pl.FP32]):
        return x

    @pl.function(auto_scope=True)
    def on(x: pl.Tensor[[64], pl.FP32]):
        return x

    assert off.attrs == {"auto_scope": False}
    assert on.attrs == {}
    assert pl.parse(PROGRAM.format(decorator="auto_scope=False")).get_function("f").attrs == off.attrs
    assert pl.parse(PROGRAM.format(decorator="auto_scope=True")).get_function("f").attrs == {}


def test_function_type_implies_level_and_role():
    @pl.function(type=pl.FunctionType.InCore)
    def f(x: pl.Tensor[[64], pl.FP32]):
        return x

    assert (f.level, f.role) == (ir.Level.CHIP_DIE, ir.Role.SubWorker)


def test_contradicting_level_is_reported():
    with pytest.raises(ParserSyntaxError, match="implies level"):

        @pl.function(type=pl.FunctionType.InCore, level=pl.Level.HOST)
        def f(x: pl.Tensor[[64], pl.FP32]):
            return x


PROGRAM = """
@pl.program
class P:
    @pl.function({decorator})
    def f(self, x: pl.Tensor[[64], pl.FP32]):
        return x
"""


@pytest.mark.parametrize(
    ("decorator", "message"),
    [
        ("type=KIND", r"Unsupported.*type=\.\.\.\) value"),
        (
            "type=foo.FunctionType.InCore",
            r"Expected pl\.FunctionType\.<name>, got 'foo\.FunctionType\.InCore'",
        ),
        ("**{}", r"\*\*kwargs"),
        ("level=pl.Level.BOGUS", "Unknown Level value: BOGUS"),
        ("level=LEVEL", r"Expected pl\.Level\.<name>"),
        ("level=foo.Level.HOST", r"Expected pl\.Level\.<name>, got 'foo\.Level\.HOST'"),
        ("role=foo.Role.SubWorker", r"Expected pl\.Role\.<name>, got 'foo\.Role\.SubWorker'"),
        ("auto_scope=FLAG", "must be a bool literal"),
    ],
)
def test_decorator_arguments_of_methods_are_read_from_the_source(decorator, message):
    names = "KIND = pl.FunctionType.InCore\nLEVEL = pl.Level.HOST\nFLAG = True\n"
    with pytest.raises(ParserSyntaxError, match=message):
        pl.parse(names + PROGRAM.format(decorator=decorator))


def test_none_level_in_a_program_is_no_level():
    program = pl.parse(PROGRAM.format(decorator="level=None, role=None"))
    assert program.get_function("f").level is None


# -- external kernels ----------------------------------------------------------------------------------------


def test_external_kernel_has_empty_body_and_absolute_path(tmp_path):
    kernel = tmp_path / "k.cpp"
    kernel.write_text("// kernel")

    @pl.function(type=pl.FunctionType.AIV, external_source=kernel)
    def k(x: pl.Tensor[[64], pl.FP32], out: pl.Out[pl.Tensor[[64], pl.FP32]]):
        """A kernel."""

    assert k.attrs["external_source"] == str(kernel)
    assert isinstance(k.body, ir.SeqStmts)
    assert k.body.stmts == []
    for kind, body in (("AIV", "..."), ("AIC", "pass"), ("AIC", "pl.func_attr({'k': 1})\n    ...")):
        external = pl.parse(
            f"@pl.function(type=pl.FunctionType.{kind}, external_source={str(kernel)!r})\n"
            f"def k(x: {T64}):\n    {body}\n"
        )
        assert external.attrs["external_source"] == str(kernel)
        assert external.body.stmts == []


def test_external_kernel_rules(tmp_path):
    kernel = tmp_path / "k.cpp"
    kernel.write_text("// kernel")
    with pytest.raises(ParserTypeError, match="external_source is only valid on"):

        @pl.function(type=pl.FunctionType.InCore, external_source=kernel)
        def wrong_type(x: pl.Tensor[[64], pl.FP32]): ...

    with pytest.raises(ParserSyntaxError, match=r"must have an empty '\.\.\.' body"):

        @pl.function(type=pl.FunctionType.AIC, external_source=kernel)
        def with_body(x: pl.Tensor[[64], pl.FP32]):
            return x

    with pytest.raises(ValueError, match="file not found"):
        pl.function(type=pl.FunctionType.AIC, external_source="nowhere.cpp")


def test_relative_external_source_starts_at_the_calling_file():
    relative = os.path.basename(__file__)

    @pl.function(type=pl.FunctionType.AIC, external_source=relative)
    def k(x: pl.Tensor[[64], pl.FP32]): ...

    assert k.attrs["external_source"] == os.path.abspath(__file__)


# -- host sub-workers ----------------------------------------------------------------------------------------


def test_host_sub_worker_keeps_its_python_text():
    @pl.program
    class P:
        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def work(x: pl.Tensor[[64], pl.FP32]):
            total = sum(range(3))
            print(total)

        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def abstract(x: pl.Tensor[[64], pl.FP32]): ...

        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def nothing(x: pl.Tensor[[64], pl.FP32]):
            pass

    work = P.get_function("work")
    assert isinstance(work.body, ir.InlineStmt)
    assert work.body.body == "total = sum(range(3))\nprint(total)"
    assert not work.requires_runtime_binding
    assert P.get_function("abstract").requires_runtime_binding
    assert P.get_function("abstract").body.body == ""
    assert not P.get_function("nothing").requires_runtime_binding


def test_host_sub_worker_must_not_declare_self():
    with pytest.raises(ParserSyntaxError, match="must not declare 'self'"):

        @pl.program
        class P:
            @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
            def work(self, x: pl.Tensor[[64], pl.FP32]): ...


# -- external functions --------------------------------------------------------------------------------------


@pl.function
def helper(x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
    return x


renamed = helper


def test_external_function_joins_the_program_under_its_own_name():
    @pl.program
    class P:
        @pl.function
        def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            y = renamed(x)
            z = renamed(y)
            return z

    assert [f.name for f in P.functions.values()] == ["helper", "main"]
    call = P.get_function("main").body.stmts[0].value
    assert call.op.name == "helper"
    assert call.type == helper.return_types[0]


def test_external_function_named_like_a_method_conflicts():
    with pytest.raises(ParserSyntaxError, match="conflicts with program function"):

        @pl.program
        class P:
            @pl.function
            def helper(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
                return x

            @pl.function
            def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
                y = renamed(x)
                return y


def test_two_externals_of_one_name_conflict():
    def make():
        @pl.function
        def helper(x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            return x

        return helper

    other = make()
    with pytest.raises(ParserSyntaxError, match="Conflicting external functions with name"):

        @pl.program
        class P:
            @pl.function
            def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
                y = renamed(x)
                z = other(y)
                return z


def test_externals_of_an_external_come_along():
    @pl.function
    def outer(x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
        y = helper(x)
        return y

    @pl.program
    class P:
        @pl.function
        def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            y = outer(x)
            return y

    assert [f.name for f in P.functions.values()] == ["helper", "main", "outer"]


# -- unexpected errors ---------------------------------------------------------------------------------------


class _Failing:
    def __init__(self, error):
        self.error = error

    def __mul__(self, other):
        raise self.error


def test_unexpected_errors_are_wrapped_with_their_cause():
    with pytest.raises(ParserSyntaxError, match="Failed to parse function 'f'") as caught:

        @pl.function
        def f(x: pl.Scalar[pl.INT32], y: pl.Scalar[pl.FP32]):
            z = x + y
            return z

    assert isinstance(caught.value.__cause__, TypeError)
    assert caught.value.hint == "Check your function definition for errors"
    assert "same numeric dtype category" in caught.value.message
    assert caught.value.source_lines[caught.value.span["line"] - 1].strip() == "z = x + y"
    assert "pl.cast" in caught.value.note


class _FailingScalar(pl.Scalar):
    """A captured value that fails while the parser reads it."""

    def __init__(self, error):
        super().__init__(pl.INT32)
        self.error = error

    def has_expr(self):
        return True

    def unwrap(self):
        raise self.error


@pytest.mark.parametrize("in_program", [False, True])
def test_runtime_errors_inside_parsing_are_wrapped_and_bugs_are_not(in_program):
    def parse_with(error):
        broken = _FailingScalar(error)
        if in_program:

            @pl.program
            class P:
                @pl.function
                def f(self, x: pl.Scalar[pl.INT32]):
                    z = broken
                    return z

        else:

            @pl.function
            def f(x: pl.Scalar[pl.INT32]):
                z = broken
                return z

    failure = RuntimeError("boom")
    with pytest.raises(ParserSyntaxError, match="Failed to parse function 'f': boom") as caught:
        parse_with(failure)
    assert caught.value.__cause__ is failure
    assert (caught.value.span is not None) is in_program
    for bug in (AssertionError("boom"), InternalError("boom")):
        with pytest.raises(type(bug), match="boom"):
            parse_with(bug)


def test_assertion_errors_of_folded_expressions_are_not_wrapped():
    broken = _Failing(AssertionError("boom"))
    with pytest.raises(AssertionError, match="boom"):

        @pl.function
        def f(x: pl.Scalar[pl.INT32]):
            z = broken * 2
            return z


def test_parameters_of_other_kinds_are_rejected():
    for signature in ("*, x: T", "x: T, /", "*x: T", "**x: T"):
        code = f"T = {T64}\n@pl.function\ndef f({signature}):\n    return x\n"
        with pytest.raises(ParserSyntaxError, match="not an ordinary positional parameter"):
            pl.parse(code)
        inline = (
            code.replace("@pl.function", "@pl.inline") + f"@pl.function\ndef g(x: {T64}):\n    return f(x)\n"
        )
        with pytest.raises(ParserSyntaxError, match="not an ordinary positional parameter") as caught:
            pl.parse(inline)
        assert caught.value.span["line"] == 3
    with pytest.raises(ParserSyntaxError, match="Parameter 'rest' is not an ordinary positional parameter"):

        @pl.inline
        def helper(a, *rest):
            return a


def test_class_that_holds_a_function_from_elsewhere():
    @pl.program
    class P:
        join = os.path.join

        @pl.function
        def f(self, x: pl.Tensor[[64], pl.FP32]):
            return x

    assert P.name == "P"


def test_decorators_with_empty_parentheses_and_as_plain_calls():
    class Plain:
        @pl.function()
        def f(self, x: pl.Tensor[[64], pl.FP32]):
            return x

    def g(x: pl.Tensor[[64], pl.FP32]):
        return x

    assert isinstance(pl.program(Plain), ir.Program)
    assert isinstance(pl.function(g), ir.Function)


def test_two_classes_of_one_name_are_told_apart():
    def make(first: bool):
        if first:

            @pl.program
            class P:
                @pl.function
                def one(self, x: pl.Tensor[[64], pl.FP32]):
                    return x

        else:

            @pl.program
            class P:
                @pl.function
                def two(self, x: pl.Tensor[[64], pl.FP32]):
                    return x

        return P

    assert [f.name for f in make(True).functions.values()] == ["one"]
    assert [f.name for f in make(False).functions.values()] == ["two"]


def test_names_bound_after_the_decorator_are_invisible():
    with pytest.raises(UndefinedVariableError, match="LATER"):

        @pl.function
        def f(x: pl.Scalar[pl.INDEX]):
            y = x + LATER
            return y

    LATER = 3


def test_errors_about_decorator_arguments_point_at_the_decorator():
    with pytest.raises(ParserSyntaxError, match="must be a dict") as caught:

        @pl.function(attrs=[])
        def f(x: pl.Tensor[[4], pl.FP32]):
            return x

    line = caught.value.source_lines[caught.value.span["line"] - 1]
    assert "attrs=[]" in line
    with (
        pytest.warns(DeprecationWarning),
        pytest.raises(ParserSyntaxError, match="keys must be strings") as caught,
    ):
        pl.parse("N = 1\n@pl.function(attrs={1: 2})\ndef f(x: pl.Tensor[[4], pl.FP32]):\n    return x\n")
    assert caught.value.span["line"] == 2


def test_list_that_an_attribute_cannot_hold_is_reported():
    with pytest.raises(ParserSyntaxError, match="Unsupported list element type for key: 'k'"):
        function("x: pl.Tensor[[4], pl.FP32]", "pl.func_attr({'k': [1, 2]})\nreturn x")
    attrs = function("x: pl.Tensor[[4], pl.FP32]", "pl.func_attr({'arg_direction_overrides': [1, 2]})").attrs
    assert attrs == {"arg_direction_overrides": [1, 2]}


def test_two_methods_of_one_name_are_rejected():
    method = "    @pl.function\n    def f(self, x: pl.Tensor[[4], pl.FP32]):\n        return x\n"
    with pytest.raises(ParserSyntaxError, match="Program 'P' has two functions named 'f'") as caught:
        pl.parse(f"@pl.program\nclass P:\n{method}{method}")
    assert caught.value.span["line"] == 7


def test_error_in_an_inline_helper_of_another_file_shows_that_file(tmp_path):
    path = tmp_path / "helpers.py"
    path.write_text("import pypto.language as pl\n\n@pl.inline\ndef helper(a):\n    return pl.nothing(a)\n")
    spec = importlib.util.spec_from_file_location("helpers", path)
    helpers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(helpers)
    helper = helpers.helper
    with pytest.raises(InvalidOperationError, match=r"Unknown operation 'pl\.nothing'") as caught:

        @pl.function
        def f(x: pl.Tensor[[4], pl.FP32]):
            return helper(x)

    assert caught.value.span["file"] == str(path)
    assert caught.value.source_lines[caught.value.span["line"] - 1] == "    return pl.nothing(a)"
