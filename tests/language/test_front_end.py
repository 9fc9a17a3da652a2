"""Text entry points, comments, spans, diagnostics."""

# ruff: noqa: E501, RET504 - lines and returns of DSL programs are what is tested

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

import pypto.language as pl
from pypto import ir
from pypto.language.parser import (
    ErrorCode,
    ErrorRenderer,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    SSAViolationError,
    UndefinedVariableError,
    UnsupportedFeatureError,
    concise_error_message,
    get_error_code,
)
from tests.language.source import stmts_of

FUNCTION = "@pl.function\ndef f(x: pl.Tensor[[64], pl.FP32]):\n    return x\n"
PROGRAM = "@pl.program\nclass P:\n    @pl.function\n    def f(self, x: pl.Tensor[[64], pl.FP32]):\n        return x\n"


# -- entry points --------------------------------------------------------------------------------------------


def test_parse_gives_the_only_definition():
    assert isinstance(pl.parse(FUNCTION), ir.Function)
    assert isinstance(pl.parse(PROGRAM), ir.Program)
    assert pl.parse_program(PROGRAM).name == "P"


def test_parse_of_none_several_or_the_wrong_kind():
    with pytest.raises(ValueError, match=r"No @pl\.function or @pl\.program found"):
        pl.parse("x = 1")
    for several in (
        FUNCTION + PROGRAM,
        FUNCTION + FUNCTION.replace("def f", "def g"),
        PROGRAM + PROGRAM.replace("P:", "Q:"),
    ):
        with pytest.raises(ValueError, match="Multiple functions/programs found"):
            pl.parse(several)
    with pytest.raises(ValueError, match=r"Expected @pl\.program but found @pl\.function"):
        pl.parse_program(FUNCTION)


def test_python_syntax_errors_name_the_file():
    with pytest.raises(SyntaxError, match=r"Failed to compile code from k\.py"):
        pl.parse("def f(:\n", filename="k.py")
    with pytest.raises(SyntaxError, match="Failed to compile"):
        pl.parse(PROGRAM.replace("return x", "break"))
    with pytest.raises(SyntaxError) as caught:
        pl.parse("def f(:\n", filename="k.py")
    assert str(caught.value).count("(k.py, line 1)") == 1


def test_loads(tmp_path):
    path = tmp_path / "p.py"
    path.write_text(PROGRAM)
    assert pl.loads(path).name == "P"
    assert pl.loads_program(str(path)).get_function("f").span.filename == str(path)
    with pytest.raises(FileNotFoundError):
        pl.loads(tmp_path / "nothing.py")


def test_bad_level_is_reported_at_the_member():
    code = PROGRAM.replace("@pl.function", "@pl.function(level=pl.Level.BOGUS)")
    with pytest.raises(ParserSyntaxError, match="Unknown Level value: BOGUS") as caught:
        pl.parse(code)
    line = code.splitlines()[caught.value.span["line"] - 1]
    assert line[caught.value.span["column"] - 1 :].startswith("BOGUS")
    assert caught.value.hint == "Valid values: " + ", ".join(sorted(ir.Level.__members__))
    with pytest.raises(ParserSyntaxError, match=r"Expected pl\.Level\.<name>"):
        pl.parse(PROGRAM.replace("@pl.function", "@pl.function(level=pl.Role.HOST)"))


def test_unknown_names_in_module_level_annotations_are_symbols():
    f = pl.parse(
        "@pl.function\ndef f(x: pl.Tensor[[M, 4], pl.FP32]) -> tuple[pl.Tensor[[M, 4], pl.FP32]]:\n    return x\n"
    )
    symbol = f.params[0].type.shape[0]
    assert isinstance(symbol, ir.Var) and symbol.name_hint == "M"
    assert f.return_types[0].shape[0] is symbol


def test_unknown_names_in_class_bodies_are_errors_with_a_place():
    with pytest.raises(ParserSyntaxError, match=r"NameError: .*'M'") as caught:
        pl.parse(PROGRAM.replace("64", "M"))
    assert (caught.value.span["line"], caught.value.span["column"]) == (4, 1)
    assert caught.value.source_lines


def test_module_level_python_works_with_builtins():
    f = pl.parse("N = len([1, 2, 3])\n" + FUNCTION.replace("64", "N"))
    assert f.params[0].type.shape[0].value == 3


def test_source_map_redirects_mapped_lines_only():
    code = "@pl.function\ndef f(x: pl.Tensor[[64], pl.FP32]):\n    a = pl.exp(x)\n    b = pl.exp(a)\n    return b\n"
    f = pl.parse(code, source_map={3: ("original.py", 70, 9)})
    a, b, _ = stmts_of(f.body)
    assert (a.span.filename, a.span.begin_line, a.span.begin_column) == ("original.py", 70, 9)
    assert (b.span.filename, b.span.begin_line) == ("<string>", 4)


def test_texts_of_one_name_do_not_disturb_each_other():
    assert pl.parse(FUNCTION).params[0].type.shape[0].value == 64
    assert pl.parse(FUNCTION.replace("64", "32")).params[0].type.shape[0].value == 32


def test_parsing_restores_what_linecache_knew(tmp_path):
    import linecache

    path = tmp_path / "p.py"
    path.write_text(PROGRAM)
    before = linecache.getlines(str(path))
    pl.parse("\n\n" + PROGRAM, filename=str(path))
    assert linecache.getlines(str(path)) == before


def test_program_given_with_python_dash_c():
    code = f"import pypto.language as pl\n{PROGRAM}\nprint(P.name)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "P", done.stderr


def test_missing_source_points_at_parse():
    namespace: dict = {"pl": pl}
    with pytest.raises(ParserSyntaxError, match="Cannot retrieve source code for function 'f'") as caught:
        exec(compile(FUNCTION, "<nowhere>", "exec"), namespace)
    assert "pl.parse()" in caught.value.hint
    with pytest.raises(ParserSyntaxError, match="Cannot retrieve source code for class 'P'"):
        exec(compile(PROGRAM, "<nowhere>", "exec"), namespace)


# -- comments ------------------------------------------------------------------------------------------------


def commented(body: str) -> list[ir.Stmt]:
    text = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    return stmts_of(
        pl.parse(f"@pl.function\ndef f(x: pl.Tensor[[64], pl.FP32], s: pl.Scalar[pl.INDEX]):\n{text}\n").body
    )


def test_comments_above_and_behind_attach_to_the_statement():
    first, second, returned = commented(
        """
        '''Doc line.

        More.'''
        # above
        ##  hash
        y = pl.exp(x)  # behind
        z = pl.add(
            y,  # first
            y,
        )
        return z
        """
    )
    assert first.leading_comments == ["Doc line.", "", "More.", "above", "#  hash", "behind"]
    assert second.leading_comments == ["first"]
    assert returned.leading_comments == []


def test_hash_in_a_string_is_no_comment():
    first, _ = commented("y = pl.exp(x, attrs={'k': 'a # b'})  # real\nreturn y")
    assert first.leading_comments == ["real"]


def test_header_comments_attach_to_the_compound_statement():
    loop, _ = commented(
        """
        # before
        for i in pl.range(
            4,  # bound
        ):  # header
            # inner
            y = pl.exp(x)
        return x
        """
    )
    assert loop.leading_comments == ["before", "bound", "header"]
    assert loop.body.leading_comments == ["inner"]


def test_else_comments():
    with pytest.warns(UserWarning, match=r"Dropped 1 tail-of-block comment\(s\): line 5: 'tail'"):
        branch, _ = commented(
            """
            if s > 1:
                y = pl.exp(x)
                # tail
            # to else
            else:  # behind else
                # own
                y = pl.exp(x)
            return x
            """
        )
    assert branch.else_body.leading_comments == ["to else", "behind else", "own"]


def test_comment_below_an_elif_belongs_to_the_next_statement():
    with pytest.warns(UserWarning, match=r"Dropped 1 tail-of-block comment\(s\): line 8: 'tail'"):
        branch, after, _ = commented(
            """
            if s > 1:
                y = pl.exp(x)
            # to elif
            elif s > 2:  # behind elif
                y = pl.exp(x)
                # tail
            # below
            z = pl.exp(x)
            return z
            """
        )
    assert branch.else_body.leading_comments == ["to elif", "behind elif"]
    assert after.leading_comments == ["below"]


def test_tail_comments_of_loops_are_dropped_with_one_warning():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        commented(
            "for i in pl.range(4):\n    y = pl.exp(x)\n    # one\n    # two\nz = pl.exp(x)\nreturn z\n# three"
        )
    assert len(caught) == 1
    assert str(caught[0].message).startswith(
        "Dropped 3 tail-of-block comment(s): line 5: 'one', line 6: 'two', line 9:"
    )


def test_warnings_point_at_the_program():
    def f(t: pl.Tile[[16, 16], pl.FP32], n: pl.Scalar[pl.INDEX]):
        a = t[1]
        b = t[2]
        for _i in pl.range(0, n, 0):
            c = a
        d, e = (a, b, n)
        with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.UP_DOWN, slot_num=2)]):
            c = b
            # tail
        return a

    with open(__file__, encoding="utf-8") as file:
        lines = file.read().splitlines()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pl.function(f)
    places = [lines[warning.lineno - 1].strip() for warning in caught]
    assert {warning.filename for warning in caught} == {__file__}
    assert places == [
        "a = t[1]",
        "b = t[2]",
        "for _i in pl.range(0, n, 0):",
        "d, e = (a, b, n)",
        "with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.UP_DOWN, slot_num=2)]):",
        "# tail",
    ]


def test_statements_that_emit_nothing_pass_their_comments_on():
    (returned,) = commented("# note\npass\nreturn x")
    assert returned.leading_comments == ["note"]


def test_comments_of_methods_stay_with_their_method():
    program = pl.parse_program(
        "@pl.program\nclass P:\n    @pl.function\n    def a(self, x: pl.Tensor[[64], pl.FP32]):\n        # one\n"
        "        return x\n    # between\n    @pl.function\n    def b(self, x: pl.Tensor[[64], pl.FP32]):\n"
        "        # two\n        return x\n"
    )
    assert [f.body.leading_comments for f in program.functions.values()] == [["one"], ["two"]]


# -- spans ---------------------------------------------------------------------------------------------------


def test_spans_count_characters_from_one():
    code = "@pl.function\ndef f(größe: pl.Tensor[[64], pl.FP32]):\n    ä = pl.exp(größe); b = pl.exp(ä)\n    return b\n"
    f = pl.parse(code)
    line = code.splitlines()[2]
    second = stmts_of(f.body)[1]
    assert second.span.begin_column == line.index("b = ") + 1
    assert second.span.end_column == len(line) + 1
    assert second.value.span.begin_column == line.index("pl.exp(ä)") + 1
    assert (f.span.begin_line, f.span.begin_column) == (2, 1)


def test_spans_of_definitions_parameters_and_compounds():
    program = pl.parse_program(
        "\n@pl.program\nclass P:\n    @pl.function\n    def f(self, x: pl.Tensor[[64], pl.FP32]):\n"
        "        for i in pl.range(4):\n            y = pl.exp(x)\n        return y\n"
    )
    f = program.get_function("f")
    loop = stmts_of(f.body)[0]
    assert (program.span.begin_line, program.span.begin_column) == (2, 1)
    assert (f.span.begin_line, f.span.begin_column, f.span.end_line) == (5, 5, 5)
    assert (f.params[0].span.begin_column, f.params[0].span.end_column) == (17, 44)
    assert (loop.span.begin_column, loop.span.end_column) == (9, 9)
    assert loop.body.var.span is loop.body.span or loop.body.var.span.begin_line == 7


def test_decorated_source_keeps_file_lines():
    @pl.function
    def here(x: pl.Tensor[[64], pl.FP32]):
        y = pl.exp(x)
        return y

    with open(__file__, encoding="utf-8") as file:
        lines = file.read().splitlines()
    assignment = stmts_of(here.body)[0]
    assert lines[assignment.span.begin_line - 1].strip() == "y = pl.exp(x)"
    assert assignment.span.begin_column == 9


# -- error objects -------------------------------------------------------------------------------------------


def test_source_lines_lead_to_the_offending_line_in_indented_classes():
    with pytest.raises(UndefinedVariableError) as caught:

        @pl.program
        class P:
            @pl.function
            def f(self, x: pl.Tensor[[64], pl.FP32]):
                y = nothing_here  # noqa: F821
                return y

    error = caught.value
    assert "nothing_here" in error.source_lines[error.span["line"] - 1]
    assert error.span["file"] == error.span["filename"] == __file__
    assert str(error) == error.message


def test_source_lines_of_text():
    with pytest.raises(UndefinedVariableError) as caught:
        pl.parse(FUNCTION.replace("return x", "return zzz"))
    assert caught.value.source_lines[caught.value.span["line"] - 1].strip() == "return zzz"


def test_error_codes_and_classes():
    assert get_error_code(ParserSyntaxError) == ErrorCode("E001")
    codes = [
        get_error_code(c)
        for c in (ParserTypeError, UndefinedVariableError, SSAViolationError, UnsupportedFeatureError)
    ]
    assert [c.value for c in codes] == ["E101", "E200", "E201", "E301"]
    assert get_error_code(ParserError) is None
    assert not issubclass(ParserSyntaxError, SyntaxError)
    assert pl.parser.ParserError is ParserError


def test_concise_messages():
    text = (
        "bad value [k.py:3:1]\nCheck failed: x at a.cpp:3\n\nC++ Traceback (most recent call last):\n File x"
    )
    assert concise_error_message(ValueError(text)) == "bad value [k.py:3:1]"
    assert concise_error_message(ValueError(text), strip_trailing_span=True) == "bad value"
    assert "PTO_BACKTRACE=1" in concise_error_message(ValueError("Check failed: x at a.cpp:3"))


# -- rendering -----------------------------------------------------------------------------------------------


def test_rendered_error_shows_place_window_caret_and_help():
    lines = [f"line {n}" for n in range(1, 15)]
    lines[11] = "        foo.bar(x)"
    error = ParserSyntaxError(
        "Calling foo.bar is wrong. Really",
        {"file": "nowhere.py", "line": 12, "column": 9},
        "use baz",
        "a note",
        lines,
    )
    assert ErrorRenderer(use_color=False).render(error).splitlines() == [
        "Error: Calling foo.bar is wrong. Really",
        "  --> nowhere.py:12:9",
        "   |",
        "10 | line 10",
        "11 | line 11",
        "12 |         foo.bar(x)",
        "   |         ^^^^^^^ Calling foo.bar is wrong",
        "13 | line 13",
        "14 | line 14",
        "   |",
        "   = help: use baz",
        "   = note: a note",
    ]


def test_rendered_ssa_violation_shows_the_first_definition():
    lines = ["a = 1", "a = 2"]
    error = SSAViolationError(
        "twice",
        {"file": "n.py", "line": 2, "column": 1},
        {"file": "n.py", "line": 1, "column": 1},
        source_lines=lines,
    )
    text = ErrorRenderer(use_color=False).render(error)
    assert "   = note: Previous definition was here:\n  --> n.py:1:1" in text


def test_rendering_without_a_place():
    assert ErrorRenderer(use_color=False).render(ParserError("plain")) == "Error: plain"
    assert "\033[" in ErrorRenderer(use_color=True).render(ParserError("plain"))


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True),
    ],
)
def test_colour_follows_the_environment_where_stderr_is_no_terminal(environment, coloured, monkeypatch):
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ("\033[" in ErrorRenderer().render(ParserError("plain"))) is coloured


def run_failing_script(tmp_path, **env: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "failing.py"
    script.write_text(f"import pypto.language as pl\n\n{FUNCTION.replace('return x', 'return zzz')}")
    environment = {key: value for key, value in os.environ.items() if key != "PTO_BACKTRACE"} | env
    return subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, env=environment
    )


def test_uncaught_errors_are_rendered_without_traceback(tmp_path):
    done = run_failing_script(tmp_path)
    assert done.returncode == 1
    assert "Error: Undefined variable 'zzz'" in done.stderr
    assert "PTO_BACKTRACE" in done.stderr and "Traceback" not in done.stderr
    assert "Traceback" in run_failing_script(tmp_path, PTO_BACKTRACE="1").stderr


# -- helpers outside the parser ------------------------------------------------------------------------------


def test_iterators_run_in_python():
    assert list(pl.range(4)) == [0, 1, 2, 3]
    assert list(pl.parallel(2, 8, 3)) == [2, 5]
    assert list(pl.unroll(3, 0, -1)) == [3, 2, 1]
    assert list(pl.range(2, init_values=(7,))) == [(0, (7,)), (1, (7,))]
    assert pl.pipeline(4, stage=2).pipeline_stages == 2
    with pytest.raises(ValueError, match=r"range\(\) takes 1 to 3 positional arguments"):
        pl.range()
    for stage in (0, True, 1.5):
        with pytest.raises(ValueError, match="stage must be a positive integer"):
            pl.pipeline(4, stage=stage)
    with pytest.raises(TypeError):
        pl.pipeline(4)
    with pytest.raises(ValueError, match=r"while_\(\) requires init_values to be specified"):
        pl.while_()
    assert next(iter(pl.while_(init_values=(1, 2)))) == (1, 2)


def test_markers_run_in_python():
    assert pl.yield_(1) == 1 and pl.yield_(1, 2) == (1, 2)
    assert pl.const(3, pl.INT32) == 3
    assert pl.no_dep("t") == "t" and pl.dump_tag("t") == "t"
    for call in (pl.submit, pl.spmd_submit):
        with pytest.raises(RuntimeError, match="DSL parser construct and cannot be called directly"):
            call()


def test_contexts_run_in_python():
    with pl.at(pl.Level.CORE_GROUP, name_hint="n") as context:
        assert context.name_hint == "n"
    with pl.cluster() as nothing:
        assert nothing is None
    with pytest.raises(KeyError), pl.manual_scope():
        raise KeyError
    for wrong in (True, 1.5, 0):
        with pytest.raises(ValueError, match="core_num must be a positive integer"):
            pl.spmd(wrong)
    with pytest.raises(RuntimeError):
        iter(pl.spmd(4))
    with pytest.raises(ValueError, match="must be the integer 2"):
        pl.split_aiv(3, mode=pl.SplitMode.NONE)
    with pytest.raises(ValueError):
        pl.split_aiv(2, mode=1)
    with pytest.raises(RuntimeError):
        iter(pl.split_aiv(2, mode=pl.SplitMode.NONE))


def test_optimization_entries():
    assert pl.split(pl.SplitMode.NONE) == pl.optimizations.Split(pl.SplitMode.NONE)
    assert pl.cross_core_slot(slot_num=3).slot_num == 3
    with pytest.warns(DeprecationWarning):
        pl.split(pl.SplitMode.NONE, slot_num=3)
    for wrong in (0, True, "x"):
        with pytest.raises(ValueError, match="must be a positive integer"):
            pl.cross_core_slot(slot_num=wrong)


def test_wrappers_outside_the_parser():
    tensor = pl.Tensor[[4, 8], pl.FP32, pl.NZ]
    assert (tensor.shape, tensor.dtype, tensor.layout, tensor.memref) == ([4, 8], pl.FP32, pl.NZ, None)
    memref = pl.MemRef("m")
    assert pl.Tensor[[4], pl.FP32, memref].memref is memref
    for wrong in (lambda: pl.Tensor[[4]], lambda: pl.Tensor[4], lambda: pl.Tile[[4], pl.FP32, memref]):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        pl.Tensor(z=1)
    with pytest.raises(TypeError, match="multiple values for argument 'shape'"):
        pl.Tensor([4], shape=[4])
    with pytest.raises(ValueError):
        pl.Tensor()
    for annotation in (tensor, pl.Tile[[4, 4], pl.FP32], pl.Array[4, pl.INT32]):
        with pytest.raises(ValueError, match="annotation-only"):
            annotation.unwrap()
    with pytest.raises(RuntimeError):
        pl.Scalar[pl.FP32].unwrap()
    with pytest.raises(NotImplementedError):
        tensor[0]
    assert pl.Out[tensor] is tensor and pl.InOut[tensor] is tensor
    with pytest.raises(RuntimeError):
        pl.RUNTIME.unwrap()
    assert repr(pl.RUNTIME) == "pl.RUNTIME"


def test_scalars_compute_in_python():
    m = pl.dynamic("M")
    assert isinstance((m * 2 + 1).unwrap(), ir.Add)
    assert isinstance((3 - m).unwrap(), ir.Sub)
    assert isinstance((m < 3).unwrap(), ir.Lt)
    assert (m == "text") is False
    assert hash(m) == hash(m)
    with pytest.raises(TypeError):
        bool(m)
    with pytest.raises(ValueError):
        pl.dynamic("not a name")
    assert m.unwrap() is m.unwrap()


def test_surface_has_no_duplicates_and_every_name():
    assert len(pl.__all__) == len(set(pl.__all__))
    missing = [name for name in pl.__all__ if name not in ("jit", "JITFunction") and not hasattr(pl, name)]
    assert missing == []


def test_line_ends_and_byte_order_marks_of_other_systems(tmp_path):
    text = "# head\n" + FUNCTION.replace("    return x", "    y = pl.exp(x)  # note\n    return zz")
    for ends in ("\r\n", "\r"):
        with pytest.raises(UndefinedVariableError) as caught:
            pl.parse(text.replace("\n", ends))
        assert caught.value.source_lines[caught.value.span["line"] - 1] == "    return zz"
    path = tmp_path / "p.py"
    path.write_bytes(b"\xef\xbb\xbf" + FUNCTION.replace("\n", "\r\n").encode())
    assert isinstance(pl.loads(path), ir.Function)


def test_source_lines_end_with_the_last_line_of_the_text():
    with pytest.raises(UndefinedVariableError) as caught:
        pl.parse(FUNCTION.replace("return x", "return zz"))
    assert caught.value.source_lines == FUNCTION.replace("return x", "return zz").splitlines()


def test_source_lines_end_with_the_last_line_of_a_program_given_with_python_dash_c():
    code = f"import pypto.language as pl\n{FUNCTION.replace('return x', 'return zz')}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-5:-3] == [
        "4 |     return zz",
        "  |            ^^ Undefined variable 'zz'",
    ]


def test_texts_are_parsed_by_several_threads_at_once():
    codes = [FUNCTION.replace("64", str(n)) for n in range(1, 40)]
    with ThreadPoolExecutor(4) as pool:
        found = [f.params[0].type.shape[0].value for f in pool.map(pl.parse, codes)]
    assert found == list(range(1, 40))
